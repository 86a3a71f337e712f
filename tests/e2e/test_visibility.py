"""test_visibility.py: every rule of visibility at once, over the wire, against brute force.

As in test_mirror.py two game servers talk to one daemon, but both own entities and players, pass them on to each other, and the space has
margins, limits, budgets and tiers that change while it runs. Each flush is compared whole: deltas with their messages, what observed entities'
owners are told, who lost what, and whether work is left.
"""
import math
import time

import aoiclient as aoi
from aoiclient import Connection, pb
from bruteforce import Told, canonical, distance2, f32
from harness import Daemon, eventually, main, seeded, test
from mirrorrun import GATEWAY, INDEXES, MOVER, RADII, SHAPES, Run

FLUSHES = 90
FOREVER = 1 << 31  # ms; no test lasts so long
HIDE, SHOW, NONE = pb.OVERRIDE_KIND_HIDE, pb.OVERRIDE_KIND_SHOW, pb.OVERRIDE_KIND_NONE
TIERS = ("", "", "10:1 40:3 *:7", "25.5:2 *:3", "*:5", "0:1 12.3:2 32:4 300:6", "1:1 2:2 4:3 8:4 16:5 32:6 64:7 128:8 *:9")
MARGINS = (0.0, 0.0, 0.1, 2.0, 2.0, 12.3, 12.3, 50.0, 1e-42, 3.4e38)
LENGTHS = RADII + (3e38,)


class Rules(Run):
    """A Run under all the rules."""

    def __init__(self, rng, mover, gateway, space, *args):
        super().__init__(rng, mover, gateway, space, *args)
        self.ids += [(1 << 64) - 1 - i for i in range(12)]  # near enough to wrap, were they added to a flush's number carelessly
        self.connections = {MOVER: mover, GATEWAY: gateway}
        self.stay = rng.choice((0, 0, FOREVER))  # later only 0: what entered before it was set is of no interest here
        self.set_space(min_stay_ms=self.stay)
        self.counter = 0

    def settings(self):
        r = self.rng
        some = dict(leave_margin=r.choice(MARGINS), max_view=r.choice((0, 0, 1, 5, 20)), max_enter_per_flush=r.choice((0, 0, 1, 3, 10)),
                    update_tiers=r.choice(TIERS))
        return {name: value for name, value in some.items() if r.random() < 0.6}

    def set_space(self, **settings):
        self.rng.choice((self.mover, self.gateway)).ok(self.space, aoi.set_space(**settings))
        self.world.set_space(**settings)

    # ---------------------------------------------------------------------------------------------- random commands

    def session(self, owner):
        return self.connections[owner].welcome.session

    def fields(self):
        r = self.rng
        return dict(extra=r.randrange(1 << 32), radius=r.choice(LENGTHS), payload=self.payload(), layers=r.choice((0, 1, 2, 3, 1 << 31, 0xffffffff)),
                    appeal=r.choice((0.0,) * 9 + (0.1, 0.1, 5.0, 5.0, 60.0, 60.0, 1e-42, 3e38)), priority=r.choice((0, 0, 0, 1, 7, 0xffffffff)),
                    report_observed=r.random() < 0.5)

    def add(self):
        id, fields, up = self.rng.choice(self.ids), self.fields(), self.rng.random() < 0.3
        at = self.position()
        code = self.world.add(self.me, id, *at, upsert=up, **fields)
        return (aoi.upsert if up else aoi.add)(id, *at, **fields), [(code, id)]

    def appeal(self):
        id, appeal = self.rng.choice(self.ids), self.rng.choice((0.0, 0.1, 7.0, 100.0))
        return aoi.set_appeal(id, appeal), [(self.world.set_appeal(self.me, id, appeal), id)]

    def priority(self):
        id, priority = self.rng.choice(self.ids), self.rng.choice((0, 1, 9))
        return aoi.set_priority(id, priority), [(self.world.set_priority(self.me, id, priority), id)]

    def publish(self):
        self.counter += 1
        data = b"" if self.rng.random() < 0.05 else b"%d" % self.counter
        r = self.rng.random()
        if r < 0.6:
            id = self.rng.choice(self.ids)
            return aoi.publish(id, data), [(self.world.publish(self.me, id, data), id)]
        a, b = [tuple(f32(c) for c in self.position()) for _ in range(2)]
        if self.rng.random() < 0.1:
            b = (3.4e38, -3.4e38, 3.4e38)
        if r < 0.8:
            return aoi.publish_at(*a, message=data), [(self.world.publish_in(a, a, data), 0)]
        lo, hi = tuple(map(min, a, b)), tuple(map(max, a, b))
        return aoi.publish_in(lo, hi, data), [(self.world.publish_in(lo, hi, data), 0)]

    def release(self):
        entities = [self.rng.choice(self.ids) for _ in range(self.rng.randrange(3))]
        players = [self.rng.choice(self.players) for _ in range(self.rng.randrange(2))]
        to = self.rng.choice((0, 0, MOVER, GATEWAY))
        outcome = [(self.world.release_entity(self.me, id, to), id) for id in entities]
        outcome += [(self.world.release_player(self.me, id, to), id) for id in players]
        return aoi.release(entities, players, self.session(to) if to else 0), outcome

    def adopt(self):
        released = [id for id, e in self.world.entities.items() if e.released is not None and e.owner != self.me]
        id = self.rng.choice(released if released and self.rng.random() < 0.8 else self.ids)
        return aoi.adopt(id), [(self.world.adopt(self.me, id), id)]

    def take_over(self):
        released = [id for id, p in self.world.players.items() if p.released is not None and p.owner != self.me]
        id = self.rng.choice(released if released and self.rng.random() < 0.8 else self.players)
        if id not in self.world.players or self.world.players[id].owner == self.me:
            return self.player_settings()
        settings = self.player_fields() | dict(keep_settings=self.rng.random() < 0.5)
        return aoi.open_player(id, take_over=True, **settings), [(self.world.open_player(self.me, id, take_over=True, **settings), id)]

    def player_fields(self):
        r = self.rng
        return dict(mask=r.choice((0, 0, 0, 1, 3, 1 << 31)), max_view=r.choice((0, 0, 2, 30)), leave_margin=r.choice(MARGINS),
                    max_enter_per_flush=r.choice((0, 0, 2, 5)), presence_only=r.random() < 0.3)

    def player_settings(self):
        id, settings = self.rng.choice(self.players), self.player_fields()
        return aoi.open_player(id, **settings), [(self.world.open_player(self.me, id, **settings), id)]

    def override(self):
        player, entity, kind = self.rng.choice(self.players), self.rng.choice(self.ids), self.rng.choice((HIDE, SHOW, NONE, NONE))
        return aoi.override(player, entity, kind), [(self.world.override(self.me, player, entity, kind), player)]

    # --------------------------------------------------------------------------------------------------------- steps

    def step(self, number):
        r = self.rng
        entity_commands = [self.add] * 6 + [self.move] * 6 + [self.publish] * 4 + [
            self.remove, self.readd, self.radius, self.layers, self.set_payload, self.appeal, self.priority, self.release, self.adopt]
        player_commands = [lambda: self.player_command(self.me, self.players)] * 8 + [self.override] * 3
        player_commands += [self.player_settings, self.take_over, self.release]
        for owner in r.sample((MOVER, GATEWAY), 2):
            self.me = owner
            made = [r.choice(entity_commands)() for _ in range(r.randrange(1, (16 if number else 60) // owner))]
            made += [r.choice(player_commands)() for _ in range(r.randrange(5))]
            self.send(self.connections[owner], made)
        if r.random() < 0.2:
            owner = r.choice((MOVER, GATEWAY))
            player = r.choice([0] + [id for id, p in self.world.players.items() if p.owner == owner])
            reply = self.connections[owner].call(resync=pb.Resync(space=self.space, player=player))
            assert reply.WhichOneof("kind") == "ack" and not reply.ack.errors_total, reply
            self.world.resync(owner, player)
        if r.random() < 0.15:
            self.set_space(**self.settings())
        if self.stay and number == FLUSHES // 2:
            self.stay = 0
            self.set_space(min_stay_ms=0)
        if number % 15 == 7:
            self.whys()
        self.flush(number)

    def settle(self):
        """Reads what precedes a flush: last deltas of closed players, and who lost what."""
        for owner, connection in self.connections.items():
            connection.ping()
            for d in connection.take_deltas():
                assert d.closed and not d.lost, "a delta without a flush: player %d" % d.player
            got = []
            for lost in connection.take_notices("lost"):
                assert lost.space == self.space
                got += [(owner, False, id) for id in lost.entities] + [(owner, True, id) for id in lost.players]
            want = [loss for loss in self.world.lost if loss[0] == owner]
            assert sorted(got) == sorted(want), "lost by %d: told %s, expected %s" % (owner, got, want)
            assert not connection.take_notices("observed"), "Observed without a flush"
        self.world.lost = []

    def flush(self, number):
        self.settle()
        tag = self.rng.randrange(1 << 64)
        flusher, other = self.rng.sample((self.mover, self.gateway), 2)
        ack = flusher.ok(self.space, aoi.flush(tag))
        other.ping()
        expected = self.world.flush()
        observed = self.world.observe()
        got = {}
        for owner, connection in self.connections.items():
            for d in connection.take_deltas():
                assert (d.space, d.flush, d.tag) == (self.space, self.world.flushes, tag), vars(d)
                assert d.player not in got, "two deltas for player %d" % d.player
                assert self.world.players[d.player].owner == owner
                got[d.player] = d
            self.compare_observed(number, connection, observed.get(owner, {}))
        for player, want in self.world.maybe.items():
            if player in got:
                want.seq = self.world.players[player].seq = self.world.players[player].seq + 1
                expected[player] = want
        assert set(got) == set(expected), "flush %d: deltas for %s, expected %s" % (number, sorted(got), sorted(expected))
        for player, want in expected.items():
            self.compare(number, player, got[player], want)
        for player, p in self.world.players.items():
            view = self.connections[p.owner].view(self.space, player)
            assert view == p.view(), "flush %d: the view of player %d" % (number, player)
            assert (self.space, player) not in self.connections[MOVER + GATEWAY - p.owner].views, "both believe player %d to be theirs" % player
        assert self.world.pending <= ack.pending <= self.world.may_pend, "flush %d: pending %s, expected %s to %s" % (
            number, ack.pending, self.world.pending, self.world.may_pend)

    @staticmethod
    def compare(number, player, got, want):
        """As Run's, but a tiered player may be told again what it knows."""
        again = {id: row for id, row in got.updates.items() if id not in want.updates and want.may_update.get(id) == row}
        want.updates.update(again)
        Run.compare(number, player, got, want)
        for section in ("messages", "lost", "seq"):
            a, b = getattr(got, section), getattr(want, section)
            assert a == b, "flush %d, player %d, %s: told\n%s\nexpected\n%s" % (number, player, section, a, b)

    def compare_observed(self, number, connection, want):
        got = {}
        frames = connection.take_notices("observed")
        assert len(frames) <= 1, "flush %d: Observed comes once a flush: %s" % (number, frames)
        for o in frames:
            assert o.space == self.space
            got.update((id, True) for id in o.observed_ids)
            got.update((id, False) for id in o.unobserved_ids)
        assert got == want, "flush %d: observed: told\n%s\nexpected\n%s" % (number, got, want)

    # ------------------------------------------------------------------------------------------------------- queries

    def whys(self):
        """Why, for every player and some entities, in the middle of a window."""
        for player in self.world.players:
            for id in self.rng.sample(sorted(self.world.entities), min(6, len(self.world.entities))):
                rule, told, seen = self.world.why(player, id, 0)
                got = self.gateway.query(self.space, why=pb.WhyQuery(player=player, entity=id))
                assert (got.rule, got.told) == (rule, told), "player %d, entity %d:\n%s\nexpected %s, told %s" % (
                    player, id, got, pb.Rule.Name(rule), told)
                assert got.seen == seen or rule == pb.RULE_ENTER_BUDGET, got
                e, p = self.world.entities[id], self.world.players[player]
                assert (got.layers, got.mask, got.appeal) == (e.layers, p.mask, e.appeal), got
                assert got.margin == (p.margin or self.world.margin) and got.max_view == (p.max_view or self.world.max_view), got
                rules, _, _ = self.world.resolve(p, 0)
                rank = self.world.rank(p, rules).index(id) + 1 if got.max_view and id in rules else 0
                assert got.rank == rank, "player %d, entity %d:\n%s\nexpected rank %d of %d" % (player, id, got, rank, len(rules))
                if rule == pb.RULE_FAR and id not in p.units and not self.world.in_margin(p, e):
                    units = [distance2(e.at, unit.at, self.world.axes) for unit in self.world.units(p)]  # the viewport only where there is none
                    nearest = math.sqrt(min(units, default=self.world.squared(p, e)))
                    assert got.distance == nearest, "%s, expected %s" % (got, nearest)
                assert got.period == (0 if p.presence_only else self.world.period(p, e)) and got.text, got

    def ask(self):
        """The other queries."""
        world, rng = self.world, self.rng
        self.queries()
        for _ in range(10):
            c, k = tuple(canonical(v) for v in self.position()), rng.choice((1, 3, 1000))
            far, layers = f32(rng.choice((0.0, 0.0, 5.0, 40.0, 300.0))), rng.choice((0, 1, 2))

            def squared(e):
                return distance2(e.at, c, world.axes)
            want = [e for e in world.entities.values() if (not layers or e.layers & layers) and (not far or squared(e) <= far * far)]
            want = [e.id for e in sorted(want, key=lambda e: (squared(e), e.id))[:k]]
            got = self.mover.query(self.space, nearest=pb.NearestQuery(x=c[0], y=c[1], z=c[2], k=k, max_distance=far, layers=layers))
            assert list(got.ids) == want and not got.next_cursor, "nearest to %s: %s, expected %s" % (c, got.ids, want)
        lo, hi = (self.base - 64.0, -64.0, -300.0), (self.base + 64.0, 64.0, 300.0)
        for columns, rows in ((1, 1), (4, 8), (256, 2)):
            got = self.mover.query(self.space, density=pb.DensityQuery(box=aoi.bounds(lo, hi), columns=columns, rows=rows))
            counts = [0] * (columns * rows)
            for id in world.box(lo, hi):
                at = world.entities[id].at
                column = min(int((at[0] - lo[0]) / 128 * columns), columns - 1)
                counts[min(int((at[1] - lo[1]) / 128 * rows), rows - 1) * columns + column] += 1
            assert (got.columns, got.rows, list(got.counts)) == (columns, rows, counts), got
        for id, e in world.entities.items():
            want = sorted(player for player, p in world.players.items() if world.held(p, id))
            got = self.mover.query(self.space, observers=pb.ObserversQuery(id=id, limit=5))
            ids = list(got.ids)
            while got.next_cursor:
                got = self.mover.query(self.space, observers=pb.ObserversQuery(id=id, limit=5, cursor=got.next_cursor))
                ids += got.ids
            assert sorted(ids) == want, "observers of %d: %s, expected %s" % (id, ids, want)
            got = self.mover.query(self.space, get_entity=pb.GetEntityQuery(id=id))
            assert (got.appeal, got.priority, got.report_observed) == (e.appeal, e.priority, e.report), got


class Timed(Rules):
    """A space that flushes by itself, under the rules that do not depend on what was told: where it grows quiet, views and Observed are the truth."""

    def __init__(self, *args):
        super().__init__(*args)
        self.stay = 0
        self.set_space(min_stay_ms=0)
        self.mover.ok(self.space, aoi.set_space(flush_ms=self.rng.choice((1, 2, 5))))
        self.known = 0  # births that the mirrors know of

    def settings(self):
        return dict(max_enter_per_flush=self.rng.choice((0, 1, 3, 10)), update_tiers=self.rng.choice(TIERS))

    def player_fields(self):
        return dict(mask=self.rng.choice((0, 0, 1, 3)), max_enter_per_flush=self.rng.choice((0, 0, 2)))

    def send(self, connection, made):
        super().send(connection, made)
        for space, id in list(connection.observed):  # of what is gone nothing is told, so forget it
            if id not in self.world.entities or self.world.entities[id].birth > self.known:
                connection.observed.pop((space, id))
        self.known = self.world.births

    def whys(self):
        pass

    def flush(self, number):
        """None: only a look at the end, and now and then at what is so until then."""
        self.world.lost = []
        if number % 30 == 29:
            self.settle_down()

    def settle_down(self):
        def flushes():
            for connection in self.connections.values():
                connection.ping()
            return self.mover.query(self.space, stats=pb.StatsQuery()).flushes

        def quiet():
            before = flushes()
            time.sleep(0.03)
            return flushes() == before
        eventually(quiet, "a space in which nothing changes goes on flushing")
        world = self.world
        world.sight = {}
        for id, p in world.players.items():
            want = {entity: world.entities[entity].seen() for entity in world.rules(p, 0)}
            assert self.connections[p.owner].view(self.space, id) == want, "the view of player %d" % id
            p.told = {entity: Told(world.entities[entity].birth, seen, None) for entity, seen in want.items()}
        for id, e in world.entities.items():
            now = any(id in p.told and id not in p.units for p in world.players.values())
            told = self.connections[e.owner].observed.get((self.space, id), False)
            assert not e.report or told == now, "entity %d: observed %s, told %s" % (id, now, told)


def run(dimensions, shape, index, base=0.0):
    rng = seeded("%dD %s %s" % (dimensions, shape, index))
    with Daemon() as d, Connection(d.port, name="mover") as mover, Connection(d.port, name="gateway") as gateway:
        r = Rules(rng, mover, gateway, rng.choice((1, 77, (1 << 64) - 1)), dimensions, SHAPES[shape], INDEXES[index], base)
        for number in range(FLUSHES):
            r.step(number)
        r.ask()


def register(dimensions, shape, index):
    def fn():
        run(dimensions, shape, index)
    fn.__name__ = "every_rule_equals_brute_force_in_%dd_%s_on_%s" % (dimensions, shape, index)
    test(fn)


for dims in (2, 3):
    for shape_name in SHAPES:
        for index_name in INDEXES:
            register(dims, shape_name, index_name)


@test
def every_rule_equals_brute_force_eight_million_away_from_the_origin():
    for index in INDEXES:
        for shape in SHAPES:
            run(2, shape, index, base=8000000.0)


@test
def a_timed_space_grows_quiet_with_every_view_and_observation_true():
    for index in INDEXES:
        for shape in SHAPES:
            rng = seeded("timed %s %s" % (shape, index))
            with Daemon() as d, Connection(d.port, name="mover") as mover, Connection(d.port, name="gateway") as gateway:
                r = Timed(rng, mover, gateway, 1, 2, SHAPES[shape], INDEXES[index])
                for number in range(FLUSHES):
                    r.step(number)


if __name__ == "__main__":
    main()
