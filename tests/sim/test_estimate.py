"""Estimates from replications against independent computation, exact values and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from sim.accounts.estimate import (
    difference_interval,
    quantile,
    ratio,
    ratio_interval,
    share_interval,
    t_quantile,
)

numbers = st.floats(0, 1e6)


@pytest.mark.parametrize("degrees", [1, 2, 5, 19, 1000])
def test_t_quantiles(degrees: int) -> None:
    assert t_quantile(degrees) == pytest.approx(scipy.stats.t.ppf(0.975, degrees), rel=1e-12)


def test_a_t_quantile_needs_a_degree_of_freedom() -> None:
    with pytest.raises(ValueError, match=r"degrees must be at least 1 \(got 0\)"):
        t_quantile(0)


@given(st.lists(numbers, min_size=1, max_size=40), st.sampled_from([0.1, 0.5, 0.9, 0.99]))
def test_quantiles_are_numpy_s(values: list[float], probability: float) -> None:
    assert quantile(sorted(values), probability) == pytest.approx(np.quantile(values, probability), abs=1e-9)


def test_a_quantile_that_touches_infinity_is_infinite() -> None:
    values = [1.0, 2.0, 3.0, math.inf]
    assert quantile(values, 0.5) == 2.5
    assert quantile(values, 2 / 3) == 3.0
    assert quantile(values, 0.9) == math.inf
    assert math.isnan(quantile([], 0.5))


def test_a_ratio_is_total_over_total() -> None:
    assert ratio([1, 9], [10, 10]) == 0.5
    assert ratio([5], [0]) == math.inf
    assert math.isnan(ratio([0], [0]))
    assert ratio_interval([5], [10]) is None
    assert ratio_interval([5, 5], [0, 0]) is None


def test_with_constant_denominators_the_interval_is_student_s() -> None:
    values = [1.0, 2.0, 4.0, 9.0]
    low, high = ratio_interval(values, [1.0] * 4) or (0, 0)
    expected = scipy.stats.t.interval(0.95, 3, np.mean(values), scipy.stats.sem(values))
    assert (low, high) == pytest.approx(expected)


def test_the_interval_covers_the_true_ratio_in_95_percent_of_studies() -> None:
    """Lost time per fault, faults Poisson(6): the case where averaging the runs' own ratios is biased.

    2,000 studies of 40 runs; coverage would lie in 93 .. 97 % by chance with probability above 1 - 1e-4 if it
    were 95 % (binomial). A 90 % interval would fail with certainty.
    """
    rng = np.random.default_rng(20260729)
    true, hits = 120.0, 0
    for _ in range(2000):
        faults = rng.poisson(6, 40)
        lost = rng.exponential(true, (40, 40))
        totals = [float(lost[i, :n].sum()) for i, n in enumerate(faults)]
        low, high = ratio_interval(totals, [float(n) for n in faults]) or (0, 0)
        hits += low <= true <= high
    assert 0.93 <= hits / 2000 <= 0.97


def test_paired_differences_use_the_common_faults() -> None:
    rng = np.random.default_rng(7)
    luck = rng.normal(0, 1, 50)
    first, second = list(10 + luck + rng.normal(0, 0.1, 50)), list(9 + luck)
    ones, gains = [1.0] * 50, np.subtract(first, second)
    low, high = difference_interval((first, ones), (second, ones)) or (0, 0)
    assert (low, high) == pytest.approx(
        scipy.stats.t.interval(0.95, 49, np.mean(gains), scipy.stats.sem(gains))
    )
    assert 0.9 < low < high < 1.1  # unpaired, it would be +- 0.4
    assert difference_interval((first[:1], ones[:1]), (second[:1], ones[:1])) is None
    with pytest.raises(ValueError, match=r"as many runs on both sides \(got 50 and 1\)"):
        difference_interval((first, ones), (second[:1], ones[:1]))


def test_shares_have_an_interval_at_0_and_at_1_too() -> None:
    expected = scipy.stats.binomtest(3, 10).proportion_ci(method="wilson")
    assert share_interval(3, 10) == pytest.approx((expected.low, expected.high))
    low, high = share_interval(20, 20) or (0, 0)
    assert 0.83 < low < 0.85 and high == 1.0
    assert share_interval(0, 0) is None
