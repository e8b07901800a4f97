"""Nodes told event by event: losses, spares, repair, racks, health checks, slow nodes, ages.

The tiny job and the way its log is written are explained in stories.py. Nodes are counted as
working/hot/cold/in repair/retired.
"""

import math

import pytest

from sim import params
from sim.draws import stream_id, u
from tests.sim.stories import BEGIN, brief, classes, every, recovery, rest, scheduled, tell

REPAIR = {"cluster": {"repair": {"stages": [{"time": 9}]}}}
HOT = {"cluster": {"spares": {"hot": 1}}}
COLD = {"cluster": {"spares": {"cold": 1}}}
LAYERS = recovery("in_job", "node_replacement", nccl_timeout=5, node_replacement={"provision": 7})
LOSS = scheduled(6, "node_loss")
SPARE_FIRST = 27  # a seed whose first fault is the spare's


def single(*changes, **cluster):
    """Return the story of a job on one node."""
    return tell({"cluster": {"nodes": 1, **cluster}}, *changes)


# --- the loss of a node


def test_node_loss_with_a_hot_spare_is_in_job():
    told = tell(HOT, REPAIR, scheduled(6, "node_loss", repair=True), LAYERS)
    assert told.lines == [
        *BEGIN,
        "8 steps 5-6",
        "8 fault 1 node_loss rank 3 node 1",
        "8 node 1 down 1/1/0/1/0",
        "8 node 2 up working 2/0/0/1/0",
        "13 fault 1 noticed by nccl_watchdog",
        "13 in_job 1 begins",
        "14 abort 1",
        "16 rendezvous 2",
        "17 node 1 up hot 2/1/0/0/0",  # mended: it takes the spare's place
        "17 checkpoint_load 1",
        "17 in_job 1 resumed",
        "17 resumed 4",
        *rest(17, 2),
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 4,
        "rework": 2,
        "detect": 5,
        "checkpoint_load": 1,
        "restart.in_job": 3,
    }
    assert told.ledger.gpu_seconds["spare_idle"] == pytest.approx(2 * (8 + 6))


def test_node_loss_with_a_cold_spare_waits_for_it():
    told = tell(COLD, LOSS, LAYERS)
    assert told.lines == [
        *BEGIN,
        "8 steps 5-6",
        "8 fault 1 node_loss rank 3 node 1",
        "8 node 1 down 1/0/1/0/1",
        "13 fault 1 noticed by nccl_watchdog",
        "13 node_replacement 1 begins",
        "14 abort 1",
        "21 node 2 up working 2/0/0/0/1",
        "21 node_wait 7",
        "23 rendezvous 2",
        "24 checkpoint_load 1",
        "24 node_replacement 1 resumed",
        "24 resumed 4",
        *rest(24, 2),
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 4,
        "rework": 2,
        "detect": 5,
        "node_wait": 7,
        "checkpoint_load": 1,
        "restart.node_replacement": 3,
    }
    # one of two nodes from 8 to 21
    assert sum(told.ledger.gpu_seconds.values()) == pytest.approx(4 * 30 - 2 * 13)


def test_node_loss_without_a_spare_waits_for_the_repair():
    told = tell(REPAIR, scheduled(6, "node_loss", repair=True), LAYERS)
    assert told.during("fault 1") == [
        "8 fault 1 node_loss rank 3 node 1",
        "8 node 1 down 1/0/0/1/0",
        "13 fault 1 noticed by nccl_watchdog",
        "13 node_replacement 1 begins",
        "14 abort 1",
        "17 node 1 up working 2/0/0/0/0",
        "17 node_wait 3",
        "19 rendezvous 2",
        "20 checkpoint_load 1",
        "20 node_replacement 1 resumed",
    ]
    assert told.seconds["node_wait"] == 3


def test_node_loss_without_spare_and_repair_ends_the_job():
    told = tell(LOSS, LAYERS)
    assert told.after("fault 1") == [
        "8 fault 1 node_loss rank 3 node 1",
        "8 node 1 down 1/0/0/0/1",
        "13 fault 1 noticed by nccl_watchdog",
        "13 node_replacement 1 begins",
        "14 abort 1",
        "14 node_wait 0 cut",
        "14 node_replacement 1 failed: out of nodes: none left, none in repair",
        "14 failed at 6, kept 4: out of nodes: none left, none in repair",
    ]
    assert told.seconds == {
        "productive": 4,
        "checkpoint_stall": 2,
        "rework": 2,
        "detect": 5,
        "restart.node_replacement": 1,
    }


def test_node_loss_in_job_without_a_spare_is_beyond_the_layer():
    told = tell(LOSS, recovery("in_job", nccl_timeout=5))
    assert told.after("8 node")[1:] == [
        "13 fault 1 noticed by nccl_watchdog",
        "13 failed at 6, kept 4: no enabled layer contains this fault",
    ]


def test_node_loss_is_noticed_by_the_heartbeats_of_in_process():
    told = tell(HOT, LOSS, recovery("in_process", "in_job", in_process={"heartbeat_timeout": 4}))
    assert told.during("fault 1")[3:5] == ["12 fault 1 noticed by heartbeat", "12 in_job 1 begins"]


def test_a_second_loss_while_waiting_calls_a_second_spare():
    schedule = [{"step": 6, "rank": 3, "symptom": "node_loss", "scope": "node"}]
    late = every(17, "node_loss", "late", scope="node", detect=1)
    told = tell(
        {"cluster": {"nodes": 2, "gpus_per_node": 2, "spares": {"cold": 2}}},
        {"failures": {"schedule": schedule, "classes": [late]}},
        LAYERS,
        {"limits": {"max_wall": 30}},
    )
    (node,) = [event["node"] for event in told.log if event["kind"] == "fault" and event["id"] == 2]
    assert node == 0  # the only one left to strike
    rank = next(event["rank"] for event in told.log if event["kind"] == "fault" and event["id"] == 2)
    assert told.during("fault 1", "checkpoint_load") == [
        "8 fault 1 node_loss rank 3 node 1",
        "8 node 1 down 1/0/2/0/1",
        "13 fault 1 noticed by nccl_watchdog",
        "13 node_replacement 1 begins",
        "14 abort 1",
        "17 node_wait 3 cut",
        "17 node_replacement 1 cut: node_loss",
        f"17 fault 2 node_loss rank {rank} node 0",
        "17 node 0 down 0/0/2/0/2",
        "18 fault 2 noticed by class",
        "18 node_replacement 2 begins",
        "19 abort 1",
        "21 node 2 up working 1/0/1/0/2",
        "26 node 3 up working 2/0/0/0/2",
        "26 node_wait 7",
        "28 rendezvous 2",
        "29 checkpoint_load 1",
    ]


def test_a_whole_rack_leaves():
    racks = {"nodes": 4, "gpus_per_node": 1, "nodes_per_rack": 2, "spares": {"hot": 1, "cold": 2}}
    told = tell({"cluster": racks}, scheduled(6, "node_loss", scope="rack"), LAYERS)
    assert told.during("fault 1") == [
        "8 fault 1 node_loss rank 3 node 3",
        "8 node 2 down 3/1/2/0/1",
        "8 node 3 down 2/1/2/0/2",
        "8 node 4 up working 3/0/2/0/2",
        "13 fault 1 noticed by nccl_watchdog",
        "13 node_replacement 1 begins",
        "14 abort 1",
        "21 node 5 up working 4/0/1/0/2",
        "21 node_wait 7",
        "23 rendezvous 2",
        "24 checkpoint_load 1",
        "24 node_replacement 1 resumed",
    ]


def test_racks_are_struck_as_racks_and_the_last_may_be_smaller():
    told = tell(
        {"cluster": {"nodes": 3, "gpus_per_node": 1, "nodes_per_rack": 2, "spares": {"cold": 3}}},
        {"limits": {"max_wall": 16}},
        classes(every(11, "node_loss", per="rack", scope="rack", detect=1)),
        LAYERS,
    )
    assert told.after("fault 1") == [
        "11 fault 1 node_loss",
        "11 node 0 down 2/0/3/0/1",
        "11 node 1 down 1/0/3/0/2",
        "11 save 2 lost",
        "11 fault 2 node_loss",  # the other rack is as old
        "11 node 2 down 0/0/3/0/3",
        "12 fault 1 noticed by class",
        "12 node_replacement 1 begins",
        "13 abort 1",
        "16 node_wait 3 cut",
        "16 censored at 8, kept 4: limits.max_wall reached",
    ]
    assert told.ledger.interruptions == 2


def test_layer_fixed_brings_a_lost_node_back():
    told = tell(LOSS)
    assert told.during("fault 1") == [
        "8 fault 1 node_loss rank 3 node 1",
        "9 fault 1 noticed by fixed",
        "9 fixed 1 begins",
        "11 process_start 2",
        "12 checkpoint_load 1",
        "12 fixed 1 resumed",
    ]


# --- repair


def test_repair_stages_escalate_and_one_crew_works_on_one_node_at_a_time():
    stages = [{"time": 5, "escalate": 1}, {"time": 3}]
    losses = [
        {"step": 6, "rank": rank, "symptom": "node_loss", "scope": "node", "repair": True} for rank in (1, 3)
    ]
    told = tell(
        {"cluster": {"nodes": 4, "gpus_per_node": 1, "repair": {"crews": 1, "stages": stages}}},
        {"failures": {"schedule": losses}},
    )
    assert told.during("fault 1") == [
        "8 fault 1 node_loss rank 1 node 1",
        "8 node 1 down 3/0/0/1/0",
        "8 fault 2 node_loss rank 3 node 3",
        "8 node 3 down 2/0/0/2/0",
        "9 fault 1 noticed by fixed",
        "9 fixed 1 begins",
        "16 node 1 up working 3/0/0/1/0",
        "24 node 3 up working 4/0/0/0/0",
        "24 node_wait 15",
        "26 process_start 2",
        "27 checkpoint_load 1",
        "27 fixed 1 resumed",
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 4,
        "rework": 2,
        "detect": 1,
        "node_wait": 15,
        "checkpoint_load": 1,
        "restart.fixed": 2,
    }


def test_with_crews_enough_all_are_mended_at_once():
    losses = [
        {"step": 6, "rank": rank, "symptom": "node_loss", "scope": "node", "repair": True} for rank in (1, 3)
    ]
    told = tell(REPAIR, {"cluster": {"nodes": 4, "gpus_per_node": 1}}, {"failures": {"schedule": losses}})
    assert [line for line in told.lines if " up " in line] == [
        "17 node 1 up working 3/0/0/1/0",
        "17 node 3 up working 4/0/0/0/0",
    ]


@pytest.mark.parametrize(("renews", "strikes"), [(True, []), (False, ["15 fault 2 exception rank 0 node 0"])])
def test_a_mended_node_is_as_new_or_as_old_as_before(renews, strikes):
    """Lost at 6.5 and mended at 8.5, a node with a life of 13 fails at 21.5, or at 15 if it keeps its age."""
    loss = {"step": 5, "rank": 0, "symptom": "node_loss", "scope": "node", "repair": True}
    told = single(
        {"checkpoint": {"mode": "none"}, "workload": {"step_time": 1.3, "steps": 5}},
        {"cluster": {"repair": {"stages": [{"time": 2}], "renews": renews}}, "limits": {"max_wall": 20}},
        {"failures": {"schedule": [loss], "classes": [every(13, per="node", scope="node")]}},
    )
    assert "6.5 node 0 down 0/0/0/1/0" in told.lines
    assert "8.5 node 0 up working 1/0/0/0/0" in told.lines
    assert [line for line in told.lines if " exception " in line] == strikes


def test_a_mended_node_that_rests_as_a_cold_spare_stays_as_new():
    """Mended at 15 it rests to 31, and its life of 26 begins there; 12 s old as it was, it would fail at 45."""
    loss = {"rank": 0, "symptom": "node_loss", "scope": "node", "repair": True}
    told = single(
        {"checkpoint": {"mode": "none"}, "workload": {"steps": 24}},
        {"cluster": {"repair": {"stages": [{"time": 3}]}, "spares": {"cold": 1}}},
        {
            "failures": {
                "schedule": [{"step": 12, **loss}, {"step": 15, **loss}],
                "classes": [every(26, per="node", scope="node")],
            }
        },
    )
    assert [line for line in told.lines if " node " in line] == [
        "12 fault 1 node_loss rank 0 node 0",
        "12 node 0 down 0/0/1/1/0",
        "13 node 1 up working 1/0/0/1/0",
        "15 node 0 up cold 1/0/1/0/0",
        "30 fault 2 node_loss rank 0 node 1",
        "30 node 1 down 0/0/1/1/0",
        "31 node 0 up working 1/0/0/1/0",
        "33 node 1 up cold 1/0/1/0/0",
    ]
    assert told.lines[-2:] == ["57 steps 1-24", "57 completed 24"]


# --- health checks


def test_a_gpu_error_that_no_health_check_passes_ends_with_another_node():
    told = tell(
        COLD,
        scheduled(6, "gpu_error"),
        recovery(
            "in_process",
            "in_job",
            "node_replacement",
            in_process={"health_check_pass": 0},
            in_job={"health_check_pass": 0},
            node_replacement={"provision": 5},
        ),
    )
    assert told.lines == [
        *BEGIN,
        "8 steps 5-6",
        "8 fault 1 gpu_error rank 3 node 1",
        "8 fault 1 noticed by monitor",
        "8 in_process 1 begins",
        "10 abort 2",
        "10 in_process 1 escalated: the health check failed",
        "10 detect 0",
        "10 in_job 2 begins",
        "11 abort 1",
        "11 in_job 2 escalated: the health check failed",
        "11 node 1 down 1/0/1/0/1",
        "11 detect 0",
        "11 node_replacement 3 begins",
        "12 abort 1",
        "17 node 2 up working 2/0/0/0/1",
        "17 node_wait 5",
        "19 rendezvous 2",
        "20 checkpoint_load 1",
        "20 node_replacement 3 resumed",
        "20 resumed 4",
        *rest(20, 2),
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 4,
        "rework": 2,
        "restart.in_process": 2,
        "restart.in_job": 1,
        "restart.node_replacement": 3,
        "node_wait": 5,
        "checkpoint_load": 1,
    }


def test_a_gpu_error_that_the_launchers_health_check_passes_stays_on_its_node():
    told = tell(
        scheduled(6, "gpu_error"), recovery("in_process", "in_job", in_process={"health_check_pass": 0})
    )
    assert told.during("10 in_process") == [
        "10 in_process 1 escalated: the health check failed",
        "10 detect 0",
        "10 in_job 2 begins",
        "11 abort 1",
        "13 rendezvous 2",
        "14 checkpoint_load 1",
        "14 in_job 2 resumed",
    ]
    assert not any(" down " in line for line in told.lines)


def test_a_gpu_error_with_nothing_but_node_replacement_takes_the_node_at_once():
    look = 0.1 * u(1, 0, stream_id("poll") >> 2, 1, 0)  # torchrun looks every 0.1 s
    told = tell(HOT, REPAIR, scheduled(6, "gpu_error"), recovery("node_replacement", launcher="torchrun"))
    assert told.during("fault 1") == [
        "8 fault 1 gpu_error rank 3 node 1",
        "8 node 1 down 1/1/0/1/0",
        "8 node 2 up working 2/0/0/1/0",
        f"{brief(8 + look)} fault 1 noticed by monitor",
        f"{brief(8 + look)} node_replacement 1 begins",
        f"{brief(9 + look)} checkpoint_load 1",
        f"{brief(9 + look)} node_replacement 1 resumed",
    ]


def test_a_node_that_fails_its_check_leaves_even_if_the_job_then_fails():
    told = tell(HOT, REPAIR, scheduled(6, "gpu_error"), recovery("in_job", in_job={"health_check_pass": 0}))
    assert told.after("9 in_job") == [
        "9 in_job 1 failed: the health check failed",
        "9 node 1 down 1/1/0/1/0",
        "9 node 2 up working 2/0/0/1/0",
        "9 detect 0",
        "9 failed at 6, kept 4: the health check failed, and no further layer takes over",
    ]


# --- spares


def test_a_fault_on_a_hot_spare_does_not_stop_the_job():
    stream = stream_id("failures.loss") >> 2
    spare, job = (-20 * math.log(u(SPARE_FIRST, 0, stream, which, 0)) for which in (1, 0))
    assert spare < 6 < job < 10  # the spare's clock strikes first, then the job's
    loss = {"name": "loss", "mtbf": 20, "scope": "node", "symptom": "node_loss", "detect": 1}
    told = tell({"cluster": {"nodes": 1, "spares": {"hot": 1}}}, classes(loss), LAYERS, seed=SPARE_FIRST)
    idle = [f"{brief(spare)} fault 1 node_loss node 1 idle", f"{brief(spare)} node 1 down 1/0/0/0/1"]
    loop = [line for line in told.lines if line not in idle]
    assert len(loop) == len(told.lines) - 2
    assert loop[:4] == BEGIN and loop[5].startswith(f"{brief(job)} fault 2 node_loss rank 0")
    assert told.ledger.idle_faults == 1 and told.ledger.interruptions == 1
    assert told.lines[-1].endswith("out of nodes: none left, none in repair")
    assert told.ledger.gpu_seconds["spare_idle"] == pytest.approx(2 * spare)


def test_cold_spares_do_not_age_and_hot_ones_do():
    told = single(
        {"cluster": {"spares": {"hot": 1, "cold": 1}}, "limits": {"max_wall": 45}},
        {"checkpoint": {"mode": "none"}, "workload": {"steps": 21}},
        classes(every(20, "node_loss", per="node", scope="node", detect=1)),
        LAYERS,
    )
    assert told.lines == [
        "0 resumed 0",
        "20 steps 1-20",
        "20 fault 1 node_loss rank 0 node 0",
        "20 node 0 down 0/1/1/0/1",
        "20 node 1 up working 1/0/1/0/1",
        "20 fault 2 node_loss rank 0 node 1",  # as old as the other
        "20 node 1 down 0/0/1/0/2",
        "21 fault 1 noticed by class",
        "21 node_replacement 1 begins",
        "22 abort 1",
        "29 node 2 up working 1/0/0/0/2",
        "29 node_wait 7",
        "31 rendezvous 2",
        "31 node_replacement 1 resumed",
        "31 resumed 0",
        "45 steps 1-14",
        "45 censored at 14, kept 0: limits.max_wall reached",
    ]


def test_units_of_a_running_clock_do_not_age_through_a_restart():
    aged = every(9, per="node", scope="node")
    limit = {"limits": {"max_wall": 20}}
    wall, running = (single(classes(aged, clock=clock), limit) for clock in ("wall", "running"))
    assert [line for line in wall.lines if " exception " in line] == [
        "9 fault 1 exception rank 0 node 0",
        "18 fault 2 exception rank 0 node 0",
    ]
    assert [line for line in running.lines if " exception " in line] == ["9 fault 1 exception rank 0 node 0"]
    assert running.lines[-1] == "19 completed 8"  # the next one is due at 22: 13 + 9


# --- slow nodes


def slow(at, **how):
    return every(at, "slowdown", "slow", per="node", scope="node", **how)


def test_a_slow_node_sets_the_pace_for_a_while():
    told = single(
        classes(slow(7, slowdown={"factor": 2, "duration": 2})),
        {"workload": {"steps": 7}, "limits": {"max_wall": 99}},
    )
    assert told.lines == [
        *BEGIN,
        "7 fault 1 slowdown rank 0 node 0",
        "7 node 0 slow x2",
        "9 node 0 no longer slow",
        "10 steps 5-7 slow 1",
        "10 save 2 begins",
        "12 save 2 durable",
        "12 completed 7",
    ]
    assert told.seconds == {"productive": 7, "slowdown": 1, "checkpoint_stall": 4}
    assert told.ledger.incidents == ()


def test_a_slow_node_is_noticed_and_repaired():
    told = single(
        REPAIR,
        {"cluster": {"spares": {"cold": 1}}, "limits": {"max_wall": 12}},
        classes(slow(7, repair=True, detect=2, slowdown={"factor": 4, "until": "repaired"})),
    )
    assert told.lines == [
        *BEGIN,
        "7 fault 1 slowdown rank 0 node 0",
        "7 node 0 slow x4",
        "9 steps 5-5 +0.5 slow 1.5",
        "9 fault 1 noticed by check",
        "9 node 0 no longer slow",
        "9 node 0 down 0/0/1/1/0",
        "9 fixed 1 begins",
        "9 node 1 up working 1/0/0/1/0",
        "9 node_wait 0",
        "11 process_start 2",
        "12 checkpoint_load 1",
        "12 fixed 1 resumed",
        "12 resumed 4",
        "12 censored at 4, kept 4: limits.max_wall reached",
    ]
    assert told.seconds == {
        "productive": 4,
        "checkpoint_stall": 2,
        "rework": 3,
        "restart.fixed": 2,
        "checkpoint_load": 1,
    }


def test_a_slow_node_that_nobody_notices_stays_slow():
    told = single(
        REPAIR,
        classes(slow(6, repair=True, slowdown={"factor": 2, "until": "repaired"})),
        {"workload": {"steps": 6}, "checkpoint": {"final_save": False}},
    )
    assert told.after("fault 1") == [
        "6 fault 1 slowdown rank 0 node 0",
        "6 node 0 slow x2",
        "10 steps 5-6 slow 2",
        "10 completed 6",
    ]


def test_the_slowest_of_several_sets_the_pace():
    mild = every(6, "slowdown", "mild", slowdown={"factor": 2, "duration": 4})
    bad = every(7, "slowdown", "bad", slowdown={"factor": 4, "duration": 2})
    told = tell(
        classes(mild, bad),
        {"workload": {"steps": 7}, "checkpoint": {"final_save": False}, "limits": {"max_wall": 11}},
    )
    # 6-7 at 2: 0.5 step; 7-9 at 4: 0.5; 9-10 at 2: 0.5; the rest at 1
    assert told.lines[-1] == "11 censored at 6, kept 4: limits.max_wall reached"
    assert "11 steps 5-6 +0.5 slow 2.5" in told.lines


# --- ages


def test_stationary_ages_are_as_old_as_a_long_run_makes_them():
    """Of a constant life all ages are equally likely, and the first fault comes when the rest of it is over."""
    changes = {"cluster": {"initial_age": "stationary", "nodes": 1}, "limits": {"max_wall": 30}}
    told = tell(changes, classes(every(8, per="node", scope="node")))
    age = 8 * u(1, 0, stream_id("failures.soft.age") >> 2, 0, 0)
    strikes = [float(line.split()[0]) for line in told.lines if " exception " in line]
    assert strikes == pytest.approx([8 - age + 8 * k for k in range(len(strikes))], abs=1e-6)
    assert len(strikes) >= 3 and params.AGE == 3
