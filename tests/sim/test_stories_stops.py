"""Stops that are known in advance, told event by event: maintenance, pre-emption, the time limit; the save before them.

The tiny job and the way its log is written are explained in stories.py.
"""

import pytest

from tests.sim.stories import ASYNC, BEGIN, classes, every, recovery, scheduled, tell
from tests.sim.test_stories_slurm import requeued, slurm


def maintenance(every_s, duration, **more):
    """Return the changes that plan maintenance."""
    return {"cluster": {"maintenance": {"every": every_s, "duration": duration}, **more}}


def before(seconds, **more):
    """Return the changes that let the job save and end so long before a stop."""
    return {"checkpoint": {"save_before": seconds, **more}}


def preempted(at, warning=4, **more):
    """Return the changes that take a node away after a warning at a time; it comes back after 3 s."""
    repair = {"stages": [{"time": 3}]}
    lost = every(at, "node_loss", "spot", scope="node", repair=True, detect=1, **more)
    return {"cluster": {"preemption": {"warning": warning}, "repair": repair}, **classes(lost)}


# --- maintenance


def test_maintenance_stops_the_whole_job_and_is_no_fault():
    told = tell(maintenance(11, 2))
    assert told.lines == [
        *BEGIN,
        "10 steps 5-8",
        "10 save 2 begins",
        "11 fault 1 process_exit planned",
        "11 save 2 lost",
        "11 fault 1 noticed by plan",
        "11 fixed 1 begins",
        "13 node_wait 2",
        "15 process_start 2",
        "16 checkpoint_load 1",
        "16 fixed 1 resumed",
        "16 resumed 4",
        "20 steps 5-8",
        "20 save 3 begins",
        "22 save 3 durable",  # before the next maintenance of the same instant
        "22 completed 8",
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 5,
        "rework": 4,
        "node_wait": 2,
        "checkpoint_load": 1,
        "restart.fixed": 2,
    }
    assert told.ledger.interruptions == 0 and told.ledger.faults_by_class == {}
    (stop,) = told.ledger.incidents
    assert stop.planned and stop.faults == ()


def test_after_maintenance_the_lowest_layer_that_starts_processes_starts_them_and_pays_no_budget():
    """in_job without any restart left; there is nothing to stop or reclaim."""
    layers = recovery("in_process", "in_job", in_job={"max_restarts": 0, "max_no_progress_cycles": 1})
    told = tell(maintenance(9, 3), layers, {"workload": {"steps": 6, "process_start": 1}})
    assert told.during("fault 1") == [
        "9 fault 1 process_exit planned",
        "9 save 2 lost",
        "9 fault 1 noticed by plan",
        "9 in_job 1 begins",
        "12 node_wait 3",
        "14 rendezvous 2",
        "15 process_start 1",
        "16 checkpoint_load 1",
        "16 in_job 1 resumed",
    ]


def test_under_slurm_maintenance_ends_the_allocation_and_the_queue_comes_after_it():
    told = tell(maintenance(11, 2), slurm("in_job"), {"limits": {"max_wall": 21}})
    assert told.after("fault 1") == [
        "11 fault 1 process_exit planned",
        "11 save 2 lost",
        "11 fault 1 noticed by plan",
        "11 slurm 1 begins",
        "11 all nodes down 0/0/2/0/0",
        "13 node_wait 2",
        "18 all nodes up working 2/0/0/0/0",
        "18 node_wait 5",
        "19 process_start 1",
        "20 checkpoint_load 1",
        "20 slurm 1 resumed",
        "20 resumed 4",
        "21 steps 5-5",
        "21 censored at 5, kept 4: limits.max_wall reached",
    ]
    assert told.ledger.gpu_seconds["node_wait"] == 0


def test_a_fault_during_maintenance_waits_for_its_end_too_and_is_charged():
    told = tell(maintenance(9, 5), classes(every(11)), {"limits": {"max_wall": 17}})
    assert told.after("fault 1") == [
        "9 fault 1 process_exit planned",
        "9 fault 1 noticed by plan",
        "9 fixed 1 begins",
        "11 node_wait 2 cut",
        "11 fixed 1 cut: exception",
        "11 fault 2 exception",
        "12 fault 2 noticed by fixed",
        "12 fixed 2 begins",
        "14 node_wait 2",
        "16 process_start 2",
        "17 checkpoint_load 1",
        "17 fixed 2 resumed",
        "17 resumed 4",
        "17 censored at 4, kept 4: limits.max_wall reached",
    ]
    (incident,) = told.ledger.incidents
    assert not incident.planned and told.ledger.faults_by_class == {"soft": 1}


def test_maintenance_joins_an_incident():
    told = tell(maintenance(10, 3), scheduled(6), {"limits": {"max_wall": 17}})
    assert told.during("fault 1") == [
        "8 fault 1 exception rank 3 node 1",
        "9 fault 1 noticed by fixed",
        "9 fixed 1 begins",
        "10 process_start 1 cut",
        "10 fixed 1 cut: maintenance",
        "10 fault 2 process_exit planned",
        "10 fault 2 noticed by plan",
        "10 fixed 2 begins",
        "13 node_wait 3",
        "15 process_start 2",
        "16 checkpoint_load 1",
        "16 fixed 2 resumed",
    ]


def test_maintenance_does_not_revive_a_job_that_is_lost():
    """No layer contains the loss of a node without a spare; that the ranks hang until the watchdog changes nothing."""
    layers = recovery("in_job", nccl_timeout=8)
    told = tell(maintenance(10, 3), scheduled(6, "node_loss"), layers)
    assert told.lines[-1].endswith("failed at 6, kept 4: no enabled layer contains this fault")


def test_local_copies_do_not_outlive_maintenance():
    local = {"checkpoint": {"mode": "local", "interval": "4 steps", "stall_time": 1, "load_time": 1}}
    lost = tell(local, maintenance(7, 1), {"limits": {"max_wall": 12}})
    kept = tell(local, {"checkpoint": {"survives": "all"}}, maintenance(7, 1), {"limits": {"max_wall": 12}})
    assert "10 resumed 0" in lost.lines and "11 resumed 4" in kept.lines


# --- the save before a stop


def test_the_job_saves_just_before_the_time_limit_and_ends_itself():
    """4 s before the end at 11 it is told, saves (2 s) and ends: nothing is lost, and the requeue comes 2 s early."""
    told = tell(slurm(time_limit=11), before(4))
    assert told.lines == [
        *BEGIN,
        "7 steps 5-5",
        "7 save 2 begins",
        "9 save 2 durable",
        "9 fault 1 process_exit",
        "9 fault 1 noticed by slurm",
        *requeued(9),
        "16 slurm 1 resumed",
        "16 resumed 5",
        "19 steps 6-8",
        "19 save 3 begins",
        "21 save 3 durable",
        "21 completed 8",
    ]
    assert told.ledger.faults_by_class == {"time_limit": 1} and "rework" not in told.seconds


def test_the_step_under_way_is_finished_first():
    """Told at 7.5 it runs to 8: with a grace of half a step less the save would not have been durable at 10."""
    told = tell(slurm(time_limit=10), before(2.5))
    assert told.during("8 steps", "noticed") == [
        "8 steps 5-6",
        "8 save 2 begins",
        "10 save 2 durable",
        "10 fault 1 process_exit",
        "10 fault 1 noticed by slurm",
    ]
    late = tell(slurm(time_limit=10), before(1.5))
    assert late.during("9 steps", "noticed") == [
        "9 steps 5-7",
        "9 save 2 begins",
        "10 fault 1 process_exit",
        "10 save 2 lost",
        "10 fault 1 noticed by slurm",
    ]
    assert "17 resumed 4" in late.lines and late.seconds["rework"] == 3


def test_what_is_saved_already_is_not_saved_again():
    """Told at 5, in the middle of save 1: it ends as soon as that is durable, with 3 s to spare before maintenance."""
    told = tell(maintenance(9, 4), before(4), {"limits": {"max_wall": 17}})
    assert told.lines == [
        *BEGIN,
        "6 fault 1 process_exit planned",
        "6 fault 1 noticed by plan",
        "6 fixed 1 begins",
        "13 node_wait 7",
        "15 process_start 2",
        "16 checkpoint_load 1",
        "16 fixed 1 resumed",
        "16 resumed 4",
        "17 steps 5-5",
        "17 censored at 5, kept 4: limits.max_wall reached",
    ]


def test_a_job_that_is_restarting_hears_no_warning():
    """The second maintenance is at 18, told at 14; the job is back at 16 and runs on."""
    told = tell(maintenance(9, 4), before(4), {"limits": {"max_wall": 18.5}})
    assert told.lines[-6:] == [
        "18 steps 5-6",
        "18 fault 2 process_exit planned",
        "18 fault 2 noticed by plan",
        "18 fixed 1 begins",
        "18.5 node_wait 0.5 cut",
        "18.5 censored at 6, kept 4: limits.max_wall reached",
    ]


def test_an_asynchronous_save_is_waited_for():
    told = tell(ASYNC, slurm(time_limit=20), before(14), {"workload": {"steps": 12}})
    assert told.lines[:10] == [
        "0 resumed 0",
        "4 steps 1-4",
        "4 save 1 begins",
        "5 save 1 staged",
        "6 steps 5-5",
        "6 save 2 begins",
        "8 save 1 durable",
        "9 save 2 staged",  # on_busy: wait
        "9 drain 2 begins",
        "12 save 2 durable",
    ]
    assert told.during("12 save 2 staged", "slurm 1 begins") == [
        "12 save 2 staged",
        "12 fault 1 process_exit",
        "12 fault 1 noticed by slurm",
        "12 slurm 1 begins",
    ]


def test_the_save_before_a_stop_goes_to_the_farthest_tier_and_is_published():
    near = {"name": "near", "every": "2 steps", "write_time": 1, "survives": ["process_exit"]}
    far = {"name": "far", "every": "8 steps", "write_time": 2, "load_time": 1, "survives": "all"}
    save = {"mode": "tiered", "tiers": [near, far], "publish": "next_save", "save_before": 4}
    told = tell({"checkpoint": save, "workload": {"steps": 12}}, slurm(time_limit=12), {"limits": {"max_wall": 20}})
    assert [(e["step"], e["tier"]) for e in told.log if e["kind"] == "save_begin"][:4] == [
        (2, "near"), (4, "near"), (6, "near"), (6, "far"),
    ]  # fmt: skip
    assert "18 resumed 6" in told.lines


def test_a_job_that_is_done_within_the_grace_completes():
    told = tell(slurm(time_limit=20), before(10))
    assert told.lines[-3:] == ["10 save 2 begins", "12 save 2 durable", "12 completed 8"]
    none = tell(slurm(time_limit=20), before(10.5, final_save=False))
    assert none.lines[-1] == "10 completed 8"


@pytest.mark.parametrize("mode", ["none", "ideal"])
def test_modes_without_saves_have_nothing_to_do_before_a_stop(mode):
    told = tell({"checkpoint": {"mode": mode, "save_before": 4}}, maintenance(5, 1), {"limits": {"max_wall": 6}})
    assert told.lines[1:3] == ["5 steps 1-5", "5 fault 1 process_exit planned"]


# --- pre-emption


def test_a_pre_emption_strikes_after_its_warning():
    """Told at 7, the node is gone at 11: without a save before it all since step 4 is lost."""
    told = tell(preempted(7), recovery("in_job", "node_replacement"), {"limits": {"max_wall": 17}})
    fault = next(line for line in told.lines if "node_loss" in line)
    node = fault.split()[-1]
    assert told.after("10 save 2 begins") == [
        "10 save 2 begins",
        fault,
        f"11 node {node} down 1/0/0/1/0",
        "11 save 2 lost",
        "12 fault 1 noticed by class",
        "12 node_replacement 1 begins",
        "13 abort 1",
        f"14 node {node} up working 2/0/0/0/0",
        "14 node_wait 1",
        "16 rendezvous 2",
        "17 checkpoint_load 1",
        "17 node_replacement 1 resumed",
        "17 resumed 4",
        "17 censored at 4, kept 4: limits.max_wall reached",
    ]
    assert fault.startswith("11 fault 1 node_loss rank") and told.seconds["rework"] == 4


def test_a_warned_job_saves_and_ends_and_the_node_goes_then():
    """Told at 7, on its step's end, saved at 9, ended; the node comes back repaired at 12."""
    told = tell(preempted(7), before(30), recovery("node_replacement"), {"limits": {"max_wall": 13.5}})
    fault = next(line for line in told.lines if "node_loss" in line)
    node = fault.split()[-1]
    assert told.lines == [
        *BEGIN,
        "7 steps 5-5",
        "7 save 2 begins",
        "9 save 2 durable",
        fault,
        f"9 node {node} down 1/0/0/1/0",
        "10 fault 1 noticed by class",
        "10 node_replacement 1 begins",
        f"12 node {node} up working 2/0/0/0/0",
        "12 node_wait 2",
        "13 checkpoint_load 1",
        "13 node_replacement 1 resumed",
        "13 resumed 5",
        "13.5 no whole step +0.5",
        "13.5 censored at 5, kept 5: limits.max_wall reached",
    ]
    assert fault.startswith("9 fault 1 node_loss rank")


def test_hardware_that_is_lost_without_warning_says_so():
    told = tell(preempted(7, preemption=False), before(30), recovery("node_replacement"), {"limits": {"max_wall": 12}})
    assert any(line.startswith("7 fault 1 node_loss") for line in told.lines)


def test_a_node_that_is_gone_by_then_is_not_lost_again():
    """Told at 7; at 9 an error takes the only node out; what comes at 11 finds nothing."""
    one = {"cluster": {"nodes": 1}}
    error = every(9, "gpu_error", "gpu", scope="node", repair=True, detect=1)
    told = tell(one, preempted(7), recovery("node_replacement"), {"limits": {"max_wall": 13}})
    both = tell(
        one, preempted(7), {"failures": {"classes": [*preempted(7)["failures"]["classes"], error]}},
        recovery("node_replacement"), {"limits": {"max_wall": 11.5}},
    )  # fmt: skip
    assert told.ledger.faults_by_class == {"spot": 1} and both.ledger.faults_by_class == {"gpu": 1}


def test_a_spare_that_is_taken_back_does_not_stop_the_job():
    """Told before the job's own node is (seed 0): it is gone 2 s later, without a save or a stop."""
    life = {"uniform": {"low": 1, "high": 3}}
    spot = {"name": "spot", "mtbf": 5, "per": "node", "scope": "node", "symptom": "node_loss", "law": life}
    hot = {"cluster": {"nodes": 1, "spares": {"hot": 1}, "preemption": {"warning": 2}}}
    told = tell(hot, classes(spot), before(9), recovery("in_job"), {"limits": {"max_wall": 5}}, seed=0)
    assert told.lines == [
        "0 resumed 0",
        "4 steps 1-4",
        "4 save 1 begins",
        "4.72219 fault 1 node_loss node 1 idle",
        "4.72219 node 1 down 1/0/0/0/1",
        "5 censored at 4, kept 0: limits.max_wall reached",
    ]


def test_two_stops_told_at_once_come_one_after_the_other():
    """Time limit and maintenance are both due at 12; the job ends at 10, and maintenance finds it in the queue."""
    told = tell(slurm(time_limit=12), maintenance(12, 2), before(4), {"limits": {"max_wall": 21}})
    assert told.after("8 steps") == [
        "8 steps 5-6",
        "8 save 2 begins",
        "10 save 2 durable",
        "10 fault 1 process_exit",
        "10 fault 1 noticed by slurm",
        "10 slurm 1 begins",
        "10 all nodes down 0/0/2/0/0",
        "12 node_wait 2 cut",
        "12 slurm 1 cut: maintenance",
        "12 fault 2 process_exit planned",
        "12 fault 2 noticed by plan",
        "12 slurm 2 begins",
        "14 node_wait 2",
        "19 all nodes up working 2/0/0/0/0",
        "19 node_wait 5",
        "20 process_start 1",
        "21 checkpoint_load 1",
        "21 slurm 2 resumed",
        "21 resumed 6",
        "21 censored at 6, kept 6: limits.max_wall reached",
    ]


def test_a_stop_that_is_over_is_not_heard_of():
    """Told at 8 in the queue of an earlier requeue: the allocation of that limit is gone."""
    told = tell(slurm(time_limit=14), before(6), classes(every(7, detect=0)), {"limits": {"max_wall": 13.5}})
    assert [line for line in told.lines if "fault" in line and "noticed" not in line] == ["7 fault 1 exception"]
