"""What people in the field ran into with pods (facts/field_cases.md): pods restarting alone, gang restart in place.

All answers are *predicted*: worked out from the stated numbers, none of which was chosen to reach them. The published
EKS run is in test_aws_kubernetes.py.
"""

from pathlib import Path

import pytest

from sim.metrics import paired_difference
from sim.scenario import load_scenario
from sim.study import prices_of, simulate
from sim.warn import warnings_for

SCENARIOS = Path(__file__).parent / "scenarios"
HOUR = 3600.0
K8S = "recovery.kubernetes"


def case(name, *changes):
    return load_scenario(SCENARIOS / f"{name}.yaml", changes)


def alone(*changes):
    return case("pods-alone", *changes)


def successes(*changes, runs=3):
    return simulate(alone(*changes), replications=runs).completed_fraction


# --- pods restarting alone (kubeflow/trainer#2000)


@pytest.mark.parametrize(("pods", "limit"), [(100, 6), (128, 30), (200, 100), (200, 200)])
def test_no_restart_of_100_to_200_pods_succeeds_under_a_backoff_limit_up_to_their_number(pods, limit):
    """Every pod restarts at least once a fault, and their restarts sum: P(a successful restart) is 0, not near 0."""
    changes = [f"cluster.nodes={pods}", f"{K8S}.backoff_limit={limit}"]
    result = simulate(alone(*changes), replications=2)
    assert result.completed_fraction == 0.0
    assert all("backoffLimit" in run.reason and run.interruptions == 1 for run in result.runs)
    (warned,) = (w for w in warnings_for(alone(*changes)) if w.rule == "backoff-limit")
    assert (
        f"all {pods} pods" in warned.message and "at fault 1" in warned.message and "gang" in warned.message
    )


APART = f"{K8S}.launcher_exit={{uniform: {{low: 0s, high: 30min}}}}"
"""Each worker hits its timeout at another time: up to half an hour later than the first."""
NO_LIMIT = f"{K8S}.backoff_limit=100000"


def test_without_a_limit_the_pods_meet_if_they_wait_for_each_other_long_enough():
    assert successes(NO_LIMIT) == 1.0  # they end within half a minute of each other
    result = simulate(alone(NO_LIMIT, APART), replications=3)
    assert result.completed_fraction == 1.0
    for (
        run
    ) in result.runs:  # half an hour for the watchdog, up to half an hour for the last pod, and the way back
        assert HOUR < run.incidents[0].end_s - run.incidents[0].start_s < 1.5 * HOUR


def test_who_waits_too_short_in_the_rendezvous_never_meets_pods_that_end_far_apart():
    """ "Other workers already waited too long in the rendezvous step": every back-off doubles, all out of phase."""
    assert successes(NO_LIMIT, APART, f"{K8S}.join_timeout=1min", "limits.max_wall=6h", runs=1) == 0.0
    assert successes(NO_LIMIT, APART, f"{K8S}.join_timeout=1h", runs=2) == 1.0  # what breaks the chase


def test_gang_restart_is_recommended_and_works():
    assert any(w.rule == "pods-restart-alone" and "gang" in w.message for w in warnings_for(alone()))
    for apart in ([], [APART]):
        result = simulate(alone(f"{K8S}.in_place=true", *apart), replications=2)
        assert result.completed_fraction == 1.0
    assert not any(
        w.rule in ("pods-restart-alone", "backoff-limit") for w in warnings_for(alone(f"{K8S}.in_place=true"))
    )


# --- gang restart: anew against in place (JobSet KEP-467)


def test_in_place_restart_is_worth_120_s_of_5000_nodes_a_fault():
    """130 s -> 10 s. At 6.5 faults per 1,000 node-days [P: Meta RSC-1], 3 USD a GPU-hour: 3.9 million USD a month."""
    anew, in_place = (
        simulate(case("jobset-5000", f"{K8S}.in_place_restart={s}s"), replications=1) for s in (130, 10)
    )
    faults = anew.runs[0].interruptions
    saved = paired_difference("usd", anew.runs, in_place.runs, prices_of(anew.scenario))
    usd_a_fault = saved.mean / faults
    assert usd_a_fault == pytest.approx(120.0 / HOUR * 40_000 * 3.0)
    faults_a_month = 6.5 / 1000 * 5000 * 30
    assert usd_a_fault * faults_a_month == pytest.approx(3.9e6)
