"""The wall time of a run as bands, each charged to one category of the ledger.

The accountant itself paints them: `Painter` notes where on the clock each of its charges lies. So the bands cover the
wall time without gaps, and their seconds are those of the ledger, category by category.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sim.accounts.accountant import Accountant
from sim.accounts.books import Execution
from sim.accounts.event_kinds import Event
from sim.ledger import RunLedger
from sim.timeline.story import start_of

_ROUNDING = 1e-12  # share of a piece below which a cut is rounding


@dataclass
class Band:
    """A stretch of the wall time [s since the start of the run] and what it was.

    `slow_s` is the part of a band of steps that counts as `slowdown`. Both may be mixed within it, so it has no place
    of its own. `steps` are the steps done at its two ends.
    """

    start_s: float
    end_s: float
    category: str
    phase: str = ""
    layer: str = ""
    slow_s: float = 0.0
    steps: tuple[float, float] | None = None

    def seconds(self) -> dict[str, float]:
        """Return category -> seconds."""
        whole = self.end_s - self.start_s
        return {self.category: whole - self.slow_s} | ({"slowdown": self.slow_s} if self.slow_s else {})


@dataclass
class _Run:
    """Pieces of the clock in which an execution ran, and its steps; as long as no restart takes them back."""

    execution: Execution
    pieces: list[tuple[float, float]]
    begin: float
    end: float


def bands(log: Sequence[Event], ledger: RunLedger) -> list[Band]:
    """Return the bands of a log in order of time on one timeline, whose ledger is known already."""
    if not log:
        return []
    run_start = next((event for event in log if event["kind"] == "run_start"), {})
    end_s = next((event["t"] for event in reversed(log) if event["kind"] == "run_end"), log[-1]["t"])
    painter = Painter(run_start, start_of(log), ledger.nominal_step_s)
    painter.run(log)
    painter.close(end_s, run_start.get("steps"))
    return painter.picture()


class Painter(Accountant):
    """An accountant that remembers when each stretch was that it charged."""

    def __init__(self, run_start: Event, start_s: float, nominal_step_s: float | None) -> None:
        super().__init__(run_start, start_s, nominal_step_s)
        self._painted: list[Band] = []
        self._pieces: list[tuple[float, float]] = []  # passed by the mark, not charged yet
        self._skip = 0  # of the pieces, those that the charge under way does not mean
        self._runs: list[_Run] = []  # side by side with the executions
        self._rolling_back = False
        self._now: tuple[str, str] = "", ""

    def picture(self) -> list[Band]:
        """Return all bands, in order of time, once the books are closed."""
        for run in self._runs:
            whole = run.execution.fast_s + run.execution.slow_s
            share = run.execution.slow_s / whole if whole > 0.0 else 0.0
            for start, end in run.pieces:
                self._band(start, end, "productive", share * (end - start), (run.begin, run.end))
        self._runs.clear()
        self._painted.sort(key=lambda band: band.start_s)
        return _joined(self._painted)

    def _band(
        self,
        start: float,
        end: float,
        category: str,
        slow_s: float = 0.0,
        steps: tuple[float, float] | None = None,
        now: tuple[str, str] = ("", ""),
    ) -> None:
        zero = self.start_s
        self._painted.append(Band(start - zero, end - zero, category, *now, slow_s, steps))

    def _advance(self, t: float) -> tuple[float, float]:
        if t > self.mark:
            self._pieces.append((self.mark, t))
        return super()._advance(t)

    def _flow(self, t: float) -> None:
        self._skip = len(self._pieces)
        if self._phases:
            self._now = self._phases[-1].name, self._phases[-1].layer or self._layer or ""
        else:
            self._now = "", (self._layer or "") if self._incident is not None else ""
        super()._flow(t)
        self._skip, self._now = 0, ("", "")

    def _add(self, category: str, seconds: float, gpu_s: float) -> None:
        super()._add(category, seconds, gpu_s)
        if seconds <= 0.0 or self._rolling_back:
            return
        taken = self._pieces[self._skip :]
        del self._pieces[self._skip :]
        if self.state == "loop" and category.split(".")[0] in ("startup", "restart"):
            # The excess of a first step is its warm-up: the beginning of it; the rest is the step's.
            taken, rest = _split(taken, seconds)
            self._pieces += rest
            self._now = "warmup", category.partition(".")[2]
        for start, end in taken:
            self._band(start, end, category, now=self._now)

    def _on_step(self, event: Event) -> None:
        super()._on_step(event)
        if len(self.executions) > len(self._runs):
            new = self.executions[-1]
            self._runs.append(_Run(new, self._pieces, new.begin, new.end))
            self._pieces = []

    def _roll_back(self, steps: float) -> None:
        self._rolling_back = True
        super()._roll_back(steps)
        self._rolling_back = False
        while len(self._runs) > len(self.executions):
            lost = self._runs.pop()
            self._lose(lost.pieces, (lost.begin, lost.end))
        if not self._runs:
            return
        run = self._runs[-1]
        if run.execution.end < run.end:
            run.pieces, lost_pieces = _split(run.pieces, run.execution.fast_s + run.execution.slow_s)
            self._lose(lost_pieces, (run.execution.end, run.end))
            run.end = run.execution.end

    def _lose(self, pieces: Iterable[tuple[float, float]], steps: tuple[float, float]) -> None:
        for start, end in pieces:
            self._band(start, end, "rework", steps=steps)


def _split(
    pieces: list[tuple[float, float]], seconds: float
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Split pieces of the clock after `seconds` of them."""
    before, after, left = [], [], seconds
    for start, end in pieces:
        length = end - start
        if left >= length * (1.0 - _ROUNDING):
            before.append((start, end))
        elif left <= length * _ROUNDING:
            after.append((start, end))
        else:
            before.append((start, start + left))
            after.append((start + left, end))
        left = max(0.0, left - length)
    return before, after


def _joined(painted: Sequence[Band]) -> list[Band]:
    """Join neighbours that tell the same."""
    joined: list[Band] = []
    for band in painted:
        last = joined[-1] if joined else None
        same = last is not None and last.end_s == band.start_s and last.phase == band.phase != ""
        if last is not None and same and (last.category, last.layer) == (band.category, band.layer):
            last.end_s = band.end_s
        else:
            joined.append(band)
    return joined


def thinned(painted: Sequence[Band], wall_s: float, most: int) -> list[Band]:
    """Return at most about `most` bands: within cells too short to be seen, bands of the same kind are put together.

    Seconds by category stay as they are, and so does the place of everything, to the length of a cell.
    """
    if len(painted) <= most or wall_s <= 0.0:
        return list(painted)
    cell_s = 8.0 * wall_s / most  # a cell holds a handful of kinds
    thin: list[Band] = []
    cell: dict[tuple[str, str, str], Band] = {}
    until = 0.0
    for band in painted:
        if band.start_s >= until or band.end_s - band.start_s >= cell_s:
            thin += _laid_out(cell.values())
            cell, until = {}, band.start_s + cell_s
        kind = band.category, band.phase, band.layer
        if kind in cell:
            cell[kind].end_s += band.end_s - band.start_s
            cell[kind].slow_s += band.slow_s
            if (before := cell[kind].steps) and band.steps:
                cell[kind].steps = before[0], band.steps[1]
        else:
            cell[kind] = Band(band.start_s, band.end_s, *kind, band.slow_s, band.steps)
    return thin + _laid_out(cell.values())


def _laid_out(cell: Iterable[Band]) -> list[Band]:
    """Lay the bands of a cell one after the other."""
    found = list(cell)
    at = found[0].start_s if found else 0.0
    for band in found:
        band.start_s, band.end_s = at, at + (band.end_s - band.start_s)
        at = band.end_s
    return found
