"""test_pressure.py: more to tell than a connection takes: deltas in parts, enters held back, players skipped, and the end of one who never reads."""
import random
import re
import threading
import time

import aoiclient as aoi
from aoiclient import Connection, pb
from bystander import Bystander, S, try_write
from harness import Daemon, eventually, main, test


@test
def a_radius_that_grows_over_50_000_entities_and_back():
    for index in (pb.INDEX_GRID, pb.INDEX_CROSSLIST):
        with Daemon() as d, Bystander(d) as other, Connection(d.port) as c:
            rng = random.Random(1)
            c.ok(S, aoi.create_space(flush_ms=0, index=index), aoi.add(1 << 40, 0, 0, radius=10), aoi.subscribe(1, 1 << 40))
            near = set()
            for start in range(1, 50001, 5000):
                commands = []
                for i in range(start, start + 5000):
                    x, y = rng.randrange(-50000, 50000), rng.randrange(-50000, 50000)
                    if i % 10000 == 0:
                        x, y = 1, i // 10000
                        near.add(i)
                    elif max(abs(x), abs(y)) <= 10:
                        near.add(i)
                    commands.append(aoi.add(i, x, y, payload=b"entity %d" % i))
                c.ok(S, *commands)
            c.ok(S, aoi.flush())
            assert set(c.view(S, 1)) == near
            c.take_deltas()
            seq = c.send(batch=pb.Batch(space=S, commands=[aoi.set_radius(1 << 40, 100000), aoi.flush(5)]))
            other.served()
            ack = c.reply(seq).ack
            while ack.pending:  # enters held back by out_soft_bytes follow with the next flush
                ack = c.ok(S, aoi.flush(5))
            deltas = c.take_deltas()
            assert len(c.view(S, 1)) == 50000 and sum(len(x.enters) for x in deltas) == 50000 - len(near)
            assert deltas[0].parts > 1, "several frames"
            assert [x.seq for x in deltas] == list(range(2, 2 + len(deltas)))
            whole = dict(c.view(S, 1))
            assert c.call(resync=pb.Resync(space=S, player=0)).WhichOneof("kind") == "ack"
            c.ok(S, aoi.flush())
            full, = c.take_deltas()
            assert full.full and full.parts > 1 and c.view(S, 1) == whole
            c.ok(S, aoi.set_radius(1 << 40, 10), aoi.flush())
            other.served()
            delta, = c.take_deltas()
            assert len(delta.leaves) == 50000 - len(near) and not delta.enters and not delta.updates
            assert set(c.view(S, 1)) == near


def stalled(d, flush_ms=5, entities=1500):
    """A connection that does not read, with a player who sees entities that all move; and the one that moves them."""
    mover = Connection(d.port, name="mover")
    reader = Connection(d.port, name="stalled", rcvbuf=4096)
    mover.ok(S, aoi.create_space(flush_ms=flush_ms), aoi.add(1 << 40, 0, 0, radius=10000), *[aoi.add(1 + i, i, 0) for i in range(entities)])
    reader.ok(S, aoi.subscribe(1, 1 << 40))
    return mover, reader


def skipped(connection):
    return connection.query(S, stats=pb.StatsQuery()).skipped


def move_until(mover, condition, what, entities=1500, seconds=60):
    until, step = time.monotonic() + seconds, 0
    while not condition():
        assert time.monotonic() < until, "not in %d s: %s" % (seconds, what)
        step += 1
        mover.ok(S, aoi.move(*[(1 + i, i, step) for i in range(entities)]))
    return step


@test
def a_slow_reader_collapses_and_catches_up_with_one_delta():
    with Daemon(out_soft_bytes=65536, out_hard_bytes=8 << 20) as d, Bystander(d) as other:
        mover, reader = stalled(d)
        with mover, reader:
            move_until(mover, lambda: skipped(mover) > 50, "the stalled player is skipped")
            other.served()
            mover.ok(S, aoi.remove(3), aoi.add(3, 3, 7, payload=b"again"), aoi.remove(4), aoi.set_layers(5, 8), aoi.set_payload(6, b"six"),
                     aoi.move((7, 7, 0.5)))
            until = time.monotonic() + 30
            while True:  # reads everything, in order; the mirror checks the numbers
                assert time.monotonic() < until, "never caught up"
                try:
                    reader.next(0.3)
                except TimeoutError:
                    break
            view = reader.view(S, 1)
            assert set(view) == set(range(1, 1501)) - {4}, len(view)
            rows = truth(mover)
            assert {id: seen[:3] for id, seen in view.items()} == rows
            assert view[3][5] == b"again" and view[5][4] == 8 and view[6][5] == b"six" and view[7][:2] == (7, 0.5)
            reader.ping()


def truth(connection):
    """id -> position, by query, of all but the unit."""
    rows, cursor = {}, 0
    while True:
        page = connection.query(S, aabb=pb.AabbQuery(box=aoi.bounds((-1e5, -1e5), (1e5, 1e5)), cursor=cursor))
        rows.update((id, (x, y, 0.0)) for id, x, y in zip(page.ids, page.x, page.y) if id != 1 << 40)
        cursor = page.next_cursor
        if not cursor:
            return rows


@test
def one_who_never_reads_is_closed_with_a_reason_and_memory_stays_flat():
    """Whatever there is to tell it: last deltas wait like others."""
    with Daemon(out_soft_bytes=65536, out_hard_bytes=262144, max_frame_bytes=65536, out_soft_ms=4000) as d, Bystander(d) as other:
        mover, reader = stalled(d)
        with mover, reader:
            for first in range(10, 12010, 2000):
                reader.ok(S, *[aoi.open_player(first + i) for i in range(2000)])
            move_until(mover, lambda: skipped(mover) > 20, "the stalled player is skipped")
            assert other.query(stats=pb.StatsQuery()).connections == 3, "collapse, not close"
            before = d.resident_bytes()
            at = skipped(mover)
            move_until(mover, lambda: skipped(mover) > at + 20, "skipped on")
            assert d.resident_bytes() - before < 64 << 20, "memory stays flat"
            mover.ok(S, aoi.destroy_space())  # 12,001 closed deltas
            assert d.resident_bytes() - before < 64 << 20
            eventually(lambda: other.query(stats=pb.StatsQuery()).connections == 2, "the stalled one is closed")
            other.served()
            mover.ping()
            assert "reason=out_soft" in d.log() and "reason=out_hard" not in d.log(), d.tail()
            unsent = int(re.search(r"reason=out_soft unsent_bytes=(\d+)", d.log()).group(1))
            assert unsent > 65536 - 8192, "what is logged is what was unsent when it was decided, not what is left then: %d" % unsent


@test
def seventy_thousand_tiny_frames_from_one_who_does_not_read():
    """Replies are bounded, because nobody over out_soft_bytes is read."""
    with Daemon(out_soft_bytes=65536, out_hard_bytes=2 << 20) as d, Bystander(d) as other, Connection(d.port, rcvbuf=4096) as c:
        data = b"".join(aoi.encode(2 + i, ping=pb.Ping(nonce=i)) for i in range(70000))
        c.sock.setblocking(False)
        sent, idle = 0, 0
        while sent < len(data) and idle < 50:
            try:
                sent += c.sock.send(data[sent:sent + 65536])
                idle = 0
            except BlockingIOError:
                idle += 1
                time.sleep(0.005)
        other.served()
        cpu = d.cpu_seconds()
        time.sleep(0.5)
        assert d.cpu_seconds() - cpu < 0.3, "it waits for the reader without spinning"
        c.sock.setblocking(True)
        got = 0
        writer = threading.Thread(target=lambda: try_write(c, data[sent:]) if sent < len(data) else None)
        writer.start()
        while got < 70000:
            frame = c.next()
            assert frame.pong.nonce == got and frame.reply_to == 2 + got, frame
            got += 1
        writer.join()
        other.served()


@test
def replies_to_one_who_does_not_read_are_bounded():
    """600 queries of 10,000 rows are 168 MB; they are answered as fast as they are read, and no faster."""
    with Daemon() as d, Bystander(d) as other, Connection(d.port) as filler, Connection(d.port, rcvbuf=4096) as c:
        filler.ok(S, aoi.create_space(flush_ms=0))
        for first in range(0, 10000, 1000):
            filler.ok(S, *[aoi.add(1 + first + i, i, first) for i in range(1000)])
        before = d.resident_bytes()
        box = aoi.bounds((-1, -1), (20000, 20000))
        c.write(b"".join(aoi.encode(2 + i, query=pb.Query(space=S, aabb=pb.AabbQuery(box=box))) for i in range(600)))
        for _ in range(20):
            other.served()
            time.sleep(0.01)
        assert d.resident_bytes() - before < 96 << 20, "replies pile up"
        for i in range(600):
            body = None
            while body is None:
                body = aoi.take_frame(c.inbox)
                if body is None:
                    c.inbox += c.sock.recv(1 << 20)
            assert len(body) > 200000
        frame = pb.ServerFrame.FromString(body)
        assert frame.reply_to == 601 and len(frame.result.entities.ids) == 10000
        other.served()


def held_back(d, flush_ms):
    """400 entities of 1,000 bytes come into view of a connection that takes 64 KiB at a time."""
    c = Connection(d.port)
    c.ok(S, aoi.create_space(flush_ms=flush_ms), aoi.add(1 << 40, 0, 0, radius=10000))
    payloads = {1 + i: bytes([i % 251]) * 1000 for i in range(400)}
    for first in range(1, 401, 40):
        c.ok(S, *[aoi.add(i, i, 0, payload=payloads[i]) for i in range(first, first + 40)])
    return c, payloads


@test
def enters_and_payloads_beyond_the_soft_limit_come_with_the_next_flushes():
    for index in (pb.INDEX_GRID, pb.INDEX_CROSSLIST):
        with Daemon(out_soft_bytes=65536, max_frame_bytes=65536) as d:
            c, payloads = held_back(d, 0)
            ack, flushes = c.ok(S, aoi.subscribe(1, 1 << 40), aoi.flush()), 1
            assert ack.pending, "an Ack tells that work is left"
            while ack.pending:
                assert flushes < 100
                before = len(c.view(S, 1))
                ack, flushes = c.ok(S, aoi.flush()), flushes + 1
                assert len(c.view(S, 1)) > before, "each flush brings some"
            assert {i: seen[5] for i, seen in c.view(S, 1).items()} == payloads and flushes >= 6
            assert len(c.take_deltas()) == flushes
            assert not c.ok(S, aoi.flush()).pending and c.take_deltas() == []
            for i in payloads:
                payloads[i] = bytes([i % 7]) * 1000
            for first in range(1, 401, 40):  # all payloads change, all positions too
                ids = range(first, first + 40)
                c.ok(S, *[aoi.set_payload(i, payloads[i]) for i in ids], aoi.move(*[(i, i, 1.0) for i in ids]))
            ack, flushes = c.ok(S, aoi.flush()), 1
            assert ack.pending and all(seen[1] == 1.0 for seen in c.view(S, 1).values()), "updates are not held back"
            while ack.pending:
                assert flushes < 100
                ack, flushes = c.ok(S, aoi.flush()), flushes + 1
            assert {i: seen[5] for i, seen in c.view(S, 1).items()} == payloads
            c.take_deltas()
            assert c.call(resync=pb.Resync(space=S, player=1)).WhichOneof("kind") == "ack"
            ack = c.ok(S, aoi.flush())
            assert ack.pending and c.deltas[0].full and 0 < len(c.view(S, 1)) < 400, "a full delta keeps the soft limit"
            while ack.pending:
                ack = c.ok(S, aoi.flush())
            first, *rest = c.take_deltas()
            assert first.full and not any(x.full for x in rest) and {i: seen[5] for i, seen in c.view(S, 1).items()} == payloads
            c.close()


@test
def in_a_timed_space_what_is_held_back_comes_by_itself():
    with Daemon(out_soft_bytes=65536, max_frame_bytes=65536) as d:
        c, payloads = held_back(d, 5)
        c.ok(S, aoi.subscribe(1, 1 << 40))
        while len(c.view(S, 1)) < 400:
            c.next()
        assert {i: seen[5] for i, seen in c.view(S, 1).items()} == payloads
        c.close()


@test
def one_stalled_reader_among_thirty_delays_nobody():
    """Everybody sees 200 entities that all move, flush after flush; one does not read. What the others get comes at once, and memory stays flat."""
    n, rounds, before = 200, 120, 0
    with Daemon(out_soft_bytes=65536) as d, Connection(d.port) as mover:
        mover.ok(S, aoi.create_space(flush_ms=0), aoi.add(1 << 40, 2, 2, radius=500), *[aoi.add(1 + i, i % 5, 0) for i in range(n)])
        readers = [Connection(d.port) for _ in range(30)]
        stalled_one = Connection(d.port, rcvbuf=4096)
        for i, c in enumerate(readers + [stalled_one]):
            c.ok(S, *[aoi.subscribe(1 + 100 * i + k, 1 << 40) for k in range(1 if c is not stalled_one else 40)])
        for number in range(rounds):
            mover.ok(S, aoi.move(*[(1 + i, i % 5, number) for i in range(n)]), aoi.flush(number))
            for c in readers:
                assert c.next().deltas.tag == number  # each flush is told at once, in full
            if number == rounds // 2:
                before = d.resident_bytes()
        assert skipped(mover) > 100, "the stalled one is skipped"
        assert d.resident_bytes() - before < 32 << 20, "memory stays flat"
        assert all(len(c.deltas) == rounds and c.deltas[-1].seq == rounds for c in readers)
        for c in readers + [stalled_one]:
            c.close()


@test
def one_who_stays_full_for_out_soft_ms_is_closed_with_the_reason():
    with Daemon(out_soft_bytes=65536, out_soft_ms=300) as d, Bystander(d) as other:
        mover, reader = stalled(d)
        with mover, reader:
            move_until(mover, lambda: other.query(stats=pb.StatsQuery()).connections == 2, "the stalled one is closed", seconds=30)
            assert re.search(r'reason=out_soft unsent_bytes=\d+ .* why="less than 4324 bytes \(max_payload and 228\) were left to '
                             r'out_soft_bytes = 65536 for out_soft_ms = 300"', d.log()), d.tail()
            other.served()


@test
def one_long_batch_holds_up_nobody_elsewhere():
    """While it is worked at, other spaces have their turn."""
    with Daemon() as d, Connection(d.port) as c, Connection(d.port) as other:
        c.ok(S, aoi.create_space(flush_ms=0, index=pb.INDEX_CROSSLIST), *[aoi.add(i, i % 100, i // 100) for i in range(1, 5001)], aoi.subscribe(7, 1))
        other.ok(2, aoi.create_space(flush_ms=20), aoi.add(1, 0, 0, radius=5), aoi.add(2, 1, 1), aoi.subscribe(7, 1))
        other.wait("deltas")
        commands = [x for _ in range(8000) for x in (aoi.set_radius(1, 1000), aoi.set_radius(1, 0))]
        seq = c.send(batch=pb.Batch(space=S, commands=commands))
        reader = threading.Thread(target=lambda: c.reply(seq))
        reader.start()
        answered = moved = 0
        while reader.is_alive():
            moved += 1
            other.ok(2, aoi.move((2, 1 + moved % 3, 1)))
            answered += reader.is_alive()
        reader.join()
        assert answered >= 5, answered


if __name__ == "__main__":
    main()
