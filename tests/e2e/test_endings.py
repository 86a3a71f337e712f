"""test_endings.py: sessions that own much, and end: others are served meanwhile, and to whoever looks at the space all is gone at once."""
import os
import signal
import tempfile
import threading
import time

import aoiclient as aoi
from aoiclient import Connection, pb
from bystander import waited_ms, worked_ns
from harness import Daemon, main, test

S = 1
OWNED, SEEN = 150000, 3000
EVERYWHERE = aoi.bounds((-1, -1), (2 * OWNED, 2 * OWNED))


def fill(c, first, n):
    """n entities, of which each 50th stands where the watcher looks; the others far from it."""
    for begin in range(first, first + n, 5000):
        c.ok(S, *[aoi.add(i, i % 50 and 1000 + i, i) for i in range(begin, min(begin + 5000, first + n))])


def watcher(d):
    c = Connection(d.port)
    c.ok(S, aoi.create_space(flush_ms=20), aoi.set_viewport(1, (-1, -1), (1, OWNED)))
    return c


def pings_until(other, asks):
    """How many are answered before the last of those who ask has its reply."""
    threads, n = [threading.Thread(target=ask) for ask in asks], 0
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        other.ping()
        n += 1
    return n


def entities(c):
    return c.query(S, count=pb.CountQuery(box=EVERYWHERE)).entities


@test
def the_end_of_a_session_that_owns_150_000_entities_is_one_moment_in_its_space_and_none_elsewhere():
    with Daemon() as d, Connection(d.port) as other, watcher(d) as c, Connection(d.port) as dying:
        fill(dying, 1, OWNED)
        dying.ok(S, aoi.add(1 << 40, 0, 0, radius=10), aoi.subscribe(2, 1 << 40))
        while len(c.view(S, 1)) < SEEN + 1:
            c.next()
        c.take_deltas()
        asked = []
        dying.call(bye=pb.Bye())
        answered = pings_until(other, [lambda: asked.append(entities(c))])
        assert asked == [0] and answered >= 5, (asked, answered)
        while c.view(S, 1):
            c.next()
        delta, = c.take_deltas()
        assert len(delta.leaves) == SEEN + 1 and not delta.enters and not delta.updates
        c.ok(S, aoi.add(5, 0, 0), aoi.open_player(2))


@test
def two_that_end_in_one_space_and_a_third_that_comes_meanwhile():
    with Daemon() as d, Connection(d.port) as other, watcher(d) as c, Connection(d.port) as one, Connection(d.port) as two:
        fill(one, 1, OWNED // 2)
        fill(two, OWNED // 2 + 1, OWNED // 2)
        two.ok(2, aoi.create_space(), aoi.add(1, 0, 0))
        while len(c.view(S, 1)) < SEEN:
            c.next()
        one.call(bye=pb.Bye())
        two.call(bye=pb.Bye())
        third = Connection(d.port)
        pings_until(other, [lambda: third.ok(S, aoi.add(1, 0, 0, payload=b"new"))])
        assert entities(c) == 1
        assert third.batch(2, aoi.add(1, 0, 0)).errors[0].code == pb.CODE_UNKNOWN_SPACE, "it went with its maker"
        while set(c.view(S, 1)) != {1}:
            c.next()
        assert c.view(S, 1)[1][5] == b"new"
        third.close()


@test
def two_hundred_whose_leases_end_together_hold_up_nobody_either():
    n, each, lease_ms = 200, 1000, 2000
    with Daemon(max_lease_ms=60000) as d, Connection(d.port) as other:
        lost = [Connection(d.port, lease_ms=lease_ms) for _ in range(n)]
        for k, c in enumerate(lost):
            c.ok(S, aoi.create_space(if_absent=True, persistent=True), *[aoi.add(k * each + i + 1, 50 * k, 200 * i) for i in range(each)])
        d.process.send_signal(signal.SIGSTOP)  # the daemon is to hear of all at once
        for c in lost:
            c.close()
        d.process.send_signal(signal.SIGCONT)
        time.sleep(0.9 * lease_ms / 1000)
        before, waits = worked_ns(d), []
        while other.query(stats=pb.StatsQuery()).entities > 0:
            waits += [waited_ms(d, other) for _ in range(50)]
        all_ms = (worked_ns(d) - before) / 1e6
        print("        another one waits %.1f ms at most, of %.0f" % (max(waits), all_ms))
        assert max(waits) < all_ms / 4, (waits, all_ms)


@test
def a_daemon_that_drains_in_the_middle_keeps_nothing_of_who_has_ended():
    with tempfile.TemporaryDirectory(prefix="aoid-endings-") as folder:
        options = {"max_lease_ms": 60000, "snapshot": os.path.join(folder, "snapshot")}
        with Daemon(**options) as d, watcher(d) as c, Connection(d.port) as dying:
            fill(dying, 1, OWNED)
            assert entities(c) == OWNED
            dying.call(bye=pb.Bye())
            d.stop()
        with Daemon(**options) as d, Connection(d.port) as c:
            assert "result=loaded" in d.log() and entities(c) == 0, d.tail()


if __name__ == "__main__":
    main()
