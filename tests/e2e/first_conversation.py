import socket, sys
from aoi.v1 import aoi_pb2 as aoi  # made by: protoc -Iproto --python_out=. proto/aoi/v1/aoi.proto

sock = socket.create_connection(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 2643))
stream = sock.makefile("rb")

def varint(n):  # a frame's length goes before it, 7 bits a byte
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

def send(**frame):
    body = aoi.ClientFrame(**frame).SerializeToString()
    sock.sendall(varint(len(body)) + body)

def receive(length=0, shift=0):
    byte = stream.read(1)[0]
    length |= (byte & 127) << shift
    return receive(length, shift + 7) if byte > 127 else aoi.ServerFrame.FromString(stream.read(length))

send(seq=1, hello=aoi.Hello(protocol_version=1, client_name="first conversation"))
print("welcome to session", receive().welcome.session)
send(seq=2, batch=aoi.Batch(space=1, commands=[
    aoi.Command(create_space=aoi.CreateSpace(if_absent=True)),
    aoi.Command(add_entity=aoi.AddEntity(id=1, x=0, y=0, radius=10)),
    aoi.Command(add_entity=aoi.AddEntity(id=2, x=3, y=4, payload=b"hello")),
    aoi.Command(subscribe=aoi.Subscribe(player=7, entity=1))]))  # player 7 sees what entity 1 sees
ack = receive().ack
print("commands applied:", ack.applied)
if ack.errors:  # for example because another first conversation still runs
    sys.exit("refused: %s" % list(ack.errors))
for player in receive().deltas.players:  # comes by itself, 50 ms after the first change
    for id, x, y, payload in zip(player.enter_ids, player.enter_x, player.enter_y, player.enter_payloads):
        print("player", player.player, "sees entity", id, "at", x, y, "carrying", payload)
send(seq=3, bye=aoi.Bye())  # without it our entities would stay for another 10 s, in which we could come back
