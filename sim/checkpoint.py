"""Saves: when one is due, which are usable after a fault, and what a fault does to the checkpoints.

The durable checkpoints are kept oldest first in arrays of a fixed size, so that the rules compile.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sim.codes import IDEAL, NONE
from sim.kernel import rule

STEP0 = -1  # no checkpoint: the run begins again at its first step


class Checkpoints(NamedTuple):
    """Durable checkpoints of one run, oldest first; `count[0]` of the `places` are in use."""

    step: Any  # [places] done steps they hold
    begun: Any  # [places] when their save began [s]
    usable: Any  # [places] 1 once a restart may load it (`publish: next_save` delays that)
    count: Any  # [1]


@rule
def places(p: Any) -> int:
    """Return how many checkpoints can exist: `keep`, and beside a single one that which is to take its place."""
    return max(int(p.keep), 2) if p.publish_next else int(p.keep)


@rule
def next_save(p: Any, done: float, total: float) -> float:
    """Return the step count at which the next save is due (inf: none): multiples of the interval, from step 0.

    None after the last step: a job that goes on from its final save has nothing left to save.
    """
    if p.mode == NONE or p.mode == IDEAL or done >= total:
        return math.inf
    due = (math.floor(done / p.interval_steps) + 1.0) * p.interval_steps
    if due < total:
        return float(due)
    return total if p.final_save else math.inf


@rule
def add_durable(ck: Checkpoints, p: Any, step: float, begun: float) -> None:
    """Record a checkpoint that has just become durable; beyond `keep` the oldest goes.

    The newest usable one never goes: what is not published yet cannot take its place.
    """
    n = int(ck.count[0])
    if n == places(p):
        goes = 0
        if newest_usable(ck, math.inf) == 0 and p.publish_next:
            goes = 1
        for i in range(goes, n - 1):
            ck.step[i] = ck.step[i + 1]
            ck.begun[i] = ck.begun[i + 1]
            ck.usable[i] = ck.usable[i + 1]
        n -= 1
    ck.step[n] = step
    ck.begun[n] = begun
    ck.usable[n] = 0 if p.publish_next else 1
    ck.count[0] = n + 1


@rule
def publish(ck: Checkpoints) -> None:
    """Make every durable checkpoint usable: what a save does at its beginning under `publish: next_save`."""
    for i in range(int(ck.count[0])):
        ck.usable[i] = 1


@rule
def newest_usable(ck: Checkpoints, corrupted_at: float) -> int:
    """Return the place of the newest usable checkpoint begun before `corrupted_at` (STEP0: none)."""
    for i in range(int(ck.count[0]) - 1, -1, -1):
        if ck.usable[i] and ck.begun[i] < corrupted_at:
            return i
    return STEP0


@rule
def kept_step(ck: Checkpoints, corrupted_at: float) -> float:
    """Return the done steps in the newest durable checkpoint begun before `corrupted_at` (0: none)."""
    for i in range(int(ck.count[0]) - 1, -1, -1):
        if ck.begun[i] < corrupted_at:
            return float(ck.step[i])
    return 0.0


@rule
def restore(ck: Checkpoints, corrupted_at: float) -> float:
    """Load the newest usable checkpoint begun before `corrupted_at`, and drop the later ones.

    Returns the done steps to go on from (0: no checkpoint).
    """
    i = newest_usable(ck, corrupted_at)
    ck.count[0] = i + 1
    return 0.0 if i == STEP0 else float(ck.step[i])


@rule
def write_begins(now: float, stall_s: float, writer_free_at: float) -> float:
    """Return when a background write begins: after its staging and behind the writes before it (FIFO)."""
    return max(now + stall_s, writer_free_at)
