"""Requeues by Slurm told event by event: detection, the queue, the nodes given back, the time limit, and what follows.

The tiny job and the way its log is written are explained in stories.py.
"""

import pytest

from tests.sim.stories import BEGIN, classes, every, recovery, scheduled, tell

START = {"workload": {"process_start": 2, "init": 1, "warmup": 1}}


def slurm(*layers, more=None, **settings):
    """Return the changes that give the job Slurm, with 5 s in the queue and 1 s of prolog, above these layers."""
    return recovery(*layers, "slurm", **{"slurm": {"queue_wait": 5, "prolog": 1, **settings}, **(more or {})})


def seen(seconds, symptom="exception", **more):
    """Return a fault class that is noticed after 1 s."""
    return classes(every(seconds, symptom, detect=1, **more))


def requeued(t, attempt=1, start=(), load=1, nodes=2):
    """Return the lines of a requeue of the tiny job that begins at `t`."""
    lines = [
        f"{t} slurm {attempt} begins",
        f"{t} all nodes down 0/0/{nodes}/0/0",
        f"{t + 5} all nodes up working {nodes}/0/0/0/0",
        f"{t + 5} node_wait 5",
    ]
    t += 5
    for phase, lasts in (("process_start", 1), *start, ("checkpoint_load", load)):
        if lasts:
            t += lasts
            lines.append(f"{t} {phase} {lasts}")
    return lines


def test_queue_and_prolog_come_before_the_processes():
    told = tell(START, slurm(), seen(12), {"workload": {"steps": 6}})
    assert told.lines == [
        "2 process_start 2",
        "3 init 1",
        "4 warmup 1",
        "4 resumed 0",
        "8 steps 1-4",
        "8 save 1 begins",
        "10 save 1 durable",
        "12 steps 5-6",
        "12 save 2 begins",
        "12 fault 1 exception",
        "12 save 2 lost",
        "13 fault 1 noticed by class",
        "13 slurm 1 begins",
        "13 all nodes down 0/0/2/0/0",
        "18 all nodes up working 2/0/0/0/0",
        "18 node_wait 5",
        "19 process_start 1",  # the prolog
        "21 process_start 2",
        "22 init 1",
        "23 checkpoint_load 1",
        "24 warmup 1",
        "24 slurm 1 resumed",
        "24 resumed 4",
        "26 steps 5-6",
        "26 save 3 begins",
        "28 save 3 durable",
        "28 completed 6",
    ]
    assert told.seconds == {
        "startup": 4,
        "productive": 6,
        "checkpoint_stall": 4,
        "rework": 2,
        "detect": 1,
        "node_wait": 5,
        "checkpoint_load": 1,
        "restart.slurm": 5,
    }


def test_a_queued_job_pays_for_no_node_and_no_fault_strikes_it():
    """Faults come after 8 s of clock time: at 8, and at 16 + 5 s in the queue, in which the clocks stand still."""
    told = tell(slurm(), seen(8), {"limits": {"max_wall": 21.5}})
    assert [line for line in told.lines if "fault" in line] == [
        "8 fault 1 exception",
        "9 fault 1 noticed by class",
        "21 fault 2 exception",
    ]
    assert told.seconds["node_wait"] == 5
    assert told.ledger.gpu_seconds["node_wait"] == 0
    assert sum(told.ledger.gpu_seconds.values()) == pytest.approx((21.5 - 5) * 4)


# --- the time limit


def test_the_time_limit_ends_the_allocation_and_counts_as_an_interruption():
    """An allocation is 10 s long: from 0 to 10, and again from the end of the wait on."""
    told = tell(slurm(time_limit=10), {"workload": {"steps": 12}})
    assert told.lines == [
        *BEGIN,
        "10 steps 5-8",
        "10 save 2 begins",
        "10 fault 1 process_exit",
        "10 save 2 lost",
        "10 fault 1 noticed by slurm",
        *requeued(10),
        "17 slurm 1 resumed",
        "17 resumed 4",
        "21 steps 5-8",
        "21 save 3 begins",
        "23 save 3 durable",
        "25 steps 9-10",
        "25 fault 2 process_exit",  # 15 + 10
        "25 fault 2 noticed by slurm",
        *requeued(25),
        "32 slurm 1 resumed",
        "32 resumed 8",
        "36 steps 9-12",
        "36 save 4 begins",
        "38 save 4 durable",
        "38 completed 12",
    ]
    assert told.ledger.faults_by_class == {"time_limit": 2}
    assert told.seconds == {
        "productive": 12,
        "checkpoint_stall": 6,
        "rework": 6,
        "node_wait": 10,
        "checkpoint_load": 2,
        "restart.slurm": 2,
    }


def test_a_requeue_before_the_time_limit_begins_a_new_allocation():
    """Limits of 10 s would be at 10 and, of the allocation from 12 on, at 22: the job is in the queue at both."""
    told = tell(slurm(time_limit=10), seen(6), {"workload": {"steps": 99}, "limits": {"max_wall": 24}})
    assert [line for line in told.lines if "slurm" in line or "fault" in line] == [
        "6 fault 1 exception",
        "7 fault 1 noticed by class",
        "7 slurm 1 begins",
        "14 slurm 1 resumed",
        "17 fault 2 exception",
        "18 fault 2 noticed by class",
        "18 slurm 1 begins",
    ]
    assert told.ledger.faults_by_class == {"soft": 2}


def test_a_hang_that_nothing_detects_lasts_until_the_time_limit():
    told = tell(slurm(time_limit=9, more={"nccl_timeout": "off"}), scheduled(6, "hang"))
    assert told.during("fault 1") == [
        "8 fault 1 hang rank 3 node 1",
        "9 fault 2 process_exit",
        "9 fault 2 noticed by slurm",
        *requeued(9),
        "16 slurm 1 resumed",
    ]
    assert told.ledger.interruptions == 2 and len(told.ledger.incidents) == 1


def test_the_time_limit_is_beyond_the_launcher_and_gives_it_new_budgets():
    """in_job takes the exceptions (one restart at most), Slurm the time limit; the new launcher may restart again."""
    layers = slurm("in_job", time_limit=20, more={"in_job": {"max_restarts": 1}})
    schedule = [{"step": step, "rank": 0, "symptom": "exception"} for step in (6, 17)]
    told = tell(layers, {"workload": {"steps": 24}, "failures": {"schedule": schedule}})
    assert [line for line in told.lines if line.endswith("begins") and "save" not in line] == [
        "8 in_job 1 begins",
        "20 slurm 1 begins",  # the next allocation is from 25 to 45
        "40 in_job 1 begins",
        "45 slurm 1 begins",
    ]
    assert told.lines[-1] == "64 completed 24"
    assert told.ledger.faults_by_class == {"scheduled": 2, "time_limit": 2}


def test_an_allocation_that_ends_before_its_first_save_makes_no_progress():
    told = tell(slurm(time_limit=5), {"limits": {"max_wall": 60}})
    assert told.lines[-1] == "60 censored at 4, kept 0: limits.max_wall reached"
    assert "productive" not in told.seconds and told.ledger.faults_by_class == {"time_limit": 6}


# --- nodes


def test_a_silent_node_is_taken_for_down_and_replaced_from_the_partition():
    told = tell(slurm(node_down=3), scheduled(6, "node_loss"))
    assert told.during("fault 1") == [
        "8 fault 1 node_loss rank 3 node 1",
        "8 node 1 down 1/0/0/0/1",
        "11 fault 1 noticed by slurm",
        "11 slurm 1 begins",
        "11 all nodes down 0/0/1/0/1",
        "16 node 1 up working 0/0/2/0/0",  # another machine in its place
        "16 all nodes up working 2/0/0/0/0",
        "16 node_wait 5",
        "17 process_start 1",
        "18 checkpoint_load 1",
        "18 slurm 1 resumed",
    ]


def test_the_watchdog_may_notice_a_lost_node_before_slurm_does():
    told = tell(slurm(node_down=30, more={"nccl_timeout": 2}), scheduled(6, "node_loss"))
    line = next(line for line in told.lines if "noticed" in line)
    assert line.endswith("fault 1 noticed by nccl_watchdog") and 10 <= float(line.split()[0]) <= 10.1


def test_a_job_stays_queued_until_its_node_is_repaired():
    """The queue would have been over at 14; the repair takes until 20, and the allocation begins then."""
    repaired = {"cluster": {"repair": {"stages": [{"time": 12}]}}}
    gpu = seen(8, "gpu_error", name="gpu", scope="node", repair=True)
    told = tell(slurm(), gpu, repaired, {"limits": {"max_wall": 22}, "failures": {"clock": "running"}})
    node = next(line.split()[-1] for line in told.lines if "gpu_error" in line)
    assert told.during("fault 1", "censored") == [
        next(line for line in told.lines if "fault 1" in line),
        f"8 node {node} down 1/0/0/1/0",
        "9 fault 1 noticed by class",
        "9 slurm 1 begins",
        "9 all nodes down 0/0/1/1/0",
        "14 node_wait 5",
        f"20 node {node} up working 0/0/2/0/0",
        "20 all nodes up working 2/0/0/0/0",
        "20 node_wait 6",
        "21 process_start 1",
        "22 checkpoint_load 1",
        "22 slurm 1 resumed",
        "22 resumed 4",
        "22 censored at 4, kept 4: limits.max_wall reached",
    ]
    assert told.ledger.gpu_seconds["node_wait"] == 0


def test_cold_spares_are_brought_while_the_job_waits_in_the_queue():
    spare = {"cluster": {"spares": {"cold": 1}}}
    told = tell(spare, slurm(node_down=1, more={"node_replacement": {"provision": 3}}), scheduled(6, "node_loss"))
    assert told.during("slurm 1 begins", "node_wait") == [
        "9 slurm 1 begins",
        "9 all nodes down 0/0/2/0/1",
        "12 node 2 up working 0/0/2/0/1",
        "14 all nodes up working 2/0/0/0/1",
        "14 node_wait 5",
    ]


def test_without_a_queue_the_next_allocation_follows_at_once():
    told = tell(slurm(queue_wait=0, prolog=0, time_limit=7), {"limits": {"max_wall": 20}})
    assert told.after("fault 1") == [
        "7 fault 1 process_exit",
        "7 fault 1 noticed by slurm",
        "7 slurm 1 begins",
        "8 checkpoint_load 1",
        "8 slurm 1 resumed",
        "8 resumed 4",
        "12 steps 5-8",
        "12 save 2 begins",
        "14 save 2 durable",  # before the time limit of the same instant
        "14 completed 8",
    ]


# --- layers and budgets


def test_requeues_are_counted_and_the_job_fails_beyond_their_budget():
    """Allocations from 0, 10 and 20, each too short for a save; the third one's end finds no requeue left."""
    told = tell(slurm(time_limit=5, max_restarts=2), {"limits": {"max_wall": 99}})
    assert told.lines[-3:] == [
        "25 save 3 lost",
        "25 fault 3 noticed by slurm",
        "25 failed at 4, kept 0: restart budget (max_restarts) exhausted",
    ]
    assert told.ledger.faults_by_class == {"time_limit": 3}
    assert told.ledger.incidents[-1].end_s is None


def test_a_person_takes_over_from_an_exhausted_slurm_and_its_budget_is_new():
    """Layer fixed submits the job again: one requeue a submission, and its allocation begins at once."""
    layers = slurm(time_limit=5, max_restarts=1)
    layers["recovery"]["layers"].append("fixed")
    told = tell(layers, {"recovery": {"fixed": {"detect": 0, "restart": 3}}}, {"limits": {"max_wall": 32}})
    assert [line for line in told.lines if line.endswith("begins") and "save" not in line] == [
        "5 slurm 1 begins",
        "15 fixed 1 begins",
        "20 slurm 1 begins",
        "30 fixed 1 begins",
    ]


def test_local_copies_are_gone_after_a_requeue():
    local = {"checkpoint": {"mode": "local", "interval": "4 steps", "stall_time": 1, "load_time": 1}}
    lost = tell(local, slurm(), seen(7))
    kept = tell(local, {"checkpoint": {"survives": "all"}}, slurm(), seen(7))
    assert "14 resumed 0" in lost.lines and "15 resumed 4" in kept.lines


def test_the_initial_heartbeat_timeout_holds_under_slurm_too():
    """Start-up of 4 s and a load against 4.5 s: the launcher ends it, and Slurm requeues."""
    layers = slurm("in_job", time_limit=14, more={"in_job": {"initial_heartbeat_timeout": 4.5}})
    told = tell(START, layers, {"limits": {"max_wall": 30}, "workload": {"steps": 99}})
    assert "14 slurm 1 begins" in told.lines
    assert told.after("20 process_start") == [
        "20 process_start 1",
        "22 process_start 2",
        "23 init 1",
        "24 checkpoint_load 1",
        "24.5 warmup 0.5",
        "24.5 slurm 1 failed: start-up outlasted the initial heartbeat timeout",
        "24.5 detect 0",
        "24.5 slurm 2 begins",
        "24.5 all nodes down 0/0/2/0/0",
        "29.5 all nodes up working 2/0/0/0/0",
        "29.5 node_wait 5",
        "30 process_start 0.5 cut",
        "30 censored at 8, kept 4: limits.max_wall reached",
    ]
