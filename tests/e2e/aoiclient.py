"""aoiclient.py: a client of aoid in plain Python: framing by hand, and a mirror of each player's view that refuses an illegal delta.

It shares nothing with the C code but proto/aoi/v1/aoi.proto, from which the message classes are generated on first use.
"""
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROTO = os.environ.get("AOI_PROTO", os.path.join(ROOT, "proto"))


def generate(where):
    """Makes where/aoi/v1/aoi_pb2.py if it is missing or older than the .proto; safe if several processes do it at once."""
    proto = os.path.join(PROTO, "aoi", "v1", "aoi.proto")
    made = os.path.join(where, "aoi", "v1", "aoi_pb2.py")
    if not os.path.exists(made) or os.path.getmtime(made) < os.path.getmtime(proto):
        os.makedirs(os.path.dirname(made), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=where) as tmp:
            subprocess.run(["protoc", "-I" + PROTO, "--python_out=" + tmp, proto], check=True)
            os.replace(os.path.join(tmp, "aoi", "v1", "aoi_pb2.py"), made)
    sys.path.insert(0, where)


try:
    from aoi.v1 import aoi_pb2 as pb  # PYTHONPATH names the directory of a build
except ImportError:
    generate(os.path.join(ROOT, "build", "py"))
    from aoi.v1 import aoi_pb2 as pb
GENERATED = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(pb.__file__))))

TIMEOUT = 60.0  # seconds without an expected frame before a test fails


class Closed(Exception):
    """The daemon has closed the connection; .reset tells whether by RST."""

    def __init__(self, reset=False):
        super().__init__("connection closed by the daemon" + (" (reset)" if reset else ""))
        self.reset = reset


class IllegalDelta(Exception):
    pass


def code_name(code):
    return pb.Code.Name(code).replace("CODE_", "")


# ------------------------------------------------------------------------------------------------------------------ framing

def varint(n):
    out = bytearray()
    while n > 0x7f:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def framed(body):
    return varint(len(body)) + body


def encode(seq=0, **kind):
    """The bytes of one ClientFrame: encode(3, ping=pb.Ping(nonce=7))."""
    return framed(pb.ClientFrame(seq=seq, **kind).SerializeToString())


def padded(frame_bytes_without_prefix, size):
    """Grows a frame's body to exactly `size` bytes by an unknown field, which receivers ignore. size - len must leave room for its header."""
    key = varint(2000 << 3 | 2)
    for length_bytes in (1, 2, 3, 4):
        rest = size - len(frame_bytes_without_prefix) - len(key) - length_bytes
        if rest >= 0 and len(varint(rest)) == length_bytes:
            return frame_bytes_without_prefix + key + varint(rest) + bytes(rest)
    raise ValueError("cannot pad to %d" % size)


def take_frame(inbox):
    """The first whole frame's body, removed from the bytearray, or None. Fails on a prefix that no daemon may send."""
    length = 0
    for i in range(min(len(inbox), 5)):
        if i == 4:
            raise IllegalDelta("a length prefix of more than 4 bytes")
        length |= (inbox[i] & 0x7f) << (7 * i)
        if inbox[i] < 0x80:
            if len(inbox) < i + 1 + length:
                return None
            body = bytes(inbox[i + 1:i + 1 + length])
            del inbox[:i + 1 + length]
            return body
    return None


# ------------------------------------------------------------------------------------------------------------------- mirror

class Delta:
    """A whole delta of one player, its parts put together."""

    def __init__(self, space, frame):
        self.space, self.flush, self.tag, self.time_us = space, frame.flush, frame.tag, frame.time_us
        self.leaves, self.enters, self.updates, self.payloads, self.layers = set(), {}, {}, {}, {}
        self.messages = []  # (publishing entity or 0, bytes), in the order in which they came
        self.full = self.closed = False
        self.player = self.seq = self.parts = self.lost = 0


class View:
    """What a player has been told: id -> (x, y, z, extra, layers, payload)."""

    def __init__(self):
        self.seq = 0
        self.entities = {}
        self.building = None  # a Delta of which parts are still to come
        self.lapsed = False

    def lapse(self):
        """The session was resumed: deltas may have been lost."""
        self.building, self.lapsed = None, True

    def apply(self, frame, d):
        """Applies one PlayerDelta. Returns the whole Delta, or None if more parts follow."""
        if self.building is None:
            self._expect(d.part == 0, d, "the first part is numbered %d" % d.part)
            taken_over = (self.seq == 0 or self.lapsed) and d.seq > 0 and (d.full or d.closed)  # it goes on where the session that lost it stopped
            self._expect(not self.lapsed or d.full or d.closed, d, "the first one after a resume is full")
            self._expect(d.seq == self.seq + 1 or taken_over, d, "follows number %d" % self.seq)
            self.lapsed = False
            self.building = Delta(frame.space, frame)
            self.building.player, self.building.seq, self.building.full, self.building.closed = d.player, d.seq, d.full, d.closed
        b = self.building
        self._expect(d.seq == b.seq and d.part == b.parts and d.full == b.full, d, "part %d after %d parts of %d" % (d.part, b.parts, b.seq))
        self._expect(frame.flush == b.flush and frame.tag == b.tag, d, "parts of different flushes")
        b.parts += 1
        if d.full and d.part == 0:
            self.entities = {}
        self._sections(b, d)
        self._expect(len(d.message_from) == len(d.messages), d, "message columns")
        b.messages += zip(d.message_from, d.messages)
        self._expect(not d.messages_lost or not d.more, d, "messages_lost before the last part")
        if d.more:
            return None
        b.lost = d.messages_lost
        self.building, self.seq = None, d.seq
        if d.closed:
            self._expect(not (b.leaves or b.enters or b.updates or b.payloads or b.layers or b.messages), d, "a closed delta is empty")
            self.entities = {}
        return b

    def _sections(self, b, d):
        held = self.entities
        for i in d.leave_ids:
            self._expect(held.pop(i, None) is not None and i not in b.leaves, d, "leave of %d, which is not held" % i)
            b.leaves.add(i)
        self._enter(b, d)
        self._update(b, d)
        self._expect(len(d.payload_ids) == len(d.payloads), d, "payload columns")
        for i, payload in zip(d.payload_ids, d.payloads):
            self._expect(i in held and i not in b.enters and i not in b.payloads, d, "payload of %d" % i)
            held[i] = held[i][:5] + (payload,)
            b.payloads[i] = payload
        self._expect(len(d.layers_ids) == len(d.layers), d, "layers columns")
        for i, layers in zip(d.layers_ids, d.layers):
            self._expect(i in held and i not in b.enters and i not in b.layers, d, "layers of %d" % i)
            held[i] = held[i][:4] + (layers, held[i][5])
            b.layers[i] = layers
        self._expect(not b.full or not (b.leaves or b.updates or b.payloads or b.layers), d, "a full delta is enters only")

    def _enter(self, b, d):
        n = len(d.enter_ids)
        self._expect(len(d.enter_x) == n and len(d.enter_y) == n and len(d.enter_layers) == n, d, "enter columns")
        for column in (d.enter_z, d.enter_extra, d.enter_payloads):
            self._expect(len(column) in (0, n), d, "enter columns")
        zs, extras, payloads = d.enter_z or [0.0] * n, d.enter_extra or [0] * n, d.enter_payloads or [b""] * n
        for i, x, y, z, extra, layers, payload in zip(d.enter_ids, d.enter_x, d.enter_y, zs, extras, d.enter_layers, payloads):
            self._expect(i not in self.entities, d, "enter of %d, which is held" % i)
            self._expect(i != 0, d, "enter of id 0")
            b.enters[i] = self.entities[i] = (x, y, z, extra, layers, payload)

    def _update(self, b, d):
        n = len(d.update_ids)
        self._expect(len(d.update_x) == n and len(d.update_y) == n, d, "update columns")
        for column in (d.update_z, d.update_extra):
            self._expect(len(column) in (0, n), d, "update columns")
        zs, extras = d.update_z or [0.0] * n, d.update_extra or [0] * n
        for i, x, y, z, extra in zip(d.update_ids, d.update_x, d.update_y, zs, extras):
            self._expect(i in self.entities and i not in b.enters and i not in b.updates, d, "update of %d" % i)
            self.entities[i] = (x, y, z, extra) + self.entities[i][4:]
            b.updates[i] = (x, y, z, extra)

    @staticmethod
    def _expect(condition, d, what):
        if not condition:
            raise IllegalDelta("player %d, delta %d part %d: %s" % (d.player, d.seq, d.part, what))


# --------------------------------------------------------------------------------------------------------------- connection

class Connection:
    """One connection. Every frame that comes is kept in .log; deltas are applied to .views and, whole, kept in .deltas.

    Observed frames are applied to .observed, (space, entity) -> bool, and kept in .notices, as are those of Lost.
    """

    def __init__(self, port, hello=True, name="python", rcvbuf=None, token="", tls=None, lease_ms=0, resume=None):
        """port: of 127.0.0.1, or the path of a Unix socket; tls: an ssl.SSLContext; resume: the Connection of which the session is to go on, with its views, seqs and what it
        was told: .welcome.resumed tells whether it did."""
        local = isinstance(port, str)
        self.sock = socket.socket(socket.AF_UNIX if local else socket.AF_INET, socket.SOCK_STREAM)
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(port if local else ("127.0.0.1", port))
        if not local:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.sock = tls.wrap_socket(self.sock, server_hostname="127.0.0.1")
        self.inbox = bytearray()
        self.seq = 0
        self.log, self.deltas, self.views, self.notices, self.observed = [], [], {}, [], {}
        self.max_frame_bytes = 1 << 20
        if hello:
            self.say_hello(name, token, lease_ms, resume)

    def say_hello(self, name="python", token="", lease_ms=0, resume=None):
        ask = pb.Hello(protocol_version=1, client_name=name, token=token, lease_ms=lease_ms)
        if resume:
            ask.resume_session, ask.resume_token = resume.welcome.session, resume.welcome.resume_token
        reply = self.call(hello=ask)
        assert reply.WhichOneof("kind") == "welcome", reply
        self.welcome = reply.welcome
        self.max_frame_bytes = self.welcome.max_frame_bytes
        if resume and self.welcome.resumed:
            self.seq, self.views, self.observed = max(resume.seq, self.welcome.last_seq), resume.views, {}
            for view in self.views.values():
                view.lapse()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes with RST, as a crashed or impatient peer does."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def write(self, data):
        """Raw bytes. Raises Closed if the daemon no longer wants them."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as e:
            raise Closed(True) from e

    def send(self, **kind):
        """One frame with the next seq, which it returns."""
        self.seq += 1
        self.write(encode(self.seq, **kind))
        return self.seq

    def next(self, timeout=TIMEOUT):
        """The next frame, whatever it is. Raises Closed at the end, TimeoutError."""
        until = time.monotonic() + timeout
        while True:
            body = take_frame(self.inbox)
            if body is not None:
                return self._take(body)
            self.sock.settimeout(max(0.001, until - time.monotonic()))
            try:
                got = self.sock.recv(1 << 18)
            except ConnectionResetError as e:
                raise Closed(True) from e
            if not got:
                raise Closed()
            self.inbox += got

    def _take(self, body):
        if len(body) > self.max_frame_bytes:
            raise IllegalDelta("a frame of %d bytes, over max_frame_bytes" % len(body))
        frame = pb.ServerFrame.FromString(body)
        self.log.append(frame)
        if frame.WhichOneof("kind") == "deltas":
            if frame.reply_to != 0 or not frame.deltas.players:
                raise IllegalDelta("a Deltas frame without players, or with reply_to")
            for d in frame.deltas.players:
                key = (frame.deltas.space, d.player)
                whole = self.views.setdefault(key, View()).apply(frame.deltas, d)
                if whole:
                    self.deltas.append(whole)
                    if whole.closed:
                        del self.views[key]
        elif frame.WhichOneof("kind") in ("observed", "lost"):
            self._notice(frame)
        return frame

    def _notice(self, frame):
        if frame.reply_to != 0:
            raise IllegalDelta("Observed or Lost with reply_to")
        self.notices.append(frame)
        if frame.WhichOneof("kind") == "observed":
            o = frame.observed
            both = list(o.observed_ids) + list(o.unobserved_ids)
            if not both or len(set(both)) != len(both):
                raise IllegalDelta("an Observed frame with nothing in it, or with an id twice: %s" % frame)
            self.observed.update(((o.space, id), True) for id in o.observed_ids)
            self.observed.update(((o.space, id), False) for id in o.unobserved_ids)
        else:
            if not (frame.lost.entities or frame.lost.players):
                raise IllegalDelta("a Lost frame with nothing in it")
            for player in frame.lost.players:
                self.views.pop((frame.lost.space, player), None)
            for id in frame.lost.entities:
                self.observed.pop((frame.lost.space, id), None)

    def wait(self, kind, timeout=TIMEOUT):
        """Reads until a frame of that kind; what comes before goes to the log only."""
        until = time.monotonic() + timeout
        while True:
            frame = self.next(max(0.001, until - time.monotonic()))
            if frame.WhichOneof("kind") == kind:
                return frame

    def reply(self, seq, timeout=TIMEOUT):
        """Reads until the reply to seq; fails if another reply comes first, since replies come in order."""
        until = time.monotonic() + timeout
        while True:
            frame = self.next(max(0.001, until - time.monotonic()))
            if frame.reply_to:
                assert frame.reply_to == seq, "expected the reply to %d, got\n%s" % (seq, frame)
                return frame

    def call(self, **kind):
        return self.reply(self.send(**kind))

    def batch(self, space, *commands):
        """Sends commands and returns their Ack."""
        reply = self.call(batch=pb.Batch(space=space, commands=commands))
        assert reply.WhichOneof("kind") == "ack", reply
        return reply.ack

    def ok(self, space, *commands):
        """As batch(), and every command must have worked."""
        ack = self.batch(space, *commands)
        assert ack.errors_total == 0, ack
        return ack

    def query(self, space=0, **kind):
        """The Result's message, or the Error."""
        reply = self.call(query=pb.Query(space=space, **kind))
        which = reply.WhichOneof("kind")
        if which == "error":
            return reply.error
        assert which == "result", reply
        return getattr(reply.result, reply.result.WhichOneof("kind"))

    def ping(self, nonce=1):
        pong = self.call(ping=pb.Ping(nonce=nonce))
        assert pong.pong.nonce == nonce, pong

    def view(self, space, player):
        """What the mirror holds for a player (nothing if it was told nothing)."""
        view = self.views.get((space, player))
        return view.entities if view else {}

    def take_deltas(self):
        taken, self.deltas = self.deltas, []
        return taken

    def take_notices(self, kind):
        """The Observed or Lost messages that came since the last time; "observed" or "lost"."""
        taken = [getattr(frame, kind) for frame in self.notices if frame.WhichOneof("kind") == kind]
        self.notices = [frame for frame in self.notices if frame.WhichOneof("kind") != kind]
        return taken

    def frames_until_closed(self, timeout=TIMEOUT):
        """The frames that still come before the daemon closes."""
        frames = []
        try:
            while True:
                frames.append(self.next(timeout))
        except Closed:
            return frames


# ------------------------------------------------------------------------------------------------------------------ commands

def create_space(if_absent=False, flush_ms=None, **settings):
    s = pb.SpaceSettings(**settings)
    if flush_ms is not None:
        s.flush_ms = flush_ms
    return pb.Command(create_space=pb.CreateSpace(settings=s, if_absent=if_absent))


def destroy_space():
    return pb.Command(destroy_space=pb.DestroySpace())


def add(id, x, y, z=0.0, **fields):
    return pb.Command(add_entity=pb.AddEntity(id=id, x=x, y=y, z=z, **fields))


def upsert(id, x, y, z=0.0, **fields):
    return add(id, x, y, z, mode=pb.ADD_MODE_UPSERT, **fields)


def move(*rows, extra=None):
    """move((id, x, y), ...) or move((id, x, y, z), ...)."""
    m = pb.MoveEntities(ids=[r[0] for r in rows], x=[r[1] for r in rows], y=[r[2] for r in rows], z=[r[3] for r in rows if len(r) > 3])
    if extra is not None:
        m.extra.extend(extra)
    return pb.Command(move_entities=m)


def remove(*ids):
    return pb.Command(remove_entities=pb.RemoveEntities(ids=ids))


def set_radius(id, radius):
    return pb.Command(set_radius=pb.SetRadius(id=id, radius=radius))


def set_layers(id, layers):
    return pb.Command(set_layers=pb.SetLayers(id=id, layers=layers))


def set_payload(id, payload):
    return pb.Command(set_payload=pb.SetPayload(id=id, payload=payload))


def adopt(id):
    return pb.Command(add_entity=pb.AddEntity(id=id, mode=pb.ADD_MODE_ADOPT))


def set_appeal(id, appeal):
    return pb.Command(set_appeal=pb.SetAppeal(id=id, appeal=appeal))


def set_priority(id, priority):
    return pb.Command(set_priority=pb.SetPriority(id=id, priority=priority))


def release(entities=(), players=(), to=0):
    return pb.Command(release=pb.Release(entities=entities, players=players, to_session=to))


def set_space(**settings):
    return pb.Command(set_space=pb.SetSpace(**settings))


def override(player, entity, kind):
    return pb.Command(override=pb.Override(player=player, entity=entity, kind=kind))


def hide(player, entity):
    return override(player, entity, pb.OVERRIDE_KIND_HIDE)


def show(player, entity):
    return override(player, entity, pb.OVERRIDE_KIND_SHOW)


def by_rule(player, entity):
    return override(player, entity, pb.OVERRIDE_KIND_NONE)


def publish(entity, message):
    return pb.Command(publish=pb.Publish(entity=entity, message=message))


def publish_at(x, y, z=0.0, message=b""):
    return pb.Command(publish=pb.Publish(point=pb.Point(x=x, y=y, z=z), message=message))


def publish_in(lo, hi, message):
    return pb.Command(publish=pb.Publish(box=bounds(lo, hi), message=message))


def open_player(player, mask=0, **settings):
    return pb.Command(open_player=pb.OpenPlayer(player=player, mask=mask, **settings))


def close_player(player):
    return pb.Command(close_player=pb.ClosePlayer(player=player))


def subscribe(player, entity, include_self=False):
    return pb.Command(subscribe=pb.Subscribe(player=player, entity=entity, include_self=include_self))


def unsubscribe(player, entity):
    return pb.Command(unsubscribe=pb.Unsubscribe(player=player, entity=entity))


def set_viewport(player, lo, hi):
    lo, hi = tuple(lo) + (0.0,) * (3 - len(lo)), tuple(hi) + (0.0,) * (3 - len(hi))
    return pb.Command(set_viewport=pb.SetViewport(player=player, min_x=lo[0], min_y=lo[1], min_z=lo[2], max_x=hi[0], max_y=hi[1], max_z=hi[2]))


def clear_viewport(player):
    return pb.Command(clear_viewport=pb.ClearViewport(player=player))


def flush(tag=0):
    return pb.Command(flush=pb.Flush(tag=tag))


def bounds(lo, hi):
    lo, hi = tuple(lo) + (0.0,) * (3 - len(lo)), tuple(hi) + (0.0,) * (3 - len(hi))
    return pb.Bounds(min_x=lo[0], min_y=lo[1], min_z=lo[2], max_x=hi[0], max_y=hi[1], max_z=hi[2])
