"""test_sessions.py: leases and resuming: what outlives a connection, what is applied once, and what others see meanwhile."""
import os
import socket
import tempfile
import threading
import time

import aoiclient as aoi
from aoiclient import Closed, Connection, code_name, pb
from harness import Daemon, eventually, main, test

S = 1
MANUAL = dict(flush_ms=0)
EVERYTHING = pb.AabbQuery(box=pb.Bounds(min_x=-9, min_y=-9, max_x=9, max_y=9))


def cut(c):
    """Ends a connection without Bye, and with everything sent."""
    c.sock.shutdown(socket.SHUT_RDWR)
    c.close()


def gone(d, n):
    """Waits until the daemon has noticed that only n connections are left."""
    with Connection(d.port) as c:
        eventually(lambda: c.query(stats=pb.StatsQuery()).connections == n + 1, "connections end")
        c.call(bye=pb.Bye())


def entities(c, space=S):
    return c.query(space, stats=pb.StatsQuery()).entities


def codes(ack):
    return [code_name(e.code) for e in ack.errors]


def daemon(**options):
    return Daemon(**{"max_lease_ms": 300000, **options})


@test
def a_welcome_says_what_is_needed_to_come_back():
    with daemon(max_lease_ms=20000) as d:
        with Connection(d.port) as a, Connection(d.port, lease_ms=15000) as b, Connection(d.port, lease_ms=1000000) as c:
            assert [x.welcome.lease_ms for x in (a, b, c)] == [10000, 15000, 20000]
            assert not a.welcome.resumed and a.welcome.last_seq == 0
            assert len(a.welcome.resume_token) >= 16 and len({x.welcome.resume_token for x in (a, b, c)}) == 3
            ids = [x.welcome.session for x in (a, b, c)]
            assert len(set(ids)) == 3 and 0 not in ids
    with daemon() as d, Connection(d.port) as a:
        assert a.welcome.session not in ids, "of another daemon"


@test
def a_session_outlives_its_connection_and_goes_on_where_it_was():
    with daemon() as d, Connection(d.port) as keeper:
        a = Connection(d.port)
        keeper.ok(S, aoi.create_space(**MANUAL), aoi.add(10, 0, 0, radius=100))
        a.ok(S, aoi.add(1, 1, 1), aoi.add(2, 2, 2), aoi.add(3, 3, 3), aoi.subscribe(7, 10))
        keeper.ok(S, aoi.flush())
        a.ping()
        assert sorted(a.view(S, 7)) == [1, 2, 3]
        cut(a)
        gone(d, 1)
        keeper.ok(S, aoi.add(4, 4, 4), aoi.flush())
        assert entities(keeper) == 5
        b = Connection(d.port, resume=a)
        assert b.welcome.resumed and b.welcome.session == a.welcome.session and b.welcome.resume_token == a.welcome.resume_token
        assert b.welcome.last_seq == a.seq
        b.ok(S, aoi.remove(2), aoi.move((3, 500, 0)))
        keeper.ok(S, aoi.flush())
        b.ping()
        (delta,) = b.take_deltas()
        assert delta.full and sorted(delta.enters) == [1, 4] and sorted(b.view(S, 7)) == [1, 4]
        b.call(bye=pb.Bye())
        eventually(lambda: entities(keeper) == 2, "Bye ends it at once")


@test
def a_resume_may_ask_for_another_lease():
    with daemon(max_lease_ms=20000) as d:
        c = Connection(d.port, lease_ms=9000)
        for asked, got in (0, 9000), (12000, 12000), (0, 12000), (1000000, 20000), (500, 500):
            cut(c)
            c = Connection(d.port, resume=c, lease_ms=asked)
            assert c.welcome.resumed and c.welcome.lease_ms == got, (asked, c.welcome)
        cut(c)
        gone(d, 0)
        time.sleep(1)
        assert not Connection(d.port, resume=c).welcome.resumed, "the last one counts"


@test
def a_lease_that_is_over_takes_everything_along():
    with daemon() as d, Connection(d.port) as eye:
        a = Connection(d.port, lease_ms=600)
        eye.ok(S, aoi.create_space(**MANUAL), aoi.add(100, 0, 0, radius=100), aoi.subscribe(7, 100))
        a.ok(S, *[aoi.add(i, i, 0) for i in range(1, 51)], aoi.open_player(8))
        a.ok(2, aoi.create_space(**MANUAL))
        a.ok(3, aoi.create_space(flush_ms=0, persistent=True))
        eye.ok(2, aoi.set_viewport(9, (0, 0), (1, 1)))
        eye.ok(S, aoi.flush())
        cut(a)
        began = time.monotonic()
        gone(d, 1)
        ack = eye.batch(2, aoi.flush())
        if time.monotonic() - began < 0.5:
            assert not ack.errors and not ack.pending, "its space is there, and nobody waits for it"
            assert entities(eye) == 51
        eventually(lambda: entities(eye) == 1, "the end of the lease")
        assert time.monotonic() - began >= 0.6, "not before"
        eye.ok(S, aoi.flush())
        leaves = [x for x in eye.take_deltas() if x.player == 7][-1]
        assert leaves.leaves == set(range(1, 51))
        assert codes(eye.batch(2, aoi.flush())) == ["UNKNOWN_SPACE"] and (2, 9) not in eye.views, "its players were told"
        assert not eye.batch(3, aoi.flush()).errors, "persistent"
        b = Connection(d.port, resume=a)
        assert not b.welcome.resumed and b.welcome.last_seq == 0 and b.welcome.session != a.welcome.session
        assert b.welcome.resume_token != a.welcome.resume_token
        b.ok(S, aoi.add(1, 1, 1))


@test
def without_leases_a_session_ends_with_its_connection():
    with daemon(max_lease_ms=0) as d, Connection(d.port) as keeper:
        a = Connection(d.port, lease_ms=5000)
        assert a.welcome.lease_ms == 0
        keeper.ok(S, aoi.create_space(**MANUAL))
        a.ok(S, aoi.add(1, 1, 1))
        cut(a)
        eventually(lambda: entities(keeper) == 0, "the end")
        assert not Connection(d.port, resume=a).welcome.resumed


@test
def a_wrong_resume_token_is_refused_and_harms_nobody():
    with daemon() as d:
        a = Connection(d.port)
        a.ok(S, aoi.create_space(**MANUAL), aoi.add(1, 1, 1))
        right = a.welcome.resume_token
        for alive in (True, False):
            for wrong in (b"", right[:-1], right + b"x", bytes([right[0] ^ 1]) + right[1:], right[:-1] + bytes([right[-1] ^ 128]), bytes(16)):
                with Connection(d.port, hello=False) as c:
                    seq = c.send(hello=pb.Hello(protocol_version=1, resume_session=a.welcome.session, resume_token=wrong))
                    frames = c.frames_until_closed()
                    assert len(frames) == 1 and frames[0].reply_to == seq and frames[0].error.code == pb.CODE_UNAUTHENTICATED, frames
            if alive:
                a.ping()
                cut(a)
                gone(d, 0)
        b = Connection(d.port, resume=a)
        assert b.welcome.resumed and entities(b) == 1


@test
def a_session_is_taken_over_from_a_socket_that_looks_alive():
    with daemon() as d, Connection(d.port) as keeper:
        a = Connection(d.port)
        keeper.ok(S, aoi.create_space(**MANUAL), aoi.add(100, 0, 0, radius=100))
        a.ok(S, aoi.add(1, 1, 1), aoi.subscribe(7, 100))
        for i in range(2, 40):  # one after the other, each from the one before
            b = Connection(d.port, resume=a)
            assert b.welcome.resumed and b.welcome.last_seq == a.seq
            b.ok(S, aoi.add(i, 1, 1))
            a.frames_until_closed()  # the old one was closed
            a.close()  # late
            a = b
        keeper.ok(S, aoi.flush())
        a.ping()
        assert sorted(a.view(S, 7)) == list(range(1, 40))
        assert entities(keeper) == 40


@test
def a_close_that_comes_late_touches_nothing_of_the_new_connection():
    with daemon() as d:
        a = Connection(d.port)
        a.ok(S, aoi.create_space(**MANUAL), aoi.add(1, 1, 1, radius=5), aoi.add(2, 2, 2), aoi.subscribe(7, 1))
        b = Connection(d.port, resume=a)
        try:
            a.write(aoi.encode(a.seq + 1, batch=pb.Batch(space=S, commands=[aoi.remove(2)])) + aoi.encode(a.seq + 2, bye=pb.Bye()))
        except Closed:
            pass
        a.reset()
        b.ok(S, aoi.move((2, 3, 3)), aoi.flush())
        time.sleep(0.3)
        b.ok(S, aoi.flush())
        assert sorted(b.view(S, 7)) == [2] and entities(b) == 2


@test
def what_is_resent_is_acknowledged_and_applied_once():
    with daemon() as d:
        a = Connection(d.port)
        a.ok(S, aoi.create_space(**MANUAL))
        sent = [pb.Batch(space=S, commands=[aoi.add(i, i, 0)]) for i in range(1, 101)]
        first = a.seq + 1
        for batch in sent[:50]:
            a.send(batch=batch)
        last = a.send(ping=pb.Ping(nonce=1))
        for seq in range(first, last + 1):
            a.reply(seq)
        cut(a)
        gone(d, 0)
        b = Connection(d.port, resume=a)
        assert b.welcome.last_seq == a.seq
        b.seq = first - 1  # everything again, and more
        for i, batch in enumerate(sent):
            ack = b.call(batch=batch).ack
            known = i <= 50  # the ping had the seq of the 51st
            assert not ack.errors and ack.applied == (0 if known else 1), (i, ack)
        assert entities(b) == 99
        reply = b.reply(b.send(batch=sent[0]))
        assert codes(reply.ack) == ["DUPLICATE_ENTITY"]
        b.seq -= 1
        assert b.call(batch=sent[0]).error.code == pb.CODE_INVALID_ARGUMENT, "seqs increase here too"
        b.seq = first + 40
        assert b.call(ping=pb.Ping(nonce=1)).error.code == pb.CODE_INVALID_ARGUMENT


@test
def questions_that_are_resent_are_answered_anew():
    with daemon() as d:
        a = Connection(d.port)
        a.ok(S, aoi.create_space(**MANUAL), aoi.add(1, 1, 1))
        seq = a.seq
        a.query(S, get_entity=pb.GetEntityQuery(id=1))
        a.ping(5)
        a.call(resync=pb.Resync(space=S))
        cut(a)
        gone(d, 0)
        b = Connection(d.port, resume=a)
        b.seq = seq
        assert (b.query(S, get_entity=pb.GetEntityQuery(id=1)).x, b.seq) == (1, seq + 1)
        b.ping(6)
        assert b.call(resync=pb.Resync(space=S)).ack.applied == 0


@test
def frames_that_came_whole_are_applied_whatever_becomes_of_the_connection():
    """Behind each cut the daemon says how far it came, and exactly that is in the world."""
    with daemon(max_frame_bytes=65536) as d, Connection(d.port) as keeper:
        keeper.ok(S, aoi.create_space(**MANUAL))
        a, made = Connection(d.port), 0
        for round in range(12):
            for _ in range(150):  # with seq: what is not applied can be seen
                made += 1
                a.write(aoi.encode(made + 1, batch=pb.Batch(space=S, commands=[aoi.add(made, 1, 1), aoi.add(100000 + made, 1, 1)])))
            half = aoi.encode(made + 2, batch=pb.Batch(space=S, commands=[aoi.add(999999, 1, 1)]))
            a.write(half[:-1])
            (Connection.reset, Connection.close, cut)[round % 3](a)
            b = Connection(d.port, resume=a)
            assert b.welcome.resumed
            applied = b.welcome.last_seq - 1
            assert 0 < applied <= made
            assert entities(keeper) == 2 * applied
            made, b.seq, a = applied, applied + 1, b


@test
def what_waits_behind_a_full_outbox_is_applied_when_writing_fails():
    with daemon(out_soft_bytes=65536, query_page=2000) as d, Connection(d.port) as keeper:
        keeper.ok(S, aoi.create_space(**MANUAL), *[aoi.add(i, 1, 1) for i in range(1, 2001)])
        for end, come in [(e, come) for e in (Connection.reset, Connection.close) for come in (True, False, False, False)]:
            a = Connection(d.port, rcvbuf=4096)
            before = keeper.query(stats=pb.StatsQuery()).bytes_in
            frames = b"".join(aoi.encode(10 + i, query=pb.Query(space=S, aabb=EVERYTHING)) for i in range(400))
            a.write(frames)  # the answers are 20 MB, and nobody reads them
            a.write(aoi.encode(1000, batch=pb.Batch(space=S, commands=[aoi.add(5000, 1, 1)])))
            if come:  # else it is read when writing fails already
                eventually(lambda: keeper.query(stats=pb.StatsQuery()).bytes_in >= before + len(frames), "everything has come")
                assert entities(keeper) == 2000, "it waits"
            end(a)
            eventually(lambda: entities(keeper) == 2001, "applied")
            b = Connection(d.port, resume=a)
            assert b.welcome.resumed and b.welcome.last_seq == 1000
            b.call(bye=pb.Bye())
            eventually(lambda: entities(keeper) == 2000, "Bye")


@test
def what_a_lost_session_owns_may_be_taken():
    with daemon() as d, Connection(d.port) as b:
        a = Connection(d.port)
        b.ok(S, aoi.create_space(**MANUAL), aoi.add(100, 0, 0, radius=50), aoi.subscribe(50, 100))
        a.ok(S, *[aoi.add(i, i, 0, payload=b"x") for i in (1, 2, 3, 4)], aoi.subscribe(7, 1), aoi.open_player(8))
        b.ok(S, aoi.flush())
        b.take_deltas()
        take = [aoi.upsert(1, 9, 9, payload=b"y"), aoi.add(2, 0, 0, mode=pb.ADD_MODE_ADOPT), aoi.open_player(8, take_over=True), aoi.remove(3)]
        assert codes(b.batch(S, *take)) == ["NOT_OWNER"] * 4, "not while it is there"
        cut(a)
        gone(d, 1)
        assert codes(b.batch(S, *take)) == ["NOT_OWNER"], "to take is not to remove"
        b.ok(S, aoi.flush())
        (delta,) = [x for x in b.take_deltas() if x.player == 50]
        assert not delta.leaves and not delta.enters and set(delta.updates) == {1} and delta.payloads == {1: b"y"}, "its identity stays"
        c = Connection(d.port, resume=a)
        lost = c.wait("lost").lost
        assert lost.space == S and sorted(lost.entities) == [1, 2] and list(lost.players) == [8]
        assert codes(c.batch(S, aoi.move((1, 0, 0)))) == ["NOT_OWNER"]
        c.ok(S, aoi.move((3, 0, 0), (4, 0, 0)))
        assert codes(b.batch(S, aoi.upsert(3, 0, 0), aoi.add(4, 0, 0, mode=pb.ADD_MODE_ADOPT), aoi.open_player(7, take_over=True))) == ["NOT_OWNER"] * 3


@test
def what_was_told_to_a_dead_socket_is_told_again():
    """The daemon has not noticed that nobody reads any more."""
    with daemon() as d, Connection(d.port) as b:
        a = Connection(d.port)
        b.ok(2, aoi.create_space(**MANUAL), aoi.add(100, 0, 0, radius=50), aoi.add(101, 1, 0))
        a.ok(2, aoi.add(1, 1, 1), aoi.add(2, 2, 2), aoi.subscribe(7, 100), aoi.subscribe(8, 100))
        a.ok(2, aoi.release([1], [8]), aoi.flush())
        b.ok(2, aoi.add(1, 0, 0, mode=pb.ADD_MODE_ADOPT), aoi.open_player(8, take_over=True), aoi.flush())
        a.write(aoi.encode(a.seq + 1, batch=pb.Batch(space=2, commands=[aoi.close_player(7)])))
        eventually(lambda: b.query(2, stats=pb.StatsQuery()).players == 1, "closed")
        c = Connection(d.port, resume=a)
        assert c.wait("lost").lost == pb.Lost(space=2, entities=[1], players=[8])
        assert not c.views and [x.closed for x in c.take_deltas()] == [True]


@test
def the_last_deltas_of_players_wait_for_who_is_away():
    with daemon() as d, Connection(d.port) as b:
        a = Connection(d.port)
        b.ok(2, aoi.create_space(**MANUAL), aoi.add(100, 0, 0, radius=50), aoi.add(101, 1, 0))
        a.ok(2, *[aoi.subscribe(i, 100) for i in range(1, 301)])
        b.ok(2, aoi.flush())
        a.ping()
        assert len(a.views) == 300
        cut(a)
        gone(d, 1)
        b.ok(2, aoi.destroy_space())
        c = Connection(d.port, resume=a)
        c.ping()
        assert len(c.take_deltas()) == 300 and not c.views


@test
def who_resumes_does_not_wait_for_a_connection_that_is_broken_and_does_not_end():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path = os.path.join(dir, "socket")
        with daemon(unix_socket=path) as d, Connection(path) as a:
            a.ok(S, aoi.create_space(**MANUAL))
            a.sock.shutdown(socket.SHUT_RD)
            a.send(ping=pb.Ping())  # the daemon cannot write the reply, and waits for the end of what is read
            time.sleep(0.05)
            for k in range(4):  # more than is read in one turn
                a.send(batch=pb.Batch(space=S, commands=[aoi.add(1 + 5000 * k + i, i, k) for i in range(5000)]))
            before = d.cpu_seconds()
            with Connection(path, resume=a) as b:
                assert b.welcome.resumed and b.welcome.last_seq == a.seq, "what had come whole is applied"
                assert d.cpu_seconds() - before < 1, "it spins"
                assert entities(b) == 20000
            assert "reason=io_error" in d.log()


@test
def observed_is_told_anew_and_who_is_away_observes_nothing():
    with daemon() as d, Connection(d.port) as owner:
        eye = Connection(d.port)
        owner.ok(S, aoi.create_space(**MANUAL), *[aoi.add(i, i, 0, report_observed=True) for i in (1, 2, 3)])
        eye.ok(S, aoi.set_viewport(7, (0, -1), (2, 1)))
        owner.ok(S, aoi.flush())
        assert owner.observed == {(S, 1): True, (S, 2): True}
        cut(eye)
        gone(d, 1)
        assert not owner.ok(S, aoi.flush()).pending
        assert owner.observed == {(S, 1): False, (S, 2): False}
        back = Connection(d.port, resume=eye)
        assert back.welcome.resumed
        owner.ok(S, aoi.flush())
        assert owner.observed == {(S, 1): True, (S, 2): True}
        # and the owner that was away
        cut(owner)
        gone(d, 1)
        back.ok(S, aoi.set_viewport(7, (2, -1), (3, 1)), aoi.flush())
        assert not back.ok(S, aoi.flush()).pending, "nothing waits for who is away"
        again = Connection(d.port, resume=owner)
        again.ok(S, aoi.flush())
        assert again.observed == {(S, 1): False, (S, 2): True, (S, 3): True}, "also what is not"
        again.call(bye=pb.Bye())


@test
def who_is_away_costs_no_flushes_and_a_resume_arms_one():
    with daemon() as d, Connection(d.port) as keeper:
        a = Connection(d.port)
        keeper.ok(S, aoi.create_space(flush_ms=20), aoi.add(1, 0, 0, radius=10), aoi.add(2, 1, 1))
        a.ok(S, aoi.subscribe(7, 1))
        a.wait("deltas")
        cut(a)
        gone(d, 1)
        keeper.ok(S, aoi.move((2, 2, 2)))
        time.sleep(0.2)
        flushes = keeper.query(S, stats=pb.StatsQuery()).flushes
        time.sleep(0.3)
        assert keeper.query(S, stats=pb.StatsQuery()).flushes == flushes, "its space is quiet"
        b = Connection(d.port, resume=a)
        b.wait("deltas", 5)
        (delta,) = b.take_deltas()
        assert delta.full and delta.enters[2][:2] == (2.0, 2.0)


@test
def casts_are_lost_on_who_is_away_and_counted():
    with daemon() as d, Connection(d.port) as keeper:
        a = Connection(d.port)
        keeper.ok(S, aoi.create_space(**MANUAL), aoi.add(1, 0, 0, radius=10), aoi.add(2, 1, 1))
        a.ok(S, aoi.subscribe(7, 1))
        keeper.ok(S, aoi.flush())
        cut(a)
        gone(d, 1)
        for i in range(5):
            keeper.ok(S, aoi.publish(2, b"boo"), aoi.flush())
        b = Connection(d.port, resume=a)
        keeper.ok(S, aoi.publish(2, b"boo"), aoi.flush())
        b.ping()
        (delta,) = b.take_deltas()
        assert delta.full and delta.messages == [] and delta.lost >= 6, delta.lost


@test
def sessions_are_counted_with_those_whose_lease_runs():
    with daemon(max_sessions=3) as d:
        a, b, c = (Connection(d.port) for _ in range(3))
        for _ in range(2):
            with Connection(d.port, hello=False) as x:
                x.send(hello=pb.Hello(protocol_version=1))
                (frame,) = x.frames_until_closed()
                assert frame.error.code == pb.CODE_LIMIT_EXCEEDED, frame
        cut(c)
        c = Connection(d.port, resume=c)
        assert c.welcome.resumed, "which needs no place"
        c.call(bye=pb.Bye())
        c.frames_until_closed()
        Connection(d.port).close()
        a.ping()
        b.ping()


@test
def a_silent_session_is_closed_and_its_lease_runs():
    """No FIN, no RST: only silence."""
    with daemon(idle_timeout_ms=700) as d:
        a, eye = Connection(d.port, lease_ms=1000), Connection(d.port)
        eye.ok(S, aoi.create_space(**MANUAL), aoi.add(1000, 0, 0, radius=200), aoi.subscribe(7, 1000))
        a.ok(S, *[aoi.add(i, 1, 1) for i in range(1, 101)])
        eye.ok(S, aoi.flush())
        began, seen = time.monotonic(), []
        while not seen:
            eye.ok(S, aoi.flush())
            seen = [x for x in eye.take_deltas() if x.leaves]
            time.sleep(0.02)
        assert seen[0].leaves == set(range(1, 101)) and time.monotonic() - began >= 1.7
        assert entities(eye) == 1


@test
def the_daemon_ends_while_leases_run():
    with daemon() as d:
        a = Connection(d.port)
        a.ok(S, aoi.create_space(**MANUAL), aoi.add(1, 1, 1))
        cut(a)
        gone(d, 0)
        began = time.monotonic()
        d.stop()
        assert time.monotonic() - began < 20


@test
def many_take_the_same_session_at_once_and_one_has_it():
    with daemon() as d:
        a = Connection(d.port)
        a.ok(S, aoi.create_space(**MANUAL), aoi.add(1, 1, 1))
        won, lock = [], threading.Lock()

        def take():
            c = Connection(d.port, resume=a)
            assert c.welcome.resumed
            with lock:
                won.append(c)

        threads = [threading.Thread(target=take) for _ in range(20)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(won) == 20

        def works(c):
            c.seq = 1000
            try:
                c.ok(S, aoi.move((1, 2, 2)))
                return True
            except Closed:
                return False

        assert sum(works(c) for c in won) == 1


if __name__ == "__main__":
    main()
