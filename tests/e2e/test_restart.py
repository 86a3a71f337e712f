"""test_restart.py: snapshots: what a daemon held goes on in the next one, after a drain and after a kill, or is refused whole."""
import os
import re
import shutil
import signal
import stat
import tempfile
import time
import urllib.request

import aoiclient as aoi
from aoiclient import Closed, Connection, pb
from harness import Daemon, eventually, main, refused_start, seeded, test

S = 5
INDEXES = (pb.INDEX_GRID, pb.INDEX_CROSSLIST)


class Folder:
    """Where the snapshot stands, for daemons that use it one after the other."""

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="aoid-restart-")
        self.file = os.path.join(self.dir.name, "snapshot")
        return self

    def __exit__(self, *exc):
        self.dir.cleanup()

    def daemon(self, config=None, **options):
        return Daemon(config, **{"max_lease_ms": 300000, "snapshot": self.file, **options})

    def names(self):
        """But for the lock of who writes there now, or did when it was killed."""
        return sorted(name for name in os.listdir(self.dir.name) if not name.endswith(".lock"))

    def bytes(self):
        with open(self.file, "rb") as f:
            return f.read()

    def write(self, data):
        with open(self.file, "wb") as f:
            f.write(data)


def drained(d, *connections):
    d.signal()
    for c in connections:
        c.frames_until_closed()
    d.wait()
    assert "event=snapshot file=" in d.log() and "result=written" in d.log(), d.tail()


def meet(mover, gateway, index=pb.INDEX_GRID, **settings):
    """The mover's entities 1 .. 20, and a player of the gateway that sees all of them by 1."""
    mover.ok(S, aoi.create_space(flush_ms=20, index=index, **settings), aoi.add(1, 0, 0, radius=100, payload=b"one"),
             *[aoi.add(1 + i, i, 0, payload=b"%d" % i) for i in range(1, 20)])
    gateway.ok(S, aoi.subscribe(7, 1))
    eventually(lambda: gateway.ping() or len(gateway.view(S, 7)) == 19, "everybody is seen")


def told_full(gateway, player=7):
    """The first whole delta that the player gets now; it must be full, and nothing may leave by it."""
    while not [d for d in gateway.deltas if d.player == player]:
        gateway.next()
    delta = next(d for d in gateway.deltas if d.player == player)
    assert delta.full and not delta.leaves, vars(delta)
    return delta


@test
def after_a_drain_and_a_restart_servers_resume_and_a_watcher_sees_no_leave():
    for index in INDEXES:
        with Folder() as folder:
            with folder.daemon() as d, Connection(d.port, lease_ms=60000) as mover, Connection(d.port, lease_ms=60000) as gateway:
                meet(mover, gateway, index)
                mover.ok(S, aoi.move((2, 50, 5)))
                before = gateway.views[(S, 7)].seq
                drained(d, mover, gateway)
                seen = dict(gateway.view(S, 7))
                assert seen[2][:2] == (50.0, 5.0)
            assert folder.names() == ["snapshot"]
            assert stat.S_IMODE(os.stat(folder.file).st_mode) == 0o600
            with folder.daemon() as d, Connection(d.port, resume=gateway) as gateway2:
                assert gateway2.welcome.resumed and gateway2.welcome.session == gateway.welcome.session
                assert gateway2.welcome.last_seq == gateway.seq, (gateway2.welcome, gateway.seq)
                delta = told_full(gateway2)
                assert delta.seq > before and gateway2.view(S, 7) == seen
                with Connection(d.port, resume=mover) as mover2:
                    assert mover2.welcome.resumed
                    mover2.ok(S, aoi.move((3, 9, 9)), aoi.set_payload(4, b"four"))
                    eventually(lambda: gateway2.ping() or gateway2.view(S, 7)[3][:2] == (9.0, 9.0), "the move")
                    assert gateway2.view(S, 7)[4][5] == b"four"
                    assert not any(delta.leaves for delta in gateway2.deltas), "nobody sees a leave"
                    drained(d, mover2, gateway2)


@test
def a_session_belongs_to_the_name_of_its_token_in_the_next_daemon_too():
    secret = {name: name[0] * 32 for name in ("zone", "gate", "other")}
    with Folder() as folder, tempfile.NamedTemporaryFile("w") as tokens:
        def hold(*names):
            tokens.seek(0)
            tokens.truncate()
            tokens.write("".join("%s writer %s\n" % (name, secret[name]) for name in names))
            tokens.flush()

        hold("zone", "gate", "other")
        with folder.daemon(tokens_file=tokens.name) as d, Connection(d.port, lease_ms=300000, token=secret["zone"]) as mover, \
                Connection(d.port, lease_ms=300000, token=secret["gate"]) as gateway:
            meet(mover, gateway)
            drained(d, mover, gateway)
        hold("gate", "other")
        with folder.daemon(tokens_file=tokens.name) as d:
            assert "event=withdrawn session=%d client=\"python\" token=zone" % mover.welcome.session in d.log(), d.tail()
            ask = pb.Hello(protocol_version=1, token=secret["other"], resume_session=gateway.welcome.session, resume_token=gateway.welcome.resume_token)
            with Connection(d.port, hello=False) as c:
                assert "another name" in c.call(hello=ask).error.text
            with Connection(d.port, resume=gateway, token=secret["gate"]) as again:
                assert again.welcome.resumed
                assert again.query(S, stats=pb.StatsQuery()).code == pb.CODE_UNKNOWN_SPACE, "it was the withdrawn one's"


@test
def who_does_not_come_back_leaves_when_its_lease_ends_and_who_said_bye_at_once():
    with Folder() as folder:
        with folder.daemon() as d, Connection(d.port, lease_ms=700) as mover, Connection(d.port, lease_ms=60000) as gateway:
            meet(mover, gateway)
            drained(d, mover, gateway)
        with folder.daemon() as d, Connection(d.port, resume=gateway) as gateway:
            assert len(told_full(gateway).enters) == 19
            while len(gateway.view(S, 7)) > 0:
                gateway.next()
            assert "event=lease_end" in d.log()
            assert gateway.query(S, stats=pb.StatsQuery()).code == pb.CODE_UNKNOWN_SPACE, "the mover's space has ended with it"
            with Connection(d.port, resume=mover) as late:
                assert not late.welcome.resumed and late.welcome.session > gateway.welcome.session
            # while a daemon drains nothing ends; that is made up for by the next one
            with Connection(d.port, lease_ms=60000) as other:
                other.ok(S, aoi.create_space(flush_ms=500, persistent=True), aoi.add(1, 0, 0, radius=100))
                heard = bye_while_it_drains(d, other)
        with folder.daemon() as d, Connection(d.port) as observer:
            if heard:
                eventually(lambda: observer.query(S, stats=pb.StatsQuery()).entities == 0, "what the one who said Bye had is gone")


def bye_while_it_drains(d, connection):
    """Whether the daemon heard it before it closed."""
    d.signal()
    connection.wait("draining")
    seq = connection.send(bye=pb.Bye())
    frames = connection.frames_until_closed()
    d.wait()
    return any(frame.reply_to == seq for frame in frames)


def truth_of(entities, center):
    """What lies within 40 of the unit, which is not seen itself, by the box rule."""
    x, y = entities[center]
    return {id: at for id, at in entities.items() if id != center and abs(at[0] - x) <= 40 and abs(at[1] - y) <= 40}


def random_moves(rng, entities):
    rows = []
    for id in rng.sample(sorted(entities), 40):
        entities[id] = tuple(float(v + rng.randrange(-20, 21)) for v in entities[id])
        rows.append((id, *entities[id]))
    return rows


@test
def after_a_kill_under_load_everybody_resumes_from_the_last_snapshot_and_mirrors_equal_brute_force():
    rng = seeded("kills")
    for index in INDEXES:
        entities = {id: (float(rng.randrange(300)), float(rng.randrange(300))) for id in range(1, 301)}
        players = list(range(1, 31))
        with Folder() as folder:
            with folder.daemon(snapshot_s=1) as d, Connection(d.port, lease_ms=60000) as mover, Connection(d.port, lease_ms=60000) as gateway:
                mover.ok(S, aoi.create_space(flush_ms=20, index=index), *[aoi.add(id, *at, radius=40 if id <= 30 else 0) for id, at in entities.items()])
                gateway.ok(S, *[aoi.subscribe(p, p) for p in players])
                sent = []
                eventually(lambda: load(rng, mover, gateway, entities, sent) or d.log().count("result=written") >= 2, "two snapshots")
                for _ in range(rng.randrange(200)):  # what comes now is lost
                    load(rng, mover, gateway, entities, sent)
                d.kill()
            assert set(folder.names()) <= {"snapshot", "snapshot.new"}
            with folder.daemon(snapshot_s=1) as d, Connection(d.port, resume=mover) as mover2, Connection(d.port, resume=gateway) as gateway2:
                last = mover2.welcome.last_seq
                assert mover2.welcome.resumed and gateway2.welcome.resumed and 0 < last <= sent[-1][0]
                resent = 0
                for seq, rows in sent:
                    if seq > last:
                        mover2.write(aoi.encode(seq, batch=pb.Batch(space=S, commands=[aoi.move(*rows)])))
                        assert not mover2.reply(seq).ack.errors
                        resent += 1
                print("        %d batches sent, resent %d" % (len(sent), resent))
                check(mover2, gateway2, entities, players)
                for _ in range(20):
                    load(rng, mover2, gateway2, entities, sent)
                check(mover2, gateway2, entities, players)
                mover2.ok(S, *[aoi.upsert(id, *at, radius=40 if id <= 30 else 0) for id, at in entities.items()])
                check(mover2, gateway2, entities, players)
                d.kill()


def load(rng, mover, gateway, entities, sent):
    rows = random_moves(rng, entities)
    sent.append((mover.seq + 1, rows))
    mover.ok(S, aoi.move(*rows))
    gateway.ping()


def check(mover, gateway, entities, players):
    mover.ok(S, aoi.flush())
    gateway.ping()
    for p in players:
        assert {id: v[:2] for id, v in gateway.view(S, p).items()} == truth_of(entities, p), "player %d" % p


@test
def a_file_that_is_damaged_cut_or_no_snapshot_is_set_aside_and_the_daemon_starts_with_nothing():
    with Folder() as folder:
        with folder.daemon() as d, Connection(d.port, lease_ms=60000) as mover, Connection(d.port, lease_ms=60000) as gateway:
            meet(mover, gateway)
            drained(d, mover, gateway)
        whole = folder.bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 4
        other_version = bytearray(whole)
        other_version[8] += 1
        for data, what in ((bytes(flipped), "checksum"), (whole[:-1], "ends too early"), (whole + b"x", "behind its end"), (b"", "no snapshot of aoid"),
                           (b"%PDF-1.4 what is this", "no snapshot of aoid"), (bytes(other_version), "another version")):
            folder.write(data)
            with folder.daemon(snapshot_s=1000, http_listen="127.0.0.1:0") as d, Connection(d.port, resume=gateway) as late:
                assert not late.welcome.resumed
                address = re.search(r"event=http address=(\S+)", d.log()).group(1)
                with urllib.request.urlopen("http://%s/metrics" % address, timeout=20) as page:
                    assert b'aoid_snapshots_total{result="refused"} 1\n' in page.read()
                line = next(line for line in d.log().splitlines() if "refused=" in line)
                assert "level=error" in line and what in line, line
                (bad,) = [name for name in folder.names() if ".bad-" in name]
                assert "snapshot" not in folder.names()
                path = os.path.join(folder.dir.name, bad)
                with open(path, "rb") as f:
                    assert f.read() == data, "nothing of it is lost"
                os.unlink(path)
                d.kill()
        damaged = [b"1", b"2", b"3", b"4"]
        for data in damaged:  # also of one second
            folder.write(data)
            with folder.daemon(snapshot_s=1000) as d:
                d.kill()
        kept = [os.path.join(folder.dir.name, name) for name in folder.names() if ".bad-" in name]
        assert sorted(open(path, "rb").read() for path in kept) == damaged, kept
        folder.write(whole)
        with folder.daemon() as d, Connection(d.port, resume=gateway) as back:
            assert back.welcome.resumed


@test
def what_is_only_written_at_the_end_comes_back_once():
    with Folder() as folder:
        with folder.daemon() as d, Connection(d.port, lease_ms=60000) as mover:
            assert "result=none" in d.log()
            mover.ok(S, aoi.create_space(), aoi.add(1, 0, 0))
            drained(d, mover)
        with folder.daemon() as d, Connection(d.port, resume=mover) as mover:
            assert mover.welcome.resumed and folder.names() == ["snapshot.old"]
            d.kill()
        with folder.daemon() as d, Connection(d.port, resume=mover) as late:
            assert not late.welcome.resumed
            assert late.query(S, stats=pb.StatsQuery()).code == pb.CODE_UNKNOWN_SPACE


@test
def spaces_of_the_configuration_have_the_settings_that_stand_there_now():
    with Folder() as folder:
        with folder.daemon("[space 5]\nflush_ms = 20\n[space 6]\nflush_ms = 20\n") as d, Connection(d.port, lease_ms=60000) as mover, \
                Connection(d.port, lease_ms=60000) as gateway:
            for space in (5, 6):
                mover.ok(space, aoi.add(1, 0, 0, radius=100), aoi.add(2, 3, 0))
                gateway.ok(space, aoi.subscribe(7, 1))
                eventually(lambda: gateway.ping() or 2 in gateway.view(space, 7), "it is seen")
            drained(d, mover, gateway)
        with folder.daemon("[space 5]\nflush_ms = 30\nindex = crosslist\nshape = sphere\n[space 9]\n") as d, Connection(d.port, resume=gateway) as gateway:
            spaces = {s.id: s for s in gateway.query(list_spaces=pb.ListSpacesQuery()).spaces}
            assert sorted(spaces) == [5, 6, 9]
            assert spaces[5].settings.index == pb.INDEX_CROSSLIST and spaces[5].settings.flush_ms == 30
            assert [spaces[5].entities, spaces[6].entities, spaces[9].entities] == [2, 2, 0]
            assert [spaces[5].configured, spaces[6].configured, spaces[9].configured] == [True, False, True]
            assert "space=5 settings=configuration" in d.log() and "space=6 settings" not in d.log()
            eventually(lambda: gateway.ping() or all(2 in gateway.view(space, 7) for space in (5, 6)), "both are told again")
            assert gateway.batch(5, aoi.destroy_space()).errors[0].code == pb.CODE_NOT_OWNER
            gateway.ok(6, aoi.destroy_space())  # it is nobody's any more


@test
def what_a_session_lost_while_it_was_away_is_told_by_the_next_daemon():
    with Folder() as folder:
        with folder.daemon() as d, Connection(d.port, lease_ms=60000) as loser, Connection(d.port, lease_ms=60000) as taker:
            loser.ok(S, aoi.create_space(persistent=True), aoi.add(1, 0, 0), aoi.add(2, 0, 0), aoi.open_player(7))
            loser.reset()
            eventually(lambda: taker.batch(S, aoi.adopt(1), aoi.open_player(7, take_over=True)).errors_total == 0, "it is away")
            drained(d, taker)
        with folder.daemon() as d, Connection(d.port, resume=loser) as loser:
            loser.ping()
            (lost,) = loser.take_notices("lost")
            assert (lost.space, list(lost.entities), list(lost.players)) == (S, [1], [7])
            assert loser.batch(S, aoi.move((1, 1, 1))).errors[0].code == pb.CODE_NOT_OWNER
            loser.ok(S, aoi.move((2, 1, 1)))


@test
def a_snapshot_that_cannot_be_written_is_said_at_the_start_and_while_it_runs():
    with Folder() as folder:
        nowhere = os.path.join(folder.dir.name, "nowhere", "snapshot")
        assert "cannot be written: No such file or directory" in refused_start("--set", "snapshot=" + nowhere)
        for option in ("snapshot=", "record="):
            assert "cannot be written: No such file or directory: " + os.path.dirname(nowhere) in refused_start("--set", option + nowhere, "--check-config", status=2)
            assert "not a regular file" in refused_start("--set", option + folder.dir.name, "--check-config", status=2)
        assert "is fine" in refused_start("--set", "snapshot=" + folder.file, "--check-config", status=0)
        note = refused_start("--set", "unix_socket=/nowhere/aoid.socket", "--check-config", status=0)
        assert "is fine\nbut for unix_socket = /nowhere/aoid.socket: nothing can be made in /nowhere now (No such file" in note, note
        inner = os.path.join(folder.dir.name, "inner")
        os.mkdir(inner)
        with Daemon(snapshot=os.path.join(inner, "snapshot"), snapshot_s=1) as d, Connection(d.port) as c:
            shutil.rmtree(inner)
            eventually(lambda: "result=failed" in d.log(), "the failure")
            c.ok(S, aoi.create_space())
            line = next(line for line in d.log().splitlines() if "result=failed" in line)
            assert 'error="No such file or directory"' in line and "level=error" in line and "there is no earlier one" in line, line
            d.signal()
            assert d.process.wait(60) == 1
            d.process.returncode = 0  # that was looked at
            assert "what this daemon held is lost" in d.log() and "event=exit status=1" in d.log()
        assert "into which file" in refused_start("--set", "snapshot_s=1", status=2)
        assert "one of them must go" in refused_start("--set", "snapshot=" + folder.file, "--set", "record=" + folder.file + ".aoir", status=2)


@test
def a_file_that_may_not_grow_ends_neither_the_daemon_nor_the_snapshot_before():
    with Folder() as folder:
        with folder.daemon() as d, Connection(d.port, lease_ms=60000) as c:
            c.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0))
            drained(d, c)
        before = folder.bytes()
        with folder.daemon(snapshot_s=1, file_bytes=100000) as d, Connection(d.port, resume=c) as c:
            c.ok(S, *[aoi.add(id, 0, 0, payload=bytes(1000)) for id in range(2, 200)])
            eventually(lambda: c.ping() or 'result=failed error="File too large"' in d.log(), "the child's failure")
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(os.stat(folder.file).st_mtime))
            assert "the one of %s stays" % when in d.log(), d.tail()
            d.signal()
            c.frames_until_closed()
            assert d.process.wait(60) == 1, d.tail()
            d.process.returncode = 0  # that was looked at
            assert "what this daemon held is lost, but for what stands in the one of " + when in d.log(), d.tail()
        assert folder.bytes() == before and folder.names() == ["snapshot"]


@test
def what_is_no_regular_file_is_left_as_it_is_and_ends_the_start():
    for option in ("snapshot", "record"):
        with Folder() as folder:
            kinds = {"pipe": os.mkfifo, "folder": os.mkdir, "device": lambda path: os.symlink("/dev/null", path)}
            for kind, make in kinds.items():
                path = os.path.join(folder.dir.name, kind)
                make(path)
                assert "%s: is not a regular file" % path in refused_start("--set", "%s=%s" % (option, path))
            assert folder.names() == sorted(kinds)


@test
def a_file_is_one_daemon_s_until_it_ends_however_that_be():
    with Folder() as folder:
        for option in ("snapshot", "record"):
            path = os.path.join(folder.dir.name, option)
            for crash in (True, False):
                with Daemon(**{option: path}) as d, Connection(d.port) as c:
                    c.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0))
                    names = folder.names()
                    assert "another aoid has this file" in refused_start("--set", "%s=%s" % (option, path))
                    assert folder.names() == names
                    if crash:
                        d.kill()
        assert not [name for name in os.listdir(folder.dir.name) if name.endswith(".lock")], "it goes when its daemon ends well"


@test
def who_lost_its_lock_file_does_not_take_that_of_another_along():
    with Folder() as folder:
        path = os.path.join(folder.dir.name, "snapshot")
        with Daemon(snapshot=path) as first:
            os.unlink(path + ".lock")
            with Daemon(snapshot=path):
                first.stop()
                assert "another aoid has this file" in refused_start("--set", "snapshot=%s" % path)


@test
def a_start_that_fails_leaves_the_last_recording_where_it_is():
    with Folder() as folder, Daemon() as other:
        path = os.path.join(folder.dir.name, "recording")
        with Daemon(record=path):
            pass
        refused_start("--set", "record=" + path, "--set", "listen=127.0.0.1:%d" % other.port)
        assert folder.names() == ["recording"]


def stopped_child(d):
    """The daemon's child, if it could be stopped in the middle of its work."""
    with open("/proc/%d/task/%d/children" % (d.process.pid, d.process.pid)) as f:
        for pid in map(int, f.read().split()):
            try:
                os.kill(pid, signal.SIGSTOP)
                with open("/proc/%d/stat" % pid) as stat_file:
                    if stat_file.read().rpartition(")")[2].split()[0] == "T":
                        return pid
            except (ProcessLookupError, FileNotFoundError):
                pass
    return 0


@test
def there_is_one_child_at_a_time_and_one_that_is_killed_leaves_the_file_before():
    with Folder() as folder, folder.daemon(snapshot_s=1) as d, Connection(d.port) as c:
        c.ok(S, aoi.create_space(flush_ms=0))
        for first in range(1, 10001, 200):  # so much that writing it takes a while
            c.ok(S, *[aoi.add(id, id, 0, payload=bytes(4000)) for id in range(first, first + 200)])
        eventually(lambda: c.ping() or "result=written" in d.log(), "the first")
        child = []
        eventually(lambda: c.ping() or child.append(stopped_child(d)) or child[-1], "a child")
        before = os.stat(folder.file).st_mtime_ns
        eventually(lambda: c.ping() or "result=skipped" in d.log(), "the next one is put off")
        os.kill(child[-1], signal.SIGKILL)
        eventually(lambda: c.ping() or 'result=failed error="its process was ended by signal 9" why="the one of ' in d.log(), "its end is heard of")
        assert os.stat(folder.file).st_mtime_ns == before
        assert re.search(r"result=written sessions=1 bytes=4\d{7} ms=\d+ stall_us=", d.log()), d.tail()
        written = d.log().count("result=written")
        eventually(lambda: c.ping() or d.log().count("result=written") > written, "the next one")
        assert os.stat(folder.file).st_mtime_ns > before


@test
def other_connections_do_not_notice_that_a_child_has_their_sockets_for_a_moment():
    with Folder() as folder, folder.daemon(snapshot_s=1, max_lease_ms=0) as d, Connection(d.port) as mover, Connection(d.port) as gateway:
        meet(mover, gateway)
        written = d.log().count("result=written")
        while d.log().count("result=written") < written + 2:
            with Connection(d.port) as other:
                other.send(bye=pb.Bye())
                other.frames_until_closed()
            mover.ok(S, aoi.move((2, 1, 1)))
            gateway.ping()
        try:
            mover.close()
            while gateway.view(S, 7):
                gateway.next()
        except Closed:
            raise AssertionError("the gateway's connection is its own") from None


if __name__ == "__main__":
    main()
