// test_conversation.js: the main turns of the protocol, with protobufjs: 64-bit ids, errors, queries, a timed space, Bye.
'use strict';
const { Connection, ClientFrame, codes, enums, u64, expect } = require('./aoiclient.js');
const { withDaemon, main, sleep } = require('./harness.js');

const BIG = '18446744073709551615'; // 2^64 - 1
const equal = (got, want) => expect(JSON.stringify(got) === JSON.stringify(want), `got ${JSON.stringify(got)}, expected ${JSON.stringify(want)}`);

main({
    async ids_of_64_bits_survive_everywhere() {
        await withDaemon({}, async (d) => {
            const c = await Connection.open(d.port);
            await c.ok(BIG, { create_space: { settings: { flush_ms: 0, extra: true } } }, { add_entity: { id: u64(BIG), radius: 10 } },
                { add_entity: { id: u64('9007199254740993'), x: 1, y: 2, extra: 0xfedcba98, layers: 0x80000000, payload: Buffer.from('hi') } },
                { subscribe: { player: u64('9223372036854775808'), entity: u64(BIG) } }, { flush: { tag: u64(BIG) } });
            const view = c.view(BIG, '9223372036854775808');
            equal([...view], [['9007199254740993', { x: 1, y: 2, z: 0, extra: 0xfedcba98, layers: 0x80000000, payload: '6869' }]]);
            equal(c.views.get(`${BIG}/9223372036854775808`).tag, BIG);
            const got = await c.query(BIG, { get_entity: { id: u64('9007199254740993') } });
            equal([got.id, got.owner_session, got.layers], ['9007199254740993', c.welcome.session, 0x80000000]);
            const rows = await c.query(BIG, { aabb: { box: { min_x: -5, min_y: -5, max_x: 5, max_y: 5 } } });
            equal([...rows.ids].sort(), [BIG, '9007199254740993'].sort());
            equal((await c.query(BIG, { view: { player: u64('9223372036854775808') } })).ids, ['9007199254740993']);
            c.close();
        });
    },

    async replies_come_in_order_and_errors_say_what_failed() {
        await withDaemon({}, async (d) => {
            const c = await Connection.open(d.port);
            const replies = await Promise.all([
                c.batch('7', { create_space: { settings: { flush_ms: 0 } } }, { add_entity: { id: u64('1') } }, { add_entity: { id: u64('1') } },
                    { add_entity: { id: u64('2'), x: NaN } }, { move_entities: { ids: u64(['1', '3']), x: [5, 5], y: [5, 5] } }, {}),
                c.call({ ping: { nonce: u64(BIG) } }),
                c.call({ query: { space: u64('8'), count: { box: {} } } }),
                c.call({}),
            ]);
            equal(replies[0].errors.map((e) => [e.index, e.code, e.id]), [
                [2, codes.CODE_DUPLICATE_ENTITY, '1'], [3, codes.CODE_INVALID_ARGUMENT, '2'],
                [4, codes.CODE_UNKNOWN_ENTITY, '3'], [5, codes.CODE_UNSUPPORTED, '0']]);
            equal([replies[0].applied, replies[0].errors_total], ['3', '4']);
            equal(replies[1].pong.nonce, BIG);
            equal(replies[2].error.code, codes.CODE_UNKNOWN_SPACE);
            equal(replies[3].error.code, codes.CODE_UNSUPPORTED);
            c.close();
        });
    },

    async a_timed_space_tells_another_connection_by_itself() {
        await withDaemon({}, async (d) => {
            const mover = await Connection.open(d.port), gateway = await Connection.open(d.port);
            await mover.ok('1', { create_space: { settings: { index: enums.INDEX_CROSSLIST } } }, { add_entity: { id: u64('1'), radius: 10 } });
            await gateway.ok('1', { subscribe: { player: u64('1'), entity: u64('1') } });
            await mover.ok('1', { add_entity: { id: u64('2'), x: 3, y: 4 } });
            for (let waited = 0; !gateway.view('1', '1').has('2'); waited += 5) {
                expect(waited < 30000, 'nothing was told');
                await sleep(5);
            }
            await mover.call({ bye: {} });
            await mover.closed;
            for (let waited = 0; gateway.views.has('1/1'); waited += 5) {
                expect(waited < 30000, 'the end of the space was not told');
                await sleep(5);
            }
            gateway.close();
        });
    },

    async bytes_in_single_writes_mean_the_same_and_garbage_closes() {
        await withDaemon({}, async (d) => {
            const c = await Connection.open(d.port);
            const other = await Connection.open(d.port);
            for (const byte of ClientFrame.encodeDelimited({ seq: u64('0'), ping: { nonce: u64('5') } }).finish()) {
                c.write(Buffer.from([byte]));
                await sleep(1);
            }
            await c.call({ ping: {} });
            c.write(Buffer.from([3, 255, 255, 255]));
            await c.closed;
            equal(c.stray.map((f) => f.error.code), [codes.CODE_MALFORMED]);
            await other.call({ ping: {} });
            other.close();
        });
    },
});
