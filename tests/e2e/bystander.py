"""bystander.py: what the tests of misbehaving connections share: one that behaves, and must be served all the time."""
import contextlib
import time

import aoiclient as aoi
from aoiclient import Closed, Connection, pb
from harness import Daemon, eventually

S = 5


def kind(frame):
    return frame.WhichOneof("kind")


def hello_bytes():
    return aoi.encode(1, hello=pb.Hello(protocol_version=1))


def batch_bytes(seq, *commands, space=S):
    return aoi.encode(seq, batch=pb.Batch(space=space, commands=commands))


def spaces(connection):
    return [info.id for info in connection.query(list_spaces=pb.ListSpacesQuery()).spaces]


def worked_ns(d):
    with open("/proc/%d/schedstat" % d.process.pid) as f:
        return int(f.read().split()[0])


def waited_ms(d, c):
    """How long the daemon was busy with others before it answered: as its processor tells, unless we were late to look, or as its clock does, unless it had to wait."""
    before, sent = worked_ns(d), time.time()
    pong = c.call(ping=pb.Ping()).pong
    return max(0.0, min((worked_ns(d) - before) / 1e6, pong.time_us / 1e3 - sent * 1e3))


def try_write(connection, data):
    """Writes what the daemon takes; it may close in the middle."""
    try:
        connection.write(data)
    except Closed:
        pass


def fill_up(mover, stalled):
    """The mover's entities move and are flushed until a player who sees them all is skipped, for nobody reads its connection."""
    n = 5000
    mover.ok(S, aoi.create_space(flush_ms=500), aoi.add(1, 0, 0, radius=100000), *[aoi.add(2 + i, i, 0) for i in range(n)])
    stalled.ok(S, aoi.subscribe(1, 1))
    for step in range(100):  # fills its socket and its outbox
        if mover.query(S, stats=pb.StatsQuery()).skipped:
            return
        mover.ok(S, aoi.move(*[(2 + i, i, step + 1) for i in range(n)]), aoi.flush())
    raise AssertionError("the reader does not stall")


def resume_while_it_drains(options):
    with Daemon(max_lease_ms=60000, **options) as d, Connection(d.port, lease_ms=60000) as c, Connection(d.port, hello=False) as late, Connection(d.port) as other:
        c.ok(S, aoi.create_space(flush_ms=20), aoi.add(1, 0, 0, radius=10, report_observed=True), aoi.add(2, 1, 1), aoi.subscribe(1, 1))
        other.ok(S, aoi.set_viewport(2, (-5, -5), (5, 5)), aoi.flush())
        c.ping()
        assert set(c.view(S, 1)) == {2} and c.observed == {(S, 1): True}
        d.signal()
        other.wait("draining")
        late.say_hello(resume=c)
        assert late.welcome.resumed
        frames = late.frames_until_closed()
        d.wait()
        return late, frames


def resumed_while_draining(**options):
    """A session with a player and an entity that is observed; a connection that is there when the daemon begins to drain resumes it. Returns that one, and what it is sent."""
    for _ in range(5):
        with contextlib.suppress(Closed):  # the daemon waits for a tenth of a second only
            return resume_while_it_drains(options)
    raise AssertionError("each time it was too late")


def nested(field, body):
    """A length-delimited field."""
    return aoi.varint(field << 3 | 2) + aoi.varint(len(body)) + body


def full_frames():
    """Frames of almost 1 MiB whose cost would explode if a decoder merged or unpacked without bounds."""
    def fill(piece):
        return piece * (((1 << 20) - 64) // len(piece))

    space, eight = b"\x08\x05", b"\x01" + bytes(7)
    command = aoi.flush().SerializeToString()
    yield "a oneof of the frame, again and again", fill(nested(3, space + nested(2, command)))
    yield "hellos", fill(nested(2, nested(2, b"x")))
    yield "a oneof of a query", nested(4, space + fill(nested(2, nested(1, b""))))
    yield "a box", nested(4, space + nested(2, fill(nested(1, b"\x0d" + bytes(4)))))
    yield "settings", nested(3, space + nested(2, nested(1, fill(nested(1, nested(6, b""))))))
    yield "a oneof of a command", nested(3, space + nested(2, fill(nested(4, nested(1, eight)))))
    yield "ids one by one", nested(3, space + nested(2, nested(4, fill(aoi.varint(1 << 3 | 1) + eight))))
    yield "packed ids one by one", nested(3, space + nested(2, nested(4, fill(nested(1, eight)))))
    yield "no ids, packed", nested(3, space + nested(2, nested(4, fill(nested(1, b"")))))
    yield "payloads", nested(3, space + nested(2, nested(8, fill(nested(2, b"abc")))))
    yield "unknown fields", fill(nested(2000, b""))
    yield "unknown fields of a command", nested(3, nested(2, fill(nested(2000, b""))))
    yield "groups", fill(b"\x0b")


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
