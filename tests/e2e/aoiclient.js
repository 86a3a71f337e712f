// aoiclient.js: a client of aoid for Node: protobufjs reads the .proto at run time; frames by encodeDelimited's rule; a mirror of each player's view.
//
// 64-bit numbers are decimal strings here: they are exact and serve as keys of a Map.
'use strict';
const net = require('node:net');
const path = require('node:path');
const protobuf = require('protobufjs');
const Long = protobuf.util.Long;

if (!Long) throw new Error('protobufjs found no "long"; 64-bit ids would be rounded');

const root = new protobuf.Root();
const protoDir = process.env.AOI_PROTO || path.join(__dirname, '..', '..', 'proto');
root.loadSync(path.join(protoDir, 'aoi', 'v1', 'aoi.proto'), { keepCase: true });
const ClientFrame = root.lookupType('aoi.v1.ClientFrame');
const ServerFrame = root.lookupType('aoi.v1.ServerFrame');
const codes = root.lookupEnum('aoi.v1.Code').values;
const enums = Object.assign({}, ...['Index', 'Shape', 'AddMode', 'OverrideKind', 'Rule'].map((name) => root.lookupEnum(`aoi.v1.${name}`).values));

const TIMEOUT_MS = 60000;

const u64 = (value) => (Array.isArray(value) ? value.map(u64) : Long.fromString(String(value), true));

function expect(condition, what) {
    if (!condition) throw new Error(what);
}

// What one player has been told: id -> {x, y, z, extra, layers, payload}. Refuses an illegal delta.
class View {
    constructor() {
        this.seq = 0n;
        this.parts = 0; // of a delta of which more follow
        this.entities = new Map();
        this.touched = new Set(); // ids that this delta has entered or updated
        this.messages = []; // of this delta: [publishing entity or '0', hex]
        this.fulls = 0;
        this.mayRepeat = false; // whether an update may tell what is known, which only a tiered or skipped player gets
    }

    apply(d) {
        const seq = BigInt(d.seq);
        const takenOver = this.seq === 0n && (d.full || d.closed); // it goes on where the session that lost it stopped
        const next = takenOver ? seq : this.seq + (this.parts === 0 ? 1n : 0n);
        expect(seq === next && d.part === this.parts, `delta ${seq} part ${d.part}, expected ${next} part ${this.parts}`);
        this.seq = seq;
        if (d.part === 0) {
            this.touched.clear();
            this.messages = [];
        }
        if (d.full && d.part === 0) {
            this.entities.clear();
            this.fulls++;
        }
        for (const id of d.leave_ids) expect(this.entities.delete(id), `leave of ${id}, which is not held`);
        this.enter(d);
        this.update(d);
        expect(d.payload_ids.length === d.payloads.length && d.layers_ids.length === d.layers.length, 'columns of states');
        d.payload_ids.forEach((id, i) => { this.held(id).payload = d.payloads[i].toString('hex'); });
        d.layers_ids.forEach((id, i) => { this.held(id).layers = d.layers[i]; });
        expect(d.message_from.length === d.messages.length, 'message columns');
        d.messages.forEach((bytes, i) => this.messages.push([d.message_from[i], bytes.toString('hex')]));
        expect(d.messages_lost === '0' || !d.more, 'messages_lost before the last part');
        const changes = d.leave_ids.length + d.enter_ids.length + d.update_ids.length + d.payload_ids.length + d.layers_ids.length
            + d.messages.length;
        expect(d.full || d.closed ? d.leave_ids.length + d.update_ids.length === 0 : changes > 0, `delta ${seq}: sections`);
        this.parts = d.more ? d.part + 1 : 0;
    }

    held(id) {
        const e = this.entities.get(id);
        expect(e, `a change of ${id}, which is not held`);
        return e;
    }

    enter(d) {
        const n = d.enter_ids.length;
        expect(d.enter_x.length === n && d.enter_y.length === n && d.enter_layers.length === n, 'enter columns');
        for (const column of [d.enter_z, d.enter_extra, d.enter_payloads]) expect(column.length === 0 || column.length === n, 'enter columns');
        for (let i = 0; i < n; i++) {
            const id = d.enter_ids[i];
            expect(!this.entities.has(id), `enter of ${id}, which is held`);
            this.touched.add(id);
            this.entities.set(id, {
                x: d.enter_x[i], y: d.enter_y[i], z: d.enter_z[i] || 0, extra: d.enter_extra[i] || 0, layers: d.enter_layers[i],
                payload: d.enter_payloads.length ? d.enter_payloads[i].toString('hex') : '',
            });
        }
    }

    update(d) {
        const n = d.update_ids.length;
        expect(d.update_x.length === n && d.update_y.length === n, 'update columns');
        for (const column of [d.update_z, d.update_extra]) expect(column.length === 0 || column.length === n, 'update columns');
        for (let i = 0; i < n; i++) {
            const id = d.update_ids[i], e = this.held(id);
            expect(!this.touched.has(id), `${id} twice in one delta`);
            this.touched.add(id);
            const now = { x: d.update_x[i], y: d.update_y[i], z: d.update_z[i] || 0, extra: d.update_extra[i] || 0 };
            const changed = e.x !== now.x || e.y !== now.y || e.z !== now.z || e.extra !== now.extra;
            expect(this.mayRepeat || changed, `an update of ${id} that changes nothing`);
            Object.assign(e, now);
        }
    }
}

class Connection {
    static async open(port, name = 'node') {
        const c = new Connection();
        await new Promise((resolve, reject) => {
            c.socket = net.connect({ port, host: '127.0.0.1', noDelay: true }, resolve);
            c.socket.once('error', reject);
        });
        c.socket.on('error', (e) => c.end(e));
        c.socket.on('close', () => c.end(new Error('connection closed by the daemon')));
        c.socket.on('data', (bytes) => c.read(bytes));
        const reply = await c.call({ hello: { protocol_version: 1, client_name: name } });
        expect(reply.welcome, JSON.stringify(reply));
        c.welcome = reply.welcome;
        return c;
    }

    constructor() {
        this.inbox = Buffer.alloc(0);
        this.seq = 0;
        this.waiting = []; // {seq, resolve, reject}, in the order in which replies must come
        this.views = new Map(); // "space/player" -> View
        this.deltas = 0;
        this.told = []; // whole deltas: {space, player, seq, flush, tag, full, closed, messages, lost}
        this.notices = []; // Observed and Lost
        this.mayRepeat = false;
        this.stray = []; // frames that nobody waited for
        this.ended = null;
        this.closed = new Promise((resolve) => { this.onClosed = resolve; });
    }

    end(error) {
        this.ended = this.ended || error;
        for (const w of this.waiting.splice(0)) w.reject(this.ended);
        this.onClosed();
    }

    close() {
        this.socket.destroy();
    }

    write(bytes) {
        this.socket.write(bytes);
    }

    // Sends a frame and resolves with its reply. Not awaited at once, several may be under way.
    call(kind) {
        const seq = String(++this.seq);
        return new Promise((resolve, reject) => {
            if (this.ended) return reject(this.ended);
            const timer = setTimeout(() => reject(new Error(`no reply to ${seq}: ${JSON.stringify(kind).slice(0, 200)}`)), TIMEOUT_MS);
            const settle = (fn) => (value) => { clearTimeout(timer); fn(value); };
            this.waiting.push({ seq, resolve: settle(resolve), reject: settle(reject) });
            this.write(ClientFrame.encodeDelimited(ClientFrame.create({ seq: u64(seq), ...kind })).finish());
        });
    }

    async batch(space, ...commands) {
        const reply = await this.call({ batch: { space: u64(space), commands } });
        expect(reply.ack, JSON.stringify(reply));
        return reply.ack;
    }

    async ok(space, ...commands) {
        const ack = await this.batch(space, ...commands);
        expect(ack.errors_total === '0', JSON.stringify(ack));
        return ack;
    }

    async query(space, kind) {
        const reply = await this.call({ query: { space: u64(space), ...kind } });
        return reply.error || reply.result[reply.result.kind];
    }

    read(bytes) {
        this.inbox = this.inbox.length ? Buffer.concat([this.inbox, bytes]) : bytes;
        try {
            while (this.takeOne());
        } catch (e) {
            this.end(e);
            this.close();
        }
    }

    takeOne() {
        let length = 0;
        for (let i = 0; i < this.inbox.length; i++) {
            expect(i < 4, 'a length prefix of more than 4 bytes');
            length += (this.inbox[i] & 127) * 2 ** (7 * i);
            if (this.inbox[i] & 128) continue;
            if (this.inbox.length < i + 1 + length) return false;
            const body = this.inbox.subarray(i + 1, i + 1 + length);
            this.inbox = this.inbox.subarray(i + 1 + length);
            this.frame(ServerFrame.toObject(ServerFrame.decode(body), { longs: String, arrays: true, defaults: true, oneofs: true }));
            return true;
        }
        return false;
    }

    frame(f) {
        if (f.kind === 'deltas') {
            for (const d of f.deltas.players) this.delta(f.deltas, d);
        } else if (f.reply_to !== '0') {
            const w = this.waiting.shift();
            expect(w && w.seq === f.reply_to, `a reply to ${f.reply_to}, expected ${w && w.seq}`);
            w.resolve(f);
        } else if (f.kind === 'observed' || f.kind === 'lost') {
            this.notices.push(f[f.kind]);
            for (const player of f.kind === 'lost' ? f.lost.players : []) this.views.delete(`${f.lost.space}/${player}`);
        } else {
            this.stray.push(f);
        }
    }

    delta(frame, d) {
        const key = `${frame.space}/${d.player}`;
        if (!this.views.has(key)) this.views.set(key, new View());
        const view = this.views.get(key);
        view.mayRepeat = this.mayRepeat;
        view.apply(d);
        view.tag = frame.tag;
        this.deltas++;
        if (!d.more) {
            const { space, flush, tag } = frame, { player, seq, full, closed } = d;
            this.told.push({ space, player, seq, flush, tag, full, closed, messages: view.messages, lost: Number(d.messages_lost) });
        }
        if (d.closed) this.views.delete(key);
    }

    // What came since the last time: whole deltas, or Observed ('observed') or Lost ('lost').
    take(kind) {
        if (kind === 'deltas') return this.told.splice(0);
        const mine = (n) => ('observed_ids' in n) === (kind === 'observed');
        const taken = this.notices.filter(mine);
        this.notices = this.notices.filter((n) => !mine(n));
        return taken;
    }

    view(space, player) {
        const view = this.views.get(`${space}/${player}`);
        return view ? view.entities : new Map();
    }
}

module.exports = { Connection, View, ClientFrame, codes, enums, u64, expect };
