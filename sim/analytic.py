"""Closed forms: what the back of an envelope says, and what the engines must agree with.

Times are in seconds; the interval is useful work between two checkpoints. Faults are a Poisson process on the
wall clock, and saves stop the loop unless the name says async. In the equations M = mtbf_s, tau = interval_s,
C = write_s, R = restart_s (faults may strike), D = down_s (they may not). An argument that is not a finite
number in its range raises ValueError.
"""

from __future__ import annotations

import math


def young(write_s: float, mtbf_s: float) -> float:
    """Return Young's interval [s], ``sqrt(2 C M)``: first order, good for C much shorter than M.

    Source: Young, CACM 17(9):530, 1974, doi 10.1145/361147.361115.
    """
    return math.sqrt(2.0 * _not_negative("write_s", write_s) * _positive("mtbf_s", mtbf_s))


def daly(write_s: float, mtbf_s: float) -> float:
    """Return Daly's first-order interval [s], ``sqrt(2 C M) - C``, 0 where that is negative (C > 2M).

    Source: Daly, FGCS 22:303, 2006, doi 10.1016/j.future.2004.11.016.
    """
    return max(0.0, young(write_s, mtbf_s) - write_s)


def daly_higher(write_s: float, mtbf_s: float) -> float:
    """Return Daly's higher-order interval [s].

    ``sqrt(2CM) [1 + sqrt(C/2M)/3 + (C/2M)/9] - C`` for C < 2M, else M. The first terms of a series for
    `exact_interval`: below it by 0.001 % at C/M = 0.01, 0.04 % at 0.1, 0.6 % at 0.5 and 1.8 % at 1.
    Source: Daly, FGCS 22:303, 2006, doi 10.1016/j.future.2004.11.016.
    """
    root = young(write_s, mtbf_s)
    if write_s >= 2.0 * mtbf_s:
        return float(mtbf_s)
    ratio = write_s / (2.0 * mtbf_s)
    return root * (1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0) - write_s


def exact_interval(write_s: float, mtbf_s: float) -> float:
    """Return the interval [s] of the highest exact goodput, ``M [1 + W0(-exp(-C/M - 1))]``.

    It does not depend on R and D. The optimum is flat: see `exact_goodput`.
    Source: Bougeret, Casanova, Rabie, Robert, Vivien, SC'11, doi 10.1145/2063384.2063428.
    """
    _not_negative("write_s", write_s)
    ratio = write_s / _positive("mtbf_s", mtbf_s)
    # Near its branch point W0 loses digits (its argument is a rounded -1/e); its series in p keeps them.
    p = math.sqrt(-2.0 * math.expm1(-ratio))
    if p < 0.01:
        series = p * (1.0 - p * (1 / 3 - p * (11 / 72 - p * (43 / 540 - p * (769 / 17280 - p * 221 / 8505)))))
        return mtbf_s * series
    from scipy.special import lambertw

    return mtbf_s * (1.0 + float(lambertw(-math.exp(-ratio - 1.0)).real))


def expected_attempts(interval_s: float, write_s: float, mtbf_s: float) -> float:
    """Return how often one segment is begun until it succeeds once, ``exp((tau + C)/M)``; inf past 1e308.

    Memoryless faults leave each attempt the same chance exp(-(tau + C)/M); the count is geometric.
    """
    _positive("interval_s", interval_s)
    return _exp((interval_s + _not_negative("write_s", write_s)) / _positive("mtbf_s", mtbf_s))


def exact_segment_s(
    interval_s: float, write_s: float, mtbf_s: float, restart_s: float = 0.0, down_s: float = 0.0
) -> float:
    """Return the mean time [s] from one checkpoint to the next, rework and restarts included; inf past 1e308.

    ``E = (M + D) exp(R/M) (exp((tau + C)/M) - 1)``. Exact for Poisson faults that strike work, saves and the
    restart R alike, but not the downtime D before it. Sources: Daly 2006; Bougeret et al. 2011.
    """
    period_s = _positive("interval_s", interval_s) + _not_negative("write_s", write_s)
    span = period_s / _positive("mtbf_s", mtbf_s)
    lead = mtbf_s + _not_negative("down_s", down_s)
    restart = _exp(_not_negative("restart_s", restart_s) / mtbf_s)
    return lead * restart * (math.expm1(span) if span < 709.0 else math.inf)


def exact_goodput(
    interval_s: float, write_s: float, mtbf_s: float, restart_s: float = 0.0, down_s: float = 0.0
) -> float:
    """Return goodput in the long run, ``tau / E`` with E of `exact_segment_s`; in 0..1.

    A job of finite length differs by its first start and by its last, shorter segment. The maximum over tau
    is flat: at 0.8 and 1.2 times the best interval the waste for each second of work, with R = D = 0, is only
    2.5 % and 1.7 % larger. So judge an interval by its regret in goodput.
    """
    return interval_s / exact_segment_s(interval_s, write_s, mtbf_s, restart_s, down_s)


def lost_work(period_s: float, mtbf_s: float) -> float:
    """Return the mean time [s] since a period began, given that a fault strikes within it.

    ``M - T / (exp(T/M) - 1)``: half the period where T is much shorter than M, M where it is much longer.
    It is the mean of an exponential time cut at T.
    """
    x = _positive("period_s", period_s) / _positive("mtbf_s", mtbf_s)
    if x < 1e-3:  # the difference of two nearly equal numbers, by its series
        return period_s * (0.5 - x / 12.0 + x**3 / 720.0)
    return mtbf_s * (1.0 - (x / math.expm1(x) if x < 709.0 else 0.0))


def meta_ettr(
    interval_s: float, write_s: float, nodes: int, rate_per_node_s: float, restart_s: float = 0.0
) -> float:
    """Return Meta's *approximation* of the effective training time ratio: not `exact_goodput`, and not exact.

    ``(1 - N r (u0 + dt/2)) / (1 + w/dt)`` with u0 = restart_s, dt = interval_s, w = write_s; r in faults per
    node and second. First order in N r (u0 + dt/2): meant for values well below 1, cut at 0 where it would be
    negative. Source: arXiv 2410.21680.
    """
    dt = _positive("interval_s", interval_s)
    faults_per_s = _positive("nodes", nodes) * _not_negative("rate_per_node_s", rate_per_node_s)
    kept = 1.0 - faults_per_s * (_not_negative("restart_s", restart_s) + dt / 2.0)
    return max(0.0, kept) / (1.0 + _not_negative("write_s", write_s) / dt)


def meta_interval(write_s: float, nodes: int, rate_per_node_s: float) -> float:
    """Return the interval [s] that goes with `meta_ettr`, ``sqrt(2 w / (N r))``: Young's, with M = 1/(N r).

    Source: arXiv 2410.21680.
    """
    faults_per_s = _positive("nodes", nodes) * _positive("rate_per_node_s", rate_per_node_s)
    return young(write_s, 1.0 / faults_per_s)


def async_waste(
    interval_s: float, stall_s: float, write_s: float, mtbf_s: float, restart_s: float = 0.0
) -> float:
    """Return the share of time wasted with asynchronous saves, ``w/tau + (tau/2 + P + R)/M``, to first order.

    w = stall_s is the time the loop stands still for a save, P = write_s the background write after it, so
    that a fault finds the newest durable state tau/2 + P old on average. Valid for tau >= P (the writer keeps
    up) and for waste well below 1; it is not cut at 1. Derived here.
    """
    tau = _positive("interval_s", interval_s)
    if tau < _not_negative("write_s", write_s):
        raise ValueError(f"interval_s must be at least write_s = {write_s} (the writer keeps up), got {tau}")
    stall = _not_negative("stall_s", stall_s) / tau
    lost = tau / 2.0 + write_s + _not_negative("restart_s", restart_s)
    return stall + lost / _positive("mtbf_s", mtbf_s)


def async_interval(stall_s: float, write_s: float, mtbf_s: float) -> float:
    """Return the interval [s] of the lowest `async_waste`, ``max(sqrt(2 w M), P)``. Derived here."""
    return max(young(_not_negative("stall_s", stall_s), mtbf_s), _not_negative("write_s", write_s))


def async_effective_stall(write_s: float, interval_s: float) -> float:
    """Return how long [s] the loop waits for the writer at each save, ``max(0, P - tau)``.

    Steady state of saves that wait for the one before (`on_busy: wait`); the staging itself comes on top.
    Source: derived; the case is a public one (write 64 s, a save each step).
    """
    return max(0.0, _not_negative("write_s", write_s) - _positive("interval_s", interval_s))


def p_fault_before(time_s: float, mtbf_s: float) -> float:
    """Return the probability of a fault within a time, ``1 - exp(-t/M)``."""
    return -math.expm1(-_not_negative("time_s", time_s) / _positive("mtbf_s", mtbf_s))


def p_no_save_in_cycle(warmup_s: float, interval_s: float, write_s: float, mtbf_s: float) -> float:
    """Return the probability that a cycle (restart to fault) ends before its first checkpoint.

    ``1 - exp(-(warm-up + tau + C)/M)``. Every such cycle counts towards NVRx's `max_no_progress_cycles`.
    """
    parts = _not_negative("warmup_s", warmup_s) + _positive("interval_s", interval_s)
    return p_fault_before(parts + _not_negative("write_s", write_s), mtbf_s)


def expected_failures_to_stop(p: float, cycles: int) -> float:
    """Return the mean number of cycles until `cycles` in a row made no progress, each with probability p.

    ``(1 - p^n) / ((1 - p) p^n)`` with n = cycles: the mean wait for a run of n successes (Feller, vol. 1,
    XIII.7). inf for p = 0: the run never stops itself.
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p must be a probability, 0 to 1, got {p}")
    if cycles != int(_positive("cycles", cycles)):
        raise ValueError(f"cycles must be a whole number, 1 or more, got {cycles}")
    run = p**cycles
    if run == 0.0:
        return math.inf
    if p == 1.0:
        return float(cycles)
    return -math.expm1(cycles * math.log(p)) / ((1.0 - p) * run)


def _exp(x: float) -> float:
    return math.exp(x) if x < 709.0 else math.inf


def _positive(name: str, value: float) -> float:
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value}")
    return value


def _not_negative(name: str, value: float) -> float:
    if not 0.0 <= value < math.inf:
        raise ValueError(f"{name} must be a finite number, 0 or more, got {value}")
    return value
