"""Event log -> ledger: where the time of one run went, in seconds of the job and in GPU-seconds.

`account` is the one accountant for simulated, live and imported logs. The categories sum to the wall time;
there is no "other". What each one means is in design.md, section 6; how a log is charged is in
sim/accounts/accountant.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sim.accounts.accountant import BASE_CATEGORIES, Accountant
from sim.accounts.event_kinds import Event, EventError, is_number, misfits, of_one_pod
from sim.accounts.incidents import FaultRef, Incident
from sim.accounts.reduce import is_multi_rank, one_timeline

__all__ = ["BASE_CATEGORIES", "FaultRef", "Incident", "RunLedger", "account"]


@dataclass(frozen=True)
class RunLedger:
    """The accounts of one run. Times in seconds, counted from the start of the run.

    `seconds` maps category -> seconds and sums to `wall_s`; `restart.<layer>` appears for layers that took
    time. `gpu_seconds` is the same times the GPUs of the working nodes, plus `spare_idle` (hot spares); it
    sums to the integral of working + hot GPUs. GPU-seconds of cold spares are in `cold_gpu_s` and in no
    sum.
    """

    wall_s: float
    seconds: dict[str, float]
    gpu_seconds: dict[str, float]
    cold_gpu_s: float = 0.0
    outcome: str = "completed"
    """completed | failed | censored (stopped by a limit) | cut (the log ends before the job does)"""
    reason: str | None = None
    source: str = "simulated"
    nominal_step_s: float | None = None
    start_step: int = 0
    done_steps: int = 0
    """steps done when the run ended, counted from step 0"""
    kept_steps: float = 0.0
    """steps of this run that are kept; a fraction only in mode ideal (a checkpoint at every instant)"""
    faults_by_class: dict[str, int] = field(default_factory=dict)
    """faults that struck the job, joined ones too; `unknown`: stops of the loop without a logged fault"""
    idle_faults: int = 0
    """faults that struck idle spares"""
    incidents: tuple[Incident, ...] = ()
    downtime_s: float = 0.0
    """time in incidents, unresolved ones included"""
    saves: int = 0
    durable_saves: int = 0
    failed_saves: int = 0
    drain_s: float = 0.0
    """the part of checkpoint_stall spent waiting for the last write"""
    first_loop_s: float | None = None
    """when the loop first ran; None if it never did"""
    first_process_s: float = 0.0
    """end of the first process start: where the clock of the AWS metrics begins"""
    loop_clock_s: float = 0.0
    """loop time outside saves as the AWS reference code keeps it (training_goodput_aws_as_coded)"""

    @property
    def completed(self) -> bool:
        """All steps were done."""
        return self.outcome == "completed"

    @property
    def failed(self) -> bool:
        """The job gave up."""
        return self.outcome == "failed"

    @property
    def censored(self) -> bool:
        """The run was stopped, or the log ends, before it was known how the job ends."""
        return not self.completed and not self.failed

    @property
    def interruptions(self) -> int:
        """Faults that struck the job, joined ones included, faults of idle spares excluded."""
        return sum(self.faults_by_class.values())

    @property
    def finish_s(self) -> float:
        """When the job completed; infinite if it did not."""
        return self.wall_s if self.completed else math.inf

    @property
    def unresolved(self) -> int:
        """Incidents that never reached `resumed`."""
        return sum(1 for incident in self.incidents if incident.end_s is None)


def account(events: Iterable[Event]) -> RunLedger:
    """Return the ledger of one run from its event log.

    Claims: the categories sum to the wall time within 1e-9 of it, GPU-seconds likewise. Logs of several
    ranks are first reduced to one timeline (sim/accounts/reduce.py). Where `run_start` gives no nominal
    step time, it is the median of the kept steps. Torn logs are accounted as far as they go: a missing
    `run_end` ends the run at the last event, a missing `job_end` makes its outcome `cut` unless its last
    step was done, a missing `run_start` counts as an imported run of unknown size. Raises EventError for
    events whose fields do not fit the vocabulary.
    """
    log = list(events)
    try:
        return _account(log)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        for position, event in enumerate(log):
            if problems := misfits(event):
                raise EventError(f"event {position} ({event.get('kind')}): {'; '.join(problems)}") from None
        raise


def _account(events: Iterable[Event]) -> RunLedger:
    log = sorted(events, key=lambda event: event["t"])
    if not log:
        empty = dict.fromkeys(BASE_CATEGORIES, 0.0)
        return RunLedger(0.0, empty, {**empty, "spare_idle": 0.0}, outcome="cut", source="imported")
    if is_multi_rank(log):
        log = one_timeline(log)
    run_start = next((event for event in log if event["kind"] == "run_start"), {})
    if run_start.get("source") == "simulated":
        log = [event for event in log if not of_one_pod(event)]
    nominal_step_s: float | None = run_start.get("nominal_step_s")
    if nominal_step_s is None or not is_number(nominal_step_s) or nominal_step_s <= 0.0:
        nominal_step_s = _charge(log, run_start, None).executions.median_step_s()
    books = _charge(log, run_start, nominal_step_s)
    return RunLedger(
        wall_s=books.mark - books.start_s,
        seconds=books.seconds,
        gpu_seconds=books.gpu_seconds,
        cold_gpu_s=books.pools.gpu_s["cold"],
        outcome=books.outcome,
        reason=books.job_end.get("reason"),
        source=books.source,
        nominal_step_s=nominal_step_s,
        start_step=books.start_step,
        done_steps=books.done,
        kept_steps=books.kept_steps,
        faults_by_class=books.faults_by_class,
        idle_faults=books.idle_faults,
        incidents=tuple(books.incidents),
        downtime_s=books.downtime_s,
        saves=books.checkpoints.begun,
        durable_saves=books.checkpoints.durable,
        failed_saves=books.checkpoints.failed,
        drain_s=books.drain_s,
        first_loop_s=books.first_loop_s,
        first_process_s=books.first_process_s,
        loop_clock_s=books.clock.total_s(),
    )


def _charge(log: Sequence[Event], run_start: Event, nominal_step_s: float | None) -> Accountant:
    first = log[0]
    start_s = run_start.get("t", first["t"] - first.get("dur_s", 0.0))
    books = Accountant(run_start, start_s, nominal_step_s)
    books.run(log)
    end_s = next((event["t"] for event in reversed(log) if event["kind"] == "run_end"), log[-1]["t"])
    books.close(end_s, run_start.get("steps"))
    return books
