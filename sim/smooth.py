"""A smooth curve through simulated goodputs, so that noise does not choose the interval.

The wall time for each second of kept work, h = 1/goodput, has the shape that renewal theory gives it (Daly 2006):
a constant, a share of 1/tau for the saves, and a share of (exp(tau/M) - 1)/tau for work done again. The three
coefficients are fitted to the simulation, so that layers, spares, laws and budgets enter as they were simulated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MIN_POINTS = 4
GROUPS = 10
"""Groups of runs that the jackknife leaves out in turn."""


@dataclass(frozen=True)
class Curve:
    """Fitted h(tau) = a + b/tau + c (exp(tau/M) - 1)/tau with tau and M in seconds."""

    a: float
    b: float
    c: float
    mtbf_s: float

    def goodput(self, interval_s: float) -> float:
        """Return the fitted goodput of an interval."""
        h = sum(x * y for x, y in zip((self.a, self.b, self.c), _basis(interval_s, self.mtbf_s), strict=True))
        return 1.0 / h if h > 0.0 else math.inf


def fit(intervals_s: Sequence[float], overheads: Sequence[float], mtbf_s: float) -> Curve:
    """Return the curve of least squared relative errors of `overheads` (wall over kept work, finite).

    Raises ValueError with fewer than four points.
    """
    if len(intervals_s) < MIN_POINTS or len(intervals_s) != len(overheads):
        raise ValueError(f"a curve needs at least {MIN_POINTS} points (got {len(intervals_s)})")
    import numpy as np

    scale = max(mtbf_s, max(intervals_s) / 20.0)  # keeps the exponential in range
    rows = np.array([[x / h for x in _basis(t, scale)] for t, h in zip(intervals_s, overheads, strict=True)])
    size = np.abs(rows).max(axis=0)  # columns of like size: well conditioned whatever the unit of time
    found = np.linalg.lstsq(rows / size, np.ones(len(rows)), rcond=None)[0] / size
    return Curve(float(found[0]), float(found[1]), float(found[2]), scale)


def _basis(interval_s: float, mtbf_s: float) -> tuple[float, float, float]:
    return 1.0, 1.0 / interval_s, math.expm1(interval_s / mtbf_s) / interval_s


def overhead(kept_s: Sequence[float], wall_s: Sequence[float]) -> float:
    """Return wall over kept work, total over total; inf where nothing is kept."""
    kept = math.fsum(kept_s)
    return math.fsum(wall_s) / kept if kept > 0.0 else math.inf
