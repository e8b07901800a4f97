"""Saves told event by event: faults that strike them, busy writers, ties, and what a restart finds.

The tiny job and the way its log is written are explained in stories.py.
"""

import pytest

from tests.sim.stories import ASYNC, BEGIN, classes, every, merged, recovery, rest, scheduled, tell

IDEAL = {"checkpoint": {"mode": "ideal"}}
FIXED = {"detect": 1, "restart": 2}


def fixed_from(t, load=True):
    """Return the lines of a fixed restart of the tiny job whose fault strikes at `t`, after the fault itself."""
    return [
        f"{t + 1} fault 1 noticed by fixed",
        f"{t + 1} fixed 1 begins",
        f"{t + 3} process_start 2",
        *([f"{t + 4} checkpoint_load 1"] if load else []),
        f"{t + 3 + load} fixed 1 resumed",
    ]


# --- faults during a write


def test_a_sync_save_that_a_fault_interrupts_is_lost():
    told = tell(classes(every(11)))
    assert told.lines == [
        *BEGIN,
        "10 steps 5-8",
        "10 save 2 begins",
        "11 fault 1 exception",
        "11 save 2 lost",
        *fixed_from(11),
        "15 resumed 4",
        *rest(15, 3),
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 5,
        "rework": 4,
        "detect": 1,
        "checkpoint_load": 1,
        "restart.fixed": 2,
    }


def test_the_abort_of_an_atomic_save_waits_for_the_write():
    told = tell(classes(every(11)), recovery("in_process", in_process={"atomic": True}))
    assert told.lines == [
        *BEGIN,
        "10 steps 5-8",
        "10 save 2 begins",
        "11 fault 1 exception",
        "11 fault 1 noticed by monitor",
        "11 in_process 1 begins",
        "12 save 2 durable",
        "14 abort 3",
        "15 rendezvous 1",
        "16 checkpoint_load 1",
        "16 in_process 1 resumed",
        "16 resumed 8",  # all steps are in the save: nothing is left to do
        "16 completed 8",
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 3,
        "checkpoint_load": 1,
        "restart.in_process": 4,
    }


def test_the_abort_of_an_atomic_save_waits_no_longer_than_the_nccl_timeout():
    told = tell(
        {"checkpoint": {"write_time": 6}, "limits": {"max_wall": 12}},
        classes(every(7)),
        recovery("in_process", nccl_timeout=2, in_process={"atomic": True}),
    )
    assert told.lines == [
        "0 resumed 0",
        "4 steps 1-4",
        "4 save 1 begins",
        "7 fault 1 exception",
        "7 fault 1 noticed by monitor",
        "7 in_process 1 begins",
        "9 save 1 lost",
        "11 abort 4",
        "12 rendezvous 1",
        "12 in_process 1 resumed",
        "12 resumed 0",
        "12 censored at 0, kept 0: limits.max_wall reached",
    ]
    assert told.seconds == {"rework": 4, "checkpoint_stall": 3, "restart.in_process": 5}


def test_an_atomic_save_that_ends_with_the_abort_is_durable():
    no_time = {"atomic": True, "abort": 0, "unwind": 0, "barrier": 0}
    told = tell(classes(every(11)), recovery("in_process", in_process=no_time))
    assert told.during("fault 1") == [
        "11 fault 1 exception",
        "11 fault 1 noticed by monitor",
        "11 in_process 1 begins",
        "12 save 2 durable",
        "12 abort 1",
        "13 checkpoint_load 1",
        "13 in_process 1 resumed",
    ]


def test_atomic_does_not_help_against_a_fault_that_in_process_does_not_contain():
    settings = {"fixed": FIXED, "in_process": {"atomic": True}}
    told = tell(classes(every(11, "process_exit")), recovery("in_process", "fixed", **settings))
    assert told.during("fault 1") == ["11 fault 1 process_exit", "11 save 2 lost", *fixed_from(11)]


def test_the_last_call_comes_before_the_wait_for_an_atomic_save():
    told = tell(classes(every(11)), recovery("in_process", in_process={"atomic": True, "last_call_wait": 5}))
    assert told.during("fault 1")[2:6] == [
        "11 in_process 1 begins",
        "12 save 2 durable",
        "18 abort 7",  # last call 5, abort 1, unwind 1: the write has ended meanwhile
        "19 rendezvous 1",
    ]


def test_a_second_fault_leaves_an_atomic_save_to_its_layer():
    told = tell(
        {"checkpoint": {"write_time": 9}, "limits": {"max_wall": 14}},
        classes(every(5), every(6, name="also")),
        recovery("in_process", nccl_timeout=50, in_process={"atomic": True}),
    )
    assert told.after("fault 1") == [
        "5 fault 1 exception",
        "5 fault 1 noticed by monitor",
        "5 in_process 1 begins",
        "6 abort 1 cut",
        "6 in_process 1 cut: exception",
        "6 fault 2 exception",
        "6 fault 2 noticed by monitor",
        "6 in_process 2 begins",
        "10 abort 4 cut",
        "10 in_process 2 cut: exception",
        "10 fault 3 exception",
        "10 fault 3 noticed by monitor",
        "10 in_process 3 begins",
        "12 abort 2 cut",
        "12 in_process 3 cut: exception",
        "12 fault 4 exception",
        "12 fault 4 noticed by monitor",
        "12 in_process 4 begins",
        "13 save 1 durable",
        "14 abort 2 cut",
        "14 censored at 4, kept 4: limits.max_wall reached",
    ]


def test_an_async_write_in_flight_is_lost_with_a_fault():
    told = tell(ASYNC, classes(every(12)))
    assert told.lines == [
        "0 resumed 0",
        "4 steps 1-4",
        "4 save 1 begins",
        "5 save 1 staged",
        "8 save 1 durable",
        "9 steps 5-8",
        "9 save 2 begins",
        "10 save 2 staged",
        "10 drain 2 begins",
        "12 fault 1 exception",
        "12 save 2 lost",
        *fixed_from(12),
        "16 resumed 4",
        "20 steps 5-8",
        "20 save 3 begins",
        "21 save 3 staged",
        "21 drain 3 begins",
        "24 save 3 durable",
        "24 save 3 staged",
        "24 completed 8",
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 8,
        "rework": 4,
        "detect": 1,
        "checkpoint_load": 1,
        "restart.fixed": 2,
    }


def test_a_fault_while_the_loop_runs_beside_a_write_loses_steps_and_write():
    told = tell(ASYNC, scheduled(6))
    assert told.lines[:9] == [
        "0 resumed 0",
        "4 steps 1-4",
        "4 save 1 begins",
        "5 save 1 staged",
        "7 steps 5-6",
        "7 fault 1 exception rank 3 node 1",
        "7 save 1 lost",
        "8 fault 1 noticed by fixed",
        "8 fixed 1 begins",
    ]
    assert told.after("resumed")[0] == "0 resumed 0" and "10 resumed 0" in told.lines
    assert told.seconds["rework"] == 6


def test_a_staging_that_a_fault_interrupts_is_lost_even_where_writes_survive():
    told = tell(
        ASYNC,
        {"checkpoint": {"stall_time": 3, "write_survives": "all"}},
        classes(every(6)),
        {"limits": {"max_wall": 7.5}},
    )
    assert told.after("fault 1") == [
        "6 fault 1 exception",
        "6 save 1 lost",
        "7 fault 1 noticed by fixed",
        "7 fixed 1 begins",
        "7.5 process_start 0.5 cut",
        "7.5 censored at 4, kept 0: limits.max_wall reached",
    ]


def test_a_write_that_survives_the_fault_is_what_the_restart_loads():
    short = {"workload": {"steps": 6}, "checkpoint": {"write_survives": ["exception"], "final_save": False}}
    told = tell(ASYNC, short, classes(every(6)))
    assert told.lines == [
        "0 resumed 0",
        "4 steps 1-4",
        "4 save 1 begins",
        "5 save 1 staged",
        "6 steps 5-5",
        "6 fault 1 exception",
        "7 fault 1 noticed by fixed",
        "7 fixed 1 begins",
        "8 save 1 durable",
        "9 process_start 2",
        "10 checkpoint_load 1",
        "10 fixed 1 resumed",
        "10 resumed 4",
        "12 steps 5-6",
        "12 completed 6",
    ]
    assert told.seconds == {
        "productive": 6,
        "checkpoint_stall": 1,
        "rework": 1,
        "detect": 1,
        "checkpoint_load": 1,
        "restart.fixed": 2,
    }
    sync = tell(short, classes(every(5)), {"workload": {"steps": 5}})
    assert sync.lines[3:6] == ["5 fault 1 exception", "6 fault 1 noticed by fixed", "6 fixed 1 begins"]
    assert sync.after("save 1 durable")[-1] == "10 completed 5"


def test_a_write_that_survives_but_ends_after_the_load_has_begun_is_given_up():
    late = {"write_time": 9, "write_survives": ["exception"]}
    told = tell(ASYNC, {"checkpoint": late, "limits": {"max_wall": 12}}, classes(every(7)))
    assert told.after("fault 1") == [
        "7 fault 1 exception",
        "8 fault 1 noticed by fixed",
        "8 fixed 1 begins",
        "10 save 1 lost",  # due at 14
        "10 process_start 2",
        "10 fixed 1 resumed",
        "10 resumed 0",
        "12 steps 1-2",
        "12 censored at 2, kept 0: limits.max_wall reached",
    ]


def test_a_write_that_survives_other_symptoms_is_lost():
    short = {"workload": {"steps": 6}, "checkpoint": {"write_survives": ["hang"], "final_save": False}}
    assert "6 save 1 lost" in tell(ASYNC, short, classes(every(6))).lines


# --- ties and ends


@pytest.mark.parametrize(("mode", "at"), [({}, 6), (ASYNC, 8)])
def test_at_a_tie_the_save_is_durable_before_the_fault(mode, at):
    told = tell(mode, classes(every(at)), {"workload": {"steps": 9}, "limits": {"max_wall": at + 4}})
    i = told.lines.index(f"{at} save 1 durable")
    assert f"{at} fault 1 exception" in told.lines[i + 1 :]
    assert f"{at + 4} resumed 4" in told.lines


def test_a_fault_during_the_final_save_repeats_the_last_steps():
    told = tell(classes(every(11)), {"workload": {"steps": 7}}, {"checkpoint": {"write_time": 3}})
    assert told.lines == [
        "0 resumed 0",
        "4 steps 1-4",
        "4 save 1 begins",
        "7 save 1 durable",
        "10 steps 5-7",
        "10 save 2 begins",
        "11 fault 1 exception",
        "11 save 2 lost",
        *fixed_from(11),
        "15 resumed 4",
        "18 steps 5-7",
        "18 save 3 begins",
        "21 save 3 durable",
        "21 completed 7",
    ]


def test_without_a_final_save_the_job_ends_with_its_last_step():
    told = tell({"checkpoint": {"final_save": False}})
    assert told.lines == [*BEGIN, "10 steps 5-8", "10 completed 8"]
    assert told.seconds == {"productive": 8, "checkpoint_stall": 2}
    assert told.ledger.kept_steps == 8


def test_without_a_final_save_the_job_still_waits_for_its_writer():
    told = tell(ASYNC, {"checkpoint": {"final_save": False}, "workload": {"steps": 6}})
    assert told.after("steps 5") == [
        "7 steps 5-6",
        "7 drain 1 begins",
        "8 save 1 durable",
        "8 save 1 staged",
        "8 completed 6",
    ]
    assert told.ledger.drain_s == 1


def test_the_limit_cuts_a_save_short():
    told = tell({"limits": {"max_wall": 5}})
    assert told.lines == [*BEGIN[:3], "5 censored at 4, kept 0: limits.max_wall reached"]
    assert told.seconds == {"checkpoint_stall": 1, "rework": 4}


# --- a busy writer: the write takes 7, the next save is due after 4


def busy(what, *changes):
    return tell(
        ASYNC, {"checkpoint": {"write_time": 7, "on_busy": what}, "workload": {"steps": 12}}, *changes
    )


def test_wait_for_the_writer():
    told = busy("wait")
    assert told.lines == [
        "0 resumed 0",
        "4 steps 1-4",
        "4 save 1 begins",
        "5 save 1 staged",
        "9 steps 5-8",
        "9 save 2 begins",
        "12 save 1 durable",
        "13 save 2 staged",
        "17 steps 9-12",
        "17 save 3 begins",
        "20 save 2 durable",
        "21 save 3 staged",
        "21 drain 3 begins",
        "28 save 3 durable",
        "28 save 3 staged",
        "28 completed 12",
    ]
    assert told.seconds == {"productive": 12, "checkpoint_stall": 16}


def test_queue_behind_the_writer():
    told = busy("queue")
    assert told.lines == [
        "0 resumed 0",
        "4 steps 1-4",
        "4 save 1 begins",
        "5 save 1 staged",
        "9 steps 5-8",
        "9 save 2 begins",
        "10 save 2 staged",
        "12 save 1 durable",
        "14 steps 9-12",
        "14 save 3 begins",
        "15 save 3 staged",
        "15 drain 3 begins",
        "19 save 2 durable",
        "26 save 3 durable",
        "26 save 3 staged",
        "26 completed 12",
    ]
    assert told.seconds == {"productive": 12, "checkpoint_stall": 14}


def test_skip_the_save():
    told = busy("skip")
    assert told.lines == [
        "0 resumed 0",
        "4 steps 1-4",
        "4 save 1 begins",
        "5 save 1 staged",
        "9 steps 5-8",
        "12 save 1 durable",
        "13 steps 9-12",
        "13 save 2 begins",
        "14 save 2 staged",
        "14 drain 2 begins",
        "21 save 2 durable",
        "21 save 2 staged",
        "21 completed 12",
    ]
    assert told.seconds == {"productive": 12, "checkpoint_stall": 9}


def test_the_final_save_is_never_skipped():
    told = busy("skip", {"workload": {"steps": 8}})
    assert told.after("steps 5") == [
        "9 steps 5-8",
        "9 save 2 begins",
        "12 save 1 durable",
        "13 save 2 staged",
        "13 drain 2 begins",
        "20 save 2 durable",
        "20 save 2 staged",
        "20 completed 8",
    ]


def test_a_fault_loses_the_whole_queue():
    told = busy("queue", classes(every(11)), {"limits": {"max_wall": 20}})
    assert told.during("fault 1") == [
        "11 fault 1 exception",
        "11 save 1 lost",
        "11 save 2 lost",
        *fixed_from(11, False),
    ]
    assert "14 resumed 0" in told.lines


def test_a_fault_while_the_loop_waits_for_the_writer():
    told = busy("wait", classes(every(11)), {"limits": {"max_wall": 15}})
    assert told.lines[5:] == [
        "9 save 2 begins",
        "11 fault 1 exception",
        "11 save 1 lost",
        "11 save 2 lost",
        *fixed_from(11, False),
        "14 resumed 0",
        "15 steps 1-1",
        "15 censored at 1, kept 0: limits.max_wall reached",
    ]
    assert told.seconds == {"rework": 9, "checkpoint_stall": 3, "detect": 1, "restart.fixed": 2}


def test_steps_are_slower_beside_a_write():
    told = tell(ASYNC, {"checkpoint": {"async_slowdown": {"factor": 2}}})
    assert told.lines == [
        "0 resumed 0",
        "4 steps 1-4",
        "4 save 1 begins",
        "5 save 1 staged",
        "8 save 1 durable",  # 1.5 steps in 3 s
        "10.5 steps 5-8 slow 1.5",
        "10.5 save 2 begins",
        "11.5 save 2 staged",
        "11.5 drain 2 begins",
        "14.5 save 2 durable",
        "14.5 save 2 staged",
        "14.5 completed 8",
    ]
    assert told.seconds == {"productive": 8, "slowdown": 1.5, "checkpoint_stall": 5}


# --- what a restart finds


def test_a_checkpoint_published_at_the_next_save_is_of_no_use_before_it():
    told = tell(scheduled(7), {"checkpoint": {"publish": "next_save"}})
    assert told.lines == [
        *BEGIN,
        "9 steps 5-7",
        "9 fault 1 exception rank 3 node 1",
        *fixed_from(9, load=False),
        "12 resumed 0",
        "16 steps 1-4",
        "16 save 2 begins",
        "18 save 2 durable",
        *rest(18, 3),
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 6,
        "rework": 7,
        "detect": 1,
        "restart.fixed": 2,
    }


def test_what_is_not_published_does_not_displace_the_only_published_one():
    late = {"publish": "next_save", "keep": 1}
    told = tell(scheduled(15), {"checkpoint": late, "workload": {"steps": 16}})
    assert told.during("fault 1", "steps")[-2:] == ["25 resumed 8", "29 steps 9-12"]


def test_mode_none_loses_everything():
    told = tell({"checkpoint": {"mode": "none"}}, scheduled(6))
    assert told.lines == [
        "0 resumed 0",
        "6 steps 1-6",
        "6 fault 1 exception rank 3 node 1",
        *fixed_from(6, load=False),
        "9 resumed 0",
        "17 steps 1-8",
        "17 completed 8",
    ]
    assert told.seconds == {"productive": 8, "rework": 6, "detect": 1, "restart.fixed": 2}


def test_mode_ideal_loses_nothing_not_even_a_part_of_a_step():
    told = tell(IDEAL, classes(every(6.25)))
    assert told.lines == [
        "0 resumed 0",
        "6.25 steps 1-6 +0.25",
        "6.25 fault 1 exception",
        "7.25 fault 1 noticed by fixed",
        "7.25 fixed 1 begins",
        "9.25 process_start 2",
        "9.25 fixed 1 resumed",
        "9.25 resumed 6 +0.25",
        "11 steps 7-8",
        "11 completed 8",
    ]
    assert told.seconds == {"productive": 8, "detect": 1, "restart.fixed": 2}


def test_mode_ideal_keeps_parts_of_one_step_apart():
    told = tell(
        {"checkpoint": {"mode": "ideal", "load_time": 1}}, classes(every(4.25)), {"workload": {"steps": 5}}
    )
    assert told.lines[:2] == ["0 resumed 0", "4.25 steps 1-4 +0.25"]
    assert told.after("8.25 resumed") == [
        "8.25 resumed 4 +0.25",
        "8.5 no whole step +0.25",
        "8.5 fault 2 exception",
        *[
            "9.5 fault 2 noticed by fixed",
            "9.5 fixed 1 begins",
            "11.5 process_start 2",
            "12.5 checkpoint_load 1",
        ],
        *[
            "12.5 fixed 1 resumed",
            "12.5 resumed 4 +0.5",
            "12.75 no whole step +0.25",
            "12.75 fault 3 exception",
        ],
        *["13.75 fault 3 noticed by fixed", "13.75 fixed 1 begins", "15.75 process_start 2"],
        *["16.75 checkpoint_load 1", "16.75 fixed 1 resumed", "16.75 resumed 4 +0.75"],
        "17 steps 5-5",
        "17 completed 5",
    ]
    assert told.seconds == {"productive": 5, "detect": 3, "checkpoint_load": 3, "restart.fixed": 6}


# --- silent corruption


def corruption(at, noticed_after):
    return every(at, "silent_corruption", "bitflip", detect=noticed_after)


def test_silent_corruption_rolls_back_past_two_checkpoints():
    told = tell(
        classes(corruption(9, 14)),
        {"checkpoint": {"keep": 3}, "workload": {"steps": 16}, "limits": {"max_wall": 27.5}},
    )
    assert told.lines == [
        *BEGIN,
        "9 fault 1 silent_corruption",
        "10 steps 5-8",
        "10 save 2 begins",  # begun with the bad state, as is the next one
        "12 save 2 durable",
        "16 steps 9-12",
        "16 save 3 begins",
        "18 save 3 durable",
        "18 fault 2 silent_corruption",  # undone by the rollback: nobody notices it
        "22 steps 13-16",
        "22 save 4 begins",
        "23 fault 1 noticed by check",
        "23 save 4 lost",
        "23 fixed 1 begins",
        "25 process_start 2",
        "26 checkpoint_load 1",
        "26 fixed 1 resumed",
        "26 resumed 4",
        "27 fault 3 silent_corruption",
        "27.5 steps 5-5 +0.5",
        "27.5 censored at 5, kept 4: limits.max_wall reached",
    ]
    assert told.seconds == {
        "productive": 4,
        "checkpoint_stall": 7,
        "rework": 13.5,
        "checkpoint_load": 1,
        "restart.fixed": 2,
    }


def test_silent_corruption_older_than_all_that_is_kept_begins_again():
    told = tell(
        classes(corruption(9, 12)),
        {"checkpoint": {"keep": 1}, "workload": {"steps": 16}, "limits": {"max_wall": 24}},
    )
    assert told.after("fault 1 noticed") == [
        "21 fault 1 noticed by check",
        "21 fixed 1 begins",
        "23 process_start 2",
        "23 fixed 1 resumed",
        "23 resumed 0",
        "24 steps 1-1",
        "24 censored at 1, kept 0: limits.max_wall reached",
    ]


def test_silent_corruption_that_an_earlier_restart_has_undone_is_never_noticed():
    told = tell(merged(classes(corruption(8.6, 7)), scheduled(7)))
    assert told.lines == [
        *BEGIN,
        "8.6 fault 1 silent_corruption",  # would be noticed at 15.6
        "9 steps 5-7",
        "9 fault 2 exception rank 3 node 1",
        "10 fault 2 noticed by fixed",
        "10 fixed 1 begins",
        "12 process_start 2",
        "13 checkpoint_load 1",
        "13 fixed 1 resumed",
        "13 resumed 4",
        "17 steps 5-8",
        "17 save 2 begins",
        "17.2 fault 3 silent_corruption",
        "19 save 2 durable",
        "19 completed 8",
    ]


def test_silent_corruption_that_a_restart_has_loaded_is_noticed_later():
    told = tell(merged(classes(corruption(3.5, 12)), scheduled(7)), {"limits": {"max_wall": 18}})
    assert "13 resumed 4" in told.lines  # from the save of 4, begun with the bad state
    assert told.after("fault 1 noticed")[:5] == [
        "15.5 fault 1 noticed by check",
        "15.5 fixed 1 begins",
        "17.5 process_start 2",
        "17.5 fixed 1 resumed",
        "17.5 resumed 0",
    ]


def test_a_job_that_fails_keeps_nothing_from_after_a_corruption_that_was_noticed():
    """The only layer has no budget left when the notice comes."""
    settings = recovery("in_process", in_process={"max_restarts": 0})
    saved = tell(classes(corruption(9, 2)), settings)
    assert saved.lines[-1] == "11 failed at 8, kept 4: restart budget (max_restarts) exhausted"
    late = tell(classes(corruption(3.5, 3)), settings)
    assert late.lines[-1] == "6.5 failed at 4, kept 0: restart budget (max_restarts) exhausted"
    assert late.ledger.kept_steps == 0
    every_instant = tell(IDEAL, classes(corruption(3.5, 3)), settings)
    assert every_instant.lines[-1] == "6.5 failed at 6, kept 3: restart budget (max_restarts) exhausted"
    assert every_instant.seconds == {"productive": 3, "rework": 3.5}


def test_silent_corruption_when_every_instant_is_saved_rolls_back_to_its_own():
    told = tell(IDEAL, classes(corruption(3.5, 2)), {"limits": {"max_wall": 8}})
    assert told.lines == [
        "0 resumed 0",
        "3.5 fault 1 silent_corruption",
        "5.5 steps 1-5 +0.5",
        "5.5 fault 1 noticed by check",
        "5.5 fixed 1 begins",
        "7 fault 2 silent_corruption",
        "7.5 process_start 2",
        "7.5 fixed 1 resumed",
        "7.5 resumed 3 +0.5",
        "8 steps 4-4",
        "8 censored at 4, kept 4: limits.max_wall reached",
    ]
    assert told.seconds == {"productive": 4, "rework": 2, "restart.fixed": 2}
