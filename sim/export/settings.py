"""What an export hands over: the checkpoint intervals and the timeouts that go with them, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sim.export.timeouts import Timeouts, timeouts_for
from sim.scenario import Scenario, load_scenario
from sim.units import format_duration
from sim.warn import Warning, warnings_for
from sim.warn.rule import View, high_s


@dataclass(frozen=True, slots=True)
class Level:
    """One kind of save: the only one, or one tier."""

    path: str
    """key of its interval in the scenario"""
    name: str
    steps: int
    interval_s: float
    stall_s: float
    """99th percentile of the time the loop stands still for it"""
    write_s: float
    """99th percentile of the time it goes on in the background; 0 for a blocking save"""
    survives_node_loss: bool

    def text(self) -> str:
        """Say the interval in steps and in seconds."""
        return f"{self.steps} steps ({format_duration(self.interval_s)} of work), {self.interval_s:.10g} s"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one scenario, ready for any format."""

    scenario: Scenario
    """the scenario with the exported interval in it"""
    interval_steps: int | None
    """None where the checkpoint mode has no single interval"""
    interval_s: float | None
    interval_source: Literal["recommended", "scenario", "none"]
    scenario_steps: int | None
    """the interval that the scenario states"""
    advice: dict[str, Any] | None
    """the record of `recommend`, where it was asked"""
    levels: tuple[Level, ...]
    """the kinds of saves, the nearest first; none in modes none and ideal"""
    block_s: float
    """99th percentile of the time the loop stands still for one save, its wait for the writer included"""
    timeouts: Timeouts
    warnings: tuple[Warning, ...]
    record: dict[str, Any]
    """provenance: version, git, command, seed, scenario_hash (of the scenario as given)"""
    iteration_file: str | None = None

    def interval_text(self) -> str:
        """Say the interval in steps and seconds, or that of each tier."""
        if not self.levels:
            return f"Checkpoint interval: none to export in checkpoint mode {self.scenario.checkpoint.mode}"
        if self.interval_steps is None:
            tiers = "; ".join(f"{level.name} every {level.text()}" for level in self.levels)
            return f"Checkpoint intervals, scenario: {tiers}"
        text = f"Checkpoint interval, {self.interval_source}: {self.levels[0].text()}"
        if self.scenario_steps is not None and self.scenario_steps != self.interval_steps:
            text += f" (the scenario has {self.scenario_steps} steps)"
        return text


def settings_for(
    scenario: Scenario,
    record: dict[str, Any],
    advice: dict[str, Any] | None = None,
    iteration_file: str | None = None,
) -> Settings:
    """Gather the settings of a scenario; with `advice`, the record of `recommend`, its interval is exported."""
    checkpoint = scenario.checkpoint
    has_interval = checkpoint.interval is not None and checkpoint.mode not in ("none", "ideal", "tiered")
    own = scenario.interval_steps() if has_interval else None
    exported = scenario
    source: Literal["recommended", "scenario", "none"] = "scenario" if own is not None else "none"
    if advice is not None and own is not None:
        source = "recommended"
        exported = load_scenario(scenario, [f"checkpoint.interval={advice['interval_steps']} steps"])
    steps = exported.interval_steps() if own is not None else None
    return Settings(
        scenario=exported,
        interval_steps=steps,
        interval_s=None if steps is None else steps * exported.nominal_step_s(),
        interval_source=source,
        scenario_steps=own,
        advice=advice,
        levels=_levels(exported),
        block_s=View(exported).block_high_s,
        timeouts=timeouts_for(exported),
        warnings=tuple(warnings_for(exported, for_export=True)),
        record=record,
        iteration_file=iteration_file,
    )


def _levels(scenario: Scenario) -> tuple[Level, ...]:
    checkpoint = scenario.checkpoint
    if checkpoint.mode == "tiered":
        kinds = [(tier.name or str(i), tier.survives) for i, tier in enumerate(checkpoint.tiers)]
    else:
        kinds = [(checkpoint.mode, checkpoint.survives if checkpoint.mode == "local" else ("node_loss",))]
    return tuple(
        Level(
            path=save.path,
            name=name,
            steps=save.steps,
            interval_s=save.interval_s,
            stall_s=high_s(save.stall),
            write_s=high_s(save.write),
            survives_node_loss="node_loss" in survives,
        )
        for save, (name, survives) in zip(View(scenario).saves, kinds, strict=False)
    )
