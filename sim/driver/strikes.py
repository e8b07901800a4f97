"""Fault clocks as a SimPy process: who is struck, what it means for a spare, a slow node, a silent corruption."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import simpy

from sim import cluster, codes, failures, params
from sim.driver.pool import Pool
from sim.driver.saves import Saves
from sim.driver.stops import Stop, Stops
from sim.driver.story import PACE, Fault, Story, Wait, whole
from sim.sampling import draw


@dataclass(eq=False)
class Slow:
    """Slow nodes of the working set (none: the job as a whole)."""

    nodes: list[int]
    factor: float
    over: bool = False


class Strikes:
    """The faults of one run, on their way to the job."""

    def __init__(self, story: Story, class_names: list[str], schedule_names: list[str]) -> None:
        self.story, self.p, self.names, self.schedule_names = story, story.p, class_names, schedule_names
        p = self.p
        self.sources = failures.Sources(
            [[0.0, 0.0, 0.0, math.inf, 0] for _ in range(2 * p.n_classes)],
            [math.inf] * p.tree_size,
            [0.0] * p.n_units,
            [0.0] * p.n_units,
            [0] * p.n_units,
        )
        failures.start(self.sources, p, *story.key)
        self.pool: Pool
        self.saves: Saves
        self.stops: Stops
        self.done_now: Callable[[], float] = float  # steps done at this moment; the engine tells
        self.slow: list[Slow] = []
        self.running = False
        self._planned = (-1, math.inf)
        self._process: simpy.Process | None = None
        self._ids = 0

    def begin(self, pool: Pool, saves: Saves, stops: Stops) -> None:
        """Let the clocks run."""
        self.pool, self.saves, self.stops = pool, saves, stops
        self.rates()
        self._process = self.story.env.process(self._run())

    def set_running(self, running: bool) -> None:
        """Tell whether the loop runs: clocks of kind `running` stand still outside it."""
        if running != self.running:
            self.running = running
            if self.p.running_clock:
                self.rates()

    def rates(self) -> None:
        """Let the fault clocks run as the nodes and the loop now are."""
        count = self.pool.nodes.count
        now = self.story.env.now
        if self.pool.released is not None:
            failures.stand_still(self.sources, self.p, now)
        else:
            working, hot = count[codes.WORKING], count[codes.HOT]
            failures.set_rates(self.sources, self.p, now, self.running, working, hot)
        process = self._process
        if process is not None and process.is_alive and process is not self.story.env.active_process:
            if self._next() != self._planned:
                process.interrupt()

    def _next(self) -> tuple[int, float]:
        s = failures.next_source(self.sources, self.p)
        return s, failures.strike_time(self.sources.row[s]) if s >= 0 else math.inf

    def _run(self) -> Wait:
        """Let each fault strike when its clock says so."""
        env = self.story.env
        while True:
            self._planned = self._next()
            source, when = self._planned
            try:
                yield env.event() if when == math.inf else self.story.last_at(when)
            except simpy.Interrupt:
                continue
            self._strike(source)

    def scheduled(self, i: int) -> Fault:
        """Return fault `i` of the schedule, as it strikes the job."""
        p, nodes = self.p, self.pool.nodes
        rank, scope, symptom = p.scheduled_rank[i], p.scheduled_scope[i], p.scheduled_symptom[i]
        slots = self._slots_in_scope(scope, rank // p.gpus_per_node)
        fault = Fault(
            id=self._id(),
            symptom=symptom,
            scope=scope,
            gil_held=p.scheduled_gil_held[i],
            fault_class=-1,
            name=self.schedule_names[i],
            node=None if scope == codes.JOB else nodes.node[rank // p.gpus_per_node],
            nodes=[nodes.node[s] for s in slots],
            slots=slots,
            rank=rank,
            takes_node=cluster.takes_node(p, symptom, p.scheduled_repair[i]),
            repair=p.scheduled_repair[i],
            since=self.story.env.now,
            draw_at=(0, 0),
        )
        if fault.takes_node:
            self._stop_ageing(fault.nodes)
        return fault

    def ended_by(self, name: str, ends_allocation: bool = False, pause_until: float = 0.0) -> Fault:
        """Return the end of all processes by a timer; it counts as a fault of the job unless it is planned."""
        return Fault(
            id=self._id(),
            symptom=codes.PROCESS_EXIT,
            scope=codes.JOB,
            gil_held=False,
            fault_class=-1,
            name=name,
            node=None,
            nodes=[],
            slots=[],
            rank=None,
            takes_node=False,
            repair=False,
            since=self.story.env.now,
            draw_at=(0, 0),
            ends_allocation=ends_allocation,
            pause_until=pause_until,
        )

    def take_out(self, fault: Fault) -> None:
        """Take the struck nodes out and let hot spares join."""
        if fault.takes_node:
            for node in fault.nodes:
                if self.pool.nodes.state[node] == codes.WORKING:
                    self._down(node, fault.repair, fault.name)
            self.pool.fill_from_hot()

    def take_out_sick(self, node: int) -> None:
        """Take out a node that failed its health check."""
        if self.pool.nodes.state[node] == codes.WORKING:
            self._stop_ageing([node])
            self._down(node, len(self.p.repair_success) > 0, "health_check")
            self.pool.fill_from_hot()

    def log_fault(self, fault: Fault, idle: bool = False) -> None:
        """Write the fault's record."""
        self.story.emit("fault", **self.record(fault, idle))

    def record(self, fault: Fault, idle: bool = False) -> dict[str, Any]:
        """Return the fields of a fault's record."""
        return {
            "id": fault.id,
            "class": fault.name,
            "symptom": codes.SYMPTOMS[fault.symptom],
            "scope": codes.SCOPES[fault.scope],
            "rank": fault.rank,
            "node": fault.node,
            "step": whole(self.done_now()),
            "idle": idle,
            **({"planned": True} if fault.pause_until > 0.0 else {}),
        }

    def _id(self) -> int:
        self._ids += 1
        return self._ids

    def _stop_ageing(self, nodes: list[int]) -> None:
        for node in nodes:
            if self.pool.nodes.state[node] in (codes.WORKING, codes.HOT):
                failures.stop_ageing(self.sources, self.p, node, self.story.env.now, -1, -1)

    def _down(self, node: int, repair: bool, why: str) -> None:
        for slow in [e for e in self.slow if node in e.nodes]:
            slow.nodes.remove(node)
            if not slow.nodes:
                self._end_slow(slow, node)
        self.pool.down(node, repair, why)

    def _strike(self, source: int) -> None:
        p, src, nodes, now = self.p, self.sources, self.pool.nodes, self.story.env.now
        c = source // 2
        symptom, scope, per = p.class_symptom[c], p.class_scope[c], p.class_per[c]
        who = failures.victim(src, p, source, *self.story.key)
        node, slots, rank, unit = self._locate(source, who)
        draw_at = (unit, int(src.row[source][failures.COUNT]))
        shared = per == codes.JOB or per == codes.RACK
        idle = node != cluster.NOBODY and nodes.state[node] == codes.HOT
        struck = [n for n in (nodes.node[s] for s in slots) if n != cluster.NOBODY]
        if not idle and not struck and scope != codes.JOB:  # its nodes are all out: there is nothing to strike
            failures.renew(src, p, source, unit, *self.story.key)
            self.story.pass_over()
            return
        if p.class_warning_s[c] > 0.0:
            failures.renew(src, p, source, unit, *self.story.key)
            leaving = [node] if idle else struck
            comes = now + p.class_warning_s[c]
            self.stops.announce(Stop(comes, lambda: self._take_away(c, leaving, draw_at), told=not idle))
            return
        takes_node = cluster.takes_node(p, symptom, p.class_repair[c])
        goes_now = takes_node and symptom != codes.SLOWDOWN and symptom != codes.SILENT_CORRUPTION
        own_clock = p.class_tree[c] and not shared
        leaving = [node] if idle else struck
        if not (own_clock and goes_now and node in leaving):
            failures.renew(src, p, source, unit, *self.story.key)
        if goes_now:
            for n in leaving:
                mine = own_clock and n == node
                failures.stop_ageing(src, p, n, now, c if mine else -1, unit if mine else -1)
        fault = Fault(
            id=self._id(),
            symptom=symptom,
            scope=scope,
            gil_held=p.class_gil_held[c],
            fault_class=c,
            name=self.names[c],
            node=node if node != cluster.NOBODY and (idle or scope != codes.JOB) else None,
            nodes=struck,
            slots=[s for s in slots if nodes.node[s] != cluster.NOBODY],
            rank=rank,
            takes_node=takes_node,
            repair=p.class_repair[c],
            since=now,
            draw_at=draw_at,
            done=self.done_now(),
        )
        if idle:
            self.log_fault(fault, idle=True)
            if goes_now:
                self._down(node, fault.repair, fault.name)
        elif symptom == codes.SLOWDOWN:
            self.log_fault(fault)
            self.story.env.process(self._slow_down(fault))
        elif symptom == codes.SILENT_CORRUPTION:
            self.log_fault(fault)
            self.saves.corruptions.append(fault)
            self.story.env.process(self._notice(fault))
        else:
            self.story.signal(fault)

    def _take_away(self, c: int, nodes: list[int], draw_at: tuple[int, int]) -> Fault | None:
        """Let a pre-emption come true that was told before: the loss of those of its nodes that the job still has."""
        p, states = self.p, self.pool.nodes.state
        if self.pool.released is not None:
            return None
        working = [n for n in nodes if states[n] == codes.WORKING]
        takes_node = cluster.takes_node(p, p.class_symptom[c], p.class_repair[c])
        losses = []
        for those in ([n] for n in nodes if states[n] == codes.HOT):
            losses.append(self._loss(c, those, takes_node, draw_at))
            self.log_fault(losses[-1], idle=True)
        if working:
            losses.append(self._loss(c, working, takes_node, draw_at))
        if takes_node:
            for loss in losses:
                self._stop_ageing(loss.nodes)
                if not loss.slots:
                    self._down(loss.nodes[0], loss.repair, loss.name)
        return losses[-1] if working else None

    def _loss(self, c: int, nodes: list[int], takes_node: bool, draw_at: tuple[int, int]) -> Fault:
        slots = [slot for slot in (self.pool.nodes.slot[n] for n in nodes) if slot != cluster.NOBODY]
        return Fault(
            id=self._id(),
            symptom=self.p.class_symptom[c],
            scope=self.p.class_scope[c],
            gil_held=False,
            fault_class=c,
            name=self.names[c],
            node=nodes[0],
            nodes=nodes,
            slots=slots,
            rank=slots[0] * self.p.gpus_per_node if slots else None,
            takes_node=takes_node,
            repair=self.p.class_repair[c],
            since=self.story.env.now,
            draw_at=draw_at,
        )

    def _locate(self, source: int, who: float) -> tuple[int, list[int], int | None, int]:
        """Return (node or -1, struck slots, rank, unit number) of a strike."""
        p, nodes = self.p, self.pool.nodes
        c = source // 2
        per, scope, units = p.class_per[c], p.class_scope[c], p.class_units[c]
        if per == codes.JOB:
            if scope == codes.JOB or nodes.count[codes.WORKING] == 0:
                return cluster.NOBODY, [], None, 0
            place = who * nodes.count[codes.WORKING]  # one rate for the whole job, but one victim
            slot = cluster.slot_at(nodes, p, who)
            inside = min(int((place - int(place)) * p.gpus_per_node), p.gpus_per_node - 1)
            rank = slot * p.gpus_per_node + inside
            return nodes.node[slot], self._slots_in_scope(scope, slot), rank, 0
        if per == codes.RACK:
            rack = int(who) if p.class_tree[c] else min(int(who * p.racks), p.racks - 1)
            return cluster.NOBODY, [] if scope == codes.JOB else self._rack(rack), None, rack
        unit, inside = 0, 0
        if p.class_tree[c]:
            unit = int(who)
            node, inside = unit // units, unit % units
        elif source % 2:
            node = cluster.hot_at(nodes, p, who)
        else:
            place = who * nodes.count[codes.WORKING]
            node = nodes.node[cluster.slot_at(nodes, p, who)]
            inside = min(int((place - int(place)) * units), units - 1)
        slot = nodes.slot[node]
        if slot == cluster.NOBODY:
            return node, [], None, unit
        return node, self._slots_in_scope(scope, slot), slot * p.gpus_per_node + inside, unit

    def _slots_in_scope(self, scope: int, slot: int) -> list[int]:
        if scope == codes.RACK:
            return self._rack(slot // self.p.nodes_per_rack)
        return [] if scope == codes.JOB else [slot]

    def _rack(self, rack: int) -> list[int]:
        size = self.p.nodes_per_rack
        return list(range(rack * size, min((rack + 1) * size, self.p.nodes)))

    def _slow_down(self, fault: Fault) -> Wait:
        """Slow the struck nodes (or the whole job) for a while; noticed as an incident if the class says how."""
        p, c, env = self.p, fault.fault_class, self.story.env
        slow = Slow(list(fault.nodes), p.class_factor[c])
        self.slow.append(slow)
        self.story.emit("slow_begin", node=fault.node, factor=slow.factor)
        self.story.signal(PACE)
        row, draw_at = p.class_row0 + 4 * c, (*self.story.key, *fault.draw_at)
        lasts = math.inf if p.class_until_repaired[c] else draw(p, row + params.SLOW_FOR, *draw_at)
        noticed = draw(p, row + params.CLASS_DETECT, *draw_at) if p.class_detect[c] else math.inf
        if noticed < lasts:
            yield env.timeout(noticed)
            yield from self.pool.allocated()
            if not slow.over:
                self._notice_now(fault)
            lasts -= noticed
        if lasts < math.inf:
            yield env.timeout(lasts)
            if not slow.over:
                self._end_slow(slow, fault.node)

    def _end_slow(self, slow: Slow, node: int | None) -> None:
        slow.over = True
        self.slow.remove(slow)
        self.story.emit("slow_end", node=node, factor=slow.factor)
        self.story.signal(PACE)

    def _notice(self, fault: Fault) -> Wait:
        """Notice a silent corruption after its law, unless a restart has undone it by then."""
        row = self.p.class_row0 + 4 * fault.fault_class + params.CLASS_DETECT
        yield self.story.env.timeout(draw(self.p, row, *self.story.key, *fault.draw_at))
        yield from self.pool.allocated()
        if fault in self.saves.corruptions:
            self._notice_now(fault)

    def _notice_now(self, fault: Fault) -> None:
        fault.noticed = True
        if fault.takes_node:
            self._stop_ageing([n for n in fault.nodes if self.pool.nodes.state[n] == codes.WORKING])
        self.story.signal(fault)
