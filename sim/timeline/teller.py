"""Reads an event log of one timeline, event by event, and folds it into the chapters of a tale."""

from __future__ import annotations

import math
from typing import Any

from sim.accounts.event_kinds import LATENT_SYMPTOMS, Event
from sim.timeline.spans import Spans
from sim.timeline.story import Attempt, End, IncidentStory, Phase, Start, Stretch, Struck, struck
from sim.units import format_duration


class Teller(Spans):
    """Hears one event after the other and tells the tale."""

    def __init__(self, run_start: Event, zero: float) -> None:
        super().__init__(run_start)
        self.zero = float(zero)
        self.done = int(run_start.get("start_step") or 0)
        self.start: Start | None = Start(0.0, Attempt(None, 0))
        self.stretch: Stretch | None = None
        self.incident: IncidentStory | None = None
        self.attempt: Attempt | None = self.start.attempt if self.start else None
        self.phases: list[tuple[str, str | None, float]] = []  # open ones, with when they began
        self.stalls: dict[object, float] = {}
        self.latent: dict[object, Struck] = {}
        self.noticed = True

    def hear(self, event: Event) -> None:
        """Take one event, none before the last one."""
        act = getattr(self, f"_{event['kind']}", None)
        if act is not None:
            act(event["t"] - self.zero, event)

    # --- spans

    def _down(self) -> str:
        """Return what a standstill is used for."""
        if self.incident is None:
            return "load" if self.phases and self.phases[-1][0] == "checkpoint_load" else "start"
        if self.phases:
            known = {"checkpoint_load": "load", "node_wait": "node_wait", "detect": "detect"}
            return known.get(self.phases[-1][0], "restart")
        return "restart" if self.noticed else "detect"

    # --- the loop

    def _resumed(self, t: float, event: Event) -> None:
        self._restarting(t)
        self.noticed = True
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
        self.phases.clear()
        self.stretch = Stretch(t, step + 1, t, step)
        self.tale.chapters.append(self.stretch)

    def _step(self, t: float, event: Event) -> None:
        begun = max(t - event["dur_s"], self.mark)
        if self.stretch is None:
            if self.incident is not None and t - event["dur_s"] < self.incident.start_s:
                return  # it ran on while the fault struck
            self._resumed(begun, {"step": event["first"] - 1})  # its `resumed` is not in the log
        for save in list(self.stalls):  # their ends are not in the log
            self._unstall(begun, {"id": save})
        span = self._span(t, "kept")
        self.done = event["last"]
        if span is not None:
            self._ran(span, event["first"], event["last"], event.get("part", 0.0))
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

    def _fault(self, t: float, event: Event) -> None:
        fault = struck(event, t)
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
        incident = self._open(t)
        self.phases.clear()
        incident.faults.append(fault)
        incident.order.append(fault)

    def _restarting(self, t: float) -> None:
        """See that a restart is under way; without a fault in the log, the loop stopped after its last sign of life."""
        if self.stretch is not None:
            incident = self._open(t if self.stalls else max(self.mark, self.stretch.start_s))
            incident.order.append("the loop has stopped; the log knows of no fault")
            self.noticed = False

    def _open(self, t: float) -> IncidentStory:
        """Return the incident under way; open one at t, where the loop stops, if there is none."""
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
        return self.incident

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
            self._restarting(t)
            self._span(t, self._down())
        self.noticed = True
        known = self.incident.faults if self.incident is not None else []
        for one in known:
            if one.id == event.get("fault") or (event.get("fault") is None and one is known[-1]):
                one.noticed_after_s, one.noticed_by = t - one.t_s, event.get("by")

    def _abort(self, t: float, event: Event) -> None:
        self._restarting(t)
        self._span(t, self._down())
        self.noticed = True

    def _job_start(self, t: float, event: Event) -> None:
        self._restarting(t)
        self.noticed = True  # whoever starts it again has; when, the log does not know
        self._span(t, self._down())

    def _layer_begin(self, t: float, event: Event) -> None:
        self._restarting(t)
        self._span(t, self._down())
        self.noticed = True
        incident = self._open(t)
        self.attempt = Attempt(event["layer"], event["attempt"])
        incident.attempts.append(self.attempt)
        incident.order.append(self.attempt)

    def _layer_end(self, t: float, event: Event) -> None:
        self._span(t, self._down())
        if self.attempt is not None:
            self.attempt.outcome, self.attempt.reason = event["outcome"], event.get("reason") or None

    def _phase_begin(self, t: float, event: Event) -> None:
        self._restarting(t)
        self._span(t, self._down())
        self.noticed = True
        self.phases.append((event["phase"], event["layer"], t))

    def _phase_end(self, t: float, event: Event) -> None:
        self._span(t, self._down())
        key = event["phase"], event["layer"]
        at = next((i for i in reversed(range(len(self.phases))) if self.phases[i][:2] == key), None)
        if at is None:
            return
        phase = Phase(key[0], t - self.phases.pop(at)[2], bool(event.get("cut")))
        if phase.name == "detect" and self.incident is not None:
            lasted = format_duration(phase.dur_s)
            self.incident.order.append(f"the end of its processes is noticed after {lasted}")
        elif self.attempt is not None:
            self.attempt.phases.append(phase)

    # --- nodes

    def _moment(self, t: float, text: str) -> None:
        if self.incident is not None:
            self.incident.order.append(text)
        elif self.stretch is not None:
            self.stretch.moments.append((t, text))

    def _node_down(self, t: float, event: Event) -> None:
        if event["node"] is None:
            self._moment(t, f"the nodes are given back ({event['why']})")
            return
        self._moment(t, f"node {event['node']} leaves ({event['why']}): {_counts(event)}")

    def _node_up(self, t: float, event: Event) -> None:
        if event["node"] is None:
            self._moment(t, "nodes for all are there")
            return
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
        """Close a log that ends at t, before its job does."""
        t -= self.zero
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
