"""The record of restarts: which layer tries, and phase by phase what it does."""

from __future__ import annotations

from typing import Any

from sim import codes
from sim.driver.saves import Saves
from sim.driver.story import Story
from sim.recovery import state


class Attempts:
    """Writes the attempts of one run and their phases into its log."""

    def __init__(self, story: Story, inc: list[float], saves: Saves) -> None:
        self.story, self.p, self.inc, self.saves = story, story.p, inc, saves
        self.open_phase: tuple[int, str | None, int] | None = None

    def layer_begin(self, layer: int) -> None:
        """Write that a layer begins an attempt."""
        inc = self.inc
        attempt, incident = int(inc[state.ATTEMPT]), int(inc[state.NUMBER])
        self.story.emit("layer_begin", layer=codes.LAYERS[layer], attempt=attempt, incident=incident)

    def layer_end(self, outcome: str, reason: str = "", layer: int | None = None) -> None:
        """Write how the attempt of a layer (that which leads) ended."""
        inc = self.inc
        self.story.emit(
            "layer_end",
            layer=codes.LAYERS[int(inc[state.LAYER]) if layer is None else layer],
            attempt=int(inc[state.ATTEMPT]),
            incident=int(inc[state.NUMBER]),
            outcome=outcome,
            reason=reason,
        )

    def phase_begin(self, phase: int, layer: int) -> None:
        """Write that a phase begins."""
        name = None if layer == codes.NO_LAYER else codes.LAYERS[layer]
        self.open_phase = (phase, name, int(self.inc[state.ATTEMPT]))
        fields: dict[str, Any] = {"phase": codes.PHASES[phase], "layer": name, "attempt": self.open_phase[2]}
        if phase == codes.CHECKPOINT_LOAD and self.p.n_tiers > 1:
            fields["tier"] = self.saves.next_tier()
        self.story.emit("phase_begin", **fields)

    def phase_end(self, cut: bool = False, failed: bool = False) -> None:
        """Close the phase in the log, if one is open (detection after a fault is not a logged phase)."""
        if self.open_phase is not None:
            phase, name, attempt = self.open_phase
            self.open_phase = None
            extra = {"cut": True} if cut else {"failed": True} if failed else {}
            self.story.emit("phase_end", phase=codes.PHASES[phase], layer=name, attempt=attempt, **extra)
