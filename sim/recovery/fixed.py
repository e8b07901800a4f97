"""Fixed restart: stated times to detect and to restart, for people who only know their mean time to recover.

Contains every symptom. Phases: detect, node_wait, restart (reported as process_start), checkpoint_load, warmup.
"""

from __future__ import annotations

import math
from typing import Any

from sim.codes import NODE_WAIT, PROCESS_START, RESUMED, WARMUP
from sim.kernel import rule
from sim.params import FIXED_RESTART
from sim.params import WARMUP as WARMUP_ROW
from sim.recovery.loading import load_stage
from sim.recovery.state import ATTEMPT, MISSING, NUMBER
from sim.sampling import draw


@rule
def stage(inc: Any, p: Any, at: int, now: float, seed: int, replication: int) -> tuple[int, float]:
    """Return the phase at place `at` and how long it takes [s]."""
    number = int(inc[NUMBER])
    attempt = int(inc[ATTEMPT])
    if at == 1:
        return NODE_WAIT, math.inf if inc[MISSING] > 0 else 0.0
    if at == 2:
        return PROCESS_START, draw(p, FIXED_RESTART, seed, replication, number, attempt)
    if at == 3:
        return load_stage(inc, p, seed, replication)
    if at == 4:
        return WARMUP, draw(p, WARMUP_ROW, seed, replication, number, attempt)
    return RESUMED, 0.0
