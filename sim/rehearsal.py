"""An incident rehearsed: led through the rules with nothing else striking, for the means that feasibility looks at."""

from __future__ import annotations

import math
from typing import NamedTuple

from sim import checkpoint, codes, params, sampling
from sim.params import Params
from sim.recovery import base, state
from sim.scenario import Scenario

_REPLAYS = 16  # incidents led through the rules for a mean: chances of a health check, random phases
_MAX_PHASES = 200  # more phases than this in one incident: it restarts for ever


class Incident(NamedTuple):
    """The mean incident of one kind of fault with nothing else striking [s].

    `fails`: it ends the job. `endless_s`: it restarts for ever, and these are the seconds of one restart.
    """

    detect_s: float
    restart_s: float
    wait_s: float
    events: float
    fails: bool
    endless_s: float | None = None
    tier: int = 0
    """The nearest tier whose checkpoints it leaves; the number of tiers if it leaves none."""
    anew: float = 0.0
    """Probability that none of the checkpoints that it leaves can be loaded."""


def replay(
    p: Params,
    s: Scenario,
    symptom: int,
    gil_held: bool,
    fault_class: int,
    takes_node: bool,
    repair: bool,
    ends_allocation: bool = False,
    pause_s: float = 0.0,
) -> Incident:
    """Lead incidents of one kind through the rules with nothing else striking; their mean."""
    arrives = _arrival_s(p, s, repair)
    runs = [
        _lead(p, symptom, gil_held, fault_class, takes_node, arrives, replication, ends_allocation, pause_s)
        for replication in range(_REPLAYS)
    ]
    for run in runs:
        if run.endless_s is not None:
            return run
    detect, restart, wait, events = (
        math.fsum(getattr(run, name) for run in runs) / _REPLAYS
        for name in ("detect_s", "restart_s", "wait_s", "events")
    )
    tier, anew = max(run.tier for run in runs), max(run.anew for run in runs)
    return Incident(detect, restart, wait, events, all(run.fails for run in runs), tier=tier, anew=anew)


def _arrival_s(p: Params, s: Scenario, repair: bool) -> float:
    """Return after how long a missing node is replaced, cold spare or repair (inf: never)."""
    if p.cold > 0:
        return s.recovery.node_replacement.provision.mean_s()
    if not repair or s.cluster.repair is None:
        return math.inf
    reached, total = 1.0, 0.0
    for stage in s.cluster.repair.stages:
        total += reached * stage.time.mean_s()
        reached *= stage.escalate
    return total


def _lead(
    p: Params,
    symptom: int,
    gil_held: bool,
    c: int,
    takes_node: bool,
    arrives_s: float,
    replication: int,
    ends_allocation: bool = False,
    pause_s: float = 0.0,
) -> Incident:
    inc = [0.0] * state.SIZE
    state.clear(inc)
    missing = 1 if takes_node and p.hot == 0 else 0
    base.strike(inc, symptom, gil_held, c, 0, takes_node)
    if ends_allocation:
        base.end_allocation(inc)
    if pause_s > 0.0:
        base.plan(inc, pause_s)
    loads = _Loads(p, replication)
    loads.lose(symptom)
    if takes_node:
        loads.lose(codes.NODE_LOSS)
    state.observe(inc, missing, *loads.next(), 1.0)
    now = detect = restart = wait = 0.0
    phases = 0
    phase, until = base.advance(inc, p, codes.ON_FAULT, now, 0, replication)
    while phase < codes.RESUMED and phases < _MAX_PHASES:
        phases += 1
        event = codes.ON_TIMER
        if phase == codes.NODE_WAIT and until < math.inf:  # a pause, or Slurm's queue
            wait, missing = wait + until - now, missing if arrives_s < math.inf else 0
        elif phase == codes.NODE_WAIT:
            if arrives_s == math.inf:
                phase = codes.FAILED
                break
            wait, until, missing, event = wait + arrives_s, now + arrives_s, 0, codes.ON_NODES
        elif until == math.inf:  # a hang that nothing detects: refused elsewhere
            break
        elif phase == codes.DETECT:
            detect += until - now
        else:
            restart += until - now
        now = until
        loads.passed(phase, inc)
        if phase == codes.DETECT and inc[state.LAYER] != codes.NO_LAYER:
            loads.lose(checkpoint.amounts_to(int(inc[state.LAYER])))
        state.observe(inc, missing, *loads.next(), 1.0)
        phase, until = base.advance(inc, p, event, now, 0, replication)
        if inc[state.DROP_NODE]:
            inc[state.DROP_NODE] = 0.0
            loads.lose(codes.NODE_LOSS)
            missing = 1 if p.hot == 0 else 0
    if (
        phase == codes.PODS
    ):  # led pod by pod, which is not replayed here: the least that a round of pods takes
        survivors = p.nccl_s if p.nccl_s < math.inf else 0.0
        rows = (params.PROCESS_START, params.INIT, params.LOAD, params.WARMUP)
        restart += survivors + math.fsum(sampling.draw(p, row, 0, replication, 1, 1) for row in rows)
        loads.lose(codes.PROCESS_EXIT)
        events = 2.0 * phases + 40.0 + 4.0 * p.nodes
        return Incident(detect, restart, wait, events, False, tier=loads.nearest(), anew=loads.anew())
    if phases == _MAX_PHASES:
        return Incident(0.0, 0.0, 0.0, 3.0, fails=False, endless_s=now / phases)
    events, fails = 2.0 * phases + 6.0, phase == codes.FAILED
    return Incident(detect, restart, wait, events, fails, tier=loads.nearest(), anew=loads.anew())


class _Loads:
    """What a replayed incident finds to load: in each tier that is left as many checkpoints as are kept."""

    def __init__(self, p: Params, replication: int) -> None:
        self.p, self.replication, self.tried = p, replication, 0
        self.tiers = list(range(p.n_tiers))

    def lose(self, symptom: int) -> None:
        """Lose the tiers that do not survive a symptom (-1: none)."""
        self.tiers = [t for t in self.tiers if symptom < 0 or checkpoint.survives(self.p, t, symptom)]

    def nearest(self) -> int:
        """Return the nearest tier that is left, the number of tiers if none is."""
        return self.tiers[0] if self.tiers else self.p.n_tiers

    def anew(self) -> float:
        """Return the probability that none of the checkpoints that are left can be loaded."""
        fails = self.p.load_failure if self.p.n_tiers and not self.p.load_exit else 0.0
        return float(fails ** sum(checkpoint.kept(self.p, t) for t in self.tiers)) if fails > 0.0 else 0.0

    def next(self) -> tuple[int, bool]:
        """Return the row of the law of the next load (-1: nothing to load) and whether it fails."""
        if self.p.n_tiers == 0:
            return (params.LOAD if self.p.mode == codes.IDEAL else -1), False
        rows = [self.p.tier_load[t] for t in self.tiers for _ in range(checkpoint.kept(self.p, t))]
        if self.tried >= len(rows):
            return -1, False
        return rows[self.tried], checkpoint.cannot_load(self.p, self.tried, 0, self.replication)

    def passed(self, phase: int, inc: list[float]) -> None:
        """Go on to the next older checkpoint after a load that failed."""
        if phase == codes.CHECKPOINT_LOAD and inc[state.LOAD_FAILS] and not self.p.load_exit:
            self.tried += 1
