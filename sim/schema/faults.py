"""Scenario blocks of checkpoints and failures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from sim.schema import patterns
from sim.schema.cluster import MAX_STEPS, NO_TIME
from sim.schema.fields import (
    Bandwidth,
    Block,
    Bytes,
    Count,
    Flag,
    ItemName,
    LawField,
    PositiveDuration,
    Probability,
    Problem,
    Rate,
    Scope,
    ShapeField,
    Slowing,
    Symptom,
    broken,
    whole,
)
from sim.schema.law import Law, LawError
from sim.units import PER_UNITS, Per, exact_duration, parse_duration, parse_rate, shown

MAX_FAULTS = 1000  # classes, and scheduled faults
MIN_RATE_PER_S = 1e-18  # rarer is never: the mean life would leave the range of times
SYMPTOMS: tuple[Symptom, ...] = get_args(Symptom)


@dataclass(frozen=True, slots=True)
class Interval:
    """Useful work between two checkpoints: ``500 steps``, or a duration (``30min``, 1800)."""

    steps: int | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, raw: object) -> Interval:
        """Read either form; raise ``ValueError``."""
        example = "'500 steps' or '30min'"
        if isinstance(raw, Interval):
            return raw
        if isinstance(raw, str) and raw.strip().endswith(("steps", "step")):
            count = raw.strip().removesuffix("s").removesuffix("step").strip()
            if not (
                count.isascii() and count.isdigit() and len(count) <= 13 and 1 <= int(count) <= MAX_STEPS
            ):
                raise ValueError(f"must be a whole number of steps from 1, such as {example} {shown(raw)}")
            return cls(steps=int(count))
        try:
            seconds = parse_duration(raw)
        except ValueError:
            raise ValueError(f"must be an interval such as {example} {shown(raw)}") from None
        if seconds <= 0:
            raise ValueError(f"must be above 0, such as {example} {shown(raw)}")
        return cls(seconds=seconds)

    def plain(self, text: bool) -> str | float:
        """Write the form that `parse` reads back exactly."""
        if self.steps is not None:
            return f"{self.steps} steps"
        assert self.seconds is not None
        return exact_duration(self.seconds) if text else self.seconds

    def in_steps(self, step_s: float) -> int:
        """Count the steps between saves: at least 1, halves rounded up."""
        return (
            self.steps if self.steps is not None else max(1, math.floor((self.seconds or 0.0) / step_s + 0.5))
        )


def _write_interval(interval: Interval, info: Any) -> str | float:
    return interval.plain(text=info.mode == "json")


def _symptoms(x: Any) -> tuple[str, ...]:
    if x == "all":
        return SYMPTOMS
    if not isinstance(x, (list, tuple)) or any(not isinstance(s, str) or s not in SYMPTOMS for s in x):
        raise ValueError(f"must be all, or a list of {', '.join(SYMPTOMS)} {shown(x)}")
    if len(set(x)) != len(x):
        raise ValueError(f"must name each symptom once {shown(x)}")
    return tuple(s for s in SYMPTOMS if s in x)


IntervalField = Annotated[
    Interval,
    PlainValidator(Interval.parse),
    PlainSerializer(_write_interval),
    WithJsonSchema(patterns.INTERVAL),
]
Symptoms = Annotated[
    tuple[Symptom, ...],
    PlainValidator(_symptoms),
    PlainSerializer(list),
    WithJsonSchema({"anyOf": [{"const": "all"}, {"type": "array", "items": {"enum": list(SYMPTOMS)}}]}),
]


class Bandwidths(Block):
    """Speed of the checkpoint storage, from which the write (and load) time follows."""

    per_writer: Bandwidth | None = None
    """What one rank can write; grows with the number of ranks up to the aggregate."""
    aggregate: Bandwidth | None = None
    """What all ranks together can write."""
    read_aggregate: Bandwidth | None = None
    """What all ranks together can read; gives the load time. Reading and writing differ in practice."""

    def rules(self) -> Iterator[Problem]:
        """Ask for a write speed."""
        if self.per_writer is None and self.aggregate is None:
            yield Problem("", "must have per_writer, aggregate or both (got neither)")


class AsyncSlowdown(Block):
    """Training steps are slower while a write is in flight."""

    factor: Slowing
    """Step time during a write over step time without."""


class Tier(Block):
    """One tier of a tiered checkpoint, the nearest first."""

    name: ItemName | None = None
    """Name, for paths such as checkpoint.tiers.local.every."""
    every: IntervalField
    """Useful work between two saves of this tier: a bare number is seconds, '500 steps' are steps."""
    survives: Symptoms
    """Symptoms after which this tier can still be loaded."""
    write_time: LawField
    """Time until a save of this tier is durable."""
    stall_time: LawField | None = None
    """How long the loop stands still for it; default: the whole write."""
    load_time: LawField = NO_TIME
    """Time to load from this tier."""
    keep: Annotated[int, *whole(1, 1000)] | None = None
    """Durable checkpoints of this tier that exist at a time; default: checkpoint.keep."""


class Checkpoint(Block):
    """How and when the state is saved."""

    mode: Literal["none", "ideal", "sync", "async", "local", "tiered"]
    """none loses everything, ideal nothing; sync stops the loop for the write, async for the staging only."""
    interval: IntervalField | None = None
    """Useful work between two saves, counted from step 0: a bare number is seconds, '500 steps' are steps."""
    write_time: LawField | None = None
    """Time until a save is durable; or give bytes and bandwidth. Mode local: of the copies made after the stall."""
    stall_time: LawField | None = None
    """How long the loop stands still for staging (async) or for the local copy (local)."""
    load_time: LawField = NO_TIME
    """Time to load a checkpoint."""
    on_busy: Literal["wait", "queue", "skip"] = "wait"
    """What a save does while the previous write is in flight."""
    keep: Annotated[int, *whole(1, 1000)] = 2
    """Durable checkpoints that exist at a time (in each tier); older ones are deleted."""
    final_save: Flag = True
    """Whether the end of the job is saved."""
    publish: Literal["write_end", "next_save"] = "write_end"
    """When a written checkpoint becomes usable."""
    survives: Symptoms = ("exception", "hang", "process_exit", "gpu_error", "slowdown", "silent_corruption")
    """For mode local: symptoms after which the copy can still be loaded (default: all but node_loss)."""
    save_before: PositiveDuration | None = None
    """Grace for a step and a save: so long before a time limit, maintenance or pre-emption the job saves and ends."""
    write_survives: Symptoms = ()
    """Symptoms that let a write in flight come to its end."""
    async_slowdown: AsyncSlowdown | None = None
    """Steps are slower while a write is in flight."""
    load_failure: Probability = 0.0
    """Probability that a checkpoint cannot be loaded; a load that fails takes as long as one that does not."""
    on_load_failure: Literal["older", "exit"] = "older"
    """After a failed load the next older checkpoint is tried, or the processes end and a restart tries it again."""
    bytes: Bytes | None = None
    """Size of one checkpoint."""
    bandwidth: Bandwidths | None = None
    """Speed of the storage; with bytes, in place of write_time (and load_time)."""
    tiers: tuple[Tier, ...] = ()
    """For mode tiered: the tiers, the nearest first."""

    def writes_on(self) -> bool:
        """Tell whether a write is given, beside the stall."""
        return self.bandwidth is not None or self.write_time is not None

    def tier_names(self) -> tuple[str, ...]:
        """Names of the tiers that saves go to, the nearest first: global, local, or those of the list."""
        if self.mode == "tiered":
            return tuple(tier.name or str(i) for i, tier in enumerate(self.tiers))
        return ("local",) if self.mode == "local" else ("global",)

    def rules(self) -> Iterator[Problem]:
        """Ask for what the mode needs."""
        if self.bandwidth is not None:
            if self.bytes is None:
                yield Problem("bytes", "required beside bandwidth (got nothing)")
            if self.write_time is not None:
                yield Problem(
                    "write_time",
                    f"must be left out beside bandwidth {shown(self.write_time.plain(text=True))}",
                )
            if self.bandwidth.read_aggregate is not None and self.load_time != NO_TIME:
                yield Problem(
                    "load_time",
                    f"must be left out beside read_aggregate {shown(self.load_time.plain(text=True))}",
                )
        if self.mode in ("sync", "async", "local") and self.interval is None:
            yield Problem(
                "interval", f"required in mode {self.mode}, such as '500 steps' or '30min' (got nothing)"
            )
        if self.mode in ("sync", "async") and self.write_time is None and self.bandwidth is None:
            yield Problem(
                "write_time",
                f"required in mode {self.mode}, unless bytes and bandwidth are given (got nothing)",
            )
        if self.mode in ("async", "local") and self.stall_time is None:
            yield Problem("stall_time", f"required in mode {self.mode} (got nothing)")
        if self.mode == "tiered" and not 1 <= len(self.tiers) <= 8:
            yield Problem("tiers", f"must hold 1 to 8 tiers in mode tiered (got {len(self.tiers)})")
        names = [tier.name for tier in self.tiers if tier.name is not None]
        if len(set(names)) != len(names):
            yield Problem("tiers", f"must have unique names {shown(names)}")


class Slowdown(Block):
    """A node that runs slower; the slowest rank sets the pace."""

    factor: Slowing
    """Step time of the slow node over that of a sound one."""
    duration: LawField | None = None
    """How long it lasts; or give until."""
    until: Literal["repaired"] | None = None
    """Lasts until the node is repaired; or give duration."""

    def rules(self) -> Iterator[Problem]:
        """Ask for exactly one end."""
        if (self.duration is None) == (self.until is None):
            got = "neither" if self.until is None else "both"
            yield Problem(
                "",
                f"must have exactly one of duration, until (got {got})",
            )


class Fault(Block):
    """What classes of faults and scheduled faults have in common."""

    name: ItemName | None = None
    """Name, for paths and for the tables of faults."""
    symptom: Symptom
    """How the fault shows."""
    scope: Scope = "rank"
    """What it takes down."""
    repair: Flag = False
    """Whether the node must leave for repair."""
    detect: LawField | None = None
    """Time until the fault is noticed, in place of the layer's detection."""
    gil: Literal["free", "held"] = "free"
    """For hangs: whether the hung rank still lets other Python threads run."""
    slowdown: Slowdown | None = None
    """For symptom slowdown: how much slower, and for how long."""

    def rules(self) -> Iterator[Problem]:
        """Ask for what the symptom needs, and refuse what it has no use for."""
        if self.symptom == "slowdown" and self.slowdown is None:
            yield Problem(
                "slowdown", "required with symptom slowdown, such as {factor: 2, duration: 1h} (got nothing)"
            )
        if self.symptom != "slowdown" and self.slowdown is not None:
            yield Problem(
                "slowdown", f"must be left out unless the symptom is slowdown {shown(self.symptom)}"
            )
        if self.slowdown is not None and self.slowdown.until == "repaired" and not self.repair:
            yield Problem("slowdown.until", "needs repair: true, or state a duration (got 'repaired')")
        if self.symptom == "silent_corruption" and self.detect is None:
            yield Problem(
                "detect", "required with symptom silent_corruption: when is it noticed? (got nothing)"
            )
        if self.symptom != "hang" and self.gil == "held":
            yield Problem("gil", f"must be left out unless the symptom is hang {shown(self.symptom)}")
        if self.repair and self.scope == "job":
            yield Problem("repair", "must be false with scope job: which node would go to repair? (got True)")
        if self.symptom == "node_loss" and self.scope in ("rank", "gpu"):
            yield Problem("scope", f"must be node, rack or job with symptom node_loss {shown(self.scope)}")


class FaultClass(Fault):
    """A kind of fault: one law, one scope, one symptom."""

    name: ItemName
    """Name, for paths such as failures.classes.gpu.rate."""
    rate: Rate | None = None
    """Faults over unit-time, such as '3.8 per 1000 node-days'; give this or mtbf."""
    mtbf: PositiveDuration | None = None
    """Mean time between faults of one unit; give this or rate."""
    per: Per | None = None
    """What rate or mtbf is counted by; default: the rate's own unit, else the scope."""
    law: ShapeField = Law("exponential")
    """Shape of the time between faults of one unit; rate or mtbf sets its mean."""
    scope: Scope
    """What one event takes down."""
    preemption: Flag | None = None
    """For node_loss: whether it is told cluster.preemption.warning ahead; default: yes where that is set."""

    @model_validator(mode="before")
    @classmethod
    def _resolve_per(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        unit = None
        if isinstance(given.get("rate"), str):
            try:
                unit = parse_rate(given["rate"])[1]
            except ValueError:
                return given  # the field itself reports it
        if unit is not None and given.get("per", unit) != unit:
            message = f"must agree with the unit of the rate, {unit}, or be left out {shown(given['per'])}"
            raise broken([Problem("per", message)])
        default = unit or (given.get("scope") if given.get("scope") in PER_UNITS else None)
        return given if default is None else {"per": default} | given

    def rules(self) -> Iterator[Problem]:
        """Ask for exactly one measure of the frequency and for what the symptom needs."""
        if (self.rate is None) == (self.mtbf is None):
            yield Problem(
                "", f"must have exactly one of rate, mtbf (got {'neither' if self.rate is None else 'both'})"
            )
        else:
            try:
                self.life_law()
            except LawError as error:
                yield from (Problem(f"law.{path}", message) for path, message in error.problems)
        if self.preemption and self.symptom != "node_loss":
            yield Problem("preemption", f"must be left out unless the symptom is node_loss {shown(self.symptom)}")
        if self.rate is not None and 0 < self.rate < MIN_RATE_PER_S:
            yield Problem("rate", f"must be 0 or at least {MIN_RATE_PER_S:g} a second {shown(self.rate)}")
        yield from super().rules()

    def rate_per_s(self) -> float:
        """Faults per second of one unit (of `per`), the long-run mean."""
        if self.rate is not None:
            return self.rate
        assert self.mtbf is not None
        return 1 / self.mtbf

    def life_law(self) -> Law | None:
        """Give the law of the time between faults of one unit, mean included; None where the rate is 0."""
        mean_s = self.mtbf if self.mtbf is not None else 1 / self.rate if self.rate else None
        return None if mean_s is None else self.law.with_mean(mean_s)


class ScheduledFault(Fault):
    """A fault that strikes once, when its step is first reached."""

    step: Count
    """Strikes once this many steps are done."""
    rank: Count
    """The rank it strikes; its node is rank // gpus_per_node."""


class Failures(Block):
    """What goes wrong."""

    clock: Literal["wall", "running"] = "wall"
    """Whether units age always, or only while the training loop runs."""
    classes: tuple[FaultClass, ...] = ()
    """Random faults."""
    schedule: tuple[ScheduledFault, ...] = ()
    """Faults at stated steps, as an injector fires them."""

    def rules(self) -> Iterator[Problem]:
        """Ask for unique names, and for lists that a run can carry."""
        for field, items in (("classes", self.classes), ("schedule", self.schedule)):
            if len(items) > MAX_FAULTS:
                yield Problem(field, f"must hold at most {MAX_FAULTS} items (got {len(items)})")
            names = Counter(item.name for item in items if item.name is not None)
            for name in (name for name, count in names.items() if count > 1):
                yield Problem(field, f"must have unique names {shown(name)}")
