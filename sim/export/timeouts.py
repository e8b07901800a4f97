"""Timeouts that follow from a scenario: long enough for what a healthy job does in silence, and no longer.

Each covers the 99th percentile of its stretch (the slowest rank decides) times NVRx's safety factor of 5, rounded
up to whole seconds, a minute at least; the launcher's come after the NCCL watchdog, which can say which rank is at
fault. A value that the scenario states is kept unless it would end a healthy job.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from sim.scenario import Scenario
from sim.warn.rule import SAFETY_FACTOR, View, high_s

FLOOR_S = (
    60.0  # shorter silences (garbage collection, an evaluation) are not modelled; a hang costs a minute more
)
MARGIN = 1.5  # between timeouts that must come one after the other, as in the Wrapper's own 60 and 90 s
FIRST_RESTARTS = 10  # a budget for the early, unlucky hours; see max_restarts


@dataclass(frozen=True, slots=True)
class Timeout:
    """One timeout. `seconds` None: off, or not known to the model."""

    path: str
    """its key in the scenario"""
    seconds: float | None
    covers: str
    """the stretch that it must outlast"""
    covers_s: float | None
    """99th percentile of that stretch; None where the scenario does not say"""
    source: Literal["derived", "scenario", "default"]
    stated_s: float | None = None
    """what the scenario states, where that is not `seconds`"""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """All timeouts of one scenario, and the launcher's budget."""

    initial_heartbeat: Timeout
    heartbeat: Timeout
    setup: Timeout
    step: Timeout
    checkpointing: Timeout
    out_of_section: Timeout
    soft: Timeout | None
    """in-process; None without that layer"""
    hard: Timeout | None
    nccl: Timeout
    max_restarts: int
    """ft_launcher's own default is 0: the first fault would end the job"""
    why_max_restarts: str
    """where that number comes from"""
    max_no_progress_cycles: int
    by_heartbeat: bool
    """the scenario states heartbeat timeouts and no sections: its code sends heartbeats"""

    def all(self) -> tuple[Timeout, ...]:
        """Return the timeouts that watch the job in the way that its code is written."""
        if self.by_heartbeat:
            launcher: tuple[Timeout, ...] = (self.initial_heartbeat, self.heartbeat)
        else:
            launcher = (self.setup, self.step, self.checkpointing, self.out_of_section)
        return (*launcher, *(t for t in (self.soft, self.hard) if t is not None), self.nccl)


def timeouts_for(scenario: Scenario) -> Timeouts:
    """Derive every timeout of a scenario."""
    v = View(scenario)
    job, sections = scenario.recovery.in_job, scenario.recovery.in_job.section_timeouts
    # NVRx from 0.6 on leaves the first iterations of a cycle in peace (num_warmup_iterations); 0.4.1 does not.
    warmup_s = high_s(scenario.workload.warmup) if scenario.recovery.nvrx == "0.4.1" else 0.0
    step_s, save_s = v.step_high_s + warmup_s, _save_s(v)
    start = "process start, init, load, warm-up and the first step"
    start_s = v.start_high_s if v.start_high_s > v.step_high_s else None
    step = "a step and the first warm-up" if warmup_s else "a step"
    background = any(save.write.mean_s() > 0 for save in v.saves)
    save = "a save, or the last one's write" if background else "a save"
    stated = {
        name: None if sections is None else getattr(sections, name)
        for name in ("setup", "step", "checkpointing", "out_of_section")
    }

    soft, hard = _in_process(v)
    nccl = _nccl(v, step, step_s, hard)
    floor_s = FLOOR_S if nccl.seconds is None else max(FLOOR_S, float(math.ceil(MARGIN * nccl.seconds)))

    def launcher(
        name: str, given: float | None, covers: str, covers_s: float | None, least_s: float
    ) -> Timeout:
        return _choose(f"recovery.in_job.{name}", given, covers, covers_s, least_s=least_s)

    def section(name: str, covers: str, covers_s: float | None) -> Timeout:
        return launcher(f"section_timeouts.{name}", stated[name], covers, covers_s, floor_s)

    silence = f"{step} and a save"
    heartbeat = launcher("heartbeat_timeout", job.heartbeat_timeout, silence, step_s + save_s, floor_s)
    first_s = max(floor_s, heartbeat.seconds or 0.0)
    return Timeouts(
        initial_heartbeat=launcher(
            "initial_heartbeat_timeout", job.initial_heartbeat_timeout, start, start_s, first_s
        ),
        heartbeat=heartbeat,
        setup=section("setup", start, start_s),
        step=section("step", step, step_s),
        checkpointing=section("checkpointing", save, save_s or None),
        out_of_section=section("out_of_section", "time outside sections", None),
        soft=soft,
        hard=hard,
        nccl=nccl,
        max_restarts=_max_restarts(v),
        why_max_restarts=_why_max_restarts(v),
        max_no_progress_cycles=v.max_no_progress,
        by_heartbeat=sections is None and _is_on(job.heartbeat_timeout),
    )


def _is_on(seconds: float | None) -> bool:
    return seconds is not None and math.isfinite(seconds)


def _save_s(v: View) -> float:
    """99th percentile of the longest time the loop stands still for saves, the wait for the last write included [s]."""
    return max([v.block_high_s, *(high_s(save.stall) + high_s(save.write) for save in v.saves)])


def _in_process(v: View) -> tuple[Timeout | None, Timeout | None]:
    """Return the Wrapper's soft and hard timeouts; a save under its atomic lock is waited for."""
    if not v.on("in_process"):
        return None, None
    ip = v.recovery.in_process
    silence_s = max(v.step_high_s, 0.0 if ip.atomic else v.block_high_s)
    what = "a step" if ip.atomic else "a step or a save"
    soft = _or_default(
        _choose("recovery.in_process.soft_timeout", ip.soft_timeout, what, silence_s), ip, "soft_timeout"
    )
    longest_s = max(v.step_high_s, v.block_high_s, soft.seconds or 0.0)
    hard = _choose(
        "recovery.in_process.hard_timeout",
        ip.hard_timeout,
        "a step, a save, the soft timeout",
        longest_s,
        MARGIN,
    )
    return soft, _or_default(hard, ip, "hard_timeout")


def _or_default(timeout: Timeout, block: Any, key: str) -> Timeout:
    """Tell a value that nobody stated from the scenario's own."""
    if timeout.source == "scenario" and timeout.seconds == type(block).model_fields[key].default:
        return replace(timeout, source="default")
    return timeout


def _nccl(v: View, step: str, step_s: float, hard: Timeout | None) -> Timeout:
    path, stated = "recovery.nccl_timeout", v.recovery.nccl_timeout
    if hard is not None and hard.seconds is not None and hard.seconds >= step_s:
        return _choose(path, stated, "the in-process hard timeout", hard.seconds, MARGIN)
    return _choose(path, stated, step, step_s)


def _choose(
    path: str,
    stated: float | None,
    covers: str,
    covers_s: float | None,
    factor: float = SAFETY_FACTOR,
    least_s: float = FLOOR_S,
) -> Timeout:
    given = stated if stated is not None and math.isfinite(stated) else None
    if covers_s is None:  # not known: what is stated stands, else off
        return Timeout(path, given, covers, None, "derived" if given is None else "scenario")
    if given is not None and given > covers_s:
        return Timeout(path, given, covers, covers_s, "scenario")
    needed_s = max(least_s, float(math.ceil(factor * covers_s)))
    return Timeout(path, needed_s, covers, covers_s, "derived", given)


def _max_restarts(v: View) -> int:
    """Return the stated budget, else twice the expected restarts and ten more."""
    stated = v.recovery.in_job.max_restarts
    if stated is not None:
        return stated
    return math.ceil(2.0 * sum(kind.expected for kind in v.stops)) + FIRST_RESTARTS


def _why_max_restarts(v: View) -> str:
    if v.recovery.in_job.max_restarts is not None:
        return "as the scenario states"
    expected = sum(kind.expected for kind in v.stops)
    return f"twice the {expected:.3g} faults expected in the job, and {FIRST_RESTARTS} more"
