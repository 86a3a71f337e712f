"""test_first_steps.py: what somebody does first who knows only the README."""
import os
import re
import subprocess
import tempfile

from harness import AOID, ROOT, Daemon, main, test

BUILD = os.path.dirname(os.path.abspath(AOID))


def shell_block():
    """The README's lines for the shell behind its first conversation."""
    with open(os.path.join(ROOT, "README.md")) as f:
        block = f.read().partition("From the shell:\n\n")[2].partition("\n\n")[0]
    lines = block.split("\n")
    assert len(lines) > 5 and all(line.startswith("    ") for line in lines), lines
    return "\n".join(line[4:] for line in lines)


@test
def the_readme_s_shell_block_pasted_whole_shows_what_it_promises_and_ends():
    with Daemon() as d, tempfile.TemporaryDirectory(prefix="aoid-e2e-") as there:
        os.symlink(BUILD, os.path.join(there, "build"))
        os.symlink(os.path.join(ROOT, "tests"), os.path.join(there, "tests"))
        commands = shell_block().replace("build/aoictl ", "build/aoictl --address 127.0.0.1:%d " % d.port)
        streams = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        run = lambda line: subprocess.run(["bash", "-c", line], cwd=there, timeout=300, **streams)
        ended = run(commands)
        said = ended.stdout.decode()
        assert ended.returncode == 0 and "aoictl: " not in said, said
        for what in (r"^9 +0 +0 +2 grid", r"^42 1 2\n7 3 4$", r"^2 entities$", r"^enter 7 3 4$", r"^update 7 5 5$", r"^leave 7$", r"^step 120/120 ",
                     r"^enters \d+ moves \d+ leaves \d+$", r"^updates +1$", r"^usage: aoictl"):
            assert re.search(what, said, re.M), (what, said)
        left = run("build/aoictl --address 127.0.0.1:%d spaces" % d.port).stdout.decode()
        assert left.count("\n") == 1, "nothing is left that would be in the way of a second time: " + left


@test
def a_pattern_that_no_test_matches_is_told_with_what_there_is():
    ended = subprocess.run([os.path.join(ROOT, "scripts", "run-tests"), BUILD, "nosuch*"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    said = ended.stderr.decode()
    assert ended.returncode == 1 and ended.stdout == b"", ended
    assert "no test matches 'nosuch*'" in said and {"core/test_index", "e2e/test_first_steps.py", "fuzz/world"} <= set(said.split()), said


if __name__ == "__main__":
    main()
