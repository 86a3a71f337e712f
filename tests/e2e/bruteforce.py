"""bruteforce.py: a world in the simplest way, to compare the daemon with: every player against every entity, by the letter of the visibility rules.

Commands return 0 or the code that the daemon must answer. flush() returns the exact delta that each player must get.
"""
import math
import struct

from aoiclient import pb

LIMIT = 16777216.0  # 2^24
_float = struct.Struct("<f")


def f32(x):
    """The nearest 32-bit float; infinite where there is none."""
    try:
        return _float.unpack(_float.pack(x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def canonical(x):
    """What a space keeps of a coordinate: a 32-bit float of which denormals and -0.0 are 0."""
    x = f32(x)
    return 0.0 if abs(x) < 2.0 ** -126 else x


class Entity:
    __slots__ = ("id", "birth", "pos", "extra", "radius", "layers", "payload", "owner")

    def seen(self):
        return self.pos + (self.extra, self.layers, self.payload)


class Player:
    def __init__(self, owner):
        self.owner, self.mask, self.units, self.viewport = owner, 0xffffffff, {}, None
        self.told = {}  # id -> (birth, seen())
        self.full = False


class Delta:
    def __init__(self):
        self.leaves, self.enters, self.updates, self.payloads, self.layers, self.full = set(), {}, {}, {}, {}, False

    def __bool__(self):
        return bool(self.leaves or self.enters or self.updates or self.payloads or self.layers or self.full)


class World:
    def __init__(self, dimensions=2, shape=pb.SHAPE_BOX, cell_size=32.0, cell_range=1, extra=False, lo=None, hi=None):
        self.dims, self.shape, self.cell_size, self.cell_range, self.has_extra = dimensions, shape, cell_size, cell_range, extra
        self.lo, self.hi = lo or (-LIMIT,) * 3, hi or (LIMIT,) * 3
        self.entities, self.players, self.births, self.flushes = {}, {}, 0, 0

    # ------------------------------------------------------------------------------------------------------ commands

    def _position(self, x, y, z):
        pos = [x, y, z if self.dims == 3 else 0.0]
        if not all(math.isfinite(f32(c)) for c in pos):
            return pb.CODE_INVALID_ARGUMENT, None
        pos = tuple(canonical(c) for c in pos)
        for axis in range(self.dims):
            if abs(pos[axis]) > LIMIT or not self.lo[axis] <= pos[axis] <= self.hi[axis]:
                return pb.CODE_OUT_OF_BOUNDS, None
        return 0, pos

    def _owned(self, owner, id):
        e = self.entities.get(id)
        if not e:
            return pb.CODE_UNKNOWN_ENTITY
        return 0 if e.owner == owner else pb.CODE_NOT_OWNER

    def add(self, owner, id, x, y, z=0.0, extra=0, radius=0.0, layers=0, payload=b"", upsert=False):
        radius = f32(radius)
        if id == 0 or not math.isfinite(radius) or radius < 0:
            return pb.CODE_INVALID_ARGUMENT
        code, pos = self._position(x, y, z)
        if code:
            return code
        known = self.entities.get(id)
        if known and not upsert:
            return pb.CODE_DUPLICATE_ENTITY
        if known and known.owner != owner:
            return pb.CODE_NOT_OWNER
        e = known or Entity()
        if not known:
            self.births += 1
            e.id, e.birth, e.owner = id, self.births, owner
        e.pos, e.radius, e.layers, e.payload = pos, canonical(radius), layers or 1, payload
        e.extra = extra if self.has_extra else 0
        self.entities[id] = e
        return 0

    def move(self, owner, id, x, y, z=0.0, extra=None):
        code = self._owned(owner, id)
        if code:
            return code
        code, pos = self._position(x, y, z)
        if not code:
            self.entities[id].pos = pos
            if extra is not None and self.has_extra:
                self.entities[id].extra = extra
        return code

    def remove(self, owner, id):
        code = self._owned(owner, id)
        if not code:
            del self.entities[id]
            for p in self.players.values():
                p.units.pop(id, None)
        return code

    def set_radius(self, owner, id, radius):
        if not math.isfinite(f32(radius)) or radius < 0:
            return pb.CODE_INVALID_ARGUMENT
        code = self._owned(owner, id)
        if not code:
            self.entities[id].radius = canonical(radius)
        return code

    def set_layers(self, owner, id, layers):
        code = self._owned(owner, id)
        if not code:
            self.entities[id].layers = layers
        return code

    def set_payload(self, owner, id, payload):
        code = self._owned(owner, id)
        if not code:
            self.entities[id].payload = payload
        return code

    def _player(self, owner, id, make=False):
        p = self.players.get(id)
        if not p and make:
            p = self.players[id] = Player(owner)
        if not p:
            return pb.CODE_UNKNOWN_PLAYER
        return 0 if p.owner == owner else pb.CODE_NOT_OWNER

    def open_player(self, owner, player, mask=0):
        code = self._player(owner, player, True)
        if not code:
            self.players[player].mask = mask or 0xffffffff
        return code

    def close_player(self, owner, player):
        code = self._player(owner, player)
        if not code:
            del self.players[player]
        return code

    def subscribe(self, owner, player, entity, include_self=False):
        if player in self.players and self.players[player].owner != owner:
            return pb.CODE_NOT_OWNER
        if entity not in self.entities:
            return pb.CODE_UNKNOWN_ENTITY
        self._player(owner, player, True)
        self.players[player].units[entity] = include_self
        return 0

    def unsubscribe(self, owner, player, entity):
        code = self._player(owner, player)
        if not code and self.players[player].units.pop(entity, None) is None:
            code = pb.CODE_UNKNOWN_ENTITY
        return code

    def set_viewport(self, owner, player, lo, hi):
        lo, hi = [tuple(f32(c) for c in b)[:self.dims] for b in (lo, hi)]
        if not all(math.isfinite(c) for c in lo + hi) or any(a > b for a, b in zip(lo, hi)):
            return pb.CODE_INVALID_ARGUMENT
        code = self._player(owner, player, True)
        if not code:
            self.players[player].viewport = (lo, hi)
        return code

    def clear_viewport(self, owner, player):
        code = self._player(owner, player)
        if not code:
            self.players[player].viewport = None
        return code

    def resync(self, owner, player):
        """player 0: all of the owner's."""
        for id, p in self.players.items():
            if p.owner == owner and player in (0, id):
                p.full = True

    # ---------------------------------------------------------------------------------------------------- visibility

    def unit_sees(self, e):
        """The set of entities that one unit sees."""
        if e.radius == 0:
            return set()
        if self.shape == pb.SHAPE_CELLS:
            return self._same_cells(e)
        axes = range(self.dims)
        if self.shape == pb.SHAPE_SPHERE:
            r2 = e.radius * e.radius
            return {t.id for t in self.entities.values() if t is not e and sum((t.pos[a] - e.pos[a]) ** 2 for a in axes) <= r2}
        lo = [f32(e.pos[a] - e.radius) for a in axes]
        hi = [f32(e.pos[a] + e.radius) for a in axes]
        return {t.id for t in self.entities.values() if t is not e and all(lo[a] <= t.pos[a] <= hi[a] for a in axes)}

    def _same_cells(self, e):
        def cell(t):
            return [math.floor(t.pos[a] / self.cell_size) for a in range(self.dims)]
        mine = cell(e)
        return {t.id for t in self.entities.values() if t is not e and all(abs(a - b) <= self.cell_range for a, b in zip(cell(t), mine))}

    def box(self, lo, hi):
        return {t.id for t in self.entities.values() if all(lo[a] <= t.pos[a] <= hi[a] for a in range(self.dims))}

    def visible(self, player, sight):
        """Ids that the player sees; `sight` caches what a unit sees among the players of one flush."""
        seen, always = set(), set()
        for id, include_self in player.units.items():
            if id not in sight:
                sight[id] = self.unit_sees(self.entities[id])
            seen |= sight[id]
            if include_self:
                always.add(id)
        if player.viewport:
            seen |= self.box(*player.viewport)
        return {id for id in seen if self.entities[id].layers & player.mask} | always

    # --------------------------------------------------------------------------------------------------------- flush

    def flush(self):
        """player -> the Delta that it must get; players of whom nothing changed are left out."""
        self.flushes += 1
        sight, out = {}, {}
        for id, player in self.players.items():
            delta = self._compare(player, self.visible(player, sight))
            if delta:
                out[id] = delta
        return out

    def _compare(self, player, visible):
        delta, told = Delta(), {}
        for id in visible:
            e = self.entities[id]
            now, before = e.seen(), player.told.get(id)
            told[id] = (e.birth, now)
            if player.full or not before or before[0] != e.birth:
                delta.enters[id] = now
                continue
            then = before[1]
            if then[:4] != now[:4]:
                delta.updates[id] = now[:4]
            if then[4] != now[4]:
                delta.layers[id] = now[4]
            if then[5] != now[5]:
                delta.payloads[id] = now[5]
        if not player.full:
            delta.leaves = {id for id, (birth, _) in player.told.items() if id not in told or told[id][0] != birth}
        delta.full, player.full, player.told = player.full, False, told
        return delta
