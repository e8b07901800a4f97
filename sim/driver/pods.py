"""Kubernetes under SimPy: the pods' rules get a clock, faults that join them, and nodes for those that lost theirs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sim import cluster, codes, params
from sim.driver.pod_story import PodStory
from sim.driver.story import LIMIT, Fault, Wait
from sim.recovery import kubernetes, pod_ends, pods, state
from sim.sampling import draw

if TYPE_CHECKING:
    from sim.engine import Job


class PodRestarts:
    """The pods of one run and the incidents they go through."""

    def __init__(self, job: Job) -> None:
        self.job, self.story, self.p = job, job.story, job.p
        n = self.p.nodes if self.p.layer_on[codes.KUBERNETES] else 0  # as many lists of a million are slow
        self.pods = pods.blank(n)
        self._nodes = list(job.pool.nodes.node[:n])  # where each pod was when last looked at
        if n > 0:
            kubernetes.start_pods(self.pods, self.p, 0.0)

    def lead(self, faults: Sequence[Fault]) -> Wait:
        """Lead an incident to its end: None when the loop can run, "failed", or the limit.

        `faults` opened it; none: a layer below gave up, and every container ends.
        """
        story, job = self.story, self.job
        seen = not faults or any(fault.noticed for fault in faults)
        self.telling = PodStory(job, self.pods, faults[-1].id if faults else 0, seen)
        job.saves.reach(codes.KUBERNETES)
        kubernetes.open_incident(self.pods, self.p)
        self._open(faults)
        while True:
            now = story.env.now
            self.pods.job[pods.LOAD_NEEDED] = job.saves.next_load()[0] + 1
            before = self.telling.look()
            status, until = kubernetes.advance_pods(self.pods, self.p, now, *story.key)
            self.telling.note(before)
            if self.pods.state[0] in (pods.READ, pods.WARM) and self.pods.since[0] == now:
                job.saves.choose()
            outcome = self._outcome(status)
            if outcome is None and status == codes.NODE_WAIT and self._give_nodes():
                continue
            if outcome is None:
                signal = yield from story.pause(until)
                if isinstance(signal, Fault):
                    self._join(signal)
                    continue
                if signal != LIMIT:
                    continue
                outcome = LIMIT
            self.telling.end(outcome)
            self._nodes = list(job.pool.nodes.node[: len(self._nodes)])
            return None if outcome == "resumed" else outcome

    def _outcome(self, status: int) -> str | None:
        """Return how the incident has ended; None while it goes on."""
        if status == codes.RESUMED:
            return "resumed"
        if status == codes.FAILED:
            self.job.inc[state.REASON] = codes.BACKOFF_LIMIT
            return "failed"
        if status == codes.NODE_WAIT:
            self.job.pool.call_cold()
            if not self.job.pool.can_fill():
                self.job.inc[state.REASON] = codes.OUT_OF_NODES
                return "failed"
        return None

    # --- faults

    def _open(self, faults: Sequence[Fault]) -> None:
        """Let the faults strike, or the layer below end all containers; first catch up with nodes that changed."""
        before, slots = self.telling.look(), {slot for fault in faults for slot in fault.slots}
        for pod, node in enumerate(self._nodes):
            now_on = self.job.pool.nodes.node[pod]
            if node != now_on and pod not in slots:
                if (
                    faults and now_on != cluster.NOBODY
                ):  # a layer below put a spare there in an earlier incident
                    kubernetes.renew_pod(self.pods, pod, self.story.env.now)
                else:  # the node failed its health check just now
                    self._strike_pod(pod, codes.PROCESS_EXIT, leaves=True)
        for fault in faults:
            self._strike(fault)
        if not faults:
            self._strike_pod(-1, codes.PROCESS_EXIT)
        self.telling.note(before)

    def _join(self, fault: Fault) -> None:
        """Take a fault that strikes while the pods restart."""
        self.telling.fault(fault)
        self.job.saves.strike(fault.symptom, fault.takes_node)
        self.job.strikes.take_out(fault)
        before = self.telling.look()
        self._strike(fault)
        self.telling.note(before)

    def _strike(self, fault: Fault) -> None:
        """Strike the fault's pods; who notices a corruption or a slow node ends all that has loaded its state."""
        if fault.noticed:
            loaded = self.pods.state[0] in (pods.RUN, pods.READ, pods.WARM)
            for pod in fault.slots if fault.takes_node else []:
                self._strike_pod(pod, codes.PROCESS_EXIT, leaves=True)
            if loaded:
                self._strike_pod(-1, codes.PROCESS_EXIT)
            return
        inc, p, c = self.job.inc, self.p, fault.fault_class
        at = (*self.story.key, int(inc[state.NUMBER]), int(inc[state.ATTEMPT]) + self.telling.joined)
        own = c >= 0 and p.class_detect[c]
        detect_s = draw(p, p.class_row0 + 4 * c + params.CLASS_DETECT, *at) if own else -1.0
        human_s = draw(p, params.HUMAN, *at) if p.has_human else math.inf
        for pod in fault.slots or [-1]:
            self._strike_pod(pod, fault.symptom, fault.takes_node, detect_s, human_s)

    def _strike_pod(
        self, pod: int, symptom: int, leaves: bool = False, detect_s: float = -1.0, human_s: float = math.inf
    ) -> None:
        now, key = self.story.env.now, self.story.key
        pod_ends.strike_pods(self.pods, self.p, pod, symptom, leaves, detect_s, human_s, now, *key)

    # --- nodes

    def _give_nodes(self) -> bool:
        """Let evicted pods start on the nodes that sit in their places by now; whether any did."""
        given = False
        before, nodes = self.telling.look(), self.job.pool.nodes.node
        for pod in range(self.p.nodes):
            if self.pods.state[pod] == pods.HOMELESS and nodes[pod] != cluster.NOBODY:
                kubernetes.give_node(self.pods, self.p, pod, self.story.env.now, *self.story.key)
                given = True
        self.telling.note(before)
        return given
