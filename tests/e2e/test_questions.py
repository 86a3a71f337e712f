"""test_questions.py: settings that change at run time, and the queries that ask about rules, with exact numbers; and the last flush of a drain."""
import math
import time

import aoiclient as aoi
from aoiclient import Connection, pb
from harness import Daemon, main, test
from rulesrig import SHAPES, S, Rig, refused, refused_query


# ------------------------------------------------------------------------------------------------------------------ settings

@test
def settings_that_make_no_sense_are_refused_whole():
    with Daemon() as d, Connection(d.port) as c:
        c.ok(S, aoi.create_space(flush_ms=0, leave_margin=1, min_stay_ms=2, max_view=3, max_enter_per_flush=4, update_tiers="30:1 60:2 *:4"))
        bad = [dict(leave_margin=x) for x in (math.nan, math.inf, -1)]
        bad += [dict(update_tiers=x) for x in ("x", "30", "30:", ":1", "30:0", "30:1 20:2", "30:1 30:2", "*:0", "-1:1", "nan:1", "inf:1",
                                               "30:-1", "30:1.5", "*:4 30:1", "*:1 *:2", "30:1,60:2", "1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1",
                                               "30:1 60:99999999999",
                                               "30:1x", "1e50:2", "30 :1", "30: 1", "\u00e9:1", "0" * 5000 + ":1")]
        for settings in bad:
            refused(c, aoi.set_space(min_stay_ms=9, flush_ms=10, **settings), "INVALID_ARGUMENT", S)
            refused(c, aoi.create_space(**settings), "INVALID_ARGUMENT", 6, space=6)
        for over in (65537, (1 << 32) - 1):
            refused(c, aoi.set_space(min_stay_ms=9, max_view=over), "LIMIT_EXCEEDED", S)
            refused(c, aoi.create_space(max_view=over), "LIMIT_EXCEEDED", 6, space=6)
            refused(c, aoi.open_player(1, max_view=over), "LIMIT_EXCEEDED", 1)
        for margin in (math.nan, math.inf, -1):
            refused(c, aoi.open_player(1, leave_margin=margin), "INVALID_ARGUMENT", 1)
        info, = c.query(list_spaces=pb.ListSpacesQuery()).spaces
        s = info.settings
        assert (s.flush_ms, s.leave_margin, s.min_stay_ms, s.max_view, s.max_enter_per_flush) == (0, 1, 2, 3, 4), s
        assert s.update_tiers == "30:1 60:2 *:4", s
        assert info.players == 0
        refused(c, aoi.set_space(max_view=1), "UNKNOWN_SPACE", space=99)
        c.ok(S, aoi.set_space(), aoi.set_space(max_view=65536, update_tiers="", leave_margin=0.5), aoi.open_player(1, max_view=65536))
        s = c.query(list_spaces=pb.ListSpacesQuery()).spaces[0].settings
        assert (s.flush_ms, s.leave_margin, s.min_stay_ms, s.max_view, s.max_enter_per_flush, s.update_tiers) == (0, 0.5, 2, 65536, 4, ""), s
        for text in ("0:1 0.5:2 1e3:7 *:1000000", " 30:1   60:2 ", "30:1 60:2"):
            c.ok(S, aoi.set_space(update_tiers=text))
        with Connection(d.port) as other:
            other.ok(S, aoi.set_space(max_view=7))  # everybody is admin
            other.ok(S, aoi.create_space(if_absent=True, flush_ms=0, leave_margin=0.5, min_stay_ms=2, max_view=7, max_enter_per_flush=4,
                                         update_tiers="30:1 60:2"))


@test
def flush_ms_changes_at_run_time_both_ways():
    for r in Rig():
        r.flush(aoi.add(2, 1, 1))
        r.ok(aoi.move((2, 2, 2)))
        r.c.ping()
        assert not r.c.deltas
        r.ok(aoi.set_space(flush_ms=5))
        while r.c.view(r.space, 1)[2][:2] != (2, 2):
            r.c.wait("deltas")
        r.ok(aoi.move((2, 3, 3)))
        while r.c.view(r.space, 1)[2][:2] != (3, 3):
            r.c.wait("deltas")
        r.ok(aoi.set_space(flush_ms=0), aoi.move((2, 4, 4)))
        time.sleep(0.05)
        r.c.ping()
        assert r.c.view(r.space, 1)[2][:2] == (3, 3)
        r.flush()
        assert r.c.view(r.space, 1)[2][:2] == (4, 4)


@test
def a_space_of_the_configuration_has_the_rules_and_an_admin_may_change_them():
    config = "[space 5]\nflush_ms = 0\nleave_margin = 2\nmax_view = 9\nmax_enter_per_flush = 1\nmin_stay_ms = 0\nupdate_tiers = 10:1 *:3\n"
    with Daemon(config=config) as d, Connection(d.port) as c:
        s = c.query(list_spaces=pb.ListSpacesQuery()).spaces[0].settings
        assert (s.leave_margin, s.max_view, s.max_enter_per_flush, s.update_tiers) == (2, 9, 1, "10:1 *:3"), s
        c.ok(S, aoi.set_space(max_enter_per_flush=0), aoi.add(1, 0, 0, radius=10), aoi.add(2, 1, 1), aoi.add(3, 2, 2), aoi.subscribe(1, 1))
        c.ok(S, aoi.flush())
        assert set(c.view(S, 1)) == {2, 3}


# ------------------------------------------------------------------------------------------------------------------- queries

@test
def nearest_gives_k_in_order_of_distance_and_id():
    for dims in (2, 3):
        for shape in SHAPES:
            for r in Rig(watch=False, shape=shape, dimensions=dims):
                r.ok(*[aoi.add(i, i, 0, 0, layers=1 + i % 2) for i in range(1, 40)])
                r.ok(aoi.add(50, -3, 0, 0), aoi.add(60, 0, 0, 2.5), aoi.add(1 << 63, 9999, 0))

                def ask(**fields):
                    page = r.c.query(r.space, nearest=pb.NearestQuery(**fields))
                    assert not page.next_cursor and len(page.x) == len(page.ids) and len(page.z) == (len(page.ids) if dims == 3 else 0)
                    return list(page.ids)
                sixty = [60, 1, 2, 3, 50, 4] if dims == 2 else [1, 2, 60, 3, 50, 4]
                assert ask(k=6) == sixty
                assert ask(k=1, x=20.5) == [20], "of equals the lower id"
                assert ask(k=100, x=20, max_distance=2) == [20, 19, 21, 18, 22]
                assert ask(k=3, x=20, layers=2) == [19, 21, 17]
                assert ask(k=3, x=20, layers=1 << 31) == []
                assert ask(k=2, x=16777216, max_distance=0) == [1 << 63, 39]
                assert ask(k=5, x=-500, max_distance=1) == [], "an explicit empty result"
                assert len(ask(k=1000)) == 42
                for bad in (dict(k=0), dict(k=1, x=math.nan), dict(k=1, max_distance=-1), dict(k=1, max_distance=math.inf), dict(k=1, y=math.inf)):
                    refused_query(r.c, "INVALID_ARGUMENT", r.space, nearest=pb.NearestQuery(**bad))
                refused_query(r.c, "UNKNOWN_SPACE", 99, nearest=pb.NearestQuery(k=1))


@test
def nearest_takes_at_most_a_page():
    with Daemon(query_page=4) as d, Connection(d.port) as c:
        c.ok(S, aoi.create_space(), *[aoi.add(i, i, 0) for i in range(1, 9)])
        assert list(c.query(S, nearest=pb.NearestQuery(k=4)).ids) == [1, 2, 3, 4]
        reply = c.call(query=pb.Query(space=S, nearest=pb.NearestQuery(k=5)))
        assert reply.WhichOneof("kind") == "error" and reply.error.code in (pb.CODE_INVALID_ARGUMENT, pb.CODE_LIMIT_EXCEEDED), reply


@test
def density_counts_on_a_raster_and_inner_lines_count_to_the_higher_side():
    for r in Rig(watch=False):
        at = [(0, 0), (3.9, 0), (4, 0), (8, 0), (8, 8), (4, 4), (2, 7.9), (-0.1, 0), (8.1, 8), (8, 4)]
        r.ok(*[aoi.add(i + 1, x, y, layers=1 + i % 2) for i, (x, y) in enumerate(at)])

        def ask(lo, hi, columns, rows, layers=0):
            got = r.c.query(r.space, density=pb.DensityQuery(box=aoi.bounds(lo, hi), columns=columns, rows=rows, layers=layers))
            assert (got.columns, got.rows) == (columns, rows)
            return list(got.counts)
        assert ask((0, 0), (8, 8), 2, 2) == [2, 2, 1, 3], "row by row from the smallest y"
        assert ask((0, 0), (8, 8), 1, 1) == [8]
        assert ask((0, 0), (8, 8), 8, 1) == [1, 0, 1, 1, 2, 0, 0, 3]
        assert ask((0, 0), (8, 8), 1, 2, layers=2) == [2, 2] and ask((0, 0), (8, 8), 1, 2, layers=1) == [2, 2]
        assert ask((100, 100), (101, 101), 3, 2) == [0] * 6
        assert sum(ask((-100, -100), (100, 100), 256, 256)) == len(at)
        assert sum(ask((4, 4), (4, 4), 3, 3)) == 1, "a point is a legal box"
        assert sum(ask((-3e38, -3e38), (3e38, 3e38), 2, 2)) == len(at)
        for bad in (dict(columns=0, rows=1), dict(columns=1, rows=0), dict(columns=257, rows=1), dict(columns=1, rows=257),
                    dict(columns=1 << 31, rows=1 << 31)):
            refused_query(r.c, "INVALID_ARGUMENT", r.space, density=pb.DensityQuery(box=aoi.bounds((0, 0), (1, 1)), **bad))
        for lo, hi in (((1, 0), (0, 1)), ((math.nan, 0), (1, 1)), ((0, 0), (math.inf, 1))):
            refused_query(r.c, "INVALID_ARGUMENT", r.space, density=pb.DensityQuery(box=aoi.bounds(lo, hi), columns=1, rows=1))
        refused_query(r.c, "INVALID_ARGUMENT", r.space, density=pb.DensityQuery(columns=1, rows=1))


@test
def observers_are_those_who_were_told():
    for r in Rig():
        players = [2, 3, 1 << 63, (1 << 64) - 1]
        r.ok(aoi.add(2, 1, 1), *[aoi.subscribe(p, 1) for p in players], aoi.open_player(50), aoi.subscribe(51, 2))

        def ask(**fields):
            return r.c.query(r.space, observers=pb.ObserversQuery(**fields))
        assert list(ask(id=2).ids) == [], "nothing was told yet"
        r.flush()
        assert sorted(ask(id=2).ids) == [1] + players and list(ask(id=1).ids) == []
        r.ok(aoi.move((2, 500, 500)))
        ids, cursor, pages = [], 0, 0
        while True:
            page = ask(id=2, cursor=cursor, limit=2)
            assert len(page.ids) <= 2 and (not ids or min(page.ids) > max(ids))
            ids, cursor, pages = ids + list(page.ids), page.next_cursor, pages + 1
            if not cursor:
                break
        assert sorted(ids) == [1] + players and pages == 3, "what was told, not what is so"
        r.flush()
        assert list(ask(id=2).ids) == []
        refused_query(r.c, "UNKNOWN_ENTITY", r.space, observers=pb.ObserversQuery(id=99))
        refused_query(r.c, "UNKNOWN_SPACE", 99, observers=pb.ObserversQuery(id=2))


@test
def why_names_the_rule_that_decides_with_its_numbers():
    for r in Rig(watch=False, leave_margin=2, update_tiers="5:1 20:2 *:8"):
        r.flush(aoi.add(1, 0, 0, radius=10), aoi.add(100, 0, 8, radius=3), aoi.subscribe(1, 1), aoi.subscribe(1, 100), aoi.open_player(1, mask=3),
                aoi.add(2, 3, 4, appeal=0.5), aoi.add(3, 9, 0), aoi.add(4, 30, 40), aoi.add(5, 1, 1, layers=4))
        r.ok(aoi.move((3, 11.5, 0)))

        def ask(entity, player=1):
            why = r.why(entity, player)
            assert why.text
            return why
        why = ask(2)
        assert (why.rule, why.told, why.seen, why.by_viewport, why.unit, why.distance, why.radius, why.appeal, why.margin, why.layers, why.mask) == (
            pb.RULE_RANGE, True, True, False, 1, 5, 10, 0.5, 2, 1, 3), why
        assert (why.rank, why.max_view, why.stay_left_ms, why.period) == (0, 0, 0, 1) or why.period == 1, why
        why = ask(3)
        assert (why.rule, why.told, why.seen, why.unit, why.distance, why.period) == (pb.RULE_LEAVE_MARGIN, True, True, 1, 11.5, 2), why
        why = ask(4)
        assert (why.rule, why.told, why.seen, why.unit, why.radius, why.period) == (pb.RULE_FAR, False, False, 100, 3, 8), why
        assert why.distance == math.sqrt(30 ** 2 + 32 ** 2), why
        why = ask(5)
        assert (why.rule, why.told, why.seen, why.layers, why.mask) == (pb.RULE_MASK, False, False, 4, 3), why
        assert ask(1).rule == pb.RULE_FAR or ask(1).unit == 100, "through the other unit only"
        r.ok(aoi.subscribe(1, 1, True))
        assert (ask(1).rule, ask(1).seen, ask(1).told) == (pb.RULE_INCLUDE_SELF, True, False)
        r.ok(aoi.hide(1, 2), aoi.show(1, 4))
        assert (ask(2).rule, ask(2).seen, ask(2).told) == (pb.RULE_HIDE, False, True)
        assert (ask(4).rule, ask(4).seen, ask(4).told) == (pb.RULE_SHOW, True, False)
        r.ok(aoi.set_viewport(2, (0, 0), (20, 10)))
        why = ask(2, 2)
        assert (why.rule, why.by_viewport, why.unit, why.distance, why.told) == (pb.RULE_RANGE, True, 0, math.hypot(7, 1), False), why
        why = ask(4, 2)
        assert (why.rule, why.by_viewport, why.unit, why.distance) == (pb.RULE_FAR, True, 0, math.hypot(20, 35)), why
        r.ok(aoi.open_player(3))
        why = ask(2, 3)
        assert (why.rule, why.unit, why.seen, why.told) == (pb.RULE_BLIND, 0, False, False), why
        r.flush()
        before = dict(r.c.view(r.space, 1))
        assert not ask(4, 2).told and ask(2, 2).told
        while r.c.ok(r.space, aoi.flush()).pending:
            pass
        assert set(before) == r.view(), "asking changes nothing"
        refused_query(r.c, "UNKNOWN_PLAYER", r.space, why=pb.WhyQuery(player=99, entity=2))
        refused_query(r.c, "UNKNOWN_ENTITY", r.space, why=pb.WhyQuery(player=1, entity=99))
        refused_query(r.c, "UNKNOWN_SPACE", 99, why=pb.WhyQuery(player=1, entity=2))


# --------------------------------------------------------------------------------------------------------------------- drain

@test
def sigterm_tells_everything_in_spite_of_tiers_and_budgets():
    with Daemon() as d, Connection(d.port) as c:
        c.ok(S, aoi.create_space(flush_ms=0, update_tiers="*:1000", max_enter_per_flush=1), aoi.add(1, 0, 0, radius=10), aoi.subscribe(1, 1),
             *[aoi.add(i, 1, i - 10) for i in range(10, 15)], aoi.flush())
        c.ok(S, aoi.set_space(flush_ms=100000), *[aoi.move((i, 2, i - 10)) for i in range(10, 15)])
        assert len(c.view(S, 1)) < 5
        d.signal()
        frames = c.frames_until_closed()
        d.wait()
        assert frames[-1].WhichOneof("kind") == "draining", frames
        assert {id: seen[:2] for id, seen in c.view(S, 1).items()} == {i: (2, i - 10) for i in range(10, 15)}

if __name__ == "__main__":
    main()
