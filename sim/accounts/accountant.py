"""One pass over the events of a run that charges every instant to one category.

The pass keeps a mark: all time before it is charged. Each event moves the mark and says what the time since
was, so the categories sum to the wall time by construction, whatever is missing from the log. Executions of
steps lie on a stack; a `resumed` takes those beyond its step off it, and they become rework. GPU-seconds
follow the same charges: the integral of the GPUs of the working nodes over the stretch charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from sim.accounts.books import Checkpoints, Execution, Executions, LoopClock, NodePools
from sim.accounts.event_kinds import LATENT_SYMPTOMS, Event
from sim.accounts.incidents import FaultRef, Incident, OpenIncident

BASE_CATEGORIES = (
    "productive", "startup", "checkpoint_stall", "rework", "detect", "checkpoint_load", "node_wait",
    "slowdown",
)  # fmt: skip
UNKNOWN_LAYER = "fixed"  # imported restarts of an unknown layer count as restart.fixed (design, section 3)
_CATEGORY_OF_PHASE = {"detect": "detect", "checkpoint_load": "checkpoint_load", "node_wait": "node_wait"}


class _Phase(NamedTuple):
    name: str
    layer: str | None
    category: str


class Accountant:
    """Charges the events of one run, given in order of time on one timeline; `close` it, then read the sums.

    `nominal_step_s` None charges no slow-down: used to find the median step first.
    """

    def __init__(self, run_start: Event, start_s: float, nominal_step_s: float | None) -> None:
        self.nominal_step_s = nominal_step_s
        self.source = str(run_start.get("source", "imported"))
        self.ideal = run_start.get("checkpoint_mode") == "ideal"
        self.start_step = int(run_start.get("start_step") or 0)
        self.start_s = self.mark = start_s
        self.seconds: dict[str, float] = dict.fromkeys(BASE_CATEGORIES, 0.0)
        self.gpu_seconds: dict[str, float] = dict.fromkeys(BASE_CATEGORIES, 0.0)
        self.pools = NodePools(run_start, start_s)
        self._gpu_mark = 0.0  # the integral of working GPUs at the mark

        self.state = "start"  # start | loop | down (an incident)
        self.done = self.start_step
        self.executions = Executions()
        self.checkpoints = Checkpoints()
        self.clock = LoopClock(start_s)
        self.first_loop_s: float | None = None
        self.first_process_s = 0.0  # end of the first process start that was not cut
        self.drain_s = 0.0
        self.kept_steps = 0.0
        self._stalls: dict[object, bool] = {}  # saves the loop waits for -> whether it is a drain
        self._stall_since = 0.0
        # Loop time since the last step or stall: the next step takes it, or it was an unfinished one.
        self._loose_s = self._loose_gpu = 0.0
        self._warmup: str | None = None  # where the first step of a new process puts its excess

        self.incidents: list[Incident] = []
        self.downtime_s = 0.0
        self.faults_by_class: dict[str, int] = {}
        self.idle_faults = 0
        self._incident: OpenIncident | None = None
        self._phases: list[_Phase] = []
        self._layer: str | None = None
        self._latent: dict[object, FaultRef] = {}
        self._unnoticed = False
        self._held_s = self._held_gpu = 0.0  # time since a fault of which no notice is logged yet
        self.job_end: Event = {}
        self.outcome = "cut"

    # ---- charging

    def _add(self, category: str, seconds: float, gpu_s: float) -> None:
        self.seconds[category] = self.seconds.get(category, 0.0) + seconds
        self.gpu_seconds[category] = self.gpu_seconds.get(category, 0.0) + gpu_s

    def _advance(self, t: float) -> tuple[float, float]:
        """Move the mark to t, return the seconds and GPU-seconds since; one before the mark moves nothing."""
        if t <= self.mark:
            return 0.0, 0.0
        gpu = self.pools.working_gpu_s(t)
        since = t - self.mark, gpu - self._gpu_mark
        self.mark, self._gpu_mark = t, gpu
        return since

    def _flow(self, t: float) -> None:
        """Charge the time up to t to what holds now."""
        if t <= self.mark:
            return
        seconds, gpu_s = self._advance(t)
        if self.state == "loop":
            if self._stalls:
                self._add("checkpoint_stall", seconds, gpu_s)
            else:
                self._loose_s += seconds
                self._loose_gpu += gpu_s
            return
        if self._phases:
            name, _, category = self._phases[-1]
        elif self._unnoticed:
            self._held_s += seconds
            self._held_gpu += gpu_s
            return
        elif self._incident is None:
            name, category = "startup", "startup"
        else:
            name, category = "restart", f"restart.{self._layer or UNKNOWN_LAYER}"
        self._add(category, seconds, gpu_s)
        if self._incident is not None:
            self._incident.spend(name, seconds)

    def _noticed(self, detected: bool) -> None:
        """End a wait for notice: it was detection or, in logs that know of none, part of the restart."""
        self._unnoticed = False
        if self._held_s and self._incident is not None:
            self._add("detect" if detected else f"restart.{UNKNOWN_LAYER}", self._held_s, self._held_gpu)
            self._incident.spend("detect" if detected else "restart", self._held_s)
        self._held_s = self._held_gpu = 0.0

    # ---- incidents

    def _open(self, t: float) -> OpenIncident:
        """Return the open incident; open one at t if there is none."""
        self.state = "down"
        if self._incident is None:
            self._incident = OpenIncident(t, self.done)
            self._layer = None
        return self._incident

    def _stop(self, t: float) -> OpenIncident:
        """Stop whatever runs at t: an unfinished step is lost, a stall and a phase are cut."""
        self._flow(t)
        self._add("rework", self._loose_s, self._loose_gpu)
        self._loose_s = self._loose_gpu = 0.0
        self._stalls.clear()
        self._phases.clear()
        return self._open(t)

    def _restarting(self, t: float) -> OpenIncident | None:
        """Charge up to t, when a restart is seen to be under way; return its incident, None at the first start.

        If no fault was logged, the loop has stopped at some time after its last sign of life.
        """
        if self.state == "loop":
            self._stop(t if self._stalls else self.mark)
            self._unnoticed = True
            self.faults_by_class["unknown"] = self.faults_by_class.get("unknown", 0) + 1
        self._flow(t)
        return self._incident

    def _close_incident(self, t: float, step: int, resumed: bool) -> None:
        incident = self._incident
        assert incident is not None
        self.incidents.append(incident.close(self.start_s, t if resumed else None, step))
        self.downtime_s += t - incident.start_s
        self._incident = None

    def _on_fault(self, event: Event) -> None:
        if event.get("idle"):
            self.idle_faults += 1
            return
        t = event["t"]
        if event.get("planned"):
            self._stop(t).planned = True
            self._unnoticed = True
            return
        fault = FaultRef(event.get("id"), event["class"], event["symptom"], t - self.start_s)
        self.faults_by_class[fault.fault_class] = self.faults_by_class.get(fault.fault_class, 0) + 1
        if fault.symptom in LATENT_SYMPTOMS:
            self._latent[fault.id] = fault
            return
        self._stop(t).faults.append(fault)
        self._unnoticed = True

    def _on_detected(self, event: Event) -> None:
        t = event["t"]
        latent = self._latent.pop(event.get("fault"), None)
        if latent is not None:
            self._stop(t).faults.append(latent)
        elif self._restarting(t):
            self._noticed(detected=True)

    def _on_abort(self, event: Event) -> None:
        if self._restarting(event["t"]):
            self._noticed(detected=True)

    def _on_job_start(self, event: Event) -> None:
        incident = self._restarting(event["t"])
        if incident is not None:
            self._noticed(detected=False)
            incident.process_started = True

    def _on_layer_begin(self, event: Event) -> None:
        self._restarting(event["t"])
        incident = self._open(event["t"])
        self._noticed(detected=True)
        self._layer = incident.layer = event["layer"]
        incident.attempts += 1

    def _on_layer_end(self, event: Event) -> None:
        if self.state != "loop":
            self._flow(event["t"])

    def _on_phase_begin(self, event: Event) -> None:
        name, layer = event["phase"], event["layer"]
        incident = self._restarting(event["t"])
        if incident is not None:
            self._noticed(detected=layer is not None)
            incident.process_started |= name == "process_start"
        restart = f"restart.{layer or self._layer or UNKNOWN_LAYER}"
        otherwise = "startup" if layer is None and incident is None else restart
        self._phases.append(_Phase(name, layer, _CATEGORY_OF_PHASE.get(name, otherwise)))

    def _on_phase_end(self, event: Event) -> None:
        t, name, layer = event["t"], event["phase"], event["layer"]
        for position in range(len(self._phases) - 1, -1, -1):
            if self._phases[position][:2] == (name, layer):
                self._flow(t)
                del self._phases[position]
                entered = name == "process_start" and not event.get("cut")
                if entered and self.first_loop_s is None and not self.first_process_s:
                    self.first_process_s = t - self.start_s
                return

    def _on_resumed(self, event: Event) -> None:
        self._restarting(event["t"])
        self._resume(event["t"], event["step"], event.get("part", 0.0))

    def _resume(self, t: float, step: int, part: float = 0.0) -> None:
        incident, new_process, warmup = self._incident, True, "startup"
        if incident is not None:
            self._noticed(detected=False)
            new_process = incident.layer != "in_process" or incident.process_started
            warmup = f"restart.{incident.layer or UNKNOWN_LAYER}"
            self._close_incident(t, step, resumed=True)
        if new_process:
            self.clock.new_process(t)
        if self.first_loop_s is None:
            self.first_loop_s = t - self.start_s
        self._phases.clear()
        self.state = "loop"
        # Measured warm-up is the excess of the first step (design, section 6); a simulated one is a phase.
        self._warmup = warmup if new_process and self.source != "simulated" else None
        # Mode ideal has a checkpoint at every instant: such a restart loses no part of the step under way.
        if not (self.ideal and step == self.done and not part):
            self._roll_back(step + part)
        self.done = step

    # ---- the loop

    def _on_step(self, event: Event) -> None:
        t, first, last, dur_s = event["t"], event["first"], event["last"], event["dur_s"]
        if self.state != "loop":
            if self._incident is not None and t - dur_s < self._incident.start_s:
                return  # a step that ran on while the fault struck: the incident has its time
            begun = max(t - dur_s, self.mark)  # its `resumed` is not in the log
            self._flow(begun)
            self._resume(begun, first - 1)
        for save in list(self._stalls):  # their ends are not in the log
            self._end_stall(max(t - dur_s, self.mark), save)
        if first <= self.done:  # its `resumed` is not in the log
            self._roll_back(first - 1)
        seconds, gpu_s = self._advance(t)
        if self._loose_s:
            seconds, gpu_s = seconds + self._loose_s, gpu_s + self._loose_gpu
            self._loose_s = self._loose_gpu = 0.0
        part = event.get("part", 0.0)
        # Where a part of step `first` is done already (mode ideal), only its rest is run.
        begin = max(first - 1, min(self.executions.end(0.0), first))
        end = part + (last if last >= first else begin)
        steps = end - begin
        fast_s, step_s = seconds, None
        if self.nominal_step_s is None:
            step_s = dur_s / steps if steps > 0 else None
        else:
            slow_s = event.get("slow_s")
            fast_s = min(dur_s, steps * self.nominal_step_s) if slow_s is None else dur_s - slow_s
            fast_s = min(max(fast_s, 0.0), seconds)
            if self._warmup and steps == 1 and seconds > fast_s:
                warmup_gpu = gpu_s * (1.0 - fast_s / seconds)
                self._add(self._warmup, seconds - fast_s, warmup_gpu)
                seconds, gpu_s = fast_s, gpu_s - warmup_gpu
        self._warmup = None
        self.executions.append(Execution(begin, end, fast_s, seconds - fast_s, gpu_s, step_s))
        self.done = last

    def _roll_back(self, steps: float) -> None:
        self._add("rework", *self.executions.roll_back(steps))
        self.checkpoints.pass_over(steps)

    def _on_save_begin(self, event: Event) -> None:
        save, drain = event["id"], bool(event.get("drain"))
        if not drain:
            self.checkpoints.begin(save, event.get("step", self.done))
        if self.state == "loop":
            self._flow(event["t"])
            if not self._stalls:
                self._stall_since = event["t"]
            self._stalls[save] = drain

    def _on_save_staged(self, event: Event) -> None:
        if event["id"] in self._stalls:
            self._end_stall(event["t"], event["id"])

    def _on_save_durable(self, event: Event) -> None:
        self._on_save_staged(event)
        self.checkpoints.finish(event["id"], event["step"])

    def _on_save_failed(self, event: Event) -> None:
        self._on_save_staged(event)
        self.checkpoints.failed += 1

    def _end_stall(self, t: float, save: object) -> None:
        self._flow(t)
        drain = self._stalls.pop(save)
        if not self._stalls:
            stalled_s = max(0.0, t - self._stall_since)
            self.clock.saved(t, stalled_s)
            self.drain_s += stalled_s if drain else 0.0

    # ---- the end

    def _on_job_end(self, event: Event) -> None:
        self.job_end = event

    def run(self, events: Iterable[Event]) -> None:
        """Charge all events; kinds that move no time (slow_begin, slow_end, unknown ones) are passed over."""
        acts: dict[object, Callable[[Event], None]] = {
            "job_start": self._on_job_start,
            "phase_begin": self._on_phase_begin,
            "phase_end": self._on_phase_end,
            "resumed": self._on_resumed,
            "step": self._on_step,
            "save_begin": self._on_save_begin,
            "save_staged": self._on_save_staged,
            "save_durable": self._on_save_durable,
            "save_failed": self._on_save_failed,
            "fault": self._on_fault,
            "detected": self._on_detected,
            "abort": self._on_abort,
            "layer_begin": self._on_layer_begin,
            "layer_end": self._on_layer_end,
            "node_down": self.pools.change,
            "node_up": self.pools.change,
            "job_end": self._on_job_end,
        }
        for event in events:
            act = acts.get(event["kind"])
            if act is not None:
                act(event)

    def close(self, end_s: float, steps: int | None) -> None:
        """Charge the rest up to `end_s` and settle how the job ended and which steps are kept.

        `steps` is the number of the job's last step, where known: a log without a `job_end` that has
        reached it tells of a completed job.
        """
        reached = self.state == "loop" and steps is not None and self.done >= steps
        self.outcome = self.job_end.get("outcome", "completed" if reached else "cut")
        completed = self.outcome == "completed"
        self._flow(end_s)
        self.pools.count_to(self.mark)
        if self._unnoticed:
            self._noticed(detected=self.source != "imported")
        if self.state == "loop":
            if completed:
                self.clock.read(self.mark)
            # Loop time after the last step: slow-down of a finished job, an unfinished step of a cut one.
            self._add("slowdown" if completed else "rework", self._loose_s, self._loose_gpu)
        kept = self.done
        if not completed:
            told = self.job_end.get("kept_step")
            if told is None:
                told = self.done if self.ideal else self.checkpoints.newest(self.start_step)
            kept = min(self.done, told)
            if not self.ideal or kept < self.done:
                self._roll_back(kept)
        reach = self.executions.end(kept) if self.ideal and not completed else kept
        self.kept_steps = float(reach - self.start_step)
        if self._incident is not None:
            self._close_incident(self.mark, kept, resumed=False)
        for run in self.executions:
            whole = run.fast_s + run.slow_s
            fast_gpu = run.gpu_s * (run.fast_s / whole) if whole else 0.0
            self._add("productive", run.fast_s, fast_gpu)
            self._add("slowdown", run.slow_s, run.gpu_s - fast_gpu)
        self.gpu_seconds["spare_idle"] = self.pools.gpu_s["hot"]
