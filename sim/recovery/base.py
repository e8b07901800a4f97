"""What a restart layer is, and the machine that leads an incident through the layers.

A layer is two rules: `contains(...)`, whether it can absorb a fault, and `stage(inc, p, at, now, ...)`, the phase at
place `at` of its list and how long it takes. `advance` is the same for all: place 0 is always the detection; a fault
before `resumed` joins the incident and restarts the layer, charged to its budget; a layer that does not contain the
fault, or gives up, hands over to the next one enabled.
"""

from __future__ import annotations

import math
from typing import Any

from sim.codes import (
    BY_CHECK,
    BY_PLAN,
    BY_SLURM,
    DETECT,
    ESCALATE,
    EXCEPTION,
    FAILED,
    FIXED,
    GPU_ERROR,
    IN_JOB,
    IN_PROCESS,
    KUBERNETES,
    NO_LAYER,
    NO_LOAD,
    NO_PROGRESS,
    NO_REASON,
    NODE_REPLACEMENT,
    NODE_WAIT,
    NOT_CONTAINED,
    ON_FAULT,
    PODS,
    PROCESS_EXIT,
    RESUMED,
    SILENT_CORRUPTION,
    SLOWDOWN,
    SLURM,
    TOO_SLOW,
    UNHEALTHY,
)
from sim.kernel import rule
from sim.recovery import fixed, in_job, in_process, node_replacement, slurm
from sim.recovery.choice import charge, choose, count_cycle, lowest_that_starts, renew_budgets
from sim.recovery.detection import detection_s
from sim.recovery.state import (
    ASK,
    ATTEMPT,
    CLASS,
    DEADLINE,
    DETECTOR,
    DROP_NODE,
    GAVE_UP,
    GIL_HELD,
    LATE,
    LAYER,
    LOADS,
    NEW_ALLOCATION,
    NODE_NEEDED,
    NUMBER,
    PAUSE_UNTIL,
    PAUSED,
    PHASE,
    PLANNED,
    REASON,
    STAGE,
    SUSPECT,
    SUSPECT_NODE,
    SYMPTOM,
    UNTIL,
    WRITE_ENDS,
)


@rule
def _stage(
    inc: Any, p: Any, layer: int, at: int, now: float, seed: int, replication: int
) -> tuple[int, float]:
    if layer == FIXED:
        return fixed.stage(inc, p, at, now, seed, replication)
    if layer == IN_PROCESS:
        return in_process.stage(inc, p, at, now, seed, replication)
    if layer == IN_JOB:
        return in_job.stage(inc, p, at, now, seed, replication)
    if layer == SLURM:
        return slurm.stage(inc, p, at, now, seed, replication)
    return node_replacement.stage(inc, p, at, now, seed, replication)


@rule
def strike(inc: Any, symptom: int, gil_held: bool, fault_class: int, node: int, takes_node: bool) -> None:
    """Tell the incident who struck; `advance(ON_FAULT)` follows. Opens an incident if none is under way.

    A GPU error whose node stays makes that node suspect: the health check of each layer that tries has to pass.
    """
    if inc[PHASE] == RESUMED:
        inc[NUMBER] += 1
        inc[ATTEMPT] = 0.0
        inc[LAYER] = NO_LAYER
        inc[NODE_NEEDED] = 0.0
        inc[NEW_ALLOCATION] = 0.0
        inc[PLANNED] = 0.0
        inc[PAUSE_UNTIL] = 0.0
        inc[UNTIL] = math.inf
        inc[REASON] = NO_REASON
        inc[WRITE_ENDS] = 0.0
        inc[SUSPECT] = 0.0
        inc[LOADS] = 0.0
    inc[SYMPTOM] = symptom
    inc[GIL_HELD] = 1.0 if gil_held else 0.0
    inc[CLASS] = fault_class
    if takes_node:
        inc[NODE_NEEDED] = 1.0
    elif symptom == GPU_ERROR:
        inc[SUSPECT] = 1.0
        inc[SUSPECT_NODE] = node


@rule
def end_allocation(inc: Any) -> None:
    """Tell the incident, after `strike`, that Slurm has ended the allocation: its processes are gone at once."""
    inc[NEW_ALLOCATION] = 1.0


@rule
def plan(inc: Any, until: float) -> None:
    """Tell the incident, after `strike`, that this is a planned stop, after which the job may start at a time [s]."""
    inc[PLANNED] = 1.0
    inc[PAUSE_UNTIL] = max(inc[PAUSE_UNTIL], until)


@rule
def advance(inc: Any, p: Any, event: int, now: float, seed: int, replication: int) -> tuple[int, float]:
    """Return what comes next in the incident and until when: (phase, until), RESUMED or FAILED.

    `event` is ON_FAULT (after `strike`), ON_TIMER (the phase has run its time) or ON_NODES (every slot is filled).
    """
    inc[ASK] = 0.0
    if inc[PAUSED] > 0.0 and event != ON_FAULT:
        inc[PAUSE_UNTIL] = 0.0
    inc[PAUSED] = 0.0
    if event == ON_FAULT:
        return _begin_detection(inc, p, now, seed, replication)
    if inc[PHASE] == DETECT:
        if inc[LAYER] == NO_LAYER:
            inc[PHASE] = FAILED
            return FAILED, now
        planned = inc[PLANNED] > 0.0
        inc[PLANNED] = 0.0
        if inc[LAYER] == IN_JOB and not planned and count_cycle(inc) >= p.max_no_progress:
            inc[GAVE_UP] = NO_PROGRESS
            return _hand_over(inc, p, IN_JOB, now, seed, replication)
        inc[STAGE] = 0.0
        if planned:  # nothing is left that had to be stopped
            inc[ATTEMPT] += 1
            inc[STAGE] = 1.0 if inc[LAYER] == IN_JOB or inc[LAYER] == NODE_REPLACEMENT else 0.0
        else:
            charge(inc, int(inc[LAYER]))
        inc[NEW_ALLOCATION] = 0.0
        inc[DEADLINE] = math.inf
        inc[LATE] = 0.0
    elif inc[LATE] > 0.0:
        # Start-up ended by the initial heartbeat timeout, or by a load that failed: a dead process like any other,
        # but where in-process restart makes it an exception.
        inside = inc[LAYER] == IN_PROCESS and inc[LATE] == NO_LOAD
        inc[SYMPTOM] = EXCEPTION if inside else PROCESS_EXIT
        inc[CLASS] = -1
        inc[GAVE_UP] = inc[LATE]
        inc[LATE] = 0.0
        return _begin_detection(inc, p, now, seed, replication)
    while True:
        layer = int(inc[LAYER])
        if inc[PAUSE_UNTIL] > now:
            inc[PAUSED] = 1.0
            inc[PHASE] = NODE_WAIT
            inc[UNTIL] = inc[PAUSE_UNTIL]
            return NODE_WAIT, inc[UNTIL]
        inc[STAGE] += 1
        phase, lasts = _stage(inc, p, layer, int(inc[STAGE]), now, seed, replication)
        if phase == ESCALATE:
            return _hand_over(inc, p, layer, now, seed, replication)
        if phase == RESUMED:
            renew_budgets(inc, p, layer)
            inc[PHASE] = RESUMED
            return RESUMED, now
        if lasts > 0.0 or inc[ASK] > 0.0:
            inc[PHASE] = phase
            inc[UNTIL] = now + lasts
            if inc[UNTIL] > inc[DEADLINE]:
                inc[UNTIL] = inc[DEADLINE]
                inc[LATE] = TOO_SLOW
            return phase, inc[UNTIL]


@rule
def _begin_detection(inc: Any, p: Any, now: float, seed: int, replication: int) -> tuple[int, float]:
    symptom = int(inc[SYMPTOM])
    gil_held = inc[GIL_HELD] > 0.0
    node_needed = inc[NODE_NEEDED] > 0.0
    unseen = inc[PHASE] == DETECT  # an earlier fault of this incident is still to be detected
    layer = NO_LAYER
    if not (unseen and inc[LAYER] == NO_LAYER):  # else the job is lost already and only does not know it yet
        if inc[PLANNED] > 0.0:
            layer = lowest_that_starts(inc, p)
        else:
            layer = choose(inc, p, int(inc[LAYER]), symptom, gil_held, node_needed)
    if layer == KUBERNETES:
        return _to_pods(inc, now)
    by = now
    detector = inc[DETECTOR]
    inc[DETECTOR] = BY_CHECK
    if inc[PLANNED] > 0.0:
        inc[DETECTOR] = BY_PLAN
    elif inc[NEW_ALLOCATION] > 0.0:
        inc[DETECTOR] = BY_SLURM
    elif (
        symptom != SILENT_CORRUPTION and symptom != SLOWDOWN
    ):  # these two were noticed when they struck the job
        by = now + detection_s(inc, p, layer, symptom, gil_held, seed, replication)
    if unseen and inc[UNTIL] <= by:
        inc[DETECTOR] = detector
    else:
        inc[UNTIL] = by
    inc[PHASE] = DETECT
    inc[LAYER] = layer
    if layer == NODE_REPLACEMENT and inc[SUSPECT] > 0.0:
        _drop_suspect(inc)
    return DETECT, inc[UNTIL]


@rule
def _to_pods(inc: Any, now: float) -> tuple[int, float]:
    """Leave the incident to the pods: each notices, ends and starts again by its own clock (kubernetes.py)."""
    inc[PHASE] = PODS
    inc[LAYER] = KUBERNETES
    inc[UNTIL] = now
    return PODS, now


@rule
def pods_resumed(inc: Any, p: Any) -> None:
    """Close an incident that the pods have led to its end: all their processes are new."""
    renew_budgets(inc, p, KUBERNETES)
    inc[PHASE] = RESUMED


@rule
def _drop_suspect(inc: Any) -> None:
    inc[SUSPECT] = 0.0
    inc[NODE_NEEDED] = 1.0
    inc[DROP_NODE] = 1.0 if inc[SUSPECT_NODE] >= 0 else 0.0


@rule
def _hand_over(inc: Any, p: Any, layer: int, now: float, seed: int, replication: int) -> tuple[int, float]:
    """Let the next layer that contains the end of processes take over from one that gave up (why: GAVE_UP).

    A node that failed the launcher's health check leaves, and so does a suspect one that only gets replaced.
    """
    inc[SYMPTOM] = PROCESS_EXIT
    inc[CLASS] = -1
    inc[PHASE] = DETECT
    if layer == IN_JOB and inc[GAVE_UP] == UNHEALTHY:
        _drop_suspect(inc)
    inc[LAYER] = choose(inc, p, layer + 1, PROCESS_EXIT, False, inc[NODE_NEEDED] > 0.0)
    if inc[LAYER] == NODE_REPLACEMENT and inc[SUSPECT] > 0.0:
        _drop_suspect(inc)
    if inc[LAYER] == KUBERNETES:
        return _to_pods(inc, now)
    if inc[LAYER] == NO_LAYER and inc[REASON] == NOT_CONTAINED:
        inc[REASON] = inc[GAVE_UP]
    inc[UNTIL] = now + detection_s(inc, p, int(inc[LAYER]), PROCESS_EXIT, False, seed, replication)
    return DETECT, inc[UNTIL]
