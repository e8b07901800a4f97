"""Metrics from ledgers worked out by hand."""

from __future__ import annotations

import json
import math

import pytest

from sim.ledger import Incident, RunLedger, account
from sim.metrics import (
    DEFINITIONS,
    Metric,
    Prices,
    gpu_hours_by_category,
    interruptions_by_class,
    ledger_fractions,
    metrics,
    paired_difference,
    per_run,
)
from tests.sim.event_logs import Log
from tests.sim.random_logs import random_log


def run(faulty: bool = True, layer: str = "in_process") -> RunLedger:
    """100 steps of 1 s in 2 nodes of 8; a save of 10 s after 50; with `faulty`, 30 s lost and a 14 s incident."""
    log = Log(steps=100, spares={"hot": 1, "cold": 1})
    log(0, "job_start").phase(0, 4, "process_start").phase(4, 10, "init")(10, "resumed", step=0)
    log.steps(60, 1, 50).save(60, 70, 1, 50)
    t = 70.0
    if faulty:
        log.steps(100, 51, 80).fault(100, symptom="hang").detected(104)
        log.layer(104, layer).phase(104, 107, "abort", layer).layer_end(107, layer, "escalated")
        log.layer(107, layer, 2).phase(107, 114, "init", layer, 2)(114, "resumed", step=50)
        log.layer_end(114, layer, attempt=2)
        t = 114.0
    log.steps(t + 50, 51, 100).end(t + 50, step=100)
    return account(log)


def stuck() -> RunLedger:
    """A job that fails in its first incident."""
    log = Log(steps=100)(0, "job_start").phase(0, 10, "init")(10, "resumed", step=0).steps(20, 1, 10)
    log.fault(20, id=1).detected(30, 1).layer(30, "in_job").layer_end(30, "in_job", "failed")
    return account(log.end(30, "failed", 10))


def test_one_run_by_hand() -> None:
    values = {name: metric.mean for name, metric in metrics([run()], Prices(2.0)).items()}
    gpu_hours = 164 * (16 + 8) / 3600
    assert values == pytest.approx(
        {
            "goodput": 100 / 164,
            "wall_time_s": 164,
            "finish_s": 164,
            "training_goodput_aws": 100 / 160,
            "training_goodput_aws_as_coded": (164 - 10 - 10) / 160,
            "infra_goodput_aws": (160 - 14) / 160,
            "save_efficiency_aws": 154 / 164,
            "ettr": 100 / 164,
            "availability": 140 / 164,
            "interruptions": 1,
            "mtti_s": 164,
            "recovery_event_s": 7,
            "incident_s": 14,
            "gpu_hours": gpu_hours,
            "completed_fraction": 1,
            "censored_fraction": 0,
            "usd": 2 * gpu_hours,
            "usd_per_productive_gpu_hour": 2 * 164 * 24 / (100 * 16),
        }
    )
    assert metrics([run(layer="in_job")])["training_goodput_aws_as_coded"].mean == (50 + 50) / 160


def test_what_happens_before_the_training_function_is_entered_is_outside_the_aws_clock() -> None:
    log = Log(steps=10)(0, "job_start").phase(0, 4, "process_start", cut=True).fault(4).detected(5)
    log.layer(5, "in_job").phase(5, 9, "process_start", "in_job").phase(9, 10, "init", "in_job")
    log(10, "resumed", step=0).layer_end(10, "in_job").steps(20, 1, 10).end(20, step=10)
    values = metrics([account(log)])
    assert values["infra_goodput_aws"].mean == pytest.approx(10 / 11)  # only init lies within
    assert values["training_goodput_aws"].mean == pytest.approx(10 / 11)


def test_the_last_drain_is_not_inside_a_save_call() -> None:
    log = Log(steps=10)(0, "job_start")(0, "resumed", step=0).steps(10, 1, 10)
    log(10, "save_begin", id=1, step=10, tier=None)(12, "save_staged", id=1)
    log(12, "save_begin", id=1, drain=True)(20, "save_durable", id=1, step=10, tier=None).end(20, step=10)
    values = metrics([account(log)])
    assert values["save_efficiency_aws"].mean == 18 / 20
    assert values["availability"].mean == 1


def test_cold_spares_cost_only_where_they_are_billed() -> None:
    billed = metrics([run()], Prices(2.0, bill_cold=True))
    assert billed["usd"].mean == pytest.approx(2 * 164 * 32 / 3600)
    assert billed["gpu_hours"].mean == pytest.approx(164 * 24 / 3600)
    assert "usd" not in metrics([run()])


def test_means_are_total_over_total_with_the_mean_of_runs_beside() -> None:
    pooled = metrics([run(), run(faulty=False)])
    assert pooled["goodput"].mean == 200 / (164 + 120)
    assert pooled["goodput"].mean_of_runs == (100 / 164 + 100 / 120) / 2
    assert pooled["mtti_s"].mean == 284 and pooled["mtti_s"].mean_of_runs == math.inf
    assert pooled["goodput"].ci95 is None  # two runs say nothing of their spread
    pooled = metrics([run(), run(), run(faulty=False)])
    low, high = pooled["goodput"].ci95 or (0, 0)
    assert 0 <= low < pooled["goodput"].mean < high <= 1


def test_incidents_are_pooled_and_the_unresolved_are_counted() -> None:
    pooled = metrics([run(), run(), stuck()])
    incident, event = pooled["incident_s"], pooled["recovery_event_s"]
    assert (incident.mean, incident.count, incident.unresolved) == (14, 2, 1)
    assert (event.mean, event.count, event.unresolved) == (7, 4, 1)
    assert (incident.p10, incident.p99) == (14, 14)
    assert incident.mean_of_runs == 14
    none = metrics([run(faulty=False)])["incident_s"]
    assert math.isnan(none.mean) and none.as_json()["mean"] is None and none.count == 0


def test_jobs_that_fail_stay_in_every_ratio_and_make_quantiles_infinite() -> None:
    pooled = metrics([run(), run(), run(), stuck()])
    assert pooled["goodput"].mean == 300 / (3 * 164 + 30)
    finish = pooled["finish_s"]
    assert (finish.mean, finish.p50, finish.p90) == (math.inf, 164, math.inf)
    assert pooled["completed_fraction"].mean == 0.75
    record = finish.as_json()
    assert (record["mean"], record["p50"], record["p90"], record["ci95"]) == (None, 164, None, [None, None])


def test_every_metric_is_json_with_its_definition_and_source() -> None:
    for name, metric in metrics([run(), stuck()], Prices(1.0)).items():
        record = json.loads(json.dumps(metric.as_json(), allow_nan=False))
        assert record["definition"] == DEFINITIONS[name][0] and record["source"] == DEFINITIONS[name][1]
        assert set(record) >= {"mean", "mean_of_runs", "ci95", "p10", "p50", "p90", "p99"}
        assert isinstance(metric, Metric) and metric.runs == 2


def test_shares_by_category_and_class() -> None:
    runs = [run(), run(faulty=False)]
    assert sum(ledger_fractions(runs).values()) == pytest.approx(1)
    assert ledger_fractions(runs)["rework"] == 30 / 284
    hours = gpu_hours_by_category(runs)
    assert sum(hours.values()) == pytest.approx(metrics(runs)["gpu_hours"].mean)
    assert hours["spare_idle"] == pytest.approx(142 * 8 / 3600)
    assert interruptions_by_class(runs) == {"software": 0.5}


def test_paired_differences() -> None:
    first, second = [run(faulty=False)] * 3, [run(), run(), run(faulty=False)]
    difference = paired_difference("goodput", first, second)
    assert difference.mean == pytest.approx(100 / 120 - 300 / 448)
    assert difference.share_higher == pytest.approx(2.5 / 3)
    same = paired_difference("goodput", second, second)
    assert (same.mean, same.ci95, same.share_higher) == (0, (0, 0), 0.5)
    with pytest.raises(ValueError, match="as many runs"):
        paired_difference("goodput", first, second[:2])


def test_values_of_each_run() -> None:
    runs = [run(), run(faulty=False)]
    assert per_run("goodput", runs) == [100 / 164, 100 / 120]
    assert math.isnan(per_run("incident_s", runs)[1])
    with pytest.raises(KeyError):
        per_run("luck", runs)
    with pytest.raises(ValueError, match="at least one run"):
        metrics([])


def test_a_ledger_made_elsewhere_needs_only_its_sums() -> None:
    """Another driver may build ledgers without an event log."""
    seconds = {name: 0.0 for name in run().seconds} | {"productive": 90.0, "rework": 10.0}
    ledger = RunLedger(
        100.0, seconds, {"productive": 720.0, "rework": 80.0, "spare_idle": 0.0}, nominal_step_s=1.0, kept_steps=90,
        faults_by_class={"gpu": 2}, incidents=(Incident(1.0, 3.0, 1, 5, {}, (), "fixed"),), downtime_s=2.0,
    )  # fmt: skip
    values = metrics([ledger])
    assert values["goodput"].mean == 0.9 and values["incident_s"].mean == 2 and values["mtti_s"].mean == 50


def test_metrics_of_random_runs_keep_their_bounds() -> None:
    runs = [account(random_log(seed)) for seed in range(40)]
    pooled = metrics(runs, Prices(3.0))
    for name in ("goodput", "infra_goodput_aws", "ettr", "availability", "training_goodput_aws_as_coded"):
        metric = pooled[name]
        assert 0 <= metric.p10 <= metric.p50 <= metric.p90 <= metric.p99 <= 1
        assert metric.ci95 and metric.ci95[0] <= metric.mean <= metric.ci95[1]
    assert pooled["goodput"].mean <= pooled["ettr"].mean <= pooled["availability"].mean
