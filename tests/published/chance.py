"""Statistical asserts of the published cases: each is wrong about a right product once in a million times (two-sided).

Seeds are those of conftest.py: fixed, unless GOODPUT_TEST_SEED asks for others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from scipy.stats import binom, poisson, t

from sim.study import Result

FALSE_ALARM = 1e-6


def assert_count(count: int, mean: float, tests: int = 1) -> None:
    """Assert that a count is one of the Poisson law of this mean (exact); `tests` such asserts share the rate."""
    tail = FALSE_ALARM / tests / 2.0
    assert poisson.ppf(tail, mean) <= count <= poisson.isf(tail, mean), f"{count}, expected {mean:g}"


def assert_hits(hits: int, trials: int, p: float, tests: int = 1) -> None:
    """Assert that hits of so many trials are those of a probability (exact binomial law)."""
    tail = FALSE_ALARM / tests / 2.0
    assert binom.ppf(tail, trials, p) <= hits <= binom.isf(tail, trials, p), f"{hits} of {trials}, expected {p:g}"


def half_width(values: Sequence[float]) -> float:
    """Return how far the mean of these independent values may be off by chance (Student's t)."""
    n = len(values)
    return float(t.isf(FALSE_ALARM / 2.0, n - 1)) * stdev(values) / math.sqrt(n)


def overheads(result: Result, mtbf_s: float, cost_s: float) -> list[float]:
    """Return each run's wall time / useful time - 1, less the luck in its number of faults.

    With exponential lives on the wall clock, faults - wall / M has mean 0 whatever the run does (optional stopping).
    So `cost_s` times it may be taken off: the mean stays what it is, and with `cost_s` near what a fault costs the
    spread becomes smaller.
    """
    useful_s = result.scenario.useful_time_s()
    assert result.completed_fraction == 1.0
    return [(run.wall_s - cost_s * (run.interruptions - run.wall_s / mtbf_s)) / useful_s - 1.0 for run in result.runs]


def assert_mean(values: Sequence[float], expected: float, at_most: float) -> None:
    """Assert that independent values have this mean, and that the assert is sharp: it sees a shift of `at_most`."""
    reach = half_width(values)
    assert reach <= at_most, f"the mean is only known to +-{reach:g}"
    assert abs(fmean(values) - expected) <= reach, f"{fmean(values):g} +-{reach:g}, expected {expected:g}"
