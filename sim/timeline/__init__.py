"""One run as a story: its event log folded into a few chapters that a person can read.

`tell` reads any event log on one timeline and returns the chapters: the start, stretches of the loop, incidents, the
end. What is uneventful is counted, not listed. sim/timeline/text.py prints them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sim.accounts.event_kinds import LATENT_SYMPTOMS, Event
from sim.timeline.story import Attempt, End, IncidentStory, Phase, Span, Start, Stretch, Struck, Tale


def tell(events: Sequence[Event]) -> Tale:
    """Fold an event log, in time order and on one timeline, into its chapters."""
    teller = _Teller(
        next((e for e in events if e["kind"] == "run_start"), {}), events[0]["t"] if events else 0.0
    )
    for event in events:
        act = getattr(teller, f"_{event['kind']}", None)
        if act is not None:
            act(event["t"] - teller.zero, event)
    teller.finish(events[-1]["t"] - teller.zero if events else 0.0)
    return teller.tale


@dataclass
class _Run:
    """Steps run in one go, until they are rolled back."""

    first: int
    last: int
    part: float
    span: Span


class _Teller:
    """Reads one event after the other; `mark` is the time up to which spans are told."""

    def __init__(self, run_start: Event, zero: float) -> None:
        self.tale = Tale(run_start)
        self.zero = float(zero)
        self.mark = 0.0
        self.done = int(run_start.get("start_step") or 0)
        self.start: Start | None = Start(0.0, Attempt(None, 0))
        self.stretch: Stretch | None = None
        self.incident: IncidentStory | None = None
        self.attempt: Attempt | None = self.start.attempt if self.start else None
        self.phase: tuple[str, float] | None = None
        self.stalls: dict[object, float] = {}
        self.latent: dict[object, Struck] = {}
        self.runs: list[_Run] = []
        self.noticed = True

    # --- spans

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

    def _down(self) -> str:
        """Return what a standstill is used for."""
        if self.incident is None:
            return "load" if self.phase and self.phase[0] == "checkpoint_load" else "start"
        if self.phase is not None:
            known = {"checkpoint_load": "load", "node_wait": "node_wait", "detect": "detect"}
            return known.get(self.phase[0], "restart")
        return "restart" if self.noticed else "detect"

    # --- the loop

    def _resumed(self, t: float, event: Event) -> None:
        self._span(t, self._down())
        step = event.get("step")
        step = self.done if step is None else math.floor(step)
        rework_s = self._roll_back(step)
        if self.start is not None:
            self._close_start()
        incident = self.incident
        if incident is not None:
            incident.end_s, incident.step = t, step
            incident.steps_lost = max(0, incident.done - step)
            incident.rework_s = rework_s
            self.incident = self.attempt = None
        self.done = step
        self.stretch = Stretch(t, step + 1, t, step)
        self.tale.chapters.append(self.stretch)

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

    def _step(self, t: float, event: Event) -> None:
        span = self._span(t, "kept")
        self.done = event["last"]
        if span is not None:
            self.runs.append(_Run(event["first"], event["last"], event.get("part", 0.0), span))
        if self.stretch is not None:
            self.stretch.last, self.stretch.end_s = event["last"], t

    def _save_begin(self, t: float, event: Event) -> None:
        if self.stretch is None:
            return
        self._span(t, "kept")
        self.stalls[event["id"]] = t
        self.stretch.saves += not event.get("drain")

    def _unstall(self, t: float, event: Event) -> None:
        begun = self.stalls.pop(event["id"], None)
        if begun is not None and self.stretch is not None:
            self._span(t, "save")
            self.stretch.stalled_s += t - begun
            self.stretch.end_s = t

    def _save_staged(self, t: float, event: Event) -> None:
        self._unstall(t, event)

    def _save_durable(self, t: float, event: Event) -> None:
        self._unstall(t, event)
        if self.stretch is not None:
            self.stretch.durable += 1
            self.stretch.last_durable = event["step"]
        elif self.incident is not None:
            self.incident.order.append(f"save {event['id']} (step {event['step']}) becomes durable")

    def _save_failed(self, t: float, event: Event) -> None:
        self._unstall(t, event)
        if self.incident is not None:
            self.incident.order.append(f"save {event['id']} (step {event['step']}) is lost")
        elif self.stretch is not None and event.get("reason") != "fault":
            self.stretch.moments.append(
                (t, f"save {event['id']} (step {event['step']}) fails: {event.get('reason')}")
            )

    # --- faults

    def _struck(self, t: float, event: Event) -> Struck:
        return Struck(
            t, event["id"], event["class"], event["symptom"], event["scope"], event.get("rank"),
            event.get("node"), event.get("step"),
        )  # fmt: skip

    def _fault(self, t: float, event: Event) -> None:
        fault = self._struck(t, event)
        if event.get("idle"):
            self._moment(
                t, f"fault {fault.id}: {fault.fault_class} on idle spare {fault.node}, the job goes on"
            )
        elif fault.symptom in LATENT_SYMPTOMS:
            self.latent[fault.id] = fault
            where = "" if fault.node is None else f" on node {fault.node}"
            self._moment(
                t, f"fault {fault.id}: {fault.fault_class} ({fault.symptom}){where}, the loop goes on"
            )
        else:
            self._stop(t, fault)
            self.noticed = False

    def _stop(self, t: float, fault: Struck) -> None:
        """Open an incident with this fault, or let it join the one under way."""
        if self.stretch is not None:
            self._span(t, "save" if self.stalls else "lost")
            self.stretch.stalled_s += sum(t - begun for begun in self.stalls.values())
            self.stretch.end_s = t
            self.stretch = None
            self.stalls.clear()
        else:
            self._span(t, self._down())
        if self.start is not None:
            self._close_start()
        if self.incident is None:
            self.incident = IncidentStory(t, self.done)
            self.tale.chapters.append(self.incident)
        self.incident.faults.append(fault)
        self.incident.order.append(fault)

    def _close_start(self) -> None:
        assert self.start is not None
        if self.start.attempt.phases:
            self.tale.chapters.append(self.start)
        self.start = self.attempt = None

    def _detected(self, t: float, event: Event) -> None:
        fault = self.latent.pop(event.get("fault"), None)
        if fault is not None:
            self._stop(t, fault)
        else:
            self._span(t, self._down())
        self.noticed = True
        known = self.incident.faults if self.incident is not None else []
        for struck in known:
            if struck.id == event.get("fault") or (event.get("fault") is None and struck is known[-1]):
                struck.noticed_after_s, struck.noticed_by = t - struck.t_s, event.get("by")

    def _layer_begin(self, t: float, event: Event) -> None:
        self._span(t, self._down())
        self.attempt = Attempt(event["layer"], event["attempt"])
        if self.incident is not None:
            self.incident.attempts.append(self.attempt)
            self.incident.order.append(self.attempt)

    def _layer_end(self, t: float, event: Event) -> None:
        self._span(t, self._down())
        if self.attempt is not None:
            self.attempt.outcome, self.attempt.reason = event["outcome"], event.get("reason") or None

    def _phase_begin(self, t: float, event: Event) -> None:
        self._span(t, self._down())
        self.phase = (event["phase"], t)

    def _phase_end(self, t: float, event: Event) -> None:
        self._span(t, self._down())
        name, begun = self.phase or (event["phase"], t)
        self.phase = None
        phase = Phase(name, t - begun, bool(event.get("cut")))
        if name == "detect" and self.incident is not None:
            self.incident.order.append(f"the end of its processes is noticed after {phase.dur_s:.3g}s")
        elif self.attempt is not None:
            self.attempt.phases.append(phase)

    # --- nodes

    def _moment(self, t: float, text: str) -> None:
        if self.incident is not None:
            self.incident.order.append(text)
        elif self.stretch is not None:
            self.stretch.moments.append((t, text))

    def _node_down(self, t: float, event: Event) -> None:
        self._moment(t, f"node {event['node']} leaves ({event['why']}): {_counts(event)}")

    def _node_up(self, t: float, event: Event) -> None:
        where = {
            "working": "joins the job",
            "hot": "is back as a hot spare",
            "cold": "is back as a cold spare",
        }
        self._moment(t, f"node {event['node']} {where.get(event['to'], event['to'])}: {_counts(event)}")

    def _slow_begin(self, t: float, event: Event) -> None:
        node = event.get("node")
        who = "the job" if node is None else f"node {node}"
        self._moment(t, f"{who} slows every step down {event['factor']:g}-fold")

    def _slow_end(self, t: float, event: Event) -> None:
        self._moment(t, "the slow-down is over")

    # --- the end

    def _job_end(self, t: float, event: Event) -> None:
        if self.stretch is not None:
            self._span(t, "save" if self.stalls else "lost")
            self.stretch.end_s = t
        else:
            self._span(t, self._down())
        if self.start is not None:
            self._close_start()
        kept = event.get("kept_step")
        if event["outcome"] != "completed" and kept is not None:
            rework_s = self._roll_back(math.floor(kept))
            if self.incident is not None:
                self.incident.steps_lost = max(0, self.incident.done - math.floor(kept))
                self.incident.rework_s = rework_s
        end = End(t, event["outcome"], event.get("reason") or None, event.get("step"), kept)
        self.tale.chapters.append(end)

    def finish(self, t: float) -> None:
        """Close a log that ends before its job does."""
        if not self.tale.chapters or not isinstance(self.tale.chapters[-1], End):
            if self.start is not None:
                self._close_start()
            self._span(t, "lost" if self.stretch is not None else self._down())
            self.tale.chapters.append(End(t, "cut", "the log ends here", self.done, None))


def _counts(event: Event) -> str:
    pools: list[tuple[str, Any]] = [
        (name, event.get(name)) for name in ("working", "hot", "cold", "repair", "retired")
    ]
    return ", ".join(f"{count} {name}" for name, count in pools if count or name == "working")
