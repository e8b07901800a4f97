"""Local and tiered saves told event by event: which tier saves, what a fault leaves of them, and loads that fail.

The tiny job and the way its log is written are explained in stories.py.
"""

import pytest

from sim import checkpoint, params
from sim.draws import stream_id, u
from tests.sim.stories import classes, every, recovery, scenario, scheduled, tell

LOCAL = {"checkpoint": {"mode": "local", "interval": "4 steps", "stall_time": 1, "load_time": 1}}
NEAR = {"name": "near", "every": "2 steps", "write_time": 1, "load_time": 1, "survives": ["exception", "process_exit"]}
FAR = {"name": "far", "every": "6 steps", "stall_time": 1, "write_time": 3, "load_time": 4, "survives": "all"}


def tiered(*tiers, steps=12, **more):
    return {"workload": {"steps": steps}, "checkpoint": {"mode": "tiered", "tiers": list(tiers), **more}}


def tiers_of(told):
    """Return the tier of each save, in their order, and of each load."""
    saves = [e["tier"] for e in told.log if e["kind"] == "save_begin" and not e.get("drain")]
    return saves, [e["tier"] for e in told.log if e.get("phase") == "checkpoint_load" and e["kind"] == "phase_begin"]


# --- mode local


def test_a_local_save_is_durable_when_it_is_copied():
    told = tell(LOCAL, scheduled(6))
    assert told.lines == [
        "0 resumed 0",
        "4 steps 1-4",
        "4 save 1 begins",
        "5 save 1 durable",
        "7 steps 5-6",
        "7 fault 1 exception rank 3 node 1",
        "8 fault 1 noticed by fixed",
        "8 fixed 1 begins",
        "10 process_start 2",
        "11 checkpoint_load 1",
        "11 fixed 1 resumed",
        "11 resumed 4",
        "15 steps 5-8",
        "15 save 2 begins",
        "16 save 2 durable",
        "16 completed 8",
    ]
    assert {e["tier"] for e in told.log if e["kind"].startswith("save_")} == {"local"}
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 2,
        "rework": 2,
        "detect": 1,
        "checkpoint_load": 1,
        "restart.fixed": 2,
    }


def test_local_copies_are_gone_with_a_node():
    told = tell(LOCAL, scheduled(6, "node_loss"))
    assert told.during("fault 1") == [
        "7 fault 1 node_loss rank 3 node 1",
        "8 fault 1 noticed by fixed",
        "8 fixed 1 begins",
        "10 process_start 2",
        "10 fixed 1 resumed",
    ]
    assert "10 resumed 0" in told.lines and told.seconds["rework"] == 6


def test_copies_with_peers_outlive_a_node():
    told = tell(LOCAL, {"checkpoint": {"survives": "all"}}, scheduled(6, "node_loss"))
    assert "11 resumed 4" in told.lines


def test_a_local_save_that_is_copied_on_is_durable_only_then():
    """The loop stands still for the copy (1 s); the copy to a peer takes 3 s more, and is lost with a fault."""
    copied_on = {"checkpoint": {"write_time": 3}}
    told = tell(LOCAL, copied_on, scheduled(6))
    assert told.lines[2:7] == [
        "4 save 1 begins",
        "5 save 1 staged",
        "7 steps 5-6",
        "7 fault 1 exception rank 3 node 1",
        "7 save 1 lost",
    ]
    assert "10 resumed 0" in told.lines


def test_a_local_copy_that_a_fault_interrupts_is_lost():
    told = tell(LOCAL, {"checkpoint": {"stall_time": 2}, "limits": {"max_wall": 8}}, classes(every(5)))
    assert told.lines[2:5] == ["4 save 1 begins", "5 fault 1 exception", "5 save 1 lost"]
    assert told.lines[-1] == "8 censored at 0, kept 0: limits.max_wall reached"


def test_a_node_that_leaves_takes_its_copies_along_whatever_the_symptom():
    repaired = {"cluster": {"repair": {"stages": [{"time": 1}]}}}
    stays = tell(LOCAL, scheduled(6, "gpu_error"), repaired)
    leaves = tell(LOCAL, scheduled(6, "gpu_error", repair=True), repaired)
    assert "11 resumed 4" in stays.lines and "10 resumed 0" in leaves.lines


# --- mode tiered


def test_the_nearest_newest_tier_is_loaded_after_a_fault_that_it_survives():
    told = tell(tiered(NEAR, FAR), scheduled(9))
    assert told.lines == [
        "0 resumed 0",
        "2 steps 1-2",
        "2 save 1 begins",
        "3 save 1 durable",
        "5 steps 3-4",
        "5 save 2 begins",
        "6 save 2 durable",
        "8 steps 5-6",
        "8 save 3 begins",  # the far tier's stands for the near one's
        "9 save 3 staged",
        "11 steps 7-8",
        "11 save 4 begins",  # the near tier does not wait for the far one's writer
        "12 save 3 durable",
        "12 save 4 durable",
        "13 steps 9-9",
        "13 fault 1 exception rank 3 node 1",
        "14 fault 1 noticed by fixed",
        "14 fixed 1 begins",
        "16 process_start 2",
        "17 checkpoint_load 1",
        "17 fixed 1 resumed",
        "17 resumed 8",
        "19 steps 9-10",
        "19 save 5 begins",
        "20 save 5 durable",
        "22 steps 11-12",
        "22 save 6 begins",
        "23 save 6 staged",
        "23 drain 6 begins",
        "26 save 6 durable",
        "26 save 6 staged",
        "26 completed 12",
    ]
    assert tiers_of(told) == (["near", "near", "far", "near", "near", "far"], ["near"])
    assert told.seconds == {
        "productive": 12,
        "checkpoint_stall": 9,
        "rework": 1,
        "detect": 1,
        "checkpoint_load": 1,
        "restart.fixed": 2,
    }


def test_the_far_tier_is_loaded_after_a_fault_that_the_near_one_does_not_survive():
    told = tell(tiered(NEAR, FAR), scheduled(9, "node_loss"))
    assert told.during("fault 1") == [
        "13 fault 1 node_loss rank 3 node 1",
        "14 fault 1 noticed by fixed",
        "14 fixed 1 begins",
        "16 process_start 2",
        "20 checkpoint_load 4",
        "20 fixed 1 resumed",
    ]
    assert "20 resumed 6" in told.lines and tiers_of(told)[1] == ["far"]
    assert told.seconds["rework"] == 3


def test_a_layer_that_ends_the_processes_loses_what_lives_in_them():
    """In-process restart would have loaded the near tier; it gives up, and what in_job starts finds the far one."""
    in_memory = {**NEAR, "survives": ["exception"]}
    layers = recovery("in_process", "in_job", in_process={"success": 0})
    told = tell(tiered(in_memory, FAR), scheduled(9), layers)
    assert told.during("fault 1") == [
        "13 fault 1 exception rank 3 node 1",
        "13 fault 1 noticed by monitor",
        "13 in_process 1 begins",
        "15 abort 2",
        "16 rendezvous 1",
        "16 in_process 1 escalated: the restart attempt failed",
        "16 detect 0",
        "16 in_job 2 begins",
        "17 abort 1",
        "19 rendezvous 2",
        "23 checkpoint_load 4",
        "23 in_job 2 resumed",
    ]
    inside = tell(tiered(in_memory, FAR), scheduled(9), recovery("in_process", "in_job"))
    assert tiers_of(told)[1] == ["far"] and tiers_of(inside)[1] == ["near"]


def test_a_fault_that_joins_takes_the_tiers_that_it_ends():
    """A node is lost while the near tier is being loaded: the next attempt loads the far one."""
    lost = every(16.5, "node_loss", "lost", scope="node")
    told = tell(tiered(NEAR, FAR), scheduled(9), classes(lost), {"limits": {"max_wall": 28}})
    assert told.during("fault 1") == [
        "13 fault 1 exception rank 3 node 1",
        "14 fault 1 noticed by fixed",
        "14 fixed 1 begins",
        "16 process_start 2",
        "16.5 checkpoint_load 0.5 cut",
        "16.5 fixed 1 cut: node_loss",
        "16.5 fault 2 node_loss rank 0 node 0",
        "17.5 fault 2 noticed by fixed",
        "17.5 fixed 2 begins",
        "19.5 process_start 2",
        "23.5 checkpoint_load 4",
        "23.5 fixed 2 resumed",
    ]
    assert tiers_of(told)[1] == ["near", "far"]


def test_a_tier_that_was_lost_is_filled_again():
    """The node is lost at 13, far 6 loaded at 20, near 8 saved at 23; the exception at 24 finds it."""
    told = tell(tiered(NEAR, FAR), scheduled(9, "node_loss"), classes(every(24)))
    assert [line for line in told.lines if " resumed " in line][:3] == ["0 resumed 0", "20 resumed 6", "28 resumed 8"]
    assert tiers_of(told)[1] == ["far", "near"]


def test_writes_that_survive_go_on_only_to_a_tier_that_survives_too():
    near = {**NEAR, "every": "3 steps", "stall_time": 0, "write_time": 9}
    far = {**FAR, "every": "4 steps", "stall_time": 0, "write_time": 4}
    told = tell(tiered(near, far, write_survives="all"), scheduled(5, "node_loss"), {"limits": {"max_wall": 12}})
    assert told.lines == [
        "0 resumed 0",
        "3 steps 1-3",
        "3 save 1 begins",
        "3 save 1 staged",
        "4 steps 4-4",
        "4 save 2 begins",
        "4 save 2 staged",
        "5 steps 5-5",
        "5 fault 1 node_loss rank 3 node 1",
        "5 save 1 lost",
        "6 fault 1 noticed by fixed",
        "6 fixed 1 begins",
        "8 save 2 durable",
        "8 process_start 2",
        "12 checkpoint_load 4",
        "12 fixed 1 resumed",
        "12 resumed 4",
        "12 censored at 4, kept 4: limits.max_wall reached",
    ]


def test_each_tier_keeps_its_own_number_of_checkpoints():
    """Corruption at 10.5 is noticed at 14.5: near 8 holds it, near 6 (far, where both are due) does not."""
    silent = classes(every(10.5, "silent_corruption", detect=4))
    near, far = {**NEAR, "survives": "all", "keep": 1}, {**FAR, "write_time": 0}
    told = tell(tiered(near, far, steps=11), silent, {"limits": {"max_wall": 22}})
    assert "14.5 fault 1 noticed by check" in told.lines and "20.5 resumed 6" in told.lines
    assert tiers_of(told)[1] == ["far"]
    late = {**far, "every": "12 steps"}  # not before the corruption: without near 4 and 6 the job begins anew
    one, three = (
        tell(tiered({**near, "keep": keep}, late, steps=11), silent, {"limits": {"max_wall": 22}}) for keep in (1, 3)
    )
    assert "16.5 resumed 0" in one.lines and "17.5 resumed 6" in three.lines


def test_the_job_waits_for_the_last_write_of_any_tier():
    near = {**NEAR, "stall_time": 0, "write_time": 9, "every": "7 steps"}
    told = tell(tiered(near, FAR, steps=8))
    assert told.lines == [
        "0 resumed 0",
        "6 steps 1-6",
        "6 save 1 begins",
        "7 save 1 staged",
        "8 steps 7-7",
        "8 save 2 begins",  # near, durable at 17
        "8 save 2 staged",
        "9 steps 8-8",
        "9 save 3 begins",  # the end of the job, in the farthest tier: behind save 1, which is durable at 10
        "10 save 1 durable",
        "11 save 3 staged",
        "11 drain 2 begins",
        "14 save 3 durable",
        "17 save 2 durable",
        "17 save 2 staged",
        "17 completed 8",
    ]


def test_a_busy_writer_holds_up_its_own_tier_only():
    near = {**NEAR, "every": "3 steps", "stall_time": 0, "write_time": 5}
    told = tell(tiered(near, {**FAR, "every": "8 steps"}, steps=10, on_busy="skip"))
    assert [line for line in told.lines if line.endswith("begins") and "save" in line] == [
        "3 save 1 begins",
        "8 save 2 begins",  # near was skipped at 6; far finds its writer free
        "10 save 3 begins",  # near at step 9, far is writing until 12
        "11 save 4 begins",
    ]
    assert tiers_of(told)[0] == ["near", "far", "near", "far"]


# --- loads that fail

FAILS = stream_id("checkpoint.load_failure") >> 2


def fails_at(number):
    """Return the probability of failure above which the checkpoint of this save cannot be loaded (seed 1)."""
    return u(1, 0, FAILS, number, 0)


def test_a_load_that_fails_takes_its_time_and_then_the_next_older_one_is_tried():
    """Save 2 fails to load from .184 on, save 1 from .589 on."""
    assert fails_at(2) < 0.3 < fails_at(1)
    told = tell({"checkpoint": {"load_failure": 0.3}, "workload": {"steps": 12}}, scheduled(10))
    assert told.during("fault 1") == [
        "14 fault 1 exception rank 3 node 1",
        "15 fault 1 noticed by fixed",
        "15 fixed 1 begins",
        "17 process_start 2",
        "18 checkpoint_load 1 failed",
        "19 checkpoint_load 1",
        "19 fixed 1 resumed",
    ]
    assert "19 resumed 4" in told.lines
    assert told.seconds["checkpoint_load"] == 2 and told.seconds["rework"] == 6


def test_with_no_older_checkpoint_left_the_job_begins_anew():
    told = tell({"checkpoint": {"load_failure": 1}, "workload": {"steps": 12}}, scheduled(10))
    assert told.during("17 process_start") == [
        "17 process_start 2",
        "18 checkpoint_load 1 failed",
        "19 checkpoint_load 1 failed",
        "19 fixed 1 resumed",
    ]
    assert "19 resumed 0" in told.lines and told.seconds["rework"] == 10


def test_loads_that_fail_at_once_fall_back_as_well():
    told = tell({"checkpoint": {"load_failure": 1, "load_time": 0}, "workload": {"steps": 12}}, scheduled(10))
    assert told.during("17 process_start") == ["17 process_start 2", "17 fixed 1 resumed"]
    assert "17 resumed 0" in told.lines


def test_a_checkpoint_of_one_tier_that_cannot_be_loaded_gives_way_to_another_tiers():
    """Near 8 (save 4) can be loaded up to .667, far 6 (save 3) up to .409, near 4 (save 2) up to .184."""
    two = tiered(NEAR, FAR, load_failure=0.5)
    assert "17 resumed 8" in tell(two, scheduled(9)).lines
    three = tell(tiered(NEAR, FAR, load_failure=0.7), scheduled(9))
    assert three.during("16 process_start") == [
        "16 process_start 2",
        "17 checkpoint_load 1 failed",  # near 8
        "21 checkpoint_load 4 failed",  # far 6
        "22 checkpoint_load 1 failed",  # near 4
        "22 fixed 1 resumed",
    ]
    assert "22 resumed 0" in three.lines and tiers_of(three)[1] == ["near", "far", "near"]


def test_without_a_way_back_every_restart_tries_the_same_checkpoint():
    """Megatron-LM#5281: the restarts are alike until the budget is spent."""
    settings = {"load_failure": 1, "on_load_failure": "exit"}
    layers = recovery("in_job", in_job={"max_restarts": 3, "max_no_progress_cycles": 0})
    told = tell({"checkpoint": settings}, scheduled(6), layers)
    assert told.after("fault 1") == [
        "8 fault 1 exception rank 3 node 1",
        "8 fault 1 noticed by monitor",
        "8 in_job 1 begins",
        "9 abort 1",
        "11 rendezvous 2",
        "12 checkpoint_load 1 failed",
        "12 in_job 1 failed: the checkpoint could not be loaded",
        "12 detect 0",
        "12 in_job 2 begins",
        "13 abort 1",
        "15 rendezvous 2",
        "16 checkpoint_load 1 failed",
        "16 in_job 2 failed: the checkpoint could not be loaded",
        "16 detect 0",
        "16 in_job 3 begins",
        "17 abort 1",
        "19 rendezvous 2",
        "20 checkpoint_load 1 failed",
        "20 in_job 3 failed: the checkpoint could not be loaded",
        "20 detect 0",
        "20 failed at 6, kept 4: restart budget (max_restarts) exhausted",
    ]


def test_a_failed_load_inside_living_processes_is_an_exception_like_any_other():
    settings = {"load_failure": 1, "on_load_failure": "exit"}
    layers = recovery("in_process", "fixed", in_process={"max_restarts": 2}, fixed={"detect": 1, "restart": 2})
    told = tell({"checkpoint": settings}, scheduled(6), layers, {"limits": {"max_wall": 20}})
    assert told.after("fault 1") == [
        "8 fault 1 exception rank 3 node 1",
        "8 fault 1 noticed by monitor",
        "8 in_process 1 begins",
        "10 abort 2",
        "11 rendezvous 1",
        "12 checkpoint_load 1 failed",
        "12 in_process 1 failed: the checkpoint could not be loaded",
        "12 in_process 2 begins",
        "14 abort 2",
        "15 rendezvous 1",
        "16 checkpoint_load 1 failed",
        "16 in_process 2 escalated: the checkpoint could not be loaded",
        "17 detect 1",
        "17 fixed 3 begins",
        "19 process_start 2",
        "20 checkpoint_load 1 failed",
        "20 fixed 3 failed: the checkpoint could not be loaded",
        "20 detect 0 cut",
        "20 censored at 6, kept 4: limits.max_wall reached",
    ]


def test_a_fault_during_a_load_that_would_have_failed_starts_the_loads_again():
    told = tell({"checkpoint": {"load_failure": 0.3}, "workload": {"steps": 12}}, scheduled(10), classes(every(17.5)))
    assert told.during("17 process_start") == [
        "17 process_start 2",
        "17.5 checkpoint_load 0.5 cut",
        "17.5 fixed 1 cut: exception",
        "17.5 fault 2 exception",
        "18.5 fault 2 noticed by fixed",
        "18.5 fixed 2 begins",
        "20.5 process_start 2",
        "21.5 checkpoint_load 1 failed",
        "22.5 checkpoint_load 1",
        "22.5 fixed 2 resumed",
    ]


# --- the rules by themselves


def test_how_often_a_load_fails():
    """Over 20,000 checkpoints, 1e-6: 5 standard deviations of a share of .3 are .016."""
    p = params.compile_scenario(scenario({"checkpoint": {"load_failure": 0.3}}))
    count = sum(checkpoint.cannot_load(p, n, 1, 0) for n in range(20_000))
    assert abs(count / 20_000 - 0.3) < 0.016


@pytest.mark.parametrize(("step", "tier"), [(2, 0), (4, 0), (6, 1), (8, 0), (12, 1), (11, 1)])
def test_the_farthest_tier_that_is_due_saves(step, tier):
    p = params.compile_scenario(scenario(tiered(NEAR, FAR, steps=11)))
    assert checkpoint.due_tier(p, float(step), 11.0) == tier
