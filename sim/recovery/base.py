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
    BUDGET,
    BY_CHECK,
    BY_CLASS,
    BY_FIXED,
    BY_HARD_TIMEOUT,
    BY_HEARTBEAT,
    BY_HUMAN,
    BY_MONITOR,
    BY_PLAN,
    BY_SLURM,
    BY_SOFT_TIMEOUT,
    BY_WATCHDOG,
    DETECT,
    ESCALATE,
    EXCEPTION,
    FAILED,
    FIXED,
    GPU_ERROR,
    HANG,
    IN_JOB,
    IN_PROCESS,
    KUBERNETES,
    NO_LAYER,
    NO_LOAD,
    NO_PROGRESS,
    NO_REASON,
    NODE_LOSS,
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
from sim.draws import u
from sim.kernel import rule
from sim.params import CLASS_DETECT, FIXED_DETECT, HEARTBEAT, HUMAN, POLL
from sim.recovery import fixed, in_job, in_process, node_replacement, slurm
from sim.recovery.defaults import HEARTBEAT_CHECK_S
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
    NO_PROGRESS_CYCLES,
    NODE_NEEDED,
    NUMBER,
    PAUSE_UNTIL,
    PAUSED,
    PHASE,
    PLANNED,
    PROGRESS,
    PROGRESS_AT_CYCLE,
    REASON,
    STAGE,
    SUSPECT,
    SUSPECT_NODE,
    SYMPTOM,
    UNTIL,
    USED_IN_JOB,
    USED_IN_PROCESS,
    USED_REPLACEMENT,
    USED_RESERVE,
    USED_SLURM,
    WRITE_ENDS,
)
from sim.sampling import draw


@rule
def _contains(inc: Any, p: Any, layer: int, symptom: int, gil_held: bool, node_needed: bool) -> bool:
    if layer == FIXED or layer == SLURM:
        return True
    if inc[NEW_ALLOCATION] > 0.0:
        return False
    if layer == KUBERNETES:
        return True
    if layer == IN_PROCESS:
        return in_process.contains(inc, p, symptom, gil_held, node_needed)
    if layer == IN_JOB:
        return in_job.contains(inc, symptom, node_needed)
    if layer == NODE_REPLACEMENT:
        return node_replacement.contains(inc, node_needed)
    return False


@rule
def _has_budget(inc: Any, p: Any, layer: int) -> int:
    """Return NO_REASON if the layer may try once more, else why not."""
    if layer == IN_PROCESS and inc[USED_IN_PROCESS] >= p.max_in_process:
        return BUDGET
    if layer == IN_JOB and inc[USED_IN_JOB] >= p.max_in_job:
        return BUDGET
    stuck = inc[NO_PROGRESS_CYCLES] >= p.max_no_progress and inc[PROGRESS] <= inc[PROGRESS_AT_CYCLE]
    if layer == IN_JOB and stuck:
        return NO_PROGRESS
    if layer == NODE_REPLACEMENT and inc[USED_REPLACEMENT] >= p.max_replacements:
        return BUDGET
    if layer == SLURM and inc[USED_SLURM] >= p.max_requeues:
        return BUDGET
    return NO_REASON


@rule
def _choose(inc: Any, p: Any, lowest: int, symptom: int, gil_held: bool, node_needed: bool) -> int:
    """Return the lowest enabled layer from `lowest` up that contains the fault and may still try."""
    reason = NOT_CONTAINED
    for layer in range(max(lowest, 0), FIXED + 1):
        if p.layer_on[layer] and _contains(inc, p, layer, symptom, gil_held, node_needed):
            short_of = _has_budget(inc, p, layer)
            if short_of == NO_REASON:
                return layer
            reason = short_of
    inc[REASON] = reason
    return NO_LAYER


@rule
def _earlier(inc: Any, by: float, other: float, detector: int) -> float:
    if other < by:
        inc[DETECTOR] = detector
        return other
    return by


@rule
def _detection_s(
    inc: Any, p: Any, layer: int, symptom: int, gil_held: bool, seed: int, replication: int
) -> float:
    """Return the time from the fault to its detection by the earliest configured detector [s]; names it."""
    number = int(inc[NUMBER])
    attempt = int(inc[ATTEMPT])
    c = int(inc[CLASS])
    if c >= 0 and p.class_detect[c] and symptom != SILENT_CORRUPTION and symptom != SLOWDOWN:
        inc[DETECTOR] = BY_CLASS
        return draw(p, p.class_row0 + 4 * c + CLASS_DETECT, seed, replication, number, attempt)
    inc[DETECTOR] = BY_MONITOR
    if layer == FIXED:
        inc[DETECTOR] = BY_FIXED
        return draw(p, FIXED_DETECT, seed, replication, number, attempt)
    poll = u(seed, replication, p.even_streams[POLL], number, attempt)
    look = poll * p.monitor_s  # the launcher sees a dead process at its next look
    if symptom == HANG or symptom == NODE_LOSS:
        checked = p.heartbeat_s
        if checked < math.inf:
            checked += HEARTBEAT_CHECK_S * u(seed, replication, p.even_streams[HEARTBEAT], number, attempt)
        by = _earlier(inc, math.inf, p.nccl_s + look, BY_WATCHDOG)
        by = _earlier(inc, by, checked, BY_HEARTBEAT)
        if symptom == NODE_LOSS:
            by = _earlier(inc, by, p.node_down_s, BY_SLURM)
        if p.layer_on[IN_PROCESS]:
            poll_in_process = poll * p.monitor_in_process_s
            if symptom == NODE_LOSS:
                by = _earlier(inc, by, p.heartbeat_in_process_s + p.monitor_in_process_s, BY_HEARTBEAT)
            elif layer == IN_PROCESS:
                by = _earlier(inc, by, p.soft_s + poll_in_process, BY_SOFT_TIMEOUT)
            else:
                ends = p.hard_s + p.monitor_in_process_s + p.termination_grace_s
                by = _earlier(inc, by, ends + look, BY_HARD_TIMEOUT)
        if p.has_human:
            by = _earlier(inc, by, draw(p, HUMAN, seed, replication, number, attempt), BY_HUMAN)
        return by
    if layer == IN_PROCESS:
        return float(poll * p.monitor_in_process_s)
    return float(look)


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
def _charge(inc: Any, layer: int) -> None:
    """Begin an attempt: charge the layer's budget."""
    inc[ATTEMPT] += 1
    if layer == IN_PROCESS:
        inc[USED_IN_PROCESS] += 1
        if inc[SYMPTOM] == PROCESS_EXIT:
            inc[USED_RESERVE] += 1
    elif layer == IN_JOB:
        inc[USED_IN_JOB] += 1
    elif layer == NODE_REPLACEMENT:
        inc[USED_REPLACEMENT] += 1
    elif layer == SLURM:
        inc[USED_SLURM] += 1


@rule
def _renew_budgets(inc: Any, p: Any, layer: int) -> None:
    """Give the layers below `layer` what the processes that it started anew had used up.

    A launcher that gave up has ended: whoever takes over from it starts a new one, with a new budget.
    """
    if layer == IN_PROCESS:
        return
    inc[USED_IN_PROCESS] = 0.0
    inc[USED_RESERVE] = 0.0
    ended = inc[USED_IN_JOB] >= p.max_in_job or inc[NO_PROGRESS_CYCLES] >= p.max_no_progress
    if layer != IN_JOB and ended:
        inc[USED_IN_JOB] = 0.0
        inc[NO_PROGRESS_CYCLES] = 0.0
        inc[PROGRESS_AT_CYCLE] = inc[PROGRESS]
    if layer == FIXED or layer == KUBERNETES or layer == SLURM:
        inc[USED_IN_JOB] = 0.0
        inc[USED_REPLACEMENT] = 0.0
        inc[NO_PROGRESS_CYCLES] = 0.0
        inc[PROGRESS_AT_CYCLE] = inc[PROGRESS]
    if layer == FIXED:
        inc[USED_SLURM] = 0.0


@rule
def _count_cycle(inc: Any) -> float:
    """End a cycle of the launcher; the number of them in a row that brought no new checkpoint."""
    inc[NO_PROGRESS_CYCLES] += 1
    if inc[PROGRESS] > inc[PROGRESS_AT_CYCLE]:
        inc[NO_PROGRESS_CYCLES] = 0.0
        inc[PROGRESS_AT_CYCLE] = inc[PROGRESS]
    return float(inc[NO_PROGRESS_CYCLES])


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
def _lowest_that_starts(inc: Any, p: Any) -> int:
    """Return the layer that starts the job again after a planned stop: Slurm, else the lowest that starts processes."""
    if p.layer_on[SLURM] and inc[LAYER] <= SLURM:
        return SLURM
    for layer in range(max(IN_JOB, int(inc[LAYER])), FIXED + 1):
        if p.layer_on[layer]:
            return layer
    inc[REASON] = NOT_CONTAINED
    return NO_LAYER


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
        if inc[LAYER] == IN_JOB and not planned and _count_cycle(inc) >= p.max_no_progress:
            inc[GAVE_UP] = NO_PROGRESS
            return _hand_over(inc, p, IN_JOB, now, seed, replication)
        inc[STAGE] = 0.0
        if planned:  # nothing is left that had to be stopped
            inc[ATTEMPT] += 1
            inc[STAGE] = 1.0 if inc[LAYER] == IN_JOB or inc[LAYER] == NODE_REPLACEMENT else 0.0
        else:
            _charge(inc, int(inc[LAYER]))
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
            _renew_budgets(inc, p, layer)
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
            layer = _lowest_that_starts(inc, p)
        else:
            layer = _choose(inc, p, int(inc[LAYER]), symptom, gil_held, node_needed)
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
        by = now + _detection_s(inc, p, layer, symptom, gil_held, seed, replication)
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
    _renew_budgets(inc, p, KUBERNETES)
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
    inc[LAYER] = _choose(inc, p, layer + 1, PROCESS_EXIT, False, inc[NODE_NEEDED] > 0.0)
    if inc[LAYER] == NODE_REPLACEMENT and inc[SUSPECT] > 0.0:
        _drop_suspect(inc)
    if inc[LAYER] == KUBERNETES:
        return _to_pods(inc, now)
    if inc[LAYER] == NO_LAYER and inc[REASON] == NOT_CONTAINED:
        inc[REASON] = inc[GAVE_UP]
    inc[UNTIL] = now + _detection_s(inc, p, int(inc[LAYER]), PROCESS_EXIT, False, seed, replication)
    return DETECT, inc[UNTIL]
