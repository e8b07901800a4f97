"""Recommendations: how the search behaves, flat regions, regret, gains, the sentence, schedules and hindsight.

How near they come to the exact optimum is in test_oracles.py.
"""

import itertools
import json

import pytest

from sim import ScenarioError, analytic, load_scenario, recommend, search, simulate, smooth
from sim.hindsight import with_interval
from sim.search import Search

BASE = {
    "name": "base",
    "cluster": {"nodes": 2, "gpus_per_node": 4},
    "workload": {"step_time": 1, "steps": 100_000},
    "checkpoint": {"mode": "sync", "interval": "200 steps", "write_time": "30s"},
    "failures": {
        "classes": [{"name": "bug", "mtbf": "6h", "per": "job", "scope": "job", "symptom": "exception"}]
    },
    "recovery": {"layers": ["fixed"], "fixed": {"restart": "5min"}},
    "economics": {"usd_per_gpu_hour": 3},
}
ASYNC = ["checkpoint.mode=async", "checkpoint.stall_time=2s"]


def base(*overrides):
    return load_scenario(BASE, overrides)


@pytest.fixture(scope="module", autouse=True)
def _short_reports():
    """Spend less on the last digits of the gain than a person would want."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "SHARP_EVENTS", 50_000)
        yield


@pytest.fixture(scope="module")
def advice():
    return recommend(BASE)


# --- what is advised


def test_the_record_has_the_shape_of_the_contract(advice):
    record = json.loads(json.dumps(advice.to_json(), allow_nan=False))
    assert {
        "interval_s", "interval_steps", "goodput", "flat_region_s", "regret_of_current", "closed_form_s",
        "why_different", "version", "provenance", "warnings",
    } <= set(record)  # fmt: skip
    assert {"mean", "ci95"} <= set(record["goodput"])
    assert {"young", "daly", "exact"} <= set(record["closed_form_s"])
    assert record["interval_s"] == record["interval_steps"] * 1.0
    low, high = record["flat_region_s"]
    assert low < record["interval_s"] < high


def test_the_interval_is_near_the_exact_one_and_inside_its_flat_region(advice):
    exact = analytic.exact_interval(30.0, 6 * 3600.0)
    assert advice.closed_form_s["exact"] == exact
    assert advice.flat_region_s[0] < exact < advice.flat_region_s[1]
    assert advice.why_different is None


def test_the_flat_region_is_where_a_tenth_of_a_point_is_lost(advice):
    """Against the exact goodput; noise moves the edges by some per cent."""

    def lost(interval_s):
        args = (30.0, 6 * 3600.0, 300.0)
        best = analytic.exact_goodput(analytic.exact_interval(*args[:2]), *args)
        return best - analytic.exact_goodput(interval_s, *args)

    for edge in advice.flat_region_s:
        assert 0.0004 < lost(edge) < 0.002


def test_regret_and_gains_are_paired_differences_of_the_same_runs(advice):
    runs = advice.replications
    now = simulate(BASE, replications=runs)
    then = simulate(with_interval(base(), advice.interval_steps), replications=runs)
    assert advice.current.goodput == now.metrics["goodput"].mean
    assert advice.best.goodput == then.metrics["goodput"].mean
    assert advice.regret.mean == pytest.approx(advice.best.goodput - advice.current.goodput)
    assert advice.regret.ci95[0] > 0.0  # 200 s is far too often
    gain = advice.gains["wall_time_s"].mean
    assert gain == pytest.approx(now.metrics["wall_time_s"].mean - then.metrics["wall_time_s"].mean)
    assert advice.gains["gpu_hours"].mean == pytest.approx(gain * 8 / 3600)
    assert advice.gains["usd"].mean == pytest.approx(3 * advice.gains["gpu_hours"].mean)


def test_the_advice_does_not_depend_on_the_present_interval(advice):
    assert recommend(base("checkpoint.interval=5000 steps")).interval_steps == advice.interval_steps


def test_the_same_seed_gives_the_same_advice():
    one, two = (recommend(BASE, replications=5, seed=3).to_json() for _ in range(2))
    assert one == two


def test_a_hopeless_present_interval_still_gets_advice():
    found = recommend(
        base("checkpoint.interval=100000 steps", "failures.classes.bug.mtbf=1h"), replications=5
    )
    assert found.current is None and found.regret is None
    assert "attempts per checkpoint interval" in found.current_refused
    assert found.best.goodput > 0.5
    json.dumps(found.to_json(), allow_nan=False)


def test_progress_never_runs_backwards():
    told = []
    recommend(BASE, replications=3, progress=lambda *x: told.append(x))
    assert all(a[0] < b[0] for a, b in itertools.pairwise(told))
    assert all(done <= planned for done, planned in told)


# --- why it differs


def test_a_long_write_is_why_first_order_fails():
    found = recommend(base("checkpoint.write_time=2h", "workload.steps=200000"), replications=20)
    assert "too long for a formula of first order" in found.why_different
    assert "the exact optimum" in found.why_different


def test_a_writer_that_must_keep_up_is_why_an_async_interval_is_longer():
    """sqrt(2 w M) = 3 min, but a write takes 20: the corner at 20 min is the best, and is hit exactly."""
    found = recommend(
        base(*ASYNC, "checkpoint.write_time=20min", "failures.classes.bug.mtbf=2h"), replications=40
    )
    assert found.closed_form_s["async"] == 1200.0
    assert found.closed_form_s["exact"] is None
    assert found.interval_s == pytest.approx(1200.0, rel=0.02) and found.interval_s >= 1200.0
    assert "background write takes 20m" in found.why_different


def test_a_short_async_write_leaves_the_first_order_optimum():
    found = recommend(
        base(*ASYNC, "checkpoint.write_time=1min", "checkpoint.stall_time=20s"), replications=60
    )
    young = found.closed_form_s["async"]
    assert found.flat_region_s[0] < young < found.flat_region_s[1]


def test_a_local_copy_is_advised_on_like_a_blocking_write_as_long():
    local = "checkpoint={mode: local, interval: 200 steps, stall_time: 30s, survives: all}"
    one, other = recommend(base(local), replications=4), recommend(base(), replications=4)
    assert (one.interval_steps, one.flat_region_s, one.best.goodput) == (
        other.interval_steps, other.flat_region_s, other.best.goodput,
    )  # fmt: skip
    assert one.closed_form_s == other.closed_form_s and one.closed_form_s["exact"] is not None


def test_a_short_job_is_cut_evenly():
    found = recommend(
        base("workload.steps=6000", "checkpoint.write_time=600s", "failures.classes.bug.mtbf=3h")
    )
    parts = round(6000 / found.interval_steps)
    assert parts <= 3
    assert found.interval_steps == -(-6000 // parts)


def test_checkpoints_published_late_call_for_a_shorter_interval():
    late = recommend(base("checkpoint.publish=next_save"), replications=20)
    assert late.interval_s < 0.75 * analytic.exact_interval(30.0, 6 * 3600.0)
    assert "usable only at the next save" in late.why_different


# --- nothing to advise


@pytest.mark.parametrize(("overrides", "path"), [
    (["checkpoint.mode=none"], "checkpoint.mode"),
    (["checkpoint.mode=ideal"], "checkpoint.mode"),
    (["checkpoint={mode: tiered, tiers: [{every: 200 steps, write_time: 30s, survives: all}]}"], "checkpoint.mode"),
    (["failures.classes=[]"], "failures"),
    (["failures.classes=[]", "recovery={layers: [slurm], slurm: {time_limit: 8h}}"], "failures"),
    (["failures.classes.bug.rate=0"], "failures"),
    (["failures.classes=[{name: slow, mtbf: 1h, scope: node, symptom: slowdown, "
      "slowdown: {factor: 2, duration: 1h}}]"], "failures"),
    (["checkpoint.write_time=0"], "checkpoint.write_time"),
    (["cluster.retire={after: 3}"], "cluster.retire"),
])  # fmt: skip
def test_nothing_to_optimise_is_an_input_error(overrides, path):
    with pytest.raises(ScenarioError) as caught:
        recommend(base(*overrides))
    assert [problem.path for problem in caught.value.problems] == [path]
    assert "(got" in caught.value.problems[0].message


def test_a_restart_no_interval_can_help_is_refused_with_its_estimate():
    with pytest.raises(ScenarioError, match=r"attempts per restart, exp\(R/M\)"):
        recommend(base("recovery.fixed.restart=10d"))


# --- schedules


SCHEDULE = (
    "failures={schedule: [{step: 900, rank: 1, symptom: exception}, {step: 1700, rank: 2, symptom: hang}, "
    "{step: 2900, rank: 0, symptom: exception}]}"
)


@pytest.fixture(scope="module")
def scheduled():
    return recommend(base(SCHEDULE, "workload.steps=4000", "checkpoint.write_time=100s"))


def test_a_schedule_gets_a_stand_in_and_says_so(scheduled):
    assert "3 faults and no rate" in scheduled.stand_in
    wall = simulate(scheduled.scenario, replications=1).runs[0].wall_s
    assert scheduled.estimate.mtbf_s == pytest.approx(wall / 3)


def test_hindsight_is_no_worse_than_any_interval(scheduled):
    """Faults at 900, 1700 and 2900: every interval of 1 to 4000 steps tried by hand on one run each."""

    def goodput(steps):
        return simulate(with_interval(scheduled.scenario, steps), replications=1).metrics["goodput"].mean

    best = max(goodput(steps) for steps in range(100, 4001, 7))
    assert scheduled.hindsight.goodput >= best - 1e-9
    assert goodput(scheduled.hindsight.interval_steps) == pytest.approx(scheduled.hindsight.goodput)
    assert goodput(scheduled.interval_steps) == pytest.approx(scheduled.hindsight.goodput_of_recommended)
    assert goodput(200) == pytest.approx(scheduled.hindsight.goodput_of_current)


def test_a_random_class_needs_no_stand_in(advice):
    assert advice.stand_in is None and advice.hindsight is None
    assert advice.to_json()["hindsight_interval_steps"] is None


# --- the search and its curve


def test_the_curve_is_exact_for_the_renewal_formula():
    mtbf, write = 10_000.0, 2_000.0
    tau = [1500.0 * 2 ** (0.5 * i) for i in range(7)]
    curve = smooth.fit(tau, [1.0 / analytic.exact_goodput(t, write, mtbf, 500.0) for t in tau], mtbf)
    for t in (1700.0, 5000.0, 11_000.0):
        assert curve.goodput(t) == pytest.approx(analytic.exact_goodput(t, write, mtbf, 500.0), rel=1e-9)


def test_a_curve_needs_four_points():
    with pytest.raises(ValueError, match="at least 4 points"):
        smooth.fit([1.0, 2.0, 3.0], [1.1, 1.1, 1.1], 10.0)


@pytest.mark.parametrize("start", [100.0, 60_000.0])
def test_the_search_finds_the_same_place_from_anywhere(start):
    def searched():
        return Search(base(), seed=1, replications=20, fixed=True, mtbf_s=6 * 3600.0)

    exact = analytic.exact_goodput(analytic.exact_interval(30.0, 6 * 3600.0), 30.0, 6 * 3600.0, 300.0)
    found = searched().best(start)
    assert exact - analytic.exact_goodput(found, 30.0, 6 * 3600.0, 300.0) < 0.001


@pytest.mark.parametrize("total", [1, 2, 3, 7, 100, 1000, 100_000])
def test_places_divide_a_short_job_evenly_and_lie_within_it(total):
    places = Search(base(f"workload.steps={total}"), seed=1, replications=1, fixed=True, mtbf_s=1e5)
    for steps in (0.2, 1, 3, total / 3, total / 2, total, 10 * total):
        place = places.place(steps)
        assert 1 <= place <= total
        parts = -(-total // place)
        assert parts > 64 or place == -(-total // parts)
