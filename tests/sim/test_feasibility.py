"""Hopeless scenarios are refused before they run, with the estimate; estimates agree with what runs then hold."""

import math

import pytest

from sim import ScenarioError, feasibility, load_scenario, params, simulate
from sim.study import Study

BASE = {
    "cluster": {
        "nodes": 16,
        "gpus_per_node": 8,
        "spares": {"hot": 1},
        "repair": {"stages": [{"time": "5h"}]},
    },
    "workload": {"step_time": 1, "steps": 500_000, "process_start": "20s", "init": "20s", "warmup": "10s"},
    "checkpoint": {"mode": "sync", "interval": "1000 steps", "write_time": "60s", "load_time": "20s"},
    "failures": {
        "classes": [
            {"name": "bug", "mtbf": "6h", "per": "job", "scope": "job", "symptom": "exception"},
            {"name": "gpu", "mtbf": "30d", "scope": "node", "symptom": "gpu_error", "repair": True},
            {"name": "hang", "mtbf": "20h", "per": "job", "scope": "rank", "symptom": "hang"},
        ]
    },
    "recovery": {
        "layers": ["in_job", "node_replacement"],
        "nccl_timeout": "5min",
        "in_job": {"max_no_progress_cycles": 1_000_000},
    },
}


NEAR = "{every: 500 steps, write_time: 10s, load_time: 10s, survives: [exception, hang, process_exit]}"
FAR = "{every: 10000 steps, stall_time: 10s, write_time: 5min, load_time: 2min, survives: all}"


def scenario(*overrides):
    return load_scenario(BASE, overrides)


def estimate(*overrides):
    s = scenario(*overrides)
    return feasibility.estimate(s, params.compile_scenario(s))


def refused(*overrides):
    with pytest.raises(ScenarioError) as caught:
        simulate(scenario(*overrides), replications=1)
    (problem,) = caught.value.problems
    return problem


def test_too_many_attempts_per_interval_are_refused_with_the_estimate():
    problem = refused("failures.classes.bug.mtbf=100s")
    assert problem.path == "limits.max_attempts"
    mtbf = 1 / (1 / 100 + 16 / (30 * 86400) + 1 / 72000)
    assert f"{math.exp(1060 / mtbf):.3g} attempts per checkpoint interval" in problem.message
    assert "(got 10000)" in problem.message


def test_too_many_attempts_per_restart_are_refused():
    problem = refused("recovery.layers=[fixed]", "recovery.fixed.restart=1d", "failures.classes.bug.mtbf=2h")
    assert problem.path == "limits.max_attempts"
    assert "attempts per restart, exp(R/M)" in problem.message


def test_a_stated_limit_is_the_limit():
    assert refused("limits.max_attempts=1.05").path == "limits.max_attempts"
    assert estimate("failures.classes.bug.mtbf=100s").attempts_per_segment < 1e6
    Study(scenario("failures.classes.bug.mtbf=100s", "limits.max_attempts=1e6"))  # refused no longer


def test_too_many_faults_are_refused():
    problem = refused("limits.max_faults=10")
    assert problem.path == "limits.max_faults"
    assert "faults in" in problem.message


def test_too_many_events_are_refused():
    problem = refused("workload.steps=1000000000", "checkpoint.interval=1 steps", "checkpoint.write_time=1ms")
    assert problem.path == "limits.max_events"
    assert "events in" in problem.message


def test_a_run_that_outgrows_its_estimate_is_refused_in_the_same_words(monkeypatch):
    s = scenario("limits.max_events=50")
    monkeypatch.setattr(feasibility, "refusals", lambda *_: [])
    with pytest.raises(
        ScenarioError,
        match=r"limits.max_events: the run holds more than 50 events .*, in replication 0 \(got 50\)",
    ):
        simulate(s, replications=1)


def test_lives_drawn_one_by_one_are_bounded():
    law = "failures.classes.gpu.law={weibull: {shape: 0.8}}"
    problem = refused(
        "cluster.nodes=1000000", "failures.classes.gpu.per=gpu", law, "failures.classes.gpu.mtbf=1000000d"
    )
    assert problem.path == "failures.classes"
    assert "one by one" in problem.message


def test_a_job_that_its_first_fault_ends_is_run_not_refused():
    result = simulate(scenario("recovery.layers=[]", "failures.classes.bug.mtbf=50s"), replications=3)
    assert result.completed_fraction == 0.0


def test_a_restart_that_its_own_timeout_ends_is_run_to_its_limit():
    """Start-up longer than the start timeout: no progress for ever, and the run says so."""
    endless = [
        "recovery.in_job.initial_heartbeat_timeout=30s",
        "recovery.layers=[in_job]",
        "limits.max_wall=2d",
    ]
    result = simulate(
        scenario(*endless, "workload.steps=100000", "failures.classes.gpu.mtbf=10000d"), replications=2
    )
    assert result.censored_fraction == 1.0


def test_a_schedule_alone_is_feasible():
    faults = "[{step: 100, rank: 0, symptom: exception}, {step: 7000, rank: 5, symptom: exception}]"
    found = estimate("failures.classes=[]", f"failures.schedule={faults}")
    assert found.mtbf_s == math.inf
    assert found.attempts_per_segment == found.attempts_per_incident == 1.0
    assert found.faults == 2


def test_no_faults_no_estimate_of_them():
    found = estimate("failures.classes=[]")
    assert (found.mtbf_s, found.faults) == (math.inf, 0.0)
    assert found.wall_s == 500_000 + 500 * 60


@pytest.mark.parametrize("overrides", [
    [],
    ["checkpoint.mode=async", "checkpoint.stall_time=5s"],
    ["failures.clock=running", "failures.classes.bug.mtbf=1h"],
    ["failures.classes.bug.mtbf=30min"],
    ["failures.classes.gpu.law={weibull: {shape: 0.6}}", "failures.classes.bug.mtbf=10d"],
    ["failures.classes.gpu.law={weibull: {shape: 3}}", "failures.classes.bug.mtbf=10d"],
    ["checkpoint.mode=ideal"],
    ["recovery.layers=[fixed]", "recovery.fixed={detect: 5min, restart: 1h}"],
    ["checkpoint={mode: local, interval: 1000 steps, stall_time: 5s, load_time: 5s, survives: all}"],
    [f"checkpoint={{mode: tiered, tiers: [{NEAR}, {FAR}]}}", "failures.classes.gpu.mtbf=5d"],
    ["checkpoint.load_failure=0.3", "checkpoint.keep=12"],
    ["recovery.layers=[in_job, slurm]", "recovery.slurm={queue_wait: 1h, time_limit: 8h, prolog: 2min}"],
    ["recovery.layers=[in_job, slurm]", "recovery.slurm={time_limit: 4h}", "checkpoint.save_before=2min"],
    ["cluster.maintenance={every: 12h, duration: 1h}"],
    ["checkpoint.load_failure=0.1", "checkpoint.keep=2", "failures.classes.bug.mtbf=2d"],
])  # fmt: skip
def test_estimates_are_near_what_runs_hold(overrides):
    """A quarter is near enough for what they are for."""
    s = scenario(*overrides)
    study = Study(s)
    study.grow(5)
    found = study.estimate
    assert found.wall_s == pytest.approx(sum(run.wall_s for run in study.runs) / 5, rel=0.1)
    assert found.faults == pytest.approx(study.faults / 5, rel=0.25)
    assert found.events == pytest.approx(study.events / 5, rel=0.25)


def test_what_no_tier_survives_has_to_spare_the_whole_job():
    """A copy that goes with its node: one node in 16 is lost every 1.9 days, and the job takes 5.8."""
    local = "checkpoint={mode: local, interval: 1000 steps, stall_time: 5s}"
    lost = "failures.classes.gpu={name: gpu, mtbf: 2d, scope: node, symptom: node_loss, repair: true}"
    problem = refused(local, lost)
    assert problem.path == "limits.max_attempts"
    attempts = float(problem.message.split("need ")[1].split()[0])
    assert attempts == pytest.approx(math.exp(500_000 * 16 / (2 * 86400)), rel=0.7)  # other faults lengthen the job
    Study(scenario(local.replace("stall_time: 5s", "stall_time: 5s, survives: all"), lost))  # refused no longer


def test_new_nodes_that_cannot_fail_yet_do_not_count():
    """All lives last 100 days and the job a week: no fault, though the long-run rate would give 112."""
    found = estimate("cluster.nodes=1000", "failures.classes.gpu={name: gpu, mtbf: 100d, scope: node, law: constant, "
                     "symptom: exception}", "failures.classes.bug.mtbf=10d")  # fmt: skip
    assert found.faults < 10
