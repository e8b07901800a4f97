"""Node replacement: the job waits for a new node, then starts all its processes again.

The node is a hot spare, a cold one to be provisioned, or a repaired one.

Contains the loss of a node and GPU errors that fail their health check; once it is at work, whatever else strikes
before the loop runs again is absorbed by the restart that follows anyway.
"""

from __future__ import annotations

from typing import Any

from sim.codes import ABORT, DETECT, IN_JOB, NODE_REPLACEMENT, RENDEZVOUS
from sim.kernel import rule
from sim.recovery.in_job import relaunch_stage
from sim.recovery.state import ATTEMPT, LAYER, PHASE, SUSPECT


@rule
def contains(inc: Any, node_needed: bool) -> bool:
    """Return whether this layer can absorb the fault."""
    at_work = inc[LAYER] == NODE_REPLACEMENT and inc[PHASE] != DETECT and inc[ATTEMPT] > 0
    return bool(node_needed or inc[SUSPECT] > 0.0 or at_work)


@rule
def stage(inc: Any, p: Any, at: int, now: float, seed: int, replication: int) -> tuple[int, float]:
    """Return the phase at place `at` and how long it takes [s]; without ft_launcher nobody stops and gathers."""
    if not p.layer_on[IN_JOB]:
        if at == 1:
            return ABORT, 0.0
        if at == 3:
            return RENDEZVOUS, 0.0
    return relaunch_stage(inc, p, at, now, seed, replication)
