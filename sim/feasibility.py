"""Is a scenario worth running at all? Expected attempts, faults and events of one run, before the first one.

Everything here is an estimate from means: the platform's mean time between faults that stop the job, one incident
led through the rules of sim/recovery with nothing else striking, and the exact renewal value of a segment. It
refuses what would not end; it predicts nothing that a simulation is asked for.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sim import cluster, codes, params, sampling
from sim.params import Params
from sim.rehearsal import Incident, replay
from sim.scenario import Scenario
from sim.schema.fields import Problem, ScenarioError
from sim.units import format_duration

MAX_UNITS = 500_000
"""Units (GPUs, nodes) whose lives may be drawn one by one; exponential classes need none."""

_GRID = 100  # places at which a renewal function is tabulated


@dataclass(frozen=True)
class Estimate:
    """What one run is expected to hold. Times in seconds; inf where there is no end.

    `mtbf_s` is of faults that stop the job; `write_s` is what a save takes out of the loop, `lag_s` the
    background write after it, `restart_s` the mean restart without detection and waits for nodes.
    `wall_s`, `faults` (spares' too) and `events` are cut at `limits.max_wall`.
    """

    mtbf_s: float
    interval_s: float
    write_s: float
    lag_s: float
    detect_s: float
    restart_s: float
    wait_s: float
    attempts_per_segment: float
    attempts_per_incident: float
    wall_s: float
    faults: float
    events: float


def check(scenario: Scenario, p: Params | None = None) -> Estimate:
    """Return the estimate of a scenario that can be run to its end.

    Raises `ScenarioError` with the estimate for one that cannot: expected attempts per checkpoint interval,
    exp((tau + C)/M), or per restart, exp(R/M), above `limits.max_attempts`; expected faults above
    `limits.max_faults`; expected events above `limits.max_events`.
    """
    p = p or params.compile_scenario(scenario)
    found = estimate(scenario, p)
    problems = refusals(scenario, found)
    if p.n_units > MAX_UNITS:
        text = f"draw the lives of {p.n_units} units one by one; at most {MAX_UNITS} are possible"
        problems.append(
            Problem("failures.classes", f"{text}: take law exponential, or count per node or job")
        )
    if problems:
        raise ScenarioError(problems)
    return found


def refusals(scenario: Scenario, e: Estimate) -> list[Problem]:
    """Return which of the scenario's limits an estimate exceeds."""
    limits, problems = scenario.limits, []
    mtbf = f"one fault that stops the job every {_time(e.mtbf_s)}"
    if e.attempts_per_segment > limits.max_attempts:
        work = _time(e.interval_s + e.write_s + e.lag_s)
        problems.append(
            Problem(
                "limits.max_attempts",
                f"the job is expected to need {e.attempts_per_segment:.3g} attempts per checkpoint interval, "
                f"exp((tau + C)/M): tau + C = {work} between checkpoints, M = {mtbf}; save more often "
                f"(got {limits.max_attempts:g})",
            )
        )
    if e.attempts_per_incident > limits.max_attempts:
        problems.append(
            Problem(
                "limits.max_attempts",
                f"the job is expected to need {e.attempts_per_incident:.3g} attempts per restart, exp(R/M): "
                f"R = {_time(e.restart_s)}, M = {mtbf}; restart faster (got {limits.max_attempts:g})",
            )
        )
    for name, expected in (("max_faults", e.faults), ("max_events", e.events)):
        limit = getattr(limits, name)
        if expected > limit:
            what = name.removeprefix("max_")
            problems.append(
                Problem(
                    f"limits.{name}",
                    f"one run is expected to hold {expected:.3g} {what} in {_time(e.wall_s)}: {mtbf}, "
                    f"a save every {_time(e.interval_s)} of work (got {limit:g})",
                )
            )
    return problems


def estimate(scenario: Scenario, p: Params) -> Estimate:
    """Return what one run is expected to hold."""
    kinds = _stopping_classes(p)
    incidents = [_incident(p, scenario, c) for c in kinds]
    slow_only = [c for c in range(p.n_classes) if c not in kinds and p.class_rate[c] > 0.0]
    write, lag = _save_s(p)
    useful = p.steps * p.pace_s
    tau, segments = _segments(p, useful)
    scheduled = [replay(p, scenario, *fault) for fault in _schedule(p)]
    undisturbed = useful + segments * write
    planned = _schedule_s(scheduled, tau + write + lag, useful)
    wall = undisturbed + planned
    # The number of faults depends on the wall time where lives are not exponential, and the other way round.
    fails = bool(kinds) and all(one.fails for one in incidents)
    endless = next((one for one in (*incidents, *scheduled) if one.endless_s is not None), None)
    stops = [] if fails else _stops(p, scenario)
    for _ in range(4):
        rates = [_rate(p, c, wall) for c in kinds]
        total = math.fsum(rates)
        mtbf = 1.0 / total if total > 0.0 else math.inf
        detect, restart, wait, events = (
            math.fsum(rate * getattr(one, name) for rate, one in zip(rates, incidents, strict=True)) * mtbf
            if total > 0.0
            else 0.0
            for name in ("detect_s", "restart_s", "wait_s", "events")
        )
        span = (tau + write + lag) / mtbf
        again = _exp(restart / mtbf) if not p.running_clock else 1.0
        wall = undisturbed
        if p.mode == codes.IDEAL:
            stopped = mtbf * (again - 1.0) if not p.running_clock else restart
            wall = useful * (1.0 + (stopped + (detect + wait) * again) / mtbf) if total > 0.0 else useful
        elif total > 0.0:
            segment = (mtbf + detect + wait + lag) * again + (restart if p.running_clock else 0.0)
            wall = segments * segment * _expm1((tau + write) / mtbf)
        again_far, attempts_far = _farther(p, rates, incidents, useful)
        wall = min(wall * again_far + planned, p.max_wall_s)
        if endless is not None and not fails:
            wall = p.max_wall_s
        elif not fails:
            lost_s = 0.0 if p.save_before_s > 0.0 else tau / 2.0
            wall = min(_stopped_s(stops, wall, lost_s), p.max_wall_s)
    strikes_a_second = math.fsum(_rate(p, c, wall) for c in kinds)
    if fails:
        wall = min(wall, mtbf)
    strikes = strikes_a_second * wall
    silent = math.fsum(_rate(p, c, wall) * wall for c in slow_only)
    idle = (
        sum(p.class_rate[c] * p.hot * p.class_units[c] for c in range(p.n_classes) if _per_node(p, c)) * wall
    )
    counted = math.fsum(wall / stop.period_s for stop in stops if stop.is_fault)
    faults = strikes + silent + idle + len(scheduled) + counted
    saves = 0.0 if p.mode in (codes.NONE, codes.IDEAL) else min(wall / (tau + write), segments * _exp(span))
    incident_events = strikes * events + math.fsum(one.events for one in scheduled)
    incident_events += math.fsum(wall / stop.period_s * stop.incident.events for stop in stops)
    if endless is not None and endless.endless_s is not None:
        incident_events += endless.events * wall / max(endless.endless_s, 1e-9)
    return Estimate(
        mtbf_s=mtbf,
        interval_s=tau,
        write_s=write,
        lag_s=lag,
        detect_s=detect,
        restart_s=restart,
        wait_s=wait,
        attempts_per_segment=1.0 if fails or p.mode == codes.IDEAL else max(_exp(span), attempts_far),
        attempts_per_incident=1.0 if fails else again,
        wall_s=wall,
        faults=faults,
        events=incident_events + 3.0 * (silent + idle) + (3.0 if all(p.tier_blocks) else 4.0) * saves,
    )


class _Stop(NamedTuple):
    """A stop that comes by a timer: the time from one to the next, and what follows it."""

    period_s: float
    incident: Incident
    is_fault: bool


def _stops(p: Params, s: Scenario) -> list[_Stop]:
    """Return the stops that come by a timer."""
    found = []
    if p.time_limit_s < math.inf:
        one = replay(p, s, codes.PROCESS_EXIT, False, -1, False, False, ends_allocation=True)
        found.append(_Stop(p.time_limit_s + one.wait_s, one, True))
    if p.maintenance_every_s < math.inf:
        pause_s = sampling.mean_of_row(p.laws, p.tables, params.MAINTENANCE)
        over = bool(p.layer_on[codes.SLURM])
        one = replay(p, s, codes.PROCESS_EXIT, False, -1, False, False, ends_allocation=over, pause_s=pause_s)
        found.append(_Stop(p.maintenance_every_s, one, False))
    return found


def _stopped_s(stops: Sequence[_Stop], wall_s: float, work_s: float) -> float:
    """Return the wall time [s] with these stops, each of which costs its incident and so much work; inf: no end."""
    for stop in stops:
        if stop.period_s < wall_s:
            one = stop.incident
            lost = one.detect_s + one.restart_s + one.wait_s + work_s
            wall_s *= stop.period_s / (stop.period_s - lost) if lost < stop.period_s else math.inf
    return wall_s


def _segments(p: Params, useful_s: float) -> tuple[float, float]:
    """Return (work between two checkpoints [s], how many such stretches the job has)."""
    if p.mode == codes.NONE:
        return useful_s, 1.0
    if p.mode == codes.IDEAL:
        return 0.0, 1.0
    steps = min(p.interval_steps, p.steps)
    return steps * p.pace_s, math.ceil(p.steps / steps)


def _save_s(p: Params) -> tuple[float, float]:
    """Return (how long a save stops the loop, how much later it is durable), mean seconds.

    Of tiers: the mean over their saves, a farther one standing for a nearer one; and the nearest one's lag.
    """
    if p.n_tiers == 0:
        return 0.0, 0.0
    saves = [_tier_save_s(p, tier) for tier in range(p.n_tiers)]
    shares = [p.interval_steps / every for every in p.tier_every]
    shares[0] = max(0.0, shares[0] - math.fsum(shares[1:]))
    return math.fsum(share * save[0] for share, save in zip(shares, saves, strict=True)), saves[0][1]


def _tier_save_s(p: Params, tier: int) -> tuple[float, float]:
    write = sampling.mean_of_row(p.laws, p.tables, p.tier_write[tier])
    if p.tier_blocks[tier]:
        return write, 0.0
    stall = sampling.mean_of_row(p.laws, p.tables, p.tier_stall[tier])
    if p.on_busy == codes.WAIT:  # the loop waits for the write before, where that outlasts the interval
        stall += max(0.0, write - p.tier_every[tier] * p.pace_s)
    return stall, write


def _farther(
    p: Params, rates: Sequence[float], incidents: Sequence[Incident], useful_s: float
) -> tuple[float, float]:
    """Return what faults that only a farther tier survives add: (factor of the wall time, attempts per interval).

    Tier after tier: faults that leave no nearer one have to spare an interval of this tier, which takes as much
    longer as the nearer ones' faults make it. What no tier survives, or what no checkpoint of it can be loaded after,
    has to spare the whole job.
    """
    factor = attempts = 1.0
    for tier in range(1 if p.n_tiers else 0, p.n_tiers + 1 if p.n_tiers else 0):
        rate = math.fsum(
            r if one.tier == tier else r * one.anew if tier == p.n_tiers else 0.0
            for r, one in zip(rates, incidents, strict=True)
        )
        lag = _tier_save_s(p, tier)[1] if tier < p.n_tiers else 0.0
        work = min(p.tier_every[tier] * p.pace_s, useful_s) if tier < p.n_tiers else useful_s
        span = rate * (work + lag) * factor
        if span > 0.0:
            factor, attempts = factor * _expm1(span) / span, max(attempts, _exp(span))
    return factor, attempts


def _schedule(p: Params) -> list[tuple[int, bool, int, bool, bool]]:
    rows = zip(p.scheduled_symptom, p.scheduled_gil_held, p.scheduled_repair, strict=True)
    return [
        (symptom, gil_held, -1, cluster.takes_node(p, symptom, repair), repair)
        for symptom, gil_held, repair in rows
    ]


def _schedule_s(incidents: Sequence[Incident], period_s: float, useful_s: float) -> float:
    lost = min(period_s, useful_s) / 2.0
    return math.fsum(one.detect_s + one.restart_s + one.wait_s + lost for one in incidents)


def _stopping_classes(p: Params) -> list[int]:
    """Return the classes whose faults stop the job: all but slow-downs that nobody notices."""
    return [
        c
        for c in range(p.n_classes)
        if p.class_rate[c] > 0.0 and (p.class_symptom[c] != codes.SLOWDOWN or p.class_detect[c])
    ]


def _per_node(p: Params, c: int) -> bool:
    return bool(p.class_per[c] not in (codes.JOB, codes.RACK))


def _units(p: Params, c: int) -> float:
    if p.class_per[c] == codes.JOB:
        return 1.0
    return float(p.racks if p.class_per[c] == codes.RACK else p.nodes * p.class_units[c])


def _rate(p: Params, c: int, wall_s: float) -> float:
    """Return faults of a class that strike the working set, per second, on average over a run [1/s]."""
    rate: float = p.class_rate[c]
    if p.class_tree[c] and not p.stationary and 0.0 < wall_s * rate < 20.0:
        rate = _renewals(p, p.class_row0 + 4 * c, wall_s) / wall_s
    return rate * _units(p, c)


def _renewals(p: Params, row: int, time_s: float) -> float:
    """Return how often a unit is expected to fail within a time, new at its start: m = F + m * dF, on a grid."""
    logits = [i / 5.0 - 36.0 for i in range(361)]  # beyond, F rounds to 1
    times = [sampling.quantile(p.laws, p.tables, row, 1.0 / (1.0 + math.exp(-x))) for x in logits]

    def below(t: float) -> float:
        i = bisect_left(times, t)
        if i == 0 or i == len(times):
            return 0.0 if i == 0 else 1.0
        share = (t - times[i - 1]) / (times[i] - times[i - 1])
        return 1.0 / (1.0 + math.exp(-(logits[i - 1] + share * (logits[i] - logits[i - 1]))))

    cdf = [below(time_s * i / _GRID) for i in range(_GRID + 1)]
    renewals = [0.0]
    for i in range(1, _GRID + 1):
        later = math.fsum(renewals[i - j] * (cdf[j] - cdf[j - 1]) for j in range(1, i + 1))
        renewals.append(cdf[i] + later)
    return renewals[-1]


def _incident(p: Params, s: Scenario, c: int) -> Incident:
    repair = bool(p.class_repair[c])
    takes_node = cluster.takes_node(p, p.class_symptom[c], repair)
    return replay(p, s, p.class_symptom[c], p.class_gil_held[c], c, takes_node, repair)


def _exp(x: float) -> float:
    return math.exp(x) if x < 709.0 else math.inf


def _expm1(x: float) -> float:
    return math.expm1(x) if x < 709.0 else math.inf


def _time(seconds: float) -> str:
    return format_duration(seconds) if math.isfinite(seconds) else "no end"
