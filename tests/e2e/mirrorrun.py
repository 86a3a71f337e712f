"""mirrorrun.py: random commands for a space of the daemon and for its twin in brute force, and the comparison of what each flush tells."""
import math

import aoiclient as aoi
from aoiclient import pb
from bruteforce import World, canonical, distance2, f32

MOVER, GATEWAY = 1, 2
SHAPES = {"box": pb.SHAPE_BOX, "sphere": pb.SHAPE_SPHERE, "cells": pb.SHAPE_CELLS}
INDEXES = {"grid": pb.INDEX_GRID, "crosslist": pb.INDEX_CROSSLIST}
RADII = (0.0, 0.1, 0.3, 3.0, 12.3, 10.0, 10.0, 25.5, 32.0, 40.0, 300.0, 1e-42)


class Run:
    """One space, its twin in brute force, and random commands for both."""

    def __init__(self, rng, mover, gateway, space, dimensions, shape, index, base=0.0):
        self.rng, self.mover, self.gateway, self.space, self.base = rng, mover, gateway, space, base
        extra = rng.random() < 0.7
        cell_size, cell_range = rng.choice((4.0, 10.0, 32.0, 0.3)), rng.choice((1, 1, 2, 5))
        settings = dict(dimensions=dimensions, shape=shape, index=index, cell_size=cell_size, cell_range=cell_range, extra=extra)
        self.world = World(dimensions, shape, cell_size, cell_range, extra)
        if rng.random() < 0.5:
            lo, hi = (base - 200.0, -200.0, -200.0), (base + 200.0, 200.0, 200.0)
            settings["bounds"] = aoi.bounds(lo, hi)
            self.world.lo, self.world.hi = lo, hi
        mover.ok(space, aoi.create_space(flush_ms=0, **settings))
        self.ids = [rng.choice((rng.randrange(1, 1000), rng.randrange(1 << 63, 1 << 64))) for _ in range(150)]
        self.players = list(range(1, 8)) + [(1 << 64) - 1]
        self.mine = 1 << 40  # the mover's own player
        self.me = MOVER  # whose entity commands are made now

    # -------------------------------------------------------------------------------------------------- random values

    def coordinate(self):
        r = self.rng.random()
        if r < 0.35:
            return self.rng.uniform(-60, 60)
        if r < 0.6:
            return float(self.rng.randrange(-40, 41))
        if r < 0.8:
            return self.rng.randrange(-300, 301) * 0.1
        if r < 0.97:
            return self.rng.uniform(-199, 199)
        return self.rng.choice((0.0, -0.0, 1e-40, -1e-40, 200.0, -200.0, 32.0, -32.0))

    def position(self):
        """Anywhere, or exactly at the edge of what some entity sees."""
        if self.world.entities and self.rng.random() < 0.15:
            e = self.world.entities[self.rng.choice(sorted(self.world.entities))]
            at = list(e.pos)
            axis = self.rng.randrange(self.world.dims)
            for a, part in zip((axis, (axis + 1) % self.world.dims), self.rng.choice(((1.0, 0.0), (-0.6, 0.8), (0.8, 0.6), (1.0, 1.0)))):
                at[a] = f32(at[a] + part * e.radius)
            if all(max(lo, -1e6) <= c <= min(hi, 9e6) for lo, c, hi in zip(self.world.lo, at, self.world.hi)):
                return tuple(at)
        return self.base + self.coordinate(), self.coordinate(), self.coordinate() if self.world.dims == 3 else 0.0

    def bad_position(self):
        bad = self.rng.choice((math.nan, math.inf, -math.inf, 3e38, 16777218.0))
        at = list(self.position())
        at[self.rng.randrange(self.world.dims)] = bad
        return tuple(at)

    def payload(self):
        return self.rng.choice((b"", b"a", b"b", bytes(self.rng.randrange(256) for _ in range(self.rng.randrange(1, 40)))))

    def nearby(self, e):
        """A small step, or a value it has just had."""
        if self.rng.random() < 0.2:
            return e.pos
        return tuple(f32(c + self.rng.choice((-1.0, -0.1, 0.0, 0.1, 1.0, 5.0))) for c in e.pos)

    # ---------------------------------------------------------------------------------------------- random commands
    # Each returns the command, and a list of (items, code, id): what brute force says of each item of it.

    def add(self):
        id = self.rng.choice(self.ids)
        fresh = id not in self.world.entities  # one thing wrong at a time
        x, y, z = self.bad_position() if fresh and self.rng.random() < 0.05 else self.position()
        fields = dict(extra=self.rng.randrange(1 << 32), radius=self.rng.choice(RADII), payload=self.payload(),
                      layers=self.rng.choice((0, 1, 2, 3, 1 << 31, 0xffffffff)))
        if fresh and abs(x) + abs(y) + abs(z) < 1e7 + self.base and self.rng.random() < 0.05:
            fields["radius"] = self.rng.choice((-1.0, math.nan, math.inf))
        up = self.rng.random() < 0.4
        code = self.world.add(self.me, id, x, y, z, upsert=up, **fields)
        return (aoi.upsert if up else aoi.add)(id, x, y, z, **fields), [(code, id)]

    def move(self):
        rows, extras, outcome = [], [], []
        with_extra = self.rng.random() < 0.5
        for _ in range(self.rng.randrange(1, 30)):
            id = self.rng.choice(self.ids)
            e = self.world.entities.get(id)
            at = self.nearby(e) if e and self.rng.random() < 0.7 else self.position()
            if e and e.owner == self.me and self.rng.random() < 0.03:
                at = self.bad_position()
            extra = self.rng.choice((0, 7, self.rng.randrange(1 << 32)))
            outcome.append((self.world.move(self.me, id, *at, extra=extra if with_extra else None), id))
            rows.append((id,) + (at if self.world.dims == 3 else at[:2]))
            extras.append(extra)
        return aoi.move(*rows, extra=extras if with_extra else None), outcome

    def remove(self):
        ids = [self.rng.choice(self.ids) for _ in range(self.rng.randrange(1, 4))]
        return aoi.remove(*ids), [(self.world.remove(self.me, id), id) for id in ids]

    def readd(self):
        """Leaves and enters in one delta: the same id again is a new entity."""
        id = self.rng.choice(self.ids)
        return aoi.remove(id), [(self.world.remove(self.me, id), id)]

    def radius(self):
        id, radius = self.rng.choice(self.ids), self.rng.choice(RADII)
        return aoi.set_radius(id, radius), [(self.world.set_radius(self.me, id, radius), id)]

    def layers(self):
        id, layers = self.rng.choice(self.ids), self.rng.choice((0, 1, 2, 1 << 31))
        return aoi.set_layers(id, layers), [(self.world.set_layers(self.me, id, layers), id)]

    def set_payload(self):
        id, payload = self.rng.choice(self.ids), self.payload()
        return aoi.set_payload(id, payload), [(self.world.set_payload(self.me, id, payload), id)]

    def steal(self):
        """The gateway tries to use the mover's entities."""
        id = self.rng.choice(self.ids)
        kind = self.rng.randrange(4)
        if kind == 0:
            return aoi.move((id, 1.0, 1.0, 1.0)), [(self.world.move(GATEWAY, id, 1.0, 1.0, 1.0), id)]
        if kind == 1:
            return aoi.remove(id), [(self.world.remove(GATEWAY, id), id)]
        if kind == 2:
            return aoi.set_radius(id, 5.0), [(self.world.set_radius(GATEWAY, id, 5.0), id)]
        return aoi.set_layers(id, 9), [(self.world.set_layers(GATEWAY, id, 9), id)]

    def player_command(self, owner, players):
        player, r = self.rng.choice(players), self.rng.random()
        foreign = player in self.world.players and self.world.players[player].owner != owner
        if r < 0.15:
            mask = self.rng.choice((0, 1, 2, 1 << 31, 5))
            return aoi.open_player(player, mask), [(self.world.open_player(owner, player, mask), player)]
        if r < 0.2:
            return aoi.close_player(player), [(self.world.close_player(owner, player), player)]
        if r < 0.6:
            entity, self_too = self.rng.choice((foreign and sorted(self.world.entities)) or self.ids), self.rng.random() < 0.4
            code = self.world.subscribe(owner, player, entity, self_too)
            return aoi.subscribe(player, entity, self_too), [(code, player if code == pb.CODE_NOT_OWNER else entity)]
        if r < 0.75:
            known = self.world.players.get(player)
            entity = self.rng.choice(sorted(known.units)) if known and known.units and self.rng.random() < 0.7 else self.rng.choice(self.ids)
            code = self.world.unsubscribe(owner, player, entity)
            return aoi.unsubscribe(player, entity), [(code, entity if code == pb.CODE_UNKNOWN_ENTITY else player)]
        if r < 0.92:
            a, b = [tuple(canonical(c) for c in self.position()) for _ in range(2)]
            lo, hi = tuple(map(min, a, b)), tuple(map(max, a, b))
            if self.rng.random() < 0.1:
                lo = hi  # a point
            if not foreign and self.rng.random() < 0.05:
                lo, hi = (hi, lo)
            return aoi.set_viewport(player, lo, hi), [(self.world.set_viewport(owner, player, lo, hi), player)]
        return aoi.clear_viewport(player), [(self.world.clear_viewport(owner, player), player)]

    # --------------------------------------------------------------------------------------------------------- steps

    def send(self, connection, made):
        """Sends a batch of (command, outcome) and compares the Ack with what brute force said."""
        ack = connection.batch(self.space, *[command for command, _ in made])
        errors = [(index, code, id) for index, (_, outcome) in enumerate(made) for code, id in outcome if code]
        assert [(e.index, e.code, e.id) for e in ack.errors] == errors, "%s\nexpected %s of\n%s" % (ack, errors, made)
        assert ack.errors_total == len(errors)
        assert ack.applied == sum(1 for _, outcome in made for code, _ in outcome if not code), ack

    def step(self, number):
        commands = [self.add] * 6 + [self.move] * 6 + [self.remove, self.readd, self.radius, self.layers, self.set_payload]
        self.send(self.mover, [self.rng.choice(commands)() for _ in range(self.rng.randrange(1, 25 if number else 60))])
        made = [self.player_command(GATEWAY, self.players) for _ in range(self.rng.randrange(0, 8))]
        made += [self.player_command(GATEWAY, [self.mine]) for _ in range(self.rng.randrange(2)) if self.mine in self.world.players]
        made += [self.steal() for _ in range(self.rng.randrange(2))]
        if made:
            self.send(self.gateway, made)
        self.send(self.mover, [self.player_command(MOVER, [self.mine]) for _ in range(self.rng.randrange(2))])
        if self.rng.random() < 0.25:
            player = self.rng.choice([0] + [p for p in self.players if p in self.world.players])
            reply = self.gateway.call(resync=pb.Resync(space=self.space, player=player))
            assert reply.WhichOneof("kind") == "ack" and not reply.ack.errors_total, reply
            self.world.resync(GATEWAY, player)
        self.flush(number)

    def flush(self, number):
        for connection in (self.mover, self.gateway):
            connection.ping()  # what follows its last Ack has come
            for d in connection.take_deltas():
                assert d.closed, "a delta without a flush: player %d" % d.player
        tag = self.rng.randrange(1 << 64)
        flusher, other = self.rng.sample((self.mover, self.gateway), 2)
        ack = flusher.ok(self.space, aoi.flush(tag))
        assert not ack.pending, ack
        other.ping()  # the Pong comes after the deltas
        expected = self.world.flush()
        got = {}
        for connection, owner in ((self.mover, MOVER), (self.gateway, GATEWAY)):
            for d in connection.take_deltas():
                assert (d.space, d.flush, d.tag) == (self.space, self.world.flushes, tag), vars(d)
                assert d.player not in got, "two deltas for player %d" % d.player
                assert self.world.players[d.player].owner == owner
                got[d.player] = d
        assert set(got) == set(expected), "flush %d: deltas for %s, expected %s" % (number, sorted(got), sorted(expected))
        for player, want in expected.items():
            self.compare(number, player, got[player], want)
        for player, p in self.world.players.items():
            view = (self.mover if p.owner == MOVER else self.gateway).view(self.space, player)
            assert view == p.view(), "flush %d: the view of player %d" % (number, player)

    @staticmethod
    def compare(number, player, got, want):
        for section in ("full", "leaves", "enters", "updates", "payloads", "layers"):
            a, b = getattr(got, section), getattr(want, section)
            assert a == b, "flush %d, player %d, %s: told\n%s\nexpected\n%s" % (number, player, section, a, b)

    def queries(self):
        """Queries over the wire, by the same brute force."""
        rng, world = self.rng, self.world
        for _ in range(10):
            a, b = [tuple(canonical(v) for v in self.position()) for _ in range(2)]
            lo, hi = tuple(map(min, a, b)), tuple(map(max, a, b))
            layers = rng.choice((0, 0, 1, 2))
            want = {id for id in world.box(lo, hi) if not layers or world.entities[id].layers & layers}
            got = paged(self.gateway, self.space, lambda c: dict(aabb=pb.AabbQuery(box=aoi.bounds(lo, hi), layers=layers, cursor=c, limit=7)))
            assert sorted(got) == sorted(want)
            for id, row in got.items():
                assert row == world.entities[id].seen()[:5]
            count = self.gateway.query(self.space, count=pb.CountQuery(box=aoi.bounds(lo, hi), layers=layers))
            assert count.entities == len(want), count
            c, r = a, f32(rng.choice((0.0, 5.0, 40.0)))
            want = {e.id for e in world.entities.values() if distance2(e.pos, c, world.axes) <= r * r}
            got = paged(self.gateway, self.space, lambda k: dict(radius=pb.RadiusQuery(x=c[0], y=c[1], z=c[2], radius=r, cursor=k, limit=3)))
            assert sorted(got) == sorted(want)
        for player, p in world.players.items():
            ids, cursor = [], 0
            while True:
                page = self.gateway.query(self.space, view=pb.ViewQuery(player=player, cursor=cursor, limit=5))
                ids += page.ids
                cursor = page.next_cursor
                if not cursor:
                    break
            assert sorted(ids) == sorted(p.told), "the View query of player %d" % player
        for id, e in list(world.entities.items())[:10]:
            got = self.gateway.query(self.space, get_entity=pb.GetEntityQuery(id=id))
            assert (got.x, got.y, got.z, got.extra, got.layers, got.payload) == e.seen() and got.radius == e.radius
            assert got.owner_session == (self.mover if e.owner == MOVER else self.gateway).welcome.session
            assert got.subscribers == sum(1 for p in world.players.values() if id in p.units)


def paged(connection, space, query):
    """All rows of a paged query: id -> (x, y, z, extra, layers). Pages ascend and repeat nothing."""
    rows, cursor, last = {}, 0, 0
    while True:
        page = connection.query(space, **query(cursor))
        n = len(page.ids)
        assert n or not cursor, "an empty page that is not the first"
        assert len(page.x) == len(page.y) == len(page.layers) == n and len(page.z) in (0, n) and len(page.extra) in (0, n)
        assert not n or min(page.ids) > last
        last = max(page.ids, default=last)
        zs, extras = page.z or [0.0] * n, page.extra or [0] * n
        for row in zip(page.ids, page.x, page.y, zs, extras, page.layers):
            assert row[0] not in rows
            rows[row[0]] = row[1:]
        cursor = page.next_cursor
        if not cursor:
            return rows
