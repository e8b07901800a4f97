"""Rules about checkpoints: when they come, where they fit, and what is silently ignored.

Sources: field_cases.md (torchtitan, NeMo AutoModel, the BLOOM-176B logbook, NVRx no-progress stop); nvrx.md, "Async
checkpoint".
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sim import analytic
from sim.schema.cluster import NO_TIME
from sim.units import DAY_S, format_bytes, format_duration
from sim.warn.rule import Finding, View, high_s, rule

# NVRx local checkpoints hold two copies (the old one until the new one is complete) [nvrx.md].
LOCAL_COPIES = 2


@rule(
    "no-save-before-end",
    "An interval longer than the job saves nothing before its end",
)
def _no_save(v: View) -> Iterator[Finding]:
    if v.shortest is not None and v.shortest.steps >= v.s.total_steps() and v.stops:
        yield (
            v.shortest.path,
            f"{v.shortest.steps} steps, and the job has {v.s.total_steps()}: there is no checkpoint before its end, "
            "every fault begins it anew",
        )


@rule(
    "no-checkpoints",
    "Mode none loses everything at every fault",
    severity="note",
)
def _no_checkpoints(v: View) -> Iterator[Finding]:
    if v.checkpoint.mode == "none" and v.stops:
        yield "checkpoint.mode", "none: every fault loses all steps done so far"


@rule(
    "async-stalls",
    "A save that waits for the writer: the stall is write - interval (torchtitan, NeMo AutoModel)",
)
def _async_stalls(v: View) -> Iterator[Finding]:
    c = v.checkpoint
    for save in v.saves if c.on_busy == "wait" else ():
        write_s = save.write.mean_s()
        if write_s > save.interval_s:
            waits_s = analytic.async_effective_stall(write_s, save.interval_s)
            yield (
                save.path,
                f"the write takes {format_duration(write_s)} and the next save comes after "
                f"{format_duration(save.interval_s)}: it waits {format_duration(waits_s)} for the "
                "writer, so saves are not asynchronous any more",
            )


@rule(
    "async-backlog",
    "Queued writes that come faster than they go (NVRx, Megatron-LM without a preload function)",
)
def _async_backlog(v: View) -> Iterator[Finding]:
    c = v.checkpoint
    for save in v.saves if c.on_busy == "queue" else ():
        write_s = save.write.mean_s()
        if write_s > save.interval_s:
            count = max(1, v.s.total_steps() // save.steps)
            backlog = count * (1.0 - save.interval_s / write_s)
            yield (
                save.path,
                f"a save every {format_duration(save.interval_s)} and a write of {format_duration(write_s)}: the "
                f"queue grows by one write every {format_duration(_growth_s(save.interval_s, write_s))}, to about "
                f"{backlog:,.0f} at the end, each held in host memory, and a fault finds ever older checkpoints",
            )


def _growth_s(interval_s: float, write_s: float) -> float:
    return 1.0 / (1.0 / interval_s - 1.0 / write_s)


@rule(
    "async-skips",
    "Skipped saves: the real interval is longer than the stated one",
)
def _async_skips(v: View) -> Iterator[Finding]:
    c = v.checkpoint
    for save in v.saves if c.on_busy == "skip" else ():
        write_s = save.write.mean_s()
        if write_s > save.interval_s:
            every = math.ceil(write_s / save.interval_s)
            yield (
                save.path,
                f"the write takes {format_duration(write_s)}, so only one save in {every} is made: the interval is "
                f"in effect {every * save.steps} steps ({format_duration(every * save.interval_s)})",
            )


@rule(
    "published-late",
    "A checkpoint usable only at the next save: mean rework 1.5 intervals (NeMo AutoModel#3261)",
    severity="note",
)
def _published_late(v: View) -> Iterator[Finding]:
    if v.checkpoint.publish == "next_save" and v.shortest is not None:
        lost_s = 1.5 * v.shortest.interval_s
        yield (
            "checkpoint.publish",
            f"next_save: a fault costs 1.5 intervals of rework on average instead of 0.5, "
            f"{format_duration(lost_s)} instead of {format_duration(lost_s / 3)}",
        )


@rule(
    "host-memory",
    "An async host copy that does not fit: ranks of a node x (share in flight + resident)",
)
def _host_memory(v: View) -> Iterator[Finding]:
    c, memory = v.checkpoint, v.s.cluster.host_memory_bytes
    if c.bytes is None or memory is None or c.mode == "sync" or not v.saves:
        return
    share = c.bytes / v.s.cluster.nodes
    save = v.saves[-1]
    if c.mode == "tiered":
        near = LOCAL_COPIES * (len(v.saves) - 1)
        copies = near + (1.0 if save.write != NO_TIME else 0.0)
        what = f"{copies:g} copies (old and new of each near tier" + (
            ", one in flight to the farthest)" if copies > near else ")"
        )
    elif c.mode == "local":
        copies = LOCAL_COPIES * (2.0 if "node_loss" in c.survives else 1.0)
        what = f"{copies:g} copies (old and new" + (
            ", here and for a peer)" if copies > LOCAL_COPIES else ")"
        )
    else:
        write_s, count = high_s(save.write), max(1, v.s.total_steps() // save.steps)
        in_flight = 1.0
        if c.on_busy == "queue" and write_s > save.interval_s:
            in_flight = max(1.0, count * (1.0 - save.interval_s / write_s))
        copies, what = in_flight + 1.0, f"{in_flight:,.0f} in flight and one resident"
    if share * copies > memory:
        yield (
            "cluster.host_memory_bytes",
            f"a node's share of a checkpoint is {format_bytes(share)}; {what} need {format_bytes(share * copies)}, "
            f"and the node has {format_bytes(memory)}, before the job's own use",
        )


@rule(
    "storage-volume",
    "What the interval means for the storage (BLOOM: 2.3 TB every 3 h are 18.4 TB a day)",
    severity="note",
)
def _storage_volume(v: View) -> Iterator[Finding]:
    if v.checkpoint.bytes is None:
        return
    for save in v.saves:
        period_s = save.interval_s + save.stall.mean_s() + v.waits_s(save, save.write.mean_s())
        per_day = v.checkpoint.bytes * DAY_S / period_s
        yield (
            save.path,
            f"{format_bytes(v.checkpoint.bytes)} every {format_duration(period_s)} are {format_bytes(per_day)} "
            f"written a day; {save.keep} kept hold {format_bytes(save.keep * v.checkpoint.bytes)}",
        )


@rule(
    "corruption-outlives-checkpoints",
    "Corruption noticed later than the oldest kept checkpoint goes back to step 0",
)
def _corruption(v: View) -> Iterator[Finding]:
    if not v.saves:
        return
    kept_s = max((save.keep - 1) * save.interval_s for save in v.saves)
    for kind in v.stops:
        if kind.fault.symptom == "silent_corruption" and kind.fault.detect is not None:
            noticed_s = kind.fault.detect.median_s()
            if noticed_s >= kept_s:
                yield (
                    "checkpoint.keep",
                    f"{v.checkpoint.keep}: the oldest checkpoint may be only {format_duration(kept_s)} of work old, "
                    f"and {kind.fault.name or kind.path} is noticed after {format_duration(noticed_s)}: all of them "
                    "may hold the corruption, and the job begins anew",
                )


@rule(
    "keep-one-load-failure",
    "One checkpoint and loads that fail: nothing older to fall back on (Megatron-LM#5281)",
)
def _keep_one(v: View) -> Iterator[Finding]:
    if v.checkpoint.on_load_failure == "exit":
        return
    if v.checkpoint.load_failure > 0 and sum(save.keep for save in v.saves) == 1:
        yield (
            "checkpoint.keep",
            f"1, and a load fails with probability {v.checkpoint.load_failure:g}: there is no older checkpoint, the "
            "job begins anew",
        )


@rule(
    "load-failure-loops",
    "A checkpoint that cannot be loaded, tried again at every restart (Megatron-LM#5281: 44 times)",
)
def _load_failure_loops(v: View) -> Iterator[Finding]:
    c = v.checkpoint
    if c.on_load_failure == "exit" and c.load_failure > 0 and v.saves and v.stops:
        yield (
            "checkpoint.on_load_failure",
            f"exit: {100 * c.load_failure:.3g} % of checkpoints cannot be loaded, and a restart that meets one tries "
            "it for ever, or until a budget of restarts ends the job; older falls back on the one before",
        )


@rule(
    "no-tier-survives",
    "A fault after which no checkpoint can be loaded begins the job anew",
)
def _no_tier_survives(v: View) -> Iterator[Finding]:
    for kind in v.stops if v.saves else ():
        if v.taker(kind.fault) is None:
            continue  # fault-not-contained says so
        needed = v.amounts_to(kind.fault)
        if not any(needed <= set(save.survives) for save in v.saves):
            what = " and ".join(sorted(needed))
            where = "checkpoint.tiers" if v.checkpoint.mode == "tiered" else "checkpoint.survives"
            yield (
                where,
                f"no checkpoint survives {kind.path} ({what}): each one begins the job anew at step 0; save to a tier "
                "that survives it as well",
            )


@rule(
    "tier-never-saves",
    "Of saves due at one step only the farthest tier's is made (Megatron-LM)",
)
def _tier_never_saves(v: View) -> Iterator[Finding]:
    for i, save in enumerate(v.saves):
        for far in v.saves[i + 1 :]:
            if save.steps % far.steps == 0:
                yield (
                    save.path,
                    f"{save.steps} steps, and at each of them the farther tier saves too ({far.path} {far.steps} "
                    "steps), which stands for both: this tier never saves",
                )
                break


@rule(
    "peers-and-requeue",
    "Copies in peer memory survive the loss of a node, and not that of all of them",
    severity="note",
)
def _peers_and_requeue(v: View) -> Iterator[Finding]:
    near = v.saves[:-1] if v.checkpoint.mode == "tiered" else v.saves if v.checkpoint.mode == "local" else ()
    for save in near if v.on("slurm") else ():
        if "node_loss" in save.survives:
            yield (
                save.path.removesuffix(".every").removesuffix(".interval") + ".survives",
                "has node_loss, so these copies are taken to outlive a requeue by Slurm as well: true of storage, not "
                "of the memory of peers",
            )


@rule(
    "save-after-mtbf",
    "P(a fault before the first save) = 1 - exp(-(start + tau + C)/M) (marin#8506)",
)
def _save_after_mtbf(v: View) -> Iterator[Finding]:
    per_s = sum(kind.per_s for kind in v.stops)
    if v.shortest is None or per_s <= 0 or v.shortest.steps >= v.s.total_steps():
        return
    p = v.no_save_p(v.stops)
    if p > 0.5:
        yield (
            v.shortest.path,
            f"{100 * p:.0f} % of restarts are struck again before their first save is durable (one fault every "
            f"{format_duration(1 / per_s)}, one save every {format_duration(v.shortest.interval_s)})",
        )


@rule(
    "save-time-constant",
    "A mean is no guide for a timeout: the slowest rank decides",
    severity="note",
    export_only=True,
)
def _save_time_constant(v: View) -> Iterator[Finding]:
    for save in v.saves:
        law = save.stall if save.stall.mean_s() > 0 else save.write
        if law.kind == "constant" and law.mean_s() > 0:
            yield (
                "checkpoint.write_time" if v.checkpoint.mode == "sync" else save.path,
                f"the time of a save is given as the constant {format_duration(law.mean_s())}: if that is a mean, "
                "the slowest rank takes longer; timeouts should follow from the 99th percentile of measured times",
            )
