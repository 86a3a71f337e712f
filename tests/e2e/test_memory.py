"""test_memory.py: under a limit of its address space, no peer makes an allocation fail.

What may be held is bounded by the configured limits, which here add up to less than the daemon is given; a frame's own cost is bounded by its length. An
allocation that fails ends the daemon with "out of memory", so that living on is the proof.
"""
import aoiclient as aoi
from aoiclient import Closed, Connection, pb
from bystander import Bystander, S, full_frames, kind, nested, try_write
from harness import Daemon, eventually, main, test

MEMORY = 300 << 20
CONNECTIONS, ENTITIES, PLAYERS, MESSAGES = 48, 2000, 20, 500
PAYLOAD = bytes(4096)
FRAME = 1 << 20


def confined(**options):
    limits = dict(max_connections=CONNECTIONS, max_spaces=3, max_entities=ENTITIES, max_players=PLAYERS, max_messages_per_flush=MESSAGES,
                  out_soft_bytes="256KiB", out_hard_bytes="2MiB", frame_timeout_ms=60000)
    return Daemon(memory=MEMORY, **{**limits, **options})


def lives(d, other, what):
    other.served()
    assert d.alive(), d.tail()
    assert "out of memory" not in d.log(), d.tail()
    print("        %s: at most %d MiB of address space so far" % (what, d.address_space_bytes() >> 20), flush=True)


def outcome(c):
    """The reply to one frame: an Ack, or an Error and the close."""
    try:
        return kind(c.next())
    except Closed as e:
        assert e.reset
        return "error"


def full_of(command):
    """A frame of almost max_frame_bytes with nothing but this command, again and again."""
    piece = nested(2, command.SerializeToString())
    return nested(3, b"\x08\x05" + piece * ((FRAME - 64) // len(piece)))


@test
def frames_that_unpack_to_a_hundred_times_their_length_are_paid_for_or_refused():
    with confined() as d, Bystander(d) as other:
        tiny = [("empty commands", pb.Command()), ("spaces without settings", pb.Command(create_space=pb.CreateSpace())),
                ("entities without an id", pb.Command(add_entity=pb.AddEntity())), ("releases", pb.Command(release=pb.Release()))]
        for name, body in list(full_frames()) + [(name, full_of(command)) for name, command in tiny]:
            with Connection(d.port) as c:
                c.ok(S, aoi.create_space(flush_ms=0))
                try_write(c, aoi.framed(body) + aoi.encode(1000, ping=pb.Ping()))
                while outcome(c) not in ("pong", "error"):
                    pass
            lives(d, other, name)


@test
def frames_in_the_middle_of_which_their_batches_pause_keep_little_of_it_together():
    """Each of them would keep a hundred times its length while it takes its turns with the others."""
    n = 12
    flush = nested(2, aoi.flush().SerializeToString())
    with confined(max_spaces=n + 1) as d, Bystander(d) as other:
        held = [Connection(d.port) for _ in range(n)]
        for i, c in enumerate(held):
            c.ok(100 + i, aoi.create_space(flush_ms=0), *[aoi.add(k, k, 0, radius=1e6) for k in SOME],
                 *[aoi.subscribe(k, k) for k in range(1, 1 + PLAYERS)])
        for i, c in enumerate(held):
            slow = b"".join(nested(2, command.SerializeToString()) for k in range(200) for command in (aoi.move((1, k, 0), (2, k, 0)), aoi.flush()))
            body = nested(3, b"\x08" + aoi.varint(100 + i) + slow + flush * ((FRAME - 64 - len(slow)) // len(flush)))
            c.write(aoi.framed(b"\x08\x63" + body))
        for c in held:
            assert c.reply(99).ack.applied > 200000
        lives(d, other, "%d of them at once" % n)
        for c in held:
            c.close()


@test
def frames_that_claim_much_and_never_come_take_no_more_than_the_limits_say():
    with confined() as d, Bystander(d) as other:
        for length in (FRAME + 1, (1 << 28) - 1):
            with Connection(d.port) as c:
                c.write(aoi.varint(length) + bytes(1000))
                frames = c.frames_until_closed()
                assert not frames or frames[-1].error.code == pb.CODE_FRAME_TOO_LARGE
        held = [Connection(d.port) for _ in range(CONNECTIONS - 1)]
        for c in held:
            c.write(aoi.varint(FRAME) + bytes(FRAME - 1))
        eventually(lambda: other.query(stats=pb.StatsQuery()).bytes_in > len(held) * FRAME, "the daemon holds them all")
        lives(d, other, "%d frames that lack their last byte" % len(held))
        for c in held:
            c.write(b"\xff")
        assert all(outcome(c) == "error" for c in held)
        for c in held:
            c.close()
        lives(d, other, "the same, ended")


def fill(c, space):
    """Everything that a space may hold. Returns how much was refused."""
    refused = 0
    for first in range(1, ENTITIES + 200, 100):
        adds = [aoi.add(i, i % 50, i // 50, radius=1e6, payload=PAYLOAD, report_observed=True) for i in range(first, first + 100)]
        ack = c.batch(space, *adds)
        assert all(e.code == pb.CODE_LIMIT_EXCEEDED for e in ack.errors), ack
        refused += ack.errors_total
    for player in range(1, PLAYERS + 5):
        ack = c.batch(space, aoi.set_viewport(player, (-100, -100), (100, 100)), *[aoi.subscribe(player, 1 + e) for e in range(1100)],
                      *[aoi.show(player, 1 << 40 | e) for e in range(1100)])
        assert {e.code for e in ack.errors} <= {pb.CODE_LIMIT_EXCEEDED, pb.CODE_UNKNOWN_PLAYER}, ack.errors[0]
        refused += ack.errors_total
    for _ in range(0, MESSAGES + 200, 100):
        refused += c.batch(space, *[aoi.publish(1, PAYLOAD)] * 100).errors_total
    return refused


@test
def a_world_that_is_filled_to_every_limit_and_then_changed_fits():
    with confined() as d, Bystander(d) as other, Connection(d.port) as c:
        for space in (6, 7):
            c.ok(space, aoi.create_space(flush_ms=0, index=pb.INDEX_CROSSLIST if space == 7 else pb.INDEX_GRID))
            assert fill(c, space) > 200 + 4 * 2000 + 200
            lives(d, other, "space %d filled" % space)
            c.batch(space, aoi.flush())
            lives(d, other, "space %d told" % space)
        assert c.batch(9, aoi.create_space()).errors[0].code == pb.CODE_LIMIT_EXCEEDED
        for round_ in range(5):
            for space in (6, 7):
                for first in range(1, ENTITIES + 1, 200):
                    c.batch(space, *[aoi.set_payload(i, bytes([round_]) * 4096) for i in range(first, first + 200)])
                c.batch(space, aoi.move(*[(i, -i % 50, round_) for i in range(1, ENTITIES + 1)]), aoi.flush())
            lives(d, other, "everything changed %d times" % (1 + round_))


def asks_and_does_not_read(d, player, asked):
    """A connection with a player that sees everything, and with questions of which the answers are many times what it may be behind by."""
    c = Connection(d.port, rcvbuf=4096)
    c.batch(7, aoi.set_viewport(player, (-100, -100), (100, 100)))
    c.write(asked)
    return c


@test
def connections_that_ask_for_everything_and_read_nothing_hold_no_more_than_their_limits():
    with confined(out_soft_ms=60000) as d, Bystander(d) as other, Connection(d.port) as c:
        c.ok(7, aoi.create_space(flush_ms=5))
        for first in range(1, ENTITIES + 1, 100):
            c.ok(7, *[aoi.add(i, i % 50, i // 50, payload=PAYLOAD) for i in range(first, first + 100)])
        box = aoi.bounds((-1000, -1000), (1000, 1000))
        queries = (pb.Query(space=7, aabb=pb.AabbQuery(box=box)), pb.Query(space=7, density=pb.DensityQuery(box=box, columns=256, rows=256)))
        asked = b"".join(aoi.encode(0, query=q) for q in queries) * 40
        deaf = [asks_and_does_not_read(d, 1 + i, asked) for i in range(CONNECTIONS - 2)]
        step = 0
        while step < 10 or c.query(stats=pb.StatsQuery()).skipped < 10 * len(deaf):  # all are full for ten flushes
            step += 1
            c.ok(7, aoi.move(*[(i, i % 50, step) for i in range(1, ENTITIES + 1)]), *[aoi.set_payload(i, PAYLOAD) for i in range(1, 100)])
        lives(d, other, "%d connections that ask and do not read" % len(deaf))
        for one in deaf:
            one.reset()
        eventually(lambda: other.query(stats=pb.StatsQuery()).connections == 2, "the deaf are gone")
        lives(d, other, "they are gone")


SOME = range(1, 201)
GREED = {  # 200 commands of round i, in a space where entities 1 to 200 and players 1 to 50 are
    "entities": lambda i: [aoi.add(200 * i + k, k, i, payload=PAYLOAD, radius=50, report_observed=True) for k in SOME],
    "players": lambda i: [aoi.set_viewport(200 * i + k, (-1e6, -1e6), (1e6, 1e6)) for k in SOME],
    "overrides": lambda i: [aoi.show(1 + i % 50, 1 << 40 | 200 * i + k) for k in SOME],
    "messages": lambda i: [aoi.publish(1, PAYLOAD)] * len(SOME),
}


@test
def where_no_other_limit_holds_max_memory_bytes_does():
    """The other limits' defaults allow many times what there is."""
    for what, commands in GREED.items():
        with Daemon(memory=MEMORY, max_memory_bytes="32MiB") as d, Bystander(d) as other, Connection(d.port) as c:
            c.ok(6, aoi.create_space(flush_ms=0), *GREED["entities"](0), *GREED["players"](0)[:50])
            refused = 0
            for i in range(1, 3000):
                refused += c.batch(6, *commands(i)).errors_total
                if refused > 1000:
                    break
            assert refused, what
            lives(d, other, what)
            c.batch(6, aoi.flush())
            lives(d, other, what + ", told")


if __name__ == "__main__":
    main()
