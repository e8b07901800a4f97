"""Nodes as SimPy resources: spares that join, cold ones on their way, repairs and the crews that do them."""

from __future__ import annotations

from collections.abc import Callable

import simpy

from sim import cluster, codes, failures, params
from sim.driver.story import NODES, Story, Wait
from sim.sampling import chance, draw


class Pool:
    """All nodes of one run."""

    def __init__(self, story: Story, sources: failures.Sources, changed: Callable[[], None]) -> None:
        """Call `changed` whenever the working set or the hot spares have changed."""
        self.story, self.p, self.sources, self.changed = story, story.p, sources, changed
        p = self.p
        self.nodes = cluster.Nodes(*([0] * size for size in cluster.sizes(p)))
        cluster.start_nodes(self.nodes, p)
        self.crews = simpy.Resource(story.env, p.crews) if p.crews else None
        self.on_their_way = 0
        self.released: simpy.Event | None = None  # while the job waits in Slurm's queue: comes when it is over
        self._called = 0

    def missing(self) -> int:
        """Return how many slots of the job stand empty."""
        return cluster.missing(self.nodes, self.p)

    def can_fill(self) -> bool:
        """Return whether the nodes to come suffice for the empty slots."""
        return bool(self.missing() <= self.on_their_way + self.nodes.count[codes.IN_REPAIR])

    def down(self, node: int, repair: bool, why: str) -> None:
        """Take a node out, whose units have stopped ageing already; begin its repair."""
        cluster.take_out(self.nodes, self.p, node, repair)
        self.story.emit("node_down", node=node, why=why, **self._counts())
        if repair:
            self.story.env.process(self._repair(node))
        self.changed()

    def release(self) -> None:
        """Give all nodes of the job, hot spares included, back to Slurm: they do not age and are not paid for."""
        if self.released is None:
            self.released = self.story.env.event()
            self.story.emit("node_down", node=None, why="requeue", **self._counts())
            self.changed()

    def take_back(self) -> None:
        """Have the nodes again that were given back."""
        if self.released is not None:
            over, self.released = self.released, None
            self.story.emit("node_up", node=None, to="working", **self._counts())
            over.succeed()
            self.changed()

    def allocated(self) -> Wait:
        """Wait until the job has its nodes."""
        while self.released is not None:
            yield self.released

    def replace_lost(self) -> None:
        """Put other nodes of the partition in the places of those lost for good that nothing else will fill."""
        self.call_cold()
        lacking = self.missing() - self.on_their_way - self.nodes.count[codes.IN_REPAIR]
        for _ in range(min(lacking, self.nodes.count[codes.GONE])):
            self._arrive(cluster.first_in(self.nodes, self.p, codes.GONE), codes.WORKING, renewed=True)

    def fill_from_hot(self) -> None:
        """Let hot spares take the empty slots."""
        while self.missing() > 0 and self.nodes.count[codes.HOT] > 0:
            node = cluster.first_in(self.nodes, self.p, codes.HOT)
            cluster.seat(self.nodes, self.p, node)
            self.story.emit("node_up", node=node, to="working", **self._counts())
        self.changed()

    def call_cold(self) -> None:
        """Call cold spares for the slots that nothing is on its way to."""
        lacking = self.missing() - self.on_their_way
        for _ in range(min(lacking, self.nodes.count[codes.COLD] - self.on_their_way)):
            self.on_their_way += 1
            self._called += 1
            self.story.env.process(self._bring_cold(self._called))

    def _bring_cold(self, call: int) -> Wait:
        yield self.story.env.timeout(draw(self.p, params.PROVISION, *self.story.key, call, 0))
        self.on_their_way -= 1
        if self.missing() > 0:
            self._arrive(cluster.first_in(self.nodes, self.p, codes.COLD), codes.WORKING, renewed=False)

    def _arrive(self, node: int, to: int, renewed: bool) -> None:
        """Put a node to work, or to the spares."""
        if to == codes.WORKING:
            cluster.seat(self.nodes, self.p, node)
        else:
            cluster.move(self.nodes, node, to)
        if to != codes.COLD:
            failures.start_ageing(self.sources, self.p, node, self.story.env.now, renewed, *self.story.key)
        elif renewed:
            failures.renew_resting(self.sources, self.p, node)
        self.story.emit("node_up", node=node, to=codes.NODE_STATES[to], **self._counts())
        self.changed()
        if to == codes.WORKING:
            self.story.signal(NODES)

    def _repair(self, node: int) -> Wait:
        """Lead a node through the repair stages; it waits for a crew where crews are few."""
        p, key, visit = self.p, self.story.key, self.nodes.visits[node]
        request = self.crews.request() if self.crews is not None else None
        if request is not None:
            yield request
        escalates, cures = p.even_streams[params.REPAIR_ESCALATES], p.even_streams[params.REPAIR_CURES]
        stage = 0
        while True:
            yield self.story.env.timeout(draw(p, p.repair_row0 + stage, *key, node, visit))
            last = stage + 1 == len(p.repair_success)
            if last or not chance(p, escalates, *key, node, 16 * visit + stage, p.repair_escalate[stage]):
                break
            stage += 1
        cured = chance(p, cures, *key, node, visit, p.repair_success[stage])
        if request is not None and self.crews is not None:
            self.crews.release(request)
        self._arrive(node, cluster.place_for_good_node(self.nodes, p), cured and p.renews)

    def _counts(self) -> dict[str, int]:
        counts = dict(zip(codes.NODE_STATES, self.nodes.count, strict=True))
        if self.released is not None:
            counts["cold"] += counts["working"] + counts["hot"]
            counts["working"] = counts["hot"] = 0
        return counts
