// test_visibility.js: every rule of visibility at once, mirrored with protobufjs, against brute force written a second time (Math.fround).
'use strict';
const { Connection, codes, enums, u64, expect } = require('./aoiclient.js');
const { withDaemon, seeded, main } = require('./harness.js');

const FLUSHES = 80, FOREVER = 2 ** 31, ALL = 0xffffffff;
const ENTITY_COMMANDS = ['add', 'add', 'upsert', 'move', 'move', 'move', 'move', 'move', 'remove', 'radius', 'layers', 'state', 'appeal', 'priority',
    'publish', 'publish', 'publishIn', 'release', 'adopt'];
const PLAYER_COMMANDS = ['subscribe', 'subscribe', 'unsubscribe', 'viewport', 'clear', 'open', 'open', 'override', 'override', 'release', 'close'];
const f32 = Math.fround;
const clean = (x) => (Math.abs(f32(x)) < 2 ** -126 ? 0 : f32(x)); // denormals and -0.0 count as 0
const equal = (got, want, what = '') => {
    expect(JSON.stringify(got) === JSON.stringify(want), `${what}\ntold     ${JSON.stringify(got)}\nexpected ${JSON.stringify(want)}`);
};
const byId = ([a], [b]) => (BigInt(a) < BigInt(b) ? -1 : 1);

// The rules, by the letter. Entities: {birth, owner, pos, extra, radius, layers, payload, appeal, priority, report}.
class World {
    constructor(settings) {
        Object.assign(this, settings); // dims, shape, cellSize, cellRange, extra, margin, stay, maxView, maxEnter, tiers
        this.entities = new Map();
        this.players = new Map();
        this.messages = [];
        this.flushes = this.births = 0;
    }

    sees(unit, t, m) {
        if (unit === t || unit.radius === 0) return false;
        const R = f32(unit.radius + m);
        let squared = 0;
        for (let a = 0; a < this.dims; a++) {
            const e = unit.pos[a], p = t.pos[a];
            squared += (p - e) * (p - e);
            if (this.shape === 'box' && !(f32(e - R) <= f32(p + t.appeal) && f32(p - t.appeal) <= f32(e + R))) return false;
            const apart = Math.floor((Math.max(e, p) - m) / this.cellSize) - Math.floor((Math.min(e, p) + m) / this.cellSize);
            if (this.shape === 'cells' && apart > this.cellRange) return false;
        }
        return this.shape !== 'sphere' || squared <= (R + t.appeal) * (R + t.appeal);
    }

    shows({ min, max }, t, m) {
        return t.pos.slice(0, this.dims).every((c, a) => f32(min[a] - m) <= f32(c + t.appeal) && f32(c - t.appeal) <= f32(max[a] + m));
    }

    // Whether a unit covers any point of a box.
    covers(unit, { min, max }) {
        let squared = 0;
        for (let a = 0; a < this.dims; a++) {
            const e = unit.pos[a], near = Math.min(Math.max(e, min[a]), max[a]), cell = (c) => Math.floor(c / this.cellSize);
            squared += (near - e) * (near - e);
            if (this.shape === 'box' && !(f32(e - unit.radius) <= max[a] && min[a] <= f32(e + unit.radius))) return false;
            if (this.shape === 'cells' && Math.abs(cell(near) - cell(e)) > this.cellRange) return false;
        }
        return unit.radius !== 0 && (this.shape !== 'sphere' || squared <= unit.radius * unit.radius);
    }

    units(p) {
        return [...p.units.keys()].map((id) => this.entities.get(id));
    }

    squared(p, t) {
        const places = this.units(p).map((unit) => unit.pos);
        if (p.viewport) places.push(p.viewport.min.map((c, a) => (c + p.viewport.max[a]) / 2));
        const to = (place) => t.pos.slice(0, this.dims).reduce((sum, c, a) => sum + (c - place[a]) * (c - place[a]), 0);
        return Math.min(Infinity, ...places.map(to));
    }

    wants(p, id, t, told, units, eyes) {
        if (p.units.get(id) || p.overrides.get(id) === 'SHOW') return 'chosen';
        if (p.overrides.get(id) === 'HIDE' || (t.layers & p.mask) === 0) return '';
        const near = (m) => units.some((unit) => this.sees(unit, t, m)) || (p.viewport && this.shows(p.viewport, t, m));
        if (near(0) || (told && near(p.margin || this.margin))) return 'seen';
        return told && eyes && this.stay && told.stayed ? 'stays' : '';
    }

    // Makes the flush for one player: what it must be told now. p.told becomes its view.
    flush(p) {
        const units = this.units(p), eyes = p.viewport || units.some((unit) => unit.radius !== 0), list = [];
        for (const [id, t] of this.entities) {
            const old = p.told.get(id), told = old && old.birth === t.birth ? old : null;
            const why = this.wants(p, id, t, told, units, eyes);
            if (why) list.push({ id, t, told, why, rank: [why === 'chosen' ? 0 : 1, -t.priority, this.squared(p, t) * (told ? 0.64 : 1)] });
        }
        list.sort((a, b) => {
            const i = a.rank.findIndex((x, k) => x !== b.rank[k]);
            return i < 0 ? byId([a.id], [b.id]) : a.rank[i] - b.rank[i];
        });
        const view = new Map();
        let enters = 0, left = false;
        for (const { id, t, told, why } of list.slice(0, p.maxView || this.maxView || undefined)) {
            const budget = p.maxEnter || this.maxEnter;
            if (!told && !p.full && budget && enters >= budget) {
                left = true;
                continue;
            }
            if (!told) enters++;
            left = left || why === 'stays';
            view.set(id, told || { birth: t.birth, stayed: this.stay > 0 });
            left = this.tell(p, id, t, view.get(id), !told || p.full) || left;
        }
        const result = { full: p.full, left, messages: [], lost: p.full ? this.messages.length : 0 };
        p.told = view;
        if (!p.full) result.messages = this.messages.filter((m) => this.gets(p, m)).map((m) => [m.from ? m.id : '0', m.data]);
        p.full = false;
        return result;
    }

    // Writes what an entity is told as; true if it is late.
    tell(p, id, t, told, whole) {
        const now = { x: t.pos[0], y: t.pos[1], z: t.pos[2], extra: t.extra };
        const due = whole || (!p.presenceOnly && (BigInt(this.flushes) + BigInt(id)) % BigInt(this.period(p, t)) === 0n);
        const late = !due && !p.presenceOnly && ['x', 'y', 'z', 'extra'].some((k) => told.state[k] !== now[k]);
        told.state = { ...(due ? now : told.state), layers: t.layers, payload: t.payload.toString('hex') };
        return late;
    }

    period(p, t) {
        const d2 = this.squared(p, t), tiers = this.tiers.split(' ').filter(Boolean).map((word) => word.split(':').map(Number));
        for (const [distance, period] of tiers) if (Number.isNaN(distance) || d2 <= f32(distance) * f32(distance)) return period;
        return 1;
    }

    gets(p, m) {
        if (m.from) return this.entities.get(m.id) === m.from && p.told.has(m.id) && p.told.get(m.id).birth === m.from.birth;
        const looks = p.viewport && m.min.slice(0, this.dims).every((c, a) => c <= p.viewport.max[a] && p.viewport.min[a] <= m.max[a]);
        return looks || this.units(p).some((unit) => this.covers(unit, m));
    }

    remove(id) {
        this.entities.delete(id);
        for (const p of this.players.values()) p.units.delete(id);
    }
}

class Run {
    constructor(r, connections, dims, shape, index) {
        Object.assign(this, { r, connections, index, space: r.pick(['1', '18446744073709551615']) });
        this.world = new World({
            dims, shape, cellSize: r.pick([0.5, 10, 32]), cellRange: r.pick([1, 2, 7]), extra: r.random() < 0.7, margin: 0,
            stay: r.pick([0, 0, FOREVER]), // later only 0: what entered before it was set is of no interest here
            maxView: 0, maxEnter: 0, tiers: '',
        });
        this.ids = Array.from({ length: 60 }, (_, i) => String(i % 2 ? i : 2n ** 64n - 1n - BigInt(i)));
        this.playerIds = ['1', '2', '3', '9007199254740993', '18446744073709551615'];
        this.casts = 0;
    }

    settings() {
        const { dims, shape, cellSize, cellRange, extra, stay } = this.world;
        return {
            dimensions: dims, shape: enums[`SHAPE_${shape.toUpperCase()}`], index: enums[`INDEX_${this.index.toUpperCase()}`],
            cell_size: cellSize, cell_range: cellRange, extra, flush_ms: 0, min_stay_ms: stay,
        };
    }

    position() {
        const c = () => this.r.pick([
            () => f32(this.r.between(-50, 50)), () => f32(this.r.between(-150, 150)), () => this.r.below(61) - 30,
            () => f32((this.r.below(601) - 300) * 0.1), () => this.r.pick([0, -0, 1e-40, 32, -32]),
        ])();
        return [c(), c(), this.world.dims === 3 ? c() : 0];
    }

    box() {
        const a = this.position().map(clean), b = this.position().map(clean);
        return { min: a.map((c, i) => Math.min(c, b[i])), max: a.map((c, i) => Math.max(c, b[i])) };
    }

    mine(map, owner) {
        return [...map].filter(([, x]) => x.owner === owner).map(([id]) => id);
    }

    // ---- commands of one connection (0 or 1); each returns a command that must succeed and counts as `items`, or null

    entityCommand(owner) {
        const { r, world } = this, known = this.mine(world.entities, owner);
        const kind = world.entities.size < 20 ? 'add' : r.pick(ENTITY_COMMANDS);
        if (kind === 'publishIn') return this.publishIn();
        if (kind === 'adopt') return this.adopt(owner);
        const id = kind === 'add' ? r.pick(this.ids.filter((i) => !world.entities.has(i))) : r.pick(known);
        return id === undefined ? null : this[kind](id, world.entities.get(id), owner);
    }

    fields(id) {
        const { r } = this, [x, y, z] = this.position();
        return {
            id: u64(id), x, y, z, extra: r.below(2 ** 32), radius: r.pick([0, 0.1, 10, 25.5, 40, 300]), layers: r.pick([0, 1, 2, 3, 0x80000000]),
            payload: Buffer.from(Array.from({ length: r.pick([0, 0, 1, 20]) }, () => r.below(256))), appeal: r.pick([0, 0, 0.1, 20]),
            priority: r.pick([0, 0, 1, ALL]), report_observed: r.random() < 0.5,
        };
    }

    write(e, f) {
        return Object.assign(e, {
            pos: [f.x, f.y, f.z].map(clean), extra: this.world.extra ? f.extra : 0, radius: f32(f.radius), layers: f.layers || 1, payload: f.payload,
            appeal: f32(f.appeal), priority: f.priority, report: f.report_observed,
        });
    }

    add(id, _, owner) {
        const f = this.fields(id);
        this.world.entities.set(id, this.write({ birth: ++this.world.births, owner, observed: false }, f));
        return { add_entity: f };
    }

    upsert(id, e) {
        const f = { ...this.fields(id), mode: enums.ADD_MODE_UPSERT, report_observed: e.report };
        this.write(e, f);
        e.restated = e.report;
        return { add_entity: f };
    }

    move(id, e) {
        const near = e.pos.map((c, a) => (a < this.world.dims ? f32(c + this.r.pick([0, 0.1, -0.1, 1, -1])) : 0));
        const p = this.r.random() < 0.5 ? this.position() : near, extra = this.r.below(3);
        e.pos = p.map(clean);
        if (this.world.extra) e.extra = extra;
        return { move_entities: { ids: u64([id]), x: [p[0]], y: [p[1]], z: this.world.dims === 3 ? [p[2]] : [], extra: [extra] } };
    }

    remove(id) {
        this.world.remove(id);
        return { remove_entities: { ids: u64([id]) } };
    }

    radius(id, e) {
        e.radius = this.r.pick([0, 5, 30]);
        return { set_radius: { id: u64(id), radius: e.radius } };
    }

    layers(id, e) {
        e.layers = this.r.pick([0, 1, 2, 0x80000000]);
        return { set_layers: { id: u64(id), layers: e.layers } };
    }

    state(id, e) {
        e.payload = Buffer.from([this.r.below(3)]);
        return { set_payload: { id: u64(id), payload: e.payload } };
    }

    appeal(id, e) {
        e.appeal = f32(this.r.pick([0, 0.3, 50]));
        return { set_appeal: { id: u64(id), appeal: e.appeal } };
    }

    priority(id, e) {
        e.priority = this.r.below(3);
        return { set_priority: { id: u64(id), priority: e.priority } };
    }

    publish(id, e) {
        const message = Buffer.from(String(++this.casts));
        this.world.messages.push({ from: e, id, data: message.toString('hex') });
        return { publish: { entity: u64(id), message } };
    }

    publishIn() {
        const message = Buffer.from(String(++this.casts)), { min, max } = this.box(), point = this.r.random() < 0.5;
        this.world.messages.push({ min, max: point ? min : max, data: message.toString('hex') });
        const [x, y, z] = min, [max_x, max_y, max_z] = max;
        return { publish: { message, ...(point ? { point: { x, y, z } } : { box: { min_x: x, min_y: y, min_z: z, max_x, max_y, max_z } }) } };
    }

    release(id, e) {
        e.released = true;
        const to = this.r.random() < 0.5 ? '0' : this.connections[1 - e.owner].welcome.session;
        return { release: { entities: u64([id]), to_session: u64(to) } };
    }

    adopt(owner) {
        const [id, e] = [...this.world.entities].find(([, x]) => x.owner !== owner && x.released) || [];
        if (!id) return null;
        this.lost[e.owner].push(`entity ${id}`);
        Object.assign(e, { owner, released: false, restated: true });
        return { add_entity: { id: u64(id), mode: enums.ADD_MODE_ADOPT } };
    }

    playerCommand(owner) {
        const { r, world } = this, id = r.pick(this.playerIds), player = u64(id), known = [...world.entities.keys()];
        let p = world.players.get(id);
        if (p && p.owner !== owner) {
            if (!p.released || r.random() < 0.5) return null;
            this.lost[p.owner].push(`player ${id}`);
            Object.assign(p, { owner, released: false, full: true });
            return { open_player: { ...this.open(p), player, take_over: true } };
        }
        const kind = r.pick(PLAYER_COMMANDS);
        if (!p && !['subscribe', 'viewport', 'open'].includes(kind)) return null;
        const entity = kind === 'unsubscribe' ? r.pick([...p.units.keys()]) : r.pick(known);
        if ((kind === 'subscribe' || kind === 'unsubscribe') && entity === undefined) return null;
        if (!p) {
            p = { owner, mask: ALL, maxView: 0, margin: 0, maxEnter: 0, presenceOnly: false, units: new Map(), overrides: new Map(), viewport: null,
                told: new Map(), full: false };
            world.players.set(id, p);
        }
        switch (kind) {
        case 'subscribe': {
            const include_self = r.random() < 0.4;
            p.units.set(entity, include_self);
            return { subscribe: { player, entity: u64(entity), include_self } };
        }
        case 'unsubscribe':
            p.units.delete(entity);
            return { unsubscribe: { player, entity: u64(entity) } };
        case 'viewport': {
            p.viewport = this.box();
            const [min_x, min_y, min_z] = p.viewport.min, [max_x, max_y, max_z] = p.viewport.max;
            return { set_viewport: { player, min_x, min_y, min_z, max_x, max_y, max_z } };
        }
        case 'clear':
            p.viewport = null;
            return { clear_viewport: { player } };
        case 'open':
            return { open_player: { ...this.open(p), player } };
        case 'override': {
            const what = r.pick(['HIDE', 'SHOW', 'NONE', 'NONE']), about = r.pick(this.ids);
            p.overrides.set(about, what);
            return { override: { player, entity: u64(about), kind: enums[`OVERRIDE_KIND_${what}`] } };
        }
        case 'release':
            p.released = true;
            return { release: { players: u64([id]) } };
        default:
            if (r.random() < 0.7) return null;
            world.players.delete(id);
            return { close_player: { player } };
        }
    }

    // New settings for a player.
    open(p) {
        const { r } = this, mask = r.pick([0, 0, 1, 3, 0x80000001]), leave_margin = r.pick([0, 0, 0.1, 20]), presence_only = r.random() < 0.3;
        const max_view = r.pick([0, 0, 2, 20]), max_enter_per_flush = r.pick([0, 0, 2]);
        if (p.presenceOnly && !presence_only) p.full = true;
        Object.assign(p, { mask: mask || ALL, margin: f32(leave_margin), presenceOnly: presence_only });
        Object.assign(p, { maxView: max_view, maxEnter: max_enter_per_flush });
        return { mask, leave_margin, presence_only, max_view, max_enter_per_flush };
    }

    async setSpace(number) {
        const { r, world } = this, change = {};
        if (r.random() < 0.15) change.leave_margin = world.margin = f32(r.pick([0, 0.1, 5, 60]));
        if (r.random() < 0.1) change.max_view = world.maxView = r.pick([0, 1, 5, 20]);
        if (r.random() < 0.1) change.max_enter_per_flush = world.maxEnter = r.pick([0, 1, 4]);
        if (r.random() < 0.1) change.update_tiers = world.tiers = r.pick(['', '10:1 40:3 *:7', '*:5', '0:1 12.3:2 32:4 300:6']);
        if (number === FLUSHES / 2) change.min_stay_ms = world.stay = 0;
        await r.pick(this.connections).ok(this.space, { set_space: change });
    }

    // ---- one flush, and all that it tells

    async step(number) {
        this.lost = [[], []];
        for (const owner of this.r.random() < 0.5 ? [0, 1] : [1, 0]) {
            const entities = Array.from({ length: this.r.below(14) }, () => this.entityCommand(owner));
            const players = Array.from({ length: this.r.below(6) }, () => this.playerCommand(owner));
            const commands = [...entities, ...players].filter(Boolean);
            const ack = await this.connections[owner].ok(this.space, ...commands);
            equal(ack.applied, String(commands.length), 'applied counts items');
            if (this.r.random() < 0.15) {
                const player = this.r.pick(['0', ...this.mine(this.world.players, owner)]);
                const reply = await this.connections[owner].call({ resync: { space: u64(this.space), player: u64(player) } });
                expect(reply.ack, 'a Resync is acknowledged');
                for (const [id, p] of this.world.players) if (p.owner === owner && (player === '0' || player === id)) p.full = true;
            }
        }
        await this.setSpace(number);
        await this.settle(number);
        const tag = String(BigInt(number) + 2n ** 63n), flusher = this.r.below(2);
        const ack = await this.connections[flusher].ok(this.space, { flush: { tag: u64(tag) } });
        await this.connections[1 - flusher].call({ ping: {} });
        this.world.flushes++;
        this.compare(number, tag, ack.pending);
        this.compareObserved(number);
        this.world.messages = [];
    }

    async settle(number) {
        for (const [owner, c] of this.connections.entries()) {
            await c.call({ ping: {} });
            expect(c.take('deltas').every((d) => d.closed), 'a delta without a flush');
            const lost = c.take('lost').flatMap((l) => [...l.entities.map((id) => `entity ${id}`), ...l.players.map((id) => `player ${id}`)]);
            equal(lost.sort(), this.lost[owner].sort(), `flush ${number}: lost by ${owner}`);
        }
    }

    compare(number, tag, pending) {
        const told = this.connections.map((c) => new Map(c.take('deltas').map((d) => [d.player, d])));
        let left = false;
        for (const [id, p] of this.world.players) {
            const what = `flush ${number}, player ${id}`, want = this.world.flush(p), d = told[p.owner].get(id);
            left = left || want.left;
            const row = ([i, e]) => [i, e.x, e.y, e.z, e.extra, e.layers, e.payload];
            const view = [...this.connections[p.owner].view(this.space, id)];
            equal(view.map(row).sort(byId), [...p.told].map(([i, t]) => row([i, t.state])).sort(byId), what);
            const { full, messages, lost } = d || { full: false, messages: [], lost: 0 };
            equal([full, messages, lost], [want.full, want.messages, want.lost], `${what}: full, messages, lost`);
            if (d) equal([d.flush, d.tag], [String(this.world.flushes), tag], what);
            told[p.owner].delete(id);
        }
        expect(told.every((rest) => rest.size === 0), `flush ${number}: deltas for other players: ${told.map((rest) => [...rest.keys()])}`);
        expect(pending || !left, `flush ${number}: work is left and the Ack does not say so`);
    }

    compareObserved(number) {
        for (const [owner, c] of this.connections.entries()) {
            const got = new Map(), want = [];
            for (const o of c.take('observed')) {
                for (const id of o.observed_ids) got.set(id, true);
                for (const id of o.unobserved_ids) got.set(id, false);
            }
            for (const [id, e] of this.world.entities) {
                if (!e.report || e.owner !== owner) continue;
                const now = [...this.world.players.values()].some((p) => p.told.has(id) && !p.units.has(id));
                if (now !== e.observed || e.restated) want.push([id, now]);
                Object.assign(e, { observed: now, restated: false });
            }
            equal([...got].sort(byId), want.sort(byId), `flush ${number}: observed, told to ${owner}`);
        }
    }
}

async function run(dims, shape, index) {
    const r = seeded(`${dims}D ${shape} ${index}`);
    await withDaemon({}, async (d) => {
        const connections = [await Connection.open(d.port, 'one'), await Connection.open(d.port, 'two')];
        for (const c of connections) c.mayRepeat = true; // tiers
        const world = new Run(r, connections, dims, shape, index);
        await connections[0].ok(world.space, { create_space: { settings: world.settings() } });
        for (let number = 0; number < FLUSHES; number++) await world.step(number);
        for (const c of connections) {
            expect(c.deltas > FLUSHES / 4 && c.stray.length === 0, `${c.deltas} deltas, ${c.stray.length} frames that nobody asked for`);
            c.close();
        }
    });
}

const tests = {
    async the_new_commands_and_queries_keep_all_64_bits() {
        await withDaemon({}, async (d) => {
            const BIG = '18446744073709551615', ODD = '9007199254740993', S = '7';
            const a = await Connection.open(d.port), b = await Connection.open(d.port);
            await a.ok(S, { create_space: { settings: { flush_ms: 0 } } },
                { add_entity: { id: u64(BIG), x: 1, report_observed: true, appeal: 2, priority: 3 } },
                { set_viewport: { player: u64(ODD), min_x: -5, min_y: -5, max_x: 5, max_y: 5 } },
                { override: { player: u64(ODD), entity: u64('4'), kind: enums.OVERRIDE_KIND_HIDE } },
                { publish: { entity: u64(BIG), message: Buffer.from('hi') } }, { publish: { point: { x: 5 }, message: Buffer.from('at') } },
                { flush: {} });
            equal(a.take('deltas').map((t) => [t.player, t.messages, t.lost]), [[ODD, [[BIG, '6869'], ['0', '6174']], 0]]);
            equal(a.take('observed').map((o) => [o.space, o.observed_ids, o.unobserved_ids]), [[S, [BIG], []]]);
            equal((await a.query(S, { observers: { id: u64(BIG) } })).ids, [ODD]);
            equal((await a.query(S, { nearest: { k: 1 } })).ids, [BIG]);
            equal((await a.query(S, { density: { box: { max_x: 2, max_y: 2 }, columns: 2, rows: 1 } })).counts, [0, 1]);
            const why = await a.query(S, { why: { player: u64(ODD), entity: u64(BIG) } });
            equal([why.rule, why.told, why.seen, why.by_viewport, why.distance, why.appeal], [enums.RULE_RANGE, true, true, true, 1, 2]);
            const refused = (reply) => reply.ack.errors.map((e) => [e.code, e.id]);
            const adopt = { add_entity: { id: u64(BIG), mode: enums.ADD_MODE_ADOPT } }, take = { open_player: { player: u64(ODD), take_over: true } };
            const early = await b.call({ batch: { space: u64(S), commands: [adopt, take] } });
            equal(refused(early), [[codes.CODE_NOT_OWNER, BIG], [codes.CODE_NOT_OWNER, ODD]]);
            await a.ok(S, { release: { entities: u64([BIG]), players: u64([ODD]), to_session: u64(b.welcome.session) } });
            await b.ok(S, adopt, take, { flush: {} });
            await a.call({ ping: {} });
            const lost = a.take('lost');
            equal([lost.flatMap((l) => l.entities), lost.flatMap((l) => l.players), a.view(S, ODD).size], [[BIG], [ODD], 0]);
            equal(b.take('deltas').map((t) => [t.player, t.seq, t.full]), [[ODD, '2', true]]);
            equal(b.take('observed').map((o) => o.observed_ids), [[BIG]]);
            equal((await b.query(S, { get_entity: { id: u64(BIG) } })).owner_session, b.welcome.session);
            const bad = { set_space: { update_tiers: '3:1 2:1', min_stay_ms: 5 } };
            equal(refused(await a.call({ batch: { space: u64(S), commands: [bad, { release: { to_session: u64(BIG) } }] } })).map(([code]) => code),
                [codes.CODE_INVALID_ARGUMENT, codes.CODE_INVALID_ARGUMENT]);
            await a.ok(S, { set_space: { update_tiers: '3:1 *:2', min_stay_ms: 0, leave_margin: 0.5 } });
            const { settings } = (await a.query(S, { list_spaces: {} })).spaces[0];
            equal([settings.update_tiers, settings.leave_margin, settings.flush_ms], ['3:1 *:2', 0.5, 0]);
            a.close();
            b.close();
        });
    },
};
for (const dims of [2, 3]) {
    for (const shape of ['box', 'sphere', 'cells']) {
        for (const index of ['grid', 'crosslist']) {
            tests[`every_rule_equals_brute_force_in_${dims}d_${shape}_on_${index}`] = () => run(dims, shape, index);
        }
    }
}
main(tests);
