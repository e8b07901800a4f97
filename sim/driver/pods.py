"""Kubernetes under SimPy: the pods' rules get a clock, and an incident's story is written along its last pod.

Which pod is ready last is known only when all are, so the job's phases are written into the log at the end of the
incident, along that pod's timeline. Every pod's own phases are there too, with the rank of its first GPU.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sim import cluster, codes
from sim.driver.story import LIMIT, Fault, Wait
from sim.recovery import kubernetes as rules
from sim.recovery import state

if TYPE_CHECKING:
    from sim.engine import Job

# Events of one instant, in the order in which they are told.
_ORDER = {
    kind: place
    for place, kind in enumerate(
        (
            "phase_end",
            "layer_end",
            "fault",
            "save_failed",
            "node_down",
            "node_up",
            "detected",
            "layer_begin",
            "phase_begin",
        )
    )
}
Segment = tuple[int, float, float]  # (phase, begin, end)


class PodRestarts:
    """The pods of one run and the incidents they go through."""

    def __init__(self, job: Job) -> None:
        self.job, self.story, self.p = job, job.story, job.p
        n = self.p.nodes if self.p.layer_on[codes.KUBERNETES] else 0  # as many lists of a million are slow
        self.pods = rules.Pods(
            state=[0] * n,
            until=[0.0] * n,
            since=[0.0] * n,
            begun=[0.0] * n,
            backoffs=[0] * n,
            restarts=[0] * n,
            tries=[0] * n,
            starts=[0] * n,
            spent=[[0.0] * len(codes.PHASES) for _ in range(n)],
            job=[0] * rules.JOB_SIZE,
        )
        if n > 0:
            rules.start_pods(self.pods, self.p, 0.0)

    def lead(self, fault: Fault, whole_job: bool) -> Wait:
        """Lead the incident that `fault` opened: None when the loop can run, "failed", or the limit.

        `whole_job`: every container ends, since a layer below gave up.
        """
        story, pods, key = self.story, self.pods, self.story.key
        self._first_record = len(story.log)
        self._opened = story.env.now
        self._history: list[list[Segment]] = [[] for _ in range(self.p.nodes)]
        self._faults: list[tuple[float, int, dict[str, Any]]] = []
        self._entries: list[float] = []
        self._first_fault = fault.id
        self._seen = whole_job or fault.noticed
        rules.open_incident(pods, self.p, self.job.saves.any_usable())
        self._strike(fault, whole_job)
        outcome: Any = None
        while True:
            now, before = story.env.now, self._view()
            status, until = rules.advance_pods(pods, self.p, now, *key)
            self._note(before, now)
            if status == codes.RESUMED:
                break
            if status == codes.FAILED:
                self.job.inc[state.REASON] = codes.BACKOFF_LIMIT
                outcome = "failed"
                break
            if status == codes.NODE_WAIT:
                if self._give_nodes():
                    continue
                self.job.pool.call_cold()
                if not self.job.pool.can_fill():
                    self.job.inc[state.REASON] = codes.OUT_OF_NODES
                    outcome = "failed"
                    break
            signal = yield from story.pause(until)
            if signal == LIMIT:
                outcome = LIMIT
                break
            if isinstance(signal, Fault):
                self._faults.append((story.env.now, signal.id, self.job.strikes.record(signal)))
                self.job.saves.strike(signal.symptom)
                self.job.strikes.take_out(signal)
                self._strike(signal, False)
        self._tell(outcome)
        return outcome

    def _strike(self, fault: Fault, whole_job: bool) -> None:
        before, now = self._view(), self.story.env.now
        symptom = codes.PROCESS_EXIT if whole_job else fault.symptom
        for pod in ([] if whole_job else fault.slots) or [-1]:
            rules.strike_pods(self.pods, self.p, pod, symptom, fault.takes_node, now, *self.story.key)
        self._note(before, now)

    def _give_nodes(self) -> bool:
        """Let evicted pods start on the nodes that sit in their places by now; whether any did."""
        given = False
        before, now = self._view(), self.story.env.now
        for pod in range(self.p.nodes):
            if self.pods.state[pod] == rules.HOMELESS and self.job.pool.nodes.node[pod] != cluster.NOBODY:
                rules.give_node(self.pods, self.p, pod, now, *self.story.key)
                given = True
        self._note(before, now)
        return given

    def _view(self) -> tuple[list[int], list[float], int]:
        return list(self.pods.state), list(self.pods.since), int(self.pods.job[rules.ENTRIES])

    def _note(self, before: tuple[list[int], list[float], int], now: float) -> None:
        """Keep the stretches that have just ended, and rank 0's entries into the training function."""
        states, since, entries = before
        for pod, (was, begun) in enumerate(zip(states, since, strict=True)):
            if was != rules.RUN and self.pods.state[pod] != was or self.pods.since[pod] != begun:
                if was != rules.RUN and now > begun:
                    self._history[pod].append((rules.PHASE_OF[was], begun, now))
        self._entries += [now] * (int(self.pods.job[rules.ENTRIES]) - entries)

    # --- the story ---------------------------------------------------------------------------------------

    def _tell(self, outcome: Any) -> None:
        """Write the incident into the log: the job along its last pod, and every pod for itself."""
        now = self.story.env.now
        for pod, was in enumerate(self.pods.state):
            if was != rules.RUN and now > self.pods.since[pod]:
                self._history[pod].append((rules.PHASE_OF[was], self.pods.since[pod], now))
        last = int(self.pods.job[rules.LAST]) if outcome is None else 0
        self._tell_job(_merged(self._history[last]), outcome)
        for pod, segments in enumerate(self._history):
            rank, node = pod * self.p.gpus_per_node, self.job.pool.nodes.node[pod]
            for phase, begin, end in _merged(segments):
                fields = {
                    "phase": codes.PHASES[phase],
                    "layer": "kubernetes",
                    "attempt": 1,
                    "rank": rank,
                    "node": node,
                }
                self._record(begin, "phase_begin", fields)
                self._record(end, "phase_end", fields)
        log = self.story.log
        log[self._first_record :] = sorted(
            log[self._first_record :], key=lambda event: (event["t"], _ORDER.get(event["kind"], len(_ORDER)))
        )

    def _tell_job(self, segments: list[Segment], outcome: Any) -> None:
        incident, now = int(self.job.inc[state.NUMBER]), self.story.env.now
        attempt, open_layer = int(self.job.inc[state.ATTEMPT]), False
        entries, faults = list(self._entries[1:]), list(self._faults)
        noticed, unseen = self._first_fault, not self._seen

        def begin_layer(t: float) -> None:
            nonlocal attempt, open_layer
            attempt, open_layer = attempt + 1, True
            self._record(t, "layer_begin", {"layer": "kubernetes", "attempt": attempt, "incident": incident})

        def end_layer(t: float, how: str, why: str) -> None:
            fields = {"layer": "kubernetes", "attempt": attempt, "incident": incident}
            self._record(t, "layer_end", fields | {"outcome": how, "reason": why})

        if self._seen:
            begin_layer(self._opened)
        elif not segments or segments[0][0] != codes.DETECT:
            self._record(
                self._opened, "detected", {"fault": noticed, "by": codes.DETECTORS[codes.BY_MONITOR]}
            )
            unseen = False
            begin_layer(self._opened)
        for phase, begin, end in segments:
            fields = {"phase": codes.PHASES[phase], "layer": "kubernetes", "attempt": attempt}
            if not unseen:
                self._record(begin, "phase_begin", fields)
            while faults and faults[0][0] <= end:
                t, noticed, record = faults.pop(0)
                if unseen:
                    self._record(t, "fault", record)
                    continue
                self._record(t, "phase_end", fields | {"cut": True})
                self._record(t, "fault", record)
                self._record(t, "detected", {"fault": noticed, "by": codes.DETECTORS[codes.BY_MONITOR]})
                self._record(t, "phase_begin", fields)
            while entries and begin < entries[0] <= end and open_layer:
                t = entries.pop(0)
                end_layer(t, "failed", "rank 0 enters the training function once more")
                begin_layer(t)
            if unseen:
                unseen = False
                self._record(end, "detected", {"fault": noticed, "by": codes.DETECTORS[codes.BY_WATCHDOG]})
                begin_layer(end)
            else:
                self._record(end, "phase_end", fields)
        how = {None: "resumed", LIMIT: "cut"}.get(outcome, "failed")
        end_layer(now, how, "" if outcome != "failed" else codes.REASONS[int(self.job.inc[state.REASON])])
        self.job.inc[state.ATTEMPT] = attempt

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
