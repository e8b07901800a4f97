"""Comparisons: paired on the same faults, so that differences are known better than the designs themselves."""

import json

import pytest

from sim import ScenarioError, compare, load_scenario
from sim.compare import names_of, variants

A = {
    "name": "a",
    "cluster": {"nodes": 2, "gpus_per_node": 4},
    "workload": {"step_time": 1, "steps": 50_000},
    "checkpoint": {"mode": "sync", "interval": "500 steps", "write_time": "20s"},
    "failures": {
        "classes": [{"name": "bug", "mtbf": "3h", "per": "job", "scope": "job", "symptom": "exception"}]
    },
    "recovery": {"layers": ["fixed"], "fixed": {"restart": "5min"}},
    "economics": {"usd_per_gpu_hour": 2},
}


def test_a_scenario_against_itself_differs_by_nothing():
    found = compare([A, A], replications=5)
    (contrast,) = found.contrasts
    for difference in contrast.differences.values():
        assert difference.mean == 0.0 and difference.ci95 == (0.0, 0.0)
    assert contrast.better == 0.5  # all pairs tie
    assert contrast.variance_saved == 1.0


def test_pairing_makes_the_difference_sharper_than_the_designs():
    found = compare(variants(A, [], ["recovery.fixed.restart=4min"]), replications=20)
    (contrast,) = found.contrasts
    low, high = contrast.differences["goodput"].ci95
    alone = found.results[0].metrics["goodput"].ci95
    assert low > 0.0 and contrast.better == 1.0
    assert high - low < 0.4 * (alone[1] - alone[0])
    assert contrast.variance_saved > 0.9


def test_the_difference_is_that_of_the_pooled_metrics():
    found = compare(variants(A, [], ["checkpoint.interval=2000 steps"]), replications=10)
    (contrast,) = found.contrasts
    base, other = found.results
    for name in ("goodput", "wall_time_s", "gpu_hours", "interruptions", "usd"):
        assert contrast.differences[name].mean == pytest.approx(
            other.metrics[name].mean - base.metrics[name].mean
        )


def test_an_added_class_leaves_the_others_faults_alone():
    """Different fault classes are still paired by seed: what both have strikes both."""
    more = load_scenario(A)
    classes = [*A["failures"]["classes"],
               {"name": "rare", "mtbf": "1000d", "per": "job", "scope": "job", "symptom": "exception"}]  # fmt: skip
    other = load_scenario(A | {"name": "b", "failures": {"classes": classes}})
    found = compare([more, other], replications=10)
    assert found.contrasts[0].differences["interruptions"].mean == pytest.approx(0.0, abs=0.11)
    assert found.contrasts[0].variance_saved > 0.5


def test_runs_that_do_not_complete_count_in_goodput_but_give_no_wall_time():
    found = compare(variants(A, [], ["recovery.layers=[]"]), replications=5)
    (contrast,) = found.contrasts
    assert "wall_time_s" not in contrast.differences
    assert found.results[1].completed_fraction == 0.0
    assert contrast.differences["goodput"].runs == 5
    json.dumps(found.to_json(), allow_nan=False)


def test_each_scenario_is_paid_at_its_own_price_and_none_without():
    dear = compare(variants(A, [], ["economics.usd_per_gpu_hour=4"]), replications=3)
    usd = dear.contrasts[0].differences["usd"].mean
    assert usd == pytest.approx(dear.results[0].metrics["usd"].mean)
    free = compare(variants(A, [], ["economics.usd_per_gpu_hour=null"]), replications=3)
    assert "usd" not in free.contrasts[0].differences


def test_several_scenarios_are_compared_with_the_first():
    found = compare([A, load_scenario(A, ["name=b"]), load_scenario(A, ["name=c"])], replications=2)
    assert [(c.name, c.baseline) for c in found.contrasts] == [("b", "a"), ("c", "a")]


def test_auto_stops_when_the_difference_is_known():
    found = compare(variants(A, [], ["recovery.fixed.restart=4min"]), replications="auto")
    low, high = found.contrasts[0].differences["goodput"].ci95
    assert high - low <= 0.004
    alone = found.results[0].metrics["goodput"].ci95
    assert alone[1] - alone[0] > 0.008  # each design by itself would need several times the runs


def test_the_json_carries_provenance_of_both():
    record = compare(variants(A, [], ["checkpoint.interval=2000 steps"]), replications=2).to_json()
    assert len(set(record["provenance"]["scenario_hash"])) == 2
    assert record["version"] == record["provenance"]["version"]
    assert [s["scenario"] for s in record["scenarios"]] == [
        "a as it is",
        "a with checkpoint.interval=2000 steps",
    ]
    assert {"mean", "ci95"} <= set(record["comparisons"][0]["differences"]["goodput"])


def test_progress_runs_over_all_scenarios():
    told = []
    compare([A, A], replications=2, progress=lambda *x: told.append(x))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("sources", [[], [A], "bloom-176b"])
def test_fewer_than_two_scenarios_are_an_input_error(sources):
    with pytest.raises(ScenarioError, match="scenarios: must be 2 to 20 to compare"):
        compare(sources)


def test_the_scenario_that_cannot_be_run_is_named():
    bad = load_scenario(A, ["name=bad", "cluster.retire={after: 3}"])
    with pytest.raises(ScenarioError) as caught:
        compare([A, bad])
    assert caught.value.problems[0].path == "bad: cluster.retire"


def test_equal_names_are_numbered():
    assert names_of([load_scenario(A), load_scenario(A)]) == ["a (1)", "a (2)"]
