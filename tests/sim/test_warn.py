"""Every rule that warns, with a wrong example that it finds and a right one that it leaves in peace."""

import re

import pytest

from sim import catalog
from sim.ledger import Incident, RunLedger
from sim.scenario import load_scenario
from sim.warn import RULES, warnings_between, warnings_for, warnings_for_log

SOUND = {
    "cluster": {"nodes": 4, "gpus_per_node": 8, "nodes_per_rack": 2},
    "workload": {"step_time": "2s", "steps": 100_000, "process_start": "20s", "init": "30s", "warmup": "10s"},
    "checkpoint": {"mode": "sync", "interval": "30min", "write_time": "30s", "load_time": "20s"},
    "failures": {
        "classes": [{"name": "bug", "mtbf": "20h", "per": "job", "scope": "job", "symptom": "exception"}]
    },
    "recovery": {"layers": ["in_job"], "nccl_timeout": "5min"},
}

ASYNC = ["checkpoint.mode=async", "checkpoint.stall_time=2s"]
IN_PROCESS = ["recovery.layers=[in_process, in_job]", "recovery.in_process.soft_timeout=1min",
              "recovery.in_process.hard_timeout=2min"]  # fmt: skip
LOCAL = ["checkpoint.mode=local", "checkpoint.stall_time=2s", "checkpoint.write_time=null"]
NEAR = "{name: near, every: 10min, write_time: 5s, load_time: 5s, survives: [exception, process_exit]}"
FAR = "{name: far, every: 1h, stall_time: 2s, write_time: 60s, load_time: 20s, survives: all}"
LIMIT = ["recovery.layers=[slurm]", "recovery.slurm.time_limit=8h"]
HANG = "failures.classes.bug.symptom=hang"
LOSS = ["failures.classes.bug.symptom=node_loss", "failures.classes.bug.scope=node"]
SPOT = [*LOSS, "cluster.spares.hot=10", "cluster.preemption={warning: 2min}"]
REPAIR = ["failures.classes.bug.symptom=gpu_error", "failures.classes.bug.scope=node",
          "failures.classes.bug.repair=true", "cluster.repair.stages=[{time: 4h}]",
          "recovery.layers=[in_job, node_replacement]"]  # fmt: skip
NO_DETECTOR = [HANG, "recovery.nccl_timeout=off"]
NCCL = "recovery.nccl_timeout"



def tiers(*listed):
    return f"{{mode: tiered, tiers: [{', '.join(listed)}]}}"


# rule, what makes the sound scenario wrong, where it is told and what must be said, what makes it right again
CASES = [
    ("initial-heartbeat-too-short",
     ["recovery.in_job.heartbeat_timeout=30min", "recovery.in_job.initial_heartbeat_timeout=10min"],
     "recovery.in_job.initial_heartbeat_timeout", r"10m is below heartbeat_timeout, 30m",
     ["recovery.in_job.initial_heartbeat_timeout=40min"]),
    ("heartbeat-below-nccl", ["recovery.in_job.heartbeat_timeout=4min"],
     "recovery.in_job.heartbeat_timeout", r"4m is not above recovery.nccl_timeout, 5m", [f"{NCCL}=2min"]),
    ("heartbeat-below-nccl", ["recovery.in_job.section_timeouts.step=1min"],
     "recovery.in_job.section_timeouts.step", r"1m is not above", ["recovery.in_job.section_timeouts.step=6min"]),
    ("nccl-below-hard-timeout", [*IN_PROCESS, f"{NCCL}=2min"],
     NCCL, r"2m is not above in_process.hard_timeout, 2m", [f"{NCCL}=3min"]),
    ("soft-above-hard", [*IN_PROCESS, "recovery.in_process.soft_timeout=2min"],
     "recovery.in_process.soft_timeout", r"2m is not below hard_timeout, 2m",
     ["recovery.in_process.soft_timeout=1min"]),
    ("save-longer-than-timeout", [*IN_PROCESS, "checkpoint.write_time=90s"],
     "recovery.in_process.soft_timeout", r"1m, but one save in a hundred stops the loop for 1m 30s",
     ["recovery.in_process.atomic=true"]),
    ("save-longer-than-timeout", [*IN_PROCESS, "checkpoint.write_time=150s", "recovery.in_process.atomic=true"],
     "recovery.in_process.hard_timeout", r"2m, but", ["recovery.in_process.hard_timeout=4min"]),
    ("save-longer-than-timeout",  # the mean would pass: the slowest in a hundred decides
     ["checkpoint.write_time={lognormal: {median: 100s, mean: 150s}}", "recovery.in_job.heartbeat_timeout=6min"],
     "recovery.in_job.heartbeat_timeout", r"6m, but one save in a hundred stops the loop for 1[0-9]m",
     ["recovery.in_job.heartbeat_timeout=30min"]),
    ("save-longer-than-timeout",
     ["recovery.in_job.section_timeouts.checkpointing=20s"],
     "recovery.in_job.section_timeouts.checkpointing", r"20s, but",
     ["recovery.in_job.section_timeouts.checkpointing=1min"]),
    ("save-longer-than-nccl", ["checkpoint.write_time=6min"], NCCL, r"5m, but a save stops the loop for up to 6m",
     [f"{NCCL}=10min"]),
    ("step-longer-than-timeout", ["workload.step_time={uniform: {low: 1s, high: 400s}}"],
     NCCL, r"5m, but one step in a hundred takes 6m 36s", [f"{NCCL}=10min"]),
    ("slowdown-looks-like-hang",
     ["failures.classes.bug.symptom=slowdown", "failures.classes.bug.scope=node",
      "failures.classes.bug.slowdown={factor: 200, duration: 1h}"],
     "failures.classes.bug.slowdown.factor", r"up to 6m 40s then, and recovery.nccl_timeout \(5m\)",
     ["failures.classes.bug.slowdown={factor: 20, duration: 1h}"]),
    ("start-longer-than-timeout", ["recovery.in_job.initial_heartbeat_timeout=80s"],
     "recovery.in_job.initial_heartbeat_timeout", r"1m 20s, but a start takes 1m 22s: .* for ever",
     ["recovery.in_job.initial_heartbeat_timeout=2min"]),
    ("start-longer-than-timeout",
     ["recovery.in_job.section_timeouts.setup=3min", "workload.init={exponential: {mean: 1min}}"],
     "recovery.in_job.section_timeouts.setup", r"3m, but a start may take 5m", ["workload.init=1min"]),
    ("hang-undetected", NO_DETECTOR, "failures.classes.bug", r"until limits.max_wall ends the run", [f"{NCCL}=1min"]),
    ("hang-undetected", [*NO_DETECTOR, "recovery.human_response={exponential: {mean: 9h}}"],  # goodfire spd#552
     "failures.classes.bug", r"after 9h on average: 288 GPU-hours each time",
     ["failures.classes.bug.detect=10min"]),
    ("hang-undetected", [*NO_DETECTOR, "recovery.layers=[slurm]", "recovery.slurm.time_limit=8h"],
     "failures.classes.bug", r"until the time limit of the allocation, 8h", ["recovery.layers=[fixed]"]),
    ("hang-found-late", [HANG, f"{NCCL}=120min", "cluster.nodes=128"],  # 1,024 GPUs, 120 min [field_cases.md]
     NCCL, r"each hang costs 2,048 GPU-hours .* 2m 30s would be 5 times", [f"{NCCL}=5min"]),
    ("time-limit-below-save",
     ["recovery.layers=[slurm]", "recovery.slurm.time_limit=30min"],
     "recovery.slurm.time_limit", r"30m, but the first save is durable 31m 50s after",
     ["recovery.slurm.time_limit=8h"]),
    ("time-limit-below-save",  # exactly at the limit it still is durable
     ["recovery.layers=[slurm]", "recovery.slurm={time_limit: 45min, prolog: 13min}", "checkpoint.interval=31min"],
     "recovery.slurm.time_limit", r"45m, but the first save is durable 45m 50s after",
     ["recovery.slurm.prolog=730s"]),
    ("restart-budget", ["recovery.layers=[slurm]", "recovery.slurm={time_limit: 8h, max_restarts: 5}"],
     "recovery.slurm.max_restarts", r"5, but at least 8.78 restarts", ["recovery.slurm.max_restarts=20"]),
    ("no-save-before-end", ["checkpoint.interval=100000 steps"],
     "checkpoint.interval", r"100000 steps, and the job has 100000", ["checkpoint.interval=50000 steps"]),
    ("no-checkpoints", ["checkpoint={mode: none}"], "checkpoint.mode", r"every fault loses all steps",
     ["checkpoint={mode: ideal}"]),
    ("async-stalls", [*ASYNC, "checkpoint.interval=1 steps", "checkpoint.write_time=64s"],  # torchtitan
     "checkpoint.interval", r"write takes 1m 4s .* it waits 1m 2s", ["checkpoint.interval=40 steps"]),
    ("async-backlog",
     [*ASYNC, "checkpoint.interval=15 steps", "checkpoint.on_busy=queue", "checkpoint.write_time=60s"],
     "checkpoint.interval", r"one write every 1m, to about 3,333 at the end", ["checkpoint.interval=31 steps"]),
    ("async-stalls",  # a tier by itself
     [f"checkpoint={tiers(NEAR, FAR)}", "checkpoint.tiers.far.every=40s"],
     "checkpoint.tiers.far.every", r"write takes 1m .* it waits 20s", ["checkpoint.tiers.far.every=1h"]),
    ("async-skips", [*ASYNC, "checkpoint.interval=15 steps", "checkpoint.on_busy=skip", "checkpoint.write_time=70s"],
     "checkpoint.interval", r"one save in 3 is made: .* in effect 45 steps \(1m 30s\)",
     ["checkpoint.interval=40 steps"]),
    ("published-late", [*ASYNC, "checkpoint.publish=next_save"],
     "checkpoint.publish", r"45m instead of 15m", ["checkpoint.publish=write_end"]),
    ("host-memory", [*ASYNC, "checkpoint.bytes=4TB", "cluster.host_memory_bytes=1TiB"],
     "cluster.host_memory_bytes", r"share of a checkpoint is 1TB; 1 in flight and one resident need 2TB",
     ["cluster.host_memory_bytes=3TiB"]),
    ("host-memory",  # the backlog of a queue
     [*ASYNC, "checkpoint.bytes=40GB", "checkpoint.on_busy=queue", "checkpoint.interval=15 steps",
      "checkpoint.write_time=60s", "cluster.host_memory_bytes=2TiB"],
     "cluster.host_memory_bytes", r"3,333 in flight", ["checkpoint.on_busy=wait"]),
    ("host-memory",
     ["checkpoint.mode=local", "checkpoint.stall_time=2s", "checkpoint.write_time=null", "checkpoint.bytes=4TB",
      "checkpoint.survives=all", "cluster.host_memory_bytes=2TiB"],
     "cluster.host_memory_bytes", r"4 copies \(old and new, here and for a peer\) need 4TB",
     ["cluster.host_memory_bytes=4TiB"]),
    ("host-memory",
     [f"checkpoint={tiers(NEAR, FAR)}", "checkpoint.bytes=4TB", "cluster.host_memory_bytes=2TiB"],
     "cluster.host_memory_bytes", r"3 copies \(old and new of each near tier, one in flight to the farthest\) need 3TB",
     ["cluster.host_memory_bytes=4TiB"]),
    ("storage-volume",  # the BLOOM logbook
     ["checkpoint.bytes=2.3TB", "workload.step_time=105s", "checkpoint.interval=100 steps",
      "checkpoint.write_time=40s"],
     "checkpoint.interval", r"2.3TB every 2h 56m are 18.9TB written a day", ["checkpoint.bytes=null"]),
    ("corruption-outlives-checkpoints",
     ["failures.classes.bug.symptom=silent_corruption", "failures.classes.bug.detect=40min"],
     "checkpoint.keep", r"2: .* only 30m of work old, and bug is noticed after 40m", ["checkpoint.keep=4"]),
    ("corruption-outlives-checkpoints",  # keep = 1
     ["failures.classes.bug.symptom=silent_corruption", "failures.classes.bug.detect=1s", "checkpoint.keep=1"],
     "checkpoint.keep", r"1: ", ["checkpoint.keep=2"]),
    ("keep-one-load-failure", ["checkpoint.keep=1", "checkpoint.load_failure=0.01"],
     "checkpoint.keep", r"fails with probability 0.01", ["checkpoint.keep=2"]),
    ("keep-one-load-failure", [f"checkpoint={tiers(NEAR)}", "checkpoint.keep=1", "checkpoint.load_failure=0.01"],
     "checkpoint.keep", r"1, and a load fails", [f"checkpoint.tiers=[{NEAR}, {FAR}]"]),
    ("load-failure-loops", ["checkpoint.load_failure=0.01", "checkpoint.on_load_failure=exit"],  # Megatron-LM#5281
     "checkpoint.on_load_failure", r"exit: 1 % of checkpoints cannot be loaded", ["checkpoint.on_load_failure=older"]),
    ("no-tier-survives", [*LOCAL, *LOSS, "cluster.spares.hot=10"],
     "checkpoint.survives", r"survives failures.classes.bug \(node_loss and process_exit\): each one begins",
     ["checkpoint.survives=all"]),
    ("no-tier-survives",  # the loop dies with its process, and so does what is in its memory
     [f"checkpoint={tiers(NEAR)}", "checkpoint.tiers.near.survives=[exception]"],
     "checkpoint.tiers", r"bug \(exception and process_exit\)",
     ["recovery.layers=[in_process]", "recovery.launcher=direct"]),
    ("tier-never-saves", [f"checkpoint={tiers(NEAR, FAR)}", "checkpoint.tiers.near.every=2h"],
     "checkpoint.tiers.near.every", r"3600 steps, and at each of them the farther tier saves too",
     ["checkpoint.tiers.near.every=40min"]),
    ("peers-and-requeue", [f"checkpoint={tiers(NEAR, FAR)}", "checkpoint.tiers.near.survives=all",
                           "recovery.layers=[slurm]"],
     "checkpoint.tiers.near.survives", r"taken to outlive a requeue", ["recovery.layers=[in_job]"]),
    ("save-after-mtbf", ["failures.classes.bug.mtbf=40min"],
     "checkpoint.interval", r"55 % of restarts are struck again", ["failures.classes.bug.mtbf=60min"]),
    ("setting-ignored", ["checkpoint.stall_time=2s", "checkpoint.write_survives=[hang]"],
     "checkpoint.stall_time", r"no effect in mode sync", ASYNC),
    ("setting-ignored", ["checkpoint={mode: ideal, write_survives: [hang]}"],
     "checkpoint.write_survives", r"no effect in mode ideal",
     ["checkpoint={mode: sync, interval: 30min, write_time: 30s, write_survives: [hang]}"]),
    ("layer-setting-ignored", ["recovery.in_process.soft_timeout=20s"],
     "recovery.in_process", r"not in recovery.layers \(got soft_timeout\)", IN_PROCESS),
    ("layer-setting-ignored", [*IN_PROCESS, "recovery.in_process.reserve_ranks=8"],
     "recovery.in_process.reserve_ranks", r"no effect under ft_launcher",
     ["recovery.layers=[in_process]", "recovery.launcher=direct"]),
    ("layer-setting-ignored", [*IN_PROCESS, *ASYNC, "recovery.in_process.atomic=true"],
     "recovery.in_process.atomic", r"no effect in checkpoint mode async", ["checkpoint.mode=sync"]),
    ("repair-unused", ["cluster.repair.stages=[{time: 4h}]"],
     "cluster.repair", r"no fault sends", [*REPAIR, "cluster.spares.hot=1"]),
    ("no-faults", ["failures.classes=[]"], "failures", r"nothing ever goes wrong",
     ["failures.schedule=[{step: 5, rank: 0, symptom: hang}]"]),
    ("fault-not-contained", LOSS, "failures.classes.bug", r"node_loss \(2.78 expected\).*hot spare",
     ["cluster.spares.hot=10"]),
    ("fault-not-contained", ["recovery.layers=[]"], "failures.classes.bug", r"recovery.layers is empty",
     ["recovery.layers=[fixed]"]),
    ("fault-not-contained",
     [HANG, "recovery.layers=[in_process]", "recovery.in_process.soft_timeout=5min"],
     "failures.classes.bug", r"only if nccl_timeout \(5m\) is above soft_timeout \(5m\)", [f"{NCCL}=20min"]),
    ("fault-not-contained",
     [HANG, "recovery.layers=[in_process]", "failures.classes.bug.gil=held"],
     "failures.classes.bug", r"holds the GIL", ["failures.classes.bug.gil=free"]),
    ("exit-under-torchrun",
     ["recovery.layers=[in_process]", "recovery.launcher=torchrun", "failures.classes.bug.symptom=process_exit"],
     "failures.classes.bug", r"2.78 expected\): the job ends at the first",
     ["failures.classes.bug.symptom=exception"]),
    ("exit-under-torchrun",
     ["recovery.layers=[in_process, fixed]", "recovery.launcher=torchrun",
      "failures.classes.bug.symptom=process_exit"],
     "failures.classes.bug", r"layer fixed takes every one", ["failures.classes.bug.symptom=exception"]),
    ("layer-gives-up-alone", ["recovery.in_job.success=0.9"],
     "recovery.in_job", r"gives up on 10 % of failures.classes.bug", ["recovery.layers=[in_job, fixed]"]),
    ("restart-budget", ["recovery.in_job.max_restarts=2"],
     "recovery.in_job.max_restarts", r"2, but at least 2.78 restarts", ["recovery.in_job.max_restarts=20"]),
    ("no-progress-stop",  # p = 0.5: 14 faults to the stop [field_cases.md]
     ["failures.classes.bug.mtbf=2755s", "recovery.in_job.max_no_progress_cycles=3"],
     "checkpoint.interval", r"50.0 % of cycles .* after 14 faults on average, and 73 are expected",
     ["recovery.in_job.max_no_progress_cycles=6"]),
    ("no-progress-stop",  # p = 0.2: 155 faults
     ["failures.classes.bug.mtbf=8560s", "recovery.in_job.max_no_progress_cycles=3", "workload.steps=800000"],
     "checkpoint.interval", r"20.0 % of cycles .* after 155 faults", ["checkpoint.interval=10min"]),
    ("nodes-run-out", [*LOSS, "cluster.spares.hot=2"],
     "cluster.spares", r"2 nodes in reserve, but 2.78 losses", ["cluster.spares.hot=10"]),
    ("nodes-run-out",  # Slurm brings other nodes of the partition
     [*LOSS, "recovery.layers=[node_replacement]"], "cluster.spares", r"0 nodes in reserve",
     ["recovery.layers=[slurm]"]),
    ("nodes-run-out",  # layer fixed brings a lost node back in the time it states
     [*LOSS, "recovery.layers=[node_replacement]"], "cluster.spares", r"0 nodes in reserve",
     ["recovery.layers=[node_replacement, fixed]"]),
    ("no-spares", REPAIR, "cluster.spares", r"all 4 nodes wait for each repair, 4h or more .* 2.78 times",
     ["cluster.spares.cold=1"]),
    ("spares-unused", ["cluster.spares.hot=2"], "cluster.spares", r"spares stand idle",
     [*LOSS, "cluster.spares.hot=10"]),
    ("spares-unused", [*REPAIR, "recovery.layers=[in_job]", "cluster.spares={hot: 1, cold: 1}"],
     "cluster.spares.cold", r"add node_replacement", ["recovery.layers=[in_job, node_replacement]"]),
    ("in-process-deprecated", IN_PROCESS, "recovery.layers", r"deprecated in NVRx 0.6.0",
     ['recovery.nvrx="0.4.1"']),
    ("pods-restart-alone", ["recovery.layers=[kubernetes]", "recovery.kubernetes.restart_policy=OnFailure"],
     "recovery.kubernetes.restart_policy", r"4 pods restart each", ["recovery.kubernetes.in_place=true"]),
    ("backoff-limit", ["recovery.layers=[kubernetes]", "recovery.kubernetes.backoff_limit=11"],
     "recovery.kubernetes.backoff_limit", r"11, .* all 4 pods .* at fault 3 at the latest, and 2.78 are expected",
     ["recovery.kubernetes.backoff_limit=12"]),
    ("backoff-limit",
     ["recovery.layers=[kubernetes]", "recovery.kubernetes={backoff_limit: 4, restart_policy: OnFailure}"],
     "recovery.kubernetes.backoff_limit", r"at fault 1 at the latest", ["recovery.kubernetes.in_place=true"]),
    ("lost-pod-stays",
     [*LOSS, "recovery.layers=[kubernetes]", "cluster.spares.cold=9", "recovery.kubernetes.pod_failure_policy=true"],
     "recovery.kubernetes.pod_failure_policy", r"the replacement never comes", ["recovery.human_response=1h"]),
    ("save-before-too-short", [*LIMIT, "checkpoint.save_before=20s"],
     "checkpoint.save_before", r"20s, but a step and a save take up to 32s", ["checkpoint.save_before=32s"]),
    ("save-before-too-short", [*SPOT, "cluster.preemption.warning=30s", "checkpoint.save_before=2min"],
     "cluster.preemption.warning", r"30s, but a step and a save take up to 32s", ["cluster.preemption.warning=2min"]),
    ("save-before-too-long", [*LIMIT, "checkpoint.save_before=7h59min"],
     "checkpoint.save_before", r"8h has only begun to work after 1m 22s", ["checkpoint.save_before=7h"]),
    ("save-before-lost", [*LOCAL, *LIMIT, "checkpoint.save_before=1min"],
     "checkpoint.save_before", r"the copies do not survive node_loss", ["checkpoint.survives=all"]),
    ("save-before-ignored", ["checkpoint.save_before=1min"], "checkpoint.save_before", r"no time limit of Slurm",
     ["cluster.maintenance={every: 7d, duration: 2h}"]),
    ("stop-unsaved", LIMIT, "recovery.slurm.time_limit", r"6.94 such stops .* loses 15m on average",
     ["checkpoint.save_before=1min"]),
    ("stop-unsaved", SPOT, "failures.classes.bug", r"2.78 such stops", ["checkpoint.save_before=1min"]),
    ("preemption-unused", ["cluster.preemption={warning: 2min}"], "cluster.preemption", r"no class of node_loss",
     [*LOSS, "cluster.spares.hot=10"]),
    ("save-time-constant", [], "checkpoint.write_time", r"constant 30s",
     ["checkpoint.write_time={lognormal: {median: 28s, mean: 30s}}"]),
]  # fmt: skip


def fired(rule, overrides):
    scenario = load_scenario(SOUND, overrides)
    return [w for w in warnings_for(scenario, for_export=RULES[rule].export_only) if w.rule == rule]


def test_the_sound_scenario_is_left_in_peace():
    assert warnings_for(load_scenario(SOUND)) == []


@pytest.mark.parametrize(("rule", "wrong", "path", "says", "right"), CASES, ids=[case[0] for case in CASES])
def test_a_rule_finds_the_wrong_example_and_leaves_the_right_one(rule, wrong, path, says, right):
    found = {w.path: w.message for w in fired(rule, wrong)}
    assert path in found
    assert re.search(says, found[path]), found[path]
    assert path not in {w.path for w in fired(rule, [*wrong, *right])}


def test_every_rule_has_an_example():
    assert set(RULES) == {case[0] for case in CASES}


def test_every_rule_says_why():
    assert [rule.id for rule in RULES.values() if len(rule.why) < 20] == []


def test_warnings_come_before_notes():
    found = warnings_for(load_scenario(SOUND, ["checkpoint.bytes=1TB", "checkpoint.stall_time=1s"]))
    assert [w.severity for w in found] == ["warning", "note"]


def test_no_catalog_scenario_breaks_a_rule():
    for name in catalog.names():
        for warning in warnings_for(load_scenario(name), for_export=True):
            assert warning.path and warning.message


def test_designs_that_differ_in_nodes_need_scaling():
    small, large = load_scenario(SOUND), load_scenario(SOUND, ["cluster.nodes=8"])
    assert warnings_between([small, small]) == []
    assert warnings_between([small, large])[0].rule == "nodes-differ-without-scaling"
    scaled = [load_scenario(s, ["workload.scaling={reference_nodes: 4}"]) for s in (small, large)]
    assert warnings_between(scaled) == []


def ledger_with_gaps(gaps, source="live"):
    at, incidents = 0.0, []
    for gap in gaps:
        at += gap
        incidents.append(Incident(at, at + 60.0, 1, 0, {}, (), None))
    return RunLedger(at + 3600.0, {}, {}, source=source, incidents=tuple(incidents))


def test_steady_gaps_between_restarts_are_a_timer_at_work():
    assert (
        warnings_for_log(ledger_with_gaps([7200.0, 7190.0, 7210.0, 7205.0, 7195.0, 7200.0]))[0].rule
        == "steady-gaps"
    )


def test_uneven_few_or_simulated_gaps_are_left_in_peace():
    assert warnings_for_log(ledger_with_gaps([7200.0, 300.0, 20000.0, 7205.0, 900.0, 7200.0])) == []
    assert warnings_for_log(ledger_with_gaps([7200.0] * 5)) == []
    assert warnings_for_log(ledger_with_gaps([7200.0] * 9, source="simulated")) == []
