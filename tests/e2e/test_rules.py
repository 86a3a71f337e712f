"""test_rules.py: the rules of visibility one by one, with exact numbers: margins, min_stay, rank, budgets, tiers, appeal, presence, overrides."""
import math
import time

import aoiclient as aoi
from aoiclient import Connection, pb
from bruteforce import f32
from harness import Daemon, eventually, main, test
from rulesrig import FOREVER, S, Rig, brief, refused


# ------------------------------------------------------------------------------------------------------------------- margin

@test
def a_margin_keeps_what_was_told_and_lets_nothing_in():
    for r in Rig(leave_margin=2):
        assert r.flush(aoi.add(2, 9, 0)).enters
        assert brief(r.flush(aoi.move((2, 11, 0)))) == (set(), set(), {2}), "stays"
        assert r.why(2).rule == pb.RULE_LEAVE_MARGIN
        assert r.flush(aoi.remove(2)).leaves == {2}
        assert r.flush(aoi.add(2, 11, 0)) is None, "hidden"
        assert r.why(2).rule == pb.RULE_FAR
        assert r.flush(aoi.move((2, 9, 0))).enters and r.flush(aoi.move((2, 12, 0))).updates, "the margin's edge is inclusive"
        assert r.flush(aoi.unsubscribe(1, 1)).leaves == {2}
        assert r.flush(aoi.subscribe(1, 1)) is None, "told no more, so it must come near again"
        assert r.flush(aoi.move((2, 10, 0))).enters and r.flush(aoi.move((2, 11, 0))).updates
        assert brief(r.flush(aoi.set_space(leave_margin=0.5))) == ({2}, set(), set()), "at run time"
        r.flush(aoi.open_player(1, leave_margin=4), aoi.move((2, 5, 0)))
        assert r.flush(aoi.move((2, 14, 0))).updates and r.flush(aoi.move((2, 14.1, 0))).leaves, "a player's own margin"
        assert r.flush(aoi.move((2, 10, 0))).enters
        assert r.flush(aoi.set_radius(1, 0)).leaves == {2}, "radius 0 sees nothing, margin or not"


@test
def the_margin_of_each_shape_ends_where_the_rule_says():
    tenth = f32(0.1)
    # cells of 8 and range 1: the unit at 0 counts as at 2, and what is at x > 0 as at x - 2, which must be under 16; what is at x < 0 as at
    # x + 2, the unit then as at -2, so that x + 2 must be at least -16
    for shape, keeps, loses in ((pb.SHAPE_BOX, (12, -12), (12.001, 0)), (pb.SHAPE_SPHERE, (0, -12), (9, 9)), (pb.SHAPE_SPHERE, (7, 9.7), (7, 9.75)),
                                (pb.SHAPE_CELLS, (17.99, 17), (18, 0)), (pb.SHAPE_CELLS, (-18, -17), (0, -18.001))):
        for r in Rig(leave_margin=2, shape=shape, cell_size=8):
            r.flush(aoi.add(2, 1, 1))
            assert r.flush(aoi.move((2, *keeps))).updates and r.view() == {2}, (shape, keeps)
            assert r.flush(aoi.move((2, *loses))).leaves == {2}, (shape, loses)
            assert r.flush(aoi.move((2, *keeps))) is None, "the margin lets nothing in"
    for r in Rig(watch=False, leave_margin=tenth):
        r.flush(aoi.set_viewport(1, (-5, -5), (5, 5)), aoi.add(2, 5, 5), aoi.add(3, 5.2, 0))
        edge = f32(5 + tenth)
        assert r.view() == {2} and r.flush(aoi.move((2, edge, -edge))).updates
        assert r.flush(aoi.move((2, math.nextafter(edge, 9) + 1e-6, 0))).leaves == {2}


@test
def mask_hide_and_rank_act_at_once_in_spite_of_margin_and_stay():
    for r in Rig(leave_margin=5, min_stay_ms=FOREVER):
        r.flush(aoi.add(2, 5, 0), aoi.add(3, 6, 0), aoi.add(4, 7, 0))
        assert r.flush(aoi.set_layers(2, 0)).leaves == {2}
        assert r.flush(aoi.hide(1, 3)).leaves == {3}
        assert r.flush(aoi.open_player(1, max_view=1), aoi.add(5, 1, 0), aoi.set_priority(5, 1)).leaves == {4} and r.view() == {5}


# ------------------------------------------------------------------------------------------------------------------ min_stay

@test
def min_stay_keeps_what_was_told_while_the_player_has_eyes():
    for r in Rig(min_stay_ms=FOREVER):
        r.flush(aoi.add(2, 5, 0))
        assert r.flush(aoi.move((2, 5000, 0)), pending=True).updates and r.view() == {2}
        why = r.why(2)
        assert why.rule == pb.RULE_MIN_STAY and why.seen and why.told and FOREVER - 600000 < why.stay_left_ms <= FOREVER, why
        assert r.flush(aoi.set_radius(1, 0)).leaves == {2}, "no eyes"
        assert r.why(2).rule == pb.RULE_BLIND
        assert r.flush(aoi.set_radius(1, 10), aoi.move((2, 1, 1))).enters
        assert r.flush(aoi.set_viewport(1, (900, 900), (901, 901)), aoi.unsubscribe(1, 1)) is None, "a viewport is eyes, wherever it looks"
        assert r.flush(aoi.clear_viewport(1)).leaves == {2}
        r.flush(aoi.subscribe(1, 1), aoi.show(1, 3), aoi.add(3, 7000, 0))
        assert r.view() == {2, 3}
        assert r.flush(aoi.by_rule(1, 3)) is None, "it stays, whatever brought it"
        assert r.flush(aoi.set_space(min_stay_ms=0)).leaves == {3}
        assert r.flush(aoi.move((2, 5000, 0)), pending=False).leaves == {2}


@test
def what_entered_before_min_stay_was_set_counts_as_long_ago():
    for r in Rig():
        r.flush(aoi.add(2, 5, 0), aoi.add(3, 50, 0))
        r.flush(aoi.set_space(min_stay_ms=FOREVER), aoi.move((3, 6, 0)))
        assert r.flush(aoi.move((2, 50, 0), (3, 50, 0))).leaves == {2} and r.view() == {3}


@test
def min_stay_ends_by_itself_in_a_timed_space_and_by_flush_in_a_manual_one():
    for r in Rig(min_stay_ms=400):
        r.flush(aoi.add(2, 5, 0))
        entered = time.monotonic()
        d = r.flush(aoi.move((2, 50, 0)))
        assert d.updates or time.monotonic() - entered > 0.35
        time.sleep(0.45)
        r.flush()
        assert r.view() == set()
        r.ok(aoi.set_space(flush_ms=5, min_stay_ms=60), aoi.move((2, 5, 0)))
        while 2 not in r.view():
            r.c.wait("deltas")
        r.ok(aoi.move((2, 50, 0)))  # nothing more is said; the leave comes by itself
        while 2 in r.view():
            r.c.wait("deltas")


# --------------------------------------------------------------------------------------------------------------------- rank

@test
def max_view_keeps_the_best_by_show_priority_distance_and_id():
    for r in Rig(watch=False, max_view=3):
        r.ok(aoi.add(1, 0, 0, radius=100), aoi.subscribe(1, 1), *[aoi.add(i, i, 0) for i in range(10, 20)])
        assert brief(r.flush(pending=False)) == (set(), {10, 11, 12}, set())
        assert brief(r.flush(aoi.set_priority(19, 1))) == ({12}, {19}, set())
        assert brief(r.flush(aoi.show(1, 777), aoi.add(777, 5000, 0))) == ({11}, {777}, set()), "SHOW comes first"
        assert brief(r.flush(aoi.subscribe(1, 1, True))) == ({10}, {1}, set()), "so does the unit itself"
        assert brief(r.flush(aoi.open_player(1, max_view=100))) == (set(), {10, 11, 12, 13, 14, 15, 16, 17, 18}, set()), "a player's own limit"
        assert len(r.flush(aoi.open_player(1)).leaves) == 9
        r.flush(aoi.by_rule(1, 777), aoi.subscribe(1, 1), aoi.set_priority(19, 0))
        assert r.view() == {10, 11, 12}
        why = r.why(13)
        assert (why.rule, why.rank, why.max_view, why.seen, why.told, why.distance) == (pb.RULE_RANK, 4, 3, False, False, 13), why
        assert [r.why(i).rank for i in (10, 11, 12, 19)] == [1, 2, 3, 10]
        # what is told counts as nearer: its squared distance times 0.64, that is its distance times 0.8
        assert r.flush(aoi.move((12, 14, 0)), aoi.remove(13)).updates, "14 * 0.8 = 11.2 is nearer than 12"
        assert r.flush(aoi.add(20, 11.2, 5)) is None
        assert brief(r.flush(aoi.move((12, 14.125, 0)), aoi.add(21, 11.25, 0))) == ({12}, {21}, set()), "14.125 * 0.8 = 11.3"
        r.flush(aoi.remove(20), aoi.add(5, 21, 0), aoi.add(4, 21, 0), aoi.remove(10, 11, 21, 12, *range(14, 20)), aoi.add(3, 1, 0))
        assert r.view() == {3, 4, 5}
        assert brief(r.flush(aoi.set_space(max_view=2))) == ({5}, set(), set()), "of equals the lower id"
        assert brief(r.flush(aoi.set_space(max_view=0))) == (set(), {5}, set())
        r.ok(aoi.set_viewport(2, (0, 0), (20, 20)), aoi.open_player(2, max_view=1), aoi.add(30, 0, 0), aoi.add(31, 9, 9))
        r.flush()
        assert r.view(2) == {31}, "measured from the viewport's centre"


@test
def distance_is_euclidean_in_the_space_s_dimensions():
    for r in Rig(watch=False, dimensions=3, max_view=1):
        r.flush(aoi.add(1, 0, 0, 0, radius=50), aoi.subscribe(1, 1), aoi.add(2, 6, 6, 0), aoi.add(3, 1, 1, 9), aoi.add(4, 5, 5, 5))
        assert r.view() == {2}, "72 against 83 and 75"
        assert r.why(3).distance == math.sqrt(83) and r.why(2).distance == math.sqrt(72)


# ------------------------------------------------------------------------------------------------------------------- budget

@test
def enters_are_held_back_best_first_and_leaves_are_not():
    for r in Rig(max_enter_per_flush=2):
        assert brief(r.flush(*[aoi.add(i, i - 8, 0) for i in range(10, 15)], pending=True)) == (set(), {10, 11}, set())
        why = r.why(14)
        assert why.rule == pb.RULE_ENTER_BUDGET and not why.told and why.rank == 0, why
        assert set(r.flush(aoi.set_priority(14, 1), pending=True).enters) == {12, 14}
        assert set(r.flush(pending=False).enters) == {13}
        assert r.flush(pending=False) is None
        assert r.flush(aoi.set_radius(1, 0), pending=False).leaves == {10, 11, 12, 13, 14}
        r.resync()
        d = r.flush(aoi.set_radius(1, 10), pending=False)
        assert d.full and len(d.enters) == 5, "a full delta ignores the budget"
        r.flush(aoi.set_radius(1, 0))
        assert len(r.flush(aoi.set_radius(1, 10), aoi.open_player(1, max_enter_per_flush=3), pending=True).enters) == 3, "a player's own"
        assert len(r.flush(aoi.set_space(max_enter_per_flush=0), aoi.open_player(1), pending=False).enters) == 2
        # the same id again is an enter like any other
        d = r.flush(aoi.set_space(max_enter_per_flush=1), aoi.remove(10, 11), aoi.add(10, 2, 0), aoi.add(11, 3, 0), pending=True)
        assert brief(d) == ({10, 11}, {10}, set())
        assert brief(r.flush(pending=False)) == (set(), {11}, set())


@test
def a_timed_space_tells_the_rest_by_itself():
    with Daemon() as d, Connection(d.port) as c:
        c.ok(S, aoi.create_space(flush_ms=5, max_enter_per_flush=3, update_tiers="*:4"), aoi.add(1, 0, 0, radius=10), aoi.subscribe(1, 1))
        c.ok(S, *[aoi.add(10 + i, 1, i % 5) for i in range(20)])
        while len(c.view(S, 1)) < 20:
            c.wait("deltas")
        assert all(len(delta.enters) <= 3 for delta in c.take_deltas())
        for step in range(3):
            c.ok(S, *[aoi.move((10 + i, 2, step)) for i in range(20)])
            while any(seen[:2] != (2, step) for seen in c.view(S, 1).values()):
                c.wait("deltas")


# -------------------------------------------------------------------------------------------------------------------- tiers

@test
def tiers_tell_each_entity_when_it_is_due_and_the_last_position_in_the_end():
    for r in Rig(watch=False, update_tiers="30:1 60:2 *:4", extra=True):
        ids = (10, 11, 12, 13, 100, 101, 102, (1 << 64) - 1, (1 << 64) - 2)
        at = dict(zip(ids, (30, 59, 60, 60.5, 90, 91, 92, 93, 94)))
        period = {id: 1 if x <= 30 else 2 if x <= 60 else 4 for id, x in at.items()}
        r.flush(aoi.add(1, 0, 0, radius=200), aoi.subscribe(1, 1), *[aoi.add(id, x, 0) for id, x in at.items()])
        for id in ids:
            assert r.why(id).period == period[id], id
        for number in range(2, 15):
            d = r.flush(aoi.move(*[(id, x, 0) for id, x in at.items()], extra=[number] * len(ids)))
            want = {id for id in ids if (number + id) % period[id] == 0}
            assert brief(d)[2] == want and all(row[3] == number for row in d.updates.values()), (number, brief(d), want)
        late, told = {id for id in ids if (14 + id) % period[id]}, set()
        for number in range(15, 19):
            d = r.flush(pending=bool(late) and number < 18 and None)
            told |= brief(d)[2]
        assert told == late and r.flush(pending=False) is None
        assert all(seen[3] == 14 for seen in r.c.view(r.space, 1).values())
        # states and leaves do not wait
        d = r.flush(aoi.set_payload(100, b"now"), aoi.set_layers(101, 4), aoi.remove(102))
        assert d.payloads == {100: b"now"} and d.layers == {101: 4} and d.leaves == {102}
        d = r.flush(aoi.set_space(update_tiers=""), aoi.move((100, 95, 0), (101, 95, 0)))
        assert brief(d)[2] == {100, 101}


@test
def a_period_that_is_no_power_of_two_is_exact_for_the_largest_ids():
    """(flush + id) mod 7 of an id near 2^64 is not what a sum that wraps gives."""
    for r in Rig(watch=False, update_tiers="*:7"):
        ids = [(1 << 64) - 1 - i for i in range(9)] + list(range(2, 11))
        r.flush(aoi.add(1, 0, 0, radius=50), aoi.subscribe(1, 1), *[aoi.add(id, 1, 1) for id in ids])
        for number in range(2, 20):
            d = r.flush(aoi.move(*[(id, 1, number) for id in ids]))
            assert brief(d)[2] == {id for id in ids if (number + id) % 7 == 0}, (number, sorted(brief(d)[2]))


@test
def without_a_star_what_is_far_is_told_every_time():
    for r in Rig(watch=False, update_tiers="5:3"):
        r.flush(aoi.add(1, 0, 0, radius=50), aoi.subscribe(1, 1), aoi.add(2, 5, 0), aoi.add(3, 6, 0))
        assert (r.why(2).period, r.why(3).period) == (3, 1)
        r.ok(aoi.open_player(2), aoi.show(2, 3), aoi.set_space(update_tiers="5:3 *:6"))
        r.flush()
        assert r.view(2) == {3} and r.why(3, 2).period == 6, "no unit and no viewport: the last tier"


@test
def a_timed_space_grows_quiet_when_everything_is_told():
    for r in Rig(leave_margin=3, min_stay_ms=FOREVER, max_view=30, max_enter_per_flush=4, update_tiers="3:1 *:5"):
        r.ok(aoi.set_space(flush_ms=2), *[aoi.add(10 + i, i % 7, i // 7, report_observed=True) for i in range(40)], aoi.publish(10, b"x"))
        while len(r.view()) < 30:
            r.c.wait("deltas")
        r.ok(*[aoi.move((10 + i, i % 7, -(i // 7))) for i in range(40)], aoi.publish(10, b"y"))

        def flushes():
            return r.c.query(r.space, stats=pb.StatsQuery()).flushes

        def quiet():
            before = flushes()
            time.sleep(0.05)
            r.c.ping()  # the daemon has gone round its loop since, and a timer that was due has fired
            return flushes() == before
        eventually(quiet, "no flushes where nothing changes")
        r.c.ping()
        assert all(seen[1] <= 0 for seen in r.c.view(r.space, 1).values()), "the last positions were told"


# ---------------------------------------------------------------------------------------------------- appeal, presence, overrides

@test
def appeal_makes_a_thing_seen_from_further_away():
    for r in Rig():
        r.flush(aoi.add(2, 30, 0, appeal=20), aoi.add(3, 30, 0), aoi.add(4, -30.1, 0, appeal=20))
        assert r.view() == {2}
        got = r.c.query(r.space, get_entity=pb.GetEntityQuery(id=2))
        assert (got.appeal, got.priority, got.report_observed) == (20, 0, False)
        assert r.flush(aoi.set_appeal(2, 19.5), aoi.set_appeal(4, 20.2)).leaves == {2} and r.view() == {4}
        box = pb.AabbQuery(box=aoi.bounds((-10, -10), (10, 10)))
        assert list(r.c.query(r.space, aabb=box).ids) == [1], "queries know no appeal"
        for bad in (math.nan, math.inf, -1):
            refused(r.c, aoi.set_appeal(2, bad), "INVALID_ARGUMENT", 2, r.space)
            refused(r.c, aoi.add(9, 0, 0, appeal=bad), "INVALID_ARGUMENT", 9, r.space)
        refused(r.c, aoi.set_appeal(99, 1), "UNKNOWN_ENTITY", 99, r.space)
        refused(r.c, aoi.set_priority(99, 1), "UNKNOWN_ENTITY", 99, r.space)
        r.flush(aoi.upsert(2, 30, 0, priority=7, report_observed=True))
        got = r.c.query(r.space, get_entity=pb.GetEntityQuery(id=2))
        assert (got.appeal, got.priority, got.report_observed) == (0, 7, True), "UPSERT writes every field"


@test
def the_appeal_of_each_shape():
    for shape, sees in ((pb.SHAPE_BOX, {2, 3}), (pb.SHAPE_SPHERE, {2}), (pb.SHAPE_CELLS, {4})):
        for r in Rig(shape=shape, cell_size=8):
            r.flush(aoi.add(2, 9, 12, appeal=5), aoi.add(3, 14.5, 15, appeal=5), aoi.add(4, 15.9, -8))
            assert r.view() == (sees | {2} if shape != pb.SHAPE_CELLS else {2, 3, 4}), (shape, r.view())


@test
def presence_only_gets_no_positions_and_one_full_delta_when_it_ends():
    for r in Rig(extra=True):
        r.flush(aoi.open_player(1, presence_only=True), aoi.add(2, 5, 0))
        assert r.flush(aoi.move((2, 6, 0), extra=[9]), pending=False) is None
        d = r.flush(aoi.move((2, 7, 0)), aoi.set_payload(2, b"p"), aoi.set_layers(2, 3), aoi.publish(2, b"m"))
        assert not d.updates and d.payloads == {2: b"p"} and d.layers == {2: 3} and d.messages == [(2, b"m")] and not d.full
        assert brief(r.flush(aoi.add(3, 1, 1))) == (set(), {3}, set()) and r.flush(aoi.remove(3)).leaves == {3}
        r.ok(aoi.open_player(1, presence_only=True))
        assert r.flush() is None
        d = r.flush(aoi.open_player(1))
        assert d.full and d.enters == {2: (7, 0, 0, 9, 3, b"p")}
        assert r.flush(aoi.move((2, 8, 0))).updates


@test
def overrides_hide_and_show_whatever_the_rules_say():
    for r in Rig():
        r.flush(aoi.add(2, 5, 0), aoi.add(3, 5000, 0, layers=8), aoi.hide(1, 2), aoi.show(1, 3), aoi.show(1, 50), aoi.open_player(1, mask=1))
        assert r.view() == {3}, "SHOW overrules range and mask"
        assert (r.why(2).rule, r.why(3).rule) == (pb.RULE_HIDE, pb.RULE_SHOW)
        assert r.flush(aoi.add(50, -900, 7)).enters, "an entity that was not there yet"
        assert r.flush(aoi.hide(1, 1), aoi.subscribe(1, 1, True)).enters.keys() == {1}, "include_self overrules HIDE"
        assert brief(r.flush(aoi.remove(50), aoi.add(50, 1, 1, layers=2))) == ({50}, {50}, set()), "it lasts"
        assert brief(r.flush(aoi.by_rule(1, 2), aoi.by_rule(1, 3), aoi.hide(1, 50))) == ({3, 50}, {2}, set())
        assert r.flush(aoi.by_rule(1, 12345)) is None, "NONE of what was never overridden"
        assert r.flush(aoi.close_player(1), aoi.subscribe(1, 1)).enters.keys() == {2, 50}, "it ends with the player"
        for bad in (9, -1):
            refused(r.c, aoi.override(1, 2, bad), "INVALID_ARGUMENT", space=r.space)
        refused(r.c, aoi.hide(1, 0), "INVALID_ARGUMENT", space=r.space)
        refused(r.c, aoi.hide(0, 1), "INVALID_ARGUMENT", space=r.space)
        refused(r.c, aoi.hide(77, 1), "UNKNOWN_PLAYER", 77, r.space)


@test
def max_overrides_is_a_limit_of_what_is_in_force():
    for r in Rig(options=dict(max_overrides=2)):
        r.ok(aoi.hide(1, 2), aoi.hide(1, 3), aoi.show(1, 3))
        refused(r.c, aoi.hide(1, 4), "LIMIT_EXCEEDED", space=r.space)
        r.ok(aoi.by_rule(1, 4), aoi.by_rule(1, 2), aoi.hide(1, 4), aoi.open_player(2), aoi.hide(2, 9))
        refused(r.c, aoi.show(1, 2), "LIMIT_EXCEEDED", space=r.space)

if __name__ == "__main__":
    main()
