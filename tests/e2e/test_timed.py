"""test_timed.py: spaces that flush by their own timer: one flush a window, armed by the first change, none when nothing changes."""
import time

import aoiclient as aoi
from aoiclient import pb
from harness import Daemon, main, test

FLUSH_MS = 50
SPACE = 3


def setup(mover, gateway, index=pb.INDEX_GRID, flush_ms=FLUSH_MS):
    """Player 1 looks through unit 1 at (0,0) at entity 2, and has been told so."""
    mover.ok(SPACE, aoi.create_space(flush_ms=flush_ms, index=index), aoi.add(1, 0, 0, radius=10), aoi.add(2, 3, 0))
    gateway.ok(SPACE, aoi.subscribe(1, 1))
    gateway.wait("deltas")
    assert set(gateway.view(SPACE, 1)) == {2}
    gateway.take_deltas()


def flushes(connection):
    return connection.query(SPACE, stats=pb.StatsQuery()).flushes


def silence(connection, seconds):
    """Nothing at all may come."""
    try:
        frame = connection.next(seconds)
    except TimeoutError:
        return
    raise AssertionError("expected silence, got\n%s" % frame)


@test
def moves_every_10_ms_make_one_flush_a_window():
    for index in (pb.INDEX_GRID, pb.INDEX_CROSSLIST):
        with Daemon() as d, aoi.Connection(d.port) as mover, aoi.Connection(d.port) as gateway:
            setup(mover, gateway, index)
            before, began, x = flushes(mover), time.monotonic(), 3.0
            while time.monotonic() - began < 2.0:
                x += 0.001
                mover.ok(SPACE, aoi.move((2, x, 0.0)))
                time.sleep(0.01)
            last = aoi.pb.MoveEntities(x=[x]).x[0]
            while gateway.view(SPACE, 1)[2][0] != last:
                gateway.next()
            lasted = time.monotonic() - began
            made = flushes(mover) - before
            assert made <= lasted * 1000 / FLUSH_MS + 2, "%d flushes in %.3f s" % (made, lasted)
            assert made >= lasted * 1000 / FLUSH_MS / 5, "%d flushes in %.3f s" % (made, lasted)
            deltas = gateway.take_deltas()
            assert len(deltas) == made, "each flush told the player its one change"
            times = [delta.time_us for delta in deltas]
            assert all(b - a >= (FLUSH_MS - 10) * 1000 for a, b in zip(times, times[1:])), "never early: %s" % times


@test
def the_first_change_in_a_quiet_space_arms_one_flush_and_then_it_is_quiet_again():
    with Daemon() as d, aoi.Connection(d.port) as mover, aoi.Connection(d.port) as gateway:
        setup(mover, gateway)
        time.sleep(3 * FLUSH_MS / 1000)
        for step in range(10):
            before = flushes(mover)
            mover.ok(SPACE, aoi.move((2, 4.0 + step / 8, 1.0)))
            assert gateway.next(10).WhichOneof("kind") == "deltas"
            assert gateway.view(SPACE, 1)[2][:2] == (4.0 + step / 8, 1.0)
            silence(gateway, 3 * FLUSH_MS / 1000)
            assert flushes(mover) == before + 1


@test
def a_quiet_space_sends_nothing_and_does_not_flush():
    with Daemon() as d, aoi.Connection(d.port) as mover, aoi.Connection(d.port) as gateway:
        setup(mover, gateway)
        time.sleep(3 * FLUSH_MS / 1000)
        before, cpu = flushes(mover), d.cpu_seconds()
        silence(gateway, 1.0)
        silence(mover, 0.1)
        assert flushes(mover) == before
        assert d.cpu_seconds() - cpu < 0.5, "an idle daemon is idle"


@test
def a_move_to_the_same_place_and_there_and_back_again_tell_nothing():
    with Daemon() as d, aoi.Connection(d.port) as mover, aoi.Connection(d.port) as gateway:
        setup(mover, gateway)
        mover.ok(SPACE, aoi.move((2, 3.0, 0.0)))
        mover.ok(SPACE, aoi.move((2, 500.0, 0.0)), aoi.move((2, 3.0, 0.0)))
        mover.ok(SPACE, aoi.add(3, 1, 1), aoi.remove(3))
        mover.ok(SPACE, aoi.set_payload(2, b"x"), aoi.set_payload(2, b""), aoi.set_layers(2, 2), aoi.set_layers(2, 1))
        silence(gateway, 5 * FLUSH_MS / 1000)


@test
def later_changes_do_not_postpone_a_flush():
    """Changes that never pause for flush_ms: the player is told in the middle of them."""
    with Daemon() as d, aoi.Connection(d.port) as mover, aoi.Connection(d.port) as gateway:
        setup(mover, gateway, flush_ms=200)
        told, x, until = 0, 3.0, time.monotonic() + 30
        while told < 3:
            x += 0.001
            mover.ok(SPACE, aoi.move((2, x, 0.0)))
            assert time.monotonic() < until, "nothing was told while changes kept coming"
            try:
                gateway.next(0.005)
                told += 1
            except TimeoutError:
                pass


@test
def one_move_after_a_long_turn_is_told():
    """The loop is kept busy with a bulk load; the timer that it delays fires once, neither lost nor repeated."""
    with Daemon() as d, aoi.Connection(d.port) as mover, aoi.Connection(d.port) as gateway:
        setup(mover, gateway)
        mover.ok(SPACE, *[aoi.add(1000 + i, 5000.0 + i % 300, 5000.0 + i // 300) for i in range(10000)])
        time.sleep(3 * FLUSH_MS / 1000)
        before = flushes(mover)
        mover.send(batch=pb.Batch(space=SPACE, commands=[aoi.move(*[(1000 + i, 9000.0, 9000.0 + i) for i in range(10000)])] * 5))
        mover.send(batch=pb.Batch(space=SPACE, commands=[aoi.move((2, 4.0, 4.0))]))
        while gateway.view(SPACE, 1)[2][:2] != (4.0, 4.0):
            gateway.next()
        mover.reply(mover.seq - 1)
        mover.reply(mover.seq)
        silence(gateway, 4 * FLUSH_MS / 1000)
        made = flushes(mover) - before
        assert 1 <= made <= 50, made
        silence(gateway, 4 * FLUSH_MS / 1000)
        assert flushes(mover) == before + made, "an endlessly re-armed timer"


@test
def a_flush_command_in_a_timed_space_flushes_now_and_disarms():
    with Daemon() as d, aoi.Connection(d.port) as mover, aoi.Connection(d.port) as gateway:
        setup(mover, gateway, flush_ms=1000)
        before = flushes(mover)
        mover.ok(SPACE, aoi.move((2, 5.0, 5.0)), aoi.flush(99))
        gateway.ping()
        assert gateway.view(SPACE, 1)[2][:2] == (5.0, 5.0)
        assert [delta.tag for delta in gateway.take_deltas()] == [99]
        assert flushes(mover) == before + 1
        silence(gateway, 1.5)
        assert flushes(mover) == before + 1, "the timer was still armed"


@test
def a_manual_space_is_flushed_by_nothing_but_flush():
    with Daemon() as d, aoi.Connection(d.port) as c:
        c.ok(SPACE, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=10), aoi.add(2, 3, 0), aoi.subscribe(1, 1))
        silence(c, 0.4)
        assert c.call(resync=pb.Resync(space=SPACE, player=1)).WhichOneof("kind") == "ack"
        silence(c, 0.4)
        c.ok(SPACE, aoi.flush(7))
        delta, = c.take_deltas()
        assert delta.full and delta.tag == 7 and set(delta.enters) == {2}


@test
def a_resync_in_a_quiet_timed_space_arms_a_flush():
    with Daemon() as d, aoi.Connection(d.port) as mover, aoi.Connection(d.port) as gateway:
        setup(mover, gateway)
        silence(gateway, 3 * FLUSH_MS / 1000)
        for player in (1, 0):
            assert gateway.call(resync=pb.Resync(space=SPACE, player=player)).WhichOneof("kind") == "ack"
            gateway.wait("deltas")
            delta, = gateway.take_deltas()
            assert delta.full and set(delta.enters) == {2}
            silence(gateway, 3 * FLUSH_MS / 1000)


@test
def the_default_is_50_ms():
    with Daemon() as d, aoi.Connection(d.port) as c:
        c.ok(SPACE, aoi.create_space())
        info, = c.query(list_spaces=pb.ListSpacesQuery()).spaces
        assert info.settings.flush_ms == 50 and info.settings.dimensions == 2 and info.settings.cell_size == 100, info


if __name__ == "__main__":
    main()
