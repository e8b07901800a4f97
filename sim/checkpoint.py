"""Saves: when one is due and in which tier, which are usable after a fault, and what a fault does to the checkpoints.

Every mode that saves has tiers, the nearest first: sync, async and local one, tiered those of its list. The durable
checkpoints of each are kept oldest first in arrays of a fixed size, so that the rules compile: tier t has the places
from t * places(p) on.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sim.codes import IN_PROCESS, NODE_LOSS, PROCESS_EXIT, SLURM, SYMPTOMS
from sim.kernel import rule
from sim.params import LOAD_FAILS
from sim.sampling import chance

STEP0 = -1  # no checkpoint: the run begins again at its first step


class Checkpoints(NamedTuple):
    """Durable checkpoints of one run, in each tier oldest first; `count[t]` of its places are in use."""

    step: Any  # [tiers x places] done steps they hold
    begun: Any  # [tiers x places] when their save began [s]
    usable: Any  # [tiers x places] 1 once a restart may load it (`publish: next_save` delays that)
    number: Any  # [tiers x places] which save of the run it was
    count: Any  # [tiers]


@rule
def kept(p: Any, tier: int) -> int:
    """Return how many checkpoints of a tier can exist: `keep`, and beside a single one that which takes its place."""
    return max(int(p.tier_keep[tier]), 2) if p.publish_next else int(p.tier_keep[tier])


@rule
def places(p: Any) -> int:
    """Return how many places each tier has in the arrays."""
    most = 0
    for tier in range(p.n_tiers):
        most = max(most, kept(p, tier))
    return most


# --- when


@rule
def next_save(p: Any, done: float, total: float) -> float:
    """Return the step count at which the next save is due (inf: none): multiples of each interval, from step 0.

    None after the last step: a job that goes on from its final save has nothing left to save.
    """
    if p.n_tiers == 0 or done >= total:
        return math.inf
    due = math.inf
    for tier in range(p.n_tiers):
        every = p.tier_every[tier]
        due = min(due, (math.floor(done / every) + 1.0) * every)
    if due < total:
        return float(due)
    return total if p.final_save else math.inf


@rule
def due_tier(p: Any, step: float, total: float) -> int:
    """Return the tier that saves at a step: of those due the farthest, which stands for the nearer ones.

    Megatron-LM skips the non-persistent save when a persistent one is due [training.py, save_checkpoint in `elif`].
    The end of the job is saved in the farthest tier.
    """
    if step < total:
        for tier in range(p.n_tiers - 1, 0, -1):
            if math.floor(step / p.tier_every[tier]) * p.tier_every[tier] == step:
                return tier
        return 0
    return int(p.n_tiers - 1)


@rule
def write_begins(now: float, stall_s: float, writer_free_at: float) -> float:
    """Return when a background write begins: after its staging and behind the tier's writes before it (FIFO)."""
    return max(now + stall_s, writer_free_at)


# --- what there is


@rule
def add_durable(ck: Checkpoints, p: Any, tier: int, step: float, begun: float, number: int) -> None:
    """Record a checkpoint that has just become durable; beyond `keep` the oldest of its tier goes.

    The newest usable one never goes: what is not published yet cannot take its place.
    """
    first = tier * places(p)
    if int(ck.count[tier]) == kept(p, tier):
        goes = first
        if p.publish_next and _newest_in(ck, p, tier, math.inf) == first:
            goes = first + 1
        drop(ck, p, goes)
    i = first + int(ck.count[tier])
    ck.step[i] = step
    ck.begun[i] = begun
    ck.usable[i] = 0 if p.publish_next else 1
    ck.number[i] = number
    ck.count[tier] += 1


@rule
def drop(ck: Checkpoints, p: Any, place: int) -> None:
    """Delete the checkpoint at a place."""
    tier = place // places(p)
    last = tier * places(p) + int(ck.count[tier]) - 1
    for i in range(place, last):
        ck.step[i] = ck.step[i + 1]
        ck.begun[i] = ck.begun[i + 1]
        ck.usable[i] = ck.usable[i + 1]
        ck.number[i] = ck.number[i + 1]
    ck.count[tier] -= 1


@rule
def publish(ck: Checkpoints, p: Any, tier: int) -> None:
    """Make every durable checkpoint of a tier usable: what its next save does first under `publish: next_save`."""
    for i in range(tier * places(p), tier * places(p) + int(ck.count[tier])):
        ck.usable[i] = 1


@rule
def _newest_in(ck: Checkpoints, p: Any, tier: int, corrupted_at: float) -> int:
    first = tier * places(p)
    for i in range(first + int(ck.count[tier]) - 1, first - 1, -1):
        if ck.usable[i] and ck.begun[i] < corrupted_at:
            return i
    return STEP0


@rule
def newest_usable(ck: Checkpoints, p: Any, corrupted_at: float) -> int:
    """Return the place of the newest usable checkpoint begun before `corrupted_at` (STEP0: none).

    Of one step saved in two tiers the nearest.
    """
    best = STEP0
    for tier in range(p.n_tiers):
        i = _newest_in(ck, p, tier, corrupted_at)
        if i != STEP0 and (best == STEP0 or ck.step[i] > ck.step[best]):
            best = i
    return best


@rule
def has(ck: Checkpoints, p: Any, tier: int, step: float) -> bool:
    """Return whether a tier has a durable checkpoint of a step."""
    first = tier * places(p)
    for i in range(first, first + int(ck.count[tier])):
        if ck.step[i] == step:
            return True
    return False


@rule
def tier_of(p: Any, place: int) -> int:
    """Return the tier that a place belongs to."""
    return place // places(p)


@rule
def kept_step(ck: Checkpoints, p: Any, corrupted_at: float) -> float:
    """Return the done steps in the newest durable checkpoint begun before `corrupted_at` (0: none)."""
    newest = 0.0
    for tier in range(p.n_tiers):
        first = tier * places(p)
        for i in range(first, first + int(ck.count[tier])):
            if ck.begun[i] < corrupted_at:
                newest = max(newest, float(ck.step[i]))
    return newest


@rule
def restore(ck: Checkpoints, p: Any, corrupted_at: float) -> float:
    """Go on from the newest usable checkpoint begun before `corrupted_at`, and drop the later ones of all tiers.

    Returns the done steps to go on from (0: no checkpoint).
    """
    place = newest_usable(ck, p, corrupted_at)
    step = 0.0 if place == STEP0 else float(ck.step[place])
    for tier in range(p.n_tiers):
        first = tier * places(p)
        while ck.count[tier] > 0 and (place == STEP0 or ck.step[first + int(ck.count[tier]) - 1] > step):
            ck.count[tier] -= 1
    return step


# --- what is lost


@rule
def survives(p: Any, tier: int, symptom: int) -> bool:
    """Return whether a tier's checkpoints can still be loaded after a symptom."""
    return bool(p.tier_survives[tier * len(SYMPTOMS) + symptom])


@rule
def lose(ck: Checkpoints, p: Any, symptom: int) -> None:
    """Lose the tiers that do not survive a symptom."""
    for tier in range(p.n_tiers):
        if not survives(p, tier, symptom):
            ck.count[tier] = 0


@rule
def amounts_to(layer: int) -> int:
    """Return the symptom that a layer's restart amounts to, whatever the fault was (-1: no further one).

    In-process restart keeps the processes; all others end them, and a Slurm requeue gives every node back.
    """
    if layer == IN_PROCESS:
        return -1
    return NODE_LOSS if layer == SLURM else PROCESS_EXIT


@rule
def cannot_load(p: Any, number: int, seed: int, replication: int) -> bool:
    """Return whether the checkpoint of save `number` fails to load: drawn once for it, so every try fails alike."""
    return chance(p, p.even_streams[LOAD_FAILS], seed, replication, number, 0, p.load_failure)
