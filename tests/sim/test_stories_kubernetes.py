"""Restarts by Kubernetes told event by event: each pod by its own clock, and the job along the pod that is ready last.

The tiny job is that of stories.py on two pods. A container's script takes 1 s on pod 0 and 3 s on pod 1, its agent
1 s, its workers 2 s; the load takes 1 s; the watchdog ends a hanging rank after 10 s. A fault at step 6 strikes at 8.
All times are worked out by hand from these numbers.
"""

import math

import pytest

from sim import codes, params
from sim.draws import stream_id, u
from sim.recovery import kubernetes as kubernetes_rules
from sim.recovery import pods
from sim.recovery.pod_ends import backoff_s, strike_pods
from tests.sim.stories import BEGIN, brief, classes, every, merged, rest, scenario, scheduled, tell

SCRIPT_0, SCRIPT_1, AGENT, WORKERS, LOAD, NCCL = 1, 3, 1, 2, 1, 10
ONE_WAY = SCRIPT_1 + AGENT + WORKERS  # of pod 1, from the start of its container to its workers
FAULT_6 = [*BEGIN, "8 steps 5-6"]


def kubernetes(**settings):
    return {
        "workload": {"process_start": WORKERS, "count_first_process_start": False},
        "recovery": {
            "launcher": "torchrun",
            "nccl_timeout": NCCL,
            "layers": ["kubernetes"],
            "kubernetes": {
                "restart_policy": "OnFailure",
                "backoff_limit": 100,
                "start_delay": {"node0": SCRIPT_0, "others": SCRIPT_1},
                "agent_start": AGENT,
                **settings,
            },
        },
    }


PODS = kubernetes()
KEEP_ALL = {"checkpoint": {"mode": "ideal"}}  # nothing is lost, nothing loaded: the loop goes on where it was


def pod(told, number, phase=None):
    """Return what one pod did as (phase, begin, end), or the lengths of one phase."""
    begun, found = {}, []
    for event in told.log:
        if event["kind"] == "phase_begin" and event["rank"] == 2 * number:
            begun[event["phase"]] = event["t"]
        elif event["kind"] == "phase_end" and event["rank"] == 2 * number:
            found.append((event["phase"], brief(begun[event["phase"]]), brief(event["t"])))
    if phase is None:
        return found
    return [float(end) - float(begin) for name, begin, end in found if name == phase]


def faults(*steps, rank=0):
    return {
        "failures": {"schedule": [{"step": step, "rank": rank, "symptom": "exception"} for step in steps]}
    }


# --- the plain course of things


def test_a_fault_on_pod_0_the_other_pod_hangs_until_its_watchdog():
    told = tell(PODS, scheduled(6, rank=0))
    assert told.lines == [
        *FAULT_6,
        "8 fault 1 exception rank 0 node 0",
        "18 fault 1 noticed by nccl_watchdog",
        "18 kubernetes 1 begins",
        "24 process_start 6",
        "25 checkpoint_load 1",
        "25 kubernetes 1 resumed",
        "25 resumed 4",
        *rest(25, 2),
    ]
    assert pod(told, 0) == [
        ("process_start", "8", "10"),
        ("rendezvous", "10", "22"),
        ("process_start", "22", "24"),
        ("checkpoint_load", "24", "25"),
    ]
    assert pod(told, 1) == [
        ("detect", "8", "18"),
        ("process_start", "18", "24"),
        ("checkpoint_load", "24", "25"),
    ]
    assert told.seconds == {
        "productive": 8,
        "checkpoint_stall": 4,
        "rework": 2,
        "detect": 10,
        "restart.kubernetes": 6,
        "checkpoint_load": 1,
    }


def test_a_hang_ends_all_pods_at_once():
    told = tell(PODS, scheduled(6, "hang", rank=2))
    assert told.after("fault 1") == [
        "8 fault 1 hang rank 2 node 1",
        "18 fault 1 noticed by nccl_watchdog",
        "18 kubernetes 1 begins",
        "24 process_start 6",
        "25 checkpoint_load 1",
        "25 kubernetes 1 resumed",
        "25 resumed 4",
        *rest(25, 2),
    ]
    assert pod(told, 0)[:3] == [
        ("detect", "8", "18"),
        ("process_start", "18", "20"),
        ("rendezvous", "20", "22"),
    ]


def test_a_person_ends_a_hang_that_no_watchdog_ends():
    told = tell(PODS, scheduled(6, "hang"), {"recovery": {"nccl_timeout": "off", "human_response": 30}})
    assert told.during("fault 1 noticed") == [
        "38 fault 1 noticed by human",
        "38 kubernetes 1 begins",
        "44 process_start 6",
        "45 checkpoint_load 1",
        "45 kubernetes 1 resumed",
    ]


def test_the_launcher_takes_its_time_to_end_the_other_workers():
    told = tell(kubernetes(launcher_exit=4), scheduled(6, rank=0))
    assert pod(told, 0)[:2] == [("abort", "8", "12"), ("process_start", "12", "14")]
    assert told.during("noticed") == [
        "18 fault 1 noticed by nccl_watchdog",
        "18 kubernetes 1 begins",
        "22 abort 4",
        "28 process_start 6",
        "29 checkpoint_load 1",
        "29 kubernetes 1 resumed",
    ]


def test_a_fault_before_any_checkpoint_loads_nothing():
    assert tell(PODS, scheduled(3, rank=0)).during("noticed")[-2:] == [
        "19 process_start 6",
        "19 kubernetes 1 resumed",
    ]


def test_both_pods_struck_at_once_leave_nobody_to_hang():
    """Two scheduled faults of one step, or one that strikes a rack."""
    two = {"failures": {"schedule": [{"step": 6, "rank": r, "symptom": "exception"} for r in (0, 2)]}}
    rack = {"failures": {"schedule": [{"step": 6, "rank": 0, "symptom": "process_exit", "scope": "rack"}]}}
    for fault in (two, merged(rack, {"cluster": {"nodes_per_rack": 2}})):
        told = tell(PODS, fault)
        assert pod(told, 0)[0] == ("process_start", "8", "10") and pod(told, 1)[0] == (
            "process_start",
            "8",
            "14",
        )
        assert "15 resumed 4" in told.lines


# --- back-off


def test_back_off_sequence():
    on_failure, never = (
        params.compile_scenario(scenario(kubernetes(restart_policy=x))) for x in ("OnFailure", "Never")
    )
    assert [backoff_s(on_failure, taken) for taken in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert [backoff_s(never, failed) for failed in range(1, 9)] == [10, 20, 40, 80, 160, 320, 600, 600]
    assert backoff_s(on_failure, 10**6) == 300
    reduced = kubernetes(version="1.33", backoff={"reduced": True})  # KEP-4603
    capped = kubernetes(version="1.35", backoff={"max_container_restart_period": 30})  # KEP-5593
    sequences = {
        name: params.compile_scenario(scenario(k)) for name, k in (("reduced", reduced), ("capped", capped))
    }
    assert [backoff_s(sequences["reduced"], n) for n in range(9)] == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    assert [backoff_s(sequences["capped"], n) for n in range(5)] == [0, 10, 20, 30, 30]


def test_back_off_grows_with_every_restart_and_begins_again_after_ten_minutes():
    """Faults at steps 1 to 4 on pod 0, then one after 646 s of training and one a second later."""
    told = tell(PODS, KEEP_ALL, faults(1, 2, 3, 4, 650, 651), {"workload": {"steps": 700}})
    assert [t for t, *_ in (line.split() for line in told.lines if " resumed " in line and "kub" not in line)] == [
        # the watchdog (10 s), the back-off, pod 1's way back (6 s); then the steps to the next fault
        "0", f"{1 + 10 + 0 + 6}", f"{18 + 10 + 10 + 6}", f"{45 + 10 + 20 + 6}", f"{82 + 10 + 40 + 6}",
        f"{784 + 10 + 0 + 6}", f"{801 + 10 + 10 + 6}",
    ]  # fmt: skip
    for number in (0, 1):
        assert pod(told, number, "backoff") == [10, 20, 40, 10]  # the first restart of each row comes at once
    assert told.ledger.interruptions == 6 and told.ledger.completed


@pytest.mark.parametrize(("step", "back_off"), [(587, 80), (588, 0)])
def test_the_knife_edge_of_the_reset(step, back_off):
    """Both containers have run 599 s when the fifth fault ends them, or 600."""
    told = tell(PODS, KEEP_ALL, faults(1, 2, 3, 4, step), {"workload": {"steps": 600}})
    assert pod(told, 0, "backoff") == [10, 20, 40, *([back_off] if back_off else [])]
    assert f"{138 + step - 4 + 10 + back_off + 6} resumed {step}" in told.lines


def test_with_never_the_whole_job_shares_one_back_off_that_nothing_resets():
    """Pod 0 fails at 8, pod 1 at 17: two failed pods, so both are made anew 20 s after the second."""
    told = tell(kubernetes(restart_policy="Never"), scheduled(6, rank=0), {"recovery": {"nccl_timeout": 9}})
    assert pod(told, 0)[0] == ("backoff", "8", "37") and pod(told, 1)[1] == ("backoff", "17", "37")
    assert f"{37 + ONE_WAY + LOAD} resumed 4" in told.lines
    late = tell(kubernetes(restart_policy="Never"), KEEP_ALL, faults(6, 900), {"workload": {"steps": 1000}})
    assert pod(late, 1, "backoff") == [20, 80]


# --- the stores


def test_a_pod_that_joins_the_stale_store_dies_with_it():
    """Pod 1 is back at 14 while pod 0 still hangs; its workers end with rank 0 at 18, and its back-off begins."""
    told = tell(PODS, scheduled(6, rank=2))
    assert told.lines == [
        *FAULT_6,
        "8 fault 1 exception rank 2 node 1",
        "8 fault 1 noticed by monitor",
        "8 kubernetes 1 begins",
        "14 process_start 6",
        "18 rendezvous 4",
        "28 backoff 10",
        "34 process_start 6",
        "35 checkpoint_load 1",
        "35 kubernetes 1 resumed",
        "35 resumed 4",
        *rest(35, 2),
    ]
    assert pod(told, 0) == [
        ("detect", "8", "18"),
        ("process_start", "18", "20"),
        ("rendezvous", "20", "32"),
        ("process_start", "32", "34"),
        ("checkpoint_load", "34", "35"),
    ]


LATE = {"launcher_exit": 4, "start_delay": {"node0": SCRIPT_0, "others": 4}, "store_timeout": 30}


def test_a_pod_that_joins_the_stale_store_too_late_waits_for_the_store_timeout():
    """Pod 0's workers end at 18, its launcher at 22; pod 1 joins it at 17, and its workers find nobody at 19."""
    told = tell(kubernetes(**LATE), scheduled(6, rank=2))
    assert pod(told, 1) == [
        ("abort", "8", "12"),
        ("process_start", "12", "19"),
        ("rendezvous", "19", "49"),
        ("abort", "49", "53"),
        ("backoff", "53", "63"),
        ("process_start", "63", "70"),
        ("checkpoint_load", "70", "71"),
    ]
    assert pod(told, 0)[1:4] == [
        ("abort", "18", "22"),
        ("process_start", "22", "24"),
        ("rendezvous", "24", "68"),
    ]
    assert told.ledger.incidents[0].restart_events == 1  # rank 0 entered the training function once


def test_an_agent_that_waits_less_than_the_stale_pod_gives_up_before_it_comes():
    """Pod 0 founds a store at 24 and again at 56; pod 1 is in time for the second."""
    told = tell(kubernetes(**LATE, join_timeout=20), scheduled(6, rank=2))
    assert pod(told, 0)[3:6] == [
        ("rendezvous", "24", "44"),
        ("backoff", "44", "54"),
        ("process_start", "54", "56"),
    ]
    assert "71 resumed 4" in told.lines


def test_pods_that_chase_each_other_until_backoff_limit():
    """Pod 0's agent waits 1 s, pod 1 is always 2 s later: restarts at 18, 18, 31, 33, 54, 58 and 97."""
    chase = kubernetes(join_timeout=1, backoff_limit=7)
    told = tell(chase, scheduled(6, "hang"))
    assert told.lines[-1].startswith("97 failed at 6, kept 4: the Job failed")
    assert pod(told, 0, "backoff") == [10, 20, 40]
    assert pod(told, 1, "backoff") == [10, 20, 34]  # the last one is cut by the end, at 97
    assert "25 resumed 4" in tell(merged(chase, kubernetes(join_timeout=3)), scheduled(6, "hang")).lines


def test_the_build_of_the_model_must_end_within_one_nccl_timeout_on_all_pods():
    """The faster pod waits in the first collective; its watchdog ends what the slower one has not reached."""
    spread = {"workload": {"init": {"uniform": {"low": 0, "high": 40}}}, "limits": {"max_wall": 1000}}
    told = tell(PODS, KEEP_ALL, spread, scheduled(6, "hang"))
    first_start, *builds = (
        [40 * u(1, 0, stream_id("workload.init") >> 2, i, k) for i in (0, 1)] for k in (0, 2)
    )
    begin, (x, y) = first_start[0] + 6 + NCCL + ONE_WAY, builds[0]
    assert abs(x - y) > NCCL
    faster = 0 if x < y else 1
    assert ("init", brief(begin), brief(begin + min(x, y) + NCCL)) in pod(told, faster)
    assert told.ledger.incidents[0].restart_events >= 2


# --- the Job's end


def test_restarts_of_all_pods_sum_up_to_backoff_limit():
    """Pod 0 restarts at 1 and 28, pod 1 at 11: the third one fails the Job."""
    told = tell(kubernetes(backoff_limit=3), KEEP_ALL, faults(1, 2), {"workload": {"steps": 9}})
    assert told.lines[-1] == (
        "28 failed at 2, kept 2: the Job failed: its restarts reached backoffLimit, and no further layer takes over"
    )
    assert tell(
        kubernetes(backoff_limit=5), KEEP_ALL, faults(1, 2), {"workload": {"steps": 9}}
    ).ledger.completed


def test_with_never_one_failed_pod_more_than_backoff_limit_fails_the_job():
    never = {"restart_policy": "Never"}
    told = tell(kubernetes(**never, backoff_limit=1), scheduled(6, rank=0))
    assert told.lines[-1].startswith("18 failed at 6, kept 4: the Job failed")
    assert tell(kubernetes(**never, backoff_limit=2), scheduled(6, rank=0)).ledger.completed


# --- lost nodes

LOSS = {"cluster": {"spares": {"cold": 1}}, "recovery": {"human_response": 1e6}}
NO_NAME = {"grace": 40, "toleration": 60, "dns": {"tries": 3, "every": 5}}


def test_a_lost_node_is_noticed_evicted_and_replaced():
    """Pod 0 is evicted after 40 + 60 s. Until then pod 1 asks DNS in vain: 3 tries of 5 s, then out."""
    told = tell(kubernetes(**NO_NAME), LOSS, scheduled(6, "node_loss", rank=0))
    assert told.after("fault 1") == [
        "8 fault 1 node_loss rank 0 node 0",
        "8 node 0 down 1/0/1/0/1",
        "18 fault 1 noticed by nccl_watchdog",
        "18 kubernetes 1 begins",
        "21 process_start 3",
        "36 rendezvous 15",
        "46 backoff 10",
        "49 process_start 3",
        "64 rendezvous 15",
        "84 backoff 20",
        "87 process_start 3",
        "102 rendezvous 15",
        "108 node 2 up working 2/0/0/0/1",
        "142 backoff 40",
        "148 process_start 6",
        "149 checkpoint_load 1",
        "149 kubernetes 1 resumed",
        "149 resumed 4",
        *rest(149, 2),
    ]
    assert pod(told, 0)[:3] == [
        ("node_wait", "8", "108"),
        ("process_start", "108", "110"),
        ("rendezvous", "110", "146"),
    ]


def test_with_a_pod_failure_policy_the_replacement_never_comes():
    """So pod 1's restarts alone, at 18, 46, 84 and 142, reach the limit; a person who deletes the pod helps."""
    policy = {**NO_NAME, "pod_failure_policy": True, "backoff_limit": 4}
    told = tell(kubernetes(**policy), LOSS, scheduled(6, "node_loss", rank=0))
    assert told.lines[-1].startswith(
        "142 failed at 6, kept 4: the Job failed: its restarts reached backoffLimit"
    )
    helped = tell(
        kubernetes(**policy), LOSS, scheduled(6, "node_loss", rank=0), {"recovery": {"human_response": 50}}
    )
    assert pod(helped, 0)[:2] == [("node_wait", "8", "58"), ("process_start", "58", "62")]
    assert "63 resumed 4" in helped.lines


def test_a_new_pod_owes_nothing_for_the_one_before_it():
    """The restarts of live pods count: pod 0's one is forgotten when its node is lost, so pod 1's two are all."""
    two = {"failures": {"schedule": [
        {"step": 5, "rank": 0, "symptom": "exception"},
        {"step": 6, "rank": 0, "symptom": "node_loss", "scope": "node"},
    ]}}  # fmt: skip
    settings = {"grace": 5, "toleration": 0, "backoff_limit": 3}
    told = tell(kubernetes(**settings), LOSS, two)
    assert told.ledger.completed
    assert tell(kubernetes(**settings), LOSS, faults(5, 6)).ledger.failed


def test_a_drained_node_leaves_at_once():
    repair = {"repair": {"stages": [{"time": 1000}]}}
    told = tell(PODS, LOSS, {"cluster": repair}, scheduled(6, "gpu_error", rank=0, repair=True))
    assert pod(told, 0)[0] == ("process_start", "8", "10")
    assert "25 resumed 4" in told.lines


def test_without_a_node_to_come_the_job_ends():
    told = tell(kubernetes(grace=5, toleration=0), scheduled(6, "node_loss", rank=0))
    assert told.lines[-1].startswith("13 failed at 6, kept 4: out of nodes")


# --- JobSet


def test_jobset_in_place_restarts_all_containers_together():
    """2 s after pod 0's container has ended all start again; nobody waits for a watchdog, nothing is counted."""
    told = tell(kubernetes(in_place=True, in_place_restart=2, backoff_limit=0), scheduled(6, rank=0))
    assert told.after("fault 1")[:7] == [
        "8 fault 1 exception rank 0 node 0",
        "8 fault 1 noticed by monitor",
        "8 kubernetes 1 begins",
        "10 backoff 2",
        "16 process_start 6",
        "17 checkpoint_load 1",
        "17 kubernetes 1 resumed",
    ]
    assert pod(told, 0)[:3] == [
        ("backoff", "8", "10"),
        ("process_start", "10", "12"),
        ("rendezvous", "12", "14"),
    ]


# --- faults that join, layers below


def test_a_second_fault_during_recovery_joins_the_incident():
    """At 20 pod 0 waits for pod 1, whose script sleeps; both containers end, each with its second back-off."""
    both = {"failures": {**scheduled(6, rank=0)["failures"], **classes(every(20))["failures"]}}
    told = tell(PODS, both, {"limits": {"max_wall": 38}})
    assert told.after("fault 1") == [
        "8 fault 1 exception rank 0 node 0",
        "18 fault 1 noticed by nccl_watchdog",
        "18 kubernetes 1 begins",
        "20 process_start 2 cut",
        "20 fault 2 exception",
        "20 fault 2 noticed by monitor",
        "30 backoff 10",
        "36 process_start 6",
        "37 checkpoint_load 1",
        "37 kubernetes 1 resumed",
        "37 resumed 4",
        "38 steps 5-5",
        "38 censored at 5, kept 4: limits.max_wall reached",
    ]
    assert len(told.ledger.incidents) == 1 and told.ledger.interruptions == 2


@pytest.mark.parametrize("lower", ["in_process", "in_job"])
def test_a_layer_that_gives_up_ends_all_containers(lower):
    """Nobody hangs then: both pods start at once."""
    changes = {
        "recovery": {
            "launcher": "ft_launcher",
            "layers": [lower, "kubernetes"],
            "in_process": {
                "monitor_interval": 0,
                "last_call_wait": 0,
                "abort": 1,
                "barrier": 1,
                "success": 0.0,
            },
            "in_job": {"monitor_interval": 1e-9, "memory_reclaim": 1, "rendezvous": 2, "success": 0.0},
        }
    }
    told = tell(PODS, changes, scheduled(6, rank=0))
    end = next(line for line in told.lines if "escalated" in line)
    gave_up = float(end.split()[0])
    assert end == f"{brief(gave_up)} {lower} 1 escalated: the restart attempt failed"
    assert pod(told, 0)[0] == ("process_start", brief(gave_up), brief(gave_up + 2))
    assert f"{brief(gave_up + ONE_WAY + LOAD)} resumed 4" in told.lines
    assert told.ledger.incidents[0].restart_events == 2


# --- the rules alone: faults in every state of a pod


class Yard:
    """Pods that are led by hand; the loads take no time."""

    def __init__(self, *changes, nodes=2):
        s = scenario({"cluster": {"nodes": nodes}}, PODS, {"checkpoint": {"load_time": 0}}, *changes)
        self.p = params.compile_scenario(s)
        self.pods = pods.blank(nodes)
        self.now = 0.0
        kubernetes_rules.start_pods(self.pods, self.p, 0.0)

    def strike(self, at, pod, symptom=codes.EXCEPTION):
        self.go(at)
        strike_pods(self.pods, self.p, pod, symptom, False, -1.0, math.inf, at, 1, 0)
        return self

    def go(self, until):
        """Let everything happen up to a time; the states then."""
        while True:
            status, soonest = kubernetes_rules.advance_pods(self.pods, self.p, self.now, 1, 0)
            self.status = status
            if soonest > until or status in (codes.FAILED, codes.RESUMED):
                self.now = until
                return [pods.NAMES[state] for state in self.pods.state]
            self.now = soonest

    def until(self, pod):
        return self.pods.until[pod]

    def resumes(self):
        """Return when all run."""
        while True:
            status, soonest = kubernetes_rules.advance_pods(self.pods, self.p, self.now, 1, 0)
            if status == codes.RESUMED:
                return self.now
            self.now = soonest


def test_who_joined_and_died_since_still_counts():
    """Pod 1 joins at 22 and is struck at 25; pod 2, struck at 19, completes the store at 33 without it."""
    yard = Yard(nodes=3).strike(8, 0).strike(19, 2).strike(25, 1)
    assert yard.go(32) == ["joined", "waiting", "agent"]
    assert yard.go(33) == ["workers", "waiting", "workers"]
    assert yard.go(39) == ["store", "workers", "store"]  # its agent finds all joined, and starts at once
    assert yard.resumes() == 41


def test_rank_0_waits_for_all_workers_for_the_store_timeout_and_takes_the_others_with_it():
    yard = Yard(kubernetes(store_timeout=3), nodes=3).strike(8, 0).strike(19, 2).strike(25, 1)
    assert yard.go(37) == ["store", "script", "store"]
    assert yard.go(38) == ["waiting", "agent", "waiting"]


WHEN = {"script": 20, "agent": 21.5, "workers": 23, "build": 25, "meet": 28, "read": 30.5, "warm": 31.5}
SLOW = {
    "workload": {"init": {"empirical": [2, 6]}, "warmup": 1},
    "checkpoint": {"load_time": 1},
    "recovery": {"kubernetes": {"store_timeout": 50}},
}


@pytest.fixture
def slow_yard():
    """Return two pods, of which one builds 4 s longer; struck at 8, they load from 30 to 31 and warm up to 32."""
    yard = Yard(SLOW).strike(8, 0)
    yard.pods.job[pods.LOAD_NEEDED] = 1 + params.LOAD
    yard.fast = min((0, 1), key=lambda i: u(1, 0, stream_id("workload.init") >> 2, i, 2))
    return yard


def test_the_yard_is_in_these_states_at_these_times(slow_yard):
    for state, at in WHEN.items():
        assert slow_yard.go(at)[1 if at < 24 else slow_yard.fast] == state
    assert slow_yard.resumes() == 32


@pytest.mark.parametrize("state", WHEN)
def test_an_exception_ends_the_container_in_every_state(slow_yard, state):
    struck = 1 if WHEN[state] < 24 else slow_yard.fast
    other = 1 - struck
    slow_yard.strike(WHEN[state], struck)
    found = slow_yard.go(WHEN[state])
    assert found[struck] == "waiting"
    # who is in a collective hangs; who is on the way there goes on
    expected = {
        "script": "joined",
        "agent": "joined",
        "workers": "workers",
        "build": "build",
        "meet": "build",
    }
    assert found[other] == expected.get(state, "hung")
    if found[other] == "hung":
        assert slow_yard.until(other) == WHEN[state] + NCCL


@pytest.mark.parametrize("state", WHEN)
def test_a_hang_lasts_until_the_neighbours_of_the_hanging_rank_time_out(slow_yard, state):
    at = WHEN[state]
    struck = 1 if at < 24 else slow_yard.fast
    slow_yard.strike(at, struck, codes.HANG)
    if state in ("script", "agent"):  # nobody is there to hang
        assert slow_yard.go(at)[struck] == state
        return
    assert slow_yard.go(at)[struck] == "hung"
    ends = {"workers": 24 + 50, "build": 26 + NCCL, "meet": 26 + NCCL}
    assert slow_yard.until(struck) == ends.get(state, at + NCCL)


def test_nobody_hangs_twice(slow_yard):
    yard = Yard().strike(8, 1, codes.HANG).strike(12, 0, codes.HANG)
    assert [yard.until(0), yard.until(1)] == [18, 18]


@pytest.mark.parametrize("nodes", [1, 5])
def test_any_number_of_pods(nodes):
    assert Yard(nodes=nodes).strike(8, 0).resumes() == (12 if nodes == 1 else 24)


def test_a_node_that_dies_closes_no_connection():
    """Pod 1 has joined pod 0's store at 22 and waits there in vain, for the join timeout, in spite of a new store."""
    yard = (
        Yard(kubernetes(join_timeout=300), nodes=3).strike(8, 0).strike(19, 2).strike(25, 0, codes.NODE_LOSS)
    )
    assert yard.go(28)[:2] == ["lost", "joined"] and yard.until(1) == 322
    dies = Yard(kubernetes(join_timeout=300), nodes=3).strike(8, 0).strike(19, 2).strike(25, 0)
    assert dies.go(28)[:2] == ["waiting", "waiting"]
