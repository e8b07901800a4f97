"""Times that must stay within a bound. `make bench` runs them and prints one row each.

A module `benchmarks/bench_*.py` holds functions decorated with `benchmark`; each returns what it measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Benchmark:
    """One measurement and the bound that it must keep."""

    name: str
    unit: str
    bound: float
    measure: Callable[[], float]


BENCHMARKS: list[Benchmark] = []


def benchmark(name: str, unit: str, bound: float) -> Callable[[Callable[[], float]], Callable[[], float]]:
    """Register a function whose result, in `unit`, must be at most `bound`."""

    def register(measure: Callable[[], float]) -> Callable[[], float]:
        BENCHMARKS.append(Benchmark(name, unit, bound, measure))
        return measure

    return register
