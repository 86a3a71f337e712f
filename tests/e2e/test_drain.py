"""test_drain.py: SIGTERM: what is pending is told, everybody is told that the daemon drains, and it ends in time."""
import os
import signal
import subprocess
import time

import aoiclient as aoi
from aoiclient import Closed, Connection, pb
from bystander import S, fill_up, kind, resumed_while_draining
from harness import AOID, Daemon, main, test


@test
def pending_changes_are_told_before_the_daemon_ends():
    for index in (pb.INDEX_GRID, pb.INDEX_CROSSLIST):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Daemon() as d, Connection(d.port) as mover, Connection(d.port) as gateway:
                mover.ok(S, aoi.create_space(flush_ms=500, index=index), aoi.add(1, 0, 0, radius=100), *[aoi.add(2 + i, i, 0) for i in range(20)])
                gateway.ok(S, aoi.subscribe(1, 1), aoi.flush())
                gateway.ping()
                assert len(gateway.view(S, 1)) == 20
                mover.ok(S, aoi.move(*[(2 + i, i, 5.0) for i in range(20)]))
                time.sleep(0.05)
                d.signal(number)
                frames = gateway.frames_until_closed()
                assert [kind(f) for f in frames if kind(f) != "pong"] == ["deltas", "draining"], frames
                assert all(gateway.view(S, 1)[2 + i][:2] == (i, 5.0) for i in range(20)), "these closes remove nothing from anybody's view"
                assert [kind(f) for f in mover.frames_until_closed()] == ["draining"]
                d.wait()


@test
def a_stalled_reader_cannot_hold_it():
    with Daemon(drain_timeout_ms=500, out_soft_bytes=1 << 20) as d, Connection(d.port) as mover, Connection(d.port, rcvbuf=4096) as stalled:
        fill_up(mover, stalled)
        mover.ok(S, aoi.move((2, 5, 5)))
        d.signal()
        d.wait(30)


@test
def commands_while_draining_are_answered_draining_or_the_connection_is_already_closed():
    with Daemon(drain_timeout_ms=2000, out_soft_bytes=1 << 20) as d, Connection(d.port) as mover, Connection(d.port, rcvbuf=4096) as stalled:
        draining = False
        fill_up(mover, stalled)
        d.signal()
        try:
            while True:
                reply = mover.call(batch=pb.Batch(space=S, commands=[aoi.move((2, 7, 7))]))
                codes = [e.code for e in reply.ack.errors] if kind(reply) == "ack" else [reply.error.code]
                assert set(codes) <= {pb.CODE_DRAINING}, reply
                draining = draining or bool(codes)
                assert codes or not draining, "a command was taken after one was refused"
        except Closed:
            pass
        with_notice = [kind(f) for f in mover.log].count("draining")
        assert with_notice == 1, "told once"
        print("        commands answered DRAINING: %s" % draining)
        d.wait(30)


@test
def nobody_new_is_accepted_and_a_second_signal_ends_it_at_once():
    with Daemon(drain_timeout_ms=60000, out_soft_bytes=1 << 20) as d, Connection(d.port) as mover, Connection(d.port, rcvbuf=4096) as stalled:
        fill_up(mover, stalled)
        d.signal()
        mover.wait("draining")
        try:
            late = Connection(d.port, hello=False)
            late.write(aoi.encode(1, hello=pb.Hello(protocol_version=1)))
            assert all(kind(f) == "error" for f in late.frames_until_closed())
        except (ConnectionError, Closed):
            pass
        assert d.alive()
        d.signal()
        until = time.monotonic() + 30
        while d.alive():
            assert time.monotonic() < until, "a second signal exits at once"
            time.sleep(0.01)
        d.process.wait()
        d.process.returncode = 0  # how is not said; that it ends is


@test
def a_session_that_is_resumed_while_it_drains_is_told_all_anew():
    late, frames = resumed_while_draining()
    assert late.deltas and late.deltas[0].full and set(late.view(S, 1)) == {2}, frames
    assert late.observed == {(S, 1): True}, frames


@test
def aoictl_says_why_its_connection_ended():
    with Daemon() as d:
        aoictl = subprocess.Popen([os.path.join(os.path.dirname(AOID), "aoictl"), "--address", "127.0.0.1:%d" % d.port, "-"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        aoictl.stdin.write("ping\n")
        aoictl.stdin.flush()
        assert "pong" in aoictl.stdout.readline()
        d.signal()
        said = aoictl.stdout.read()
        assert aoictl.wait(60) == 1 and "DRAINING: it was told to end; the daemon is about to exit, try again when it runs again" in said, said
        aoictl.stdin.close()
        d.wait()


if __name__ == "__main__":
    main()
