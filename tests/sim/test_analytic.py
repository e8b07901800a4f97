"""The closed forms: printed values, the equations they solve, their limits, and what they refuse."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import lambertw

from sim import analytic

MINUTE, HOUR, DAY, WEEK = 60.0, 3600.0, 86400.0, 7 * 86400.0

mtbfs = st.floats(1.0, 1e8)
ratios = st.floats(1e-5, 3.0)  # C/M, tau/M, R/M


# --- printed values


@pytest.mark.parametrize(
    ("write", "mtbf", "young", "daly", "higher", "exact", "goodput"),
    [
        (5, 1440, "120.00", "115.00", "116.690", "116.690", "0.91578"),
        (10, 300, "77.46", "67.46", "70.936", "70.941", "0.73850"),
        (60, 300, "189.7", "129.7", "151.845", "152.028", "0.40383"),
    ],
)
def test_check_values(write, mtbf, young, daly, higher, exact, goodput):
    """Worked in minutes, to the digits given; goodput at the exact optimum with R = C."""

    def minutes(function):
        return function(write * MINUTE, mtbf * MINUTE) / MINUTE

    def as_printed(value, like):
        return f"{value:.{len(like.partition('.')[2])}f}"

    assert as_printed(minutes(analytic.young), young) == young
    assert as_printed(minutes(analytic.daly), daly) == daly
    assert as_printed(minutes(analytic.daly_higher), higher) == higher
    assert as_printed(minutes(analytic.exact_interval), exact) == exact
    best = analytic.exact_interval(write * MINUTE, mtbf * MINUTE)
    got = analytic.exact_goodput(best, write * MINUTE, mtbf * MINUTE, restart_s=write * MINUTE)
    assert as_printed(got, goodput) == goodput


@pytest.mark.parametrize(("mtbf_s", "minutes"), [(24 * HOUR, "117"), (6 * HOUR, "57"), (15 * MINUTE, "9.1")])
def test_dalys_own_predictions(mtbf_s, minutes):
    """Daly 2006, captions of figures 3 to 5: writes of 5 min."""
    got = analytic.daly_higher(5 * MINUTE, mtbf_s) / MINUTE
    assert f"{got:.{1 if '.' in minutes else 0}f}" == minutes


def test_youngs_interval_of_the_bloom_run():
    """384 A100, a save of 40 s, about one failure a week, 105 s an iteration: 66 iterations."""
    assert round(analytic.young(40.0, WEEK) / 105.0) == 66


def test_the_optimum_is_flat():
    """At 0.8 and 1.2 of the best interval the waste for each second of work is 2.5 and 1.7 % larger."""
    best = analytic.exact_interval(5.0, 1440.0)

    def waste(interval):
        return 1.0 / analytic.exact_goodput(interval, 5.0, 1440.0) - 1.0

    assert [round(100 * (waste(x * best) / waste(best) - 1), 1) for x in (0.8, 1.2)] == [2.5, 1.7]


def test_metas_printed_ratios():
    """arXiv 2410.21680: 16,000 GPUs of RSC-1 (6.50 failures per 1000 node-days), restart 5 min, no write."""
    rate = 6.50 / 1000 / DAY
    assert round(analytic.meta_ettr(60 * MINUTE, 0.0, 2000, rate, 5 * MINUTE), 1) == 0.7
    assert round(analytic.meta_ettr(5 * MINUTE, 0.0, 2000, rate, 5 * MINUTE), 2) == 0.93


@pytest.mark.parametrize(("p", "failures"), [(0.5, 14), (0.2, 155), (0.1, 1110)])
def test_failures_until_three_cycles_without_progress(p, failures):
    assert analytic.expected_failures_to_stop(p, 3) == pytest.approx(failures, rel=1e-12)


# --- what the forms must satisfy


@given(mtbfs, ratios, ratios)
def test_the_exact_interval_maximises_the_exact_goodput(mtbf, write, restart):
    """Found again by numeric search; goodput is flat there, so it is goodput that must not be beaten."""
    write_s, restart_s = write * mtbf, restart * mtbf
    best = analytic.exact_interval(write_s, mtbf)
    found = minimize_scalar(
        lambda x: analytic.exact_segment_s(x, write_s, mtbf, restart_s) / x,
        bounds=(best / 10, best * 10), method="bounded", options={"xatol": best * 1e-9},
    )  # fmt: skip
    assert found.x == pytest.approx(best, rel=1e-5)
    assert analytic.exact_goodput(best, write_s, mtbf, restart_s) >= (1 - 1e-13) / found.fun


@given(mtbfs, st.floats(1e-9, 30.0))
def test_the_exact_interval_solves_its_equation(mtbf, ratio):
    """With y = tau/M the optimum has C/M = -log(1 - y) - y, on both sides of the switch to the series."""
    y = analytic.exact_interval(ratio * mtbf, mtbf) / mtbf
    if y < 0.01:
        assert sum(y**n / n for n in range(2, 12)) == pytest.approx(ratio, rel=1e-11)
    elif y < 0.999:
        assert -math.log1p(-y) - y == pytest.approx(ratio, rel=1e-9)
    if ratio > 1e-3:
        assert y == pytest.approx(1.0 + lambertw(-math.exp(-ratio - 1.0)).real, rel=1e-12)


@given(mtbfs, st.floats(1e-6, 1.99))
def test_dalys_higher_order_is_close_below_the_exact_interval(mtbf, ratio):
    exact, daly = analytic.exact_interval(ratio * mtbf, mtbf), analytic.daly_higher(ratio * mtbf, mtbf)
    assert -0.07 < daly / exact - 1.0 < 1e-9
    if ratio < 0.1:
        assert daly / exact - 1.0 > -4e-4
    best, got = (analytic.exact_goodput(x, ratio * mtbf, mtbf) for x in (exact, daly))
    assert -1e-12 < best - got < 3e-4


@given(mtbfs, st.floats(1e-9, 1e-5))
def test_all_intervals_tend_to_youngs_for_short_writes(mtbf, ratio):
    young = analytic.young(ratio * mtbf, mtbf)
    for other in (analytic.daly, analytic.daly_higher, analytic.exact_interval):
        assert other(ratio * mtbf, mtbf) == pytest.approx(young, rel=3e-3)


@given(mtbfs, ratios, ratios, ratios, ratios)
def test_the_exact_segment_adds_up_from_its_parts(mtbf, interval, write, restart, down):
    """A segment is its last, whole attempt and, for each attempt before, the lost part, D and a restart.

    The restart in turn is R and, for each fault within it, the lost part of R and D.
    """
    tau, c, r, d = interval * mtbf, write * mtbf, restart * mtbf, down * mtbf
    again_r = analytic.expected_attempts(r, 0.0, mtbf) - 1.0
    restart_mean = r + again_r * (analytic.lost_work(r, mtbf) + d)
    again = analytic.expected_attempts(tau, c, mtbf) - 1.0
    expected = tau + c + again * (analytic.lost_work(tau + c, mtbf) + d + restart_mean)
    assert analytic.exact_segment_s(tau, c, mtbf, r, d) == pytest.approx(expected, rel=1e-9)


@given(mtbfs, st.floats(1e-8, 300.0))
def test_lost_work_is_the_mean_of_a_cut_exponential(mtbf, ratio):
    period = ratio * mtbf
    lost = analytic.lost_work(period, mtbf)
    assert 0.0 < lost <= min(period / 2.0, mtbf)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    if ratio < 30.0:
        x = (nodes + 1.0) / 2.0
        density = weights * np.exp(-ratio * x)
        assert lost == pytest.approx(period * (density @ x) / density.sum(), rel=1e-9)


def test_lost_work_has_its_limits_and_no_step_between_them():
    assert analytic.lost_work(1e-12, 1.0) == pytest.approx(0.5e-12, rel=1e-9)
    assert analytic.lost_work(1e9, 1.0) == 1.0
    below, above = analytic.lost_work(1e-3 * (1 - 1e-12), 1.0), analytic.lost_work(1e-3, 1.0)
    assert above == pytest.approx(below, rel=1e-11)


def test_rare_faults_cost_only_the_saves():
    assert analytic.exact_goodput(900.0, 100.0, 1e15) == pytest.approx(0.9, rel=1e-9)
    assert analytic.exact_segment_s(900.0, 100.0, 1e15, 50.0, 50.0) == pytest.approx(1000.0, rel=1e-9)


def test_a_hopeless_job_has_no_goodput():
    assert analytic.exact_segment_s(1e6, 1.0, 1.0) == math.inf
    assert analytic.exact_goodput(1e6, 1.0, 1.0, restart_s=1e6) == 0.0
    assert analytic.expected_attempts(1e6, 1.0, 1.0) == math.inf


@given(mtbfs, ratios)
def test_goodput_falls_as_anything_gets_worse(mtbf, x):
    tau = x * mtbf
    base = analytic.exact_goodput(tau, 0.1 * mtbf, mtbf, 0.1 * mtbf, 0.1 * mtbf)
    assert 0.0 < base < 1.0
    assert analytic.exact_goodput(tau, 0.2 * mtbf, mtbf, 0.1 * mtbf, 0.1 * mtbf) < base
    assert analytic.exact_goodput(tau, 0.1 * mtbf, mtbf, 0.2 * mtbf, 0.1 * mtbf) < base
    assert analytic.exact_goodput(tau, 0.1 * mtbf, mtbf, 0.1 * mtbf, 0.2 * mtbf) < base
    assert analytic.exact_goodput(tau, 0.1 * mtbf, 0.5 * mtbf, 0.1 * mtbf, 0.1 * mtbf) < base


def test_metas_ratio_agrees_with_the_exact_goodput_where_faults_are_rare():
    nodes, rate = 10, 1e-9
    interval = analytic.meta_interval(1.0, nodes, rate)
    assert interval == analytic.young(1.0, 1.0 / (nodes * rate))
    exact = analytic.exact_goodput(interval, 1.0, 1.0 / (nodes * rate), restart_s=60.0)
    assert analytic.meta_ettr(interval, 1.0, nodes, rate, 60.0) == pytest.approx(exact, abs=1e-7)


def test_metas_ratio_is_cut_at_zero():
    assert analytic.meta_ettr(1e6, 1.0, 1000, 1e-6) == 0.0


@given(mtbfs, st.floats(1e-6, 0.1), st.floats(0.0, 0.3))
def test_the_async_interval_wastes_least(mtbf, stall, write):
    stall_s, write_s = stall * mtbf, write * mtbf
    best = analytic.async_interval(stall_s, write_s, mtbf)
    least = analytic.async_waste(best, stall_s, write_s, mtbf)
    for factor in (1.0, 1.001, 1.1, 2.0, 10.0, 0.999, 0.9, 0.5):
        if best * factor >= write_s:
            assert analytic.async_waste(best * factor, stall_s, write_s, mtbf) >= least * (1 - 1e-12)
    assert best >= write_s


def test_a_loop_that_saves_too_often_waits_for_the_writer():
    assert analytic.async_effective_stall(64.0, 4.0) == 60.0
    assert analytic.async_effective_stall(64.0, 64.0) == 0.0
    assert analytic.async_effective_stall(64.0, 100.0) == 0.0


def test_a_save_at_the_hour_and_a_fault_at_54_minutes():
    """The chance of a fault before the first save is 1 - exp(-60 min/M)."""
    assert analytic.p_fault_before(HOUR, 10 * HOUR) == pytest.approx(1 - math.exp(-0.1), rel=1e-12)
    assert analytic.p_fault_before(0.0, 1.0) == 0.0
    assert analytic.p_fault_before(1e-20, 1.0) == pytest.approx(1e-20)


@given(mtbfs, ratios, ratios, ratios)
def test_no_save_in_a_cycle(mtbf, warmup, interval, write):
    p = analytic.p_no_save_in_cycle(warmup * mtbf, interval * mtbf, write * mtbf, mtbf)
    assert p == pytest.approx(1 - math.exp(-(warmup + interval + write)), rel=1e-9)


@given(st.floats(0.1, 1.0), st.integers(1, 6))
def test_failures_to_stop_solve_their_chain(p, cycles):
    """States 0..n-1 cycles without progress so far: E_i = 1 + p E_(i+1) + (1 - p) E_0, E_n = 0."""
    a = np.eye(cycles)
    a[:, 0] -= 1.0 - p
    for i in range(cycles - 1):
        a[i, i + 1] -= p
    expected = np.linalg.solve(a, np.ones(cycles))[0]
    assert analytic.expected_failures_to_stop(p, cycles) == pytest.approx(expected, rel=1e-6)


def test_failures_to_stop_at_the_ends():
    assert analytic.expected_failures_to_stop(1.0, 3) == 3.0
    assert analytic.expected_failures_to_stop(0.0, 3) == math.inf
    assert analytic.expected_failures_to_stop(1e-200, 3) == math.inf


# --- what they refuse


CALLS = {
    "young": (analytic.young, {"write_s": 1.0, "mtbf_s": 10.0}),
    "daly": (analytic.daly, {"write_s": 1.0, "mtbf_s": 10.0}),
    "daly_higher": (analytic.daly_higher, {"write_s": 1.0, "mtbf_s": 10.0}),
    "exact_interval": (analytic.exact_interval, {"write_s": 1.0, "mtbf_s": 10.0}),
    "expected_attempts": (analytic.expected_attempts, {"interval_s": 1.0, "write_s": 1.0, "mtbf_s": 10.0}),
    "exact_segment_s": (
        analytic.exact_segment_s,
        {"interval_s": 1.0, "write_s": 1.0, "mtbf_s": 10.0, "restart_s": 1.0, "down_s": 1.0},
    ),
    "lost_work": (analytic.lost_work, {"period_s": 1.0, "mtbf_s": 10.0}),
    "meta_ettr": (
        analytic.meta_ettr,
        {"interval_s": 1.0, "write_s": 1.0, "nodes": 2, "rate_per_node_s": 0.01, "restart_s": 1.0},
    ),
    "meta_interval": (analytic.meta_interval, {"write_s": 1.0, "nodes": 2, "rate_per_node_s": 0.01}),
    "async_waste": (
        analytic.async_waste,
        {"interval_s": 2.0, "stall_s": 1.0, "write_s": 1.0, "mtbf_s": 10.0, "restart_s": 1.0},
    ),
    "async_interval": (analytic.async_interval, {"stall_s": 1.0, "write_s": 1.0, "mtbf_s": 10.0}),
    "async_effective_stall": (analytic.async_effective_stall, {"write_s": 1.0, "interval_s": 1.0}),
    "p_fault_before": (analytic.p_fault_before, {"time_s": 1.0, "mtbf_s": 10.0}),
    "p_no_save_in_cycle": (
        analytic.p_no_save_in_cycle,
        {"warmup_s": 1.0, "interval_s": 1.0, "write_s": 1.0, "mtbf_s": 10.0},
    ),
    "expected_failures_to_stop": (analytic.expected_failures_to_stop, {"p": 0.5, "cycles": 3}),
}


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", CALLS)
def test_bad_arguments_are_refused_and_shown(name, bad):
    function, arguments = CALLS[name]
    assert math.isfinite(function(**arguments))
    for argument in arguments:
        with pytest.raises(ValueError, match=rf"{argument}.*(finite number|probability).*got {bad}"):
            function(**{**arguments, argument: bad})


def test_refusals_that_take_two_numbers_or_whole_ones():
    with pytest.raises(ValueError, match=r"interval_s must be at least write_s = 5\.0 .* got 4\.0"):
        analytic.async_waste(4.0, 1.0, 5.0, 100.0)
    with pytest.raises(ValueError, match=r"cycles must be a whole number, 1 or more, got 2\.5"):
        analytic.expected_failures_to_stop(0.5, 2.5)
    with pytest.raises(ValueError, match="mtbf_s must be a finite number above 0, got 0"):
        analytic.young(1.0, 0)
