"""Incidents: from a fault until the loop runs again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class FaultRef(NamedTuple):
    """A fault as an incident remembers it; `t_s` counts from the start of the run."""

    id: object
    fault_class: str
    symptom: str
    t_s: float


@dataclass(frozen=True)
class Incident:
    """From a fault to `resumed` [s since the start of the run]; `end_s` is None if the run ended in it.

    A fault that the loop outlives (slow-down, corruption) opens it when it is noticed. `restart_events`
    counts the attempts of restart layers (1 where the log names none but the job resumed); `by_phase`
    splits its time, where `restart` is time that no phase names. `layer` is the last one that tried. Rework
    comes after an incident.
    """

    start_s: float
    end_s: float | None
    restart_events: int
    steps_lost: int
    by_phase: dict[str, float]
    faults: tuple[FaultRef, ...]
    layer: str | None
    planned: bool = False
    """A planned stop, such as maintenance, that no fault joined."""


@dataclass
class OpenIncident:
    """An incident while the accountant is in it; `start_s` is on the clock of the log."""

    start_s: float
    done: int
    faults: list[FaultRef] = field(default_factory=list)
    by_phase: dict[str, float] = field(default_factory=dict)
    layer: str | None = None
    attempts: int = 0
    process_started: bool = False
    planned: bool = False

    def spend(self, phase: str, seconds: float) -> None:
        """Add time to a phase."""
        self.by_phase[phase] = self.by_phase.get(phase, 0.0) + seconds

    def close(self, run_start_s: float, t: float | None, step: int) -> Incident:
        """Return the incident as it ended: resumed at t from `step`, or unresolved (t None, `step` kept)."""
        return Incident(
            start_s=self.start_s - run_start_s,
            end_s=None if t is None else t - run_start_s,
            restart_events=self.attempts or int(t is not None),
            steps_lost=max(0, self.done - step),
            by_phase=self.by_phase,
            faults=tuple(self.faults),
            layer=self.layer,
            planned=self.planned and not self.faults,
        )
