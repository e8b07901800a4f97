"""Probability laws as rows of numbers, so that the rules can draw from them without objects.

A law is one row ``(kind, a, b, start, count)``; laws without a closed inverse point into a shared table.
``build_row`` (plain Python, at load) makes the row; the rules below only read it.

Table laws hold ``log quantile`` at equal steps of ``x = log(F / (1 - F))`` in [-X_MAX, X_MAX]: both tails keep
their relative precision, which a grid in F would lose. Interpolation error is below 3e-5 of the value (lognormal, and
gamma up to cv = 3; it grows with cv), that of the mean below 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sim.draws import u
from sim.kernel import rule

if TYPE_CHECKING:
    from sim.schema.law import Law

CONSTANT, UNIFORM, EXPONENTIAL, WEIBULL, TABLE, EMPIRICAL = 0, 1, 2, 3, 4, 5

X_MAX = 37.5  # logit of 2**-54, the smallest draw, is -37.43
TABLE_SIZE = 8193

Row = tuple[float, float, float, int, int]


@rule
def quantile(laws: Any, tables: Any, row: int, p: float) -> float:
    """Return the value below which a share `p` of law `row` lies [s]; 0 < p < 1."""
    law = laws[row]
    kind = int(law[0])
    if kind == CONSTANT:
        return float(law[1])
    if kind == UNIFORM:
        return float(law[1] + (law[2] - law[1]) * p)
    if kind == EXPONENTIAL:
        return float(-law[1] * math.log1p(-p))
    if kind == WEIBULL:
        return float(law[1] * (-math.log1p(-p)) ** (1.0 / law[2]))
    start = int(law[3])
    count = int(law[4])
    if kind == EMPIRICAL:
        return float(tables[start + int(p * count)])
    x = math.log(p) - math.log1p(-p)
    return _table_value(tables, start, count, x)


@rule
def _table_value(tables: Any, start: int, count: int, x: float) -> float:
    place = (x + X_MAX) * (count - 1) / (2.0 * X_MAX)
    place = min(max(place, 0.0), count - 1.000001)
    i = int(place)
    f = place - i
    return math.exp(tables[start + i] * (1.0 - f) + tables[start + i + 1] * f)


@rule
def life_after(laws: Any, tables: Any, row: int, age: float, p: float) -> float:
    """Return a total life longer than `age`: the law conditioned on having reached that age [s].

    ``S(life) = (1 - p) S(age)``; 0 < p < 1.
    """
    if age <= 0.0:
        return quantile(laws, tables, row, p)
    law = laws[row]
    kind = int(law[0])
    if kind == CONSTANT:
        return max(float(law[1]), age)
    if kind == UNIFORM:
        low = max(age, float(law[1]))
        return float(low + max(law[2] - low, 0.0) * p)
    if kind == EXPONENTIAL:
        return float(age - law[1] * math.log1p(-p))
    if kind == WEIBULL:
        return float(law[1] * ((age / law[1]) ** law[2] - math.log1p(-p)) ** (1.0 / law[2]))
    start = int(law[3])
    count = int(law[4])
    low = start
    high = start + count
    if kind == EMPIRICAL:
        while low < high:  # first value above the age
            mid = (low + high) // 2
            if tables[mid] > age:
                high = mid
            else:
                low = mid + 1
        left = start + count - low
        if left == 0:
            return age
        return float(tables[low + int(p * left)])
    log_age = math.log(age)
    while high - low > 1:  # last table entry not above the age
        mid = (low + high) // 2
        if tables[mid] > log_age:
            high = mid
        else:
            low = mid
    f = 0.0
    if low + 1 < start + count and tables[low + 1] > tables[low]:
        f = min(max((log_age - tables[low]) / (tables[low + 1] - tables[low]), 0.0), 1.0)
    x = (low - start + f) * 2.0 * X_MAX / (count - 1) - X_MAX
    survive = (1.0 - p) / (1.0 + math.exp(x))
    return max(age, _table_value(tables, start, count, math.log1p(-survive) - math.log(survive)))


@rule
def draw(p: Any, row: int, seed: int, replication: int, unit: int, k: int) -> float:
    """Draw number `k` of `unit` from law `row` of the parameters `p` [s]."""
    law = p.laws[row]
    if law[0] == CONSTANT:
        return float(law[1])
    return quantile(p.laws, p.tables, row, u(seed, replication, p.streams[row], unit, k))


@rule
def chance(p: Any, stream: int, seed: int, replication: int, unit: int, k: int, probability: float) -> bool:
    """Return whether an event of this probability happens."""
    if probability >= 1.0:
        return True
    if probability <= 0.0:
        return False
    return u(seed, replication, stream, unit, k) < probability


# --- built at load -----------------------------------------------------------------------------------------


def build_row(law: Law, tables: list[float]) -> Row:
    """Turn a `Law` that has its mean into its row; table laws add their quantiles to `tables`."""
    kind = law.kind
    if kind == "constant":
        assert law.value is not None
        return (CONSTANT, law.value, 0.0, 0, 0)
    if kind == "uniform":
        assert law.low is not None and law.high is not None
        return (UNIFORM, law.low, law.high, 0, 0)
    if kind == "empirical":
        start = len(tables)
        tables.extend(sorted(law.values))
        return (EMPIRICAL, 0.0, 0.0, start, len(law.values))
    mean = law.mean_s()
    if kind == "exponential":
        return (EXPONENTIAL, mean, 0.0, 0, 0)
    if kind == "weibull":
        assert law.shape is not None
        return (WEIBULL, mean / math.gamma(1.0 + 1.0 / law.shape), law.shape, 0, 0)
    return _add_table(log_quantiles(law), tables)


def _add_table(values: Sequence[float], tables: list[float]) -> Row:
    start = len(tables)
    tables.extend(values)
    return (TABLE, 0.0, 0.0, start, len(values))


def log_quantiles(law: Law) -> list[float]:
    """Return log quantiles of a lognormal or gamma law on the logit grid (scipy, at load)."""
    import numpy as np
    from scipy import special

    x = np.linspace(-X_MAX, X_MAX, TABLE_SIZE)
    below, above = special.expit(x), special.expit(-x)
    if law.kind == "lognormal":
        assert law.median is not None
        sigma = math.sqrt(2.0 * math.log(law.mean_s() / law.median))
        logs = math.log(law.median) + sigma * np.where(x < 0, special.ndtri(below), -special.ndtri(above))
    else:
        assert law.kind == "gamma" and law.cv is not None
        shape = 1.0 / law.cv**2
        q = np.where(x < 0, special.gammaincinv(shape, below), special.gammainccinv(shape, above))
        logs = np.log(np.maximum(q, 1e-300)) + math.log(law.mean_s() / shape)
    return [float(v) for v in logs]


def equilibrium_row(laws: Sequence[Row], tables: list[float], row: int) -> Row:
    """Return the law of a unit's age long after the start: density S(age) / mean (renewal theory, Cox 1962)."""
    import numpy as np

    kind, a, b, start, count = laws[row]
    if kind == CONSTANT:
        return (UNIFORM, 0.0, a, 0, 0)
    if kind == EXPONENTIAL:
        return laws[row]
    x = np.linspace(-X_MAX, X_MAX, TABLE_SIZE)
    if kind == WEIBULL:
        from scipy import special

        q = np.where(
            x < 0,
            special.gammaincinv(1.0 / b, special.expit(x)),
            special.gammainccinv(1.0 / b, special.expit(-x)),
        )
        return _add_table([float(v) for v in np.log(np.maximum(q, 1e-300)) / b + math.log(a)], tables)
    # Numerically: integrate the survival function from both ends, so that both tails keep their precision.
    if kind == TABLE:
        t = np.exp(np.asarray(tables[start : start + count]))
        survive = 1.0 / (1.0 + np.exp(np.linspace(-X_MAX, X_MAX, count)))
        t, survive = np.concatenate(([0.0], t)), np.concatenate(([1.0], survive))
    elif kind == UNIFORM:
        t = np.concatenate((np.linspace(0.0, a, 1000, endpoint=False), np.linspace(a, b, 8000)))
        survive = np.clip((b - t) / (b - a), 0.0, 1.0) if b > a else np.where(t < a, 1.0, 0.0)
    else:
        values = np.asarray(tables[start : start + count])
        t = np.unique(np.concatenate((np.linspace(0.0, values[-1], 20001), values)))
        survive = 1.0 - np.searchsorted(values, t[:-1] + np.diff(t) / 2, side="right") / count
        survive = np.concatenate((survive, [0.0]))
        pieces = survive[:-1] * np.diff(t)
        return _equilibrium_table(t, pieces, x, tables)
    pieces = (survive[1:] + survive[:-1]) / 2.0 * np.diff(t)
    return _equilibrium_table(t, pieces, x, tables)


def _equilibrium_table(t: Any, pieces: Any, x: Any, tables: list[float]) -> Row:
    import numpy as np

    below = np.cumsum(pieces)[:-1]
    above = np.cumsum(pieces[::-1])[::-1][1:]
    inner = (below > 0) & (above > 0)
    logit = np.log(below[inner]) - np.log(above[inner])
    logs = np.log(t[1:-1][inner])
    values = np.interp(x, logit, logs)
    # Below the first point nobody has failed yet, so the age there is uniform: proportional to its share.
    proportional = logs[0] + np.logaddexp(0.0, -logit[0]) - np.logaddexp(0.0, -x)
    values = np.where(x < logit[0], proportional, values)
    return _add_table([float(v) for v in values], tables)


def mean_of_row(laws: Sequence[Row], tables: Sequence[float], row: int) -> float:
    """Return the mean of a row's law [s], numerically for tables."""
    kind, a, b, start, count = laws[row]
    if kind in (CONSTANT, EXPONENTIAL):
        return a
    if kind == UNIFORM:
        return (a + b) / 2.0
    if kind == WEIBULL:
        return a * math.gamma(1.0 + 1.0 / b)
    if kind == EMPIRICAL:
        return sum(tables[start : start + count]) / count
    import numpy as np

    x = np.linspace(-X_MAX, X_MAX, count)
    density = 1.0 / (2.0 + np.exp(x) + np.exp(-x))  # dF/dx of the logistic
    return float(np.trapezoid(np.exp(np.asarray(tables[start : start + count])) * density, x))


def split_at_median(laws: Sequence[Row], tables: Sequence[float], row: int) -> tuple[float, float, float]:
    """Return (mean, median, mean of min(value, median)) of a law: what a step costs and what of it is nominal."""
    kind, a, _, _, _ = laws[row]
    if kind == CONSTANT:
        return a, a, a
    n = 20000
    values = [quantile(laws, tables, row, (i + 0.5) / n) for i in range(n)]
    median = quantile(laws, tables, row, 0.5)
    mean = mean_of_row(laws, tables, row)
    # The part above the median comes from the mean, so that the two always add up to it.
    low = sum(min(v, median) for v in values) / n
    return mean, median, min(low, mean)
