"""The SimPy driver: it waits, it owns the resources, it writes the story.

What happens at a fault, a timer, a save or a free node is decided by the rules (failures, checkpoint, cluster,
recovery); this module gives them a clock. Training steps are never events: the loop sleeps to its next save,
scheduled fault or end, and whatever comes between wakes it. One run costs a few SimPy events a save and a fault,
whatever the number of steps or GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import simpy

from sim import checkpoint, cluster, codes, failures, params
from sim.recovery import base, state
from sim.sampling import chance, draw
from sim.scenario import Scenario

Wait = Generator[simpy.Event, Any, Any]

NODES, PACE, LIMIT = "nodes", "pace", "limit"  # signals to the job besides faults


class RunTooLong(Exception):
    """A run that writes more events than `limits.max_events`."""


@dataclass
class Fault:
    """One fault on its way to the job."""

    id: int
    symptom: int
    scope: int
    gil_held: bool
    fault_class: int  # -1 = scheduled
    name: str
    nodes: list[int]  # struck nodes of the working set; empty = the job as a whole
    rank: int | None
    takes_node: bool
    repair: bool
    since: float  # when it struck; a silent corruption is noticed later
    noticed: bool = False


@dataclass
class Write:
    """A background write in flight."""

    id: int
    step: float
    begun: float
    starts: float
    ends: float
    process: Any = None


def run(scenario: Scenario, seed: int = 1, replication: int = 0, *, max_events: float = math.inf) -> list[dict[str, Any]]:
    """Simulate one run; its event log (see events.py), in time order.

    Raises
    ------
    RunTooLong
        If the log would exceed `max_events`.
    """
    return simulate_run(params.compile_scenario(scenario), scenario, seed, replication, max_events=max_events)


def simulate_run(
    p: params.Params, scenario: Scenario, seed: int, replication: int, *, max_events: float = math.inf
) -> list[dict[str, Any]]:
    """As `run`, for a scenario that is compiled already."""
    return Run(p, [f.name for f in scenario.failures.classes], seed, replication, max_events, scenario.name).go()


class Run:
    """One run: the job's process, the fault clocks, writes in flight, repairs, spares."""

    def __init__(
        self, p: params.Params, class_names: list[str], seed: int, replication: int, max_events: float, name: str
    ) -> None:
        self.p, self.seed, self.replication, self.names = p, seed, replication, class_names
        self.key = (seed, replication)
        self.env = simpy.Environment()
        self.log: list[dict[str, Any]] = []
        self.max_events = max_events
        self.run_name = f"{name}/{seed}/{replication}"
        all_nodes = p.nodes + p.hot + p.cold
        self.nodes = cluster.Nodes([0] * all_nodes, [0] * all_nodes, [0] * p.nodes, [0] * 5, [0] * all_nodes)
        self.sources = failures.Sources(
            [[0.0, 0.0, 0.0, math.inf, 0] for _ in range(2 * p.n_classes)],
            [math.inf] * p.tree_size,
            [0.0] * p.n_units,
            [0.0] * p.n_units,
            [0] * p.n_units,
        )
        self.saved = checkpoint.Checkpoints([0.0] * p.keep, [0.0] * p.keep, [0] * p.keep, [0])
        self.inc: list[float] = [0.0] * state.SIZE
        self.crews = simpy.Resource(self.env, p.crews) if p.crews else None
        self.done = 0.0  # steps of the state in memory
        self.running = False
        self.range_from, self.range_s, self.range_productive_s = 0.0, 0.0, 0.0
        self.next_scheduled = 0
        self.writes: list[Write] = []
        self.sync_write: Write | None = None  # a blocking write that the fault interrupted
        self.held: Write | None = None  # ... and that an atomic section lets finish
        self.durable_count = 0
        self.save_ids = self.fault_ids = 0
        self.provisioning = 0
        self.slow: list[tuple[int, float]] = []  # (node or -1, factor)
        self.corruptions: list[Fault] = []
        self.phase_logged = False
        self.handed_over = False
        self.planned = (-1, math.inf)

    # --- the run ---------------------------------------------------------------------------------------

    def go(self) -> list[dict[str, Any]]:
        """Play the run to its end."""
        p = self.p
        cluster.start_nodes(self.nodes, p)
        failures.start(self.sources, p, *self.key)
        state.clear(self.inc)
        self._emit(
            "run_start",
            nominal_step_s=p.nominal_s,
            steps=int(p.steps),
            start_step=0,
            nodes=p.nodes,
            gpus_per_node=p.gpus_per_node,
            spares={"hot": p.hot, "cold": p.cold},
            source="simulated",
            checkpoint_mode=codes.MODES[p.mode],
            seed=self.seed,
            replication=self.replication,
        )
        self.job = self.env.process(self._job())
        self._rates()
        self.strikes = self.env.process(self._strikes())
        self.env.process(self._limit())
        self.env.run(until=self.job)
        return self.log

    def _emit(self, kind: str, **fields: Any) -> None:
        if len(self.log) >= self.max_events:
            raise RunTooLong(f"the run wrote more than {self.max_events:.0f} events by {self.env.now:.0f} s")
        event = {"v": 1, "t": self.env.now, "wall": None, "run": self.run_name, "rank": None, "node": None, "kind": kind}
        event.update(fields)
        self.log.append(event)

    def _pause(self, until: float) -> Wait:
        """Wait until a time; the signal that woke the job before, else None."""
        env = self.env
        try:
            if until == math.inf:
                yield env.event()
            elif until > env.now:
                yield env.timeout(until - env.now)
        except simpy.Interrupt as interrupt:
            return interrupt.cause
        return None

    def _signal(self, cause: Any) -> None:
        if self.job.is_alive and self.job is not self.env.active_process:
            self.job.interrupt(cause)

    def _limit(self) -> Wait:
        yield self.env.timeout(self.p.max_wall_s)
        self._signal(LIMIT)

    def _job(self) -> Wait:
        self._emit("job_start")
        signal = yield from self._first_start()
        while True:
            if signal is None:
                signal = yield from self._train()
                if signal is None:
                    self._end("completed", "", self.p.steps)
                    return
            if signal == LIMIT:
                self._flush_range()
                self._end("censored", "limits.max_wall reached", self._kept())
                return
            signal = yield from self._incident(signal)
            if signal is not None and signal != LIMIT:
                self._end("failed", codes.REASONS[int(self.inc[state.REASON])], self._kept())
                return

    def _kept(self) -> float:
        return self.done if self.p.mode == codes.IDEAL else checkpoint.kept_step(self.saved)

    def _end(self, outcome: str, reason: str, kept: float) -> None:
        self._emit("job_end", outcome=outcome, reason=reason, step=_whole(self.done), kept_step=_whole(kept))
        self._emit("run_end")

    def _first_start(self) -> Wait:
        """Start the processes for the first time: what is called `startup`."""
        p = self.p
        rows = [(codes.INIT, params.INIT), (codes.WARMUP, params.WARMUP)]
        if p.first_process_start:
            rows.insert(0, (codes.PROCESS_START, params.PROCESS_START))
        for phase, row in rows:
            lasts = draw(p, row, *self.key, 0, 0)
            if lasts <= 0.0:
                continue
            until = self.env.now + lasts
            self._phase_begin(phase, None, 0)
            signal = yield from self._until_signal(until)
            self._phase_end(phase, None, 0, cut=signal is not None)
            if signal is not None:
                return signal
        self._resume()
        return None

    def _until_signal(self, until: float) -> Wait:
        """Wait for a time, deaf to all but faults and the limit."""
        while True:
            signal = yield from self._pause(until)
            if signal is None or signal == LIMIT or isinstance(signal, Fault):
                return signal

    # --- training --------------------------------------------------------------------------------------

    def _pace(self) -> float:
        """Return the present time of a step [s]: the slowest rank's, longer while a write is in flight."""
        pace = self.p.pace_s
        if self.slow:
            pace *= max(factor for _, factor in self.slow)
        if self.writes:
            pace *= self.p.async_factor
        return pace

    def _train(self) -> Wait:
        """Run the loop until the work is done (None) or a signal stops it."""
        p = self.p
        while True:
            save_at = checkpoint.next_save(p, self.done, p.steps)
            target = min(save_at, p.steps)
            scheduled = self.next_scheduled < len(p.scheduled_step)
            if scheduled:
                target = min(target, max(p.scheduled_step[self.next_scheduled], self.done))
            signal = yield from self._run_to(target)
            if signal is not None:
                return signal
            if scheduled and self.done >= p.scheduled_step[self.next_scheduled]:
                return self._scheduled_fault()
            if self.done >= save_at:
                signal = yield from self._save()
                if signal is not None:
                    return signal
            if self.done >= p.steps:
                signal = yield from self._drain()
                return signal

    def _run_to(self, target: float) -> Wait:
        while self.done < target:
            begin, pace = self.env.now, self._pace()
            signal = yield from self._pause(begin + (target - self.done) * pace)
            elapsed = self.env.now - begin
            gained = target - self.done if signal is None else min(elapsed / pace, target - self.done)
            self.done = target if signal is None else self.done + gained
            self.range_s += elapsed
            self.range_productive_s += gained * self.p.step_productive_s
            if signal == LIMIT or isinstance(signal, Fault):
                self._flush_range()
                return signal
        return None

    def _flush_range(self) -> None:
        """Write the steps since the last save, resume or flush as one record."""
        if self.range_s > 0.0:
            whole = math.floor(self.done + 1e-9)
            part = max(0.0, self.done - whole)
            fields: dict[str, Any] = {
                "first": math.floor(self.range_from + 1e-9) + 1,
                "last": whole,
                "dur_s": self.range_s,
                "slow_s": max(0.0, self.range_s - self.range_productive_s),
            }
            if part > 1e-9:
                fields["part"] = part
            self._emit("step", **fields)
        self.range_from, self.range_s, self.range_productive_s = self.done, 0.0, 0.0

    def _scheduled_fault(self) -> Fault:
        p, i = self.p, self.next_scheduled
        self.next_scheduled += 1
        self._flush_range()
        rank, scope, symptom = p.scheduled_rank[i], p.scheduled_scope[i], p.scheduled_symptom[i]
        slot = rank // p.gpus_per_node
        fault = Fault(
            id=self._fault_id(),
            symptom=symptom,
            scope=scope,
            gil_held=p.scheduled_gil_held[i],
            fault_class=-1,
            name="scheduled",
            nodes=[self.nodes.node[s] for s in self._slots_in_scope(scope, slot)],
            rank=rank,
            takes_node=p.scheduled_repair[i] or symptom == codes.NODE_LOSS,
            repair=p.scheduled_repair[i],
            since=self.env.now,
        )
        if fault.takes_node:
            for node in fault.nodes:
                failures.stop_ageing(self.sources, p, node, self.env.now, -1, -1)
        return fault

    def _fault_id(self) -> int:
        self.fault_ids += 1
        return self.fault_ids

    # --- saves -----------------------------------------------------------------------------------------

    def _save(self) -> Wait:
        p, env = self.p, self.env
        self._flush_range()
        if p.publish_next:
            checkpoint.publish(self.saved)
        if p.mode != codes.SYNC and p.on_busy == codes.SKIP and self.writes:
            return None
        self.save_ids += 1
        number, step, begun = self.save_ids, self.done, env.now
        self._emit("save_begin", id=number, step=_whole(step), tier="global")
        if p.mode == codes.SYNC:
            write = Write(number, step, begun, begun, begun + draw(p, params.WRITE, *self.key, number, 0))
            signal = yield from self._until_signal(write.ends)
            if signal is not None:
                self.sync_write = write
                return signal
            self._durable(write)
            return None
        if p.on_busy == codes.WAIT and self.writes:
            signal = yield from self._until_signal(self.writes[-1].ends)
            if signal is None:
                signal = yield from self._until_signal(env.now)  # let the write's own event come first
        else:
            signal = None
        if signal is None:
            stall = draw(p, params.STALL, *self.key, number, 0)
            signal = yield from self._until_signal(env.now + stall)
        if signal is not None:
            self._emit("save_failed", id=number, step=_whole(step), tier="global", reason="fault")
            return signal
        self._emit("save_staged", id=number)
        free_at = self.writes[-1].ends if self.writes else 0.0
        starts = checkpoint.write_begins(env.now, 0.0, free_at)
        write = Write(number, step, begun, starts, starts + draw(p, params.WRITE, *self.key, number, 0))
        self.writes.append(write)
        write.process = env.process(self._background(write))
        return None

    def _background(self, write: Write) -> Wait:
        try:
            yield self.env.timeout(write.ends - self.env.now)
        except simpy.Interrupt:
            return
        if write is self.held:
            self.held = None
        if write in self.writes:
            self.writes.remove(write)
        self._durable(write)
        if self.running and (self.p.async_factor != 1.0 or self.draining):
            self._signal(PACE)

    draining = False

    def _durable(self, write: Write) -> None:
        checkpoint.add_durable(self.saved, self.p, write.step, write.begun)
        self.durable_count += 1
        self._emit("save_durable", id=write.id, step=_whole(write.step), tier="global")

    def _lose(self, write: Write, reason: str) -> None:
        if write.process is not None and write.process.is_alive:
            write.process.interrupt()
        self._emit("save_failed", id=write.id, step=_whole(write.step), tier="global", reason=reason)

    def _drain(self) -> Wait:
        """Wait at the end of the work for the writes in flight."""
        self._flush_range()
        if not self.writes:
            return None
        last = self.writes[-1].id
        self._emit("save_begin", id=last, step=_whole(self.done), tier="global", drain=True)
        self.draining = True
        signal = None
        while self.writes and signal is None:
            signal = yield from self._pause(math.inf)
            if signal == PACE or signal == NODES:
                signal = None
        self.draining = False
        if signal is None:
            self._emit("save_staged", id=last)
        return signal

    # --- incidents -------------------------------------------------------------------------------------

    def _incident(self, fault: Fault) -> Wait:
        """Lead one incident to `resumed` (None), to the job's failure or to the limit (a signal)."""
        p, inc = self.p, self.inc
        phase, until = self._hit(fault)
        while phase != codes.RESUMED:
            if phase == codes.FAILED:
                return "failed"
            if phase == codes.NODE_WAIT and not self._can_fill():
                inc[state.REASON] = codes.OUT_OF_NODES
                self._close_phase(cut=True)
                self._layer_end("failed", codes.REASONS[codes.OUT_OF_NODES])
                return "failed"
            signal = yield from self._pause(until)
            if signal == LIMIT:
                self._close_phase(cut=True)
                return LIMIT
            if isinstance(signal, Fault):
                if phase != codes.DETECT:
                    self._close_phase(cut=True)
                    self._layer_end("cut", codes.SYMPTOMS[signal.symptom])
                elif self.handed_over:
                    self._close_phase(cut=True)
                phase, until = self._hit(signal)
                continue
            event = codes.ON_TIMER
            if signal is not None:
                if phase != codes.NODE_WAIT or cluster.missing(self.nodes, p) > 0:
                    continue
                event = codes.ON_NODES
            phase, until = self._next_phase(phase, event)
        self._layer_end("resumed", "")
        self._resume()
        return None

    def _hit(self, fault: Fault) -> tuple[int, float]:
        """Take a fault's consequences: lost writes, lost nodes; the incident's next phase."""
        p, inc, now = self.p, self.inc, self.env.now
        self._set_running(False)
        node = fault.nodes[0] if fault.nodes else None
        if not fault.noticed:
            self._emit_fault(fault, node, idle=False)
        for write in [w for w in self.writes if not p.survives[fault.symptom]]:
            self.writes.remove(write)
            self._lose(write, "fault")
        if self.held is not None:
            self._lose(self.held, "fault")
            self.held = None
        if fault.takes_node:
            for n in fault.nodes:
                if self.nodes.state[n] == codes.WORKING:
                    self._node_down(n, fault.repair, fault.name)
            self._fill_from_hot()
        struck = -1 if node is None else node
        base.strike(inc, fault.symptom, fault.gil_held, fault.fault_class, struck, fault.takes_node)
        self._observe()
        answer = base.advance(inc, p, codes.ON_FAULT, now, *self.key)
        self.handed_over = False
        if self.sync_write is not None:
            self._settle_sync_write()
        if fault.noticed:
            self._emit("detected", fault=fault.id, by="check")
        return answer

    def _settle_sync_write(self) -> None:
        """Let an atomic section's write go on under in-process restart; else it is lost with the fault."""
        write = self.sync_write
        assert write is not None
        self.sync_write = None
        if self.p.atomic and self.inc[state.LAYER] == codes.IN_PROCESS:
            self.inc[state.WRITE_ENDS] = write.ends
            self.held = write
            write.process = self.env.process(self._background(write))
        else:
            self._lose(write, "fault")

    def _observe(self) -> None:
        usable = checkpoint.newest_usable(self.saved, self._tainted_since()) != checkpoint.STEP0
        state.observe(self.inc, cluster.missing(self.nodes, self.p), usable, self.durable_count)

    def _tainted_since(self) -> float:
        return min((f.since for f in self.corruptions if f.noticed), default=math.inf)

    def _next_phase(self, phase: int, event: int) -> tuple[int, float]:
        """Let the rules say what follows a phase, and log the passage."""
        inc, p = self.inc, self.p
        layer_before = int(inc[state.LAYER])
        self._observe()
        after, until = base.advance(inc, p, event, self.env.now, *self.key)
        if phase == codes.DETECT:
            if self.handed_over:
                self._close_phase()
            elif inc[state.SYMPTOM] not in (codes.SILENT_CORRUPTION, codes.SLOWDOWN):
                self._emit("detected", fault=self.fault_ids, by=codes.DETECTORS[int(inc[state.DETECTOR])])
            self.handed_over = False
            if after != codes.FAILED and layer_before != codes.NO_LAYER:
                self._layer_begin(layer_before)
        else:
            self._close_phase()
            if phase == codes.ABORT:
                if self.held is not None:
                    self._lose(self.held, "fault")
                    self.held = None
        if after == codes.DETECT:  # the layer gave up, or start-up took too long
            self._layer_end("escalated" if inc[state.LAYER] != layer_before else "failed", "gave up", layer_before)
            self.handed_over = True
            if inc[state.DROP_NODE]:
                inc[state.DROP_NODE] = 0.0
                node = int(inc[state.STRUCK_NODE])
                if self.nodes.state[node] == codes.WORKING:
                    failures.stop_ageing(self.sources, p, node, self.env.now, -1, -1)
                    self._node_down(node, len(p.repair_success) > 0, "health_check")
                    self._fill_from_hot()
            if until > self.env.now:
                self._phase_begin(codes.DETECT, int(inc[state.LAYER]), int(inc[state.ATTEMPT]))
        elif after < codes.RESUMED:
            if after == codes.NODE_WAIT:
                self._provision()
            self._phase_begin(after, int(inc[state.LAYER]), int(inc[state.ATTEMPT]))
        return after, until

    def _layer_begin(self, layer: int) -> None:
        self._emit(
            "layer_begin",
            layer=codes.LAYERS[layer],
            attempt=int(self.inc[state.ATTEMPT]),
            incident=int(self.inc[state.NUMBER]),
        )

    def _layer_end(self, outcome: str, reason: str, layer: int | None = None) -> None:
        inc = self.inc
        self._emit(
            "layer_end",
            layer=codes.LAYERS[int(inc[state.LAYER]) if layer is None else layer],
            attempt=int(inc[state.ATTEMPT]),
            incident=int(inc[state.NUMBER]),
            outcome=outcome,
            reason=reason,
        )

    def _phase_begin(self, phase: int, layer: int | None, attempt: int) -> None:
        name = None if layer is None or layer == codes.NO_LAYER else codes.LAYERS[layer]
        self.open_phase = (phase, name, attempt)
        self.phase_logged = True
        self._emit("phase_begin", phase=codes.PHASES[phase], layer=name, attempt=attempt)

    def _phase_end(self, phase: int, layer: str | None, attempt: int, cut: bool = False) -> None:
        self.phase_logged = False
        extra = {"cut": True} if cut else {}
        self._emit("phase_end", phase=codes.PHASES[phase], layer=layer, attempt=attempt, **extra)

    def _close_phase(self, cut: bool = False) -> None:
        if self.phase_logged:
            self._phase_end(*self.open_phase, cut=cut)

    def _resume(self) -> None:
        """Run the loop (again), from the newest checkpoint that holds."""
        if self.p.mode != codes.IDEAL:
            i = checkpoint.newest_usable(self.saved, self._tainted_since())
            begun = -1.0 if i == checkpoint.STEP0 else self.saved.begun[i]
            self.done = checkpoint.restore(self.saved, self._tainted_since())
            # a corruption after the restored state's save is undone with it
            self.corruptions = [f for f in self.corruptions if f.since < begun]
        self._flush_range()
        self.range_from = self.done
        self._set_running(True)
        self._emit("resumed", step=_whole(self.done))

    # --- faults ----------------------------------------------------------------------------------------

    def _set_running(self, running: bool) -> None:
        if running != self.running:
            self.running = running
            if self.p.running_clock:
                self._rates()

    def _rates(self) -> None:
        """Let the fault clocks run as the nodes and the loop now are."""
        count = self.nodes.count
        failures.set_rates(
            self.sources, self.p, self.env.now, self.running, count[codes.WORKING], count[codes.HOT]
        )
        self._replan()

    def _replan(self) -> None:
        s = failures.next_source(self.sources, self.p)
        when = failures.strike_time(self.sources.row[s]) if s >= 0 else math.inf
        if (s, when) != self.planned and hasattr(self, "strikes"):
            if self.strikes.is_alive and self.strikes is not self.env.active_process:
                self.strikes.interrupt()

    def _strikes(self) -> Wait:
        """Let each fault strike when its clock says so."""
        env = self.env
        while True:
            s = failures.next_source(self.sources, self.p)
            when = failures.strike_time(self.sources.row[s]) if s >= 0 else math.inf
            self.planned = (s, when)
            try:
                if when == math.inf:
                    yield env.event()
                else:
                    yield env.timeout(max(0.0, when - env.now))
                    yield env.timeout(0)  # at a tie a save becomes durable first
            except simpy.Interrupt:
                continue
            self._strike(s)

    def _strike(self, source: int) -> None:
        p, src, nodes, now = self.p, self.sources, self.nodes, self.env.now
        c = source // 2
        symptom, scope, per = p.class_symptom[c], p.class_scope[c], p.class_per[c]
        who = failures.victim(src, p, source, *self.key)
        takes_node = p.class_repair[c] or symptom == codes.NODE_LOSS
        node, slots, rank, unit = self._locate(source, who)
        if per != codes.JOB and per != codes.RACK and node == cluster.NOBODY:
            failures.renew(src, p, source, unit, *self.key)
            return
        idle = node != cluster.NOBODY and nodes.state[node] == codes.HOT
        struck = [n for n in (nodes.node[s] for s in slots) if n != cluster.NOBODY]
        leaving = [node] if idle else struck
        own_clock = p.class_tree[c] and per not in (codes.JOB, codes.RACK)
        noticed_later = symptom in (codes.SLOWDOWN, codes.SILENT_CORRUPTION)
        goes_now = takes_node and not noticed_later
        if not (own_clock and goes_now):
            failures.renew(src, p, source, unit, *self.key)
        if goes_now:
            for n in leaving:
                mine = own_clock and n == node
                failures.stop_ageing(src, p, n, now, c if mine else -1, unit if mine else -1)
        fault = Fault(
            id=self._fault_id(),
            symptom=symptom,
            scope=scope,
            gil_held=p.class_gil_held[c],
            fault_class=c,
            name=self.names[c],
            nodes=struck,
            rank=rank,
            takes_node=takes_node,
            repair=p.class_repair[c],
            since=now,
        )
        if idle:
            self._emit_fault(fault, node, idle=True)
            if goes_now:
                self._node_down(node, fault.repair, fault.name)
        elif symptom == codes.SLOWDOWN:
            self._emit_fault(fault, node if struck else None, idle=False)
            self.env.process(self._slow_down(fault, node if struck else -1))
        elif symptom == codes.SILENT_CORRUPTION:
            self._emit_fault(fault, node if struck else None, idle=False)
            self.corruptions.append(fault)
            self.env.process(self._notice(fault))
        else:
            self._signal(fault)

    def _locate(self, source: int, who: float) -> tuple[int, list[int], int | None, int]:
        """Return (node or -1, struck slots, rank, unit number) of a strike."""
        p, nodes = self.p, self.nodes
        c = source // 2
        per, scope, units = p.class_per[c], p.class_scope[c], p.class_units[c]
        if per == codes.JOB:
            return cluster.NOBODY, [], None, 0
        if per == codes.RACK:
            rack = int(who) if p.class_tree[c] else min(int(who * p.racks), p.racks - 1)
            slots = list(range(rack * p.nodes_per_rack, min((rack + 1) * p.nodes_per_rack, p.nodes)))
            slots = slots if scope != codes.JOB else []
            return (nodes.node[slots[0]] if slots else cluster.NOBODY), slots, None, rack
        if p.class_tree[c]:
            unit = int(who)
            node, inside = unit // units, unit % units
        elif source % 2:
            node, unit = cluster.hot_at(nodes, p, who), 0
            inside = 0
        else:
            working = nodes.count[codes.WORKING]
            place = who * working
            node, unit = nodes.node[cluster.slot_at(nodes, p, who)], 0
            inside = min(int((place - int(place)) * units), units - 1)
        slot = nodes.slot[node]
        rank = None if slot == cluster.NOBODY else slot * p.gpus_per_node + (inside if units > 1 else 0)
        slots = [] if slot == cluster.NOBODY else self._slots_in_scope(scope, slot)
        return node, slots, rank, unit

    def _slots_in_scope(self, scope: int, slot: int) -> list[int]:
        p = self.p
        if scope == codes.RACK:
            rack = slot // p.nodes_per_rack
            return list(range(rack * p.nodes_per_rack, min((rack + 1) * p.nodes_per_rack, p.nodes)))
        return [] if scope == codes.JOB else [slot]

    def _emit_fault(self, fault: Fault, node: int | None, idle: bool) -> None:
        self._emit(
            "fault",
            **{
                "id": fault.id,
                "class": fault.name,
                "symptom": codes.SYMPTOMS[fault.symptom],
                "scope": codes.SCOPES[fault.scope],
                "rank": fault.rank,
                "node": node,
                "step": math.floor(self.done + 1e-9),
                "idle": idle,
            },
        )

    def _slow_down(self, fault: Fault, node: int) -> Wait:
        """Make a node (or the whole job: -1) slow for a while; noticed as an incident if the class says how."""
        p, c, env = self.p, fault.fault_class, self.env
        entry = (node, p.class_factor[c])
        self.slow.append(entry)
        self._emit("slow_begin", node=None if node < 0 else node, factor=entry[1])
        self._signal(PACE)
        row = p.class_row0 + 4 * c
        lasts = math.inf if p.class_until_repaired[c] else draw(p, row + params.SLOW_FOR, *self.key, fault.id, 0)
        noticed = draw(p, row + params.CLASS_DETECT, *self.key, fault.id, 0) if p.class_detect[c] else math.inf
        if noticed < lasts:
            yield env.timeout(noticed)
            if entry in self.slow and (node < 0 or self.nodes.slot[node] != cluster.NOBODY):
                self._notice_now(fault)
            lasts -= noticed
        if lasts < math.inf:
            yield env.timeout(lasts)
            if entry in self.slow:
                self._end_slow(entry)

    def _end_slow(self, entry: tuple[int, float]) -> None:
        self.slow.remove(entry)
        self._emit("slow_end", node=None if entry[0] < 0 else entry[0], factor=entry[1])
        self._signal(PACE)

    def _notice(self, fault: Fault) -> Wait:
        """Notice a silent corruption after its law, unless a restart has undone it by then."""
        row = self.p.class_row0 + 4 * fault.fault_class + params.CLASS_DETECT
        yield self.env.timeout(draw(self.p, row, *self.key, fault.id, 0))
        if fault in self.corruptions:
            self._notice_now(fault)

    def _notice_now(self, fault: Fault) -> None:
        fault.noticed = True
        if fault.takes_node:
            for n in fault.nodes:
                if self.nodes.state[n] == codes.WORKING:
                    failures.stop_ageing(self.sources, self.p, n, self.env.now, -1, -1)
        self._signal(fault)

    # --- nodes -----------------------------------------------------------------------------------------

    def _node_down(self, node: int, repair: bool, why: str) -> None:
        cluster.take_out(self.nodes, self.p, node, repair)
        for entry in [e for e in self.slow if e[0] == node]:
            self._end_slow(entry)
        self._emit("node_down", **{"node": node, "why": why, **self._counts()})
        if repair:
            self.env.process(self._repair(node))
        self._rates()

    def _counts(self) -> dict[str, int]:
        return dict(zip(codes.NODE_STATES, self.nodes.count, strict=True))

    def _fill_from_hot(self) -> None:
        p, nodes = self.p, self.nodes
        while cluster.missing(nodes, p) > 0 and nodes.count[codes.HOT] > 0:
            node = cluster.first_in(nodes, p, codes.HOT)
            cluster.seat(nodes, p, node)
            self._emit("node_up", node=node, to="working", **self._counts())
        self._rates()

    def _can_fill(self) -> bool:
        """Return whether nodes to come suffice for the empty slots."""
        return cluster.missing(self.nodes, self.p) <= self.provisioning + self.nodes.count[codes.IN_REPAIR]

    def _provision(self) -> None:
        """Call cold spares for the slots that nothing is on its way to."""
        p, nodes = self.p, self.nodes
        lacking = cluster.missing(nodes, p) - self.provisioning
        for _ in range(min(lacking, nodes.count[codes.COLD] - self.provisioning)):
            self.provisioning += 1
            self.env.process(self._bring_cold())

    def _bring_cold(self) -> Wait:
        number, k = int(self.inc[state.NUMBER]), self.provisioning
        yield self.env.timeout(draw(self.p, params.PROVISION, *self.key, number, k))
        self.provisioning -= 1
        if cluster.missing(self.nodes, self.p) > 0:
            self._arrive(cluster.first_in(self.nodes, self.p, codes.COLD), codes.WORKING, renewed=False)

    def _arrive(self, node: int, to: int, renewed: bool) -> None:
        """Put a node to work, or to the spares."""
        if to == codes.WORKING:
            cluster.seat(self.nodes, self.p, node)
        else:
            cluster.move(self.nodes, node, to)
        if to != codes.COLD:
            failures.start_ageing(self.sources, self.p, node, self.env.now, renewed, *self.key)
        self._emit("node_up", **{"node": node, "to": codes.NODE_STATES[to], **self._counts()})
        self._rates()
        if to == codes.WORKING:
            self._signal(NODES)

    def _repair(self, node: int) -> Wait:
        """Lead a node through the repair stages, one crew at a time where crews are few."""
        p, visit = self.p, self.nodes.visits[node]
        request = self.crews.request() if self.crews is not None else None
        if request is not None:
            yield request
        stage = 0
        while True:
            yield self.env.timeout(draw(p, p.repair_row0 + stage, *self.key, node, visit))
            escalates = p.even_streams[params.REPAIR_ESCALATES]
            last = stage + 1 == len(p.repair_success)
            if last or not chance(p, escalates, *self.key, node, 64 * visit + stage, p.repair_escalate[stage]):
                break
            stage += 1
        cures = p.even_streams[params.REPAIR_CURES]
        cured = chance(p, cures, *self.key, node, visit, p.repair_success[stage])
        if request is not None and self.crews is not None:
            self.crews.release(request)
        renewed = cured and p.renews
        self._arrive(node, cluster.place_for_good_node(self.nodes, p), renewed)


def _whole(step: float) -> float | int:
    return int(step) if step == int(step) else step
