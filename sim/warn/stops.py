"""Rules about stops that are known in advance: time limits, maintenance, pre-emption, and the save before them.

Sources: field_cases.md (slurm time limit: save just before it); exports.md (transformers: the just-in-time checkpoint
needs a grace of a step and a save).
"""

from __future__ import annotations

from collections.abc import Iterator

from sim.schema.cluster import NO_TIME
from sim.units import format_duration
from sim.warn.rule import Finding, View, high_s, rule


def _told(v: View) -> list[tuple[str, float]]:
    """Return the stops that are known in advance: (path, time between one and the next [s])."""
    found = []
    if v.on("slurm") and v.recovery.slurm.time_limit is not None:
        found.append(("recovery.slurm.time_limit", v.recovery.slurm.time_limit))
    if v.s.cluster.maintenance is not None:
        found.append(("cluster.maintenance", v.s.cluster.maintenance.every))
    found += [(kind.path, 1.0 / kind.per_s) for kind in v.faults if kind.per_s > 0.0 and v.warning_s(kind.fault) > 0.0]
    return found


def _needs_s(v: View) -> float:
    """Return what a save before a stop takes: a step and the farthest tier's save, each at its 99th percentile [s]."""
    far = v.saves[-1]
    write_s = high_s(far.write) if far.write != NO_TIME else 0.0
    return v.step_high_s + high_s(far.stall) + write_s


@rule(
    "save-before-too-short",
    "A grace that a step and a save outlast: the save is lost, and so is the time it took (transformers)",
)
def _too_short(v: View) -> Iterator[Finding]:
    grace_s = v.checkpoint.save_before
    if grace_s is None or not v.saves or not _told(v):
        return
    graces = [("checkpoint.save_before", grace_s)]
    warnings = [w for w in (v.warning_s(kind.fault) for kind in v.faults) if w > 0.0]
    if warnings and min(warnings) < grace_s:
        graces.append(("cluster.preemption.warning", min(warnings)))
    for path, seconds in graces:
        if _needs_s(v) > seconds:
            yield (
                path,
                f"{format_duration(seconds)}, but a step and a save take up to {format_duration(_needs_s(v))}: the "
                "save before a stop is not durable in time, and is lost",
            )


@rule(
    "save-before-too-long",
    "A job that ends itself before it has worked makes no progress",
)
def _too_long(v: View) -> Iterator[Finding]:
    grace_s, limit_s = v.checkpoint.save_before, v.recovery.slurm.time_limit
    if grace_s is None or limit_s is None or not v.on("slurm") or not v.saves:
        return
    start_s = v.recovery.slurm.prolog.median_s() + v.start_median_s
    if grace_s + start_s >= limit_s:
        yield (
            "checkpoint.save_before",
            f"{format_duration(grace_s)}, and the allocation of {format_duration(limit_s)} has only begun to work "
            f"after {format_duration(start_s)}: each one ends after a step or none",
        )


@rule(
    "save-before-lost",
    "A save before a stop must outlive it: maintenance and requeues take what is on the nodes",
)
def _lost(v: View) -> Iterator[Finding]:
    if v.checkpoint.save_before is not None and v.saves and _told(v) and "node_loss" not in v.saves[-1].survives:
        where = "the farthest tier does" if v.checkpoint.mode == "tiered" else "the copies do"
        yield (
            "checkpoint.save_before",
            f"has no use: {where} not survive node_loss, and the stop takes the nodes",
        )


@rule(
    "save-before-ignored",
    "A grace without a stop to save before",
)
def _ignored(v: View) -> Iterator[Finding]:
    if v.checkpoint.save_before is not None and v.saves and not _told(v):
        yield (
            "checkpoint.save_before",
            "has no effect: no time limit of Slurm, no maintenance and no pre-emption is told in advance",
        )


@rule(
    "stop-unsaved",
    "Stops that are known in advance cost half an interval each, unless the job saves before them",
    severity="note",
)
def _unsaved(v: View) -> Iterator[Finding]:
    if v.checkpoint.save_before is not None or not v.saves:
        return
    far = v.saves[-1]
    for path, every_s in _told(v):
        count = v.useful_s / every_s
        if count >= 1.0:
            yield (
                path,
                f"{count:,.3g} such stops in {format_duration(v.useful_s)} of work, and each one loses "
                f"{format_duration(far.interval_s / 2)} on average; checkpoint.save_before saves just before them",
            )


@rule(
    "preemption-unused",
    "A warning that no fault gives",
)
def _unused(v: View) -> Iterator[Finding]:
    if v.s.cluster.preemption is not None and not any(v.warning_s(kind.fault) > 0.0 for kind in v.faults):
        yield "cluster.preemption", "has no effect: no class of node_loss is a pre-emption"
