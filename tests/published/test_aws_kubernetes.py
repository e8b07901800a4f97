"""The benchmark's Kubernetes run: predicted from the pods' rules, not scored; and the page that tells its story.

Source: the article's figures and the reference code at 0edaf152. Statistical asserts compare paired runs; each states
what it could miss by chance.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from sim import aws_cascade, aws_eks
from sim.aws_cascade import CHECKPOINT_S, RANGES, WEIGHTS_S, apart, cascade, kubernetes
from sim.metrics import paired_difference
from sim.published import RECOVERY_EVENT_S, figures
from sim.scenario import load_scenario, to_mapping
from sim.study import simulate

ROOT = Path(__file__).resolve().parents[2]
K8S = "recovery.kubernetes"
RUNS = 60
_DONE = {}


def study(*changes, runs=RUNS):
    if (changes, runs) not in _DONE:
        _DONE[changes, runs] = simulate(kubernetes(*changes), replications=runs, seed=1)
    return _DONE[changes, runs]


def better(metric, changes, base=()):
    """Return the paired difference of a metric, and whether its 95 % interval leaves out 0."""
    d = paired_difference(metric, study(*base, *changes).runs, study(*base).runs)
    return d.mean, d.ci95[0] > 0.0 or d.ci95[1] < 0.0


def incidents_s(result):
    return [[i.end_s - i.start_s for i in run.incidents] for run in result.runs]


# --- the row


def test_the_run_shares_all_inputs_with_the_in_job_run_but_who_restarts():
    pods, in_job = (to_mapping(load_scenario(name)) for name in (aws_eks.KUBERNETES, aws_eks.IN_JOB))
    assert {key for key in pods if pods[key] != in_job.get(key)} == {"name", "description", "sources", "recovery"}
    assert pods["failures"] == in_job["failures"]


def test_the_row_is_predicted_and_not_scored():
    assert {(f.claim, f.tolerance) for f in figures(aws_eks.KUBERNETES)} == {("predicted", None)}
    assert RECOVERY_EVENT_S[aws_eks.KUBERNETES] == 270.0
    reading = aws_eks.readings(study())
    assert round(reading.fault_published_s) == 826 and reading.events_a_fault == pytest.approx(3.1, abs=0.05)


def test_rework_and_saves_are_those_of_the_other_runs():
    for run in study().runs:
        assert run.seconds["rework"] == pytest.approx(724 * 0.37) and run.durable_saves == 4
        assert run.seconds["checkpoint_stall"] == pytest.approx(4 * 275.0)


def test_minutes_emerge_with_a_heavy_tail_at_the_one_fault_that_can_find_a_stale_store():
    """No input is an incident's length: a fault takes the watchdog and a way back, the second a store timeout more."""
    took = list(zip(*incidents_s(study()), strict=True))
    for number in (0, 2, 3, 4):
        assert 130 < min(took[number]) and sorted(took[number])[RUNS // 2] < 200
    waited = [seconds for seconds in took[1] if seconds > 450]
    assert 0.3 < len(waited) / RUNS < 0.9 and min(set(took[1]) - set(waited)) < 250
    assert all(seconds < 560 for seconds in waited)


# --- ranges


def test_no_range_of_start_up_times_reaches_the_published_point():
    for path, r in RANGES.items():
        assert r.source
        for end in (r.low, r.high):
            assert cascade(study(f"{path}={end}s", runs=20).runs).at_the_point == 0.0
    for apart_s in (0.0, WEIGHTS_S):
        found = cascade(aws_cascade.run_designs(60, apart_s))
        assert found.at_the_point == 0.0 and found.failed == 0.0
        assert found.infra[1] > 0.5  # the published 35.8 % is far off, ...
        assert found.event_s[0] < 270.0 < found.event_s[2]  # ... while its seconds an event are reached
        assert found.events[1] == 1.0


def test_builds_minutes_apart_reach_it_and_many_jobs_fail():
    """Chance of missing by chance: below 1e-6 each, from the shares of 200 runs (29 %, 41 %)."""
    found = cascade(study(*apart(CHECKPOINT_S)).runs)
    assert found.at_the_point > 0.05 and found.failed > 0.1
    assert found.training[0] < 0.115 < found.training[2] and found.infra[0] < 0.358 < found.infra[2]
    assert found.events[1] >= 1.6


def test_designs_take_their_constants_from_the_ranges():
    starts = [s.workload.process_start.mean_s() for s in aws_cascade.designs(40)]
    low, high, _ = RANGES["workload.process_start"]
    assert low <= min(starts) < low + 0.2 * (high - low) and high - 0.2 * (high - low) < max(starts) <= high


# --- directions


@pytest.mark.parametrize(
    ("changes", "base", "sign"),
    [
        ([f"{K8S}.store_timeout=1min"], (), +1),
        ([f"{K8S}.store_timeout=15min"], (), -1),
        (["recovery.nccl_timeout=30s"], (), +1),
        (["recovery.nccl_timeout=30s"], tuple(apart(WEIGHTS_S)), -1),
        (["recovery.nccl_timeout=2min"], (), -1),
        (["recovery.nccl_timeout=2min"], tuple(apart(180.0)), +1),
        ([f"{K8S}.launcher_exit=0s"], (), +1),
        ([f"{K8S}.in_place=true", f"{K8S}.version='1.35'"], (), +1),
        ([f"{K8S}.in_place=true", f"{K8S}.version='1.35'"], tuple(apart(WEIGHTS_S)), +1),
        ([f"{K8S}.backoff.reset=15min"], (), -1),
        ([f"{K8S}.join_timeout=15s"], (), -1),
    ],
    ids=["store shorter", "store longer", "NCCL shorter", "NCCL shorter, builds apart", "NCCL longer",
         "NCCL longer, builds apart", "launcher ends at once", "in place", "in place, builds apart", "reset later",
         "join shorter"],
)  # fmt: skip
def test_direction_of_each_knob(changes, base, sign):
    """Infrastructure goodput, paired; the interval of 95 % leaves out 0 with room, in 60 runs."""
    mean, certain = better("infra_goodput_aws", changes, base)
    assert sign * mean > 0.005 and certain


def test_a_lower_cap_of_the_back_off_is_worth_nothing_here():
    mean, _ = better("infra_goodput_aws", [f"{K8S}.backoff.cap=1min"])
    assert abs(mean) < 0.001


def test_a_lower_cap_lets_a_chase_reach_the_backoff_limit_sooner():
    """Paired: of 60 runs none may be saved by the lower cap, and some are lost."""
    low, high = (study(*apart(CHECKPOINT_S), f"{K8S}.backoff.cap={cap}s").runs for cap in (10, 600))
    lost = sum(a.failed and not b.failed for a, b in zip(low, high, strict=True))
    saved = sum(b.failed and not a.failed for a, b in zip(low, high, strict=True))
    assert lost > saved


def test_pods_out_of_phase_lock_up_when_the_agent_waits_too_short():
    assert cascade(study(f"{K8S}.join_timeout=15s").runs).failed > 0.1
    assert cascade(study(f"{K8S}.join_timeout=1min").runs).failed == 0.0


def test_a_longer_nccl_timeout_breaks_the_chase_of_builds_apart():
    wide = apart(CHECKPOINT_S)
    assert cascade(study(*wide).runs).failed > 0.1
    assert cascade(study(*wide, "recovery.nccl_timeout=5min").runs).failed == 0.0


def test_the_reset_is_on_a_knifes_edge_before_the_fourth_fault():
    """Pod 1's container has run about 728 s when fault 4 ends it: a reset after 12 min sees that, one after 13 not."""
    fourth = {}
    for minutes in (10, 12, 13, 15):
        took = incidents_s(study(f"{K8S}.backoff.reset={minutes}min", runs=20))
        fourth[minutes] = sum(row[3] for row in took) / len(took)
    assert fourth[10] == fourth[12] and fourth[13] == fourth[15]
    assert fourth[13] > fourth[12] + 50


def test_asynchronous_saves_gain_nothing_as_three_faults_strike_while_the_write_is_under_way():
    """The writes of 500, 1000 and 1500 are lost to faults 3, 4 and 5, so the job goes on from 0, 500 and 1000."""
    saves = "checkpoint={mode: async, interval: 500 steps, write_time: 275s, stall_time: 2.9s, load_time: 0s}"
    mean, _ = better("training_goodput_aws", [saves])
    assert abs(mean) < 0.01
    steps = 62 + 239 + 574 + (1320 - 500) + (1529 - 1000)
    for run in study(saves).runs:
        assert run.seconds["rework"] == pytest.approx(steps * 0.37)
    survive = saves[:-1] + ", write_survives: [exception, hang]}"
    mean, certain = better("training_goodput_aws", [survive])
    assert mean > 0.01 and certain


# --- the page


@pytest.mark.slow
def test_every_number_of_the_page_is_what_the_model_says():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "aws_benchmark.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
