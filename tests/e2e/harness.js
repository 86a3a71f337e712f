// harness.js: starts and stops the daemon under test, and runs test functions one by one. AOID: its path; AOI_SEED replays a random test.
'use strict';
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const crypto = require('node:crypto');

const AOID = process.env.AOID || path.join(__dirname, '..', '..', 'build', 'aoid');
const SANITIZED = ['event=oracle', 'ERROR: AddressSanitizer', 'runtime error', 'LeakSanitizer', 'UndefinedBehaviorSanitizer'];
const START_MS = 60000, END_MS = 60000, TEST_MS = 150000;

const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

class Daemon {
    static async start(options = {}) {
        const d = new Daemon();
        d.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'aoid-e2e-'));
        const portFile = path.join(d.dir, 'port');
        const args = ['--listen', '127.0.0.1:0', '--port-file', portFile, '--set', 'http_listen=none'];
        // sessions end with their connections, unless a test is about that
        for (const [name, value] of Object.entries({max_lease_ms: 0, ...options})) args.push('--set', `${name}=${value}`);
        d.log = '';
        d.process = spawn(AOID, args, { stdio: ['ignore', 'pipe', 'pipe'] });
        for (const stream of [d.process.stdout, d.process.stderr]) stream.on('data', (text) => { d.log += text; });
        d.exit = new Promise((resolve) => {
            d.process.once('error', (e) => resolve(e.message));
            d.process.once('close', (status, signal) => resolve(signal || status));
        });
        d.exit.then((status) => { d.status = status; });
        for (let waited = 0; !d.port; waited += 5) {
            if (d.status !== undefined || waited > START_MS) throw new Error(`the daemon did not start (${d.status}):\n${d.log}`);
            await sleep(5);
            if (fs.existsSync(portFile)) d.port = Number(fs.readFileSync(portFile, 'utf8').trim().split(':').pop());
        }
        return d;
    }

    async stop() {
        this.process.kill('SIGTERM');
        const status = await Promise.race([this.exit, sleep(END_MS).then(() => 'no end')]);
        if (status === 'no end') this.process.kill('SIGKILL');
        fs.rmSync(this.dir, { recursive: true });
        const report = SANITIZED.find((word) => this.log.includes(word));
        if (report) throw new Error(this.log.slice(Math.max(0, this.log.indexOf(report) - 200)).slice(0, 8000));
        if (status !== 0) throw new Error(`the daemon ended with ${status}:\n${this.log.slice(-3000)}`);
    }
}

// Runs fn with a daemon, which must end cleanly afterwards.
async function withDaemon(options, fn) {
    const d = await Daemon.start(options);
    try {
        await fn(d);
    } catch (e) {
        await d.stop().catch((also) => console.log(also.message));
        throw e;
    }
    await d.stop();
}

// A repeatable generator (mulberry32) whose seed is printed.
function seeded(what) {
    const seed = process.env.AOI_SEED === undefined ? crypto.randomBytes(4).readUInt32LE() : Number(process.env.AOI_SEED);
    console.log(`        ${what}: AOI_SEED=${seed}`);
    let state = seed >>> 0;
    const random = () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let t = state;
        t = Math.imul(t ^ (t >>> 15), t | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    const below = (n) => Math.floor(random() * n);
    return { random, below, pick: (list) => list[below(list.length)], between: (lo, hi) => lo + random() * (hi - lo) };
}

async function main(tests) {
    let passed = 0, failed = 0;
    const wanted = process.argv.slice(2);
    for (const [name, fn] of Object.entries(tests)) {
        if (wanted.length && !wanted.some((w) => name.includes(w))) continue;
        const began = Date.now();
        const hang = setTimeout(() => { console.log(`FAILED  ${name}: no end\n${passed} passed, ${failed + 1} failed`); process.exit(1); }, TEST_MS);
        try {
            await fn();
            passed++;
            console.log(`ok      ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
        } catch (e) {
            failed++;
            console.log(`FAILED  ${name}\n${e.stack}`);
        }
        clearTimeout(hang);
    }
    console.log(`${passed} passed, ${failed} failed`);
    process.exit(failed || !passed ? 1 : 0);
}

module.exports = { Daemon, withDaemon, seeded, main, sleep };
