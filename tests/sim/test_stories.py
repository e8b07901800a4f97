"""Incidents told event by event: detection, the layers, their budgets, and faults that come on top of each other.

The tiny job and the way its log is written are explained in stories.py.
"""

from sim.draws import stream_id, u
from tests.sim.stories import BEGIN, brief, classes, every, merged, recovery, rest, scheduled, tell

START = {"workload": {"process_start": 3, "init": 2, "warmup": 1}}
FIXED = {"detect": 1, "restart": 2}


def faults(*steps, symptom="exception"):
    """Let one fault strike rank 0 at each of these steps."""
    return {"failures": {"schedule": [{"step": step, "rank": 0, "symptom": symptom} for step in steps]}}


def spread(name, number=1, attempt=0):
    """Return the draw of something that is spread evenly, in the run of seed 1: incident `number`, this attempt."""
    return u(1, 0, stream_id(name) >> 2, number, attempt)


# --- the plain course of things


def test_no_fault():
    told = tell(START)
    assert told.lines == [
        "3 process_start 3",
        "5 init 2",
        "6 warmup 1",
        "6 resumed 0",
        "10 steps 1-4",
        "10 save 1 begins",
        "12 save 1 durable",
        *rest(12, 2),
    ]
    assert told.seconds == {"startup": 6, "productive": 8, "checkpoint_stall": 4}


def test_the_clock_may_begin_after_the_first_process_start():
    told = tell(START, {"workload": {"count_first_process_start": False}})
    assert told.lines[:3] == ["2 init 2", "3 warmup 1", "3 resumed 0"]
    assert told.seconds == {"startup": 3, "productive": 8, "checkpoint_stall": 4}


def test_a_fault_before_any_checkpoint_loads_nothing_and_begins_at_step_0():
    told = tell(scheduled(3))
    assert told.lines == [
        "0 resumed 0",
        "3 steps 1-3",
        "3 fault 1 exception rank 3 node 1",
        "4 fault 1 noticed by fixed",
        "4 fixed 1 begins",
        "6 process_start 2",
        "6 fixed 1 resumed",
        "6 resumed 0",
        "10 steps 1-4",
        "10 save 1 begins",
        "12 save 1 durable",
        *rest(12, 2),
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 4,
        "rework": 3,
        "detect": 1,
        "restart.fixed": 2,
    }


def test_a_fault_in_the_first_start_ends_it():
    told = tell(START, classes(every(4)), {"limits": {"max_wall": 8}})
    assert told.lines == [
        "3 process_start 3",
        "4 init 1 cut",
        "4 fault 1 exception",
        "5 fault 1 noticed by fixed",
        "5 fixed 1 begins",
        "7 process_start 2",
        "8 warmup 1",
        "8 fixed 1 resumed",
        "8 resumed 0",
        "8 censored at 0, kept 0: limits.max_wall reached",
    ]
    assert told.seconds == {"startup": 4, "detect": 1, "restart.fixed": 3}


def test_the_limit_of_the_wall_time_cuts_an_incident_short():
    told = tell(scheduled(6), {"limits": {"max_wall": 10}})
    assert told.lines[-3:] == [
        "9 fixed 1 begins",
        "10 process_start 1 cut",
        "10 censored at 6, kept 4: limits.max_wall reached",
    ]
    assert told.seconds == {
        "productive": 4,
        "checkpoint_stall": 2,
        "rework": 2,
        "detect": 1,
        "restart.fixed": 1,
    }


def test_a_job_that_ends_at_the_limit_has_ended():
    assert tell({"limits": {"max_wall": 12}}).lines == [*BEGIN, *rest(6, 2)]


# --- faults that come on top of each other


def test_a_fault_during_recovery_joins_the_incident_and_is_charged_to_the_budget():
    told = tell(
        START,
        classes(every(8)),
        recovery("in_job", in_job={"max_restarts": 2, "max_no_progress_cycles": 0}),
    )
    assert told.lines == [
        "3 process_start 3",
        "5 init 2",
        "6 warmup 1",
        "6 resumed 0",
        "8 steps 1-2",
        "8 fault 1 exception",
        "8 fault 1 noticed by monitor",
        "8 in_job 1 begins",
        "9 abort 1",
        "11 rendezvous 2",
        "14 process_start 3",
        "16 init 2 cut",
        "16 in_job 1 cut: exception",
        "16 fault 2 exception",
        "16 fault 2 noticed by monitor",
        "16 in_job 2 begins",
        "17 abort 1",
        "19 rendezvous 2",
        "22 process_start 3",
        "24 init 2 cut",
        "24 in_job 2 cut: exception",
        "24 fault 3 exception",
        "24 fault 3 noticed by monitor",
        "24 failed at 2, kept 0: restart budget (max_restarts) exhausted",
    ]
    assert told.seconds == {"startup": 6, "rework": 2, "restart.in_job": 16}
    (incident,) = told.ledger.incidents
    assert (incident.restart_events, len(incident.faults), incident.end_s) == (2, 3, None)


def test_a_fault_during_rework_opens_a_new_incident():
    told = tell(merged(faults(7), classes(every(14))))
    assert told.lines == [
        *BEGIN,
        "9 steps 5-7",
        "9 fault 1 exception rank 0 node 0",
        "10 fault 1 noticed by fixed",
        "10 fixed 1 begins",
        "12 process_start 2",
        "13 checkpoint_load 1",
        "13 fixed 1 resumed",
        "13 resumed 4",
        "14 steps 5-5",
        "14 fault 2 exception",
        "15 fault 2 noticed by fixed",
        "15 fixed 1 begins",
        "17 process_start 2",
        "18 checkpoint_load 1",
        "18 fixed 1 resumed",
        "18 resumed 4",
        *rest(18, 2),
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 4,
        "rework": 4,
        "detect": 2,
        "checkpoint_load": 2,
        "restart.fixed": 4,
    }
    assert [incident.steps_lost for incident in told.ledger.incidents] == [3, 1]


def test_faults_scheduled_for_one_step_make_one_incident_at_the_layer_that_contains_both():
    schedule = [
        {"step": 7, "rank": 0, "symptom": "exception"},
        {"step": 7, "rank": 2, "symptom": "process_exit"},
    ]
    told = tell({"failures": {"schedule": schedule}}, recovery("in_process", "in_job"))
    assert told.during("fault 1") == [
        "9 fault 1 exception rank 0 node 0",
        "9 fault 2 process_exit rank 2 node 1",
        "9 fault 1 noticed by monitor",
        "9 in_job 1 begins",
        "10 abort 1",
        "12 rendezvous 2",
        "13 checkpoint_load 1",
        "13 in_job 1 resumed",
    ]
    assert told.ledger.interruptions == 2


def test_the_first_of_two_notices_ends_the_detection_and_is_the_one_named():
    told = tell(classes(every(8, "hang", "stuck"), every(10)), recovery("in_job", nccl_timeout=50))
    assert told.during("fault 1") == [
        "8 fault 1 hang",
        "10 fault 2 exception",
        "10 fault 2 noticed by monitor",
        "10 in_job 1 begins",
        "11 abort 1",
        "13 rendezvous 2",
        "14 checkpoint_load 1",
        "14 in_job 1 resumed",
    ]


# --- a hang, by each detector


def hang(*layers, gil="free", **settings):
    """Return the story of a hang at 8 until the loop runs again."""
    told = tell(scheduled(6, "hang", gil=gil), recovery(*layers, **settings))
    assert told.lines[:6] == [*BEGIN, "8 steps 5-6", "8 fault 1 hang rank 3 node 1"]
    assert told.lines[-1].endswith("completed 8")
    return told


def in_job_from(t, attempt=1):
    """Return the lines of an in-job restart of the tiny job that begins at `t`."""
    times = [brief(t + s) for s in (0, 1, 3, 4)]
    return [
        f"{times[0]} in_job {attempt} begins",
        f"{times[1]} abort 1",
        f"{times[2]} rendezvous 2",
        f"{times[3]} checkpoint_load 1",
        f"{times[3]} in_job {attempt} resumed",
    ]


def test_hang_in_process_by_the_soft_timeout():
    told = hang("in_process", "in_job", in_process={"soft_timeout": 10}, nccl_timeout=60)
    assert told.during("fault 1") == [
        "8 fault 1 hang rank 3 node 1",
        "18 fault 1 noticed by soft_timeout",
        "18 in_process 1 begins",
        "20 abort 2",
        "21 rendezvous 1",
        "22 checkpoint_load 1",
        "22 in_process 1 resumed",
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 4,
        "rework": 2,
        "detect": 10,
        "checkpoint_load": 1,
        "restart.in_process": 3,
    }


def test_hang_that_holds_the_gil_by_the_hard_timeout_and_the_grace():
    timeouts = {"soft_timeout": 10, "hard_timeout": 15, "termination_grace": 2}
    told = hang("in_process", "in_job", gil="held", in_process=timeouts, nccl_timeout=60)
    assert told.during("noticed") == ["25 fault 1 noticed by hard_timeout", *in_job_from(25)]


def test_hang_under_a_watchdog_shorter_than_the_soft_timeout():
    told = hang("in_process", "in_job", in_process={"soft_timeout": 10}, nccl_timeout=5)
    assert told.during("noticed") == ["13 fault 1 noticed by nccl_watchdog", *in_job_from(13)]


def test_hang_under_a_heartbeat_shorter_than_the_soft_timeout():
    late = 5 * spread("heartbeat_check")  # the launcher checks every 5 s
    told = hang("in_process", "in_job", in_process={"soft_timeout": 20}, in_job={"heartbeat_timeout": 3})
    assert told.during("noticed") == [
        f"{brief(11 + late)} fault 1 noticed by heartbeat",
        *in_job_from(11 + late),
    ]


def test_hang_in_job_by_the_watchdog():
    told = hang("in_job", nccl_timeout=5)
    assert told.during("noticed") == ["13 fault 1 noticed by nccl_watchdog", *in_job_from(13)]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 4,
        "rework": 2,
        "detect": 5,
        "checkpoint_load": 1,
        "restart.in_job": 3,
    }


def test_hang_in_job_by_the_heartbeat_or_the_section_timeout_of_a_step():
    t = 15 + 5 * spread("heartbeat_check")
    for timeouts in ({"heartbeat_timeout": 7}, {"section_timeouts": {"step": 7}}):
        told = hang("in_job", nccl_timeout="off", in_job=timeouts)
        assert told.during("noticed") == [f"{brief(t)} fault 1 noticed by heartbeat", *in_job_from(t)]


def test_hang_that_only_a_person_notices():
    told = hang("in_job", nccl_timeout="off", human_response=50)
    assert told.during("noticed") == ["58 fault 1 noticed by human", *in_job_from(58)]
    assert told.seconds["detect"] == 50


def test_hang_by_the_law_of_its_class():
    told = tell(classes(every(11, "hang", detect=6)), recovery("in_job"))
    assert told.during("fault 1") == [
        "11 fault 1 hang",
        "11 save 2 lost",
        "17 fault 1 noticed by class",
        *in_job_from(17),
    ]


def test_hang_by_fixed():
    told = hang("fixed", fixed={"detect": 9, "restart": 2})
    assert told.during("noticed") == [
        "17 fault 1 noticed by fixed",
        "17 fixed 1 begins",
        "19 process_start 2",
        "20 checkpoint_load 1",
        "20 fixed 1 resumed",
    ]


def test_hang_that_nothing_notices_lasts_until_the_limit():
    told = tell(scheduled(6, "hang"), recovery("in_job", nccl_timeout="off"), {"limits": {"max_wall": 99}})
    assert told.after("fault 1") == [
        "8 fault 1 hang rank 3 node 1",
        "99 censored at 6, kept 4: limits.max_wall reached",
    ]
    assert told.seconds == {"productive": 4, "checkpoint_stall": 2, "rework": 2, "detect": 91}


# --- which layer, and the next one


def test_process_exit_in_process_under_torchrun_escalates_to_fixed():
    told = tell(
        scheduled(6, "process_exit"), recovery("in_process", "fixed", launcher="torchrun", fixed=FIXED)
    )
    assert told.after("fault 1") == [
        "8 fault 1 process_exit rank 3 node 1",
        "9 fault 1 noticed by fixed",
        "9 fixed 1 begins",
        "11 process_start 2",
        "12 checkpoint_load 1",
        "12 fixed 1 resumed",
        "12 resumed 4",
        *rest(12, 2),
    ]


def test_process_exit_in_process_under_torchrun_alone_fails_the_job():
    told = tell(classes(every(10, "process_exit", detect=2)), recovery("in_process", launcher="torchrun"))
    assert told.lines == [
        *BEGIN,
        "10 steps 5-8",
        "10 save 2 begins",
        "10 fault 1 process_exit",
        "10 save 2 lost",
        "12 fault 1 noticed by class",
        "12 failed at 8, kept 4: no enabled layer contains this fault",
    ]
    assert told.seconds == {"productive": 4, "checkpoint_stall": 2, "rework": 4, "detect": 2}


def test_process_exit_in_process_takes_a_reserve_rank_while_there_is_one():
    told = tell(
        faults(6, 7, symptom="process_exit"),
        recovery("in_process", "fixed", launcher="direct", fixed=FIXED, in_process={"reserve_ranks": 1}),
    )
    assert told.lines == [
        *BEGIN,
        "8 steps 5-6",
        "8 fault 1 process_exit rank 0 node 0",
        "8 fault 1 noticed by monitor",
        "8 in_process 1 begins",
        "10 abort 2",
        "11 rendezvous 1",
        "12 checkpoint_load 1",
        "12 in_process 1 resumed",
        "12 resumed 4",
        "15 steps 5-7",
        "15 fault 2 process_exit rank 0 node 0",
        "16 fault 2 noticed by fixed",
        "16 fixed 1 begins",
        "18 process_start 2",
        "19 checkpoint_load 1",
        "19 fixed 1 resumed",
        "19 resumed 4",
        *rest(19, 2),
    ]


def test_new_processes_bring_back_the_budget_and_the_reserve_of_in_process():
    told = tell(
        faults(5, 6, 7, symptom="process_exit"),
        recovery("in_process", "fixed", launcher="direct", fixed=FIXED, in_process={"reserve_ranks": 1}),
    )
    begins = [line.split()[1] for line in told.lines if line.endswith(" begins") and "save" not in line]
    assert begins == ["in_process", "fixed", "in_process"]


def test_a_layer_whose_attempt_fails_hands_over_and_its_time_counts():
    told = tell(
        scheduled(6),
        recovery(
            "in_process", "in_job", "fixed", fixed=FIXED, in_process={"success": 0}, in_job={"success": 0}
        ),
    )
    assert told.during("fault 1") == [
        "8 fault 1 exception rank 3 node 1",
        "8 fault 1 noticed by monitor",
        "8 in_process 1 begins",
        "10 abort 2",
        "11 rendezvous 1",
        "11 in_process 1 escalated: the restart attempt failed",
        "11 detect 0",
        "11 in_job 2 begins",
        "12 abort 1",
        "12 in_job 2 escalated: the restart attempt failed",
        "13 detect 1",
        "13 fixed 3 begins",
        "15 process_start 2",
        "16 checkpoint_load 1",
        "16 fixed 3 resumed",
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 4,
        "rework": 2,
        "detect": 1,
        "checkpoint_load": 1,
        "restart.in_process": 3,
        "restart.in_job": 1,
        "restart.fixed": 2,
    }


def test_a_job_whose_last_layer_gives_up_fails_and_says_why():
    told = tell(scheduled(6), recovery("in_job", in_job={"success": 0}))
    assert told.after("9 in_job") == [
        "9 in_job 1 failed: the restart attempt failed",
        "9 detect 0",
        "9 failed at 6, kept 4: the restart attempt failed, and no further layer takes over",
    ]


def test_a_job_whose_budget_is_exhausted_fails_and_says_so():
    told = tell(faults(6, 7), recovery("in_job", in_job={"max_restarts": 1}))
    assert told.lines == [
        *BEGIN,
        "8 steps 5-6",
        "8 fault 1 exception rank 0 node 0",
        "8 fault 1 noticed by monitor",
        *in_job_from(8),
        "12 resumed 4",
        "15 steps 5-7",
        "15 fault 2 exception rank 0 node 0",
        "15 fault 2 noticed by monitor",
        "15 failed at 7, kept 4: restart budget (max_restarts) exhausted",
    ]
    assert told.seconds == {
        "productive": 4,
        "checkpoint_stall": 2,
        "rework": 5,
        "checkpoint_load": 1,
        "restart.in_job": 3,
    }
    assert told.ledger.failed and told.ledger.kept_steps == 4


def test_a_budget_is_full_again_after_a_restart_from_outside():
    told = tell(faults(5, 6, 7), recovery("in_job", "fixed", fixed=FIXED, in_job={"max_restarts": 1}))
    begins = [line.split()[1] for line in told.lines if line.endswith(" begins") and "save" not in line]
    assert begins == ["in_job", "fixed", "in_job"]


def test_the_launcher_stops_a_job_that_makes_no_progress():
    told = tell(faults(1, 2, 3, 4), recovery("in_job", in_job={"max_no_progress_cycles": 3}))
    why = "no progress: max_no_progress_cycles restarts without a new checkpoint"
    assert told.after("12 steps") == [
        "12 steps 1-3",
        "12 fault 3 exception rank 0 node 0",
        "12 fault 3 noticed by monitor",
        "12 detect 0",
        f"12 failed at 3, kept 0: {why}",
    ]
    assert told.seconds == {"rework": 6, "restart.in_job": 6}


def test_a_new_checkpoint_is_progress():
    told = tell(faults(1, 2, 5, 6), recovery("in_job", in_job={"max_no_progress_cycles": 3}))
    assert told.ledger.completed and len(told.ledger.incidents) == 4


# --- the initial heartbeat timeout


def test_a_first_start_longer_than_the_initial_heartbeat_timeout_never_gets_anywhere():
    told = tell(
        {"workload": {"process_start": 3, "init": 3}},
        recovery("in_job", in_job={"initial_heartbeat_timeout": 5, "max_restarts": 1}),
    )
    assert told.lines == [
        "3 process_start 3",
        "5 init 2 cut",
        "5 fault 1 process_exit",
        "5 fault 1 noticed by monitor",
        "5 in_job 1 begins",
        "6 abort 1",
        "8 rendezvous 2",
        "11 process_start 3",
        "13 init 2",
        "13 in_job 1 failed: start-up outlasted the initial heartbeat timeout",
        "13 detect 0",
        "13 failed at 0, kept 0: restart budget (max_restarts) exhausted",
    ]
    assert told.seconds == {"startup": 5, "restart.in_job": 8}


def test_the_load_counts_against_the_initial_heartbeat_timeout():
    told = tell(
        START,
        {"checkpoint": {"load_time": 5}},
        scheduled(6),
        recovery("in_job", "fixed", fixed=FIXED, in_job={"initial_heartbeat_timeout": 8, "max_restarts": 1}),
    )
    assert told.during("in_job 1") == [
        "14 in_job 1 begins",
        "15 abort 1",
        "17 rendezvous 2",
        "20 process_start 3",
        "22 init 2",
        "25 checkpoint_load 3",
        "25 in_job 1 escalated: start-up outlasted the initial heartbeat timeout",
        "26 detect 1",
        "26 fixed 2 begins",
        "28 process_start 2",
        "33 checkpoint_load 5",
        "34 warmup 1",
        "34 fixed 2 resumed",
    ]


def test_a_start_that_just_makes_it_is_in_time():
    told = tell(START, scheduled(6), recovery("in_job", in_job={"initial_heartbeat_timeout": 7}))
    assert told.ledger.completed and told.seconds["restart.in_job"] == 9
