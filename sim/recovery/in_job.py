"""NVRx in-job restart (ft_launcher): the launchers stop all workers and start new ones on the nodes at hand.

Phases: NVRx fault_tolerance guide, and facts by version in defaults.py. Detect (exit code at the next monitor
interval; hang by heartbeat or section timeout, or the NCCL watchdog), stop (SIGTERM, at most the stop timeout,
then SIGKILL) and GPU-memory reclaim, health check and rendezvous, process start, process group and model,
checkpoint load, warm-up. Start-up longer than the initial heartbeat timeout is ended by it and begins again.
"""

from __future__ import annotations

import math
from typing import Any

from sim.codes import (
    ABORT,
    ESCALATE,
    INIT,
    NO_SPARE,
    NODE_LOSS,
    NODE_WAIT,
    PROCESS_START,
    RENDEZVOUS,
    RESUMED,
    UNHEALTHY,
    UNSUCCESSFUL,
    WARMUP,
)
from sim.kernel import rule
from sim.params import HEALTH, RECLAIM, RENDEZVOUS_ROW, STOP, SUCCESS
from sim.params import INIT as INIT_ROW
from sim.params import PROCESS_START as PROCESS_START_ROW
from sim.params import WARMUP as WARMUP_ROW
from sim.recovery.loading import load_stage
from sim.recovery.state import (
    ATTEMPT,
    DEADLINE,
    GAVE_UP,
    MISSING,
    NUMBER,
    SUSPECT,
)
from sim.sampling import chance, draw


@rule
def contains(inc: Any, symptom: int, node_needed: bool) -> bool:
    """Return whether this layer can absorb the fault: all but the loss of a node without a hot spare."""
    if symptom == NODE_LOSS and not node_needed:  # layer fixed will bring the node back; nothing else does
        return False
    return bool(not node_needed or inc[MISSING] <= 0)


@rule
def stage(inc: Any, p: Any, at: int, now: float, seed: int, replication: int) -> tuple[int, float]:
    """Return the phase at place `at` and how long it takes [s]; ESCALATE when the layer gives up."""
    if at == 2:
        if inc[MISSING] > 0:
            inc[GAVE_UP] = NO_SPARE
            return ESCALATE, 0.0
        number = int(inc[NUMBER])
        attempt = int(inc[ATTEMPT])
        if inc[SUSPECT] > 0.0:
            if not chance(p, p.even_streams[HEALTH], seed, replication, number, attempt, p.health_in_job):
                inc[GAVE_UP] = UNHEALTHY
                return ESCALATE, 0.0
            inc[SUSPECT] = 0.0
        if not chance(p, p.even_streams[SUCCESS], seed, replication, number, attempt, p.success_in_job):
            inc[GAVE_UP] = UNSUCCESSFUL
            return ESCALATE, 0.0
        return NODE_WAIT, 0.0
    return relaunch_stage(inc, p, at, now, seed, replication)


@rule
def relaunch_stage(inc: Any, p: Any, at: int, now: float, seed: int, replication: int) -> tuple[int, float]:
    """Return the phases that any restart of all processes by the launcher has."""
    number = int(inc[NUMBER])
    attempt = int(inc[ATTEMPT])
    if at == 1:
        stop = min(draw(p, STOP, seed, replication, number, attempt), p.stop_timeout_s)
        reclaim = min(draw(p, RECLAIM, seed, replication, number, attempt), p.reclaim_timeout_s)
        return ABORT, stop + reclaim
    if at == 2:
        return NODE_WAIT, math.inf if inc[MISSING] > 0 else 0.0
    if at == 3:
        return RENDEZVOUS, draw(p, RENDEZVOUS_ROW, seed, replication, number, attempt)
    if at == 4:
        inc[DEADLINE] = now + p.initial_heartbeat_s
        return PROCESS_START, draw(p, PROCESS_START_ROW, seed, replication, number, attempt)
    if at == 5:
        return INIT, draw(p, INIT_ROW, seed, replication, number, attempt)
    if at == 6:
        return load_stage(inc, p, seed, replication)
    if at == 7:
        return WARMUP, draw(p, WARMUP_ROW, seed, replication, number, attempt)
    return RESUMED, 0.0
