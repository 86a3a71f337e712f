"""harness.py: starts and stops the daemon under test, and runs test functions one by one.

AOID is the daemon's path (default build/aoid), AOI_SEED replays a random test. A daemon that does not end with status 0 on SIGTERM, or that
writes a sanitizer's report, fails the test that started it.
"""
import faulthandler
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
AOID = os.environ.get("AOID", os.path.join(ROOT, "build", "aoid"))
PLAIN = os.environ.get("AOID_PLAIN", os.path.join(ROOT, "build", "aoid"))  # without a sanitizer, which takes more address space than any limit leaves
SANITIZED = ("ERROR: AddressSanitizer", "runtime error", "LeakSanitizer", "UndefinedBehaviorSanitizer")
LIMIT_SECONDS = 150  # a test that hangs is ended with a stack trace

tests = []


def test(fn):
    """Registers a test; its docstring or name is the sentence that is printed."""
    tests.append(fn)
    return fn


def main():
    wanted = sys.argv[1:]
    passed = failed = 0
    for fn in tests:
        if wanted and not any(w in fn.__name__ for w in wanted):
            continue
        began = time.monotonic()
        faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True)
        try:
            fn()
            passed += 1
            print("ok      %s (%.1f s)" % (fn.__name__, time.monotonic() - began), flush=True)
        except Exception:
            failed += 1
            print("FAILED  %s\n%s" % (fn.__name__, traceback.format_exc()), flush=True)
        faulthandler.cancel_dump_traceback_later()
    print("%d passed, %d failed" % (passed, failed), flush=True)
    sys.exit(1 if failed or not passed else 0)


def seeded(what):
    """A random generator whose seed is printed; AOI_SEED replays it."""
    seed = int(os.environ.get("AOI_SEED", random.SystemRandom().randrange(1 << 32)))
    print("        %s: AOI_SEED=%d" % (what, seed), flush=True)
    return random.Random(seed)


def eventually(condition, what, seconds=30):
    """Polls until the condition holds; what happens in between is not looked at."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "not in %d s: %s" % (seconds, what)
        time.sleep(0.01)


def refused_start(*args, status=1):
    """The daemon must end at once with this status (1: it cannot start so, 2: what it was told is wrong). Returns what it said."""
    done = subprocess.run([AOID, "--listen", "127.0.0.1:0", "--set", "http_listen=none", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == status, (args, done)
    return done.stdout


class Daemon:
    """with Daemon(out_soft_bytes=65536) as d: ... d.port ... Ends it by SIGTERM and looks at how it ended."""

    def __init__(self, config=None, nofile=None, memory=None, file_bytes=None, **options):
        self.nofile = nofile  # limit of open files
        self.file_bytes = file_bytes  # limit of a file's length: a write that would pass it fails
        self.memory = memory  # limit of its address space, in bytes
        self.dir = tempfile.TemporaryDirectory(prefix="aoid-e2e-")
        self.config_file = os.path.join(self.dir.name, "aoid.conf")
        self.config, self.options = config, {"max_lease_ms": 0, **options}  # sessions end with their connections, unless a test is about that
        self.process = self.port = None

    def __enter__(self):
        port_file = os.path.join(self.dir.name, "port")
        args = [PLAIN if self.memory else AOID, "--listen", "127.0.0.1:0", "--port-file", port_file, "--set", "http_listen=none"]
        if self.config is not None:
            self.write_config()
            args += ["--config", self.config_file]
        for name, value in self.options.items():
            args += ["--set", "%s=%s" % (name, value)]
        self.errors = open(os.path.join(self.dir.name, "stderr"), "w+b")
        self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=self.errors, stderr=self.errors,
                                        preexec_fn=self.limit if self.nofile or self.memory or self.file_bytes else None)
        until = time.monotonic() + 60
        while not self.port:
            if self.process.poll() is not None:
                raise AssertionError("the daemon ended at once with %d:\n%s" % (self.process.returncode, self.log()))
            assert time.monotonic() < until, "the daemon wrote no port:\n" + self.log()
            time.sleep(0.005)
            if os.path.exists(port_file):
                with open(port_file) as f:
                    self.port = int(f.read().strip().rpartition(":")[2] or 0)
        return self

    def __exit__(self, kind, value, tb):
        try:
            self.stop()
        except AssertionError:
            if kind is None:
                raise
            traceback.print_exc()  # the test's own failure comes first, but do not hide this one
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.errors.close()
            self.dir.cleanup()

    def limit(self):
        for what, limit in ((resource.RLIMIT_NOFILE, self.nofile), (resource.RLIMIT_AS, self.memory), (resource.RLIMIT_FSIZE, self.file_bytes)):
            if limit:
                resource.setrlimit(what, (limit, limit))

    def write_config(self):
        with open(self.config_file, "w") as f:
            f.write(self.config)

    def reload(self, config=None):
        """SIGHUP, with another configuration if one is given. Returns what is logged meanwhile, up to the outcome."""
        if config is not None:
            self.config = config
            self.write_config()
        seen = len(self.log())
        self.signal(signal.SIGHUP)
        eventually(lambda: "event=reload result=" in self.log()[seen:], "it is reloaded")
        return self.log()[seen:]

    def log(self):
        with open(os.path.join(self.dir.name, "stderr"), "rb") as f:
            return f.read().decode(errors="replace")

    def signal(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)

    def wait(self, seconds=60):
        """Waits for the end, and fails unless it is a clean one."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("the daemon did not end within %d s:\n%s" % (seconds, self.tail())) from None
        log = self.log()
        for word in SANITIZED:
            assert word not in log, "a sanitizer's report:\n" + log[max(0, log.index(word) - 200):][:8000]
        assert "event=oracle" not in log, "a view was not what brute force gives:\n" + self.tail()
        assert status == 0, "the daemon ended with %d:\n%s" % (status, self.tail())

    def kill(self):
        """As a crash does. It must not have been in trouble before."""
        self.process.kill()
        self.process.wait()
        self.process.returncode = 0  # which is how this one is to end
        self.wait()

    def stop(self):
        self.signal()
        self.wait()

    def tail(self):
        return self.log()[-3000:]

    def alive(self):
        return self.process.poll() is None

    def open_files(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def cpu_seconds(self):
        """User and system time so far."""
        with open("/proc/%d/stat" % self.process.pid) as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def address_space_bytes(self):
        """The most that it has had."""
        with open("/proc/%d/status" % self.process.pid) as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmPeak:"))

    def resident_bytes(self):
        with open("/proc/%d/statm" % self.process.pid) as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
