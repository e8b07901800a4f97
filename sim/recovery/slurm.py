"""Slurm requeue: the allocation ends, the job waits in the queue and starts again in a new one.

Contains everything. Detect (the launcher's look, a watchdog, Slurm's own look at a silent node: SlurmdTimeout, 300 s
by default [slurm.conf]; the end of the allocation at its time limit needs none), wait in the queue and until there are
nodes for all, prolog, process start, process group and model, checkpoint load, warm-up. A node that was lost for good
is replaced by another of the partition, and a suspect one is taken for left behind. The prolog counts as process start:
no process runs before it is over. The time limit runs from the end of the wait on; the first allocation stands when the
run begins, so neither queue nor prolog is paid for it.
"""

from __future__ import annotations

import math
from typing import Any

from sim.codes import INIT, NODE_WAIT, PROCESS_START, RESUMED, WARMUP
from sim.kernel import rule
from sim.params import INIT as INIT_ROW
from sim.params import PROCESS_START as PROCESS_START_ROW
from sim.params import PROLOG, QUEUE_WAIT
from sim.params import WARMUP as WARMUP_ROW
from sim.recovery.loading import load_stage
from sim.recovery.state import ASK, ATTEMPT, DEADLINE, MISSING, NUMBER, SUSPECT
from sim.sampling import draw


@rule
def stage(inc: Any, p: Any, at: int, now: float, seed: int, replication: int) -> tuple[int, float]:
    """Return the phase at place `at` and how long it takes [s]."""
    number = int(inc[NUMBER])
    attempt = int(inc[ATTEMPT])
    if at == 1:
        inc[SUSPECT] = 0.0
        inc[ASK] = 1.0  # the driver gives all nodes back, and gets those of the next allocation
        return NODE_WAIT, draw(p, QUEUE_WAIT, seed, replication, number, attempt)
    if at == 2:
        return NODE_WAIT, math.inf if inc[MISSING] > 0 else 0.0
    if at == 3:
        return PROCESS_START, draw(p, PROLOG, seed, replication, number, attempt)
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
