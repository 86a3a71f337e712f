"""test_hostile.py: bytes, timing and endings that no friendly client produces.

Whatever one connection does, the others are served and the daemon ends cleanly.
"""
import random
import socket
import threading
import time

import aoiclient as aoi
from aoiclient import Closed, Connection, pb
from harness import Daemon, eventually, main, seeded, test

S = 5


def kind(frame):
    return frame.WhichOneof("kind")


def hello_bytes():
    return aoi.encode(1, hello=pb.Hello(protocol_version=1))


def batch_bytes(seq, *commands, space=S):
    return aoi.encode(seq, batch=pb.Batch(space=space, commands=commands))


def persistent(space):
    """A batch whose being applied can be seen after its session is gone."""
    return aoi.create_space(persistent=True, if_absent=True)


def spaces(connection):
    return [info.id for info in connection.query(list_spaces=pb.ListSpacesQuery()).spaces]


def try_write(connection, data):
    """Writes what the daemon takes; it may close in the middle."""
    try:
        connection.write(data)
    except Closed:
        pass


def ends(connection, code, optional=False):
    """Frames until the close: the last is an Error of that code (or there is none, if optional or the end was a reset that overtook it)."""
    frames = []
    try:
        while True:
            frames.append(connection.next())
    except Closed as e:
        reset = e.reset
    if frames and kind(frames[-1]) == "error":
        assert frames[-1].error.code == code, frames[-1]
        return frames[:-1]
    assert optional or reset, "closed without an Error: %s" % frames[-3:]
    return frames


class Bystander(Connection):
    """Another connection, with a player in a timed space: what it is told must keep coming."""

    def __init__(self, d):
        super().__init__(d.port, name="bystander")
        self.space, self.x = 1 << 50, 0.0
        self.ok(self.space, aoi.create_space(flush_ms=5), aoi.add(1, 0, 0, radius=1e6), aoi.add(2, 0, 0), aoi.subscribe(1, 1))
        self.served()

    def served(self):
        """A command, its Ack, and the delta that it causes."""
        self.x += 1.0
        self.ok(self.space, aoi.move((2, self.x, 0.0)))
        until = time.monotonic() + aoi.TIMEOUT
        while self.view(self.space, 1).get(2, (None,))[0] != self.x:
            self.next(until - time.monotonic())


def only(d, connection):
    """All other connections are gone, and so is what they owned."""
    eventually(lambda: connection.query(stats=pb.StatsQuery()).connections == 1, "the other connections are gone")
    stats = connection.query(stats=pb.StatsQuery())
    assert (stats.entities, stats.players) == (2, 1), stats


# ------------------------------------------------------------------------------------------------------------------ framing

def twelve():
    """CASES row 12: frames whose prefixes have 1 to 3 bytes, and what they must bring about."""
    frames, want = [], []
    for i, size in enumerate((0, 200, 127, 128, 16383, 16384, 20000)):
        body = pb.ClientFrame(seq=2 + i, batch=pb.Batch(space=S, commands=[aoi.add(i + 1, i, i)])).SerializeToString()
        frames.append(aoi.framed(aoi.padded(body, size) if size else body))
        want.append(2 + i)
    return frames, want


def check_twelve(c, want, space=S):
    for seq in want:
        reply = c.next()
        assert reply.reply_to == seq and reply.ack.applied == 1, reply
    c.seq = want[-1]
    rows = c.query(space, aabb=pb.AabbQuery(box=aoi.bounds((-100, -100), (100, 100))))
    assert sorted(rows.ids) == list(range(1, len(want) + 1))
    c.ok(space, aoi.remove(*rows.ids))


@test
def frames_of_every_prefix_length_cut_at_every_offset_mean_the_same():
    with Daemon() as d, Bystander(d) as other:
        other.ok(S, aoi.create_space(flush_ms=0))
        frames, want = twelve()
        data = b"".join(frames)
        with Connection(d.port) as c:  # one byte a write
            for i in range(len(frames[0]) + len(frames[1]) + len(frames[2]) + len(frames[3])):
                c.write(data[i:i + 1])
            for i in range(i + 1, len(data), 997):
                c.write(data[i:i + 997])
            check_twelve(c, want)
        small = b"".join(frames[:4])
        edges = [sum(map(len, frames[:k])) + j for k in range(len(frames)) for j in (1, 2, 3, 4, 5)]
        for cut in list(range(1, len(small))) + edges:  # two writes
            if cut % 7 and cut < len(small) and cut not in edges:
                continue
            with Connection(d.port) as c:
                c.write(data[:cut])
                time.sleep(0.001)
                c.write(data[cut:])
                check_twelve(c, want)
        other.served()
        only(d, other)


@test
def a_prefix_of_four_bytes_works_and_one_longer_than_needed_too():
    with Daemon(max_frame_bytes=4 << 20) as d, Bystander(d) as other, Connection(d.port) as c:
        body = pb.ClientFrame(seq=2, ping=pb.Ping(nonce=1)).SerializeToString()
        data = aoi.framed(aoi.padded(body, 3 << 20))
        assert data[3] < 0x80 <= data[2]
        for i in range(4):
            c.write(data[i:i + 1])
        c.write(data[4:])
        assert c.next().pong.nonce == 1
        body = pb.ClientFrame(seq=3, ping=pb.Ping(nonce=2)).SerializeToString()
        c.write(bytes([len(body) | 0x80, 0x80, 0x80, 0]) + body)
        assert c.next().pong.nonce == 2
        other.served()


@test
def forty_frames_and_a_half_in_one_write():
    with Daemon() as d, Bystander(d) as other, Connection(d.port) as c:
        c.ok(S, aoi.create_space(flush_ms=0))
        data = b"".join(batch_bytes(c.seq + 1 + i, aoi.add(1 + i, i, i)) for i in range(41))
        half = len(data) - 9
        c.write(data[:half])
        for i in range(40):
            assert c.next().reply_to == c.seq + 1 + i
        cpu = d.cpu_seconds()
        time.sleep(0.5)
        assert d.cpu_seconds() - cpu < 0.3, "the half is waited for without spinning"
        other.served()
        c.write(data[half:])
        assert c.next().reply_to == c.seq + 41


@test
def ten_thousand_empty_frames_and_then_a_valid_add():
    """CASES row 13."""
    with Daemon() as d, Bystander(d) as other, Connection(d.port) as c:
        c.ok(S, aoi.create_space(flush_ms=0))
        c.write(bytes(10000) + batch_bytes(c.seq + 1, aoi.add(9, 1, 1)))
        other.served()
        errors = 0
        while True:
            frame = c.next()
            if frame.reply_to:
                break
            assert frame.error.code == pb.CODE_UNSUPPORTED, frame
            errors += 1
        c.seq += 1
        assert frame.ack.applied == 1 and errors <= 10000
        assert c.query(S, get_entity=pb.GetEntityQuery(id=9)).id == 9


@test
def lengths_beyond_the_limit_are_refused_from_the_prefix_alone():
    """CASES row 14."""
    with Daemon() as d, Bystander(d) as other:
        lengths = ((1 << 20) + 1, (1 << 21) - 1, (1 << 28) - 1, 1 << 28, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 64) - 1)
        prefixes = [aoi.varint(n) for n in lengths]
        prefixes += [b"\x80" * 4, b"\x80" * 5, b"\xff" * 4, b"\xff" * 100, b"\x80" * 10 + b"\x01"]
        for prefix in prefixes:
            with Connection(d.port) as c:
                c.write(prefix)
                assert ends(c, pb.CODE_FRAME_TOO_LARGE) == [], prefix
            with Connection(d.port, hello=False) as c:
                c.write(prefix)
                assert ends(c, pb.CODE_FRAME_TOO_LARGE) == [], prefix
        other.served()
        only(d, other)


@test
def a_frame_of_exactly_the_limit_passes_and_one_byte_more_closes():
    with Daemon() as d, Bystander(d) as other, Connection(d.port) as c:
        body = pb.ClientFrame(seq=2, ping=pb.Ping(nonce=77)).SerializeToString()
        c.write(aoi.framed(aoi.padded(body, 1 << 20)))
        assert c.next().pong.nonce == 77
        try_write(c, aoi.framed(aoi.padded(body, (1 << 20) + 1)))
        assert ends(c, pb.CODE_FRAME_TOO_LARGE) == []
        other.served()


@test
def a_frame_that_trickles_ends_by_frame_timeout_ms():
    with Daemon(frame_timeout_ms=300) as d, Bystander(d) as other, Connection(d.port) as c, Connection(d.port) as quick:
        c.write(aoi.varint(1 << 20))
        began = time.monotonic()
        ended = False
        while not ended:
            assert time.monotonic() - began < 30, "a slow frame holds its connection for ever"
            other.served()
            try:
                c.write(b"\x12")
                frame = c.next(0.05)
                assert kind(frame) == "error", frame
            except TimeoutError:
                pass
            except Closed:
                ended = True
        quick.ping()  # whole frames, however rare, are not slow frames
        only_two = other.query(stats=pb.StatsQuery()).connections
        assert only_two == 2


# --------------------------------------------------------------------------------------------- not protobuf, and the end of it

MALFORMED = (b"\x0a", b"\xff\xff\xff", b"\x12\x7f\x00", b"\x1a\x05\x08\x01\x12\x7f\x00", b"\x07", b"\x0b\x0b\x0b", b"\x08" + b"\xff" * 11, b"\x00\x00")


@test
def bytes_that_are_no_frame_end_the_connection():
    with Daemon() as d, Bystander(d) as other:
        for body in MALFORMED:
            with Connection(d.port) as c:
                c.write(aoi.framed(body) + aoi.encode(9, ping=pb.Ping()))
                assert ends(c, pb.CODE_MALFORMED) == [], body
            with Connection(d.port, hello=False) as c:
                c.write(aoi.framed(body))
                assert ends(c, pb.CODE_MALFORMED) == [], body
        other.served()
        only(d, other)


@test
def what_came_before_a_malformed_frame_is_applied_and_what_comes_after_is_not():
    """CASES row 15: one write with 5 adds, a malformed frame, 5 adds."""
    with Daemon() as d, Bystander(d) as other:
        for kind_of_space in (dict(flush_ms=0), dict(flush_ms=1), dict(flush_ms=50)):
            with Connection(d.port) as c:
                c.ok(S, aoi.create_space(**kind_of_space), aoi.add(100, 0, 0, radius=50), aoi.subscribe(1, 100))
                c.write(batch_bytes(3, *[aoi.add(i, i, i) for i in range(1, 6)]) + batch_bytes(4, persistent(601), space=601)
                        + aoi.framed(b"\xff\xff") + batch_bytes(5, *[aoi.add(i, i, i) for i in range(6, 11)])
                        + batch_bytes(6, persistent(602), space=602))
                replies = [f for f in ends(c, pb.CODE_MALFORMED) if kind(f) != "deltas"]
                assert [f.reply_to for f in replies] == [3, 4] and replies[0].ack.applied == 5, replies
            assert 601 in spaces(other) and 602 not in spaces(other)
            other.ok(601, aoi.destroy_space())
            other.served()
        for _ in range(50):  # again, followed by RST
            c = Connection(d.port)
            five = [aoi.add(i, i, i, radius=9) for i in range(1, 6)]
            c.write(batch_bytes(2, aoi.create_space(flush_ms=1), *five) + aoi.framed(b"\xff\xff") + batch_bytes(3, aoi.add(7, 0, 0)))
            c.reset()
        other.served()
        only(d, other)


@test
def ten_thousand_connections_that_end_by_an_error():
    """CASES row 15: each closes in the middle of reading, with replies unsent and a flush armed."""
    good = hello_bytes() + batch_bytes(2, aoi.create_space(if_absent=True, flush_ms=1), aoi.add(1, 0, 0, radius=9), aoi.subscribe(1, 1),
                                       aoi.subscribe(2, 1, True))
    endings = (aoi.framed(b"\xff\xff\xff"), b"\xff\xff\xff\xff", aoi.framed(b"\x12\x7f\x00") + batch_bytes(3, aoi.add(2, 0, 0)))
    with Daemon() as d, Bystander(d) as other:
        other.query(stats=pb.StatsQuery())
        files = d.open_files()
        for i in range(10000):
            sock = socket.create_connection(("127.0.0.1", d.port))
            sock.sendall((good if i % 4 else b"") + endings[i % 3])
            if i % 5 == 4:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # RST
            elif i % 5:
                try:
                    while sock.recv(65536):
                        pass
                except ConnectionResetError:
                    pass
            sock.close()
            if i % 1000 == 0:
                other.served()
        only(d, other)
        eventually(lambda: d.open_files() <= files, "descriptors are back")
        assert spaces(other) == [other.space]


@test
def random_garbage():
    rng = seeded("garbage")
    with Daemon() as d, Bystander(d) as other:
        seeds = [batch_bytes(3, aoi.create_space(bounds=aoi.bounds((0, 0), (9, 9))), aoi.add(1, 2, 3, payload=b"x" * 50), aoi.move((1, 2, 3), (2, 3, 4)),
                             aoi.remove(1, 2), aoi.set_viewport(1, (0, 0), (1, 1))),
                 aoi.encode(4, query=pb.Query(space=other.space, aabb=pb.AabbQuery(box=aoi.bounds((0, 0), (9, 9)), cursor=5))),
                 aoi.encode(5, resync=pb.Resync(space=S, player=1)), aoi.encode(6, ping=pb.Ping(nonce=1 << 60))]
        for round_ in range(400):
            with Connection(d.port, hello=bool(round_ % 4)) as c:
                how = rng.randrange(3)
                if how == 0:
                    data = rng.randbytes(rng.randrange(1, 3000))
                elif how == 1:  # a good prefix, a random body
                    data = b"".join(aoi.framed(rng.randbytes(rng.randrange(1, 60))) for _ in range(20))
                else:  # good frames with some bytes changed
                    data = bytearray(b"".join(rng.choice(seeds) for _ in range(10)))
                    for _ in range(rng.randrange(1, 8)):
                        data[rng.randrange(len(data))] = rng.randrange(256)
                try_write(c, bytes(data))
                end = rng.randrange(3)
                if end == 0:
                    c.reset()
                elif end == 1:
                    try:
                        c.sock.shutdown(socket.SHUT_WR)
                    except OSError:
                        pass
                    c.frames_until_closed()
            if round_ % 50 == 0:
                other.served()
        other.served()
        only(d, other)


@test
def frames_cut_by_close_reset_and_half_close():
    with Daemon() as d, Bystander(d) as other:
        for make in (Connection.close, Connection.reset, lambda c: c.sock.shutdown(socket.SHUT_WR)):
            for cut in (1, 2, 5, 30):
                c = Connection(d.port)
                c.write(batch_bytes(2, aoi.create_space(flush_ms=1), aoi.add(1, 0, 0, radius=5), aoi.add(2, 0, 0), aoi.subscribe(1, 1)))
                c.write(batch_bytes(3, aoi.add(3, 1, 1), aoi.add(4, 1, 1))[:cut])
                make(c)
                if c.sock.fileno() >= 0:
                    c.frames_until_closed()
                    c.close()
        only(d, other)
        with Connection(d.port) as c:  # all that came before a half-close is answered
            c.write(b"".join(aoi.encode(2 + i, ping=pb.Ping(nonce=i)) for i in range(2000)))
            c.sock.shutdown(socket.SHUT_WR)
            frames = c.frames_until_closed()
            assert [f.pong.nonce for f in frames] == list(range(2000)), len(frames)
        only(d, other)


# ------------------------------------------------------------------------------------------------------------ large and slow

@test
def a_radius_that_grows_over_50_000_entities_and_back():
    """CASES row 16."""
    for index in (pb.INDEX_GRID, pb.INDEX_CROSSLIST):
        with Daemon() as d, Bystander(d) as other, Connection(d.port) as c:
            rng = random.Random(1)
            c.ok(S, aoi.create_space(flush_ms=0, index=index), aoi.add(1 << 40, 0, 0, radius=10), aoi.subscribe(1, 1 << 40))
            near = set()
            for start in range(1, 50001, 5000):
                commands = []
                for i in range(start, start + 5000):
                    x, y = rng.randrange(-50000, 50000), rng.randrange(-50000, 50000)
                    if i % 10000 == 0:
                        x, y = 1, i // 10000
                        near.add(i)
                    elif max(abs(x), abs(y)) <= 10:
                        near.add(i)
                    commands.append(aoi.add(i, x, y, payload=b"entity %d" % i))
                c.ok(S, *commands)
            c.ok(S, aoi.flush())
            assert set(c.view(S, 1)) == near
            c.take_deltas()
            seq = c.send(batch=pb.Batch(space=S, commands=[aoi.set_radius(1 << 40, 100000), aoi.flush(5)]))
            other.served()
            ack = c.reply(seq).ack
            while ack.pending:  # enters held back by out_soft_bytes follow with the next flush
                ack = c.ok(S, aoi.flush(5))
            deltas = c.take_deltas()
            assert len(c.view(S, 1)) == 50000 and sum(len(x.enters) for x in deltas) == 50000 - len(near)
            assert deltas[0].parts > 1, "several frames"
            assert [x.seq for x in deltas] == list(range(2, 2 + len(deltas)))
            c.ok(S, aoi.set_radius(1 << 40, 10), aoi.flush())
            other.served()
            delta, = c.take_deltas()
            assert len(delta.leaves) == 50000 - len(near) and not delta.enters and not delta.updates
            assert set(c.view(S, 1)) == near


def stalled(d, flush_ms=5, entities=1500):
    """A connection that does not read, with a player who sees entities that all move; and the one that moves them."""
    mover = Connection(d.port, name="mover")
    reader = Connection(d.port, name="stalled", rcvbuf=4096)
    mover.ok(S, aoi.create_space(flush_ms=flush_ms), aoi.add(1 << 40, 0, 0, radius=10000), *[aoi.add(1 + i, i, 0) for i in range(entities)])
    reader.ok(S, aoi.subscribe(1, 1 << 40))
    return mover, reader


def skipped(connection):
    return connection.query(S, stats=pb.StatsQuery()).skipped


def move_until(mover, condition, what, entities=1500, seconds=60):
    until, step = time.monotonic() + seconds, 0
    while not condition():
        assert time.monotonic() < until, "not in %d s: %s" % (seconds, what)
        step += 1
        mover.ok(S, aoi.move(*[(1 + i, i, step) for i in range(entities)]))
    return step


@test
def a_slow_reader_collapses_and_catches_up_with_one_delta():
    with Daemon(out_soft_bytes=65536, out_hard_bytes=8 << 20) as d, Bystander(d) as other:
        mover, reader = stalled(d)
        with mover, reader:
            move_until(mover, lambda: skipped(mover) > 50, "the stalled player is skipped")
            other.served()
            mover.ok(S, aoi.remove(3), aoi.add(3, 3, 7, payload=b"again"), aoi.remove(4), aoi.set_layers(5, 8), aoi.set_payload(6, b"six"),
                     aoi.move((7, 7, 0.5)))
            until = time.monotonic() + 30
            while True:  # reads everything, in order; the mirror checks the numbers
                assert time.monotonic() < until, "never caught up"
                try:
                    reader.next(0.3)
                except TimeoutError:
                    break
            view = reader.view(S, 1)
            assert set(view) == set(range(1, 1501)) - {4}, len(view)
            rows = truth(mover)
            assert {id: seen[:3] for id, seen in view.items()} == rows
            assert view[3][5] == b"again" and view[5][4] == 8 and view[6][5] == b"six" and view[7][:2] == (7, 0.5)
            reader.ping()


def truth(connection):
    """id -> position, by query, of all but the unit."""
    rows, cursor = {}, 0
    while True:
        page = connection.query(S, aabb=pb.AabbQuery(box=aoi.bounds((-1e5, -1e5), (1e5, 1e5)), cursor=cursor))
        rows.update((id, (x, y, 0.0)) for id, x, y in zip(page.ids, page.x, page.y) if id != 1 << 40)
        cursor = page.next_cursor
        if not cursor:
            return rows


@test
def one_who_never_reads_is_closed_with_a_reason_and_memory_stays_flat():
    """CASES row 4 in small: what goes past out_hard_bytes closes; deltas alone never do."""
    with Daemon(out_soft_bytes=65536, out_hard_bytes=262144) as d, Bystander(d) as other:
        mover, reader = stalled(d)
        with mover, reader:
            reader.ok(S, *[aoi.open_player(10 + i) for i in range(12000)])
            move_until(mover, lambda: skipped(mover) > 20, "the stalled player is skipped")
            assert other.query(stats=pb.StatsQuery()).connections == 3, "collapse, not close"
            before = d.resident_bytes()
            at = skipped(mover)
            move_until(mover, lambda: skipped(mover) > at + 20, "skipped on")
            assert d.resident_bytes() - before < 64 << 20, "memory stays flat"
            mover.ok(S, aoi.destroy_space())  # 12,001 closed deltas, whatever the limits
            eventually(lambda: other.query(stats=pb.StatsQuery()).connections == 2, "the stalled one is closed")
            other.served()
            mover.ping()
            assert "out_hard_bytes" in d.log() or "hard" in d.log(), "the log names the reason\n" + d.tail()


@test
def seventy_thousand_tiny_frames_from_one_who_does_not_read():
    """CASES row 4: replies are bounded, because nobody over out_soft_bytes is read."""
    with Daemon(out_soft_bytes=65536, out_hard_bytes=1 << 20) as d, Bystander(d) as other, Connection(d.port, rcvbuf=4096) as c:
        data = b"".join(aoi.encode(2 + i, ping=pb.Ping(nonce=i)) for i in range(70000))
        c.sock.setblocking(False)
        sent, idle = 0, 0
        while sent < len(data) and idle < 50:
            try:
                sent += c.sock.send(data[sent:sent + 65536])
                idle = 0
            except BlockingIOError:
                idle += 1
                time.sleep(0.005)
        other.served()
        c.sock.setblocking(True)
        got = 0
        writer = threading.Thread(target=lambda: try_write(c, data[sent:]) if sent < len(data) else None)
        writer.start()
        while got < 70000:
            frame = c.next()
            assert frame.pong.nonce == got and frame.reply_to == 2 + got, frame
            got += 1
        writer.join()
        other.served()


@test
def more_connections_than_max_connections_get_limit_exceeded():
    """CASES row 30 in small."""
    with Daemon(max_connections=50) as d, Bystander(d) as other:
        held, refused = [], 0
        for _ in range(200):
            c = Connection(d.port, hello=False)
            try_write(c, hello_bytes())
            try:
                frame = c.next()
                if kind(frame) == "welcome":
                    held.append(c)
                    continue
                assert frame.error.code == pb.CODE_LIMIT_EXCEEDED and frame.error.text, frame
            except Closed as e:
                raise AssertionError("refused without a word (reset: %s)" % e.reset) from e
            refused += 1
            assert c.frames_until_closed() == []
            c.close()
        assert len(held) == 49 and refused == 151, (len(held), refused)
        other.served()
        for c in held[:40]:
            c.close()
        eventually(lambda: other.query(stats=pb.StatsQuery()).connections == 10, "closed ones are gone")
        again = [Connection(d.port) for _ in range(40)]
        for c in again + held[40:]:
            c.close()
        only(d, other)


@test
def a_batch_of_a_full_frame_of_tiny_commands_is_bounded_work():
    """As many commands as fit into 1 MiB, all empty or all failing, on two connections."""
    with Daemon() as d, Bystander(d) as other, Connection(d.port) as c:
        c.ok(S, aoi.create_space(flush_ms=0))
        for command in (pb.Command(), pb.Command(flush=pb.Flush()), pb.Command(add_entity=pb.AddEntity())):
            one = command.SerializeToString()
            n = (1 << 20) // (len(one) + 2) - 20
            c.send(batch=pb.Batch(space=S, commands=[command] * n))
            other.served()
            frame = c.next()
            if kind(frame) == "error":  # more than the daemon unpacks: refused as a whole, with the end of the connection
                c = Connection(d.port)
                c.ok(S, aoi.create_space(flush_ms=0))
                continue
            assert frame.ack.errors_total in (0, n) and len(frame.ack.errors) in (0, 1000), frame.ack.errors_total
        c.close()
        other.served()


if __name__ == "__main__":
    main()
