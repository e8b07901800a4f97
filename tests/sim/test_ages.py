"""Ages of nodes: how many faults a long job sees, against renewal theory and an independent renewal simulation.

256 nodes with a mean life of 100 days, 64 days of work, 20 minutes a restart. At shape 1 the expected number of
faults is 256 x 64 / 100 = 163.84 where nodes age with the work (clock: running), and 163.84 / (1 - 2.56 x 20 min / 1 d)
= 169.88 where they age through the restarts as well (clock: wall). Every statistical assert has a false alarm of 1e-6
or less; counts of shape 1 are exact Poisson ones.
"""

import math

import numpy as np
import pytest
from scipy import special, stats

from sim import engine, params
from sim.ledger import account
from sim.scenario import load_scenario

DAY = 86400.0
NODES, LIFE_DAYS, WORK_DAYS, RESTART_S = 256, 100.0, 64.0, 1200.0
RUNS = 30


def job(shape, *, clock="running", age="new", days=WORK_DAYS, **more):
    """Return the job, all of whose work is kept: the number of faults is all that counts."""
    law = "exponential" if shape == 1 else {"weibull": {"shape": shape}}
    fault = {"name": "node", "mtbf": f"{LIFE_DAYS}d", "scope": "node", "symptom": "exception", "law": law}
    return load_scenario(
        {
            "cluster": {"nodes": NODES, "initial_age": age, **more.pop("cluster", {})},
            "workload": {"step_time": 60, "useful_time": f"{days}d"},
            "checkpoint": {"mode": "ideal"},
            "failures": {"clock": clock, "classes": [{**fault, **more}]},
            "recovery": {"layers": ["fixed"], "fixed": {"restart": RESTART_S}},
        }
    )


def faults(scenario, seed, runs=RUNS):
    """Return the number of faults of each run."""
    compiled = params.compile_scenario(scenario)
    counts = []
    for replication in range(runs):
        ledger = account(engine.simulate_run(compiled, scenario, seed, replication))
        assert ledger.completed
        counts.append(ledger.interruptions)
    return np.array(counts)


def renewals(shape, seed, *, stationary=False, wall=False, days=WORK_DAYS, runs=200):
    """Return fault counts of a renewal process a node, simulated with numpy and nothing of ours.

    With `wall` the horizon grows by a restart at each fault of any node: iterated until the count holds still.
    """
    rng = np.random.default_rng(seed)
    scale = LIFE_DAYS / math.gamma(1 + 1 / shape)
    counts = []
    for _ in range(runs):
        lives = scale * rng.weibull(shape, size=(NODES, 60))
        if stationary:  # P(rest of a life > t) = integral of S beyond t over the mean
            lives[:, 0] = scale * special.gammainccinv(1 / shape, rng.random(NODES)) ** (1 / shape)
        strikes = np.sort(np.cumsum(lives, axis=1), axis=None)
        count = np.searchsorted(strikes, days)
        while wall:
            more = np.searchsorted(strikes, days + count * RESTART_S / DAY)
            if more == count:
                break
            count = more
        counts.append(count)
    return np.array(counts)


def agree(one, other, alarm=1e-6):
    """Tell whether two samples of counts may have one mean (Welch; both are sums over 256 nodes)."""
    error = math.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    return abs(one.mean() - other.mean()) < stats.t.isf(alarm / 2, len(one) - 1) * error


def poisson(counts, expected, alarm=1e-6):
    """Tell whether the total of Poisson counts is within chance of its expectation."""
    total, mean = counts.sum(), expected * len(counts)
    return alarm / 2 < stats.poisson.cdf(total, mean) < 1 - alarm / 2


EXPECTED_RUNNING = NODES * WORK_DAYS / LIFE_DAYS
EXPECTED_WALL = EXPECTED_RUNNING / (1 - NODES / LIFE_DAYS * RESTART_S / DAY)


def test_the_expected_numbers():
    assert pytest.approx(163.8, abs=0.05) == EXPECTED_RUNNING
    assert pytest.approx(169.9, abs=0.05) == EXPECTED_WALL


@pytest.mark.parametrize(("clock", "expected"), [("running", EXPECTED_RUNNING), ("wall", EXPECTED_WALL)])
def test_without_memory_the_count_is_that_of_a_poisson_process(clock, expected, seed):
    """With 30 runs the standard error is 1.4 % of it; the clocks differ by 3.7 % (see the next test)."""
    counts = faults(job(1, clock=clock), seed)
    if clock == "running":
        assert poisson(counts, expected)
    else:  # each restart brings faults of its own: Borel-Tanner, with variance expected / (1 - 0.0356)^2
        assert abs(counts.mean() - expected) < 4.9 * math.sqrt(expected / RUNS) / 0.964


def test_under_the_same_faults_the_wall_clock_sees_those_of_the_restarts_too(seed):
    """Paired, the difference is that of 2.3 days of restarts: Poisson with mean 6.04 a run."""
    more = faults(job(1, clock="wall"), seed) - faults(job(1, clock="running"), seed)
    assert poisson(
        more, EXPECTED_WALL - EXPECTED_RUNNING, alarm=1e-9
    )  # a branching sum: a little wider than Poisson
    assert not poisson(more, 0.5 * (EXPECTED_WALL - EXPECTED_RUNNING), alarm=1e-6)


@pytest.mark.parametrize("clock", ["running", "wall"])
@pytest.mark.parametrize("shape", [0.6, 0.8, 1.2, 1.5])
def test_any_shape_agrees_with_a_plain_renewal_simulation(shape, clock, seed):
    counts = faults(job(shape, clock=clock), seed)
    assert agree(counts, renewals(shape, seed, wall=clock == "wall"))
    # and it has teeth: of new nodes with these shapes far more, or far fewer, fail than of stationary ones
    assert not agree(counts, renewals(shape, seed, wall=clock == "wall", stationary=True))


@pytest.mark.parametrize("shape", [0.6, 1.5])
def test_stationary_ages_make_the_rate_constant_for_any_shape(shape, seed):
    """n T / mean faults exactly: the renewal theorem holds from the start when ages are stationary."""
    counts = faults(job(shape, age="stationary"), seed)
    spread = renewals(shape, seed, stationary=True).std(ddof=1)
    assert abs(counts.mean() - EXPECTED_RUNNING) < 4.9 * spread / math.sqrt(RUNS)
    assert abs(faults(job(shape), seed).mean() - EXPECTED_RUNNING) > 4.9 * spread / math.sqrt(RUNS)


@pytest.mark.parametrize("shape", [0.6, 1.5])
@pytest.mark.parametrize("renews", [True, False])
def test_a_repair_renews_or_leaves_the_age(shape, renews, seed):
    """Over 200 days, repaired in no time: a renewal process, or minimal repair.

    Under minimal repair the count is Poisson with mean n (T / scale)^shape, a power-law process (Barlow & Proschan).
    """
    cluster = {"repair": {"stages": [{"time": 0}], "renews": renews}}
    counts = faults(job(shape, repair=True, cluster=cluster, days=200), seed, runs=10)
    scale = LIFE_DAYS / math.gamma(1 + 1 / shape)
    assert agree(counts, renewals(shape, seed, days=200)) == renews
    assert poisson(counts, NODES * (200 / scale) ** shape) != renews


def test_an_imperfect_repair_lies_between(seed):
    shape = 1.5
    cluster = {"repair": {"stages": [{"time": 0, "success": 0.5}]}}
    half = faults(job(shape, repair=True, cluster=cluster, days=200), seed, runs=20)
    minimal = NODES * (200 * math.gamma(1 + 1 / shape) / LIFE_DAYS) ** shape
    renewing = renewals(shape, seed, days=200)
    assert renewing.mean() < half.mean() < minimal
    assert not agree(half, renewing) and not poisson(half, minimal)


def test_a_unit_that_did_not_fail_keeps_its_age(seed):
    """Redrawing every clock at a fault, a known defect elsewhere, would give new nodes' hazard throughout."""
    shape = 0.6
    counts = faults(job(shape), seed, runs=5)
    scale = LIFE_DAYS / math.gamma(1 + 1 / shape)
    # with all clocks redrawn at each fault the time between faults is the least of 256 new lives
    gap = scale * NODES ** (-1 / shape) * math.gamma(1 + 1 / shape)
    assert counts.mean() < 0.1 * WORK_DAYS / gap
