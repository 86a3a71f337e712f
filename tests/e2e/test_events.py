"""test_events.py: casts and who gets them, what owners are told of who observes, and passing on of entities and players."""
import math

import aoiclient as aoi
from aoiclient import Connection, code_name, pb
from harness import Daemon, main, test
from rulesrig import SHAPES, S, Rig, brief, refused


# -------------------------------------------------------------------------------------------------------------------- casts

@test
def casts_come_in_order_to_those_who_see_the_publisher_after_the_flush():
    for r in Rig():
        r.flush(aoi.add(2, 5, 0), aoi.add(3, 500, 0), aoi.set_viewport(2, (499, -1), (501, 1)))
        r.c.take_deltas()
        d = r.flush(aoi.publish(2, b"a"), aoi.publish(3, b"far"), aoi.publish(2, b"b"), aoi.publish(1, b"own"), aoi.publish(2, b""))
        assert d.messages == [(2, b"a"), (2, b"b"), (2, b"")] and not d.lost, "a unit is not in its own view"
        d = r.flush(aoi.publish(3, b"x"), aoi.move((3, 1, 0)), aoi.publish(2, b"y"), aoi.move((2, 500, 0)), player=2)
        assert d.messages == [(2, b"y")] and brief(d) == ({3}, {2}, set()), "who sees it after the flush"
        assert r.flush() is None, "once"
        d = r.flush(aoi.publish(3, b"z"), aoi.remove(3), aoi.add(3, 1, 1))
        assert brief(d) == ({3}, {3}, set()) and d.messages == [], "its publisher is gone"
        d = r.flush(aoi.hide(1, 3), aoi.publish(3, b"h"))
        assert d.messages == [] and d.leaves == {3}
        refused(r.c, aoi.publish(99, b""), "UNKNOWN_ENTITY", 99, r.space)
        with Connection(r.d.port) as other:
            refused(other, aoi.publish(2, b""), "NOT_OWNER", 2, r.space)


@test
def a_cast_of_what_waits_for_its_enter_is_not_delivered():
    for r in Rig(max_enter_per_flush=1):
        d = r.flush(aoi.add(2, 2, 0), aoi.add(3, 3, 0), aoi.publish(2, b"two"), aoi.publish(3, b"three"))
        assert set(d.enters) == {2} and d.messages == [(2, b"two")]
        d = r.flush()
        assert set(d.enters) == {3} and d.messages == []


@test
def casts_at_a_point_or_in_a_box_go_to_those_who_look_there():
    for shape in SHAPES:
        for dims in (2, 3):
            for r in Rig(shape=shape, dimensions=dims, cell_size=8, leave_margin=50):
                r.flush(aoi.open_player(1, mask=1 << 9), aoi.set_viewport(2, (100, 100, -5), (110, 110, 5)), aoi.add(2, 8, 6), aoi.subscribe(3, 2))
                r.c.take_deltas()
                inside = {pb.SHAPE_BOX: (10, -10), pb.SHAPE_SPHERE: (6, 8), pb.SHAPE_CELLS: (15.9, -8)}[shape]
                outside = {pb.SHAPE_BOX: (10.001, 0), pb.SHAPE_SPHERE: (6.001, 8), pb.SHAPE_CELLS: (16, 0)}[shape]
                r.ok(aoi.publish_at(*inside, message=b"in"), aoi.publish_at(*outside, message=b"out"), aoi.publish_at(105, 110, 0, message=b"view"))
                r.ok(aoi.publish_in((*outside, -1), (120, 120, 1), b"box"), aoi.publish_in((-400, -400, -400), (400, 400, 400), b"all"))
                high = (105, 105, 6)
                r.ok(aoi.publish_at(*high, message=b"high"), aoi.flush())
                got = {d.player: [m for m in d.messages] for d in r.c.take_deltas()}
                assert got[1] == [(0, b"in"), (0, b"all")], (shape, dims, got)
                assert got[2] == [(0, b"view"), (0, b"box"), (0, b"all")] + ([(0, b"high")] if dims == 2 else []), (shape, dims, got)
                assert 3 not in got, "radius 0 looks nowhere"


@test
def a_cast_is_checked_and_says_what_is_wrong():
    for r in Rig(options=dict(max_message=8, max_messages_per_flush=3)):
        r.flush(aoi.add(2, 1, 1))
        for lo, hi in (((5, 5), (-5, -5)), ((math.nan, 0), (1, 1)), ((0, 0), (math.inf, 1))):
            refused(r.c, aoi.publish_in(lo, hi, b""), "INVALID_ARGUMENT", space=r.space)
        refused(r.c, aoi.publish_at(math.nan, 0), "INVALID_ARGUMENT", space=r.space)
        refused(r.c, aoi.publish_at(0, -math.inf), "INVALID_ARGUMENT", space=r.space)
        refused(r.c, aoi.publish(0, b""), "INVALID_ARGUMENT", space=r.space)
        refused(r.c, pb.Command(publish=pb.Publish(message=b"x")), "UNSUPPORTED", space=r.space)
        refused(r.c, aoi.publish(2, bytes(9)), "LIMIT_EXCEEDED", 2, r.space)
        refused(r.c, aoi.publish_at(0, 0, message=bytes(9)), "LIMIT_EXCEEDED", space=r.space)
        r.ok(aoi.publish(2, bytes(8)), aoi.publish_at(0, 0), aoi.publish_in((0, 0), (0, 0), b"3"))
        for command in (aoi.publish(2, b"4"), aoi.publish_at(0, 0, message=b"4")):
            refused(r.c, command, "LIMIT_EXCEEDED", space=r.space)
        assert r.flush().messages == [(2, bytes(8)), (0, b""), (0, b"3")]
        assert r.flush(aoi.publish(2, b"1"), aoi.publish(2, b"2"), aoi.publish(2, b"3")).messages == [(2, b"1"), (2, b"2"), (2, b"3")], "anew a flush"
        assert r.c.query(r.space, stats=pb.StatsQuery()).messages == 6


@test
def casts_larger_than_a_frame_come_in_parts_and_in_order():
    for r in Rig(options=dict(max_frame_bytes=16384)):
        r.flush(aoi.add(2, 1, 1))
        want = []
        for first in range(0, 60, 3):
            some = [(2, (b"%d " % i) * 500) for i in range(first, first + 3)]
            r.ok(*[aoi.publish(*m) for m in some])
            want += some
        d = r.flush(aoi.move((2, 2, 2)))
        assert d.parts > 3 and d.messages == want and d.updates, d.parts


@test
def more_casts_than_a_connection_has_room_for_are_counted_and_close_nothing():
    with Daemon(out_soft_bytes=1 << 20, out_hard_bytes=4 << 20) as d, Connection(d.port) as c, Connection(d.port) as reader:
        c.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=10), aoi.add(2, 1, 1))
        players = range(1, 9)
        reader.ok(S, *[aoi.subscribe(p, 1) for p in players], aoi.flush())
        for first in range(0, 3000, 200):
            c.ok(S, *[aoi.publish(2, (b"%d " % i).ljust(4096, b"x")) for i in range(first, first + 200)])
        got, lost, moves = {p: [] for p in players}, {p: 0 for p in players}, 0
        while any(len(got[p]) + lost[p] < 3000 for p in players):
            moves += 1
            assert moves < 50, {p: (len(got[p]), lost[p]) for p in players}
            c.ok(S, aoi.move((2, 1, moves % 9)), aoi.flush())
            reader.ping()
            for delta in reader.take_deltas():
                got[delta.player] += [int(data.split()[0]) for _, data in delta.messages]
                lost[delta.player] += delta.lost
        c.ok(S, aoi.flush())
        reader.ping()
        for p in players:
            assert reader.view(S, p)[2][:2] == (1, moves % 9)
            assert len(got[p]) + lost[p] == 3000 and got[p] == sorted(set(got[p])), (p, len(got[p]), lost[p])


@test
def full_deltas_lose_casts_and_count_them():
    for r in Rig():
        r.flush(aoi.add(2, 1, 1), aoi.open_player(2))
        r.c.take_deltas()
        r.resync(1)
        d = r.flush(aoi.publish(2, b"a"), aoi.publish(2, b"b"))
        assert d.full and d.messages == [] and d.lost == 2 and set(d.enters) == {2}
        d = r.flush(aoi.publish(2, b"c"))
        assert d.messages == [(2, b"c")] and d.lost == 0 and not d.full
        r.resync()
        r.ok(aoi.flush())
        assert [(d.player, d.full, d.lost) for d in sorted(r.c.take_deltas(), key=lambda d: d.player)] == [(1, True, 0), (2, True, 0)]


@test
def a_slow_reader_loses_casts_and_is_told_how_many():
    with Daemon(out_soft_bytes=65536, out_hard_bytes=8 << 20) as d, Connection(d.port) as mover, Connection(d.port, rcvbuf=4096) as reader:
        ids = range(10, 1510)
        mover.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=9999), *[aoi.add(i, i, 0) for i in ids], aoi.subscribe(2, 1))
        reader.ok(S, aoi.subscribe(1, 1))
        casts = 0
        while mover.query(S, stats=pb.StatsQuery()).skipped < 20:
            assert casts < 5000, "the stalled player is never skipped"
            casts += 1
            mover.ok(S, aoi.move(*[(i, i, casts) for i in ids]), aoi.publish(10, b"%d" % casts), aoi.flush())
        got, lost = [], 0
        reader.sock.setsockopt(aoi.socket.SOL_SOCKET, aoi.socket.SO_RCVBUF, 1 << 20)
        while True:
            try:
                reader.ping()
                casts += 1
                mover.ok(S, aoi.move((10, 10, casts)), aoi.publish(10, b"%d" % casts), aoi.flush())
                reader.ping()
            except TimeoutError:
                continue
            for delta in reader.take_deltas():
                got += [int(data) for _, data in delta.messages]
                lost += delta.lost
            if got and got[-1] == casts:
                break
        assert got == sorted(set(got)) and lost >= 20 and len(got) + lost == casts, (casts, len(got), lost)
        assert [int(data) for delta in mover.take_deltas() for _, data in delta.messages] == list(range(1, casts + 1)), "others lose nothing"
        assert reader.view(S, 1) == mover.view(S, 2)


# ------------------------------------------------------------------------------------------------------------------ observed

def observed(c):
    """What Observed said since the last time: {id: bool}."""
    out = {}
    for o in c.take_notices("observed"):
        assert o.space == S
        out.update({id: True for id in o.observed_ids})
        out.update({id: False for id in o.unobserved_ids})
    return out


@test
def the_owner_is_told_whether_anybody_observes_an_entity():
    with Daemon() as d, Connection(d.port) as npc, Connection(d.port) as gate:
        npc.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=10, report_observed=True), aoi.add(2, 100, 0, report_observed=True),
               aoi.add(3, 5, 0), aoi.flush())
        npc.ping()
        assert observed(npc) == {}, "nobody, and that is where it starts"

        def flushed(*commands):
            gate.ok(S, *commands, aoi.flush())
            npc.ping()
            assert not gate.take_notices("observed")
            return observed(npc)
        assert flushed(aoi.subscribe(1, 1, True)) == {}, "in the view of its own player only"
        assert flushed(aoi.set_viewport(2, (-1, -1), (1, 1)), aoi.set_viewport(3, (99, -1), (101, 1))) == {1: True, 2: True}
        assert flushed(aoi.subscribe(2, 1)) == {1: False}, "subscribed to it now"
        assert flushed(aoi.unsubscribe(2, 1)) == {1: True}
        assert flushed(aoi.set_viewport(2, (50, 50), (51, 51)), aoi.set_viewport(4, (-1, -1), (1, 1))) == {}, "another sees it in its stead"
        assert flushed(aoi.close_player(4), aoi.open_player(4), aoi.set_viewport(4, (-1, -1), (1, 1))) == {}, "a difference of states"
        assert flushed(aoi.close_player(4)) == {1: False}
        assert flushed(aoi.hide(3, 2)) == {2: False} and flushed(aoi.show(3, 1), aoi.by_rule(3, 2)) == {1: True, 2: True}
        npc.ok(S, aoi.remove(1))
        assert flushed() == {}, "of what is gone nothing is told"
        npc.ok(S, aoi.add(1, 0, 0, report_observed=True))
        assert flushed() == {1: True}
        npc.ok(S, aoi.upsert(3, 100, 0, report_observed=True))
        assert flushed() == {3: True}
        gate.send(bye=pb.Bye())
        gate.frames_until_closed()
        npc.ok(S, aoi.flush())
        assert observed(npc) == {1: False, 2: False, 3: False}, "its player's session is gone"


@test
def observed_comes_with_the_flush_before_the_ack_and_by_itself_in_a_timed_space():
    with Daemon() as d, Connection(d.port) as c:
        c.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=10), aoi.add(2, 1, 1, report_observed=True), aoi.subscribe(1, 1))
        seq = c.send(batch=pb.Batch(space=S, commands=[aoi.flush()]))
        kinds = [c.next().WhichOneof("kind") for _ in range(3)]
        assert sorted(kinds[:2]) == ["deltas", "observed"] and kinds[2] == "ack" and c.log[-1].reply_to == seq, kinds
        c.ok(S, aoi.set_space(flush_ms=5), aoi.move((2, 50, 0)))
        while c.observed[S, 2]:
            c.next()


# ---------------------------------------------------------------------------------------------------------------- passing on

@test
def what_is_released_may_be_adopted_as_it_is():
    with Daemon() as d, Connection(d.port) as a, Connection(d.port) as b, Connection(d.port) as w:
        a.ok(S, aoi.create_space(flush_ms=0, persistent=True, extra=True),
             aoi.add(2, 3, 4, radius=6, extra=7, layers=5, payload=b"p", appeal=1, priority=2, report_observed=True), aoi.add(3, 1, 1))
        w.ok(S, aoi.set_viewport(9, (-9, -9), (9, 9)), aoi.flush())
        assert observed(a) == {} and a.ping() is None and observed(a) == {2: True}
        w.take_deltas()
        refused(b, aoi.adopt(99), "UNKNOWN_ENTITY", 99)
        refused(b, aoi.adopt(0), "INVALID_ARGUMENT", 0)
        refused(b, aoi.adopt(2), "NOT_OWNER", 2)
        refused(b, aoi.release([2]), "NOT_OWNER", 2)
        refused(a, aoi.release([99]), "UNKNOWN_ENTITY", 99)
        a.ok(S, aoi.adopt(2), aoi.release([2]), aoi.move((2, 3, 5)))
        refused(b, aoi.move((2, 0, 0)), "NOT_OWNER", 2)
        b.ok(S, pb.Command(add_entity=pb.AddEntity(id=2, mode=pb.ADD_MODE_ADOPT, x=math.nan, radius=-1, payload=b"ignored")))
        a.ping()
        lost, = a.take_notices("lost")
        assert (lost.space, list(lost.entities), list(lost.players)) == (S, [2], [])
        got = b.query(S, get_entity=pb.GetEntityQuery(id=2))
        assert (got.x, got.y, got.radius, got.extra, got.layers, got.payload, got.appeal, got.priority, got.report_observed, got.owner_session) == (
            3, 5, 6, 7, 5, b"p", 1, 2, True, b.welcome.session), got
        refused(a, aoi.move((2, 0, 0)), "NOT_OWNER", 2)
        refused(a, aoi.adopt(2), "NOT_OWNER", 2)
        b.ok(S, aoi.flush())
        assert observed(b) == {2: True}, "restated"
        w.ping()
        delta, = w.take_deltas()
        assert not delta.leaves and not delta.enters and set(delta.updates) == {2}
        b.ok(S, aoi.release([2]))
        b.send(bye=pb.Bye())
        b.frames_until_closed()
        w.ok(S, aoi.flush())
        assert set(w.view(S, 9)) == {3}, "what is released ends with its session, until taken"
        a.ping()
        assert not a.notices and not w.notices


@test
def what_is_released_to_one_session_is_for_that_one_only():
    with Daemon() as d, Connection(d.port) as a, Connection(d.port) as b, Connection(d.port) as c:
        a.ok(S, aoi.create_space(flush_ms=0), aoi.add(2, 3, 4), aoi.add(3, 3, 4), aoi.open_player(7), aoi.open_player(8))
        a.ok(S, aoi.release([2, 3], [7, 8], b.welcome.session))
        refused(c, aoi.adopt(2), "NOT_OWNER", 2)
        refused(c, aoi.open_player(7, take_over=True), "NOT_OWNER", 7)
        b.ok(S, aoi.adopt(2), aoi.open_player(7, take_over=True))
        a.ok(S, aoi.release([3], [8]))  # to anybody now
        c.ok(S, aoi.adopt(3), aoi.open_player(8, take_over=True))
        a.ping()
        lost = a.take_notices("lost")
        assert sorted(id for x in lost for id in x.entities) == [2, 3] and sorted(id for x in lost for id in x.players) == [7, 8], lost
        ack = a.batch(S, aoi.add(4, 0, 0), aoi.open_player(9), aoi.release([4, 2, 99], [9, 7, 99]))
        assert [(e.index, code_name(e.code), e.id) for e in ack.errors] == [
            (2, "NOT_OWNER", 2), (2, "UNKNOWN_ENTITY", 99), (2, "NOT_OWNER", 7), (2, "UNKNOWN_PLAYER", 99)], ack
        refused(a, aoi.release([4], to=(1 << 64) - 1), "INVALID_ARGUMENT")
        refused(a, aoi.release([0]), "INVALID_ARGUMENT", 0)
        a.ok(S, aoi.release())
        gone = b.welcome.session
        b.send(bye=pb.Bye())
        b.frames_until_closed()
        refused(a, aoi.release([4], to=gone), "INVALID_ARGUMENT")


@test
def what_was_released_to_a_session_that_is_gone_is_for_nobody():
    with Daemon() as d, Connection(d.port) as a, Connection(d.port) as b, Connection(d.port) as c:
        a.ok(S, aoi.create_space(flush_ms=0), aoi.add(2, 3, 4, radius=9), aoi.open_player(7))
        b.ok(S, aoi.add(3, 3, 4, radius=9), aoi.subscribe(9, 2), aoi.open_player(8), aoi.subscribe(7 + 3, 3))
        c.ok(S, aoi.set_viewport(1, (-9, -9), (9, 9)), aoi.flush())
        a.ok(S, aoi.release([2], [7], b.welcome.session))
        b.ok(S, aoi.release([3], [8, 9], c.welcome.session))
        c.ok(S, aoi.open_player(9, take_over=True))
        b.send(bye=pb.Bye())
        lost = [f.lost for f in b.frames_until_closed() if f.WhichOneof("kind") == "lost"]
        assert [list(x.players) for x in lost] == [[9]], lost
        for command, code, id in ((aoi.adopt(2), "NOT_OWNER", 2), (aoi.open_player(7, take_over=True), "NOT_OWNER", 7),
                                  (aoi.adopt(3), "UNKNOWN_ENTITY", 3)):
            refused(c, command, code, id)
        c.ok(S, aoi.open_player(8, take_over=True), aoi.add(4, 1, 1), aoi.flush())  # 8 ended with its session: this is a new one
        told = {delta.player: delta for delta in c.take_deltas() if delta.flush == 2}
        assert set(told) == {1, 9} and set(told[1].enters) == {4} and told[1].leaves == {3}, told
        assert told[9].full and set(told[9].enters) == {4}, "what it watches by goes on to be another's"
        a.ok(S, aoi.adopt(2), aoi.open_player(7, take_over=True))  # one's own is fine
        a.ping()
        assert not a.notices


@test
def a_player_that_is_taken_over_goes_on_with_one_full_delta():
    with Daemon() as d, Connection(d.port) as a, Connection(d.port) as b:
        a.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=10), aoi.add(2, 1, 1), aoi.subscribe(7, 1, True), aoi.hide(7, 3),
             aoi.open_player(7, leave_margin=5), aoi.flush())
        a.ok(S, aoi.move((2, 11, 0)), aoi.flush())
        assert a.views[S, 7].seq == 2
        refused(b, aoi.open_player(7, take_over=True), "NOT_OWNER", 7)
        refused(b, aoi.release([], [7]), "NOT_OWNER", 7)
        a.ok(S, aoi.release([], [7]))
        refused(b, aoi.open_player(7), "NOT_OWNER", 7)
        b.ok(S, aoi.open_player(7, take_over=True, leave_margin=5))
        a.ping()
        assert [list(x.players) for x in a.take_notices("lost")] == [[7]] and (S, 7) not in a.views
        a.take_deltas()
        a.ok(S, aoi.add(3, 0, 1), aoi.publish(2, b"lost"), aoi.flush())
        assert a.take_deltas() == []
        b.ping()
        delta, = b.take_deltas()
        assert delta.full and delta.seq == 3 and set(delta.enters) == {1, 2} and delta.lost == 1, "its margin, its overrides and its unit go with it"
        for command in (aoi.open_player(7), aoi.open_player(7, take_over=True), aoi.subscribe(7, 2), aoi.close_player(7), aoi.hide(7, 2),
                        aoi.by_rule(7, 3)):
            refused(a, command, "NOT_OWNER", 7)
        a.ok(S, aoi.move((2, 10, 0)), aoi.flush())
        b.ping()
        delta, = b.take_deltas()
        assert delta.seq == 4 and not delta.full and set(delta.updates) == {2}
        b.ok(S, aoi.release([], [7]))
        a.ok(S, aoi.open_player(7, take_over=True), aoi.close_player(7))  # and closed before it was told anything
        a.ping()
        delta, = a.take_deltas()
        assert delta.closed and delta.seq == 5


@test
def new_settings_do_not_take_a_release_back():
    """Released is released, until taken; only to have it for oneself again takes it back."""
    with Daemon() as d, Connection(d.port) as a, Connection(d.port) as b:
        a.ok(S, aoi.create_space(flush_ms=0), aoi.add(2, 0, 0), aoi.open_player(7), aoi.release([2], [7]))
        a.ok(S, aoi.upsert(2, 1, 1), aoi.set_radius(2, 5), aoi.open_player(7, mask=2), aoi.subscribe(7, 2), aoi.hide(7, 5))
        b.ok(S, aoi.adopt(2), aoi.open_player(7, take_over=True))

if __name__ == "__main__":
    main()
