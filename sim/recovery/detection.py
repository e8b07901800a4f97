"""Detection: how long a fault goes unnoticed, and who notices it first."""

from __future__ import annotations

import math
from typing import Any

from sim.codes import (
    BY_CLASS,
    BY_FIXED,
    BY_HARD_TIMEOUT,
    BY_HEARTBEAT,
    BY_HUMAN,
    BY_MONITOR,
    BY_SLURM,
    BY_SOFT_TIMEOUT,
    BY_WATCHDOG,
    FIXED,
    HANG,
    IN_PROCESS,
    NODE_LOSS,
    SILENT_CORRUPTION,
    SLOWDOWN,
)
from sim.draws import u
from sim.kernel import rule
from sim.params import CLASS_DETECT, FIXED_DETECT, HEARTBEAT, HUMAN, POLL
from sim.recovery.defaults import HEARTBEAT_CHECK_S
from sim.recovery.state import (
    ATTEMPT,
    CLASS,
    DETECTOR,
    NUMBER,
)
from sim.sampling import draw


@rule
def _earlier(inc: Any, by: float, other: float, detector: int) -> float:
    if other < by:
        inc[DETECTOR] = detector
        return other
    return by


@rule
def detection_s(
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
