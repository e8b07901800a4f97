"""What of the schema the engine cannot do yet, by name: a scenario that asks for it is refused, never bent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from sim.params import Params, compile_scenario
from sim.scenario import Checkpoint, Cluster, FaultClass, Law, Recovery, Scenario, ScheduledFault, Workload
from sim.schema.fields import Problem
from sim.units import shown

BOUNDED = ("constant", "uniform", "empirical")  # laws with a longest life
NOT_YET = "not simulated yet"


def unsupported(scenario: Scenario) -> list[Problem]:
    """Return everything in a scenario that the engine cannot do yet; empty when it can be run."""
    problems = list(_blocks(scenario))
    for fault in scenario.failures.classes:
        problems += _fault_class(scenario, fault)
    for i, scheduled in enumerate(scenario.failures.schedule):
        problems += _scheduled(scenario, scheduled, f"failures.schedule.{scheduled.name or i}")
    return problems


def _blocks(s: Scenario) -> Iterator[Problem]:
    ck, cl = s.checkpoint, s.cluster
    if s.profile is not None:
        yield Problem("profile", f"{NOT_YET}: put its values into the scenario {shown(s.profile)}")
    if ck.load_failure > 0.0 and "kubernetes" in s.recovery.layers:
        what = f"{NOT_YET} with layer kubernetes; leave it at 0"
        yield Problem("checkpoint.load_failure", f"{what} {shown(ck.load_failure)}")
    if cl.maintenance is not None:
        starts = {"in_job", "slurm", "node_replacement", "fixed"} & set(s.recovery.layers)
        if "kubernetes" in s.recovery.layers:
            yield Problem("cluster.maintenance", f"{NOT_YET} with layer kubernetes; leave it out (got a value)")
        elif not starts:
            message = "needs a layer that starts the job again: in_job, slurm, node_replacement or fixed"
            yield Problem("cluster.maintenance", f"{message} {shown(', '.join(s.recovery.layers) or 'none')}")
    for name in ("lemons", "retire"):
        if getattr(cl, name) is not None:
            yield Problem(f"cluster.{name}", f"{NOT_YET}; leave it out (got a value)")
    for name, plain in (("found", 1.0), ("wrong_node", 0.0)):
        value = getattr(cl.diagnosis, name)
        if value != plain:
            yield Problem(f"cluster.diagnosis.{name}", f"{NOT_YET}; leave it at {plain:g} {shown(value)}")


def _fault_class(s: Scenario, fault: FaultClass) -> Iterator[Problem]:
    path = f"failures.classes.{fault.name}"
    per = fault.per or fault.scope
    if per == "rack" and fault.scope in ("rank", "gpu", "node"):
        yield Problem(f"{path}.scope", f"{NOT_YET} with a rate per rack; now: rack, job {shown(fault.scope)}")
    repair = s.cluster.repair
    if repair is not None and fault.repair and fault.law.kind in BOUNDED and per not in ("job", "rack"):
        keeps_age = not repair.renews or any(stage.success < 1.0 for stage in repair.stages)
        if keeps_age:
            yield Problem(
                f"{path}.law",
                "a node at the end of its longest life cannot go on at that age: let every repair succeed and "
                f"renew (cluster.repair), or take a law without a longest life {shown(fault.law.kind)}",
            )
    yield from _any_fault(s, fault, path)


def _scheduled(s: Scenario, fault: ScheduledFault, path: str) -> Iterator[Problem]:
    if fault.symptom in ("slowdown", "silent_corruption"):
        yield Problem(f"{path}.symptom", f"{NOT_YET} in a schedule, only in a class {shown(fault.symptom)}")
        return
    if fault.detect is not None:
        got = shown(fault.detect.plain(text=True))
        yield Problem(f"{path}.detect", f"{NOT_YET} in a schedule, only in a class {got}")
    yield from _any_fault(s, fault, path)


def _any_fault(s: Scenario, fault: FaultClass | ScheduledFault, path: str) -> Iterator[Problem]:
    if fault.symptom == "node_loss" and fault.scope == "job":
        yield Problem(f"{path}.scope", f"{NOT_YET} with symptom node_loss; now: node, rack {shown('job')}")
    if isinstance(fault, FaultClass) and (fault.detect is not None or fault.rate_per_s() == 0.0):
        return
    if fault.symptom in ("hang", "node_loss") and _unseen(s, fault.symptom, fault.gil == "held"):
        yield Problem(
            f"{path}.symptom",
            "nothing detects it with the timeouts of this scenario: state recovery.human_response, the time "
            f"until a person comes {shown(fault.symptom)}",
        )


def _unseen(s: Scenario, symptom: str, gil_held: bool) -> bool:
    """Tell whether a hang (or lost node) can last for ever: what sim/recovery/base.py's detectors leave out."""
    p = _timeouts(s.recovery)
    if p.has_human or min(p.nccl_s, p.heartbeat_s) < math.inf:
        return False
    if p.time_limit_s < math.inf or (symptom == "node_loss" and p.node_down_s < math.inf):
        return False  # Slurm ends the allocation
    layers = set(s.recovery.layers)
    if "in_process" in layers and symptom == "node_loss" and p.heartbeat_in_process_s < math.inf:
        return False
    if "in_process" in layers and symptom == "hang" and p.hard_s < math.inf:
        return False
    # What is left is a layer's own: fixed sees all it leads, in_process a hang by its soft timeout.
    own = {"fixed"} if "fixed" in layers else set()
    if symptom == "hang" and not gil_held and p.soft_s < math.inf:
        if "fixed" in layers or p.max_in_process == math.inf:
            own.add("in_process")
    elif "fixed" in layers:
        own.add("in_process")  # does not contain it, so fixed leads
    return not layers or not layers <= own


@lru_cache(maxsize=16)
def _timeouts(recovery: Recovery) -> Params:
    """Resolve a recovery block's timeouts (defaults of the NVRx version) as the engine does."""
    bare = Scenario(
        cluster=Cluster(nodes=1, gpus_per_node=1024),
        workload=Workload(step_time=Law.constant(1.0), steps=1),
        checkpoint=Checkpoint(mode="none"),
        recovery=recovery.model_copy(
            update={"in_process": recovery.in_process.model_copy(update={"reserve_ranks": 0})}
        ),
    )
    return compile_scenario(bare)
