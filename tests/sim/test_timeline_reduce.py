"""Live logs of several ranks: one story is told by many, some of whom die."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.accounts.reduce import is_multi_rank, one_timeline
from sim.ledger import RunLedger, account
from tests.sim.event_logs import Event, Log
from tests.sim.random_logs import random_log


class Ranks(Log):
    """A live log of two ranks and their launcher: `log.by(rank)` says who speaks from here on."""

    def __init__(self, **fields: object) -> None:
        super().__init__(source="live", **fields)
        self[0]["rank"] = 0

    def by(self, rank: int | None) -> Ranks:
        self.rank = rank
        return self


def merged(log: list[Event]) -> list[Event]:
    return sorted(log, key=lambda event: event["t"])


def booked(log: list[Event]) -> RunLedger:
    ledger = account(merged(log))
    assert sum(ledger.seconds.values()) == pytest.approx(ledger.wall_s, rel=1e-9)
    return ledger


def spent(ledger: RunLedger) -> dict[str, float]:
    return {name: round(seconds, 9) for name, seconds in ledger.seconds.items() if round(seconds, 9)}


def test_an_incident_of_two_ranks_by_hand() -> None:
    log = Ranks(steps=6)
    for rank, ready, staged, durable in ((0, 4, 9.5, 10.2), (1, 6, 9.6, 10.8)):
        log.by(rank).phase(0, ready, "init")(ready, "resumed", step=0)
        log.steps(7, 1, 1, dur_s=7 - ready).steps(8, 2, 2).steps(9, 3, 3)
        log.save(9, durable, 3, 3, staged=staged).steps(10.6, 4, 4).steps(11.6, 5, 5)
    log.by(1).fault(11.6)
    log.by(None).detected(12).layer(12, "in_job")
    log.by(0).phase(13, 15, "process_start", "in_job").phase(15, 17, "init", "in_job")
    log.phase(17, 18, "checkpoint_load", "in_job")(18, "resumed", step=3)
    log.by(1).phase(13, 16, "process_start", "in_job").phase(16, 17.5, "init", "in_job")
    log.phase(17.5, 20, "checkpoint_load", "in_job")(20, "resumed", step=3)
    for rank, ready in ((0, 18), (1, 20)):
        log.by(rank).steps(22, 4, 4, dur_s=22 - ready).steps(23, 5, 5).steps(24, 6, 6)
        log(24, "job_end", outcome="completed", reason=None, step=6)(24 + 0.1 * rank, "run_end")
    ledger = booked(log)
    assert is_multi_rank(log)
    # Rank 1 is ready last, at 6 and at 20, and the first step after its process start took 2 s instead of 1.
    assert spent(ledger) == {
        "startup": 6, "productive": 6, "checkpoint_stall": 0.6, "rework": 2, "detect": 0.4, "restart.in_job": 6.5,
        "checkpoint_load": 2.5, "slowdown": 0.1,
    }  # fmt: skip
    (incident,) = ledger.incidents
    assert (incident.start_s, incident.end_s) == (11.6, 20)
    assert (incident.steps_lost, incident.restart_events) == (2, 1)
    assert incident.by_phase == pytest.approx(
        {"detect": 0.4, "restart": 1, "process_start": 3, "init": 1.5, "checkpoint_load": 2.5}
    )
    assert (ledger.saves, ledger.durable_saves, ledger.completed) == (1, 1, True)


def test_a_rank_that_dies_is_not_waited_for() -> None:
    log = Ranks(steps=6)
    for rank in (0, 1):
        log.by(rank)(2, "resumed", step=0).steps(3, 1, 1).steps(4, 2, 2)
    log.by(1).fault(4, symptom="process_exit")  # and nothing more
    log.by(0).detected(5).layer(5, "in_process").phase(5, 7, "init", "in_process")(7, "resumed", step=0)
    log.steps(10, 1, 3).steps(13, 4, 6).end(13, step=6)
    assert spent(booked(log)) == {
        "startup": 2, "productive": 6, "rework": 2, "detect": 1, "restart.in_process": 2,
    }  # fmt: skip


def test_a_fault_before_the_last_rank_is_ready_joins_the_incident() -> None:
    log = Ranks(steps=3)
    for rank in (0, 1):
        log.by(rank)(0, "resumed", step=0).steps(1, 1, 1)
    log.by(0).fault(1, id=1).detected(2, 1).layer(2, "in_job").phase(2, 5, "init", "in_job")
    log(5, "resumed", step=0)
    log.by(1).layer(2, "in_job").phase(2, 4, "init", "in_job")
    log(4, "phase_begin", phase="checkpoint_load", layer="in_job", attempt=1).fault(6, id=2)
    log.by(0).detected(7, 2).layer(7, "in_job", 2).phase(7, 10, "init", "in_job", 2)(10, "resumed", step=0)
    log.by(1).layer(7.5, "in_job", 2).phase(7.5, 11, "init", "in_job", 2)(11, "resumed", step=0)
    for rank, ready in ((0, 10), (1, 11)):
        log.by(rank).steps(12, 1, 1, dur_s=12 - ready).steps(14, 2, 3)
    ledger = booked(log)
    (incident,) = ledger.incidents
    assert (incident.start_s, incident.end_s, incident.restart_events) == (1, 11, 2)
    assert [fault.id for fault in incident.faults] == [1, 2]
    # Rank 1's own story: init 2..4, load 4..6 cut by its fault, noticed by rank 0 at 7, init 7.5..11.
    assert incident.by_phase == {"detect": 2, "init": 5.5, "checkpoint_load": 2, "restart": 0.5}


def test_a_rank_that_was_ready_has_to_begin_again_after_a_joined_fault() -> None:
    log = Ranks(steps=2)
    for rank in (0, 1):
        log.by(rank)(0, "resumed", step=0)
    log.by(1).fault(1, id=1).detected(1, 1).layer(1, "in_job")
    log.by(0)(5, "resumed", step=0)
    log.by(1).fault(6, id=2)(8, "resumed", step=0)
    log.by(0)(9, "resumed", step=0).steps(11, 1, 2)
    ledger = booked(log)
    assert [(i.start_s, i.end_s, len(i.faults)) for i in ledger.incidents] == [(1, 9, 2)]


def test_a_rank_of_few_words_is_waited_for_until_the_first_step() -> None:
    log = Ranks(steps=2)
    log.by(0).phase(0, 2, "init")(2, "resumed", step=0)
    log.by(1)(3, "resumed", step=0)
    for rank in (0, 1):
        log.by(rank).steps(5, 1, 2)
    assert spent(booked(log)) == {"startup": 3, "productive": 2}


def test_the_rank_s_own_notice_and_the_launcher_s_phases() -> None:
    log = Ranks(steps=2)
    for rank in (0, 1):
        log.by(rank)(0, "resumed", step=0)
    log.by(1).fault(0, symptom="hang")
    log.by(None).detected(4)
    log.by(0).detected(6)
    log.by(None).layer(6, "in_job").phase(6, 9, "rendezvous", "in_job")
    log.by(1)(10, "resumed", step=0)
    log.by(0)(11, "resumed", step=0).steps(13, 1, 2)
    assert booked(log).incidents[0].by_phase == {"detect": 6, "rendezvous": 3, "restart": 2}


def test_one_rank_may_save_for_all_and_use_an_id_again() -> None:
    log = Ranks(steps=8)
    for rank in (0, 1):
        log.by(rank)(rank, "resumed", step=0).steps(4, 1, 3)  # rank 1 speaks for the loop
    log.by(0).save(4, 6, "last", 3)
    for rank in (0, 1):
        log.by(rank).steps(9, 4, 6)
    log.by(1).fault(9).detected(9).layer(9, "fixed")
    log.by(0)(10, "resumed", step=3).steps(11, 4, 4)
    log(11, "save_begin", id="last", step=4, tier=None)
    ledger = booked(log)
    assert ledger.seconds["checkpoint_stall"] == 2
    assert (ledger.saves, ledger.durable_saves, ledger.kept_steps) == (2, 1, 3)


def test_a_checkpoint_counts_when_all_its_writers_are_done() -> None:
    log = Ranks(steps=9)
    for rank in (0, 1):
        log.by(rank)(0, "resumed", step=0).steps(1, 1, 1).save(1, 2 + rank, "a", 1, staged=1).steps(4, 2, 4)
        log(4, "save_begin", id="a", step=4, tier=None)(4, "save_staged", id="a")
    log.by(0)(5, "save_durable", id="a", step=4, tier=None)
    log.by(0).steps(6, 5, 6)
    log.by(1).fault(6, symptom="process_exit")
    ledger = booked(log)
    assert (ledger.saves, ledger.durable_saves, ledger.kept_steps) == (2, 1, 1)
    durable = [event["t"] for event in one_timeline(merged(log)) if event["kind"] == "save_durable"]
    assert durable == [3]


def test_the_last_step_counts_though_the_fault_bears_the_same_time_and_comes_first() -> None:
    log = Ranks(steps=9)
    log.by(1)(0, "resumed", step=0).steps(1, 1, 1).fault(2)
    log.by(0)(0, "resumed", step=0).steps(1, 1, 1).steps(2, 2, 2)
    log.by(None).detected(3).layer(3, "fixed")
    log.by(0)(5, "resumed", step=0)
    log.by(1)(5, "resumed", step=0)
    ledger = booked(log)
    assert ledger.incidents[0].steps_lost == 2
    assert spent(ledger) == {"rework": 2, "detect": 1, "restart.fixed": 2}


def test_a_standby_process_that_starts_while_the_job_runs_is_no_incident() -> None:
    log = Ranks(steps=9)
    for rank in (0, 1):
        log.by(rank)(0, "resumed", step=0).steps(5, 1, 5).steps(9, 6, 9)
    log.by(2)(3, "job_start").phase(3, 6, "process_start")
    ledger = booked(log)
    assert spent(ledger) == {"productive": 9} and ledger.interruptions == 0


def test_what_the_launcher_alone_knows() -> None:
    log = Ranks(steps=2, nominal_step_s=None)
    for rank in (0, 1):
        log.by(rank)(0, "resumed", step=0).steps(1, 1, 1)
    log.by(None)(4, "layer_begin", layer="in_job", attempt=1)
    log.nodes(4, "node_down", 1, 0, 0, 1).nodes(6, "node_up", 2)
    for rank in (0, 1):
        log.by(rank)(8, "resumed", step=1).steps(9, 2, 2)
    ledger = booked(log)
    # Nobody logged a fault: the loop stopped at some time after its last step.
    assert ledger.faults_by_class == {"unknown": 1}
    assert spent(ledger) == {"productive": 2, "detect": 3, "restart.in_job": 4}
    assert ledger.gpu_seconds["restart.in_job"] == 2 * 8 + 2 * 16


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_many_ranks_telling_the_same_story_give_its_ledger(seed: int) -> None:
    story = [
        {**event, "source": "live"} if event["kind"] == "run_start" else event for event in random_log(seed)
    ]
    ranks = [{**event, "rank": rank} for event in story for rank in (2, 0, 1)]
    alone, together = account(story), account(merged(ranks))
    assert together.seconds == pytest.approx(alone.seconds, abs=1e-9)
    assert together.gpu_seconds == pytest.approx(alone.gpu_seconds, abs=1e-9)
    assert (together.outcome, together.kept_steps) == (alone.outcome, alone.kept_steps)
    assert together.faults_by_class == alone.faults_by_class
    assert [(i.start_s, i.end_s, i.restart_events) for i in together.incidents] == [
        (i.start_s, i.end_s, i.restart_events) for i in alone.incidents
    ]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_ranks_that_lose_events_still_give_a_ledger_that_closes(seed: int) -> None:
    rng = random.Random(seed)
    story = [
        {**event, "source": "live"} if event["kind"] == "run_start" else event for event in random_log(seed)
    ]
    ranks = [{**event, "rank": rank} for rank in range(3) for event in story if rng.random() < 0.7]
    booked(ranks)
