"""bruteforce.py: a world in the simplest way, to compare the daemon with: every player against every entity, by the letter of the visibility rules.

Commands return 0 or the code that the daemon must answer. flush() returns the exact delta that each player must get.
"""
import math
import struct

from aoiclient import pb

LIMIT = 16777216.0  # 2^24
ALL = 0xffffffff
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


def length_code(x):
    """Radii, appeals and margins are finite and not negative."""
    x = f32(x)
    return 0 if math.isfinite(x) and x >= 0 else pb.CODE_INVALID_ARGUMENT


def tiers(text):
    """'30:1 60:2 *:4' -> ([(30.0, 1), (60.0, 2)], 4)."""
    near, beyond = [], 1
    for word in text.split():
        distance, period = word.split(":")
        if distance == "*":
            beyond = int(period)
        else:
            near.append((f32(float(distance)), int(period)))
    return near, beyond


def distance2(a, b, axes):
    """In doubles; a product, since pow() need not be exact."""
    return sum((a[i] - b[i]) * (a[i] - b[i]) for i in axes)


class Entity:
    __slots__ = ("id", "birth", "at", "low", "high", "extra", "radius", "layers", "payload", "owner", "reach", "priority", "report", "released",
                 "observed", "restated")

    def __init__(self):
        self.at, self.reach, self.released = (0.0, 0.0, 0.0), 0.0, None
        self.observed, self.restated = False, False  # what the owner was told; whether it is told anew, whatever it is
        self.report = False

    @property
    def pos(self):
        return self.at

    @pos.setter
    def pos(self, value):
        self.at = value
        self._extent()

    @property
    def appeal(self):
        return self.reach

    @appeal.setter
    def appeal(self, value):
        self.reach = value
        self._extent()

    def _extent(self):
        self.low = tuple(f32(c - self.reach) for c in self.at)
        self.high = tuple(f32(c + self.reach) for c in self.at)

    def seen(self):
        return self.at + (self.extra, self.layers, self.payload)


class Told:
    """What a player was told of an entity: whose birth, its state, when it entered."""

    def __init__(self, birth, seen, since):
        self.birth, self.seen, self.since = birth, seen, since
        self.late = False  # it was elsewhere at a flush at which it was not due: it may be told again what it was told


class Player:
    def __init__(self, owner):
        self.owner, self.units, self.viewport, self.overrides, self.released = owner, {}, None, {}, None
        self.mask, self.max_view, self.margin, self.max_enter, self.presence_only = ALL, 0, 0.0, 0, False
        self.told = {}  # id -> Told
        self.full, self.seq = False, 0

    def view(self):
        return {id: told.seen for id, told in self.told.items()}


class Delta:
    def __init__(self):
        self.leaves, self.enters, self.updates, self.payloads, self.layers, self.messages, self.full = set(), {}, {}, {}, {}, [], False
        self.may_update = {}  # updates that tell what was told already, which a tiered player may get
        self.lost = 0
        self.seq = 0

    def __bool__(self):
        return bool(self.leaves or self.enters or self.updates or self.payloads or self.layers or self.messages or self.full)


class Message:
    """entity: the one that publishes, or None; box: the point or box."""

    def __init__(self, entity, box, data):
        self.entity, self.box, self.data = entity, box, data


class World:
    def __init__(self, dimensions=2, shape=pb.SHAPE_BOX, cell_size=100.0, cell_range=1, extra=False, lo=None, hi=None):
        self.dims, self.shape, self.cell_size, self.cell_range, self.has_extra = dimensions, shape, cell_size, cell_range, extra
        self.axes = range(dimensions)
        self.lo, self.hi = lo or (-LIMIT,) * 3, hi or (LIMIT,) * 3
        self.margin, self.min_stay, self.max_view, self.max_enter, self.tiers = 0.0, 0, 0, 0, ([], 1)
        self.entities, self.players, self.births, self.flushes = {}, {}, 0, 0
        self.messages = []
        self.lost = []  # (owner, is it a player, id), not told yet
        self.pending, self.may_pend = False, False  # of the last flush: it left work; it may say so
        self.sight, self.maybe = {}, {}

    # ------------------------------------------------------------------------------------------------------ entities

    def _position(self, x, y, z):
        pos = [x, y, z if self.dims == 3 else 0.0]
        if not all(math.isfinite(f32(c)) for c in pos):
            return pb.CODE_INVALID_ARGUMENT, None
        pos = tuple(canonical(c) for c in pos)
        for axis in self.axes:
            if abs(pos[axis]) > LIMIT or not self.lo[axis] <= pos[axis] <= self.hi[axis]:
                return pb.CODE_OUT_OF_BOUNDS, None
        return 0, pos

    def _owned(self, owner, id):
        e = self.entities.get(id)
        if not e:
            return pb.CODE_UNKNOWN_ENTITY
        return 0 if e.owner == owner else pb.CODE_NOT_OWNER

    def add(self, owner, id, x, y, z=0.0, extra=0, radius=0.0, layers=0, payload=b"", upsert=False, appeal=0.0, priority=0, report_observed=False):
        if id == 0 or length_code(radius) or length_code(appeal):
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
        e.restated = bool(known) and report_observed
        e.appeal, e.priority, e.report = canonical(appeal), priority, report_observed
        e.extra = extra if self.has_extra else 0
        self.entities[id] = e
        return 0

    def adopt(self, owner, id):
        if id == 0:
            return pb.CODE_INVALID_ARGUMENT
        e = self.entities.get(id)
        if not e:
            return pb.CODE_UNKNOWN_ENTITY
        if e.owner != owner and e.released not in (0, owner):
            return pb.CODE_NOT_OWNER
        if e.owner != owner:
            self.lost.append((e.owner, False, id))
        e.owner, e.released, e.restated = owner, None, True
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

    def _set(self, owner, id, field, value):
        code = self._owned(owner, id)
        if not code:
            setattr(self.entities[id], field, value)
        return code

    def set_radius(self, owner, id, radius):
        return length_code(radius) or self._set(owner, id, "radius", canonical(radius))

    def set_appeal(self, owner, id, appeal):
        return length_code(appeal) or self._set(owner, id, "appeal", canonical(appeal))

    def set_priority(self, owner, id, priority):
        return self._set(owner, id, "priority", priority)

    def set_layers(self, owner, id, layers):
        return self._set(owner, id, "layers", layers)

    def set_payload(self, owner, id, payload):
        return self._set(owner, id, "payload", payload)

    def release_entity(self, owner, id, to=0):
        return self._set(owner, id, "released", to)

    # ------------------------------------------------------------------------------------------------------- players

    def _player(self, owner, id, make=False):
        p = self.players.get(id)
        if not p and make:
            p = self.players[id] = Player(owner)
        if not p:
            return pb.CODE_UNKNOWN_PLAYER
        return 0 if p.owner == owner else pb.CODE_NOT_OWNER

    def open_player(self, owner, player, mask=0, max_view=0, leave_margin=0.0, max_enter_per_flush=0, presence_only=False, take_over=False,
                    keep_settings=False):
        p = self.players.get(player)
        if p and p.owner != owner and take_over and p.released in (0, owner):
            self.lost.append((p.owner, True, player))
            p.owner, p.released, p.full = owner, None, True
        code = self._player(owner, player, True)
        if not code and not (p and keep_settings):
            p = self.players[player]
            p.full = p.full or (p.presence_only and not presence_only)
            p.mask, p.max_view, p.margin, p.max_enter = mask or ALL, max_view, canonical(leave_margin), max_enter_per_flush
            p.presence_only = presence_only
        return code

    def release_player(self, owner, player, to=0):
        code = self._player(owner, player)
        if not code:
            self.players[player].released = to
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

    def override(self, owner, player, entity, kind):
        code = self._player(owner, player)
        if not code and kind == pb.OVERRIDE_KIND_NONE:
            self.players[player].overrides.pop(entity, None)
        elif not code:
            self.players[player].overrides[entity] = kind
        return code

    def resync(self, owner, player):
        """player 0: all of the owner's."""
        for id, p in self.players.items():
            if p.owner == owner and player in (0, id):
                p.full = True

    # ------------------------------------------------------------------------------------------ messages and settings

    def publish(self, owner, entity, data):
        code = self._owned(owner, entity)
        if not code:
            self.messages.append(Message(self.entities[entity], None, data))
        return code

    def publish_in(self, lo, hi, data):
        lo, hi = [tuple(canonical(c) for c in b)[:self.dims] for b in (lo, hi)]
        if not all(math.isfinite(c) for c in lo + hi) or any(a > b for a, b in zip(lo, hi)):
            return pb.CODE_INVALID_ARGUMENT
        self.messages.append(Message(None, (lo, hi), data))
        return 0

    def set_space(self, leave_margin=None, min_stay_ms=None, max_view=None, max_enter_per_flush=None, update_tiers=None):
        if leave_margin is not None:
            self.margin = canonical(leave_margin)
        if min_stay_ms is not None:
            self.min_stay = min_stay_ms
        if max_view is not None:
            self.max_view = max_view
        if max_enter_per_flush is not None:
            self.max_enter = max_enter_per_flush
        if update_tiers is not None:
            self.tiers = tiers(update_tiers)

    # ---------------------------------------------------------------------------------------------------- visibility

    def cell(self, c):
        return math.floor(c / self.cell_size)

    def sees(self, e, t, margin=0.0):
        """Whether the unit e sees t, or with a margin keeps it."""
        if e.radius == 0 or e is t:
            return False
        if self.shape == pb.SHAPE_CELLS:
            pairs = [sorted((e.at[a], t.at[a])) for a in self.axes]
            return all(self.cell(hi - margin) - self.cell(lo + margin) <= self.cell_range for lo, hi in pairs)
        R = f32(e.radius + margin)
        if self.shape == pb.SHAPE_SPHERE:
            return distance2(t.at, e.at, self.axes) <= (R + t.appeal) * (R + t.appeal)
        return all(f32(e.at[a] - R) <= t.high[a] and t.low[a] <= f32(e.at[a] + R) for a in self.axes)

    def unit_sees(self, e):
        """The ids of what one unit sees, found once a flush."""
        if e.id not in self.sight:
            self.sight[e.id] = {t.id for t in self.entities.values() if self.sees(e, t)}
        return self.sight[e.id]

    def shows(self, box, t, margin=0.0):
        """Whether a viewport shows t."""
        lo, hi = [f32(c - margin) for c in box[0]], [f32(c + margin) for c in box[1]]
        return all(lo[a] <= t.high[a] and t.low[a] <= hi[a] for a in self.axes)

    def box(self, lo, hi):
        """Ids of what lies in a box, as queries find them: without appeal."""
        return {t.id for t in self.entities.values() if all(lo[a] <= t.at[a] <= hi[a] for a in self.axes)}

    def units(self, player):
        return [self.entities[id] for id in player.units]

    def base(self, player):
        """Step 1, without the mask."""
        seen = set()
        for e in self.units(player):
            seen |= self.unit_sees(e)
        if player.viewport:
            seen |= {t.id for t in self.entities.values() if self.shows(player.viewport, t)}
        return seen

    def held(self, player, id):
        """The Told of the very entity that is there now, or None."""
        told, e = player.told.get(id), self.entities.get(id)
        return told if told and e and told.birth == e.birth else None

    def in_margin(self, player, t):
        margin = player.margin or self.margin
        return any(self.sees(e, t, margin) for e in self.units(player)) or (player.viewport and self.shows(player.viewport, t, margin))

    def kept(self, player, t, now):
        """Step 2 for what is told and not in base: 'margin', 'stay' or ''."""
        told = self.held(player, t.id)
        if not told:
            return ""
        if self.in_margin(player, t):
            return "margin"
        eyes = player.viewport or any(e.radius for e in self.units(player))
        return "stay" if eyes and told.since is not None and now - told.since < self.min_stay else ""

    def squared(self, player, t):
        """The least squared distance over all units and the viewport's centre; infinite where there is neither."""
        places = [e.at for e in self.units(player)]
        if player.viewport:
            places.append([(lo + hi) / 2 for lo, hi in zip(*player.viewport)])
        return min((distance2(t.at, p, self.axes) for p in places), default=math.inf)

    def rules(self, player, now):
        """id -> the Rule by which it is seen, before rank and budget."""
        out, base = {}, self.base(player)
        for id, t in self.entities.items():
            kind = player.overrides.get(id)
            if player.units.get(id):
                out[id] = pb.RULE_INCLUDE_SELF
            elif kind == pb.OVERRIDE_KIND_SHOW:
                out[id] = pb.RULE_SHOW
            elif kind != pb.OVERRIDE_KIND_HIDE and t.layers & player.mask:
                why = "range" if id in base else self.kept(player, t, now)
                if why:
                    out[id] = {"range": pb.RULE_RANGE, "margin": pb.RULE_LEAVE_MARGIN, "stay": pb.RULE_MIN_STAY}[why]
        return out

    def rank(self, player, rules):
        """Ids, best first."""
        def key(id):
            t = self.entities[id]
            squared = self.squared(player, t) * (0.64 if self.held(player, id) else 1.0)
            return rules[id] > pb.RULE_SHOW, -t.priority, squared, id
        return sorted(rules, key=key)

    def resolve(self, player, now):
        """rules, ids by rank within max_view, and those of them that enter now."""
        rules = self.rules(player, now)
        max_view = player.max_view or self.max_view
        max_enter = player.max_enter or self.max_enter
        if not max_view and not max_enter:
            order = list(rules)
        else:
            order = self.rank(player, rules)[:max_view or None]
        fresh = [id for id in order if not self.held(player, id)]
        return rules, order, fresh if player.full or not max_enter else fresh[:max_enter]

    def why(self, player, entity, now):
        """(rule, told, seen) as the Why query must answer."""
        self.sight = {}
        p, t = self.players[player], self.entities[entity]
        rules, order, enters = self.resolve(p, now)
        told = self.held(p, entity) is not None
        if entity in rules:
            if entity not in order:
                return pb.RULE_RANK, told, False
            if not self.held(p, entity) and entity not in enters:
                return pb.RULE_ENTER_BUDGET, told, False
            return rules[entity], told, True
        if p.overrides.get(entity) == pb.OVERRIDE_KIND_HIDE:
            return pb.RULE_HIDE, told, False
        if not t.layers & p.mask:
            return pb.RULE_MASK, told, False
        eyes = p.viewport or any(e.radius for e in self.units(p))
        return (pb.RULE_FAR if eyes else pb.RULE_BLIND), told, False

    def looks_at(self, player, lo, hi):
        """Whether a player's base rule covers any point of a box."""
        if player.viewport and all(player.viewport[0][a] <= hi[a] and lo[a] <= player.viewport[1][a] for a in self.axes):
            return True
        return any(self.covers(e, lo, hi) for e in self.units(player) if e.radius)

    def covers(self, e, lo, hi):
        if self.shape == pb.SHAPE_CELLS:
            return all(self.cell(lo[a]) - self.cell(e.at[a]) <= self.cell_range and self.cell(e.at[a]) - self.cell(hi[a]) <= self.cell_range
                       for a in self.axes)
        if self.shape == pb.SHAPE_SPHERE:
            return distance2([min(max(e.at[a], lo[a]), hi[a]) for a in self.axes], e.at, self.axes) <= e.radius * e.radius
        return all(f32(e.at[a] - e.radius) <= hi[a] and lo[a] <= f32(e.at[a] + e.radius) for a in self.axes)

    # --------------------------------------------------------------------------------------------------------- flush

    def flush(self, now=0):
        """player -> the Delta that it must get; players of whom nothing changed are left out (.maybe: a tier may tell them again)."""
        self.flushes += 1
        self.sight, self.pending, self.may_pend = {}, False, False
        out, self.maybe = {}, {}
        for id, player in self.players.items():
            delta = self._compare(player, now)
            if delta:
                player.seq += 1
                delta.seq = player.seq
                out[id] = delta
            elif delta.may_update:
                self.maybe[id] = delta
        self.messages = []
        return out

    def _compare(self, player, now):
        rules, order, enters = self.resolve(player, now)
        enters, delta, told = set(enters), Delta(), {}
        for id in order:
            e, before = self.entities[id], self.held(player, id)
            if before:
                told[id] = before
                if player.full:
                    before.seen, before.late = e.seen(), False
                else:
                    self._difference(player, e, before, delta)
            elif id in enters:
                told[id] = Told(e.birth, e.seen(), now if self.min_stay else None)
            else:
                self.pending = self.may_pend = True
                continue
            if player.full or not before:
                delta.enters[id] = e.seen()
            self.pending = self.pending or rules[id] == pb.RULE_MIN_STAY
            self.may_pend = self.may_pend or self.min_stay > 0
        if not player.full:
            delta.leaves = {id for id, before in player.told.items() if id not in told or told[id].birth != before.birth}
        delta.full, player.full, player.told = player.full, False, told
        got = [(m.entity.id if m.entity else 0, m.data) for m in self.messages if self._receives(player, m)]
        delta.messages, delta.lost = ([], len(self.messages)) if delta.full else (got, 0)
        return delta

    def _difference(self, player, e, before, delta):
        now, then = e.seen(), before.seen
        moved = then[:4] != now[:4]
        if player.presence_only:
            pass
        elif (self.flushes + e.id) % self.period(player, e) == 0:
            if moved:
                delta.updates[e.id] = now[:4]
            elif before.late:
                delta.may_update[e.id] = now[:4]
            then, before.late = now[:4] + then[4:], False
        else:
            before.late = before.late or moved
            self.pending, self.may_pend = self.pending or moved, self.may_pend or before.late
        if then[4] != now[4]:
            delta.layers[e.id] = now[4]
        if then[5] != now[5]:
            delta.payloads[e.id] = now[5]
        before.seen = then[:4] + now[4:]

    def period(self, player, e):
        near, beyond = self.tiers
        if not near:
            return beyond
        squared = self.squared(player, e)
        return next((period for distance, period in near if squared <= distance * distance), beyond)

    def _receives(self, player, message):
        if not message.entity:
            return self.looks_at(player, *message.box)
        told = player.told.get(message.entity.id)
        return bool(told) and self.entities.get(message.entity.id) is message.entity and told.birth == message.entity.birth

    def observe(self):
        """owner -> {id: observed} that it is told with this flush."""
        out = {}
        for id, e in self.entities.items():
            if not e.report:
                continue
            now = any(self.held(p, id) and id not in p.units for p in self.players.values())
            if now != e.observed or e.restated:
                out.setdefault(e.owner, {})[id] = now
            e.observed, e.restated = now, False
        return out
