"""The accountant on random logs: against a slow separate one, and on logs with pieces missing."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.accounts.event_check import validate
from sim.ledger import RunLedger, account
from tests.sim.painted_ledger import painted
from tests.sim.random_logs import random_log

seeds = st.integers(0, 2**32)


def closes(ledger: RunLedger) -> None:
    assert sum(ledger.seconds.values()) == pytest.approx(ledger.wall_s, rel=1e-9, abs=1e-9)
    assert min(ledger.seconds.values()) >= 0
    assert min(ledger.gpu_seconds.values()) >= 0
    assert 0 <= ledger.kept_steps <= max(ledger.done_steps + 1, 0)


@settings(max_examples=250, deadline=None, derandomize=True)
@given(seeds)
def test_it_agrees_with_painting_every_second(seed: int) -> None:
    log = random_log(seed)
    assert validate(log) == []
    ledger = account(log)
    closes(ledger)
    seconds, gpu_seconds, cold_gpu_s = painted(log)
    assert {k: v for k, v in ledger.seconds.items() if v} == pytest.approx(seconds, abs=1e-9)
    assert {k: v for k, v in ledger.gpu_seconds.items() if v} == pytest.approx(
        {k: v for k, v in gpu_seconds.items() if v}, abs=1e-7
    )
    assert ledger.cold_gpu_s == pytest.approx(cold_gpu_s)
    if ledger.completed:
        steps = log[0]["steps"]
        assert ledger.seconds["productive"] == pytest.approx(steps * log[0]["nominal_step_s"], abs=1e-9)
        assert ledger.kept_steps == steps
    assert ledger.kept_steps * log[0]["nominal_step_s"] == pytest.approx(
        ledger.seconds["productive"], abs=1e-9
    )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds)
def test_incidents_are_disjoint_and_hold_their_phases(seed: int) -> None:
    ledger = account(random_log(seed))
    last = 0.0
    for incident in ledger.incidents:
        end = ledger.wall_s if incident.end_s is None else incident.end_s
        assert last <= incident.start_s <= end
        assert sum(incident.by_phase.values()) == pytest.approx(end - incident.start_s, abs=1e-9)
        assert incident.faults and incident.steps_lost >= 0
        last = end
    assert sum(len(incident.faults) for incident in ledger.incidents) <= ledger.interruptions
    down = sum(
        seconds for name, seconds in ledger.seconds.items() if name.startswith("restart.") or name == "detect"
    )
    assert ledger.downtime_s >= down - 1e-9


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seeds)
def test_a_torn_log_is_accounted_as_far_as_it_goes(seed: int) -> None:
    log = random_log(seed)
    rng = random.Random(seed)
    for _ in range(5):
        closes(account(log[: rng.randint(0, len(log))]))
    for _ in range(10):
        rest = [event for event in log if rng.random() < 0.8]
        closes(account(rest))
        source = rng.choice(["live", "imported"])
        closes(account([{**e, "source": source} if e["kind"] == "run_start" else e for e in rest]))


def test_the_random_logs_tell_every_kind_of_story() -> None:
    """The tests above prove little if their logs are dull."""
    told: set[str] = set()
    for seed in range(300):
        log = random_log(seed)
        ledger = account(log)
        told |= {name for name, seconds in ledger.seconds.items() if seconds}
        told.add(ledger.outcome)
        told.add(log[0]["checkpoint_mode"])
        told |= {"joined" for incident in ledger.incidents if len(incident.faults) > 1}
        told |= {"unresolved" for incident in ledger.incidents if incident.end_s is None}
        told |= {
            "latent" for i in ledger.incidents for fault in i.faults if fault.symptom == "silent_corruption"
        }
        told |= {"drain"} if ledger.drain_s else set()
    assert told >= {
        "productive", "startup", "checkpoint_stall", "rework", "detect", "checkpoint_load", "node_wait", "slowdown",
        "restart.in_process", "restart.fixed", "completed", "failed", "censored", "sync", "async", "none", "ideal",
        "joined", "unresolved", "latent", "drain",
    }  # fmt: skip
