"""test_operation.py: SIGHUP, systemd's notifications and watchdog, sockets that are passed on, a log that nobody reads."""
import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

import aoiclient as aoi
from aoiclient import Closed, Connection, pb
from harness import AOID, Daemon, eventually, main, test

S = 5
FILE = "[server]\nidle_timeout_ms = %(idle)s\nlog_level = %(level)s\n[limits]\nmax_entities = %(entities)s\n[space 1]\nflush_ms = %(flush)s\n%(more)s"


def config(idle=60000, level="info", entities=1000, flush=20, more=""):
    return FILE % dict(idle=idle, level=level, entities=entities, flush=flush, more=more)


def spaces(c):
    return {s.id: s for s in c.query(list_spaces=pb.ListSpacesQuery()).spaces}


@test
def sighup_changes_options_and_spaces_while_clients_stay():
    with Daemon(config()) as d, Connection(d.port) as c:
        c.ok(1, aoi.add(1, 0, 0, radius=10), aoi.add(2, 3, 0), aoi.subscribe(1, 1))
        log = d.reload(config(level="debug", flush=70, idle=50000, more="max_view = 7\n[space 2]\nflush_ms = 30\n[limits]\nmax_sessions = 2\n"))
        assert "result=done changed=log_level,idle_timeout_ms,max_sessions" in log, log
        assert "space=1 changed=\"flush_ms:20->70,max_view:0->7\"" in log and "spaces_changed=2" in log and "space=2 changed=made" in log and "restart" not in log, log
        assert spaces(c)[1].settings.flush_ms == 70 and spaces(c)[1].settings.max_view == 7 and spaces(c)[2].settings.flush_ms == 30
        c.ok(2, aoi.add(1, 0, 0))
        c.batch(77, aoi.flush())
        eventually(lambda: "event=refused" in d.log(), "the level is debug now")
        with Connection(d.port) as late:
            assert late.welcome.idle_timeout_ms == 50000
            with Connection(d.port, hello=False) as third:
                assert third.call(hello=pb.Hello(protocol_version=1)).error.code == pb.CODE_LIMIT_EXCEEDED
        assert "result=done changed=- spaces_changed=0" in d.reload(), "nothing has changed since"
        c.ok(1, aoi.set_space(max_view=9))
        log = d.reload()
        assert 'space=1 changed="max_view:9->7"' in log and "changed=- spaces_changed=1" in log, log


@test
def who_was_told_an_idle_timeout_is_held_to_it_whatever_a_reload_brings():
    with Daemon(config(idle=60000)) as d, Connection(d.port) as patient:
        assert "changed=idle_timeout_ms" in d.reload(config(idle=300))
        with Connection(d.port) as late:
            assert late.welcome.idle_timeout_ms == 300
            said = late.frames_until_closed()[-1].error.text
            assert "idle for 300 ms" in said, said
        patient.ping()


@test
def that_nobody_needs_a_token_any_more_is_a_warning():
    with tokens_file() as f, Daemon(config(more="[server]\ntokens_file = %s\n" % f.name)) as d:
        log = d.reload(config())
        assert "level=warn event=reload tokens_file=- why=" in log and "is an admin" in log, log
        with Connection(d.port) as c:
            c.ok(1, aoi.set_space(max_view=9))
            eventually(lambda: "event=space id=1 changed_by=%d" % c.welcome.session in d.log(), "who has changed a space is said")
            assert 'changed="max_view:0->9"' in d.log() or "changed=max_view:0->9" in d.log(), d.tail()


@test
def what_needs_a_restart_is_said_and_left_as_it_is():
    with Daemon(config(more="[space 9]\n")) as d, Connection(d.port) as c:
        log = d.reload(config(entities=5, more="cell_size = 48\n"))
        assert "needs_restart=max_entities" in log and "space=1 needs_restart=cell_size why=" in log and "space=9 why=" in log and "result=done" in log, log
        c.ok(1, *[aoi.add(1 + i, i, 0) for i in range(10)])
        assert spaces(c)[1].settings.cell_size == 100 and 9 in spaces(c)


@test
def an_invalid_configuration_is_refused_whole_with_one_line_that_says_why():
    with Daemon(config()) as d, Connection(d.port) as c:
        for values, why in ((dict(idle=1000, flush="soon"), "aoid.conf:7: flush_ms = soon"), (dict(idle=1000, more="[space 2]\ncell_size = -1\n"), "cell_size"),
                            (dict(idle=1000, more="[server]\ntokens_file = /no/such/file\n"), "/no/such/file"),
                            (dict(idle=1000, more="[server]\nout_soft_bytes = 1MiB\n[limits]\n"), "out_soft_bytes")):
            log = d.reload(config(**values))
            assert log.count("\n") == 1 and "level=error" in log and "result=refused" in log and why in log, log
            assert spaces(c)[1].settings.flush_ms == 20 and set(spaces(c)) == {1}
        os.remove(d.config_file)
        assert "No such file" in d.reload()
        with Connection(d.port) as late:
            assert late.welcome.idle_timeout_ms == 60000


@test
def a_pipe_in_the_place_of_the_configuration_holds_up_nobody():
    with Daemon(config()) as d, Connection(d.port) as c:
        os.remove(d.config_file)
        os.mkfifo(d.config_file)
        log = d.reload()
        assert "result=refused" in log and "is not a regular file" in log, log
        c.ping()


@test
def options_that_only_hold_together_are_checked_with_those_that_stay():
    with Daemon(config(more="[limits]\nmax_payload = 100KiB\n")) as d:
        log = d.reload(config(more="[limits]\nout_soft_bytes = 64KiB\n"))  # fits with the default of max_payload, which only a restart brings
        assert "result=refused" in log and "out_soft_bytes" in log, log


@test
def a_page_still_fits_in_the_frames_that_only_a_restart_makes_larger():
    with Daemon(config(more="[limits]\nmax_frame_bytes = 8KiB\n")) as d:
        with Connection(d.port) as c:
            page = c.welcome.query_page
        assert "needs_restart=max_frame_bytes" in d.reload(config())
        with Connection(d.port) as c:
            assert c.welcome.max_frame_bytes == 8192 and c.welcome.query_page == page < 8192 // 28


def reloaded_within_a_batch():
    """A batch of much that is refused, and then one space more, which is the last that may be: meanwhile a configuration with another one. What the reload logs."""
    file = config(more="[limits]\nmax_spaces = 2\nmax_frame_bytes = 16MiB\n")
    with Daemon(file) as d, Connection(d.port) as c:
        seq = c.send(batch=pb.Batch(space=3, commands=[aoi.destroy_space()] * 300000 + [aoi.create_space()]))
        time.sleep(0.02)
        log = d.reload(file + "[space 2]\n")
        ack = c.reply(seq).ack
        assert ack.errors_total + ack.applied == 300001 and set(spaces(c)) == ({1, 3} if ack.applied else {1, 2}), ack
        return log


@test
def spaces_that_a_batch_under_way_makes_count_at_a_reload():
    for _ in range(5):
        log = reloaded_within_a_batch()
        if "result=done" not in log:  # else the signal came before the batch
            assert "result=refused" in log and "1 new spaces beside the 2 that are there are more than max_spaces = 2" in log, log
            return
    raise AssertionError("never within the batch")


@test
def a_space_that_a_session_has_made_is_left_to_it():
    with Daemon(config()) as d, Connection(d.port) as maker, Connection(d.port) as c:
        maker.ok(9, aoi.create_space(flush_ms=50))
        log = d.reload(config(more="[space 9]\nflush_ms = 30\n"))
        assert "level=warn event=reload space=9 why=" in log and "result=done changed=- spaces_changed=0" in log, log
        assert spaces(c)[9].settings.flush_ms == 50 and not spaces(c)[9].configured
        maker.call(bye=pb.Bye())
        eventually(lambda: 9 not in spaces(c), "it has ended with its session")
        assert "space=9 changed=made" in d.reload()
        assert spaces(c)[9].settings.flush_ms == 30 and spaces(c)[9].configured


@contextlib.contextmanager
def tokens_file():
    """With the token of one writer, 32 times a. Yields the open file."""
    with tempfile.NamedTemporaryFile("w", prefix="aoid-e2e-") as f:
        os.chmod(f.name, 0o600)
        f.write("zone writer aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n")
        f.flush()
        yield f


@test
def tokens_are_read_anew():
    with tokens_file() as f:
        with Daemon(config(more="[server]\ntokens_file = %s\n" % f.name)) as d, Connection(d.port, token="a" * 32) as c:
            c.ping()
            f.seek(0)
            f.truncate()
            f.write("zone writer bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n")
            f.flush()
            d.reload()
            with Connection(d.port, token="b" * 32) as late:
                late.ping()
            assert any(frame.WhichOneof("kind") == "error" for frame in c.frames_until_closed())


def catches(process, number):
    """Whether the signal would be handled. A process that has ended counts as one that does."""
    with open("/proc/%d/status" % process.pid) as f:
        masks = [int(line.split()[1], 16) for line in f if line.startswith("SigCgt:")]
    return not masks or masks[0] >> (number - 1) & 1 or process.poll() is not None


@test
def a_signal_during_a_start_that_fails_changes_nothing_about_how_it_ends():
    with tempfile.NamedTemporaryFile("w", prefix="aoid-e2e-") as tokens:
        tokens.writelines("t%d writer %032d\n" % (i, i) for i in range(4000))  # they take a while
        tokens.write("and a line that is none\n")
        tokens.flush()
        os.chmod(tokens.name, 0o600)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with started(args=["--listen", "127.0.0.1:0", "--set", "tokens_file=" + tokens.name], stderr=subprocess.PIPE) as p:
                eventually(lambda: catches(p, number), "signals are handled")
                p.send_signal(number)
                text = p.stderr.read().decode()
                assert p.wait(60) == 1 and text.count("\n") == 1 and ":4001: must be NAME ROLE SECRET" in text, (p.returncode, text)
                p.stderr.close()


# ------------------------------------------------------------------------------------------------------------------ systemd

@contextlib.contextmanager
def started(env=(), pass_fds=(), prefix="", stderr=subprocess.DEVNULL, args=()):
    """A daemon with an environment; yields the process. The shell becomes the daemon, so that LISTEN_PID can be $$."""
    command = "%s exec \"$0\" --set http_listen=none \"$@\"" % prefix
    process = subprocess.Popen(["/bin/sh", "-c", command, AOID] + list(args), stdin=subprocess.DEVNULL, stderr=stderr, env=dict(os.environ, **dict(env)),
                               pass_fds=pass_fds)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def received(s):
    s.settimeout(60)
    return s.recv(4096).decode()


def port_of(path):
    eventually(lambda: os.path.exists(path), "the port is written")
    with open(path) as f:
        return int(f.read())


@test
def systemd_hears_ready_reloading_watchdog_and_stopping():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        path = os.path.join(dir, "notify")
        s.bind(path)
        env = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}
        with started(env, args=["--listen", "127.0.0.1:0"], prefix="WATCHDOG_PID=$$") as p:
            heard = [received(s) for _ in range(10)]
            assert "READY=1" in heard and heard.count("WATCHDOG=1") >= 8, heard
            began_usec = time.monotonic_ns() // 1000
            p.send_signal(signal.SIGHUP)
            heard = []
            while not heard or not heard[-1].startswith("READY"):
                heard.append(received(s))
            reloading = next(h for h in heard if h.startswith("RELOADING=1\n"))
            assert began_usec <= int(re.search(r"MONOTONIC_USEC=(\d+)$", reloading).group(1)) <= time.monotonic_ns() // 1000
            p.send_signal(signal.SIGTERM)
            while received(s) != "STOPPING=1":
                pass
            assert p.wait(60) == 0


@test
def the_watchdog_is_silent_when_the_loop_stands_still():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        path = os.path.join(dir, "notify")
        s.bind(path)
        with started({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "100000"}, args=["--listen", "127.0.0.1:0"]) as p:
            while received(s) != "WATCHDOG=1":
                pass
            p.send_signal(signal.SIGSTOP)
            s.settimeout(1)
            with contextlib.suppress(socket.timeout):
                for _ in range(1000):
                    s.recv(4096)
                raise AssertionError("a daemon that stands still says that it turns")
            p.send_signal(signal.SIGCONT)
            while received(s) != "WATCHDOG=1":
                pass


def listening(kind, address):
    s = socket.socket(kind, socket.SOCK_STREAM)
    s.bind(address)
    s.listen(16)
    return s


@test
def sockets_that_are_passed_on_are_used_and_connections_wait_in_them():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        path, port_file = os.path.join(dir, "socket"), os.path.join(dir, "port")
        with listening(socket.AF_INET, ("127.0.0.1", 0)) as tcp, listening(socket.AF_UNIX, path) as local:
            port = tcp.getsockname()[1]
            early = socket.create_connection(("127.0.0.1", port))  # before the daemon is there
            early.sendall(aoi.encode(1, hello=pb.Hello(protocol_version=1)))
            script = "exec 3<&%d 4<&%d; export LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=a:b;" % (tcp.fileno(), local.fileno())
            for _ in range(2):  # as before and after an upgrade
                with open(os.path.join(dir, "log"), "w+b") as log, \
                        started(pass_fds=(tcp.fileno(), local.fileno()), prefix=script, args=["--port-file", port_file], stderr=log) as p:
                    if early:
                        early.settimeout(60)
                        assert early.recv(100), "who came before the daemon is answered"
                        early.close()
                        early = None
                    with Connection(port) as c:
                        c.ping()
                    assert port_of(port_file) == port
                    with socket.socket(socket.AF_UNIX) as s:
                        s.settimeout(60)
                        s.connect(path)
                        s.sendall(aoi.encode(1, hello=pb.Hello(protocol_version=1)))
                        assert s.recv(100)
                    p.send_signal(signal.SIGTERM)
                    assert p.wait(60) == 0
                    log.seek(0)
                    assert "unix_socket=%s passed_on=yes" % path in log.read().decode()
                os.remove(port_file)
            assert os.path.exists(path), "the socket is not the daemon's, and stays"


@test
def what_is_passed_on_and_cannot_be_used_is_refused_in_plain_words():
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as a, listening(socket.AF_INET, ("127.0.0.1", 0)) as b, listening(socket.AF_INET, ("0.0.0.0", 0)) as wide, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, open(os.devnull) as null:
        for fds, words in (([a, b], "second TCP socket"), ([wide], "without tokens anybody could command"), ([udp], "ListenStream="), ([null], "is not a socket")):
            script = "".join("exec %d<&%d;" % (3 + i, f.fileno()) for i, f in enumerate(fds)) + "export LISTEN_PID=$$ LISTEN_FDS=%d;" % len(fds)
            with started(pass_fds=[f.fileno() for f in fds], prefix=script, stderr=subprocess.PIPE) as p:
                text = p.stderr.read().decode()
                assert p.wait(60) == 1 and "socket activation: descriptor" in text and words in text, text
                p.stderr.close()
        with started({"LISTEN_PID": "1", "LISTEN_FDS": "1"}, args=["--listen", "127.0.0.1:0"], stderr=subprocess.PIPE) as p:  # meant for another process
            assert b"event=listening" in p.stderr.readline()
            p.stderr.close()


@test
def that_all_crosses_the_network_in_the_clear_is_said_by_the_address_that_is_listened_on():
    with tokens_file() as f:
        for host, listen, warned in (("0.0.0.0", "127.0.0.1:0", True), ("127.0.0.1", "0.0.0.0:0", False)):  # what is passed on counts
            with listening(socket.AF_INET, (host, 0)) as passed:
                script = "exec 3<&%d; export LISTEN_PID=$$ LISTEN_FDS=1;" % passed.fileno()
                args = ["--listen", listen, "--set", "tokens_file=" + f.name]
                with started(pass_fds=[passed.fileno()], prefix=script, args=args, stderr=subprocess.PIPE) as p:
                    line = p.stderr.readline().decode()
                    assert "event=listening address=%s:" % host in line and ("in the clear" in line) == warned, line
                    p.stderr.close()


def line_with(p, words):
    """The next line of the daemon's log that has them in it."""
    for line in p.stderr:
        if words in line.decode():
            return line.decode()
    raise AssertionError("the log ends without " + words)


@test
def tokens_are_not_given_up_at_a_reload_while_other_machines_reach_the_socket_that_was_passed_on():
    for host, outcome in (("0.0.0.0", "tokens_file is not set, and the socket that was passed on"), ("127.0.0.1", "result=done changed=tokens_file")):
        with tokens_file() as tokens, tempfile.NamedTemporaryFile("w", prefix="aoid-e2e-") as file, listening(socket.AF_INET, (host, 0)) as passed:
            file.write("[server]\ntokens_file = %s\n" % tokens.name)
            file.flush()
            script = "exec 3<&%d; export LISTEN_PID=$$ LISTEN_FDS=1;" % passed.fileno()
            with started(pass_fds=[passed.fileno()], prefix=script, args=["--config", file.name], stderr=subprocess.PIPE) as p:
                line_with(p, "event=ready")
                file.truncate(0)
                p.send_signal(signal.SIGHUP)
                assert outcome in line_with(p, "event=reload result=")
                p.stderr.close()


# ---------------------------------------------------------------------------------------------------------------- standard error

@test
def a_log_that_nobody_reads_holds_up_nothing():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dir:
        port_file = os.path.join(dir, "port")
        args = ["--listen", "127.0.0.1:0", "--port-file", port_file, "--set", "log_level=debug"]
        with started(args=args, stderr=subprocess.PIPE) as p, Connection(port_of(port_file)) as c:
            for _ in range(3000):  # 300 KiB of log; a pipe holds 64
                c.write(aoi.encode(batch=pb.Batch(space=77, commands=[aoi.flush()])))
            c.send(ping=pb.Ping(nonce=1))
            while c.next().WhichOneof("kind") != "pong":
                pass
            p.stderr.close()  # and now the pipe breaks
            c.batch(77, aoi.flush())
            c.ping()
            p.send_signal(signal.SIGTERM)
            with contextlib.suppress(Closed):
                c.frames_until_closed()
            assert p.wait(60) == 0


if __name__ == "__main__":
    main()
