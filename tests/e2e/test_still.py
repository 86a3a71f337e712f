"""test_still.py: a snapshot, a reload, and who comes or goes wait for the end of what is half done, and meanwhile others are answered."""
import os
import signal
import tempfile
import threading
import time

import aoiclient as aoi
from aoiclient import Connection, pb
from harness import Daemon, eventually, main, test

S, OTHER = 1, 2
N = 400
LONG_S = 4  # the batch takes about so long: more than the second in which such a moment is waited for


def round_of(k):
    """Something that all see stirs, so that each player's best are looked for again; they are the same as before, and nothing is told."""
    return [aoi.move((1, 0.01 * (k % 2), 0)), aoi.flush()]


def fill(c):
    c.ok(S, aoi.create_space(flush_ms=0, max_view=5), *[aoi.add(i + 1, i % 20, i // 20, radius=100) for i in range(N)])
    c.ok(S, *[aoi.open_player(i + 1, presence_only=True) for i in range(N)])
    c.ok(S, *[aoi.subscribe(i + 1, i + 1) for i in range(N)], aoi.flush())


def how_many(c):
    """Rounds that take LONG_S."""
    began, n = time.monotonic(), 0
    while time.monotonic() < began + 0.5:
        c.ok(S, *[command for k in range(4) for command in round_of(k)])
        n += 4
    return int(n * LONG_S / (time.monotonic() - began)) + 4


def worst_ping(other, thread):
    worst = 0.0
    while thread.is_alive():
        began = time.monotonic()
        other.ping()
        worst = max(worst, time.monotonic() - began)
    return worst


def run_beside(d, what, prepare=lambda: None):
    """what(), with what prepare() gave, is called while a batch is in the middle that takes long. A third one's commands and flushes go on behind it."""
    with Connection(d.port) as c, Connection(d.port) as other, Connection(d.port) as third:
        fill(c)
        third.ok(OTHER, aoi.create_space(flush_ms=20), aoi.set_viewport(1, (0, 0), (10, 10)))
        prepared = prepare()
        commands = [command for k in range(how_many(c)) for command in round_of(k)]
        took = []

        def long_one():
            began = time.monotonic()
            c.ok(S, *commands)
            took.append(time.monotonic() - began)

        thread = threading.Thread(target=long_one)
        thread.start()
        time.sleep(0.3)
        what(prepared)
        waits = threading.Thread(target=lambda: (time.sleep(LONG_S / 2), third.ok(OTHER, aoi.add(1, 1, 1))))
        waits.start()
        worst = worst_ping(other, thread)
        waits.join()
        while 1 not in third.view(OTHER, 1):
            third.next()
        print("        the batch took %.1f s, the longest ping %.3f s" % (took[0], worst), flush=True)
        assert took[0] > 2 and worst < took[0] / 8, (took, worst)


@test
def a_snapshot_waits_for_a_long_batch_and_nobody_for_the_snapshot():
    with tempfile.TemporaryDirectory(prefix="aoid-still-") as folder:
        with Daemon(snapshot=os.path.join(folder, "snapshot"), snapshot_s=1, max_lease_ms=60000) as d:
            run_beside(d, lambda _: None)
            eventually(lambda: "result=written" in d.log(), "a snapshot")
            assert "result=skipped" not in d.log(), d.tail()


@test
def a_reload_waits_for_a_long_batch_and_nobody_for_the_reload():
    with Daemon() as d:
        run_beside(d, lambda _: d.signal(signal.SIGHUP))
        eventually(lambda: "event=reload result=done" in d.log(), "the reload")


def neighbour(d):
    c = Connection(d.port, lease_ms=60000)
    c.ok(S, aoi.add(1 << 40, 5000, 5000), aoi.set_viewport(1 << 40, (0, 0), (1, 1)))
    return c


@test
def who_breaks_resumes_or_ends_beside_a_long_batch_waits_for_it_and_nobody_for_him():
    resumed = []

    def resume(old):
        resumed.append(threading.Thread(target=lambda: resumed.append(Connection(d.port, resume=old))))
        resumed[0].start()

    for what, there in ((Connection.reset, 1), (resume, 1), (lambda c: c.send(bye=pb.Bye()), 0)):
        with Daemon(max_lease_ms=60000) as d:
            run_beside(d, what, lambda: neighbour(d))
            if what == resume:
                resumed[0].join()
                assert resumed[1].welcome.resumed
                resumed[1].ok(S, aoi.move((1 << 40, 5001, 5001)))
            with Connection(d.port) as c:
                assert c.query(S, count=pb.CountQuery(box=aoi.bounds((4000, 4000), (6000, 6000)))).entities == there


if __name__ == "__main__":
    main()
