"""How soon the command answers, and what one draw costs."""

import subprocess
import sys
import timeit
from pathlib import Path

from benchmarks import benchmark


@benchmark("goodput --help, best of 5", "s", 0.7)
def bench_help() -> float:
    command = [str(Path(sys.executable).with_name("goodput")), "--help"]

    def run() -> None:
        subprocess.run(command, check=True, capture_output=True)

    return min(timeit.repeat(run, number=1, repeat=5))


@benchmark("one random number in plain Python", "us", 5.0)
def bench_draw() -> float:
    from sim.draws import u

    return min(timeit.repeat(lambda: u(1, 2, 3, 4, 5), number=10_000, repeat=5)) / 10_000 * 1e6
