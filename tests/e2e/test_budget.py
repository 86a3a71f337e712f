"""test_budget.py: max_memory_bytes: what is refused, what waits, what goes on."""
import time

import aoiclient as aoi
from aoiclient import Connection, pb
from harness import Daemon, eventually, main, test

S = 1
CONFIG = "[limits]\nmax_memory_bytes = %s\n"


def fill(c, first, n):
    """Adds n entities of 4,000 bytes each. Returns how many were taken; the others must have been refused for the memory."""
    ack = c.batch(S, *[aoi.add(i, 0, 0, payload=b"x" * 4000) for i in range(first, first + n)])
    assert all(e.code == pb.CODE_LIMIT_EXCEEDED and "max_memory_bytes = " in e.text for e in ack.errors), ack.errors
    assert ack.applied + ack.errors_total == n
    return ack.applied


@test
def adds_stop_near_the_limit_and_go_on_when_there_is_room_again():
    with Daemon(max_memory_bytes="64MiB") as d, Connection(d.port) as c:
        c.ok(S, aoi.create_space(flush_ms=0))
        held = 0
        while held < 40000:
            taken = fill(c, held + 1, 200)
            held += taken
            if taken < 200:
                break
        assert 8000 < held < 17000, held  # 64 MiB hold 16,777 times 4,000 bytes and nothing else
        for again in range(20):
            fill(c, 50000 + 200 * again, 200)
        stats = c.query(S, stats=pb.StatsQuery())
        assert stats.entities < 17000, stats.entities
        c.ok(S, aoi.move(*[(i, 1, 1) for i in range(1, 1001)]), aoi.flush())
        c.ok(S, aoi.remove(*range(1, held // 2)))
        eventually(lambda: fill(c, 60000, 1) == 1, "there is room again")


@test
def a_full_daemon_takes_whoever_comes_in_the_place_of_another_and_is_empty_when_all_have_gone():
    with Daemon(max_memory_bytes="16MiB", **{"space.1.flush_ms": 0}) as d, Connection(d.port) as c:
        n, taken = 0, 5000
        while taken == 5000:
            taken = c.batch(S, *[aoi.add(n + i, i, i) for i in range(1, 5001)]).applied
            n += taken
        assert 20000 < n < 200000, n
        ids = list(range(1, n + 1))
        for k in range(5):
            old, ids = ids[:1000], ids[1000:] + [10**7 + 1000 * k + i for i in range(1000)]
            c.ok(S, aoi.remove(*old))
            c.ok(S, *[aoi.add(id, id % 1000, id % 777) for id in ids[-1000:]])
        assert c.query(S, stats=pb.StatsQuery()).entities == n
        for i in range(0, n, 10000):
            c.ok(S, aoi.remove(*ids[i:i + 10000]))
        c.ok(S, aoi.flush())
        assert c.query(S, stats=pb.StatsQuery()).memory_bytes < 1 << 20, "an empty space of the configuration holds nothing"
        c.ok(S, *[aoi.add(i, i, i) for i in range(1, 5001)])


@test
def what_takes_more_than_it_is_reckoned_at_is_noticed_before_it_is_much_more():
    """Entities one to a cell, and spaces: thousands between two looks at a clock."""
    limit = 64 << 20
    far = lambda k: (k % 1000 * 16000.0 - 8e6, k // 1000 * 16000.0 - 8e6)
    greed = {("cells", 10): lambda i: (S, [aoi.add(k, *far(k)) for k in range(1000 * i, 1000 * i + 1000)]),
             ("spaces", 500): lambda i: (10 + i, [aoi.create_space(), aoi.add(1, 0, 0)])}
    for (what, many), commands in greed.items():
        with Daemon(memory=8 << 30, max_memory_bytes=limit, max_spaces=100000) as d, Connection(d.port) as c:  # the one without a sanitizer
            c.ok(S, aoi.create_space(flush_ms=0, cell_size=100))
            for first in range(1, 40 * many, many):
                batches = [pb.Batch(space=space, commands=some) for space, some in map(commands, range(first, first + many))]
                c.write(b"".join(aoi.encode(c.seq + 1 + i, batch=batch) for i, batch in enumerate(batches)))
                c.seq += len(batches)
                if sum(c.reply(c.seq - len(batches) + 1 + i).ack.errors_total for i in range(len(batches))):
                    break
            else:
                raise AssertionError(what + " were never refused")
            print("        %s: %.0f MB of %.0f" % (what, d.resident_bytes() / 1e6, limit / 1e6))
            assert d.resident_bytes() < 1.25 * limit, what


@test
def over_the_limit_enters_wait_and_all_else_goes_on():
    with Daemon(config=CONFIG % "256MiB") as d, Connection(d.port) as c, Connection(d.port) as other:
        c.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=10), aoi.add(2, 1, 1), aoi.add(3, 2, 2), aoi.add(4, 100, 100))
        c.ok(S, aoi.subscribe(7, 1), aoi.flush())
        assert fill(c, 1000, 200) == 200
        c.ok(S, aoi.remove(*range(1000, 1200)))
        assert "result=done" in d.reload(CONFIG % "100KiB")  # less than it holds already
        assert fill(c, 2000, 10) == 0
        for command in (aoi.subscribe(7, 2), aoi.set_payload(2, b"more"), aoi.set_viewport(9, (0, 0), (1, 1))):
            assert c.batch(S, command).errors[0].code == pb.CODE_LIMIT_EXCEEDED
        assert other.batch(99, aoi.create_space()).errors[0].code == pb.CODE_LIMIT_EXCEEDED
        c.ok(S, aoi.set_payload(2, b""), aoi.move((2, 3, 3), (3, 50, 50), (4, 5, 5)))
        assert c.batch(S, aoi.flush()).pending
        view = c.views[S, 7]
        assert set(view.entities) == {2} and view.entities[2][:2] == (3, 3), view.entities
        assert "but max_memory_bytes is reached" in c.query(S, why=pb.WhyQuery(player=7, entity=4)).text
        c.ok(S, aoi.release(entities=[2]))
        other.ok(S, aoi.adopt(2))
        assert "result=done" in d.reload(CONFIG % "256MiB")
        c.ok(S, aoi.flush())
        assert set(view.entities) == {2, 4}
        assert fill(c, 2000, 10) == 10


@test
def over_the_limit_cameras_that_were_told_nothing_take_no_memory_either():
    with Daemon(config=CONFIG % "256MiB") as d, Connection(d.port) as c:
        c.ok(S, aoi.create_space(flush_ms=0), *[aoi.set_viewport(i, (0, 0), (50, 50)) for i in range(1, 5001)])
        for first in range(1, 20001, 2000):
            c.ok(S, *[aoi.add(i, 1, 1) for i in range(first, first + 2000)])
        assert "result=done" in d.reload(CONFIG % "100KiB")
        before = c.query(S, stats=pb.StatsQuery()).memory_bytes
        assert c.batch(S, aoi.flush()).pending
        after = c.query(S, stats=pb.StatsQuery())
        assert after.enters == 0 and after.memory_bytes < before * 5 / 4, (before, after)
        assert "result=done" in d.reload(CONFIG % "0")
        c.ok(S, aoi.flush())
        assert c.query(S, stats=pb.StatsQuery()).enters > 0


@test
def over_the_limit_what_adds_nothing_goes_on_and_a_full_delta_keeps_the_view():
    with Daemon(config=CONFIG % "256MiB") as d, Connection(d.port) as c:
        c.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=100), *[aoi.add(i, i, 0, payload=b"p" * 50) for i in range(2, 60)])
        c.ok(S, aoi.subscribe(7, 1), aoi.set_viewport(8, (0, 0), (9, 9)), aoi.flush())
        assert "result=done" in d.reload(CONFIG % "100KiB")
        assert fill(c, 2000, 10) == 0
        c.ok(S, aoi.create_space(if_absent=True, flush_ms=0), aoi.upsert(2, 2, 1, payload=b"p" * 50), aoi.set_payload(3, b"less"), aoi.set_viewport(8, (0, 0), (3, 3)))
        c.ok(S, aoi.open_player(7))
        for greedy in (aoi.upsert(2, 2, 1, payload=b"p" * 51), aoi.open_player(10, take_over=True), aoi.set_payload(3, b"p" * 51)):
            assert c.batch(S, greedy).errors[0].code == pb.CODE_LIMIT_EXCEEDED, greedy
        c.ok(S, aoi.move((59, 500, 0)), aoi.move((58, 50, 50)))
        c.take_deltas()
        c.call(resync=pb.Resync(space=S, player=7))
        c.batch(S, aoi.flush())
        (delta,) = [x for x in c.take_deltas() if x.player == 7]
        assert delta.full and set(c.view(S, 7)) == set(range(2, 59)), c.view(S, 7)


@test
def what_many_messages_to_many_players_take_is_bounded_and_given_back():
    with Daemon(memory=8 << 30, max_memory_bytes=128 << 20) as d, Connection(d.port) as c, Connection(d.port) as other:
        c.ok(S, aoi.create_space(flush_ms=0))
        c.ok(S, *[aoi.set_viewport(i, (0, 0), (1, 1)) for i in range(1, 4001)])
        before = d.resident_bytes()
        c.ok(S, *[aoi.publish_at(0, 0) for _ in range(2000)])
        c.batch(S, aoi.flush())
        assert d.resident_bytes() < 1.5 * (128 << 20), (before, d.resident_bytes())
        eventually(lambda: not c.batch(S, aoi.upsert(1, 0.5, 0.5)).errors, "room for what tells them")
        c.batch(S, aoi.flush())
        c.ping()
        lost = sum(x.lost for x in c.take_deltas())
        assert lost >= 4000 * 2000 - (1 << 20), lost
        eventually(lambda: other.batch(2, aoi.create_space(if_absent=True), aoi.add(1, 0, 0), aoi.remove(1)).errors_total == 0, "others are not refused for that")


@test
def what_is_not_read_counts_too_and_is_answered_when_it_is():
    """60 connections, each with 17 MB of answers that it does not read: without a bound in sum each could have out_soft_bytes of them."""
    limit, n, asked, rows = 64 << 20, 60, 60, 10000
    box = aoi.bounds((-1, -1), (rows, rows))
    with Daemon(memory=8 << 30, max_memory_bytes=limit) as d, Connection(d.port) as c:  # so that it is the one without a sanitizer
        c.ok(S, aoi.create_space(flush_ms=0), *[aoi.add(1 + i, i, i) for i in range(rows)])
        one = len(pb.ServerFrame(result=c.query(S, aabb=pb.AabbQuery(box=box)) and c.log[-1].result).SerializeToString())
        others = [Connection(d.port, rcvbuf=4096) for _ in range(n)]
        for other in others:
            other.write(b"".join(aoi.encode(2 + i, query=pb.Query(space=S, aabb=pb.AabbQuery(box=box))) for i in range(asked)))
        most = 0
        for _ in range(100):
            c.ok(S, aoi.move((1, 1, 1)))
            most = max(most, d.resident_bytes())
            time.sleep(0.01)
        print("        %.0f MB of %.0f" % (most / 1e6, limit / 1e6))
        assert most < limit + n * (65536 + 2 * one), most
        for other in others:
            for i in range(asked):
                frame = other.next()
                assert frame.reply_to == 2 + i and len(frame.result.entities.ids) == rows
            other.close()


if __name__ == "__main__":
    main()
