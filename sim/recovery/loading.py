"""Checkpoint load: the stage that every layer's restart has.

The newest usable checkpoint is tried first. A load that fails has taken its time; then the stage comes again with the
next older one, or (`on_load_failure: exit`) the attempt ends and a restart tries the same one again.
"""

from __future__ import annotations

from typing import Any

from sim.codes import CHECKPOINT_LOAD, NO_LOAD
from sim.kernel import rule
from sim.recovery.state import ASK, ATTEMPT, LATE, LOAD_FAILS, LOAD_FROM, LOADS, NUMBER, STAGE
from sim.sampling import draw

TRIES = 1 << 20  # apart from the attempts, in the numbers of draws


@rule
def load_stage(inc: Any, p: Any, seed: int, replication: int) -> tuple[int, float]:
    """Return the load of the newest usable checkpoint and how long it takes [s]."""
    row = int(inc[LOAD_FROM])
    if row < 0:
        return CHECKPOINT_LOAD, 0.0
    lasts = draw(p, row, seed, replication, int(inc[NUMBER]), int(inc[ATTEMPT]) + TRIES * int(inc[LOADS]))
    if inc[LOAD_FAILS] > 0.0:
        inc[LOADS] += 1
        inc[ASK] = 1.0
        if p.load_exit:
            inc[LATE] = NO_LOAD
        else:
            inc[STAGE] -= 1
    return CHECKPOINT_LOAD, lasts
