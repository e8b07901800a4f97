"""The wall time as spans of one activity each, for the bar of the text; steps are `kept` until rolled back."""

from __future__ import annotations

from dataclasses import dataclass

from sim.accounts.event_kinds import Event
from sim.timeline.story import Span, Tale


@dataclass
class _Run:
    """Steps run in one go, until they are rolled back."""

    first: int
    last: int
    part: float
    span: Span


class Spans:
    """The spans of a tale; `mark` is the time up to which they are told."""

    def __init__(self, run_start: Event) -> None:
        self.tale = Tale(run_start)
        self.mark = 0.0
        self.runs: list[_Run] = []

    def _ran(self, span: Span, first: int, last: int, part: float) -> None:
        """Note which steps were run in a span."""
        self.runs.append(_Run(first, last, part, span))

    def _span(self, t: float, activity: str) -> Span | None:
        if t <= self.mark:
            return None
        spans = self.tale.spans
        if spans and spans[-1].activity == activity and activity not in ("kept", "lost"):
            spans[-1].end_s = t
        else:
            spans.append(Span(self.mark, t, activity))
        self.mark = t
        return spans[-1]

    def _roll_back(self, step: int) -> float:
        """Turn the steps beyond `step` into lost ones; their time [s]."""
        lost_s = 0.0
        ideal = self.tale.run_start.get("checkpoint_mode") == "ideal"  # keeps a part of a step too
        while self.runs:
            run = self.runs[-1]
            if run.last < step or (run.last == step and (ideal or not run.part)):
                break
            self.runs.pop()
            steps = run.last - run.first + 1 + run.part
            kept = max(0, min(run.last, step) - run.first + 1)
            length = run.span.end_s - run.span.start_s
            lost = length * (1 - kept / steps) if steps > 0 else length
            lost_s += lost
            if kept > 0:
                cut = run.span.end_s - lost
                spans = self.tale.spans
                at = next(i for i in range(len(spans) - 1, -1, -1) if spans[i] is run.span)
                spans.insert(at + 1, Span(cut, run.span.end_s, "lost"))
                run.span.end_s = cut
                self.runs.append(_Run(run.first, run.first + kept - 1, 0.0, run.span))
                break
            run.span.activity = "lost"
        return lost_s
