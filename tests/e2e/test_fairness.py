"""test_fairness.py: many connections that flood, or one that asks a lot, and what they cost somebody else; and the end of those who flooded.

What is measured is the daemon's own processor time between a Ping and its Pong, and no test asserts a time: it is compared with what other floods cost.
"""
import multiprocessing
import os
import resource
import selectors
import time

import aoiclient as aoi
from aoiclient import Connection, pb
from bystander import waited_ms, worked_ns
from harness import Daemon, eventually, main, test

S = 1
MANY, FEW = int(os.environ.get("AOI_FLOOD", "1000")), 50
FLOOD_S = float(os.environ.get("AOI_FLOOD_S", "2"))
ROWS = 10000
EVERYWHERE = aoi.bounds((-1, -1), (2 * ROWS, 2 * ROWS))
MOVES = 200


def ask(seq):
    """A query of ROWS rows."""
    return aoi.encode(seq, query=pb.Query(space=S, aabb=pb.AabbQuery(box=EVERYWHERE)))


def queries(n):
    return b"".join(ask(2 + i) for i in range(n))


def moves(space):
    """Frames without a seq, so that they can be sent again and again."""
    return b"".join(aoi.encode(0, batch=pb.Batch(space=space, commands=[aoi.move(*[(i, i + r, i) for i in range(1, MOVES + 1)])])) for r in range(10))


def fill(c):
    c.ok(S, aoi.create_space(flush_ms=0))
    for first in range(1, ROWS + 1, 1000):
        c.ok(S, *[aoi.add(first + i, i, first) for i in range(1000)])


def write_on(c):
    """Sends what the kernel takes of c.data, from its beginning again if it is to be repeated; False: it is over."""
    try:
        c.at += c.sock.send(memoryview(c.data)[c.at:c.at + (1 << 18)])
    except BlockingIOError:
        pass
    if c.at == len(c.data) and c.again:
        c.at = 0
    return c.at < len(c.data)


def flood(port, n, make, begun, ends):
    """A process: n connections that send as fast as they can, and read what comes."""
    os.nice(10)  # the clock is somebody else's
    scratch = bytearray(1 << 20)
    with selectors.DefaultSelector() as selector:
        all_ = [make(port, i) for i in range(n)]
        for c in all_:
            c.at = 0
            c.sock.setblocking(False)
            selector.register(c.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, c)
        begun.set()
        while not ends.is_set():
            for key, events in selector.select(0.1):
                if events & selectors.EVENT_READ:
                    assert key.data.sock.recv_into(scratch), "closed"
                if events & selectors.EVENT_WRITE and not write_on(key.data):
                    selector.modify(key.fileobj, selectors.EVENT_READ, key.data)
        for c in all_:
            c.reset()


def mover(port, number):
    c = Connection(port)
    c.ok(100 + number, aoi.create_space(if_absent=True), *[aoi.add(i, i, i) for i in range(1, MOVES + 1)])
    c.data, c.again = moves(100 + number), True
    return c


def asker(port, _):
    c = Connection(port)
    c.data, c.again = queries(10000), False
    return c


def worst_ms(d, c, n, make):
    """The longest that c waits while n connections flood."""
    files = d.open_files()
    begun, ends, waits = multiprocessing.Event(), multiprocessing.Event(), []
    process = multiprocessing.Process(target=flood, args=(d.port, n, make, begun, ends))
    process.start()
    try:
        assert begun.wait(60)
        until = time.monotonic() + FLOOD_S
        while time.monotonic() < until:
            waits.append(waited_ms(d, c))
            time.sleep(0.003)
    finally:
        ends.set()
        process.join()
    eventually(lambda: d.open_files() <= files, "they have gone")
    waits.sort()
    print("        %s x %d: another one waits %.1f ms at most, median %.1f, of %d" % (make.__name__, n, waits[-1], waits[len(waits) // 2], len(waits)))
    return waits[-1]


def compare(make, n, times):
    """The worst wait under this flood must be less than so many times that under FEW who ask. This machine may be busy with something else, and then it is tried again."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with Daemon(max_connections=2 * MANY) as d, Connection(d.port) as keeper, Connection(d.port) as c:
        fill(keeper)
        assert any(worst_ms(d, c, n, make) < times * worst_ms(d, c, FEW, asker) for _ in range(4)), "others wait"


@test
def a_thousand_connections_that_flood_cost_others_hardly_more_than_fifty_that_ask_do():
    compare(mover, MANY, 4)


@test
def one_that_pipelines_ten_thousand_large_queries_costs_others_less_than_fifty_do():
    compare(asker, 1, 1)


@test
def what_was_asked_by_those_who_have_reset_is_not_answered():
    """46 connections with 1,000 large queries each would be 46,000 answers to nobody. Commands are applied all the same."""
    with Daemon() as d, Connection(d.port) as keeper, Connection(d.port) as c:
        fill(keeper)
        keeper.ok(S + 1, aoi.create_space(persistent=True))
        before, n = worked_ns(d), 100
        c.write(queries(n))
        for i in range(n):
            c.next()
        one_ns = (worked_ns(d) - before) / n
        files, before, each = d.open_files(), worked_ns(d), 1000
        for i in range(46):
            dying = Connection(d.port)
            dying.write(queries(each) + aoi.encode(2 + each, batch=pb.Batch(space=1000 + i, commands=[aoi.create_space(persistent=True)])))
            dying.reset()
        eventually(lambda: d.open_files() == files, "they have gone")
        share = (worked_ns(d) - before) / (46 * each * one_ns)
        print("        %.1f %% of what answering them would have taken" % (100 * share))
        assert share < 0.5
        assert len(keeper.query(list_spaces=pb.ListSpacesQuery()).spaces) == 2 + 46, "what came whole is applied whole"


if __name__ == "__main__":
    main()
