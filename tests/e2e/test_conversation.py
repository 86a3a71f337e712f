"""test_conversation.py: the protocol, said and answered: Hello, seq and replies, errors, ownership, queries, and every error code."""
import math
import os
import subprocess
import sys

import aoiclient as aoi
from aoiclient import Closed, Connection, code_name, pb
from harness import ROOT, Daemon, eventually, main, refused_start, test

S = 5  # the space of most tests
codes_seen = set()


def kind(frame):
    return frame.WhichOneof("kind")


def error(frame, code, reply_to=None):
    """The frame is an Error of that code; returns its text."""
    assert kind(frame) == "error", frame
    assert frame.error.code == code, "%s, expected %s" % (frame, code_name(code))
    assert reply_to is None or frame.reply_to == reply_to, frame
    assert frame.error.text, "an error explains itself"
    codes_seen.add(code)
    return frame.error.text


def refused(connection, command, code, id=None, space=S):
    """One command, and the one error that its Ack must carry."""
    ack = connection.batch(space, command)
    assert ack.errors_total == 1 and len(ack.errors) == 1 and ack.applied == 0, ack
    e = ack.errors[0]
    assert e.code == code, "%s, expected %s for\n%s" % (e, code_name(code), command)
    assert e.index == 0 and e.text, e
    assert id is None or e.id == id, "%s, expected id %d" % (e, id)
    codes_seen.add(code)


def refused_query(connection, code, space=S, **query):
    reply = connection.call(query=pb.Query(space=space, **query))
    error(reply, code, connection.seq)


def closed(connection):
    """Nothing more comes."""
    try:
        frame = connection.next()
    except Closed:
        return
    raise AssertionError("expected the end, got\n%s" % frame)


def manual(connection, **settings):
    connection.ok(S, aoi.create_space(flush_ms=0, **settings))


# ------------------------------------------------------------------------------------------------------------------- hello

@test
def welcome_tells_version_session_and_limits():
    with Daemon(idle_timeout_ms=12345, query_page=100, max_payload=777) as d, Connection(d.port) as a, Connection(d.port) as b:
        w = a.welcome
        assert w.protocol_version == 1 and w.server_version and w.session and w.session != b.welcome.session, w
        assert (w.max_frame_bytes, w.max_payload, w.query_page, w.idle_timeout_ms) == (1 << 20, 777, 100, 12345), w
        a.ping(1 << 63)


@test
def a_first_frame_that_is_no_hello_ends_the_connection():
    with Daemon() as d:
        for frame in (dict(ping=pb.Ping()), dict(batch=pb.Batch(space=1)), dict(bye=pb.Bye()), dict(query=pb.Query())):
            with Connection(d.port, hello=False) as c:
                seq = c.send(**frame)
                error(c.next(), pb.CODE_UNAUTHENTICATED, seq)
                closed(c)
        with Connection(d.port, hello=False) as c:
            c.write(b"\x00")
            assert kind(c.next()) == "error"
            closed(c)


@test
def a_version_that_the_daemon_does_not_speak_ends_the_connection():
    with Daemon() as d:
        for version in (0, 2, 1 << 31):
            with Connection(d.port, hello=False) as c:
                seq = c.send(hello=pb.Hello(protocol_version=version))
                assert "1" in error(c.next(), pb.CODE_UNSUPPORTED, seq), "the text names the version that works"
                closed(c)


@test
def a_second_hello_is_refused_and_the_connection_kept():
    with Daemon() as d, Connection(d.port) as c:
        error(c.call(hello=pb.Hello(protocol_version=1)), pb.CODE_INVALID_ARGUMENT, 2)
        c.ping()


@test
def a_hello_with_seq_0_is_welcomed_or_else_silent_only_by_rule():
    """seq 0 asks for no reply; what follows works all the same."""
    with Daemon() as d, Connection(d.port, hello=False) as c:
        c.write(aoi.encode(0, hello=pb.Hello(protocol_version=1)) + aoi.encode(1, ping=pb.Ping(nonce=4)))
        frame = c.next()
        if kind(frame) == "welcome":
            assert frame.reply_to == 0
            frame = c.next()
        assert frame.pong.nonce == 4 and frame.reply_to == 1


@test
def silence_instead_of_hello_ends_after_hello_timeout_ms():
    with Daemon(hello_timeout_ms=200) as d:
        with Connection(d.port) as kept, Connection(d.port, hello=False) as silent, Connection(d.port, hello=False) as half:
            half.write(aoi.encode(1, hello=pb.Hello(protocol_version=1))[:-1])
            for c in (silent, half):
                frames = c.frames_until_closed()
                assert [kind(f) for f in frames] == ["error"], frames
                assert frames[0].error.code == pb.CODE_UNAUTHENTICATED and "hello_timeout_ms = 200" in frames[0].error.text, frames
            kept.ping()


@test
def a_hello_over_4_kib_ends_the_connection():
    with Daemon() as d:
        with Connection(d.port, hello=False) as c:
            body = pb.ClientFrame(seq=1, hello=pb.Hello(protocol_version=1, client_name="x")).SerializeToString()
            c.write(aoi.framed(aoi.padded(body, 4096)))
            assert kind(c.next()) == "welcome"
        for size in (4097, 100000):
            with Connection(d.port, hello=False) as c:
                try:
                    c.write(aoi.framed(aoi.padded(body, size)))
                except Closed:
                    pass
                frames = c.frames_until_closed()
                assert len(frames) <= 1 and all(kind(f) == "error" for f in frames), frames
                for f in frames:
                    error(f, pb.CODE_FRAME_TOO_LARGE)


# --------------------------------------------------------------------------------------------------------- seq and replies

@test
def every_seq_gets_one_reply_in_order_and_seq_0_is_silent_unless_it_fails():
    with Daemon() as d, Connection(d.port) as c:
        manual(c)
        data, seqs = b"", []
        for i in range(50):
            seq = c.seq + 1 + 7 * i
            data += aoi.encode(0, batch=pb.Batch(space=S, commands=[aoi.add(1000 + i, 0, 0)]))
            data += aoi.encode(0, ping=pb.Ping(nonce=1))
            data += aoi.encode(seq, batch=pb.Batch(space=S, commands=[aoi.add(1 + i, 0, 0)]))
            data += aoi.encode(seq + 1, ping=pb.Ping(nonce=i))
            data += aoi.encode(seq + 2, query=pb.Query(space=S, get_entity=pb.GetEntityQuery(id=1000 + i)))
            seqs += [(seq, "ack"), (seq + 1, "pong"), (seq + 2, "result")]
        c.write(data)
        c.seq = seqs[-1][0]
        got = []
        while len(got) < len(seqs):
            frame = c.next()
            if frame.reply_to == 0 and kind(frame) == "pong":
                raise AssertionError("a Ping with seq 0 was answered")
            got.append((frame.reply_to, kind(frame)))
        assert got == seqs
        c.write(aoi.encode(0, batch=pb.Batch(space=S, commands=[aoi.add(1, 0, 0)])))
        frame = c.next()
        assert kind(frame) == "ack" and frame.reply_to == 0 and frame.ack.errors[0].code == pb.CODE_DUPLICATE_ENTITY, frame
        c.write(aoi.encode(0, query=pb.Query(space=99, get_entity=pb.GetEntityQuery(id=1))))
        error(c.next(), pb.CODE_UNKNOWN_SPACE, 0)


@test
def a_seq_that_does_not_increase_is_refused_and_not_applied():
    with Daemon() as d, Connection(d.port) as c:
        manual(c)
        for seq in (c.seq, 1):
            c.write(aoi.encode(seq, batch=pb.Batch(space=S, commands=[aoi.add(1, 0, 0)])))
            error(c.next(), pb.CODE_INVALID_ARGUMENT, seq)
        refused_query(c, pb.CODE_UNKNOWN_ENTITY, get_entity=pb.GetEntityQuery(id=1))
        c.ping()
        c.seq = (1 << 64) - 2
        c.ping()
        c.write(aoi.encode(5, ping=pb.Ping()))
        error(c.next(), pb.CODE_INVALID_ARGUMENT, 5)


@test
def an_unset_or_unknown_oneof_and_an_empty_frame_are_unsupported_and_the_connection_is_kept():
    with Daemon() as d, Connection(d.port) as c:
        c.write(b"\x00")
        error(c.next(), pb.CODE_UNSUPPORTED, 0)
        c.write(aoi.encode(c.seq + 1))
        error(c.next(), pb.CODE_UNSUPPORTED, c.seq + 1)
        unknown = aoi.varint(1 << 3) + aoi.varint(c.seq + 2) + aoi.varint(900 << 3 | 2) + b"\x03abc"
        c.write(aoi.framed(unknown))
        error(c.next(), pb.CODE_UNSUPPORTED, c.seq + 2)
        c.seq += 2
        manual(c)
        refused(c, pb.Command(), pb.CODE_UNSUPPORTED)
        refused_query(c, pb.CODE_UNSUPPORTED)
        ack = c.batch(S, aoi.add(1, 0, 0), pb.Command(), aoi.add(2, 0, 0))
        assert ack.applied == 2 and [(e.index, e.code) for e in ack.errors] == [(1, pb.CODE_UNSUPPORTED)], ack
        body = pb.ClientFrame(seq=c.seq + 1, ping=pb.Ping(nonce=8)).SerializeToString() + aoi.varint(77 << 3) + b"\x05"
        c.write(aoi.framed(body))
        assert c.next().pong.nonce == 8, "unknown fields are ignored"
        c.seq += 1
        c.ok(S)  # an empty batch is legal


# ------------------------------------------------------------------------------------------------------------------ errors

@test
def errors_are_told_per_id_with_index_code_id_and_text_and_the_rest_applies():
    with Daemon() as d, Connection(d.port) as c:
        manual(c)
        ack = c.batch(S, aoi.add(1, 1, 1), aoi.add(1, 1, 1), aoi.move((1, 2, 2), (9, 0, 0), (1, math.nan, 0), (1, 3, 3), (0, 1, 1)),
                      aoi.remove(8, 1, 1), aoi.add(0, 0, 0), aoi.subscribe(3, 77), aoi.close_player(4), aoi.add(5, 5, 5))
        want = [(1, pb.CODE_DUPLICATE_ENTITY, 1), (2, pb.CODE_UNKNOWN_ENTITY, 9), (2, pb.CODE_INVALID_ARGUMENT, 1),
                (2, pb.CODE_INVALID_ARGUMENT, 0), (3, pb.CODE_UNKNOWN_ENTITY, 8), (3, pb.CODE_UNKNOWN_ENTITY, 1),
                (4, pb.CODE_INVALID_ARGUMENT, 0), (5, pb.CODE_UNKNOWN_ENTITY, 77), (6, pb.CODE_UNKNOWN_PLAYER, 4)]
        assert [(e.index, e.code, e.id) for e in ack.errors] == want, ack
        assert ack.errors_total == len(want) and ack.applied == 5, ack
        assert all(e.text for e in ack.errors)
        codes_seen.update(e.code for e in ack.errors)
        refused_query(c, pb.CODE_UNKNOWN_PLAYER, view=pb.ViewQuery(player=3))


@test
def an_ack_carries_the_first_1000_errors_and_the_total():
    with Daemon() as d, Connection(d.port) as c:
        manual(c)
        ack = c.batch(S, aoi.add(1, 0, 0), aoi.move(*[(i, 0, 0) for i in range(1, 2500)]), aoi.remove(*range(2, 502)), aoi.add(2, 0, 0))
        assert ack.errors_total == 2498 + 500 and len(ack.errors) == 1000 and ack.applied == 3, (ack.errors_total, len(ack.errors))
        assert [e.id for e in ack.errors] == list(range(2, 1002))


@test
def columns_of_different_lengths_are_refused_as_one_command():
    with Daemon() as d, Connection(d.port) as c:
        manual(c, extra=True)
        c.ok(S, aoi.add(1, 1, 1), aoi.add(2, 2, 2))
        M = pb.MoveEntities
        for m in (M(ids=[1, 2], x=[5, 5], y=[5]), M(ids=[1], x=[5, 5], y=[5, 5]), M(ids=[], x=[5], y=[5]), M(ids=[1, 2]),
                  M(ids=[1, 2], x=[5, 5], y=[5, 5], z=[1]), M(ids=[1, 2], x=[5, 5], y=[5, 5], extra=[1]),
                  M(ids=[1, 2], x=[5, 5], y=[5, 5], extra=[1, 2, 3])):
            refused(c, pb.Command(move_entities=m), pb.CODE_INVALID_ARGUMENT)
        got = c.query(S, get_entity=pb.GetEntityQuery(id=1))
        assert (got.x, got.y) == (1, 1)
        assert c.ok(S, pb.Command(move_entities=M(ids=[1, 2], x=[5, 5], y=[5, 5], z=[1, 1]))).applied == 2, "2D ignores z"
        assert c.ok(S, pb.Command(move_entities=M())).applied == 0
        c.ok(6, aoi.create_space(dimensions=3), aoi.add(1, 1, 1, 1))
        refused(c, aoi.move((1, 2, 2)), pb.CODE_INVALID_ARGUMENT, space=6)
        c.ok(6, aoi.move((1, 2, 2, 2)))


@test
def what_is_not_finite_or_out_of_bounds_changes_nothing():
    with Daemon(max_radius=512) as d, Connection(d.port) as c:
        for index in (pb.INDEX_GRID, pb.INDEX_CROSSLIST):
            s = 10 + index
            c.ok(s, aoi.create_space(index=index, flush_ms=0, bounds=aoi.bounds((-1000, -1000), (1000, 1000))))
            c.ok(s, aoi.add(1, 0, 0, radius=100), aoi.add(5, 0, 0), aoi.add(6, 1e-40, -0.0), aoi.subscribe(1, 1))
            nan, inf = math.nan, math.inf
            for x, y, code in ((nan, 0, pb.CODE_INVALID_ARGUMENT), (0, nan, pb.CODE_INVALID_ARGUMENT), (inf, 1, pb.CODE_INVALID_ARGUMENT),
                               (0, -inf, pb.CODE_INVALID_ARGUMENT), (3e38, 3e38, pb.CODE_OUT_OF_BOUNDS), (1000.1, 0, pb.CODE_OUT_OF_BOUNDS),
                               (0, -1000.1, pb.CODE_OUT_OF_BOUNDS)):
                refused(c, aoi.add(2, x, y), code, 2, s)
                refused(c, aoi.move((1, x, y)), code, 1, s)
                refused(c, aoi.upsert(1, x, y), code, 1, s)
            for radius in (nan, -1, inf, 600):
                refused(c, aoi.set_radius(1, radius), pb.CODE_INVALID_ARGUMENT, 1, s)
                refused(c, aoi.add(2, 0, 0, radius=radius), pb.CODE_INVALID_ARGUMENT, 2, s)
            refused(c, aoi.add(0, 0, 0), pb.CODE_INVALID_ARGUMENT, 0, s)
            got = c.query(s, get_entity=pb.GetEntityQuery(id=1))
            assert (got.x, got.y, got.radius) == (0, 0, 100)
            got = c.query(s, get_entity=pb.GetEntityQuery(id=6))
            assert (got.x, got.y) == (0, 0) and math.copysign(1, got.x) == math.copysign(1, got.y) == 1, got
            c.ok(s, aoi.move((5, 1000, 1000)), aoi.move((5, -1000, -1000)), aoi.move((5, 60, 0)), aoi.flush())
            assert set(c.view(s, 1)) == {5, 6}, "the old radius still works"
            c.ok(s, aoi.set_radius(1, 0), aoi.flush())
            assert c.view(s, 1) == {}, "radius 0 sees nothing"
            for lo, hi in (((5, 5), (-5, -5)), ((nan, 0), (1, 1)), ((0, 0), (inf, 1)), ((-inf, 0), (0, 1))):
                refused(c, aoi.set_viewport(1, lo, hi), pb.CODE_INVALID_ARGUMENT, 1, s)
                refused_query(c, pb.CODE_INVALID_ARGUMENT, s, aabb=pb.AabbQuery(box=aoi.bounds(lo, hi)))
                refused_query(c, pb.CODE_INVALID_ARGUMENT, s, count=pb.CountQuery(box=aoi.bounds(lo, hi)))
            for x, r in ((nan, 1), (inf, 1), (0, nan), (0, -1), (0, inf)):
                refused_query(c, pb.CODE_INVALID_ARGUMENT, s, radius=pb.RadiusQuery(x=x, radius=r))
        c.ok(20, aoi.create_space(), aoi.add(1, 16777216, -16777216))
        refused(c, aoi.move((1, 16777218, 0)), pb.CODE_OUT_OF_BOUNDS, 1, 20)


@test
def settings_that_make_no_sense_are_refused_with_a_reason():
    with Daemon() as d, Connection(d.port) as c:
        nan = math.nan
        for bad in (dict(dimensions=1), dict(dimensions=4), dict(index=9), dict(shape=9), dict(cell_size=0.001), dict(cell_size=-1),
                    dict(cell_size=nan), dict(cell_size=math.inf), dict(cell_range=65), dict(bounds=aoi.bounds((1, 1), (-1, -1))),
                    dict(bounds=aoi.bounds((nan, 0), (1, 1))), dict(bounds=aoi.bounds((0, 0), (math.inf, 1)))):
            refused(c, aoi.create_space(**bad), pb.CODE_INVALID_ARGUMENT, S)
        refused(c, aoi.create_space(), pb.CODE_INVALID_ARGUMENT, 0, space=0)
        c.ok(S, aoi.create_space(cell_size=1 / 64, cell_range=64, shape=pb.SHAPE_CELLS, dimensions=3))
        refused(c, aoi.add(1, 0, 0, mode=9), pb.CODE_INVALID_ARGUMENT, 1)


@test
def spaces_are_made_once_and_if_absent_compares_settings():
    with Daemon() as d, Connection(d.port) as a, Connection(d.port) as b:
        a.ok(S, aoi.create_space(flush_ms=0, extra=True))
        refused(a, aoi.create_space(flush_ms=0, extra=True), pb.CODE_DUPLICATE_SPACE, S)
        refused(b, aoi.create_space(flush_ms=0), pb.CODE_DUPLICATE_SPACE, S)
        b.ok(S, aoi.create_space(if_absent=True, flush_ms=0, extra=True))
        b.ok(S, aoi.create_space(if_absent=True, flush_ms=0, extra=True, dimensions=2, cell_size=100, index=pb.INDEX_GRID))
        for other in (dict(flush_ms=0), dict(flush_ms=50, extra=True), dict(extra=True), dict(flush_ms=0, extra=True, dimensions=3)):
            refused(b, aoi.create_space(if_absent=True, **other), pb.CODE_DUPLICATE_SPACE, S)
        refused(a, aoi.add(1, 0, 0), pb.CODE_UNKNOWN_SPACE, space=99)
        refused(a, aoi.destroy_space(), pb.CODE_UNKNOWN_SPACE, 99, space=99)
        refused(a, aoi.flush(), pb.CODE_UNKNOWN_SPACE, space=99)
        for query in (dict(aabb=pb.AabbQuery(box=aoi.bounds((0, 0), (1, 1)))), dict(stats=pb.StatsQuery()), dict(view=pb.ViewQuery(player=1))):
            refused_query(a, pb.CODE_UNKNOWN_SPACE, 99, **query)


@test
def a_space_ends_with_its_session_unless_persistent():
    with Daemon() as d, Connection(d.port) as watcher:
        with Connection(d.port) as maker:
            maker.ok(1, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=5), aoi.add(2, 1, 1))
            maker.ok(2, aoi.create_space(flush_ms=0, persistent=True), aoi.add(1, 0, 0))
            watcher.ok(1, aoi.subscribe(7, 1), aoi.flush())
            watcher.ok(2, aoi.set_viewport(8, (-9, -9), (9, 9)), aoi.flush())
            assert set(watcher.view(1, 7)) == {2} and set(watcher.view(2, 8)) == {1}
            watcher.take_deltas()
        while (1, 7) in watcher.views:
            watcher.next()
        closed_delta, = watcher.take_deltas()
        assert closed_delta.closed and closed_delta.player == 7 and closed_delta.seq == 2
        assert [s.id for s in watcher.query(list_spaces=pb.ListSpacesQuery()).spaces] == [2]
        watcher.ok(2, aoi.flush())
        assert watcher.view(2, 8) == {}, "the maker's entities are gone, its persistent space is not"
        info, = watcher.query(list_spaces=pb.ListSpacesQuery()).spaces
        assert info.owner_session == 0 and info.settings.persistent


@test
def spaces_of_the_configuration_belong_to_nobody_and_cannot_be_destroyed():
    with Daemon(config="[space 9]\ndimensions = 3\nindex = crosslist\nflush_ms = 0\nextra = yes\n") as d:
        with Connection(d.port) as c:
            info, = c.query(list_spaces=pb.ListSpacesQuery()).spaces
            assert info.id == 9 and info.owner_session == 0 and info.settings.dimensions == 3 and info.settings.extra
            assert info.settings.index == pb.INDEX_CROSSLIST and info.settings.flush_ms == 0
            refused(c, aoi.destroy_space(), pb.CODE_NOT_OWNER, 9, space=9)
            c.ok(9, aoi.add(1, 0, 0, 0, radius=5), aoi.add(2, 1, 1, 1, extra=5), aoi.subscribe(1, 1), aoi.flush())
            assert c.view(9, 1) == {2: (1, 1, 1, 5, 1, b"")}


# --------------------------------------------------------------------------------------------------------------- ownership

@test
def only_its_owner_may_change_an_entity_or_a_player():
    with Daemon() as d, Connection(d.port) as g1, Connection(d.port) as g2:
        manual(g1)
        g1.ok(S, aoi.add(9, 1, 1), aoi.subscribe(1, 9))
        refused(g2, aoi.add(9, 2, 2), pb.CODE_DUPLICATE_ENTITY, 9)
        for command in (aoi.move((9, 5, 5)), aoi.remove(9), aoi.set_radius(9, 3), aoi.set_layers(9, 3), aoi.set_payload(9, b"x"),
                        aoi.upsert(9, 5, 5)):
            refused(g2, command, pb.CODE_NOT_OWNER, 9)
        refused(g1, aoi.add(9, 1, 1), pb.CODE_DUPLICATE_ENTITY, 9)
        g2.ok(S, aoi.add(10, 2, 2))
        for command in (aoi.open_player(1), aoi.close_player(1), aoi.subscribe(1, 10), aoi.unsubscribe(1, 9), aoi.set_viewport(1, (0, 0), (1, 1)),
                        aoi.clear_viewport(1)):
            refused(g2, command, pb.CODE_NOT_OWNER, 1)
        reply = g2.call(resync=pb.Resync(space=S, player=1))
        failed = reply.ack.errors[0].code if kind(reply) == "ack" else reply.error.code
        assert failed == pb.CODE_NOT_OWNER, reply
        g2.ok(S, aoi.subscribe(2, 9, True), aoi.flush())  # anybody may subscribe to anything
        assert set(g2.view(S, 2)) == {9}
        got = g1.query(S, get_entity=pb.GetEntityQuery(id=9))
        assert (got.x, got.y, got.radius, got.layers, got.payload) == (1, 1, 0, 1, b"") and got.owner_session == g1.welcome.session
        assert got.subscribers == 2
        box = pb.AabbQuery(box=aoi.bounds((0, 0), (5, 5)))
        assert sorted(g1.query(S, aabb=box).ids) == [9, 10]


@test
def unknown_ids_and_players_are_told_apart():
    with Daemon() as d, Connection(d.port) as c:
        manual(c)
        c.ok(S, aoi.add(1, 0, 0, radius=10), aoi.subscribe(1, 1), aoi.add(30, 3, 3), aoi.flush())
        for command, id in ((aoi.move((77, 0, 0)), 77), (aoi.remove(77), 77), (aoi.set_radius(77, 1), 77), (aoi.set_layers(77, 1), 77),
                            (aoi.set_payload(77, b""), 77), (aoi.subscribe(1, 77), 77), (aoi.unsubscribe(1, 77), 77), (aoi.unsubscribe(1, 30), 30)):
            refused(c, command, pb.CODE_UNKNOWN_ENTITY, id)
        for command in (aoi.close_player(5), aoi.unsubscribe(5, 1), aoi.clear_viewport(5)):
            refused(c, command, pb.CODE_UNKNOWN_PLAYER, 5)
        for command in (aoi.open_player(0), aoi.subscribe(0, 1), aoi.subscribe(1, 0), aoi.set_viewport(0, (0, 0), (1, 1))):
            refused(c, command, pb.CODE_INVALID_ARGUMENT)
        ack = c.batch(S, aoi.remove(30, 30), aoi.add(31, 3, 3), aoi.flush())
        assert [(e.code, e.id) for e in ack.errors] == [(pb.CODE_UNKNOWN_ENTITY, 30)]
        first, second = c.take_deltas()
        assert set(first.enters) == {30} and second.leaves == {30} and set(second.enters) == {31}


@test
def limits_are_explicit_errors_and_nothing_is_lost():
    limits = dict(max_payload=16, max_entities=3, max_players=2, max_units=2, max_spaces=2)
    with Daemon(**limits) as d, Connection(d.port) as c:
        manual(c)
        c.ok(6, aoi.create_space())
        refused(c, aoi.create_space(), pb.CODE_LIMIT_EXCEEDED, 7, space=7)
        c.ok(S, aoi.add(1, 0, 0, radius=5), aoi.add(2, 1, 0, radius=5), aoi.add(3, 2, 0, payload=bytes(16)))
        refused(c, aoi.add(4, 0, 0), pb.CODE_LIMIT_EXCEEDED, 4)
        refused(c, aoi.set_payload(1, bytes(17)), pb.CODE_LIMIT_EXCEEDED, 1)
        refused(c, aoi.upsert(1, 9, 9, payload=bytes(17)), pb.CODE_LIMIT_EXCEEDED, 1)
        c.ok(S, aoi.subscribe(1, 1), aoi.subscribe(1, 2), aoi.subscribe(1, 2, True), aoi.open_player(2))
        refused(c, aoi.subscribe(1, 3), pb.CODE_LIMIT_EXCEEDED)
        for command in (aoi.open_player(3), aoi.subscribe(3, 1), aoi.set_viewport(3, (0, 0), (1, 1))):
            refused(c, command, pb.CODE_LIMIT_EXCEEDED, 3)
        c.ok(S, aoi.remove(2), aoi.add(4, 0, 0), aoi.subscribe(1, 3), aoi.close_player(2), aoi.open_player(3), aoi.flush())
        assert set(c.view(S, 1)) == {3, 4}


# ------------------------------------------------------------------------------------------------------- deltas and replies

@test
def an_ack_comes_before_deltas_except_those_of_a_flush_inside_its_batch():
    with Daemon() as d, Connection(d.port) as c:
        manual(c)
        c.ok(6, aoi.create_space(flush_ms=1))
        seq = c.send(batch=pb.Batch(space=S, commands=[aoi.add(1, 0, 0, radius=5), aoi.add(2, 1, 1), aoi.subscribe(1, 1), aoi.flush(3)]))
        assert kind(c.next()) == "deltas"
        assert c.next().reply_to == seq
        for _ in range(30):  # a timed space never tells before it acks
            c.views.pop((6, 1), None)
            seq = c.send(batch=pb.Batch(space=6, commands=[aoi.add(1, 0, 0, radius=5), aoi.add(2, 1, 1), aoi.subscribe(1, 1)]))
            frame = c.next()
            assert kind(frame) == "ack" and frame.reply_to == seq, frame
            c.wait("deltas")
            c.ok(6, aoi.close_player(1), aoi.remove(1, 2))
            while (6, 1) in c.views:
                c.next()


@test
def close_player_sends_a_last_numbered_delta_right_after_its_ack():
    with Daemon() as d, Connection(d.port) as a, Connection(d.port) as b:
        manual(a)
        a.ok(S, aoi.add(1, 0, 0, radius=5), aoi.add(2, 1, 1), aoi.subscribe(1, 1), aoi.subscribe(2, 2), aoi.flush())
        a.ok(S, aoi.move((2, 1, 2)), aoi.flush())
        assert a.views[S, 1].seq == 2
        a.take_deltas()
        a.write(aoi.encode(a.seq + 1, batch=pb.Batch(space=S, commands=[aoi.close_player(1), aoi.close_player(2), aoi.add(3, 1, 1)]))
                + aoi.encode(a.seq + 2, ping=pb.Ping(nonce=1)))
        a.seq += 2
        assert a.next().reply_to == a.seq - 1
        while kind(a.next()) == "deltas":
            pass
        assert kind(a.log[-1]) == "pong"
        deltas = {delta.player: delta for delta in a.take_deltas()}
        assert deltas[1].closed and deltas[1].seq == 3 and deltas[2].closed and deltas[2].seq == 1, "also one that was told nothing"
        a.ok(S, aoi.flush())
        assert a.take_deltas() == []
        a.ok(S, aoi.subscribe(1, 1), aoi.flush())  # a new player: number 1, nothing told
        delta, = a.take_deltas()
        assert delta.seq == 1 and not delta.full and set(delta.enters) == {2, 3}
        refused(b, aoi.subscribe(1, 1), pb.CODE_NOT_OWNER, 1)
        a.ok(S, aoi.close_player(1))
        a.ping()
        b.ok(S, aoi.subscribe(1, 1), aoi.flush())  # now it is b's
        assert set(b.view(S, 1)) == {2, 3}


@test
def a_player_closed_and_opened_in_one_batch_with_a_flush_is_told_in_that_order():
    with Daemon() as d, Connection(d.port) as c:
        manual(c)
        c.ok(S, aoi.add(1, 0, 0, radius=5), aoi.add(2, 1, 1), aoi.subscribe(1, 1), aoi.flush())
        c.ok(S, aoi.close_player(1), aoi.subscribe(1, 1), aoi.flush())
        c.ping()
        first, last, again = c.take_deltas()  # the mirror has checked the numbers
        assert first.seq == 1 and last.closed and last.seq == 2 and again.seq == 1 and set(again.enters) == {2}


@test
def destroying_a_space_closes_the_players_of_other_sessions():
    with Daemon() as d, Connection(d.port) as maker, Connection(d.port) as other:
        manual(maker)
        maker.ok(S, aoi.add(1, 0, 0, radius=5), aoi.add(2, 1, 1), aoi.subscribe(1, 1))
        other.ok(S, aoi.subscribe(2, 1), aoi.open_player(3), aoi.flush())
        assert set(other.view(S, 2)) == {2}
        maker.ping()
        maker.take_deltas(), other.take_deltas()
        seq = maker.send(batch=pb.Batch(space=S, commands=[aoi.destroy_space(), aoi.add(5, 0, 0)]))
        frame = maker.next()
        assert frame.reply_to == seq and [(e.index, e.code) for e in frame.ack.errors] == [(1, pb.CODE_UNKNOWN_SPACE)], frame
        assert kind(maker.next()) == "deltas"
        other.ping()
        assert [(x.player, x.closed, x.seq) for x in maker.take_deltas()] == [(1, True, 2)]
        assert sorted((x.player, x.closed, x.seq) for x in other.take_deltas()) == [(2, True, 2), (3, True, 1)]
        assert len(other.query(list_spaces=pb.ListSpacesQuery()).spaces) == 0
        manual(other)  # the id is free again, and nothing of the old space is there
        refused_query(other, pb.CODE_UNKNOWN_ENTITY, get_entity=pb.GetEntityQuery(id=1))
        refused_query(other, pb.CODE_UNKNOWN_PLAYER, view=pb.ViewQuery(player=2))


@test
def without_tokens_everybody_is_admin_and_may_destroy_a_space():
    with Daemon() as d, Connection(d.port) as maker, Connection(d.port) as other:
        manual(maker)
        other.ok(S, aoi.destroy_space())
        refused(maker, aoi.add(1, 0, 0), pb.CODE_UNKNOWN_SPACE)


@test
def identity_layers_masks_and_payloads_are_told_as_they_are():
    with Daemon() as d, Connection(d.port) as c:
        for index in (pb.INDEX_GRID, pb.INDEX_CROSSLIST):
            s = 30 + index
            c.ok(s, aoi.create_space(flush_ms=0, index=index), aoi.add(1, 0, 0, radius=10), aoi.add(7, 3, 0, payload=b"a"))
            c.ok(s, aoi.subscribe(1, 1), aoi.flush())
            c.take_deltas()
            c.ok(s, aoi.remove(7), aoi.add(7, 4, 0, payload=b"b"), aoi.flush())
            delta, = c.take_deltas()
            assert delta.leaves == {7} and delta.enters == {7: (4, 0, 0, 0, 1, b"b")}
            c.ok(s, aoi.remove(7), aoi.upsert(7, 4, 0, payload=b"b"), aoi.flush())
            delta, = c.take_deltas()
            assert delta.leaves == {7} and set(delta.enters) == {7}, "upsert of what was removed is a new entity"
            c.ok(s, aoi.upsert(7, 5, 0, payload=b"c", layers=6, radius=2), aoi.flush())
            delta, = c.take_deltas()
            assert not delta.leaves and not delta.enters and delta.updates == {7: (5, 0, 0, 0)}
            assert delta.payloads == {7: b"c"} and delta.layers == {7: 6}
            c.ok(s, aoi.open_player(1, 1), aoi.flush())
            delta, = c.take_deltas()
            assert delta.leaves == {7}
            c.ok(s, aoi.subscribe(1, 1, True), aoi.set_layers(1, 0), aoi.set_layers(7, 1), aoi.flush())
            delta, = c.take_deltas()
            assert set(delta.enters) == {1, 7} and delta.enters[1][4] == 0, "the unit itself, whatever its layers"
            c.ok(s, aoi.subscribe(1, 1), aoi.set_layers(7, 0), aoi.flush())
            delta, = c.take_deltas()
            assert delta.leaves == {1, 7}
            c.ok(s, aoi.set_layers(7, 1), aoi.remove(7), aoi.add(7, 500, 0), aoi.add(8, 1, 1), aoi.remove(8), aoi.flush())
            assert c.take_deltas() == []
            c.ok(s, aoi.subscribe(1, 7), aoi.set_radius(7, 1000), aoi.remove(1), aoi.flush())
            assert c.take_deltas() == [], "a unit is never told through itself"


@test
def a_full_delta_restates_the_view_and_may_be_empty():
    with Daemon() as d, Connection(d.port) as c:
        manual(c, extra=True)
        c.ok(S, aoi.add(1, 0, 0, radius=5), aoi.add(2, 1, 1, extra=9, payload=b"p"), aoi.subscribe(1, 1), aoi.open_player(2), aoi.flush())
        c.take_deltas()
        for _ in range(3):
            c.call(resync=pb.Resync(space=S, player=0))  # pending requests coalesce
        c.ok(S, aoi.move((2, 1, 2)), aoi.flush())
        deltas = {delta.player: delta for delta in c.take_deltas()}
        assert deltas[1].full and deltas[1].seq == 2 and deltas[1].enters == {2: (1, 2, 0, 9, 1, b"p")}
        assert deltas[2].full and deltas[2].seq == 1 and not deltas[2].enters
        c.ok(S, aoi.flush())
        assert c.take_deltas() == []
        reply = c.call(resync=pb.Resync(space=S, player=77))
        assert (reply.ack.errors[0].code if kind(reply) == "ack" else reply.error.code) == pb.CODE_UNKNOWN_PLAYER, reply
        reply = c.call(resync=pb.Resync(space=99, player=1))
        assert (reply.ack.errors[0].code if kind(reply) == "ack" else reply.error.code) == pb.CODE_UNKNOWN_SPACE, reply


@test
def bounds_of_a_3d_space_hold_z_at_0_where_it_is_not_set():
    with Daemon() as d, Connection(d.port) as c:
        flat = pb.Bounds(min_x=-5, min_y=-5, max_x=5, max_y=5)
        c.ok(S, aoi.create_space(dimensions=3, bounds=flat), aoi.add(1, 0, 0, 0))
        assert [e.code for e in c.batch(S, aoi.add(2, 0, 0, 1)).errors] == [pb.CODE_OUT_OF_BOUNDS]


@test
def flush_numbers_count_and_time_is_told():
    with Daemon() as d, Connection(d.port) as c:
        manual(c)
        c.ok(S, aoi.flush(), aoi.flush(), aoi.add(1, 0, 0, radius=5), aoi.subscribe(1, 1, True), aoi.flush((1 << 64) - 1))
        c.ok(S, aoi.move((1, 1, 1)), aoi.flush(4))
        a, b = c.take_deltas()
        assert (a.flush, b.flush) == (3, 4) and (a.tag, b.tag) == ((1 << 64) - 1, 4), (vars(a), vars(b))
        assert 1.6e15 < a.time_us <= b.time_us
        assert c.ok(S, aoi.flush()).pending is False


# --------------------------------------------------------------------------------------------------------- bye, ping, queries

@test
def bye_removes_what_the_session_owns_and_closes():
    with Daemon() as d, Connection(d.port) as watcher:
        watcher.ok(S, aoi.create_space(flush_ms=0), aoi.set_viewport(1, (-9, -9), (9, 9)))
        with Connection(d.port) as c:
            c.ok(S, aoi.add(2, 0, 0, radius=3), aoi.subscribe(5, 2))
            watcher.ok(S, aoi.add(3, 1, 1), aoi.flush())
            assert set(watcher.view(S, 1)) == {2, 3}
            seq = c.send(bye=pb.Bye())
            for frame in c.frames_until_closed():
                assert kind(frame) in ("ack", "deltas") and frame.reply_to in (0, seq), frame
        watcher.ok(S, aoi.flush())
        assert set(watcher.view(S, 1)) == {3}
        refused_query(watcher, pb.CODE_UNKNOWN_PLAYER, view=pb.ViewQuery(player=5))


@test
def an_idle_connection_is_closed_and_ping_keeps_it():
    with Daemon(idle_timeout_ms=400) as d, Connection(d.port) as idle, Connection(d.port) as busy:
        ended, told = False, []
        for _ in range(400):
            busy.ping()
            try:
                told.append(idle.next(0.05))
            except Closed:
                ended = True
                break
            except TimeoutError:
                pass
        assert ended, "still there after 20 s"
        assert [kind(f) for f in told] == ["error"], told
        assert told[0].error.code == pb.CODE_INVALID_ARGUMENT and "idle for 400 ms" in told[0].error.text, told
        busy.ping()


@test
def a_browser_is_told_at_once_that_this_is_no_http_server():
    with Daemon(hello_timeout_ms=60000) as d, Connection(d.port, hello=False) as c:
        c.write(b"GET / HTTP/1.1\r\n\r\n")
        frames = c.frames_until_closed()
        assert [f.error.code for f in frames] == [pb.CODE_MALFORMED] and "HTTP" in frames[0].error.text, frames


@test
def after_bye_nothing_is_left_unsent_and_the_log_says_so():
    with Daemon() as d, Connection(d.port) as c:
        c.send(bye=pb.Bye())
        assert [kind(f) for f in c.frames_until_closed()] == ["ack"]
        eventually(lambda: "reason=bye unsent_bytes=0" in d.log(), "the close is logged")


@test
def a_daemon_that_does_not_start_says_in_plain_words_what_to_do():
    with Daemon() as d:
        for args, status, words in (
            (["--listen", "127.0.0.1:%d" % d.port], 1, "choose another one"),
            (["--port-file", "/no/such/dir/port"], 1, "--port-file /no/such/dir/port: cannot be written"),
            (["--set", "max_units=-1"], 2, "aoid: --set: max_units = -1: must be between 1 and 1000000\n"),
            (["--no-such-option"], 2, "aoid: there is no option --no-such-option; try `aoid --help`\n"),
            (["--set"], 2, "aoid: --set needs a value behind it; try `aoid --help`\n"),
            (["--config", "/no/such/file"], 2, "aoid: /no/such/file: No such file or directory\n"),
        ):
            text = refused_start(*args, status=status)
            assert words in text, (args, text)
            assert "event=ready" not in text or "port-file" not in words, (args, text)
            assert status == 1 or text.count("\n") == 1, (args, text)  # who types is told in one line


@test
def refusals_are_logged_once_a_frame_at_level_debug():
    with Daemon(log_level="debug") as d, Connection(d.port) as c:
        c.send(batch=pb.Batch(space=S, commands=[aoi.flush(), aoi.flush()]))
        c.next()
        c.send(query=pb.Query(space=S, view=pb.ViewQuery(player=1)))
        c.next()
        lines = [line for line in d.log().splitlines() if "event=refused" in line]
        assert len(lines) == 2 and all("code=UNKNOWN_SPACE" in line and "peer=127.0.0.1:" in line for line in lines), lines
        assert "commands=2 index=0" in lines[0], lines


@test
def queries_page_by_cursor_and_say_when_nothing_is_there():
    with Daemon(query_page=10) as d, Connection(d.port) as c:
        for index in (pb.INDEX_GRID, pb.INDEX_CROSSLIST):
            s = 40 + index
            c.ok(s, aoi.create_space(flush_ms=0, index=index, extra=True))
            c.ok(s, *[aoi.add(1000 - i, i % 10, i // 10, extra=i, layers=1 + i % 3) for i in range(100)])
            box = aoi.bounds((0, 0), (9, 9))
            ids, pages, cursor = [], 0, 0
            while True:
                page = c.query(s, aabb=pb.AabbQuery(box=box, cursor=cursor, limit=0 if pages else 5000))
                assert len(page.ids) <= 10 and len(page.ids) == len(page.extra) == len(page.layers) and not page.z
                assert all(e == 1000 - i for e, i in zip(page.extra, page.ids))
                ids, pages, cursor = ids + list(page.ids), pages + 1, page.next_cursor
                if not cursor:
                    break
            assert sorted(ids) == list(range(901, 1001)) and pages in (10, 11)
            for lo, hi, want in (((3, 3), (3, 3), 1), ((0, 3), (9, 3), 10), ((20, 20), (30, 30), 0), ((-1e30, -1e30), (1e30, 1e30), 100)):
                got = c.query(s, aabb=pb.AabbQuery(box=aoi.bounds(lo, hi)))
                assert len(got.ids) == min(want, 10) and (want or got.next_cursor == 0)
                assert c.query(s, count=pb.CountQuery(box=aoi.bounds(lo, hi))).entities == want
            assert c.query(s, count=pb.CountQuery(box=box, layers=4)).entities == 0
            assert c.query(s, count=pb.CountQuery(box=box, layers=2)).entities == sum(1 for i in range(100) if (1 + i % 3) & 2)
            c.ok(s, aoi.set_radius(1000, 2.0), aoi.subscribe(1, 1000), aoi.set_viewport(2, (50, 50), (60, 60)), aoi.subscribe(3, 999), aoi.flush())
            assert c.query(s, count=pb.CountQuery(box=box)).players == 1
            assert c.query(s, count=pb.CountQuery(box=aoi.bounds((2, 2), (50, 50)))).players == 2
            assert c.query(s, count=pb.CountQuery(box=aoi.bounds((2.5, 2.5), (49, 49)))).players == 0
            view = c.query(s, view=pb.ViewQuery(player=1))
            assert sorted(view.ids) == sorted(c.view(s, 1)) and view.seq == 1 and view.next_cursor == 0 and len(view.ids) == 8
            assert list(c.query(s, view=pb.ViewQuery(player=2)).ids) == []
            stats = c.query(s, stats=pb.StatsQuery())
            assert (stats.entities, stats.players, stats.pairs, stats.enters, stats.flushes) == (100, 3, 8, 8, 1), stats
            refused_query(c, pb.CODE_INVALID_ARGUMENT, s, aabb=pb.AabbQuery())
            refused_query(c, pb.CODE_INVALID_ARGUMENT, s, aabb=pb.AabbQuery(box=aoi.bounds((10, 10), (-10, -10))))
            refused_query(c, pb.CODE_UNKNOWN_ENTITY, s, get_entity=pb.GetEntityQuery(id=5))
        total = c.query(stats=pb.StatsQuery())
        assert total.spaces == 2 and total.entities == 200 and total.connections == 1 and total.frames_in > 20 and total.bytes_in > 1000, total
        for i in range(100, 125):
            c.ok(i, aoi.create_space())
        ids, cursor = [], 0
        while True:
            page = c.query(list_spaces=pb.ListSpacesQuery(cursor=cursor, limit=4))
            assert len(page.spaces) <= 4
            ids += [info.id for info in page.spaces]
            cursor = page.next_cursor
            if not cursor:
                break
        assert ids == [41, 42] + list(range(100, 125))


@test
def a_radius_query_is_by_euclidean_distance_in_any_shape():
    with Daemon() as d, Connection(d.port) as c:
        for shape in (pb.SHAPE_BOX, pb.SHAPE_SPHERE, pb.SHAPE_CELLS):
            for dims in (2, 3):
                s = 50 + 2 * shape + dims
                c.ok(s, aoi.create_space(shape=shape, dimensions=dims), aoi.add(1, 3, 4), aoi.add(2, 4, 4), aoi.add(3, 0, 0, 6))
                want = [1, 3] if dims == 2 else [1]
                assert sorted(c.query(s, radius=pb.RadiusQuery(radius=5)).ids) == want
                got = c.query(s, radius=pb.RadiusQuery(x=3, y=4, radius=0))
                assert list(got.ids) == [1] and len(got.z) == (1 if dims == 3 else 0)


# ------------------------------------------------------------------------------------------------------------------ the rest

@test
def the_readme_s_first_conversation_works_as_written():
    with Daemon() as d:
        script = os.path.join(ROOT, "tests", "e2e", "first_conversation.py")
        with open(script) as example, open(os.path.join(ROOT, "README.md")) as readme:
            assert example.read() in readme.read(), "README.md shows another first conversation than the one that is tested"
        env = dict(os.environ, PYTHONPATH=aoi.GENERATED)
        out = subprocess.run([sys.executable, script, str(d.port)], env=env, capture_output=True, text=True, timeout=60, check=False)
        assert out.returncode == 0, out.stderr
        assert "commands applied: 4\n" in out.stdout and "player 7 sees entity 2 at 3.0 4.0 carrying b'hello'" in out.stdout, out.stdout


@test
def every_error_code_but_those_of_dying_connections_has_been_seen():
    if len(sys.argv) > 1:
        return
    elsewhere = {pb.CODE_UNSPECIFIED, pb.CODE_MALFORMED, pb.CODE_FRAME_TOO_LARGE, pb.CODE_DRAINING}  # test_hostile.py, test_drain.py
    missing = set(pb.Code.values()) - elsewhere - codes_seen
    assert not missing, [code_name(code) for code in missing]


if __name__ == "__main__":
    main()
