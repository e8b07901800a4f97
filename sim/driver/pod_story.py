"""What an incident led by pods looks like in the log: the job along its last pod, and every pod for itself.

Which pod is ready last is known only when all are, so the job's phases are written into the log at the end of the
incident. Every pod's own phases are there too, with the rank of its first GPU.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sim import cluster, codes
from sim.driver.story import LIMIT, Fault
from sim.recovery import pods, state

if TYPE_CHECKING:
    from sim.engine import Job

LAYER = codes.LAYERS[codes.KUBERNETES]
MOST_ROWS = 256
"""Pods that tell their own phases; of more, these first ones, the last one ready and those struck meanwhile."""
Segment = tuple[int, float, float]
"""(phase, begin, end)"""
Look = tuple[list[int], list[float], int]
Cut = tuple[float, "dict[str, Any] | None"]


class PodStory:
    """One incident as its pods go through it."""

    def __init__(self, job: Job, all_pods: pods.Pods, first_fault: int, seen: bool) -> None:
        """`seen`: who led before, or who looked, has noticed already what opened the incident."""
        self.job, self.story, self.pods = job, job.story, all_pods
        self.first_fault, self.seen = first_fault, seen
        self.opened = self.story.env.now
        self._first_record = len(self.story.log)
        self._history: list[list[Segment]] = [[] for _ in all_pods.state]
        self._faults: list[tuple[float, dict[str, Any]]] = []
        self._entries: list[float] = []

    def look(self) -> Look:
        """Return what `note` compares with."""
        return list(self.pods.state), list(self.pods.since), int(self.pods.job[pods.ENTRIES])

    def note(self, before: Look) -> None:
        """Keep the stretches that have ended since the look, and rank 0's entries into the training function."""
        now = self.story.env.now
        states, since, entries = before
        for pod, (was, begun) in enumerate(zip(states, since, strict=True)):
            changed = self.pods.state[pod] != was or self.pods.since[pod] != begun
            if changed and was != pods.RUN and now > begun:
                self._history[pod].append((pods.PHASE_OF[was], begun, now))
        self._entries += [now] * (int(self.pods.job[pods.ENTRIES]) - entries)

    @property
    def joined(self) -> int:
        """Count the faults that have joined the incident."""
        return len(self._faults)

    def fault(self, fault: Fault) -> None:
        """Keep a fault that joins the incident; of one that is noticed now, only that."""
        record = {"id": fault.id} if fault.noticed else self.job.strikes.record(fault)
        self._faults.append((self.story.env.now, record))

    def end(self, outcome: str) -> None:
        """Write the incident into the log, in order of time; `outcome`: resumed, failed or the limit."""
        now = self.story.env.now
        for pod, was in enumerate(self.pods.state):
            if was != pods.RUN and now > self.pods.since[pod]:
                self._history[pod].append((pods.PHASE_OF[was], self.pods.since[pod], now))
        last = int(self.pods.job[pods.LAST]) if outcome == "resumed" else 0
        log = self.story.log
        others = log[self._first_record :]
        del log[self._first_record :]
        self._tell_job(_merged(self._history[last]), outcome)
        job = log[self._first_record :]
        del log[self._first_record :]
        for pod in self._rows(last):
            segments = self._history[pod]
            node = self.job.pool.nodes.node[pod]
            place = {"rank": pod * self.job.p.gpus_per_node, "node": None if node == cluster.NOBODY else node}
            for phase, begin, end in _merged(segments):
                fields = {"phase": codes.PHASES[phase], "layer": LAYER, "attempt": 1, **place}
                self._record(begin, "phase_begin", fields)
                self._record(end, "phase_end", fields)
        of_pods = sorted(log[self._first_record :], key=lambda e: (e["t"], e["kind"] == "phase_begin"))
        log[self._first_record :] = sorted([*_told_with(job, others), *of_pods], key=lambda e: float(e["t"]))

    def _rows(self, last: int) -> list[int]:
        """Return the pods that tell their own phases: all, or where that would be too many a choice."""
        n = len(self._history)
        if n <= MOST_ROWS:
            return list(range(n))
        struck = [int(r["rank"]) // self.job.p.gpus_per_node for _, r in self._faults if r.get("rank") is not None]
        return sorted({*range(MOST_ROWS), last, *struck})

    # --- the job

    def _tell_job(self, segments: list[Segment], outcome: str) -> None:
        """Tell the job's own phases: those of one pod, cut where a fault joins or rank 0 has to enter once more."""
        self._attempt, self._open = int(self.job.inc[state.ATTEMPT]), False
        unseen = not self.seen and bool(segments) and segments[0][0] == codes.DETECT
        if not unseen:
            if not self.seen:
                self._detected(self.opened, self.first_fault, codes.BY_MONITOR)
            self._begin_layer(self.opened)
        cuts: list[Cut] = [*self._faults, *((t, None) for t in self._entries[1:])]
        cuts.sort(key=lambda cut: cut[0])
        late = 0  # entries before the job's last pod has noticed anything
        for phase, begin, end in segments:
            while cuts and cuts[0][0] <= begin:
                late += self._cut(*cuts.pop(0))
            if self._open:
                self._phase(begin, "phase_begin", phase)
            while cuts and cuts[0][0] < end:
                t, record = cuts.pop(0)
                if self._open:
                    self._phase(t, "phase_end", phase, cut=record is not None)
                late += self._cut(t, record)
                if self._open:
                    self._phase(t, "phase_begin", phase)
            if self._open:
                struck = bool(cuts) and cuts[0][0] == end and cuts[0][1] is not None
                self._phase(end, "phase_end", phase, cut=struck)
            elif end < self.story.env.now or outcome == "resumed":
                self._detected(end, self.first_fault, int(self.pods.job[pods.FOUND_BY]))
                self._begin_layer(end)
                for _ in range(late):
                    self._cut(end, None)
        for cut in cuts:
            self._cut(*cut)
        if self._open:
            reason = codes.REASONS[int(self.job.inc[state.REASON])] if outcome == "failed" else ""
            how = "cut" if outcome == LIMIT else outcome
            self._end_layer(self.story.env.now, how, reason)
        self.job.inc[state.ATTEMPT] = self._attempt

    def _cut(self, t: float, record: dict[str, Any] | None) -> int:
        """Tell a fault that joins (its record), or one more entry of rank 0 (none); 1 if that has to wait."""
        if record is not None:
            by_check = "symptom" not in record  # it struck before, and is only noticed now
            if not by_check:
                self._record(t, "fault", record)
                self.first_fault = int(record["id"])
            if by_check or self._open:
                self._detected(t, int(record["id"]), codes.BY_CHECK if by_check else codes.BY_MONITOR)
        elif self._open:
            self._end_layer(t, "failed", "rank 0 enters the training function once more")
            self._begin_layer(t)
        return int(record is None and not self._open)

    def _phase(self, t: float, kind: str, phase: int, cut: bool = False) -> None:
        fields = {"phase": codes.PHASES[phase], "layer": LAYER, "attempt": self._attempt}
        self._record(t, kind, fields | ({"cut": True} if cut else {}))

    def _begin_layer(self, t: float) -> None:
        self._attempt, self._open = self._attempt + 1, True
        self._record(t, "layer_begin", self._named())

    def _end_layer(self, t: float, outcome: str, reason: str) -> None:
        self._record(t, "layer_end", self._named() | {"outcome": outcome, "reason": reason})

    def _named(self) -> dict[str, Any]:
        return {"layer": LAYER, "attempt": self._attempt, "incident": int(self.job.inc[state.NUMBER])}

    def _detected(self, t: float, fault: int, by: int) -> None:
        self._record(t, "detected", {"fault": fault, "by": codes.DETECTORS[by]})

    def _record(self, t: float, kind: str, fields: dict[str, Any]) -> None:
        self.story.emit(kind, **{**fields, "t": t})


def _merged(segments: list[Segment]) -> list[Segment]:
    """Join neighbours of the same phase."""
    merged: list[Segment] = []
    for phase, begin, end in segments:
        if (
            merged
            and merged[-1][0] == phase
            and math.isclose(merged[-1][2], begin, rel_tol=1e-12, abs_tol=1e-9)
        ):
            merged[-1] = (phase, merged[-1][1], end)
        else:
            merged.append((phase, begin, end))
    return merged


def _told_with(job: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put what else happened among the job's events: at one instant, after the fault that brought it."""
    told = list(job)
    place = 0
    for event in others:
        t = event["t"]
        while place < len(told) and told[place]["t"] < t:
            place += 1
        after_fault = [i for i in range(place, len(told)) if told[i]["t"] == t and told[i]["kind"] == "fault"]
        told.insert(after_fault[-1] + 1 if after_fault else place, event)
        place = after_fault[-1] + 2 if after_fault else place + 1
    return told
