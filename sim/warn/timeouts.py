"""Rules about timeouts: in order of each other, and longer than what the job does in silence.

Sources: field_cases.md, "Rules that warn"; NVRx docs/source/inprocess/usage_guide.rst and the fault_tolerance guide;
Megatron-Bridge docs/training/resiliency.md (a blocking save longer than a timeout looks like a hang).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sim.units import format_duration
from sim.warn.rule import SAFETY_FACTOR, Finding, View, rule

HOUR_S = 3600.0


def _named(path: str) -> str:
    return path.rpartition(".")[2]


@rule(
    "initial-heartbeat-too-short",
    "Training < initial: a start takes longer than a step",
)
def _initial_heartbeat(v: View) -> Iterator[Finding]:
    if v.initial_heartbeat_s < v.heartbeat_s < math.inf:
        yield (
            "recovery.in_job.initial_heartbeat_timeout",
            f"{format_duration(v.initial_heartbeat_s)} is below heartbeat_timeout, {format_duration(v.heartbeat_s)}: "
            "the first heartbeat comes after start, init and load, and needs the longer of the two",
        )


@rule(
    "heartbeat-below-nccl",
    "Process group < training: the launcher should not kill ranks that the watchdog would have named",
)
def _heartbeat_below_nccl(v: View) -> Iterator[Finding]:
    nccl_s = v.recovery.nccl_timeout
    for path, seconds in (
        ("recovery.in_job.heartbeat_timeout", v.heartbeat_s),
        ("recovery.in_job.section_timeouts.step", v.section_s("step")),
    ):
        if seconds <= nccl_s < math.inf:
            yield (
                path,
                f"{format_duration(seconds)} is not above recovery.nccl_timeout, {format_duration(nccl_s)}: the "
                "launcher kills the ranks before the watchdog can say which one is at fault",
            )


@rule(
    "nccl-below-hard-timeout",
    "The NCCL watchdog must exceed the in-process hard timeout [NVRx usage guide]",
)
def _nccl_below_hard(v: View) -> Iterator[Finding]:
    nccl_s, hard_s = v.recovery.nccl_timeout, v.recovery.in_process.hard_timeout
    if v.on("in_process") and nccl_s <= hard_s < math.inf:
        yield (
            "recovery.nccl_timeout",
            f"{format_duration(nccl_s)} is not above in_process.hard_timeout, {format_duration(hard_s)}: at a hang "
            "the watchdog ends the processes before the in-process layer can restart the function",
        )


@rule(
    "soft-above-hard",
    "The soft timeout must come first, or every hang costs a process",
)
def _soft_above_hard(v: View) -> Iterator[Finding]:
    ip = v.recovery.in_process
    if v.on("in_process") and ip.soft_timeout >= ip.hard_timeout:
        yield (
            "recovery.in_process.soft_timeout",
            f"{format_duration(ip.soft_timeout)} is not below hard_timeout, {format_duration(ip.hard_timeout)}: "
            "the monitor kills the rank before the watchdog could abort it softly",
        )


@rule(
    "save-longer-than-timeout",
    "A blocking save that outlasts what watches it is taken for a hang",
)
def _save_longer(v: View) -> Iterator[Finding]:
    save_s, ip = v.block_high_s, v.recovery.in_process
    watching = [
        ("recovery.in_job.heartbeat_timeout", v.heartbeat_s),
        ("recovery.in_job.section_timeouts.checkpointing", v.section_s("checkpointing")),
    ]
    if v.on("in_process"):
        if not ip.atomic:
            watching.append(("recovery.in_process.soft_timeout", ip.soft_timeout))
        watching.append(("recovery.in_process.hard_timeout", ip.hard_timeout))
    for path, seconds in watching:
        if save_s >= seconds:
            yield (
                path,
                f"{format_duration(seconds)}, but one save in a hundred stops the loop for "
                f"{format_duration(save_s)} or more: it will be taken for a hang",
            )


@rule(
    "save-longer-than-nccl",
    "Ranks that are done early wait in a collective for the slowest",
    severity="note",
)
def _save_longer_than_nccl(v: View) -> Iterator[Finding]:
    if v.block_high_s >= v.recovery.nccl_timeout:
        yield (
            "recovery.nccl_timeout",
            f"{format_duration(v.recovery.nccl_timeout)}, but a save stops the loop for up to "
            f"{format_duration(v.block_high_s)}: if only some ranks write while the others wait in a collective, "
            "the watchdog ends the job",
        )


@rule(
    "step-longer-than-timeout",
    "A slow but sound step must not look like a hang",
)
def _step_longer(v: View) -> Iterator[Finding]:
    for path, seconds in v.silences:
        if v.step_high_s >= seconds:
            yield (
                path,
                f"{format_duration(seconds)}, but one step in a hundred takes {format_duration(v.step_high_s)} or "
                "more: it will be taken for a hang",
            )


@rule(
    "slowdown-looks-like-hang",
    "A slow node must not be taken for a hang",
)
def _slowdown_hang(v: View) -> Iterator[Finding]:
    for kind in v.faults:
        if kind.fault.slowdown is None:
            continue
        slow_s = v.step_high_s * kind.fault.slowdown.factor
        short = [f"{path} ({format_duration(s)})" for path, s in v.silences if v.step_high_s < s <= slow_s]
        if short:
            yield (
                f"{kind.path}.slowdown.factor",
                f"a step takes up to {format_duration(slow_s)} then, and {', '.join(short)} takes it for a hang; "
                "the model does not count such false alarms",
            )


@rule(
    "start-longer-than-timeout",
    "Start-up that outlasts its timeout begins again for ever: zero progress",
)
def _start_longer(v: View) -> Iterator[Finding]:
    for path, seconds in (
        ("recovery.in_job.initial_heartbeat_timeout", v.initial_heartbeat_s),
        ("recovery.in_job.section_timeouts.setup", v.section_s("setup")),
    ):
        if v.start_median_s >= seconds:
            yield (
                path,
                f"{format_duration(seconds)}, but a start takes {format_duration(v.start_median_s)}: it is cut and "
                "begun again for ever, without progress",
            )
        elif v.start_high_s >= seconds:
            yield (
                path,
                f"{format_duration(seconds)}, but a start may take {format_duration(v.start_high_s)}: it is then "
                "cut and begun again",
            )


@rule(
    "hang-undetected",
    "A hang with no detector lasts until a person comes",
)
def _hang_undetected(v: View) -> Iterator[Finding]:
    if v.silences or v.on("fixed"):
        return
    limit_s = v.recovery.slurm.time_limit if v.on("slurm") else None
    for kind in v.stops:
        if kind.fault.symptom == "node_loss" and v.on("slurm"):
            continue  # Slurm takes the silent node for down
        if kind.fault.symptom in ("hang", "node_loss") and kind.fault.detect is None:
            person = v.recovery.human_response
            until = "until limits.max_wall ends the run; set recovery.human_response"
            if limit_s is not None:
                until = f"until the time limit of the allocation, {format_duration(limit_s)}"
            if person is not None:
                gpu_hours = person.mean_s() * v.s.ranks() / HOUR_S
                until = (
                    f"until a person comes, after {format_duration(person.mean_s())} on average: {gpu_hours:,.0f} "
                    "GPU-hours each time"
                )
            yield (
                kind.path,
                f"nothing notices this {kind.fault.symptom} (the NCCL watchdog and all heartbeats are off): it "
                f"lasts {until}",
            )


@rule(
    "hang-found-late",
    "Compare what a hang costs with the longest silence of a healthy job",
    severity="note",
)
def _hang_found_late(v: View) -> Iterator[Finding]:
    if not v.silences or all(k.fault.symptom != "hang" or k.fault.detect is not None for k in v.stops):
        return
    path, seconds = min(v.silences, key=lambda found: found[1])
    enough_s = SAFETY_FACTOR * max(v.step_high_s, v.block_high_s)
    if seconds >= 0.25 * HOUR_S and seconds > 2.0 * enough_s:
        cost = seconds * v.s.ranks() / HOUR_S
        yield (
            path,
            f"each hang costs {cost:,.0f} GPU-hours before {_named(path)} ({format_duration(seconds)}) ends it; "
            f"{format_duration(enough_s)} would be {SAFETY_FACTOR:g} times the longest silence of a healthy job "
            "(steps and saves)",
        )


@rule(
    "time-limit-below-save",
    "An allocation that ends before its first save makes no progress",
)
def _time_limit(v: View) -> Iterator[Finding]:
    limit_s = v.recovery.slurm.time_limit
    if not v.on("slurm") or limit_s is None or v.shortest is None:
        return
    start_s = v.recovery.slurm.prolog.median_s() + v.start_median_s - v.s.nominal_step_s()
    first_s = start_s + v.shortest.interval_s + v.save_s
    if first_s > limit_s and v.useful_s > limit_s:
        yield (
            "recovery.slurm.time_limit",
            f"{format_duration(limit_s)}, but the first save is durable {format_duration(first_s)} after the start: "
            "no allocation makes progress",
        )
