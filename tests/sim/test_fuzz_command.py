"""Fifty scenarios out of the dice through the command: an answer, or exit code 2 with paths; never a traceback."""

import random
import resource
import subprocess
import sys

import pytest
import yaml

from tests.sim.test_fuzz import PLAIN, RICH, source

CASES = 50
MOST_S = 4.0  # CPU time: 2 s for the answer, and what a Python process and its imports take to start


def text_of(what):
    if isinstance(what, str):
        return what
    return yaml.safe_dump(what, allow_unicode=True)


@pytest.mark.parametrize("batch", range(5))
def test_the_command_answers_or_refuses(batch, tmp_path):
    path = tmp_path / "s.yaml"
    codes = []
    for case in range(batch, CASES, 5):
        dice = random.Random(10_000 + case)
        path.write_text(text_of(source(dice, [RICH, PLAIN])), encoding="utf-8", errors="surrogatepass")
        command = [sys.executable, "-c", "from sim.cli import main; main()", "simulate", str(path)]
        options = ["--replications", "1", "--json", "--set", "limits.max_events=20000"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        told = f"case {case}: {done.stderr[:500]}"
        assert done.returncode in (0, 2), told
        assert "Traceback" not in done.stderr, told
        if done.returncode == 2:
            assert done.stderr.startswith("error: ") and done.stdout == "", told
        assert took < MOST_S, f"{took:.1f} s, {told}"
        codes.append(done.returncode)
    assert set(codes) <= {0, 2} and 2 in codes
