"""test_doors.py: who may come in: tokens and roles, the Unix socket, TLS."""
import os
import socket
import stat
import subprocess
import tempfile
import time

import aoiclient as aoi
from aoiclient import Closed, Connection, pb
from harness import AOID, Daemon, eventually, main, test

S = 1
ADMIN, WRITER, READER = "0123456789abcdef0123456789abcdef", "1123456789abcdef0123456789abcdef", "2123456789abcdef0123456789abcdef"
TOKENS = "# the tests' own\nops admin %s\nzone writer %s\nmap reader %s\n" % (ADMIN, WRITER, READER)


class Files:
    """A directory for secrets; with Files(tokens=...) as f: f["tokens"] is its path."""

    def __init__(self, **texts):
        self.texts = texts

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="aoid-doors-")
        for name, text in self.texts.items():
            self.write(name, text)
        return self

    def __exit__(self, *exc):
        self.dir.cleanup()

    def __getitem__(self, name):
        return os.path.join(self.dir.name, name)

    def write(self, name, text, mode=0o600):
        with open(self[name], "w") as f:
            f.write(text)
        os.chmod(self[name], mode)


def denied(port, token):
    """Hello with this token must be answered by UNAUTHENTICATED and the end. Returns how long that took."""
    began = time.monotonic()
    with Connection(port, hello=False) as c:
        reply = c.call(hello=pb.Hello(protocol_version=1, token=token))
        assert reply.error.code == pb.CODE_UNAUTHENTICATED and reply.error.text, reply
        took = time.monotonic() - began
        ended(c)
        return took


def ended(c):
    """Nothing may follow but the end of the connection."""
    try:
        raise AssertionError("not closed, but: %s" % c.next())
    except Closed:
        pass


def refused_start(*args):
    """The daemon must end at once with a status that is not 0. Returns what it said."""
    done = subprocess.run([AOID, "--listen", "127.0.0.1:0", *args], capture_output=True, text=True, timeout=60)
    assert done.returncode not in (0, -6, -11), (done.returncode, done.stderr)
    return done.stdout + done.stderr


@test
def hello_needs_one_of_the_tokens():
    with Files(tokens=TOKENS) as f, Daemon(tokens_file=f["tokens"]) as d:
        for wrong in ("", "x", ADMIN[:-1], ADMIN + "0", ADMIN.upper(), "ops"):
            denied(d.port, wrong)
        for token in (ADMIN, WRITER, READER):
            Connection(d.port, token=token).close()
        log = d.log()
        assert "reason=token" in log and "token=zone role=writer" in log, log
        assert not any(secret in log for secret in (ADMIN, WRITER, READER, "ADMIN")), "a secret in the log"


@test
def a_wrong_token_waits_for_its_answer_and_holds_nobody_up():
    with Files(tokens=TOKENS) as f, Daemon(tokens_file=f["tokens"]) as d, Connection(d.port, token=READER) as other:
        guesses = [Connection(d.port, hello=False) for _ in range(40)]
        for c in guesses:
            c.send(hello=pb.Hello(protocol_version=1, token="guess"))
            c.send(ping=pb.Ping())
            c.send(hello=pb.Hello(protocol_version=1, token=ADMIN))  # a second guess on the same connection is not looked at
        for _ in range(20):
            other.ping()
        assert not any(c.log for c in guesses)
        for c in guesses:
            assert c.next().error.code == pb.CODE_UNAUTHENTICATED
            ended(c)
            c.close()
        assert denied(d.port, "guess") > denied(d.port, "") + 0.2


@test
def roles_decide_what_a_session_may_do():
    with Files(tokens=TOKENS) as f, Daemon(tokens_file=f["tokens"]) as d, Connection(d.port, token=WRITER) as zone, \
            Connection(d.port, token=READER) as map_, Connection(d.port, token=ADMIN) as ops, Connection(d.port, token=WRITER) as other:
        zone.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=10), aoi.add(2, 3, 4))
        ack = map_.batch(S, aoi.subscribe(7, 1), aoi.add(3, 0, 0), aoi.flush(), aoi.create_space())
        assert ack.applied == 1 and [(e.index, e.code) for e in ack.errors] == [(i, pb.CODE_NOT_OWNER) for i in (1, 2, 3)], ack
        assert all("reader" in e.text and "writer" in e.text for e in ack.errors), ack
        zone.ok(S, aoi.flush())
        map_.ping()
        assert sorted(map_.views[S, 7].entities) == [2]
        assert len(map_.query(S, aabb=pb.AabbQuery(box=pb.Bounds(min_x=-9, min_y=-9, max_x=9, max_y=9))).ids) == 2
        for c in (map_, other):
            assert c.batch(S, aoi.destroy_space()).errors[0].code == pb.CODE_NOT_OWNER
        ops.ok(S, aoi.destroy_space())


@test
def a_file_of_tokens_that_is_not_fit_ends_the_start():
    with Files(tokens=TOKENS, empty="# nothing\n", faulty="zone writer\n") as f:
        for name, why in (("empty", "nobody could come in"), ("faulty", ":1: must be NAME ROLE SECRET"), ("missing", "No such file")):
            assert why in refused_start("--set", "tokens_file=" + f[name]), name
        os.chmod(f["tokens"], 0o644)
        assert "chmod o-rwx" in refused_start("--set", "tokens_file=" + f["tokens"])
        assert "anybody could command the daemon" in refused_start("--listen", "0.0.0.0:0")


@test
def a_unix_socket_serves_like_tcp_and_has_its_mode():
    with Files() as f:
        path = f["socket"]
        with Daemon(unix_socket=path, unix_mode="0600") as d, Connection(d.port) as tcp, Connection(path) as local:
            assert stat.S_ISSOCK(os.stat(path).st_mode) and os.stat(path).st_mode & 0o777 == 0o600
            local.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=10), aoi.add(2, 3, 4), aoi.subscribe(7, 1), aoi.flush())
            assert sorted(local.views[S, 7].entities) == [2]
            assert tcp.batch(S, aoi.move((2, 5, 5))).errors[0].code == pb.CODE_NOT_OWNER
            assert "peer=unix:uid:%d:pid:%d" % (os.getuid(), os.getpid()) in d.log()
            assert "another aoid" in refused_start("--set", "unix_socket=" + path)
            local.ping()
        assert not os.path.exists(path), "the socket is left behind"


@test
def a_socket_that_a_crash_left_behind_is_replaced_and_nothing_else_is():
    with Files(other="precious") as f:
        left = socket.socket(socket.AF_UNIX)
        left.bind(f["socket"])
        left.close()
        with Daemon(unix_socket=f["socket"]), Connection(f["socket"]) as c:
            assert os.stat(f["socket"]).st_mode & 0o777 == 0o660
            c.ping()
        assert "a file of another kind" in refused_start("--set", "unix_socket=" + f["other"])
        with open(f["other"]) as other:
            assert other.read() == "precious"
        assert "the directory must exist" in refused_start("--set", "unix_socket=" + f["no/such"])


def answers(path):
    try:
        Connection(path, hello=False).close()
        return True
    except OSError:
        return False


@test
def a_unix_socket_may_be_all_that_is_listened_on():
    with Files() as f:
        daemon = subprocess.Popen([AOID, "--set", "listen=none", "--set", "unix_socket=" + f["socket"]], stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: answers(f["socket"]), "it listens")
            with Connection(f["socket"]) as c:
                c.ping()
        finally:
            daemon.terminate()
        assert daemon.wait(60) == 0
        assert "nobody could connect" in refused_start("--set", "listen=none")


@test
def only_listed_users_and_groups_may_use_the_socket():
    uid, gid, groups = os.getuid(), os.getgid(), os.getgroups()
    with Files() as f:
        for options in ({"unix_allow_uids": "7 %d" % uid}, {"unix_allow_gids": gid}, {"unix_allow_gids": "7,%d" % (groups or [gid])[-1]},
                        {"unix_allow_uids": 4242, "unix_allow_gids": gid}):
            with Daemon(unix_socket=f["socket"], **options), Connection(f["socket"]) as c:
                c.ping()
        with Daemon(unix_socket=f["socket"], unix_allow_uids=4242, unix_allow_gids=4243) as d, Connection(d.port) as tcp:
            with Connection(f["socket"], hello=False) as c:
                error = c.next().error
                assert error.code == pb.CODE_UNAUTHENTICATED and "uid %d" % uid in error.text, error
                ended(c)
            tcp.ping()  # the list is about the socket
            assert "reason=unix_peer" in d.log()


if __name__ == "__main__":
    main()
