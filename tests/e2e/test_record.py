"""test_record.py: a recording of a run goes through the core again: the digest is the same, run for run and index for index."""
import os
import re
import struct
import subprocess
import tempfile
import urllib.request

import aoiclient as aoi
from aoiclient import Connection, pb
from bystander import resumed_while_draining
from harness import AOID, SANITIZED, Daemon, main, refused_start, seeded, test

S = 5
SPACE, FRAME = 2, 8  # kinds of entries, as wire/recording.h has them


def replayed(path, *args):
    """Exit status, the counts and the digest, what stderr says."""
    p = subprocess.run([AOID, "--replay", path] + list(args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
    out = p.stdout.decode()
    return p.returncode, {k: int(v) for k, v in re.findall(r"(\w+) (\d+)\b", out.replace("digest", "#"))}, out.rpartition("digest ")[2].strip(), p.stderr.decode()


def a_run(path, rng, steps=500, timed=True):
    """A bit of everything, in timed and manual spaces, from several sessions; how many deltas, enters, leaves and updates clients were told."""
    config = "[server]\nrecord = %s\n[space 1]\nflush_ms = %d\nleave_margin = 3\nmin_stay_ms = %d\n[space 2]\nflush_ms = 0\nshape = sphere\nmax_view = 6\n" % (path, 5 * timed, 40 * timed)
    told = dict(deltas=0, enters=0, leaves=0, updates=0)
    with Daemon(config=config) as d:
        with Connection(d.port) as a, Connection(d.port) as b:
            a.ok(S, aoi.create_space(flush_ms=0, max_enter_per_flush=3, update_tiers="10:1 *:3"), aoi.publish_at(1, 1, message=b"early"))
            for space in (1, 2, S):
                for c, player in ((a, 1), (a, 2), (b, 3), (b, 4)):
                    c.batch(space, *[aoi.add(10 * player + i, rng.uniform(-30, 30), rng.uniform(-30, 30), radius=15) for i in range(5)],
                            aoi.subscribe(player, 10 * player), aoi.set_viewport(player, (-10, -10), (10, 10)))
            for step in range(steps):
                c, space = rng.choice((a, b)), rng.choice((1, 2, S))
                commands = []
                for _ in range(rng.randrange(1, 6)):
                    id, other = rng.randrange(1, 40), rng.randrange(1, 6)
                    x, y = rng.uniform(-30, 30), rng.uniform(-30, 30)
                    commands.append(rng.choice((
                        lambda: aoi.add(id, x, y, radius=rng.choice((0, 10, 20)), payload=b"p" * rng.randrange(5)), lambda: aoi.move((id, x, y)),
                        lambda: aoi.move((id, x, y), (id + 1, y, x)), lambda: aoi.remove(id), lambda: aoi.subscribe(other, id, include_self=rng.random() < .5),
                        lambda: aoi.unsubscribe(other, id), lambda: aoi.set_viewport(other, (x, y), (x + 20, y + 20)), lambda: aoi.set_payload(id, b"new"),
                        lambda: aoi.set_layers(id, rng.randrange(4)), lambda: aoi.publish(id, b"boo"), lambda: aoi.hide(other, id), lambda: aoi.close_player(other),
                        lambda: aoi.flush(tag=step), lambda: aoi.flush(tag=step)))())
                c.batch(space, *commands)
                if rng.random() < .1:
                    c.query(space, stats=pb.StatsQuery())
            for c in (a, b):
                c.ok(2, aoi.flush())
                c.ping()
            for c in (a, b):
                c.ping()
                c.call(bye=pb.Bye())
                c.frames_until_closed()
            for delta in a.deltas + b.deltas:
                told["deltas"] += 1
                told["enters"] += len(delta.enters)
                told["leaves"] += len(delta.leaves)
                told["updates"] += len(delta.updates)
    return told


@test
def a_recording_gives_the_same_digest_again_and_with_either_index():
    rng = seeded("run")
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path = os.path.join(dir, "recording")
        told = a_run(path, rng)
        assert told["deltas"] > 50 and told["enters"] > 50, told
        assert os.stat(path).st_mode & 0o777 == 0o600
        first = replayed(path)
        assert first[0] == 0 and first[3] == "", first
        assert {k: first[1][k] for k in told} == told, (first, told)
        for args in ((), ("--index", "grid"), ("--index", "crosslist"), ("--index", "crosslist")):
            assert replayed(path, *args) == first, (args, first)


@test
def a_batch_that_takes_long_while_others_talk_is_replayed_as_well():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path, n = os.path.join(dir, "recording"), 300
        with Daemon(record=path) as d, Connection(d.port) as a, Connection(d.port) as b:
            for c, space in (a, 1), (b, 2):
                c.ok(space, aoi.create_space(flush_ms=0), *[aoi.add(i, i, 0, radius=1000) for i in range(1, n)], *[aoi.subscribe(i, i) for i in range(1, n)])
            long = [command for step in range(120) for command in (aoi.move(*[(i, i, step) for i in range(1, n)]), aoi.flush(tag=step))]
            long = aoi.encode(100, batch=pb.Batch(space=1, commands=long))
            short = [aoi.encode(100 + step, batch=pb.Batch(space=2, commands=[aoi.move((1, 1, step)), aoi.flush(tag=step)])) for step in range(100)]
            a.write(long)
            b.write(b"".join(short))
            for c, last in (a, 100), (b, 199):
                while c.next().reply_to != last:
                    pass
            assert len(a.view(1, 1)) == n - 2
        first = replayed(path)
        assert first[0] == 0 and first[3] == "", first
        assert replayed(path, "--index", "crosslist") == first


@test
def a_session_that_was_resumed_while_the_daemon_drained_is_replayed_as_well():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path = os.path.join(dir, "recording")
        resumed_while_draining(record=path)
        status, counts, _, err = replayed(path)
        assert status == 0 and counts["sessions"] == 2 and err == "", (status, counts, err)


@test
def the_end_of_a_session_that_owns_much_is_replayed_as_well():
    """Who comes next may get its number."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "recording")
        with Daemon(record=path) as d:
            others = [Connection(d.port, hello=False) for _ in range(8)]
            with Connection(d.port) as c:
                for space in range(1, 61):
                    c.ok(space, aoi.create_space(flush_ms=0), *[aoi.add(i, 1, 1) for i in range(1, 2001)])
                c.send(bye=pb.Bye())
                for other in others:
                    other.send(hello=pb.Hello(protocol_version=1))
                for other in others:
                    other.wait("welcome")
                    other.ok(100, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0), aoi.flush(), aoi.destroy_space())
            for other in others:
                other.close()
        status, counts, _, err = replayed(path)
        assert status == 0 and counts["sessions"] == 9 and counts["frames"] == 60 + 1 + 8, (status, counts, err)


@test
def another_run_has_another_digest():
    rng = seeded("runs")
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        paths = [os.path.join(dir, str(i)) for i in range(2)]
        for path in paths:
            a_run(path, rng, 30)
        assert replayed(paths[0])[2] != replayed(paths[1])[2]


@test
def a_file_that_is_cut_off_or_damaged_is_said_to_be_so_and_its_whole_part_replayed():
    rng = seeded("cuts")
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path, part = os.path.join(dir, "recording"), os.path.join(dir, "part")
        a_run(path, rng, 40)
        with open(path, "rb") as f:
            whole = f.read()
        for n in [len(whole) - 1, 0, 7, 16, 17, 40] + [rng.randrange(len(whole)) for _ in range(20)]:
            with open(part, "wb") as f:
                f.write(whole[:n])
            status, counts, digest, text = replayed(part)
            assert status in (0, 1) and text.count("\n") == status, (n, status, text)  # 0: between two entries
            assert status == 0 or "cut off within an entry at byte" in text or "not a recording" in text or "begin" in text or "flush is missing" in text, text
        assert "not a recording of aoid" in replayed(AOID)[3]
        assert "No such file" in replayed(os.path.join(dir, "none"))[3]
        for _ in range(60):  # whatever stands there, it does not crash
            bytes_ = bytearray(whole)
            for _ in range(rng.randrange(1, 4)):
                bytes_[rng.randrange(16, len(bytes_))] = rng.randrange(256)
            with open(part, "wb") as f:
                f.write(bytes_)
            status, _, _, text = replayed(part)
            assert status in (0, 1) and "Sanitizer" not in text and "check failed" not in text, text


@test
def sessions_that_break_and_come_back_are_replayed_as_well():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path = os.path.join(dir, "recording")
        with Daemon(config="[server]\nrecord = %s\n[space 1]\nflush_ms = 0\n" % path, max_lease_ms=60000) as d, Connection(d.port) as watcher:
            watcher.ok(1, aoi.set_viewport(1, (0, 0), (10, 10)))
            a = Connection(d.port)
            a.ok(1, aoi.add(1, 5, 5, radius=10), aoi.subscribe(7, 1))
            a.reset()
            watcher.ok(1, aoi.add(2, 6, 6), aoi.flush())
            with Connection(d.port, resume=a) as b:
                assert b.welcome.resumed
                b.ok(1, aoi.move((1, 4, 4)), aoi.flush())
                b.ping()
                assert set(b.view(1, 7)) == {2}
            watcher.ping()
        status, counts, digest, text = replayed(path)
        assert status == 0 and counts["sessions"] == 2 and counts["enters"] == 3 and replayed(path, "--index", "crosslist")[2] == digest, (counts, text)


def played_to(d, path):
    return subprocess.run([os.path.join(os.path.dirname(AOID), "aoictl"), "--address", "127.0.0.1:%d" % d.port, "replay", path, "--speed", "1000"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)


@test
def aoictl_replays_it_to_another_daemon_which_tells_its_players_the_same():
    rng = seeded("run")
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        first, second = os.path.join(dir, "first"), os.path.join(dir, "second")
        a_run(first, rng, timed=False)
        with Daemon(record=second) as d:
            p = played_to(d, first)
            assert p.returncode == 0 and b"sessions 2 " in p.stdout, p
        assert replayed(second)[2] == replayed(first)[2]
        with open(first, "r+b") as f:
            f.truncate(os.path.getsize(first) - 3)
        with Daemon() as d:
            p = played_to(d, first)
            assert p.returncode == 1 and b"is cut off within an entry" in p.stderr, p


@test
def aoictl_survives_frames_that_are_taken_for_spaces():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path = os.path.join(dir, "recording")
        with Daemon(record=path) as d, Connection(d.port) as c:
            c.call(batch=pb.Batch(space=S))
            c.batch(S, pb.Command(), aoi.create_space(), aoi.flush())
            c.query(stats=pb.StatsQuery())
            c.query(S, aabb=pb.AabbQuery(box=aoi.bounds((0, 0), (1, 1))))
            c.call(resync=pb.Resync(space=S))
        with open(path, "rb") as f:
            data = bytearray(f.read())
        at, frames = 16, 0
        while at < len(data):
            length, kind = struct.unpack_from("<II", data, at)
            if kind == FRAME:
                struct.pack_into("<I", data, at + 4, SPACE)
                frames += 1
            at += 24 + length
        with open(path, "wb") as f:
            f.write(data)
        assert frames > 0
        with Daemon() as d:
            p = played_to(d, path)
            assert p.returncode in (0, 1) and not any(word.encode() in p.stderr for word in SANITIZED), p


@test
def roles_are_replayed_and_secrets_are_not_in_the_file():
    secret = {"zone": "s3cret-of-the-zone-server-0123456789", "eye": "s3cret-of-who-only-looks-0123456789"}
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path, tokens = os.path.join(dir, "recording"), os.path.join(dir, "tokens")
        with open(tokens, "w") as f:
            f.write("zone writer %(zone)s\neye reader %(eye)s\n" % secret)
        os.chmod(tokens, 0o600)
        with Daemon(config="[space 1]\nflush_ms = 0\n", record=path, tokens_file=tokens) as d, Connection(d.port, token=secret["zone"]) as zone, \
                Connection(d.port, token=secret["eye"]) as eye:
            zone.ok(1, aoi.add(1, 1, 1))
            refused = eye.batch(1, aoi.set_viewport(1, (0, 0), (9, 9)), aoi.add(2, 2, 2))
            assert [e.index for e in refused.errors] == [1], refused
            zone.ok(1, aoi.flush())
            eye.ping()
            assert set(eye.view(1, 1)) == {1}
            again = zone.call(hello=pb.Hello(protocol_version=1, token=secret["zone"], resume_session=zone.welcome.session, resume_token=zone.welcome.resume_token))
            assert "a second Hello" in again.error.text, again
            resume = zone.welcome.resume_token
        status, counts, _, text = replayed(path)
        assert status == 0 and (counts["enters"], counts["sessions"]) == (1, 2), (counts, text)
        with open(path, "rb") as f:
            bytes_ = f.read()
        assert b"zone" in bytes_ and resume not in bytes_ and not any(s.encode() in bytes_ for s in secret.values())


@test
def what_sighup_changes_is_replayed_as_well():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path = os.path.join(dir, "recording")
        config = "[server]\nrecord = %s\n[space 1]\nflush_ms = 0\n" % path
        with Daemon(config=config) as d, Connection(d.port) as c:
            c.ok(1, *[aoi.add(i + 1, i, 0) for i in range(10)], aoi.set_viewport(1, (0, 0), (20, 20)), aoi.flush())
            assert "result=done" in d.reload(config + "max_view = 3\n[space 2]\nflush_ms = 0\n")
            c.ok(1, aoi.flush())
            c.ok(2, aoi.add(1, 1, 1), aoi.set_viewport(1, (0, 0), (20, 20)), aoi.flush())
            c.ping()
            assert len(c.view(1, 1)) == 3
        first = replayed(path)
        assert first[0] == 0 and (first[1]["enters"], first[1]["leaves"]) == (11, 7), first
        assert replayed(path, "--index", "crosslist") == first


@test
def an_old_recording_is_kept_under_another_name_and_a_path_that_cannot_be_is_refused():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path = os.path.join(dir, "recording")
        for _ in range(2):
            with Daemon(record=path) as d, Connection(d.port) as c:
                c.ok(S, aoi.create_space())
        assert replayed(path)[0] == replayed(path + ".old")[0] == 0
        assert "record = /no/such/dir/file: cannot be written: No such file or directory: /no/such/dir" in refused_start("--set", "record=/no/such/dir/file")


@test
def a_crash_leaves_what_led_to_it():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path = os.path.join(dir, "recording")
        with Daemon(record=path) as d, Connection(d.port) as c:
            c.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0), aoi.set_viewport(1, (0, 0), (1, 1)), aoi.flush())
            c.ping()
            d.kill()
        status, counts, _, text = replayed(path)
        assert status == 0 and counts["enters"] == 1, (counts, text)


def metric(d, name):
    """A value of /metrics."""
    address = re.search(r"event=http address=(\S+)", d.log()).group(1)
    text = urllib.request.urlopen("http://%s/metrics" % address, timeout=60).read().decode()
    return float(re.search(r"^%s (\S+)$" % name, text, re.M).group(1))


@test
def a_recording_that_may_not_grow_ends_and_the_daemon_goes_on():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path = os.path.join(dir, "recording")
        with Daemon(record=path, file_bytes=100000, http_listen="127.0.0.1:0") as d, Connection(d.port) as c:
            assert metric(d, "aoid_record_failed") == 0
            c.ok(S, aoi.create_space(flush_ms=0), *[aoi.add(id, 0, 0, payload=bytes(1000)) for id in range(1, 200)])
            c.ok(S, aoi.flush())
            assert 'error="File too large" why="nothing more is recorded; the daemon goes on"' in d.log(), d.tail()
            assert metric(d, "aoid_record_failed") == 1
        status, _, _, text = replayed(path)
        assert status == 1 and "is cut off within an entry" in text, text


if __name__ == "__main__":
    main()
