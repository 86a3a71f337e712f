// test_mirror.js: what players are told, mirrored with protobufjs, against brute force written a second time (Math.fround).
'use strict';
const { Connection, enums, u64, expect } = require('./aoiclient.js');
const { withDaemon, seeded, main } = require('./harness.js');

const FLUSHES = 100;
const KINDS = ['add', 'add', 'upsert', 'move', 'move', 'move', 'move', 'remove', 'readd', 'radius', 'layers', 'state'];
const f32 = Math.fround;
const zero = (x) => (Math.abs(f32(x)) < 2 ** -126 ? 0 : f32(x)); // denormals and -0.0 count as 0

class World {
    constructor(dims, shape, cellSize, cellRange, extra) {
        Object.assign(this, { dims, shape, cellSize, cellRange, extra });
        this.entities = new Map(); // id -> {pos, extra, radius, layers, payload}
        this.players = new Map(); // id -> {mask, units: Map(id -> include_self), viewport}
    }

    sees(unit, target) {
        if (unit.radius === 0 || unit === target) return false;
        let squared = 0;
        for (let a = 0; a < this.dims; a++) {
            const e = unit.pos[a], t = target.pos[a], R = unit.radius;
            squared += (t - e) * (t - e);
            if (this.shape === 'box' && !(f32(e - R) <= t && t <= f32(e + R))) return false;
            if (this.shape === 'cells' && Math.abs(Math.floor(e / this.cellSize) - Math.floor(t / this.cellSize)) > this.cellRange) return false;
        }
        return this.shape !== 'sphere' || squared <= unit.radius * unit.radius;
    }

    shows(box, target) {
        for (let a = 0; a < this.dims; a++) if (!(box.min[a] <= target.pos[a] && target.pos[a] <= box.max[a])) return false;
        return true;
    }

    view(player) {
        const out = new Map();
        const units = [...player.units].map(([id, self]) => [id, this.entities.get(id), self]);
        for (const [id, t] of this.entities) {
            const seen = (player.viewport && this.shows(player.viewport, t)) || units.some(([, unit]) => this.sees(unit, t));
            const self = units.some(([unit, , includeSelf]) => unit === id && includeSelf);
            if (!self && !(seen && (t.layers & player.mask) !== 0)) continue;
            out.set(id, { x: t.pos[0], y: t.pos[1], z: t.pos[2], extra: t.extra, layers: t.layers, payload: t.payload.toString('hex') });
        }
        return out;
    }

    remove(id) {
        this.entities.delete(id);
        for (const p of this.players.values()) p.units.delete(id);
    }
}

class Run {
    constructor(r, mover, gateway, dims, shape, index) {
        Object.assign(this, { r, mover, gateway, index, space: r.pick(['1', '18446744073709551615']) });
        this.world = new World(dims, shape, r.pick([0.5, 10, 32]), r.pick([1, 2, 7]), r.random() < 0.7);
        const large = (i) => 2n ** 64n - 1n - BigInt(r.below(1000000)) * 128n - BigInt(i);
        this.ids = Array.from({ length: 70 }, (_, i) => String(i % 2 ? i : large(i)));
        this.players = ['1', '2', '3', '4', '9007199254740993'];
        this.fulls = new Map();
    }

    settings() {
        const { dims, shape, cellSize, cellRange, extra } = this.world;
        return {
            dimensions: dims, shape: enums[`SHAPE_${shape.toUpperCase()}`], index: enums[`INDEX_${this.index.toUpperCase()}`],
            cell_size: cellSize, cell_range: cellRange, extra, flush_ms: 0,
        };
    }

    position() {
        const c = () => this.r.pick([
            () => f32(this.r.between(-50, 50)), () => f32(this.r.between(-150, 150)), () => this.r.below(61) - 30,
            () => f32((this.r.below(601) - 300) * 0.1),
            () => this.r.pick([0, -0, 1e-40, 32, -32]),
        ])();
        return [c(), c(), this.world.dims === 3 ? c() : 0];
    }

    payload() {
        return Buffer.from(Array.from({ length: this.r.pick([0, 0, 1, 20]) }, () => this.r.below(256)));
    }

    // Adds, upserts and moves of the mover; only what must succeed. Returns the batch's commands and how many items they are.
    entityCommands() {
        const commands = [];
        let items = 0;
        for (let n = this.r.below(20) + 1; n > 0; n--) {
            const known = [...this.world.entities.keys()];
            const kind = known.length < 20 ? 'add' : this.r.pick(KINDS);
            const id = kind === 'add' ? this.ids.find((i) => !this.world.entities.has(i) && this.r.random() < 0.3) : this.r.pick(known);
            if (!id) continue;
            for (const [command, count] of this[kind](id, known)) {
                commands.push(command);
                items += count;
            }
        }
        return [commands, items];
    }

    fields(id) {
        const [x, y, z] = this.position();
        const radius = this.r.pick([0, 0.1, 10, 25.5, 40, 300]), layers = this.r.pick([0, 1, 2, 3, 0x80000000]);
        return { id: u64(id), x, y, z, extra: this.r.below(2 ** 32), radius, layers, payload: this.payload() };
    }

    write(id, f) {
        this.world.entities.set(id, {
            pos: [f.x, f.y, f.z].map(zero), extra: this.world.extra ? f.extra : 0, radius: f32(f.radius), layers: f.layers || 1, payload: f.payload,
        });
    }

    add(id) {
        const f = this.fields(id);
        this.write(id, f);
        return [[{ add_entity: f }, 1]];
    }

    upsert(id) {
        const f = { ...this.fields(id), mode: enums.ADD_MODE_UPSERT }, e = this.world.entities.get(id);
        this.write(id, f);
        this.world.entities.set(id, Object.assign(e, this.world.entities.get(id))); // the same entity
        return [[{ add_entity: f }, 1]];
    }

    move(id, known) {
        const ids = Array.from({ length: this.r.below(20) + 1 }, () => this.r.pick(known)).filter((i) => this.world.entities.has(i));
        const columns = { ids: u64(ids), x: [], y: [], z: [], extra: [] };
        const withExtra = this.r.random() < 0.5;
        for (const i of ids) {
            const e = this.world.entities.get(i);
            const near = e.pos.map((c, a) => (a < this.world.dims ? f32(c + this.r.pick([0, 0.1, -0.1, 1, -1])) : 0));
            const p = this.r.random() < 0.5 ? this.position() : near;
            const extra = this.r.below(3);
            columns.x.push(p[0]);
            columns.y.push(p[1]);
            if (this.world.dims === 3) columns.z.push(p[2]);
            if (withExtra) columns.extra.push(extra);
            e.pos = p.map(zero);
            if (withExtra && this.world.extra) e.extra = extra;
        }
        return [[{ move_entities: columns }, ids.length]];
    }

    remove(id) {
        this.world.remove(id);
        return [[{ remove_entities: { ids: u64([id]) } }, 1]];
    }

    readd(id) {
        return [...this.remove(id), ...this.add(id)];
    }

    radius(id) {
        const radius = this.r.pick([0, 5, 30]);
        this.world.entities.get(id).radius = radius;
        return [[{ set_radius: { id: u64(id), radius } }, 1]];
    }

    layers(id) {
        const layers = this.r.pick([0, 1, 2, 0x80000000]);
        this.world.entities.get(id).layers = layers;
        return [[{ set_layers: { id: u64(id), layers } }, 1]];
    }

    state(id) {
        const payload = this.payload();
        this.world.entities.get(id).payload = payload;
        return [[{ set_payload: { id: u64(id), payload } }, 1]];
    }

    playerCommand() {
        const id = this.r.pick(this.players), player = u64(id), known = [...this.world.entities.keys()];
        const p = this.world.players.get(id) || { mask: 0xffffffff, units: new Map(), viewport: null };
        const kind = this.r.pick(['subscribe', 'subscribe', 'unsubscribe', 'viewport', 'clear', 'mask', 'close']);
        const entity = kind === 'subscribe' ? this.r.pick(known) : this.r.pick([...p.units.keys(), undefined]);
        if (kind === 'close' && (!this.world.players.has(id) || this.r.random() < 0.7)) return null;
        if ((kind === 'unsubscribe' || kind === 'clear') && !this.world.players.has(id)) return null;
        if ((kind === 'subscribe' || kind === 'unsubscribe') && entity === undefined) return null;
        this.world.players.set(id, p);
        if (kind === 'subscribe') {
            const include_self = this.r.random() < 0.4;
            p.units.set(entity, include_self);
            return { subscribe: { player, entity: u64(entity), include_self } };
        }
        if (kind === 'unsubscribe') {
            p.units.delete(entity);
            return { unsubscribe: { player, entity: u64(entity) } };
        }
        if (kind === 'viewport') {
            const a = this.position().map(zero), b = this.position().map(zero);
            p.viewport = { min: a.map((v, i) => Math.min(v, b[i])), max: a.map((v, i) => Math.max(v, b[i])) };
            const [min_x, min_y, min_z] = p.viewport.min, [max_x, max_y, max_z] = p.viewport.max;
            return { set_viewport: { player, min_x, min_y, min_z, max_x, max_y, max_z } };
        }
        if (kind === 'clear') {
            p.viewport = null;
            return { clear_viewport: { player } };
        }
        if (kind === 'mask') {
            const mask = this.r.pick([0, 1, 2, 0x80000001]);
            p.mask = mask || 0xffffffff;
            return { open_player: { player, mask } };
        }
        this.world.players.delete(id);
        this.fulls.delete(id);
        return { close_player: { player } };
    }

    async step(number) {
        const [commands, items] = this.entityCommands();
        expect((await this.mover.ok(this.space, ...commands)).applied === String(items), 'applied counts items');
        const players = Array.from({ length: this.r.below(6) }, () => this.playerCommand()).filter(Boolean);
        await this.gateway.ok(this.space, ...players);
        if (this.r.random() < 0.3) {
            const id = this.r.pick(['0', ...this.world.players.keys()]);
            expect((await this.gateway.call({ resync: { space: u64(this.space), player: u64(id) } })).ack, 'a Resync is acknowledged');
            for (const each of id === '0' ? this.world.players.keys() : [id]) this.fulls.set(each, true);
        }
        const before = new Map([...this.world.players.keys()].map((id) => [id, this.fullsTold(id)]));
        const tag = String(BigInt(number) + 2n ** 63n);
        await this.r.pick([this.mover, this.gateway]).ok(this.space, { flush: { tag: u64(tag) } });
        await this.gateway.call({ ping: {} });
        for (const [id, player] of this.world.players) {
            this.compare(number, id, this.gateway.view(this.space, id), this.world.view(player));
            expect(this.fullsTold(id) === before.get(id) + (this.fulls.get(id) ? 1 : 0), `flush ${number}: full deltas of player ${id}`);
            if (this.fulls.get(id)) expect(this.gateway.views.get(`${this.space}/${id}`).tag === tag, 'the tag comes back');
        }
        this.fulls.clear();
    }

    fullsTold(id) {
        const view = this.gateway.views.get(`${this.space}/${id}`);
        return view ? view.fulls : 0;
    }

    compare(number, player, got, want) {
        const row = ([id, e]) => [id, e.x, e.y, e.z, e.extra, e.layers, e.payload];
        const text = (view) => JSON.stringify([...view].map(row).sort(([a], [b]) => (a < b ? -1 : 1)));
        expect(text(got) === text(want), `flush ${number}, player ${player}\ntold     ${text(got)}\nexpected ${text(want)}`);
    }
}

async function run(dims, shape, index) {
    const r = seeded(`${dims}D ${shape} ${index}`);
    await withDaemon({}, async (d) => {
        const mover = await Connection.open(d.port, 'mover'), gateway = await Connection.open(d.port, 'gateway');
        const world = new Run(r, mover, gateway, dims, shape, index);
        await mover.ok(world.space, { create_space: { settings: world.settings() } });
        for (let number = 0; number < FLUSHES; number++) await world.step(number);
        expect(gateway.deltas > FLUSHES, `only ${gateway.deltas} deltas`);
        expect(gateway.stray.length === 0 && mover.stray.length === 0, 'frames that nobody asked for');
        mover.close();
        gateway.close();
    });
}

const tests = {};
for (const dims of [2, 3]) {
    for (const shape of ['box', 'sphere', 'cells']) {
        for (const index of ['grid', 'crosslist']) tests[`views_equal_brute_force_in_${dims}d_${shape}_on_${index}`] = () => run(dims, shape, index);
    }
}
main(tests);
