"""test_install.py: what `make install` puts down is enough to compile the example of libaoi.h, and the example works."""
import os
import re
import subprocess
import tempfile

from harness import AOID, ROOT, Daemon, main, test

BUILD = os.path.dirname(os.path.abspath(AOID))


def run(*command, **more):
    """What it printed; fails with that unless it ends with status 0."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "DESTDIR", "PREFIX")}
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, env=env, **more)
    assert ended.returncode == 0, "%s ended with %d:\n%s" % (" ".join(command), ended.returncode, ended.stdout.decode(errors="replace"))
    return ended.stdout.decode()


def installed(dest):
    """Installs what is built, whatever it was built with."""
    run("make", "--no-print-directory", "install-files", "BUILD=" + BUILD, "PREFIX=/opt/aoid", "DESTDIR=" + dest, cwd=ROOT)
    return os.path.join(dest, "opt", "aoid")


def example():
    """The program in the header's first comment, from its #include to its last brace."""
    with open(os.path.join(ROOT, "src", "client", "libaoi.h")) as f:
        lines = f.read().split("#ifndef LIBAOI_H")[0].splitlines()
    code = [line[5:] for line in lines if line.startswith(" *   ") or line == " *"]
    return "\n".join(code[next(i for i, line in enumerate(code) if line.startswith("#include")):]) + "\n"


@test
def the_example_of_the_header_compiles_against_what_is_installed_and_works():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dest, Daemon() as d:
        prefix = installed(dest)
        source, program = os.path.join(dest, "example.c"), os.path.join(dest, "example")
        # names that a program may well have itself
        with open(source, "w") as f:
            f.write(example() + "\nvoid buf_append(void);\nvoid buf_append(void) {}\nint frame_next;\nint log_write;\n")
        os.environ["PKG_CONFIG_PATH"] = os.path.join(prefix, "lib", "pkgconfig")
        flags = run("pkg-config", "--define-variable=prefix=" + prefix, "--cflags", "--libs", "aoi").split()
        if "__asan_init" in run("nm", os.path.join(prefix, "lib", "libaoi.a")):
            flags.append("-fsanitize=address,undefined")
        run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-o", program, source, *flags)
        assert run(program, "127.0.0.1:%d" % d.port) == "player 1000 sees 43 at 5 6\n"


@test
def everything_is_where_it_belongs_and_says_so():
    with tempfile.TemporaryDirectory(prefix="aoid-e2e-") as dest:
        prefix = installed(dest)
        for path in ("bin/aoid", "bin/aoictl", "bin/aoibench", "bin/aoibench-core", "include/libaoi.h", "lib/libaoi.a", "lib/pkgconfig/aoi.pc",
                     "lib/systemd/system/aoid.service", "lib/systemd/system/aoid.socket", "share/aoid/proto/aoi/v1/aoi.proto", "share/doc/aoid/README.md", "share/doc/aoid/LICENSE",
                     "etc/aoid/aoid.conf"):
            assert os.path.exists(os.path.join(prefix, path)), path
        with open(os.path.join(prefix, "lib/pkgconfig/aoi.pc")) as f:
            assert "@" not in f.read()
        version = run(os.path.join(prefix, "bin/aoid"), "--version").split()[1]
        with open(os.path.join(prefix, "lib/pkgconfig/aoi.pc")) as f:
            assert "Version: %s\n" % version in f.read()
        run(os.path.join(prefix, "bin/aoid"), "--config", os.path.join(prefix, "etc/aoid/aoid.conf"), "--check-config")
        with open(os.path.join(prefix, "lib/systemd/system/aoid.service")) as f:
            assert re.search(r"^ExecStart=/opt/aoid/bin/aoid ", f.read(), re.M)


@test
def only_the_functions_of_the_header_can_be_seen_in_the_library():
    shown = re.findall(r"^[0-9a-f]+ [A-TV-Z] (\S+)$", run("nm", "-g", os.path.join(BUILD, "libaoi.a")), re.M)
    assert len(shown) > 30 and all(name.startswith("libaoi_") for name in shown), shown


if __name__ == "__main__":
    main()
