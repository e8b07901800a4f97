"""Fault laws and ages: when the next fault of each class strikes, and whom.

Each class owns a *clock* that runs at a rate: for classes drawn unit by unit the clock is the age everybody shares
(1 s per s, or 0 while it stands still); exponential classes are superposed, and their clock is accumulated hazard
(rate x units at risk). A strike is a reading of that clock, so changing the number of nodes, or stopping the clock
for a restart, never needs a new draw, and a unit that did not fail keeps its age when another does.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sim.codes import JOB, RACK
from sim.draws import u
from sim.kernel import rule
from sim.params import AGE
from sim.sampling import draw, life_after

# One row a source: source 2c is class c on the working set, 2c + 1 the same class on hot spares (superposed only).
ANCHOR_T, ANCHOR_A, RATE, NEXT_A, COUNT = range(5)

VICTIM = 1  # added to a class's stream: who is struck
LIFE_AFTER_AGE = 3  # ... the life of a unit that has an age already


class Sources(NamedTuple):
    """Fault clocks of one run. Arrays (batch) or lists (SimPy)."""

    row: Any  # [2 x classes][5] the clocks above
    tree: Any  # tournament trees of strike readings, one after the other
    birth: Any  # [unit] clock reading at age 0
    life: Any  # [unit] age at which it fails
    drawn: Any  # [unit] lives drawn so far; 0 = never put to work


@rule
def reading(row: Any, now: float) -> float:
    """Return the clock of one source at time `now`."""
    return float(row[ANCHOR_A] + row[RATE] * (now - row[ANCHOR_T]))


@rule
def strike_time(row: Any) -> float:
    """Return when the next fault of one source strikes [s]; inf while its clock stands still."""
    if row[RATE] <= 0.0 or row[NEXT_A] == math.inf:
        return math.inf
    return float(row[ANCHOR_T] + (row[NEXT_A] - row[ANCHOR_A]) / row[RATE])


@rule
def set_rate(row: Any, now: float, rate: float) -> None:
    """Let one source's clock run at `rate` from `now` on."""
    if rate != row[RATE]:
        row[ANCHOR_A] = reading(row, now)
        row[ANCHOR_T] = now
        row[RATE] = rate


@rule
def set_rates(src: Sources, p: Any, now: float, running: bool, working: int, hot: int) -> None:
    """Set every clock after the working set, the hot spares or the loop's state has changed.

    Wall clocks always run; running clocks stand still outside the loop (design: `failures.clock`).
    """
    on = 1.0 if running or not p.running_clock else 0.0
    for c in range(p.n_classes):
        if p.class_tree[c]:
            set_rate(src.row[2 * c], now, on)
            continue
        per = p.class_per[c]
        rate = p.class_rate[c] * on
        if per == JOB:
            set_rate(src.row[2 * c], now, rate)
        elif per == RACK:
            set_rate(src.row[2 * c], now, rate * p.racks)
        else:
            set_rate(src.row[2 * c], now, rate * working * p.class_units[c])
            set_rate(src.row[2 * c + 1], now, rate * hot * p.class_units[c])


@rule
def stand_still(src: Sources, p: Any, now: float) -> None:
    """Stop every clock: a job that waits in Slurm's queue has no nodes, and nothing can strike it."""
    for s in range(2 * p.n_classes):
        set_rate(src.row[s], now, 0.0)


@rule
def _hazard_gap(p: Any, source: int, k: int, seed: int, replication: int) -> float:
    return -math.log(u(seed, replication, p.class_stream[source // 2], source % 2, k))


@rule
def start(src: Sources, p: Any, seed: int, replication: int) -> None:
    """Draw every source's first strike; units of the working set and hot spares begin to age."""
    for c in range(p.n_classes):
        if not p.class_tree[c]:
            for s in range(2 * c, 2 * c + 2):
                src.row[s][NEXT_A] = _hazard_gap(p, s, 0, seed, replication)
            continue
        per = p.class_per[c]
        if per == JOB:
            ageing = 1
        elif per == RACK:
            ageing = p.racks
        else:
            ageing = (p.nodes + p.hot) * p.class_units[c]
        for i in range(ageing):
            _first_life(src, p, c, i, 0.0, seed, replication)
        _raise_tree(src, p, c)


@rule
def _first_life(src: Sources, p: Any, c: int, i: int, now_a: float, seed: int, replication: int) -> None:
    """Give unit `i` of class `c` its first life: new, or as old as long-run units are."""
    at = p.class_unit0[c] + i
    row = p.class_row0 + 4 * c
    age = 0.0
    if p.stationary:
        age = draw(p, row + AGE, seed, replication, i, 0)
        life = life_after(
            p.laws, p.tables, row, age, u(seed, replication, p.class_stream[c] + LIFE_AFTER_AGE, i, 0)
        )
    else:
        life = draw(p, row, seed, replication, i, 0)
    src.drawn[at] = 1
    src.birth[at] = now_a - age
    src.life[at] = life
    src.tree[p.class_tree0[c] + p.class_leaves[c] + i] = now_a - age + life


@rule
def _raise_tree(src: Sources, p: Any, c: int) -> None:
    base = p.class_tree0[c]
    for j in range(p.class_leaves[c] - 1, 0, -1):
        src.tree[base + j] = min(src.tree[base + 2 * j], src.tree[base + 2 * j + 1])
    src.row[2 * c][NEXT_A] = src.tree[base + 1]


@rule
def _set_leaf(src: Sources, p: Any, c: int, i: int, value: float) -> None:
    base = p.class_tree0[c]
    j = p.class_leaves[c] + i
    src.tree[base + j] = value
    j //= 2
    while j >= 1:
        src.tree[base + j] = min(src.tree[base + 2 * j], src.tree[base + 2 * j + 1])
        j //= 2
    src.row[2 * c][NEXT_A] = src.tree[base + 1]


@rule
def victim(src: Sources, p: Any, source: int, seed: int, replication: int) -> float:
    """Return whom the strike of `source` hits.

    Unit number for classes drawn unit by unit; for superposed ones, and those with one clock for the whole job, a
    share in 0..1 of the units at risk.
    """
    c = source // 2
    row = src.row[source]
    if not p.class_tree[c] or p.class_per[c] == JOB:
        return u(seed, replication, p.class_stream[c] + VICTIM, source % 2, int(row[COUNT]))
    base = p.class_tree0[c]
    leaves = p.class_leaves[c]
    j = 1
    while j < leaves:
        j *= 2
        if src.tree[base + j] > src.tree[base + j + 1]:
            j += 1
    return float(j - leaves)


@rule
def renew(src: Sources, p: Any, source: int, unit: int, seed: int, replication: int) -> None:
    """Draw the next strike after one of `source`; a unit drawn by itself starts a new life at once."""
    c = source // 2
    row = src.row[source]
    row[COUNT] += 1
    if not p.class_tree[c]:
        row[NEXT_A] += _hazard_gap(p, source, int(row[COUNT]), seed, replication)
        return
    at = p.class_unit0[c] + unit
    src.birth[at] = row[NEXT_A]
    src.life[at] = draw(p, p.class_row0 + 4 * c, seed, replication, unit, int(src.drawn[at]))
    src.drawn[at] += 1
    _set_leaf(src, p, c, unit, src.birth[at] + src.life[at])


@rule
def stop_ageing(src: Sources, p: Any, node: int, now: float, failed_class: int, failed_unit: int) -> None:
    """Take a node's units out of the fault clocks; what they have aged is kept.

    `failed_unit` of `failed_class` (-1: none) has lived its life to the end: a life of 0 marks it. Units that rest
    already (two faults at one instant) are left as they are.
    """
    for c in range(p.n_classes):
        if not p.class_tree[c] or p.class_per[c] == JOB or p.class_per[c] == RACK:
            continue
        now_a = reading(src.row[2 * c], now)
        for i in range(node * p.class_units[c], (node + 1) * p.class_units[c]):
            at = p.class_unit0[c] + i
            if src.tree[p.class_tree0[c] + p.class_leaves[c] + i] < math.inf:
                src.birth[at] = now_a - src.birth[at]  # holds the age while the unit rests
                if c == failed_class and i == failed_unit:
                    src.life[at] = 0.0
                _set_leaf(src, p, c, i, math.inf)


@rule
def renew_resting(src: Sources, p: Any, node: int) -> None:
    """Make a node's units as good as new while they rest: a mended node that goes to the cold spares."""
    for c in range(p.n_classes):
        if not p.class_tree[c] or p.class_per[c] == JOB or p.class_per[c] == RACK:
            continue
        for i in range(node * p.class_units[c], (node + 1) * p.class_units[c]):
            at = p.class_unit0[c] + i
            src.birth[at] = 0.0
            src.life[at] = 0.0


@rule
def start_ageing(
    src: Sources, p: Any, node: int, now: float, renewed: bool, seed: int, replication: int
) -> None:
    """Put a node's units (back) to work: as good as new when `renewed`, else at the age they had.

    A unit that had reached the end of its life and is not renewed gets a longer one, conditioned on its age
    (minimal repair; a power-law process for the Weibull law).
    """
    for c in range(p.n_classes):
        if not p.class_tree[c] or p.class_per[c] == JOB or p.class_per[c] == RACK:
            continue
        now_a = reading(src.row[2 * c], now)
        for i in range(node * p.class_units[c], (node + 1) * p.class_units[c]):
            at = p.class_unit0[c] + i
            row = p.class_row0 + 4 * c
            if src.drawn[at] == 0:
                _first_life(src, p, c, i, now_a, seed, replication)
            else:
                age = 0.0 if renewed else src.birth[at]
                if renewed or src.life[at] == 0.0:
                    draws = u(seed, replication, p.class_stream[c] + LIFE_AFTER_AGE, i, int(src.drawn[at]))
                    if renewed:
                        src.life[at] = draw(p, row, seed, replication, i, int(src.drawn[at]))
                    else:
                        src.life[at] = life_after(p.laws, p.tables, row, age, draws)
                    src.drawn[at] += 1
                src.birth[at] = now_a - age
            _set_leaf(src, p, c, i, src.birth[at] + src.life[at])


@rule
def next_source(src: Sources, p: Any) -> int:
    """Return the source that strikes first (-1: none ever)."""
    best = -1
    when = math.inf
    for s in range(2 * p.n_classes):
        t = strike_time(src.row[s])
        if t < when:
            best = s
            when = t
    return best
