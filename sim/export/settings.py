"""What an export hands over: the checkpoint interval and the timeouts that go with it, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sim.export.timeouts import Timeouts, timeouts_for
from sim.scenario import Scenario, load_scenario
from sim.units import format_duration
from sim.warn import Warning, warnings_for


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
    timeouts: Timeouts
    warnings: tuple[Warning, ...]
    record: dict[str, Any]
    """provenance: version, git, command, seed, scenario_hash (of the scenario as given)"""
    iteration_file: str | None = None

    def interval_text(self) -> str:
        """Say the interval in steps and seconds, and where it must be set."""
        if self.interval_steps is None or self.interval_s is None:
            return f"Checkpoint interval: none to export in checkpoint mode {self.scenario.checkpoint.mode}"
        text = (
            f"Checkpoint interval, {self.interval_source}: {self.interval_steps} steps "
            f"({format_duration(self.interval_s)} of work); this file has no key for it, set it in the trainer"
        )
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
        timeouts=timeouts_for(exported),
        warnings=tuple(warnings_for(exported, for_export=True)),
        record=record,
        iteration_file=iteration_file,
    )
