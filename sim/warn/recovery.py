"""Rules about faults, the layers that absorb them, their budgets and the nodes they need.

Sources: design.md, section 5.3; field_cases.md (NVRx no-progress stop, kubeflow/trainer#2000); nvrx.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sim import analytic
from sim.scenario import Layer
from sim.units import format_duration
from sim.warn.rule import FaultKind, Finding, View, rule


def _each(kind: FaultKind) -> str:
    return f"{kind.expected:,.3g} expected" if kind.per_s > 0 else "scheduled"


def _leaves(v: View, kind: FaultKind) -> bool:
    """Tell whether a fault takes a node out of the working set."""
    gpu = kind.fault.symptom == "gpu_error"
    drops = gpu and v.recovery.in_job.health_check_pass < 1 and v.on("node_replacement")
    return v.leaves(kind.fault) or drops


def _nodes_struck(v: View, kind: FaultKind) -> int:
    cluster = v.s.cluster
    return {"rack": cluster.nodes_per_rack or 1, "job": cluster.nodes}.get(kind.fault.scope, 1)


@rule(
    "no-faults",
    "A scenario without faults shows saves and start-up alone",
    severity="note",
)
def _no_faults(v: View) -> Iterator[Finding]:
    if not v.faults:
        yield "failures", "none: the result is that of a job in which nothing ever goes wrong"


@rule(
    "fault-not-contained",
    "A symptom that no enabled layer contains ends the job",
)
def _not_contained(v: View) -> Iterator[Finding]:
    for kind in v.stops:
        torchrun = v.on("in_process") and v.recovery.launcher == "torchrun"
        if torchrun and kind.fault.symptom == "process_exit":
            continue  # exit-under-torchrun says why
        if v.taker(kind.fault) is None:
            why = _why_not(v, kind)
            yield (
                kind.path,
                f"no enabled layer contains this {kind.fault.symptom} ({_each(kind)}): the job ends at the first "
                f"one{why}",
            )


def _why_not(v: View, kind: FaultKind) -> str:
    fault, nccl_s = kind.fault, v.recovery.nccl_timeout
    if not v.recovery.layers:
        return "; recovery.layers is empty"
    if fault.symptom == "hang" and v.on("in_process") and not fault.repair:
        if fault.gil == "held":
            return "; in_process cannot interrupt a rank that holds the GIL"
        soft_s = v.recovery.in_process.soft_timeout
        return (
            f"; in_process only if nccl_timeout ({format_duration(nccl_s)}) is above soft_timeout "
            f"({format_duration(soft_s)})"
        )
    if v.leaves(fault):
        spare = "in_job needs a hot spare for it; " if v.on("in_job") else ""
        return f"; {spare}layer node_replacement takes it"
    return ""


@rule(
    "exit-under-torchrun",
    "Under torchrun the Wrapper recovers only faults that end no process [NVRx usage guide]",
)
def _exit_under_torchrun(v: View) -> Iterator[Finding]:
    if not v.on("in_process") or v.recovery.launcher != "torchrun":
        return
    for kind in v.stops:
        if kind.fault.symptom == "process_exit":
            taker = v.taker(kind.fault)
            then = "the job ends at the first one" if taker is None else f"layer {taker} takes every one"
            yield (
                kind.path,
                f"torchrun's agent stops all workers when a process ends, so in_process cannot absorb this "
                f"({_each(kind)}): {then}",
            )


@rule(
    "layer-gives-up-alone",
    "A layer that may fail, with nothing above it, ends the job when it does",
    severity="note",
)
def _gives_up_alone(v: View) -> Iterator[Finding]:
    for kind in v.stops:
        layer = v.taker(kind.fault)
        if layer not in ("in_process", "in_job"):
            continue
        gpu = kind.fault.symptom == "gpu_error"
        block = v.recovery.in_process if layer == "in_process" else v.recovery.in_job
        passes = block.success * (block.health_check_pass if gpu else 1.0)
        above: tuple[Layer, ...] = ("in_job", "kubernetes", "slurm", "fixed")
        higher = [name for name in above if name != layer and v.on(name)]
        if gpu and v.on("node_replacement"):
            higher.append("node_replacement")
        if passes < 1.0 and not higher:
            yield (
                f"recovery.{layer}",
                f"gives up on {100 * (1 - passes):.3g} % of {kind.path} ({_each(kind)}), and no layer above it takes "
                "over: the job ends then",
            )


@rule(
    "restart-budget",
    "A restart budget below the faults to be absorbed ends the job",
)
def _restart_budget(v: View) -> Iterator[Finding]:
    budgets: tuple[tuple[Layer, int | None], ...] = (
        ("in_process", v.recovery.in_process.max_restarts),
        ("in_job", v.recovery.in_job.max_restarts),
        ("slurm", v.recovery.slurm.max_restarts),
        ("node_replacement", v.recovery.node_replacement.max_restarts),
    )
    for layer, budget in budgets:
        expected = sum(kind.expected for kind in v.stops_of(layer))
        if layer == "slurm" and v.recovery.slurm.time_limit is not None:
            expected += v.useful_s // v.recovery.slurm.time_limit
        if budget is not None and v.on(layer) and expected > budget:
            yield (
                f"recovery.{layer}.max_restarts",
                f"{budget}, but at least {expected:,.3g} restarts are expected in {format_duration(v.useful_s)} of "
                "work: the layer gives up before the job is done",
            )


@rule(
    "no-progress-stop",
    "NVRx stops a job after n cycles without a save: (1 - p^n) / ((1 - p) p^n) faults are expected until then",
)
def _no_progress_stop(v: View) -> Iterator[Finding]:
    n = v.max_no_progress
    kinds = list(v.stops_of("in_job"))
    per_s = sum(kind.per_s for kind in kinds)
    if n <= 0 or per_s <= 0 or not v.saves:
        return
    p = v.no_save_p(kinds)
    until_stop = analytic.expected_failures_to_stop(p, n)
    expected = sum(kind.expected for kind in kinds)
    if until_stop < expected:
        path = v.shortest.path if v.shortest is not None else "checkpoint.interval"
        yield (
            path,
            f"{100 * p:.1f} % of cycles end before a save, and max_no_progress_cycles is {n}: the launcher stops the "
            f"job after {until_stop:,.0f} faults on average, and {expected:,.0f} are expected; save more often or "
            "allow more cycles",
        )


@rule(
    "nodes-run-out",
    "Nodes that leave for good need a spare each",
)
def _nodes_run_out(v: View) -> Iterator[Finding]:
    spares = v.s.cluster.spares.hot + v.s.cluster.spares.cold
    gone = [kind for kind in v.stops if v.leaves(kind.fault) and not kind.fault.repair]
    if v.on("slurm"):  # a requeue gets another node of the partition
        return
    lost = sum(kind.expected * _nodes_struck(v, kind) for kind in gone)
    if gone and (lost > spares or spares == 0):
        names = ", ".join(kind.path for kind in gone)
        yield (
            "cluster.spares",
            f"{spares} nodes in reserve, but {lost:,.3g} losses are expected and nothing repairs them ({names}): the "
            "job ends when no node is left",
        )


@rule(
    "no-spares",
    "Without a spare the whole job waits for every repair",
)
def _no_spares(v: View) -> Iterator[Finding]:
    cluster = v.s.cluster
    if cluster.repair is None or cluster.spares.hot + cluster.spares.cold > 0:
        return
    repaired = [kind for kind in v.stops if kind.fault.repair and v.taker(kind.fault) is not None]
    if repaired:
        mean_s = sum(stage.time.mean_s() for stage in cluster.repair.stages[:1])
        count = sum(kind.expected for kind in repaired)
        yield (
            "cluster.spares",
            f"none: all {cluster.nodes} nodes wait for each repair, {format_duration(mean_s)} or more on average, "
            f"{count:,.3g} times",
        )


@rule(
    "spares-unused",
    "Spares that no fault or no layer ever calls",
)
def _spares_unused(v: View) -> Iterator[Finding]:
    spares = v.s.cluster.spares
    if spares.hot + spares.cold == 0:
        return
    if not any(_leaves(v, kind) for kind in v.stops):
        yield (
            "cluster.spares",
            "no fault takes a node out of the job (repair: true, or node_loss): spares stand idle",
        )
    elif spares.cold > 0 and not v.on("node_replacement", "kubernetes", "slurm", "fixed"):
        yield (
            "cluster.spares.cold",
            f"{spares.cold}, but no enabled layer waits for a cold spare: add node_replacement",
        )


@rule(
    "in-process-deprecated",
    "NVRx marks in-process restart deprecated from 0.6.0 on",
    severity="note",
)
def _in_process_deprecated(v: View) -> Iterator[Finding]:
    if v.on("in_process") and v.recovery.nvrx != "0.4.1":
        yield (
            "recovery.layers",
            f"in_process is deprecated in NVRx {v.recovery.nvrx} (still shipped); in_job is what its guide recommends",
        )


@rule(
    "pods-restart-alone",
    "Pods that restart by their own clocks hardly meet (kubeflow/trainer#2000)",
)
def _pods_restart_alone(v: View) -> Iterator[Finding]:
    k8s = v.recovery.kubernetes
    if (
        v.on("kubernetes")
        and k8s.restart_policy == "OnFailure"
        and not k8s.in_place
        and v.s.cluster.nodes > 2
    ):
        yield (
            "recovery.kubernetes.restart_policy",
            f"OnFailure: {v.s.cluster.nodes} pods restart each by its own back-off and time out waiting for the "
            "others; restart them as a gang (JobSet), or in place",
        )


@rule(
    "backoff-limit",
    "With OnFailure the restarts of all live pods sum up to backoffLimit, and every fault restarts all of them",
)
def _backoff_limit(v: View) -> Iterator[Finding]:
    k8s, pods = v.recovery.kubernetes, v.s.cluster.nodes
    kinds = list(v.stops_of("kubernetes"))
    if not kinds or k8s.in_place:
        return
    allowed = k8s.backoff_limit + (1 if k8s.restart_policy == "Never" else 0)
    absorbed = max(0, allowed - 1) // pods
    expected = sum(kind.expected for kind in kinds)
    if expected > absorbed:
        yield (
            "recovery.kubernetes.backoff_limit",
            f"{k8s.backoff_limit}, but every fault ends the containers of all {pods} pods at least once: the Job fails "
            f"at fault {absorbed + 1} at the latest, and {expected:,.3g} are expected; allow at least "
            f"{pods * (math.floor(expected) + 1):,} or restart the pods as a gang (JobSet)",
        )


@rule(
    "lost-pod-stays",
    "With a podFailurePolicy a replacement waits for phase Failed, which a dead kubelet never reports [job docs]",
)
def _lost_pod_stays(v: View) -> Iterator[Finding]:
    k8s = v.recovery.kubernetes
    if k8s.pod_failure_policy and v.recovery.human_response is None:
        for kind in v.stops_of("kubernetes"):
            if kind.fault.symptom == "node_loss":
                yield (
                    "recovery.kubernetes.pod_failure_policy",
                    f"after a lost node ({kind.path}, {_each(kind)}) the replacement never comes, and the job waits "
                    "until its limits end it; state recovery.human_response, the time until a person deletes the pod",
                )
