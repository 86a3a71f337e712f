"""rulesrig.py: what the tests of single rules share: a manual space on each index with one unit that watches, and what refuses a command."""
import aoiclient as aoi
from aoiclient import Connection, code_name, pb
from harness import Daemon

S = 5  # the space of most tests
BOTH = (pb.INDEX_GRID, pb.INDEX_CROSSLIST)
SHAPES = (pb.SHAPE_BOX, pb.SHAPE_SPHERE, pb.SHAPE_CELLS)
FOREVER = 1 << 31  # ms; no test lasts so long


def refused(connection, command, code, id=None, space=S):
    """One command, and the one error that its Ack must carry."""
    ack = connection.batch(space, command)
    got = [(code_name(e.code), e.id, bool(e.text)) for e in ack.errors]
    want = [(code, ack.errors[0].id if ack.errors and id is None else id, True)]
    assert got == want and ack.errors_total == 1 and ack.applied == 0, "%s, expected %s for\n%s" % (got, want, command)


def refused_query(connection, code, space=S, **query):
    reply = connection.call(query=pb.Query(space=space, **query))
    assert reply.WhichOneof("kind") == "error" and reply.error.text, reply
    assert code_name(reply.error.code) == code, "%s, expected %s" % (reply, code)


class Rig:
    """A daemon, a connection, and for each index a manual space with a unit 1 at (0, 0) of radius 10, which player 1 watches by."""

    def __init__(self, watch=True, options=None, **settings):
        self.watch, self.options, self.settings = watch, options or {}, settings

    def __iter__(self):
        with Daemon(**self.options) as d, Connection(d.port) as c:
            for index in BOTH:
                self.space, self.c, self.d = S * 10 + index, c, d
                self.ok(aoi.create_space(flush_ms=0, index=index, **self.settings))
                if self.watch:
                    self.ok(aoi.add(1, 0, 0, radius=10), aoi.subscribe(1, 1))
                yield self
                self.ok(aoi.destroy_space())
                c.ping()
                c.take_deltas()

    def ok(self, *commands):
        return self.c.ok(self.space, *commands)

    def flush(self, *commands, player=1, pending=None):
        """Commands and a flush; the player's Delta or None."""
        ack = self.ok(*commands, aoi.flush())
        assert pending is None or ack.pending == pending, "pending is %s" % ack.pending
        return next((d for d in self.c.take_deltas() if d.player == player and not d.closed), None)

    def view(self, player=1):
        return set(self.c.view(self.space, player))

    def why(self, entity, player=1):
        return self.c.query(self.space, why=pb.WhyQuery(player=player, entity=entity))

    def resync(self, player=0):
        assert self.c.call(resync=pb.Resync(space=self.space, player=player)).WhichOneof("kind") == "ack"


def brief(d):
    """What a delta says, without positions: (leaves, enters, updates)."""
    return (set(), set(), set()) if d is None else (d.leaves, set(d.enters), set(d.updates))
