"""test_first_steps.py: what somebody does first who knows only the README."""
import os
import subprocess

from harness import AOID, ROOT, main, test

BUILD = os.path.dirname(os.path.abspath(AOID))


@test
def a_pattern_that_no_test_matches_is_told_with_what_there_is():
    ended = subprocess.run([os.path.join(ROOT, "scripts", "run-tests"), BUILD, "nosuch*"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    said = ended.stderr.decode()
    assert ended.returncode == 1 and ended.stdout == b"", ended
    assert "no test matches 'nosuch*'" in said and " core/test_index " in said and "e2e/test_first_steps.py" in said and "fuzz/world" in said, said


if __name__ == "__main__":
    main()
