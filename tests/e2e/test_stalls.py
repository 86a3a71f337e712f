"""test_stalls.py: half of the connections stop reading for a while: the others do not notice, memory is bounded, and those that come back catch up.

AOI_STALLS=1000 AOI_STALL_S=30 is the full measure, of 1,000 connections with 10 players each; the test does with fewer.
"""
import multiprocessing
import os
import resource
import selectors
import time

import aoiclient as aoi
from aoiclient import Connection, pb
from harness import Daemon, main, test

S = 1
CONNECTIONS = int(os.environ.get("AOI_STALLS", "80"))
STALL_S = float(os.environ.get("AOI_STALL_S", "3"))
PLAYERS, ENTITIES, SIDE = 10, 400, 400.0
SOFT = 65536
WIDE = 400.0 if CONNECTIONS <= 100 else 120.0  # what those see that will stall: enough to fill their connections
SAMPLED = 10  # connections that read, and of which each delta is looked at


def move_all(port, ends):
    """10 rounds of moves a second; the extra word is the time."""
    with Connection(port) as c:
        c.ok(S, *[aoi.add(i + 1, i % 20 * 20.0, i // 20 * 20.0) for i in range(ENTITIES)])
        step, due = 0, time.monotonic()
        while not ends.is_set():
            step += 1
            rows = [(i + 1, i % 20 * 20.0 + step % 7, i // 20 * 20.0 + step % 5) for i in range(ENTITIES)]
            c.ok(S, aoi.move(*rows, extra=[int(time.monotonic() * 1e6) & 0xffffffff] * ENTITIES))
            due += 0.1
            time.sleep(max(0, due - time.monotonic()))


def connect(port, number, size):
    c = Connection(port, rcvbuf=4096)
    players = range(number * PLAYERS + 1, (number + 1) * PLAYERS + 1)
    c.ok(S, *[aoi.set_viewport(p, (p * 37 % 360, p * 53 % 360), (p * 37 % 360 + size, p * 53 % 360 + size)) for p in players])
    return c


def watch(readers, seconds, latencies=None):
    """Reads what comes for so long, closely those that are .watched."""
    with selectors.DefaultSelector() as selector:
        for c in readers:
            c.sock.setblocking(False)
            selector.register(c.sock, selectors.EVENT_READ, c)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for key, _ in selector.select(0.1):
                c = key.data
                data = c.sock.recv(1 << 16)
                assert data, "closed"
                if not c.watched:
                    continue
                c.inbox += data
                now = int(time.monotonic() * 1e6)
                body = aoi.take_frame(c.inbox)
                while body is not None:
                    frame = c._take(body)
                    for d in frame.deltas.players:
                        if d.update_extra and latencies is not None:
                            latencies.append((now - d.update_extra[0] & 0xffffffff) / 1000)
                    body = aoi.take_frame(c.inbox)
        for c in readers:
            c.sock.setblocking(True)


def p99(values):
    return sorted(values)[len(values) * 99 // 100]


def stall(d, keeper, alive, stalled):
    """One time of all reading, and one of half of them: whether the others did not notice."""
    before, during = [], []
    watch(alive + stalled, STALL_S, before)
    memory, cpu, skipped = d.resident_bytes(), d.cpu_seconds(), keeper.query(S, stats=pb.StatsQuery()).skipped
    watch(alive, STALL_S, during)
    grown, cpu = d.resident_bytes() - memory, d.cpu_seconds() - cpu
    skipped = keeper.query(S, stats=pb.StatsQuery()).skipped - skipped
    print("%d of %d stalled for %g s: p99 %.1f ms before, %.1f during (median %.1f, %.1f); memory grew by %.1f MB, %.1f KB a stalled one; %d skipped; cpu %.1f %%" %
          (len(stalled), CONNECTIONS, STALL_S, p99(before), p99(during), sorted(before)[len(before) // 2], sorted(during)[len(during) // 2],
           grown / 1e6, grown / 1e3 / len(stalled), skipped, 100 * cpu / STALL_S))
    assert skipped > 0, "they were full"
    assert grown <= len(stalled) * 4 * SOFT + (16 << 20), "memory"
    return p99(during) <= 2 * p99(before)


@test
def half_of_the_connections_stall_and_the_others_do_not_notice():
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with Daemon(out_soft_bytes=SOFT, out_soft_ms=600000, idle_timeout_ms=0, max_connections=4096) as d, Connection(d.port) as keeper:
        keeper.ok(S, aoi.create_space(flush_ms=50, extra=True))
        ends = multiprocessing.Event()
        mover = multiprocessing.Process(target=move_all, args=(d.port, ends))
        mover.start()
        try:
            all_ = [connect(d.port, i, 40.0 if i < CONNECTIONS // 2 else WIDE) for i in range(CONNECTIONS)]
            alive, stalled = all_[:CONNECTIONS // 2], all_[CONNECTIONS // 2:]
            for c in all_:
                c.watched = c in alive[:SAMPLED] + stalled[:2]
            watch(all_, 1)
            assert any(stall(d, keeper, alive, stalled) for _ in range(4)), "others notice"  # this machine may be busy with something else
            watch(all_, 2)
        finally:
            ends.set()
            mover.join()
        while keeper.batch(S, aoi.flush()).pending:
            watch(all_, 0.1)
        for c in alive[:2] + stalled[:2]:
            c.ping()
            assert not any(c.view(S, p) for (_, p) in c.views), "the mover has gone, and with it what it moved"
        for c in all_:
            c.close()


if __name__ == "__main__":
    main()
