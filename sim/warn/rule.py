"""What the rules that warn are made of: the register of rules, and one view of a scenario that all of them read.

A rule is a function from a `View` to its findings, (path, message) pairs. It decides by the scenario alone: nothing
is simulated, so a warning costs no time and stands in every command's output.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from sim import analytic, sampling
from sim.recovery import defaults
from sim.scenario import Checkpoint, FaultClass, Layer, Scenario, ScheduledFault, Symptom
from sim.schema.cluster import NO_TIME
from sim.schema.faults import SYMPTOMS
from sim.schema.law import Law

Severity = Literal["warning", "note"]
"""warning: the run will not do what is wanted; note: worth knowing."""
Finding = tuple[str, str]
"""Path in the scenario, and what is to be said about it."""

HIGH = 0.99
"""The share of cases a timeout must leave in peace: the slowest rank decides, so a mean is no guide [facts]."""
SAFETY_FACTOR = 5.0
"""NVRx sets automatic timeouts to this many times the longest observed stretch (safety_factor)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a stable id, why it holds, how much it matters, and its check."""

    id: str
    why: str
    severity: Severity
    export_only: bool
    check: Callable[[View], Iterable[Finding]]


RULES: dict[str, Rule] = {}


def rule(
    id: str, why: str, severity: Severity = "warning", export_only: bool = False
) -> Callable[[Callable[[View], Iterable[Finding]]], Callable[[View], Iterable[Finding]]]:
    """Register a check under its stable id; export_only rules speak only where settings are handed over."""

    def register(check: Callable[[View], Iterable[Finding]]) -> Callable[[View], Iterable[Finding]]:
        assert id not in RULES, f"two rules with the id {id}"
        RULES[id] = Rule(id, why, severity, export_only, check)
        return check

    return register


def high_s(law: Law) -> float:
    """Return the 99th percentile of a law of durations [s]."""
    if law.kind == "constant":
        return law.mean_s()
    tables: list[float] = []
    row = sampling.build_row(law, tables)
    return sampling.quantile([row], tables, 0, HIGH)


class Save(NamedTuple):
    """One kind of save: the only one, or one tier."""

    path: str
    steps: int
    interval_s: float
    """Useful work between two of them."""
    stall: Law
    """How long the loop stands still when the writer is free."""
    write: Law
    """How long from there until it is durable; no time for a blocking save."""
    keep: int
    """How many of them are kept."""
    survives: tuple[Symptom, ...]
    """Symptoms after which it can still be loaded."""


class FaultKind(NamedTuple):
    """One class of faults, or one scheduled fault."""

    path: str
    fault: FaultClass | ScheduledFault
    per_s: float
    """Faults of the whole working set per second; 0 for a scheduled one."""
    expected: float
    """How many the job will see, at least: rate times useful time, or 1."""


class View:
    """A scenario with its defaults resolved and its derived numbers [s, 1/s, steps]."""

    def __init__(self, scenario: Scenario) -> None:
        self.s = scenario
        self.checkpoint: Checkpoint = scenario.checkpoint
        self.recovery = scenario.recovery
        self.defaults = defaults.IN_JOB[scenario.recovery.nvrx]

    def on(self, *layers: Layer) -> bool:
        """Tell whether any of these layers is enabled."""
        return any(layer in self.recovery.layers for layer in layers)

    # --- the loop

    @cached_property
    def step_high_s(self) -> float:
        """99th percentile of a step, writes in flight included [s]."""
        slowdown = self.checkpoint.async_slowdown
        factor = slowdown.factor if slowdown is not None and self.checkpoint.mode != "sync" else 1.0
        return high_s(self.s.workload.step_time) * self.s.step_factor() * factor

    @cached_property
    def useful_s(self) -> float:
        """All steps with nothing in their way [s]."""
        return self.s.useful_time_s()

    @cached_property
    def start_high_s(self) -> float:
        """From a new process to its first finished step, each part at its 99th percentile [s]."""
        w = self.s.workload
        return sum(map(high_s, (w.process_start, w.init, w.warmup, self.load))) + self.step_high_s

    @cached_property
    def start_median_s(self) -> float:
        """From a new process to its first finished step, each part at its median [s]."""
        w = self.s.workload
        parts = (w.process_start, w.init, w.warmup, self.load)
        return sum(law.median_s() for law in parts) + self.s.nominal_step_s()

    # --- saves

    @cached_property
    def load(self) -> Law:
        """Law of the time of a load, of the tier that takes longest."""
        tiers = self.checkpoint.tiers if self.checkpoint.mode == "tiered" else ()
        return max((tier.load_time for tier in tiers), key=Law.mean_s, default=self.s.load_law())

    @cached_property
    def saves(self) -> tuple[Save, ...]:
        """The kinds of saves this job makes; none in modes none and ideal."""
        c, step_s = self.checkpoint, self.s.nominal_step_s()
        if c.mode in ("none", "ideal"):
            return ()
        if c.mode == "tiered":
            kinds = []
            for i, tier in enumerate(c.tiers):
                steps = tier.every.in_steps(step_s)
                blocking = tier.stall_time is None
                stall, write = (tier.write_time, NO_TIME) if blocking else (tier.stall_time, tier.write_time)
                path = f"checkpoint.tiers.{tier.name or i}.every"
                keep = c.keep if tier.keep is None else tier.keep
                kinds.append(Save(path, steps, steps * step_s, stall or NO_TIME, write, keep, tier.survives))
            return tuple(kinds)
        steps = self.s.interval_steps()
        stall, write = c.stall_time or NO_TIME, self.s.write_law()
        if c.mode == "sync":
            stall, write = write, NO_TIME
        elif c.mode == "local" and not c.writes_on():  # durable as soon as it is copied
            write = NO_TIME
        survives = c.survives if c.mode == "local" else SYMPTOMS
        return (Save("checkpoint.interval", steps, steps * step_s, stall, write, c.keep, survives),)

    @cached_property
    def blocks(self) -> bool:
        """Whether the loop stands still for a whole write, from its beginning until it is durable."""
        c = self.checkpoint
        if c.mode == "tiered":
            return any(tier.stall_time is None for tier in c.tiers)
        return c.mode == "sync" or (c.mode == "local" and not c.writes_on())

    def waits_s(self, save: Save, write_s: float) -> float:
        """Return how long a save waits for the background write before it (on_busy wait) [s]."""
        waits = save.write != NO_TIME and self.checkpoint.on_busy == "wait"
        return max(0.0, write_s - save.interval_s) if waits else 0.0

    @cached_property
    def block_high_s(self) -> float:
        """99th percentile of the time the loop stands still for one save [s]; 0 without saves."""
        return max((high_s(v.stall) + self.waits_s(v, high_s(v.write)) for v in self.saves), default=0.0)

    @cached_property
    def save_s(self) -> float:
        """Mean time from the beginning of a save until it is durable [s]."""
        return max((v.stall.mean_s() + v.write.mean_s() for v in self.saves), default=0.0)

    @cached_property
    def shortest(self) -> Save | None:
        """The save that comes most often."""
        return min(self.saves, key=lambda v: v.interval_s, default=None)

    # --- timeouts; infinite where nothing watches

    @cached_property
    def heartbeat_s(self) -> float:
        """ft_launcher's heartbeat timeout [s]."""
        return self._in_job(self.recovery.in_job.heartbeat_timeout, self.defaults.heartbeat_timeout_s)

    @cached_property
    def initial_heartbeat_s(self) -> float:
        """ft_launcher's timeout of the first heartbeat [s]."""
        given = self.recovery.in_job.initial_heartbeat_timeout
        return self._in_job(given, self.defaults.initial_heartbeat_timeout_s)

    def section_s(self, name: Literal["setup", "step", "checkpointing", "out_of_section"]) -> float:
        """Return one of ft_launcher's section timeouts [s]."""
        sections = self.recovery.in_job.section_timeouts
        return self._in_job(getattr(sections, name) if sections is not None else None, math.inf)

    @cached_property
    def max_no_progress(self) -> int:
        """Cycles without a new checkpoint before the launcher stops the job; 0: it never does."""
        given = self.recovery.in_job.max_no_progress_cycles
        return self.defaults.max_no_progress_cycles if given is None else given

    def _in_job(self, given: float | None, default: float) -> float:
        if not self.on("in_job"):
            return math.inf
        return default if given is None else given

    @cached_property
    def silences(self) -> tuple[tuple[str, float], ...]:
        """Timeouts that end a rank which makes no progress: (path, seconds), those that are on."""
        ip = self.recovery.in_process
        found = [
            ("recovery.nccl_timeout", self.recovery.nccl_timeout),
            ("recovery.in_job.heartbeat_timeout", self.heartbeat_s),
            ("recovery.in_job.section_timeouts.step", self.section_s("step")),
        ]
        if self.on("in_process"):
            found.append(("recovery.in_process.soft_timeout", ip.soft_timeout))
            found.append(("recovery.in_process.hard_timeout", ip.hard_timeout))
        return tuple((path, seconds) for path, seconds in found if math.isfinite(seconds))

    # --- faults

    @cached_property
    def faults(self) -> tuple[FaultKind, ...]:
        """Every class that can strike, and every scheduled fault."""
        kinds = []
        for fault in self.s.failures.classes:
            per_s = fault.rate_per_s() * self._units(fault)
            if per_s > 0:
                path = f"failures.classes.{fault.name}"
                kinds.append(FaultKind(path, fault, per_s, per_s * self.useful_s))
        for i, planned in enumerate(self.s.failures.schedule):
            if planned.step <= self.s.total_steps():
                kinds.append(FaultKind(f"failures.schedule.{planned.name or i}", planned, 0.0, 1.0))
        return tuple(kinds)

    def _units(self, fault: FaultClass) -> int:
        return self.s.units(fault.per or fault.scope)

    @cached_property
    def stops(self) -> tuple[FaultKind, ...]:
        """The faults that stop the loop: all but slow-downs that nobody notices."""
        return tuple(
            kind for kind in self.faults if kind.fault.symptom != "slowdown" or kind.fault.detect is not None
        )

    def leaves(self, fault: FaultClass | ScheduledFault) -> bool:
        """Tell whether a fault takes its node out; with layer fixed, a lost one is back with the restart."""
        return fault.repair or (fault.symptom == "node_loss" and not self.on("fixed"))

    def contains(self, layer: Layer, fault: FaultClass | ScheduledFault) -> bool:
        """Tell whether a layer can absorb a fault at all (design 5.3), health checks and budgets aside."""
        leaves, lost = self.leaves(fault), fault.symptom == "node_loss"
        match layer:
            case "in_process":
                return not leaves and not lost and self._in_process_contains(fault)
            case "in_job":
                return self.s.cluster.spares.hot > 0 if leaves else not lost
            case "node_replacement":
                return leaves or fault.symptom == "gpu_error"
            case _:
                return True

    def _in_process_contains(self, fault: FaultClass | ScheduledFault) -> bool:
        if fault.symptom == "hang":
            return fault.gil == "free" and self.recovery.nccl_timeout > self.recovery.in_process.soft_timeout
        if fault.symptom == "process_exit":
            return self.recovery.launcher == "direct" and self.recovery.in_process.reserve_ranks > 0
        return True

    def taker(self, fault: FaultClass | ScheduledFault) -> Layer | None:
        """Return the lowest enabled layer that contains a fault, None if none does."""
        order: tuple[Layer, ...] = (
            "in_process", "in_job", "kubernetes", "slurm", "node_replacement", "fixed",
        )  # fmt: skip
        enabled = (layer for layer in order if layer in self.recovery.layers)
        return next((layer for layer in enabled if self.contains(layer, fault)), None)

    def warning_s(self, fault: FaultClass | ScheduledFault) -> float:
        """Return how long before it comes a fault is told [s]; 0 for all but pre-emptions."""
        return self.s.warning_s(fault) if isinstance(fault, FaultClass) else 0.0

    def amounts_to(self, fault: FaultClass | ScheduledFault) -> set[Symptom]:
        """Return the symptoms that a checkpoint must survive for this fault's restart to load it.

        Its own; the end of all processes, unless in_process restarts it; the loss of nodes, if its node leaves or
        Slurm takes all of them back.
        """
        layer, found = self.taker(fault), {fault.symptom}
        if layer != "in_process":
            found.add("process_exit")
        if layer == "slurm" or self.leaves(fault):
            found.add("node_loss")
        return found

    def stops_of(self, *layers: Layer) -> Iterator[FaultKind]:
        """Yield the faults that one of these layers is the first to take."""
        return (kind for kind in self.stops if self.taker(kind.fault) in layers)

    def no_save_p(self, kinds: Iterable[FaultKind]) -> float:
        """Return the probability that one of these faults ends a cycle before its first save.

        Memoryless faults by their rate, and many units' faults too, whatever their law; a law of the whole job by its
        share below the length of the cycle, as its life begins anew with the restart.
        """
        if self.shortest is None:
            return 1.0
        rate_per_s, survives = 0.0, 1.0
        for kind in kinds:
            fault = kind.fault
            law = fault.life_law() if isinstance(fault, FaultClass) and self._units(fault) == 1 else None
            if law is None or law.kind == "exponential":
                rate_per_s += kind.per_s
            else:
                survives *= 1.0 - _below(law, self._start_s + self.shortest.interval_s + self.save_s)
        if rate_per_s == 0.0:
            return 1.0 - survives
        p = analytic.p_no_save_in_cycle(
            self._start_s, self.shortest.interval_s, self.save_s, 1.0 / rate_per_s
        )
        return 1.0 - (1.0 - p) * survives

    @cached_property
    def _start_s(self) -> float:
        w = self.s.workload
        start_s = w.process_start.mean_s() + w.init.mean_s() + w.warmup.mean_s() + self.load.mean_s()
        if self.recovery.layers == ("fixed",):  # it states all of that but the load and the warm-up
            start_s += self.recovery.fixed.restart.mean_s() - w.process_start.mean_s() - w.init.mean_s()
        return start_s


def _below(law: Law, seconds: float) -> float:
    """Return the share of a law's lives that are shorter than a time."""
    tables: list[float] = []
    row = sampling.build_row(law, tables)
    return bisect_left(_SHARES, seconds, key=lambda p: sampling.quantile([row], tables, 0, p)) / len(_SHARES)


_SHARES = [(i + 0.5) / 10_000 for i in range(10_000)]
