"""test_budget.py: max_memory_bytes: what is refused, what waits, what goes on."""
import aoiclient as aoi
from aoiclient import Connection, pb
from harness import Daemon, eventually, main, test

S = 1
CONFIG = "[limits]\nmax_memory_bytes = %s\n"


def fill(c, first, n):
    """Adds n entities of 4,000 bytes each. Returns how many were taken; the others must have been refused for the memory."""
    ack = c.batch(S, *[aoi.add(i, 0, 0, payload=b"x" * 4000) for i in range(first, first + n)])
    assert all(e.code == pb.CODE_LIMIT_EXCEEDED and "max_memory_bytes" in e.text for e in ack.errors), ack.errors
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
        for _ in range(20):
            fill(c, 50000, 200)
        stats = c.query(S, stats=pb.StatsQuery())
        assert stats.entities < 17000, stats.entities
        c.ok(S, aoi.move(*[(i, 1, 1) for i in range(1, 1001)]), aoi.flush())
        c.ok(S, aoi.remove(*range(1, held // 2)))
        eventually(lambda: fill(c, 60000, 1) == 1, "there is room again")


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
        c.ok(S, aoi.release(entities=[2]))
        other.ok(S, aoi.adopt(2))
        assert "result=done" in d.reload(CONFIG % "256MiB")
        c.ok(S, aoi.flush())
        assert set(view.entities) == {2, 4}
        assert fill(c, 2000, 10) == 10


if __name__ == "__main__":
    main()
