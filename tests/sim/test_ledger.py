"""The accountant against hand-made runs. Steps take a second, so the sums can be read off the page."""

from __future__ import annotations

import time

import pytest

from sim.accounts.event_check import validate
from sim.accounts.event_kinds import EventError
from sim.ledger import RunLedger, account
from tests.sim.event_logs import Event, Log


def booked(log: list[Event]) -> RunLedger:
    """Account a sound log and check what holds for every ledger."""
    assert validate(log) == []
    ledger = account(log)
    assert sum(ledger.seconds.values()) == pytest.approx(ledger.wall_s, rel=1e-9)
    assert min(ledger.seconds.values()) >= 0
    return ledger


def spent(ledger: RunLedger) -> dict[str, float]:
    """Return the categories that took time."""
    return {name: seconds for name, seconds in ledger.seconds.items() if seconds}


def started(**fields: object) -> Log:
    """A log whose loop runs from t=10, after process start, init and an empty load."""
    log = Log(**fields)
    log(0, "job_start")
    log.phase(0, 6, "process_start").phase(6, 10, "init")
    return log(10, "resumed", step=0)


def restart(log: Log, fault: float, resumed: float, step: int, layer: str = "in_job") -> Log:
    """An exception at `fault`, noticed after a second, cured by one attempt of `layer` that loads for 2 s."""
    log.fault(fault, id=f"at {fault}").detected(fault + 1, f"at {fault}").layer(fault + 1, layer)
    log.phase(fault + 1, resumed - 2, "process_start", layer)
    log.phase(resumed - 2, resumed, "checkpoint_load", layer)
    log(resumed, "resumed", step=step)
    return log.layer_end(resumed, layer)


def test_a_run_without_faults() -> None:
    log = started(steps=40)
    log.steps(30, 1, 20).save(30, 35, 1, 20).steps(55, 21, 40).save(55, 60, 2, 40).end(60, step=40)
    ledger = booked(log)
    assert spent(ledger) == {"startup": 10, "productive": 40, "checkpoint_stall": 10}
    assert (ledger.saves, ledger.durable_saves, ledger.kept_steps, ledger.first_loop_s) == (2, 2, 40, 10)
    assert ledger.completed and ledger.interruptions == 0 and ledger.incidents == ()
    assert ledger.gpu_seconds["productive"] == 40 * 16


def test_a_fault_before_any_checkpoint_loses_all_steps_and_the_one_under_way() -> None:
    log = started(steps=20)
    log.steps(22.5, 1, 12, dur_s=12.5, part=0.5)
    restart(log, 22.5, 30, 0)
    log.steps(50, 1, 20).end(50, step=20)
    ledger = booked(log)
    assert spent(ledger) == {
        "startup": 10, "rework": 12.5, "detect": 1, "restart.in_job": 4.5, "checkpoint_load": 2, "productive": 20,
    }  # fmt: skip
    (incident,) = ledger.incidents
    assert (incident.start_s, incident.end_s, incident.steps_lost) == (22.5, 30, 12)
    assert incident.by_phase == {"detect": 1, "process_start": 4.5, "checkpoint_load": 2}
    assert (incident.restart_events, incident.layer, incident.faults[0].symptom) == (1, "in_job", "exception")


def test_a_rollback_trims_the_range_that_straddles_the_checkpoint() -> None:
    log = started(steps=60)
    log.steps(50, 1, 40)
    log(50, "save_begin", id=1, step=40, tier=None)(50, "save_staged", id=1)
    log.steps(60, 41, 50, dur_s=10)
    log.fault(60, id=9).detected(61, 9).layer(61, "fixed").phase(61, 70, "process_start", "fixed")
    # An older checkpoint than any boundary of steps in the log.
    log(70, "resumed", step=30).layer_end(70, "fixed")
    log.steps(100, 31, 60).end(100, step=60)
    assert spent(booked(log)) == {
        "startup": 10,
        "productive": 60,
        "rework": 20,
        "detect": 1,
        "restart.fixed": 9,
    }


def test_a_fault_during_a_sync_save_cuts_the_stall() -> None:
    log = started(steps=20)
    log.steps(20, 1, 10)
    log(20, "save_begin", id=1, step=10, tier=None)
    restart(log, 23, 30, 0)
    log(30, "save_failed", id=1, step=10, tier=None, reason="fault")
    log.steps(50, 1, 20).end(50, step=20)
    ledger = booked(log)
    assert spent(ledger) == {
        "startup": 10, "checkpoint_stall": 3, "rework": 10, "detect": 1, "restart.in_job": 4, "checkpoint_load": 2,
        "productive": 20,
    }  # fmt: skip
    assert (ledger.saves, ledger.durable_saves, ledger.failed_saves) == (1, 0, 1)


def test_an_async_save_stalls_until_staged_and_the_last_drain_is_a_stall() -> None:
    log = started(steps=20)
    log.steps(20, 1, 10)
    log(20, "save_begin", id=1, step=10, tier=None)(22, "save_staged", id=1)
    log.steps(28, 11, 16).steps(32, 17, 20)
    log(30, "save_durable", id=1, step=10, tier=None)
    log.sort(key=lambda event: event["t"])
    log(32, "save_begin", id=2, step=20, tier=None)(34, "save_staged", id=2)
    log(34, "save_begin", id=2, drain=True)(41, "save_durable", id=2, step=20, tier=None)
    log.end(41, step=20)
    ledger = booked(log)
    assert spent(ledger) == {"startup": 10, "productive": 20, "checkpoint_stall": 11}
    assert (ledger.drain_s, ledger.saves, ledger.durable_saves) == (7, 2, 2)


def test_a_second_fault_joins_and_the_failed_attempt_is_charged_to_its_own_layer() -> None:
    log = started(steps=20)
    log.steps(15, 1, 5)
    log.fault(15, id=1, symptom="hang").detected(25, 1).layer(25, "in_process")
    log.phase(25, 28, "abort", "in_process")
    log.phase(28, 31, "init", "in_process", cut=True).layer_end(31, "in_process", "cut")
    log.fault(31, id=2, symptom="process_exit", class_="gpu").detected(32, 2)
    log.layer(32, "in_process", attempt=2).phase(32, 35, "abort", "in_process", 2)
    log.layer_end(35, "in_process", "escalated", 2)
    log.layer(35, "in_job").phase(35, 40, "rendezvous", "in_job").phase(40, 44, "node_wait", "in_job")
    log.phase(44, 50, "process_start", "in_job")(50, "resumed", step=0).layer_end(50, "in_job")
    log.steps(70, 1, 20).end(70, step=20)
    ledger = booked(log)
    assert spent(ledger) == {
        "startup": 10, "rework": 5, "detect": 11, "restart.in_process": 9, "restart.in_job": 11, "node_wait": 4,
        "productive": 20,
    }  # fmt: skip
    (incident,) = ledger.incidents
    assert (incident.start_s, incident.end_s, incident.restart_events) == (15, 50, 3)
    assert [fault.id for fault in incident.faults] == [1, 2]
    assert ledger.faults_by_class == {"software": 1, "gpu": 1} and ledger.interruptions == 2
    assert ledger.downtime_s == 35


def test_a_fault_during_rework_opens_a_new_incident() -> None:
    log = started(steps=20)
    log.steps(20, 1, 10)
    restart(log, 20, 30, 0)
    log.steps(34, 1, 4)
    restart(log, 34, 40, 0)
    log.steps(60, 1, 20).end(60, step=20)
    ledger = booked(log)
    assert [(i.start_s, i.end_s, i.steps_lost) for i in ledger.incidents] == [(20, 30, 10), (34, 40, 4)]
    assert ledger.seconds["rework"] == 14


def test_silent_corruption_rolls_back_past_checkpoints_that_look_fine() -> None:
    log = started(steps=40)
    log.steps(20, 1, 10).save(20, 21, 1, 10).fault(25, id=7, symptom="silent_corruption")
    log.steps(31, 11, 20).save(31, 32, 2, 20).steps(37, 21, 25)
    log.detected(37, 7, "loss").layer(37, "in_job").phase(37, 40, "process_start", "in_job")
    log(40, "resumed", step=10).layer_end(40, "in_job")
    log.steps(50, 11, 20)
    log.fault(50, id=8).detected(50, 8).layer(50, "fixed", 1)
    log.layer_end(50, "fixed", "failed").end(50, "failed", 20)
    ledger = booked(log)
    # The save of step 20 was corrupt, so when the job then fails, step 10 is what it keeps.
    assert spent(ledger) == {
        "startup": 10, "productive": 10, "checkpoint_stall": 2, "rework": 25, "restart.in_job": 3,
    }  # fmt: skip
    first, second = ledger.incidents
    assert (first.start_s, first.faults[0].t_s, first.steps_lost) == (37, 25, 15)
    assert (second.end_s, ledger.unresolved, ledger.kept_steps, ledger.failed) == (None, 1, 10, True)


def test_a_slowdown_is_no_incident_and_a_spare_s_fault_no_interruption() -> None:
    log = started(steps=20, spares={"hot": 1, "cold": 0})
    log.steps(20, 1, 10).fault(20, id=1, symptom="slowdown", class_="thermal")
    log(20, "slow_begin", factor=1.5)
    log.fault(24, id=2, symptom="gpu_error", idle=True)
    log.nodes(24, "node_down", 2, 0, 0, 1)
    log.steps(35, 11, 20, dur_s=15, slow_s=5)
    log(35, "slow_end").end(35, step=20)
    ledger = booked(log)
    assert spent(ledger) == {"startup": 10, "productive": 20, "slowdown": 5}
    assert (ledger.faults_by_class, ledger.idle_faults, ledger.incidents) == ({"thermal": 1}, 1, ())
    assert ledger.gpu_seconds["spare_idle"] == 24 * 8


def test_ideal_checkpoints_keep_parts_of_steps() -> None:
    log = started(steps=20, checkpoint_mode="ideal")
    log.steps(20.25, 1, 10, dur_s=10.25, part=0.25)
    restart(log, 20.25, 30, 10)
    log.steps(30.5, 11, 10, dur_s=0.5, part=0.5)
    restart(log, 30.5, 40, 10)
    log.steps(44.25, 11, 14, dur_s=4.25, part=1.0)
    log.end(44.25, "censored", 14)
    ledger = booked(log)
    assert ledger.seconds["rework"] == 0 and ledger.seconds["productive"] == 15
    assert ledger.kept_steps == 15.0 and ledger.censored


def test_an_ideal_restart_from_within_a_step_keeps_just_that_part() -> None:
    log = started(steps=20, checkpoint_mode="ideal")
    log.steps(20, 1, 10).fault(20, id=1, symptom="silent_corruption").steps(25, 11, 15)
    log.detected(25, 1).layer(25, "fixed").phase(25, 30, "process_start", "fixed")
    log(30, "resumed", step=12, part=0.25).layer_end(30, "fixed")
    log.steps(37.75, 13, 20, dur_s=7.75).end(37.75, step=20)
    assert spent(booked(log)) == {"startup": 10, "productive": 20, "rework": 2.75, "restart.fixed": 5}


def test_a_rollback_knows_that_a_step_begun_before_needed_only_its_rest() -> None:
    log = started(steps=20, checkpoint_mode="ideal")
    log.steps(20.5, 1, 10, dur_s=10.5, part=0.5)
    log.fault(20.5, id=1).detected(20.5, 1).layer(20.5, "fixed")(20.5, "resumed", step=10)
    log.layer_end(20.5, "fixed").fault(20.5, id=2, symptom="silent_corruption")
    log.steps(22, 11, 12, dur_s=1.5).detected(22, 2).layer(22, "fixed", 2)(22, "resumed", step=11)
    log.layer_end(22, "fixed", attempt=2).steps(31, 12, 20).end(31, step=20)
    assert spent(booked(log)) == {"startup": 10, "productive": 20, "rework": 1}


@pytest.mark.parametrize(("outcome", "kept"), [("failed", 10), ("censored", 10), ("completed", 20)])
def test_what_an_ended_run_keeps(outcome: str, kept: int) -> None:
    log = started(steps=20).steps(20, 1, 10).save(20, 21, 1, 10).steps(31, 11, 20).end(31, outcome, 20)
    ledger = booked(log)
    assert ledger.kept_steps == ledger.seconds["productive"] == kept
    assert ledger.seconds["rework"] == 20 - kept


def test_job_end_may_know_that_less_is_kept() -> None:
    log = started(steps=20).steps(20, 1, 10).save(20, 21, 1, 10).steps(31, 11, 20)
    ledger = booked(log.end(31, "failed", 20, kept_step=0))  # the local tier died with its node
    assert (ledger.kept_steps, ledger.seconds["rework"]) == (0, 20)


def test_both_ledgers_when_nodes_come_and_go() -> None:
    log = started(steps=20, nodes=2, spares={"hot": 1, "cold": 2})
    log.steps(20, 1, 10).save(20, 21, 1, 10)
    log.fault(21, id=1, symptom="node_loss").nodes(21, "node_down", 1, 1, 2, 1).detected(22, 1)
    log.layer(22, "node_replacement").phase(22, 30, "node_wait", "node_replacement")
    log.nodes(30, "node_up", 2, 0, 2, 1)
    log.phase(30, 34, "process_start", "node_replacement")(34, "resumed", step=10)
    log.layer_end(34, "node_replacement").nodes(36, "node_up", 2, 1, 2, 0)
    log.steps(44, 11, 20).end(44, step=20)
    ledger = booked(log)
    assert ledger.gpu_seconds == {
        "productive": 20 * 16, "startup": 10 * 16, "checkpoint_stall": 16, "rework": 0, "detect": 8,
        "checkpoint_load": 0, "node_wait": 8 * 8, "slowdown": 0, "restart.node_replacement": 4 * 16,
        "spare_idle": 8 * (30 + 8),
    }  # fmt: skip
    assert ledger.cold_gpu_s == 44 * 2 * 8


def test_a_fault_during_startup_ends_with_the_first_resumed() -> None:
    log = Log(steps=10)
    log(0, "job_start").phase(0, 4, "process_start", cut=True).fault(4).detected(5).layer(5, "in_job")
    log.phase(5, 9, "process_start", "in_job")(9, "resumed", step=0).layer_end(9, "in_job")
    log.steps(19, 1, 10).end(19, step=10)
    ledger = booked(log)
    assert spent(ledger) == {"startup": 4, "detect": 1, "restart.in_job": 4, "productive": 10}
    assert (ledger.incidents[0].start_s, ledger.incidents[0].end_s) == (4, 9)


def test_the_last_phases_of_a_failed_job_are_all_in_the_ledger() -> None:
    log = started(steps=20).steps(15, 1, 5)
    log.fault(15).detected(16).layer(16, "in_job").phase(16, 40, "rendezvous", "in_job")
    log.layer_end(40, "in_job", "failed").end(40, "failed", 5)
    ledger = booked(log)
    assert spent(ledger) == {"startup": 10, "rework": 5, "detect": 1, "restart.in_job": 24}
    assert (ledger.downtime_s, ledger.finish_s, ledger.incidents[0].end_s) == (25, float("inf"), None)


# ---- live and imported logs


def test_measured_steps_give_the_median_as_nominal_and_the_first_excess_to_warmup() -> None:
    log = Log(source="live", nominal_step_s=None, steps=6)
    log(0, "job_start").phase(0, 5, "init")(5, "resumed", step=0)
    for step, (t, dur_s) in enumerate([(9, 4), (10, 1), (11.5, 1.25), (12.5, 1), (13.25, 0.75)], 1):
        log(t, "step", first=step, last=step, dur_s=dur_s)
    log.end(14, "censored", 5, kept_step=5)
    ledger = account(log)
    assert ledger.nominal_step_s == 1
    # Step 3 came 1.5 s after step 2 although it says 1.25: the loop time around a step belongs to it.
    assert spent(ledger) == {"startup": 8, "productive": 4.75, "slowdown": 0.5, "rework": 0.75}


def test_warmup_follows_a_process_start_but_not_an_in_process_restart() -> None:
    def run(layer: str) -> RunLedger:
        log = Log(source="live", steps=4)
        log(0, "resumed", step=0).steps(1, 1, 1)
        log.fault(1).detected(2).layer(2, layer).phase(2, 3, "init", layer)(3, "resumed", step=0)
        log.steps(8, 1, 1, dur_s=5).steps(11, 2, 4).end(11, step=4)
        return account(log)

    # A layer may start a process although it need not.
    def with_process_start() -> RunLedger:
        log = Log(source="live", steps=2)(0, "resumed", step=0).fault(0).detected(0).layer(0, "in_process")
        log.phase(0, 3, "process_start", "in_process")(3, "resumed", step=0).steps(8, 1, 1, dur_s=5)
        return account(log.steps(9, 2, 2).end(9, step=2))

    assert spent(with_process_start()) == {"restart.in_process": 7, "productive": 2}
    assert spent(run("in_job")) == {"rework": 1, "detect": 1, "restart.in_job": 5, "productive": 4}
    assert spent(run("in_process")) == {
        "rework": 1, "detect": 1, "restart.in_process": 1, "productive": 4, "slowdown": 4,
    }  # fmt: skip


def test_loop_time_outside_steps_is_rework_before_a_fault_and_slowdown_otherwise() -> None:
    log = Log(source="live", steps=4)
    log(0, "resumed", step=0).steps(2, 1, 2).save(2.5, 3, 1, 2).steps(5, 3, 4)
    log.fault(5.5).detected(5.5).layer(5.5, "in_job").phase(5.5, 6, "init", "in_job")(6, "resumed", step=2)
    log.steps(8, 3, 4).end(8.25, step=4)
    ledger = account(log)
    # Steps 3..4 ended 2 s after the save (nothing loose); 0.5 s before the save is loose and theirs.
    assert ledger.seconds["rework"] == 0.5 + 2 + 0.5
    assert ledger.seconds["slowdown"] == 0.25
    assert sum(ledger.seconds.values()) == ledger.wall_s


def test_a_restart_that_no_fault_explains_is_an_unknown_interruption() -> None:
    log = Log(source="imported", steps=20)
    log(0, "job_start")(1, "resumed", step=0).steps(11, 1, 10).save(11, 12, 1, 10).steps(15, 11, 13)
    log(40, "job_start")
    log.phase(42, 45, "checkpoint_load")(45, "resumed", step=10).steps(55, 11, 20).end(55, step=20)
    ledger = account(log)
    assert spent(ledger) == {
        "startup": 1, "productive": 20, "checkpoint_stall": 1, "rework": 3, "restart.fixed": 27,
        "checkpoint_load": 3,
    }  # fmt: skip
    assert ledger.faults_by_class == {"unknown": 1}
    assert ledger.incidents[0].by_phase == {"restart": 27, "checkpoint_load": 3}


def test_a_step_before_any_word_of_the_loop_ends_the_startup() -> None:
    log = Log(source="imported", steps=9)(0, "job_start").phase(0, 2, "process_start").steps(10, 1, 3)
    log.fault(10).phase(12, 15, "process_start")(15, "resumed", step=0).steps(24, 1, 9).end(24, step=9)
    ledger = account(log)
    assert spent(ledger) == {"startup": 7, "rework": 3, "restart.fixed": 5, "productive": 9}
    assert (ledger.first_loop_s, ledger.first_process_s) == (7, 2)


def test_steps_that_repeat_without_any_word_of_a_restart_are_rework() -> None:
    log = Log(source="imported", steps=20)
    log(0, "resumed", step=0).steps(10, 1, 10).steps(25, 6, 20).end(25, step=20)
    assert spent(account(log)) == {"productive": 20, "rework": 5}


@pytest.mark.parametrize(("source", "category"), [("live", "detect"), ("imported", "restart.fixed")])
def test_a_log_that_ends_unnoticed(source: str, category: str) -> None:
    log = Log(source=source, steps=20)
    log(0, "resumed", step=0).steps(5, 1, 5).fault(5, symptom="hang")(9, "run_end")
    ledger = account(log)
    assert spent(ledger) == {"rework": 5, category: 4}
    assert (ledger.outcome, ledger.censored) == ("cut", True)


def test_a_torn_log_that_reached_its_last_step_is_complete() -> None:
    log = Log(source="live", steps=5)(0, "resumed", step=0).steps(5, 1, 5)
    assert account(log).outcome == "completed"
    assert account(log[:-1]).outcome == "cut"
    assert account([]).wall_s == 0
    without_head = account(log[2:])
    assert (without_head.wall_s, without_head.outcome, without_head.seconds["rework"]) == (5, "cut", 5)


def test_a_bad_event_is_named() -> None:
    with pytest.raises(
        EventError, match=r"^event 1 \(step\): last: missing; dur_s: must be number \(got None\)$"
    ):
        account([*Log(), {"v": 1, "t": 3, "kind": "step", "first": 1, "dur_s": None}])
    with pytest.raises(EventError, match=r"^event 0 \(None\): v: missing; t: missing; kind: missing$"):
        account([{}])


def test_phases_that_a_crash_left_open_end_at_the_next_fault() -> None:
    log = Log(source="live", steps=5)
    log(0, "resumed", step=0).steps(2, 1, 2).fault(2, id=1).detected(2, 1).layer(2, "in_job")
    log(2, "phase_begin", phase="checkpoint_load", layer="in_job", attempt=1)
    log.fault(5, id=2).detected(8, 2)(10, "job_start")(11, "resumed", step=0).steps(16, 1, 5).end(16, step=5)
    assert spent(account(log)) == {
        "rework": 2, "checkpoint_load": 3, "detect": 3, "restart.in_job": 3, "productive": 5,
    }  # fmt: skip


def test_a_gap_in_a_new_incident_is_not_charged_to_the_layer_of_the_last_one() -> None:
    log = Log(source="live", steps=5)
    log(0, "resumed", step=0).fault(0, id=1).detected(0, 1).layer(0, "in_job")(3, "resumed", step=0)
    log.fault(3, id=2).detected(4, 2)(9, "resumed", step=0).steps(14, 1, 5).end(14, step=5)
    ledger = account(log)
    assert spent(ledger) == {"restart.in_job": 3, "detect": 1, "restart.fixed": 5, "productive": 5}
    assert [incident.restart_events for incident in ledger.incidents] == [1, 1]


def test_a_step_that_ran_on_while_the_fault_struck_ends_no_incident() -> None:
    log = Log(source="live", steps=5)
    log(0, "resumed", step=0).steps(1, 1, 1).fault(1.5, symptom="hang").steps(2, 2, 2)
    log.detected(9).layer(9, "in_job")(10, "resumed", step=0).steps(15, 1, 5).end(15, step=5)
    assert spent(account(log)) == {"rework": 1.5, "detect": 7.5, "restart.in_job": 1, "productive": 5}


# ---- the AWS clocks


def aws_run(layer: str) -> RunLedger:
    log = Log(steps=20)
    log(0, "job_start").phase(0, 4, "process_start").phase(4, 10, "init")(10, "resumed", step=0)
    log.steps(20, 1, 10).save(20, 25, 1, 10).steps(28, 11, 13)
    log.fault(28).detected(29).layer(29, layer).phase(29, 38, "init", layer)(38, "resumed", step=10)
    log.layer_end(38, layer).steps(48, 11, 20).save(48, 53, 2, 20).end(53, step=20)
    return booked(log)


def test_the_aws_loop_clock_runs_through_in_process_restarts_only() -> None:
    assert aws_run("in_process").first_process_s == 4
    assert aws_run("in_process").loop_clock_s == (53 - 10) - 10
    assert aws_run("in_job").loop_clock_s == 10 + 10  # the three steps after the first save died unwritten


def test_the_aws_clock_takes_a_save_that_was_cut_for_loop_time() -> None:
    log = Log(steps=20)(0, "job_start")(0, "resumed", step=0).steps(10, 1, 10)
    log(10, "save_begin", id=1, step=10, tier=None).fault(14).detected(14).layer(14, "in_process")
    log.phase(14, 20, "init", "in_process")(20, "resumed", step=0).layer_end(20, "in_process")
    log.steps(40, 1, 20).save(40, 45, 2, 20).end(45, step=20)
    ledger = booked(log)
    assert ledger.loop_clock_s == 40
    assert ledger.seconds["checkpoint_stall"] == 9


def test_fifteen_thousand_events_take_well_under_a_tenth_of_a_second() -> None:
    log, t, step = Log(steps=10**6), 10.0, 0
    log(0, "job_start").phase(0, 10, "init")(10, "resumed", step=0)
    for incident in range(900):
        for save in range(3):
            log.steps(t + 100, step + 1, step + 100)
            t, step = t + 100, step + 100
            log.save(t, t + 9, f"{incident}/{save}", step, staged=t + 3)
            t += 9
        log.steps(t + 50, step + 1, step + 50)
        t += 50
        log.fault(t, id=incident).detected(t + 1, incident).layer(t + 1, "in_job")
        log.phase(t + 1, t + 20, "process_start", "in_job")(t + 20, "resumed", step=step)
        log.layer_end(t + 20, "in_job")
        t += 20
    log.end(t, "censored", step)
    assert len(log) > 15_000
    took = []
    for _ in range(5):
        begin = time.process_time()
        ledger = account(log)
        took.append(time.process_time() - begin)
    assert sum(ledger.seconds.values()) == pytest.approx(ledger.wall_s, rel=1e-12)
    assert min(took) < 0.1
