"""Estimates from replications: ratios of totals, their 95 % intervals, quantiles. Numbers in, numbers out.

A mean of a ratio over runs is total over total: averaging the runs' own ratios is biased where the runs
differ in length or in their number of faults (Sanchez & White, WSC 2013, doi 10.1109/WSC.2013.6721473).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Interval = tuple[float, float]

MIN_RUNS = 3
"""Fewer runs give no interval: that of two, with one degree of freedom, is 12.7 standard errors wide."""
_Z95 = 1.959963984540054  # the normal law's 0.975 quantile


def t_quantile(degrees: int, probability: float = 0.975) -> float:
    """Return the quantile of Student's t law with `degrees` >= 1 degrees of freedom."""
    if degrees < 1:
        raise ValueError(f"degrees must be at least 1 (got {degrees})")
    from scipy.special import stdtrit  # a third of a second to import: only when an interval is asked for

    return float(stdtrit(degrees, probability))


def ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Return total over total; infinite where only the denominators vanish, nan where both do."""
    above, below = math.fsum(numerators), math.fsum(denominators)
    if below:
        return above / below
    return math.inf if above else math.nan


def ratio_interval(numerators: Sequence[float], denominators: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of total over total from independent runs; None from fewer than three.

    Delta method: the variance of the ratio R is that of the mean of (a - R b) / mean(b), with a t quantile
    of n - 1 degrees. Valid where the denominators vary little against their mean, or n is large (Cochran
    1977, 6.3).
    """
    slopes = _influences(numerators, denominators)
    return None if slopes is None else _around(ratio(numerators, denominators), slopes)


def difference_interval(
    first: tuple[Sequence[float], Sequence[float]], second: tuple[Sequence[float], Sequence[float]]
) -> Interval | None:
    """Return the 95 % interval of ratio(first) - ratio(second) over paired runs; None from fewer than three.

    The i-th runs of both share their faults, so their influences are subtracted before the variance is taken.
    Raises ValueError when the numbers of runs differ.
    """
    if len(first[0]) != len(second[0]):
        raise ValueError(f"pairs need as many runs on both sides (got {len(first[0])} and {len(second[0])})")
    one, other = _influences(*first), _influences(*second)
    if one is None or other is None:
        return None
    return _around(ratio(*first) - ratio(*second), [a - b for a, b in zip(one, other, strict=True)])


def _influences(numerators: Sequence[float], denominators: Sequence[float]) -> list[float] | None:
    runs = len(numerators)
    estimate = ratio(numerators, denominators)
    if runs < MIN_RUNS or not math.isfinite(estimate):
        return None
    mean_below = math.fsum(denominators) / runs
    return [(a - estimate * b) / mean_below for a, b in zip(numerators, denominators, strict=True)]


def _around(estimate: float, influences: Sequence[float]) -> Interval:
    runs = len(influences)
    variance = math.fsum(slope * slope for slope in influences) / (runs - 1) / runs
    half = t_quantile(runs - 1) * math.sqrt(variance)
    return estimate - half, estimate + half


def share_interval(hits: int, runs: int) -> Interval | None:
    """Return Wilson's 95 % interval of a share of runs; None without runs. Not empty at 0 and at 1."""
    if runs < 1:
        return None
    share, z2 = hits / runs, _Z95 * _Z95
    middle = (share + z2 / (2 * runs)) / (1 + z2 / runs)
    half = _Z95 / (1 + z2 / runs) * math.sqrt(share * (1 - share) / runs + z2 / (4 * runs * runs))
    return max(0.0, middle - half), min(1.0, middle + half)


def quantile(values: Sequence[float], probability: float) -> float:
    """Return the quantile of a sorted sample, linear between its points (Hyndman & Fan type 7).

    Infinite values count as larger than all others: a quantile that touches one is infinite. nan without
    values.
    """
    if not values:
        return math.nan
    place = probability * (len(values) - 1)
    below = math.floor(place)
    share = place - below
    low = values[below]
    if share == 0.0 or math.isinf(low):
        return low
    high = values[below + 1]
    return high if math.isinf(high) else low + share * (high - low)
