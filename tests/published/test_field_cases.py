"""What people in the field ran into (facts/field_cases.md, first table): each case is a scenario with its right answer.

Scenarios are in tests/published/scenarios, each number with its origin: [P] stated by the case, [I] inferred or free.
All answers are *predicted*: worked out from the stated numbers, none of which was chosen to reach them. None is a
validation: no case states both its inputs and an outcome measured apart from them. BLOOM is in test_bloom.py.
"""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sim import analytic
from sim.ledger import account
from sim.scenario import ScenarioError, load_scenario
from sim.study import simulate
from sim.warn import warnings_for
from tests.published.chance import FALSE_ALARM, assert_hits
from tests.sim.event_logs import Log

SCENARIOS = Path(__file__).parent / "scenarios"
HOUR, MINUTE = 3600.0, 60.0


def case(name, *changes):
    return load_scenario(SCENARIOS / f"{name}.yaml", changes)


def one_run(name, *changes):
    """The one run of a case without chance."""
    return simulate(case(name, *changes), replications=1).runs[0]


def fires(rule, scenario):
    return [w for w in warnings_for(scenario) if w.rule == rule]


def faults_at(*steps):
    listed = ", ".join(f"{{step: {step}, rank: 0, symptom: process_exit}}" for step in steps)
    return f"failures.schedule=[{listed}]"


# --- saves


@pytest.mark.parametrize("step_s", [2.0, 30.0, 60.0, 64.0, 90.0])
def test_async_saves_that_wait(step_s):
    """Torchtitan, NeMo AutoModel: write 64 s, a save every step: the effective stall is write - interval."""
    run = one_run("async-every-step", f"workload.step_time={step_s}")
    stall_s = (run.seconds["checkpoint_stall"] - run.drain_s) / (run.saves - 1)  # the first finds the writer free
    assert stall_s == pytest.approx(max(0.0, 64.0 - step_s))
    assert stall_s == pytest.approx(analytic.async_effective_stall(64.0, step_s))
    assert bool(fires("async-stalls", case("async-every-step", f"workload.step_time={step_s}"))) == (step_s < 64.0)


def test_the_staging_comes_on_top_of_the_wait():
    run = one_run("async-every-step", "checkpoint.stall_time=3s")
    assert (run.seconds["checkpoint_stall"] - run.drain_s - 3.0) / (run.saves - 1) == pytest.approx(62.0 + 3.0)


PLACES = (5, 15, 25, 35, 45, 55, 65, 75, 85, 95)  # evenly over an interval of 100 steps


@pytest.mark.parametrize(("publish", "intervals"), [("write_end", 0.5), ("next_save", 1.5)])
def test_async_saves_published_late(publish, intervals):
    """NeMo AutoModel#3261: a checkpoint usable only at the next save makes the mean rework 1.5 intervals, not .5."""
    faults = faults_at(*(400 * (i + 1) + place for i, place in enumerate(PLACES)))
    run = one_run("published-late", f"checkpoint.publish={publish}", faults)
    assert [incident.steps_lost for incident in run.incidents] == [100 * (intervals - 0.5) + x for x in PLACES]
    assert run.seconds["rework"] == pytest.approx(100 * intervals * len(PLACES))
    assert bool(fires("published-late", case("published-late", f"checkpoint.publish={publish}"))) == (intervals > 1)


def test_staging_slows_the_next_steps():
    """NeMo AutoModel#3131: .5 s a step, 5 s while a write is in flight: of its 30 s the job loses nine tenths."""
    run = one_run("staging-slows-steps")
    writes_in_the_loop = 9  # the tenth write is drained after the last step
    assert run.seconds["slowdown"] == pytest.approx(writes_in_the_loop * 30.0 * (1 - 0.5 / 5.0))
    assert run.wall_s == pytest.approx(1000 * 0.5 + writes_in_the_loop * 27.0 + 30.0)
    no_worse = one_run("staging-slows-steps", "checkpoint.async_slowdown=null")
    assert no_worse.wall_s == pytest.approx(1000 * 0.5 + 30.0)


@pytest.mark.parametrize(
    ("symptom", "mean_steps", "tier"), [("process_exit", 5.0, "near"), ("node_loss", 50.0, "far")]
)
def test_two_tiers_lose_half_the_interval_of_the_one_that_survives(symptom, mean_steps, tier):
    """Near every 10 steps, far every 100: a fault loses 5 steps on average, the loss of a node 50."""
    places = [400 * (i + 1) + place for i, place in enumerate(PLACES)]
    listed = ", ".join(f"{{step: {step}, rank: 0, symptom: {symptom}, scope: node}}" for step in places)
    run = one_run("two-tiers", f"failures.schedule=[{listed}]")
    every = 10 if tier == "near" else 100
    assert [incident.steps_lost for incident in run.incidents] == [step % every for step in places]
    assert run.seconds["rework"] / 10 == pytest.approx(mean_steps)
    assert run.saves - run.failed_saves == run.durable_saves


def test_of_two_saves_due_at_once_only_the_far_one_is_made():
    """Megatron-LM skips the non-persistent save then: 6000 steps hold 60 far saves, and 540 near ones beside them."""
    run = one_run("two-tiers")
    assert run.durable_saves == 600


# --- hangs


def hang_gpu_hours(run):
    return run.gpu_seconds["detect"] / HOUR


@pytest.mark.parametrize(("timeout", "gpu_hours"), [("10min", 171), ("120min", 2048)])
def test_cost_of_a_hang(timeout, gpu_hours):
    """1,024 GPUs: 171 against 2,048 GPU-h a hang [calc]."""
    run = one_run("hang-1024-gpus", f"recovery.nccl_timeout={timeout}")
    assert round(hang_gpu_hours(run)) == gpu_hours
    assert run.interruptions == 1 and run.completed


def test_the_other_side_of_a_short_timeout():
    """False alarms by slow steps and long saves are told at 10 min and not at 120 min; the late find only there."""
    slow_steps = "workload.step_time={lognormal: {median: 10s, mean: 60s}}"  # one in a hundred takes 14 min
    long_saves = "checkpoint.write_time=11min"
    for rule, change in (("step-longer-than-timeout", slow_steps), ("save-longer-than-nccl", long_saves)):
        assert fires(rule, case("hang-1024-gpus", change))
        assert not fires(rule, case("hang-1024-gpus", change, "recovery.nccl_timeout=120min"))
        assert not fires(rule, case("hang-1024-gpus"))
    (late,) = fires("hang-found-late", case("hang-1024-gpus", "recovery.nccl_timeout=120min"))
    assert "each hang costs 2,048 GPU-hours" in late.message
    assert not fires("hang-found-late", case("hang-1024-gpus"))


def test_a_hang_that_nothing_detects_lasts_until_a_person_comes():
    """Goodfire spd#552: 128 GPUs idle 9 h, 1,152 GPU-h; a 10 min watchdog would have made it 21."""
    run = one_run("hang-undetected")
    assert hang_gpu_hours(run) == pytest.approx(128 * 9.0)
    assert run.incidents[0].by_phase["detect"] == 9 * HOUR
    assert fires("hang-undetected", case("hang-undetected"))
    watched = one_run("hang-undetected", "recovery.nccl_timeout=10min", "recovery.in_job.monitor_interval=1us")
    assert hang_gpu_hours(watched) == pytest.approx(128 / 6.0)


def test_bloom_losses_as_a_law_of_human_response(seed):
    """BLOOM: losses of 18, 6 and 11 h [P] as the law of human_response: each as often as the others (1e-6 in all)."""
    losses = "recovery.human_response={empirical: [18h, 6h, 11h]}"
    result = simulate(case("hang-undetected", losses, "cluster.nodes=48"), replications=300, seed=seed)
    hours = Counter(run.seconds["detect"] / HOUR for run in result.runs)
    assert set(hours) == {18.0, 6.0, 11.0}
    for count in hours.values():
        assert_hits(count, 300, 1 / 3, tests=3)


def test_a_hang_without_any_detector_is_refused_not_guessed():
    with pytest.raises(ScenarioError) as refused:
        simulate(case("hang-undetected", "recovery.human_response=null"), replications=1)
    (problem,) = refused.value.problems
    assert problem.path == "failures.schedule.0.symptom" and "recovery.human_response" in problem.message


# --- restarts


def test_time_of_failure():
    """Marin#8506: hourly saves, a fault 54 min in: 54 min of rework and no progress."""
    run = one_run("fault-before-save")
    (incident,) = run.incidents
    assert run.seconds["rework"] == 54 * MINUTE and incident.steps_lost == 54
    ends = one_run("fault-before-save", "recovery.layers=[]")  # the job ends with that fault
    assert ends.failed and ends.kept_steps == 0 and ends.seconds["productive"] == 0.0


@pytest.mark.parametrize("mtbf_h", [0.5, 3.0])
def test_probability_of_a_fault_before_the_first_save(mtbf_h, seed):
    """1 - exp(-60 min/M); exact binomial law, 1e-6."""
    p = analytic.p_fault_before(60 * MINUTE, mtbf_h * HOUR)
    assert p == pytest.approx(1.0 - math.exp(-1.0 / mtbf_h))
    fault = f"{{name: any, mtbf: {mtbf_h}h, per: job, scope: job, symptom: process_exit}}"
    scenario = case("fault-before-save", "failures.schedule=[]", f"failures.classes=[{fault}]")
    result = simulate(scenario, replications=1000, seed=seed)
    assert_hits(sum(run.interruptions > 0 for run in result.runs), 1000, p)
    assert bool(fires("save-after-mtbf", case("fault-before-save", f"failures.classes=[{fault}]", LONGER))) == (p > 0.5)


LONGER = "workload.steps=600"  # a save before the end, for the rule to speak of


@pytest.mark.parametrize(("step_s", "minutes"), [(18.0, 58), (21.0, 64)])
def test_detect_restart_and_rework(step_s, minutes):
    """Marin#8934: silence 905 s, restart 5 min, 125 steps of 18 to 21 s: 58 to 64 min in all."""
    run = one_run("silence-restart-rework", f"workload.step_time={step_s}")
    lost = {name: run.seconds[name] for name in ("detect", "restart.fixed", "rework")}
    assert lost == {"detect": 905.0, "restart.fixed": 300.0, "rework": 125 * step_s}
    assert round(sum(lost.values()) / MINUTE) == minutes
    assert run.wall_s == pytest.approx(1000 * step_s + sum(lost.values()))


@pytest.mark.parametrize("layer", ["in_job", "fixed"])
def test_warm_up_costs_173_5_s_a_restart(layer):
    """HyperPod sample: first step 458.6 s against 285 s after each process start, and after the first one too."""
    on = f"recovery.layers=[{layer}]"
    warm, cold = one_run("warm-up", on, "workload.warmup=0s"), one_run("warm-up", on)
    assert cold.interruptions == 3
    restarts = [run.seconds.get(f"restart.{layer}", 0.0) for run in (cold, warm)]
    assert restarts[0] - restarts[1] == pytest.approx(3 * 173.5)
    assert cold.seconds["startup"] - warm.seconds["startup"] == pytest.approx(173.5)
    assert cold.wall_s - warm.wall_s == pytest.approx(4 * 173.5)


def test_an_in_process_restart_needs_no_warm_up():
    changes = ["recovery.layers=[in_process]", "failures.schedule=[{step: 12, rank: 9, symptom: exception}]"]
    warm, cold = one_run("warm-up", *changes, "workload.warmup=0s"), one_run("warm-up", *changes)
    assert cold.wall_s - warm.wall_s == pytest.approx(173.5)  # the first start's


def test_warm_up_is_found_in_a_log_of_that_job():
    """The accountant charges the excess of a first step to the restart: 458.6 - 285.1 s (285, rounded, in the case)."""
    step_s, first_s = 285.1, 458.6
    log = Log(source="live", nominal_step_s=step_s, steps=4)
    log(0, "job_start")
    log(0, "resumed", step=0)
    log.steps(first_s, 1, 1, dur_s=first_s).steps(first_s + step_s, 2, 2, dur_s=step_s)
    at = first_s + step_s
    log.save(at, at, 1, 2)
    log.fault(at, symptom="process_exit").detected(at).layer(at, "in_job")
    log.phase(at, at + 60.0, "process_start", "in_job")
    log(at + 60.0, "resumed", step=2).layer_end(at + 60.0, "in_job")
    at += 60.0 + first_s
    log.steps(at, 3, 3, dur_s=first_s).steps(at + step_s, 4, 4, dur_s=step_s).end(at + step_s, step=4)
    run = account(log)
    assert run.seconds["restart.in_job"] == pytest.approx(60.0 + 173.5)
    assert run.seconds["startup"] == pytest.approx(173.5)
    assert run.seconds["slowdown"] == pytest.approx(0.0, abs=1e-9)


# --- loops without progress


@pytest.mark.parametrize(("p", "faults"), [(0.5, 14), (0.2, 155), (0.1, 1110)])
def test_faults_until_the_launcher_stops_the_run(p, faults):
    """NVRx 0.6+, 3 cycles: p = P(no save in a cycle); and the interval that this p allows follows from it."""
    assert analytic.expected_failures_to_stop(p, 3) == pytest.approx(faults, rel=1e-12)
    mtbf_s = -700.0 / math.log1p(-p)
    assert analytic.p_no_save_in_cycle(60.0, 600.0, 40.0, mtbf_s) == pytest.approx(p)


def test_simulated_faults_until_the_launcher_stops_the_run(seed):
    """p = .5: 14 faults on average; the exact law of the sum over all runs, 1e-6."""
    runs = 1000
    result = simulate(case("no-progress-stop"), replications=runs, seed=seed)
    assert all(run.failed and "max_no_progress_cycles" in run.reason for run in result.runs)
    total = sum(run.interruptions for run in result.runs)
    below = np.cumsum(_law_of_the_sum(_stops_after(0.5, 3, 400), runs))
    low, high = np.searchsorted(below, [FALSE_ALARM / 2, 1.0 - FALSE_ALARM / 2])
    assert low <= total <= high
    assert 11 * runs < low and high < 17 * runs  # its power: a stop after 2 cycles gives 6, after 4 gives 30
    (warned,) = fires("no-progress-stop", case("no-progress-stop"))
    assert "50.0 % of cycles" in warned.message and "after 14 faults on average" in warned.message


def _stops_after(p, cycles, longest):
    """Return the law of the number of faults until so many in a row, each with probability p, made no progress."""
    law, in_a_row = np.zeros(longest), np.zeros(cycles)
    in_a_row[0] = 1.0
    for n in range(1, longest):
        law[n] = p * in_a_row[-1]
        in_a_row = np.concatenate([[(1.0 - p) * in_a_row.sum()], p * in_a_row[:-1]])
    assert law @ np.arange(longest) == pytest.approx(analytic.expected_failures_to_stop(p, cycles), rel=1e-9)
    return law


def _law_of_the_sum(law, n):
    size = 2 ** math.ceil(math.log2(2 * n * (law @ np.arange(law.size))))
    return np.fft.irfft(np.fft.rfft(law, size) ** n, size)


def test_44_identical_restarts_are_a_state_of_the_model():
    """Megatron-LM#5281: 44 restarts of 90 s, each of which fails to load; NVRx's stop ends them after 2 or 3."""
    run = one_run("corrupt-newest")
    assert run.failed and "max_restarts" in run.reason
    (incident,) = run.incidents
    assert incident.restart_events == 44 and incident.end_s is None
    assert run.wall_s - incident.start_s == pytest.approx(44 * 90.0)
    assert run.durable_saves == 2 and run.kept_steps == 80
    for nvrx, cycles in (("0.6.0", 2), ("0.7.0", 3)):  # the defaults of max_no_progress_cycles
        settings = [f"recovery.nvrx='{nvrx}'", "recovery.in_job.memory_reclaim=0s"]
        stopped = one_run("corrupt-newest", *settings)
        assert stopped.failed and "max_no_progress_cycles" in stopped.reason
        assert stopped.wall_s - stopped.incidents[0].start_s == pytest.approx(cycles * 90.0)
    (warned,) = fires("load-failure-loops", case("corrupt-newest"))
    assert "older falls back on the one before" in warned.message


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_falling_back_on_an_older_checkpoint_costs_an_interval_and_its_load(keep, seed):
    """Half of all checkpoints cannot be loaded: P(k older ones are tried) = 1/2^k, none left: step 0 (1e-6 each)."""
    changes = ["checkpoint.load_failure=0.5", "checkpoint.on_load_failure=older", f"checkpoint.keep={keep}"]
    result = simulate(case("corrupt-newest", *changes, "failures.schedule.0.step=130"), replications=600, seed=seed)
    lost = Counter(run.incidents[0].steps_lost for run in result.runs)
    steps = [130 - (120 - 40 * tried) for tried in range(keep)] + [130]  # the newest first; all fail: begins anew
    assert set(lost) <= set(steps)
    for tried, fallen in enumerate(steps):
        share = 0.5 ** min(tried + 1, keep)
        assert_hits(lost[fallen], 600, share, tests=keep + 1)
    for run in result.runs:
        loads = 1 + min(steps.index(run.incidents[0].steps_lost), keep - 1)
        assert run.seconds["checkpoint_load"] == pytest.approx(10.0 * loads)


@pytest.mark.parametrize(("keep", "goes_on_from"), [(1, 0), (2, 20), (3, 20)])
def test_how_many_checkpoints_are_kept_decides_what_a_corrupt_one_costs(keep, goes_on_from):
    run = one_run("corrupt-silently", f"checkpoint.keep={keep}", "limits.max_wall=40s")
    (incident,) = run.incidents
    assert incident.steps_lost == 35 - goes_on_from
    assert bool(fires("corruption-outlives-checkpoints", case("corrupt-silently", f"checkpoint.keep={keep}"))) == (
        keep < 3
    )  # with 2 kept it may be outlived: had it been noticed just after a save


@pytest.mark.parametrize(("steps", "kept_a_period"), [(465, 465), (230, 460), (69, 414), (30, 390)])
def test_a_deterministic_hazard_is_expressible(steps, kept_a_period):
    """8 h guaranteed, then pre-emption: the save just before the limit is the best one, and one minute later none."""
    run = one_run("eight-hours", f"checkpoint.interval={steps} steps")
    assert run.completed and not fires("save-after-mtbf", case("eight-hours", f"checkpoint.interval={steps} steps"))
    periods = run.seconds["productive"] / (kept_a_period * MINUTE)
    assert run.wall_s == pytest.approx(periods * 8 * HOUR, rel=0.02)  # the first period has no restart, the last no end


@pytest.mark.parametrize(("steps", "kept_a_period"), [(465, 465), (230, 460), (69, 414), (30, 390)])
def test_slurm_time_limit(steps, kept_a_period):
    """The same by Slurm: every 8 h a requeue, 2 h in the queue that no GPU is paid for, 10 min of prolog."""
    run = one_run("slurm-eight-hours", f"checkpoint.interval={steps} steps")
    assert run.completed and set(run.faults_by_class) == {"time_limit"}
    periods = run.seconds["productive"] / (kept_a_period * MINUTE)
    assert run.interruptions == pytest.approx(periods, abs=1.01)
    assert run.wall_s == pytest.approx(periods * (8 + 2) * HOUR, rel=0.02)
    assert run.seconds["node_wait"] == run.interruptions * 2 * HOUR
    assert run.gpu_seconds["node_wait"] == 0.0


@pytest.mark.parametrize("steps", [465, 230, 69, 30])
def test_a_save_just_before_the_limit_loses_nothing_whatever_the_interval(steps):
    """Told 6 min before (a step and a save of 5 min), the job ends itself as soon as the save is durable."""
    run = one_run("slurm-eight-hours", f"checkpoint.interval={steps} steps", "checkpoint.save_before=6min")
    assert run.completed and run.seconds["rework"] == 0.0
    assert run.failed_saves == 0
    # every minute of an allocation is prolog, step or save
    saves = run.seconds["checkpoint_stall"] + run.seconds["productive"] + run.interruptions * 10 * MINUTE
    assert run.wall_s - run.seconds["node_wait"] == pytest.approx(saves)
    worse = one_run("slurm-eight-hours", f"checkpoint.interval={steps} steps")
    assert steps >= 230 or run.wall_s < worse.wall_s  # 465 and 230 end with the limit as it is


def test_a_grace_too_short_for_the_save_loses_it_and_is_told():
    settings = ["checkpoint.interval=69 steps", "checkpoint.save_before=4min"]
    tight = one_run("slurm-eight-hours", *settings)
    without = one_run("slurm-eight-hours", settings[0])
    assert tight.failed_saves >= tight.interruptions and tight.seconds["rework"] > 0.0
    assert tight.wall_s == pytest.approx(without.wall_s, rel=1e-3)  # nothing is gained by it
    (warned,) = fires("save-before-too-short", case("slurm-eight-hours", *settings))
    assert "4m, but a step and a save take up to 6m" in warned.message


def test_pre_emption_with_warning(seed):
    """Spot nodes, 2 min of warning: with a save in it a pre-emption loses what the step took, else half an interval."""
    spot = "failures.classes=[{name: spot, mtbf: 6h, per: job, scope: node, symptom: node_loss, detect: 0s}]"
    changes = [spot, "failures.schedule=[]", "cluster.preemption={warning: 2min}", "workload.steps=20000"]
    base = case("silence-restart-rework", *changes, "checkpoint={mode: sync, interval: 1h, write_time: 30s}")
    saved = load_scenario(base, ["checkpoint.save_before=2min"])
    runs = [simulate(s, replications=20, seed=seed).runs for s in (base, saved)]
    lost = [sum(run.seconds["rework"] for run in some) / sum(run.interruptions for run in some) for some in runs]
    assert 0.3 * HOUR < lost[0] < 0.7 * HOUR  # half an hour on average; 60 pre-emptions or more
    assert lost[1] < 0.001 * lost[0]  # one that is told while the job restarts finds nothing saved since
    assert fires("stop-unsaved", base) and not fires("stop-unsaved", saved)


def test_an_allocation_too_short_for_its_first_save_is_told():
    short = ["checkpoint.interval=466 steps", "workload.useful_time=3d", "limits.max_wall=10d"]
    scenario = case("slurm-eight-hours", *short)
    (warned,) = fires("time-limit-below-save", scenario)
    assert warned.path == "recovery.slurm.time_limit" and not fires("time-limit-below-save", case("slurm-eight-hours"))
    run = simulate(scenario, replications=1).runs[0]
    assert run.censored and run.durable_saves == 1  # only in the first allocation, which needed no prolog


def test_a_save_a_minute_after_the_limit_never_comes():
    run = one_run("eight-hours", "checkpoint.interval=466 steps", "workload.useful_time=3d", "limits.max_wall=10d")
    (warned,) = fires("save-after-mtbf", case("eight-hours", "checkpoint.interval=466 steps"))
    assert "100 % of restarts" in warned.message
    assert run.censored and run.durable_saves == 1  # only the first period, which had no restart


# --- all of them


def test_every_scenario_file_is_a_case_here():
    text = "".join(tests.read_text() for tests in Path(__file__).parent.glob("test_*.py"))
    for file in SCENARIOS.glob("*.yaml"):
        assert f'"{file.stem}"' in text and load_scenario(file).name == file.stem
