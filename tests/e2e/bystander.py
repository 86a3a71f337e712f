"""bystander.py: what the tests of misbehaving connections share: one that behaves, and must be served all the time."""
import time

import aoiclient as aoi
from aoiclient import Closed, Connection, pb
from harness import eventually

S = 5


def kind(frame):
    return frame.WhichOneof("kind")


def hello_bytes():
    return aoi.encode(1, hello=pb.Hello(protocol_version=1))


def batch_bytes(seq, *commands, space=S):
    return aoi.encode(seq, batch=pb.Batch(space=space, commands=commands))


def spaces(connection):
    return [info.id for info in connection.query(list_spaces=pb.ListSpacesQuery()).spaces]


def try_write(connection, data):
    """Writes what the daemon takes; it may close in the middle."""
    try:
        connection.write(data)
    except Closed:
        pass


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


def only(connection):
    """All other connections are gone, and so is what they owned."""
    eventually(lambda: connection.query(stats=pb.StatsQuery()).connections == 1, "the other connections are gone")
    stats = connection.query(stats=pb.StatsQuery())
    assert (stats.entities, stats.players) == (2, 1), stats
