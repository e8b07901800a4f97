"""The SimPy driver: it waits, it owns the resources, it writes the story.

What happens at a fault, a timer, a save or a free node is decided by the rules (failures, checkpoint, cluster,
recovery); this module and its parts in sim/driver give them a clock. Training steps are never events: the loop sleeps
to its next save, scheduled fault or end, and whatever comes between wakes it. One run costs a few SimPy events a save
and a fault, whatever the number of steps or GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sim import checkpoint, codes, params
from sim.driver.attempts import Attempts
from sim.driver.pods import PodRestarts
from sim.driver.pool import Pool
from sim.driver.saves import Saves
from sim.driver.slurm import Allocations
from sim.driver.stops import Stops
from sim.driver.story import LIMIT, WARNED, Fault, RunTooLong, Story, Wait, whole
from sim.driver.strikes import Strikes
from sim.recovery import base, state
from sim.sampling import draw
from sim.scenario import Scenario

__all__ = ["RunTooLong", "run", "simulate_run"]


def run(
    scenario: Scenario, seed: int = 1, replication: int = 0, *, max_events: float | None = None
) -> list[dict[str, Any]]:
    """Simulate one run; its event log (see events.py), in time order.

    Raises
    ------
    RunTooLong
        If the log would exceed `max_events` (default: the scenario's `limits.max_events`).
    """
    return simulate_run(params.compile_scenario(scenario), scenario, seed, replication, max_events=max_events)


def simulate_run(
    p: params.Params, scenario: Scenario, seed: int, replication: int, *, max_events: float | None = None
) -> list[dict[str, Any]]:
    """As `run`, for a scenario that is compiled already."""
    limit = scenario.limits.max_events if max_events is None else max_events
    story = Story(p, seed, replication, f"{scenario.name}/{seed}/{replication}", limit)
    scheduled = [f.name or "scheduled" for f in params.schedule_in_order(scenario)]
    names = [f.name for f in scenario.failures.classes]
    return Job(story, names, scheduled, scenario.checkpoint.tier_names()).go()


class Job:
    """The training job: its first start, its loop, its incidents and its end."""

    def __init__(
        self, story: Story, class_names: list[str], schedule_names: list[str], tier_names: Sequence[str]
    ) -> None:
        self.story, self.p = story, story.p
        self.saves = Saves(story, tier_names)
        self.strikes = Strikes(story, class_names, schedule_names)
        self.strikes.done_now = self.done_now
        self.pool = Pool(story, self.strikes.sources, self.strikes.rates)
        self.pods = PodRestarts(self)
        self.stops = Stops(self)
        self.allocations = Allocations(self)
        self.in_loop = False  # the loop runs or saves: a warning is heard
        self.fresh: list[Fault] = []  # the incident's faults that no layer has tried to absorb yet
        self.inc: list[float] = [0.0] * state.SIZE
        state.clear(self.inc)
        self.attempts = Attempts(story, self.inc, self.saves)
        self.done = 0.0  # steps of the state in memory
        self.going: tuple[float, float, float] | None = None  # (since, pace, steps to go) while steps are run
        self.range_from, self.range_s, self.range_productive_s, self.range_gained = 0.0, 0.0, 0.0, 0.0
        self.next_scheduled = 0
        self.handed_over = False  # the detection under way is one layer's of another layer's end
        self.detecting = 0  # the fault that the detection under way will notice
        self.joining: list[Fault] = []  # further scheduled faults of the same step

    def go(self) -> list[dict[str, Any]]:
        """Play the run to its end."""
        p, story = self.p, self.story
        story.emit(
            "run_start",
            nominal_step_s=p.nominal_s,
            steps=int(p.steps),
            start_step=0,
            nodes=p.nodes,
            gpus_per_node=p.gpus_per_node,
            spares={"hot": p.hot, "cold": p.cold},
            source="simulated",
            checkpoint_mode=codes.MODES[p.mode],
            seed=story.key[0],
            replication=story.key[1],
        )
        story.job = story.env.process(self._live())
        self.strikes.begin(self.pool, self.saves, self.stops)
        self.allocations.begin()
        self.stops.begin()
        story.env.process(self._limit())
        story.env.run(until=story.job)
        return story.log

    def _limit(self) -> Wait:
        yield self.story.last_at(self.p.max_wall_s)  # a job that ends just now has ended
        self.story.signal(LIMIT)

    def _live(self) -> Wait:
        self.story.emit("job_start")
        signal = yield from self._first_start()
        while True:
            if signal is None:
                signal = yield from self._train()
                if signal is None:
                    self._end("completed", "", self.p.steps)
                    return
            if signal == LIMIT:
                self._end("censored", "limits.max_wall reached", self._kept())
                return
            signal = yield from self._incident(signal)
            if signal is not None and signal != LIMIT:
                self.saves.lose_tiers(codes.PROCESS_EXIT)
                reason = int(self.inc[state.REASON])
                alone = ", and no further layer takes over" if reason > codes.OUT_OF_NODES else ""
                self._end("failed", codes.REASONS[reason] + alone, self._kept())
                return

    def _kept(self) -> float:
        return self.saves.kept(self.done)

    def done_now(self) -> float:
        """Return the steps done at this moment, a part of one included."""
        if self.going is None:
            return self.done
        since, pace, to_go = self.going
        return self.done + min((self.story.env.now - since) / pace, to_go)

    def _end(self, outcome: str, reason: str, kept: float) -> None:
        self.story.emit(
            "job_end", outcome=outcome, reason=reason, step=whole(self.done), kept_step=whole(kept)
        )
        self.story.emit("run_end")

    def _first_start(self) -> Wait:
        """Start the processes for the first time: what is called `startup`.

        The launcher's initial heartbeat timeout holds here as it does in a restart; it ends the processes, which
        counts as a fault.
        """
        p, story = self.p, self.story
        rows = [
            (codes.PROCESS_START, params.PROCESS_START),
            (codes.INIT, params.INIT),
            (codes.WARMUP, params.WARMUP),
        ]
        deadline = story.env.now + p.initial_heartbeat_s
        for phase, row in rows:
            lasts = draw(p, row, *story.key, 0, 0)
            if phase == codes.PROCESS_START and not p.first_process_start:
                deadline -= lasts
            elif lasts > 0.0:
                until = story.env.now + lasts
                self.attempts.phase_begin(phase, codes.NO_LAYER)
                signal = yield from story.pause_for_faults(min(until, deadline))
                if signal is None and until > deadline:
                    signal = self.strikes.ended_by("initial_heartbeat_timeout")
                self.attempts.phase_end(cut=signal is not None)
                if signal is not None:
                    return signal
        self._resume()
        return None

    # --- training --------------------------------------------------------------------------------------

    def _pace(self) -> float:
        """Return the present time of a step [s]: the slowest rank's, longer while a write is in flight."""
        pace = self.p.pace_s
        if self.strikes.slow:
            pace *= max(slow.factor for slow in self.strikes.slow)
        if self.saves.in_flight:
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
            if signal is None and scheduled and self.done >= p.scheduled_step[self.next_scheduled]:
                self._flush_range()
                step = p.scheduled_step[self.next_scheduled]
                while (
                    self.next_scheduled < len(p.scheduled_step)
                    and p.scheduled_step[self.next_scheduled] <= step
                ):
                    self.joining.append(self.strikes.scheduled(self.next_scheduled))
                    self.next_scheduled += 1
                signal = self.joining.pop(0)
            if signal is None and self.done >= save_at:
                self._flush_range()
                signal = yield from self.saves.save(self.done)
            if signal == WARNED or (signal is None and self.stops.heard is not None):
                signal = yield from self.stops.wind_up()
                if signal is None and self.done < p.steps:
                    continue
            if signal is not None:
                return signal
            if self.done >= p.steps:
                self._flush_range()
                signal = yield from self.saves.drain(self.done)
                return signal

    def _run_to(self, target: float) -> Wait:
        env = self.story.env
        while self.done < target:
            begin, pace = env.now, self._pace()
            self.going = (begin, pace, target - self.done)
            signal = yield from self.story.pause(begin + (target - self.done) * pace)
            elapsed = env.now - begin
            self.going = None
            gained = target - self.done if signal is None else min(elapsed / pace, target - self.done)
            self.done = target if signal is None else self.done + gained
            self.range_s += elapsed
            self.range_productive_s += gained * self.p.step_productive_s
            self.range_gained += gained
            if signal == WARNED:  # the step under way is finished first
                return signal
            if signal == LIMIT or isinstance(signal, Fault):
                self._flush_range()
                return signal
        return None

    def finish_step(self) -> Wait:
        """Run to the end of the step under way; the signal that cut it short, else None."""
        signal = WARNED
        while signal == WARNED:
            signal = yield from self._run_to(min(math.ceil(self.done - 1e-9), self.p.steps))
        self._flush_range()
        return signal

    def _flush_range(self) -> None:
        """Write the steps since the last save, resume or flush as one record."""
        if self.range_s > 0.0:
            first, last = whole(self.range_from) + 1, whole(self.done)
            # of the next step, what was run in this time: the first part may be an earlier range's (mode ideal)
            part = min(self.range_gained, max(0.0, self.done - last))
            fields: dict[str, Any] = {
                "first": first,
                "last": last,
                "dur_s": self.range_s,
                "slow_s": max(0.0, self.range_s - self.range_productive_s),
            }
            if part > 1e-9 or last < first:
                fields["part"] = max(part, 1e-15)
            self.story.emit("step", **fields)
        self.range_from, self.range_s, self.range_productive_s, self.range_gained = self.done, 0.0, 0.0, 0.0

    def _resume(self) -> None:
        """Run the loop (again), from the newest checkpoint that holds."""
        self.saves.choose()
        self.done = self.saves.restore(self.done)
        self._flush_range()
        self.stops.heard, self.in_loop = None, True
        self.strikes.set_running(True)
        part = self.done - whole(self.done)
        self.story.emit("resumed", step=whole(self.done), **({"part": part} if part > 0.0 else {}))

    # --- incidents -------------------------------------------------------------------------------------

    def _incident(self, fault: Fault) -> Wait:
        """Lead one incident to `resumed` (None), to the job's failure or to the limit (a signal)."""
        self.saves.loop_stopped_s = self.story.env.now
        self.in_loop = False
        self.fresh.clear()
        phase, until = self._hit(fault)
        while self.joining:
            phase, until = self._hit(self.joining.pop(0))
        while phase != codes.RESUMED:
            if phase == codes.FAILED:
                return "failed"
            if phase == codes.PODS:
                signal = yield from self.pods.lead(self.fresh)
                if signal is None:
                    base.pods_resumed(self.inc, self.p)
                    self._resume()
                return signal
            if phase == codes.NODE_WAIT and until == math.inf and not self.pool.can_fill():
                self.inc[state.REASON] = codes.OUT_OF_NODES
                self.attempts.phase_end(cut=True)
                self.attempts.layer_end("failed", codes.REASONS[codes.OUT_OF_NODES])
                return "failed"
            signal = yield from self.story.pause(until)
            if signal == LIMIT:
                self.attempts.phase_end(cut=True)
                return LIMIT
            if isinstance(signal, Fault):
                self.attempts.phase_end(cut=True)
                if phase != codes.DETECT:
                    why = signal.name if signal.pause_until else codes.SYMPTOMS[signal.symptom]
                    self.attempts.layer_end("cut", why)
                phase, until = self._hit(signal)
                continue
            event = codes.ON_TIMER
            if signal is not None:
                if phase != codes.NODE_WAIT or until < math.inf or self.pool.missing() > 0:
                    continue
                event = codes.ON_NODES
            phase, until = self._next_phase(phase, event)
        self.attempts.layer_end("resumed")
        self._resume()
        return None

    def _hit(self, fault: Fault) -> tuple[int, float]:
        """Take a fault's consequences (lost writes, lost nodes); the incident's next phase and its end."""
        p, inc = self.p, self.inc
        self.fresh.append(fault)
        self.strikes.set_running(False)
        if fault.noticed:
            self.story.emit("detected", fault=fault.id, by=codes.DETECTORS[codes.BY_CHECK])
        else:
            self.strikes.log_fault(fault)
        self.saves.strike(fault.symptom, fault.takes_node)
        self.strikes.take_out(fault)
        node = -1 if fault.node is None else fault.node
        base.strike(inc, fault.symptom, fault.gil_held, fault.fault_class, node, fault.takes_node)
        if fault.ends_allocation:
            base.end_allocation(inc)
        if fault.pause_until > 0.0:
            base.plan(inc, fault.pause_until)
            self.saves.lose_tiers(codes.NODE_LOSS)  # the nodes are down meanwhile
        self._observe()
        noticed_by = inc[state.UNTIL] if inc[state.PHASE] == codes.DETECT else math.inf
        phase, until = base.advance(inc, p, codes.ON_FAULT, self.story.env.now, *self.story.key)
        if until < noticed_by:
            self.detecting, self.handed_over = fault.id, False
        hold = bool(p.atomic and inc[state.LAYER] == codes.IN_PROCESS)
        inc[state.WRITE_ENDS] = self.saves.settle_struck(fault.symptom, fault.takes_node, hold)
        self._drop_sick()
        return phase, until

    def _drop_sick(self) -> None:
        """Take out the node that the rules say failed its health check."""
        if self.inc[state.DROP_NODE]:
            self.inc[state.DROP_NODE] = 0.0
            self.saves.lose_tiers(codes.NODE_LOSS)
            self.strikes.take_out_sick(int(self.inc[state.SUSPECT_NODE]))

    def _observe(self) -> None:
        # without save events every step done is progress, as a new checkpoint is with them
        progress = self.done if self.p.mode == codes.IDEAL else self.saves.durable_count
        state.observe(self.inc, self.pool.missing(), *self.saves.next_load(), progress)

    def _next_phase(self, phase: int, event: int) -> tuple[int, float]:
        """Let the rules say what follows a phase, and log the passage."""
        inc, now = self.inc, self.story.env.now
        layer, attempt, detector = int(inc[state.LAYER]), inc[state.ATTEMPT], int(inc[state.DETECTOR])
        no_load = phase == codes.CHECKPOINT_LOAD and inc[state.LOAD_FAILS] and inc[state.LATE] != codes.TOO_SLOW
        if no_load and not self.p.load_exit:
            self.saves.load_failed()
        if phase == codes.DETECT and layer != codes.NO_LAYER:
            self.saves.reach(layer)
        if phase == codes.NODE_WAIT and layer == codes.SLURM and inc[state.STAGE] > 0:
            self.allocations.get()
        self._observe()
        after, until = base.advance(inc, self.p, event, now, *self.story.key)
        self.fresh.clear()  # a layer has tried; who comes next starts from the end of all processes
        if phase == codes.ABORT:
            self.saves.drop_held()
        loaded = (codes.CHECKPOINT_LOAD, codes.WARMUP)
        if phase not in loaded and (after in loaded or after == codes.RESUMED):
            self.saves.choose()
        self.attempts.phase_end(failed=bool(no_load))
        if phase == codes.DETECT:
            noticed = detector == codes.BY_CHECK
            if not self.handed_over and not noticed:
                by = codes.DETECTORS[detector]
                self.story.emit("detected", fault=self.detecting, by=by)
            self.handed_over = False
            if inc[state.ATTEMPT] > attempt:  # not if it found no progress and did not even try
                self.attempts.layer_begin(layer)
                if layer == codes.FIXED:  # a person submits the job again
                    self.allocations.begin()
        if after == codes.DETECT or after == codes.PODS:  # the layer gave up, or start-up took too long
            if inc[state.ATTEMPT] > attempt or phase != codes.DETECT:
                taken_over = inc[state.LAYER] not in (layer, codes.NO_LAYER)
                reason = codes.REASONS[int(inc[state.GAVE_UP])]
                self.attempts.layer_end("escalated" if taken_over else "failed", reason, layer)
            self.handed_over = True
            self._drop_sick()
            if after == codes.DETECT and until > now:
                self.attempts.phase_begin(codes.DETECT, int(inc[state.LAYER]))
        elif after < codes.RESUMED:
            if after == codes.NODE_WAIT and inc[state.LAYER] == codes.SLURM:
                self.allocations.give_back(until - now)
            if after == codes.NODE_WAIT:
                self.pool.call_cold()
            elif after == codes.ABORT:
                self.saves.abort_waits_until(now + self.p.last_call_s + self.p.nccl_s)
            if until > now:
                self.attempts.phase_begin(after, int(inc[state.LAYER]))
        return after, until
