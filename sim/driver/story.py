"""What all parts of the SimPy driver share: the clock, the event log, and a wait that signals can cut short."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import simpy
from simpy.events import EventPriority

from sim.params import Params

Wait = Generator[simpy.Event, Any, Any]

NODES, PACE, LIMIT, WARNED = "nodes", "pace", "limit", "warned"  # signals to the job besides faults


class RunTooLong(Exception):  # noqa: N818 - reads as what happened, like StopIteration
    """A run that writes more events than `limits.max_events`."""


@dataclass(eq=False)
class Fault:
    """One fault on its way to the job."""

    id: int
    symptom: int
    scope: int
    gil_held: bool
    fault_class: int  # -1 = scheduled
    name: str
    node: int | None  # where it struck
    nodes: list[int]  # all struck nodes of the working set; empty = the job as a whole
    slots: list[int]  # their places in the job
    rank: int | None
    takes_node: bool
    repair: bool
    since: float  # when it struck; a silent corruption is noticed later
    draw_at: tuple[int, int]  # (unit, k) of what is drawn for this one fault
    done: float = 0.0  # steps done when it struck
    noticed: bool = False
    ends_allocation: bool = False  # Slurm has ended the job's allocation
    pause_until: float = 0.0  # planned: the job stands still until then; 0 = it is no planned stop


class _Last(simpy.Event):
    """A timeout that comes after everything else of its instant, however late that was scheduled."""

    def __init__(self, env: simpy.Environment, delay: float) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        env.schedule(self, EventPriority(2), delay)


class Story:
    """Clock, log and random key of one run."""

    def __init__(self, p: Params, seed: int, replication: int, run_name: str, max_events: float) -> None:
        self.p = p
        self.key = (seed, replication)
        self.env = simpy.Environment()
        self.log: list[dict[str, Any]] = []
        self.run_name = run_name
        self.max_events = max_events
        self.untold = 0  # what happened without a record, such as strikes on nodes that are all out
        self.over = False
        self.job: simpy.Process  # set when the job starts

    def emit(self, kind: str, **fields: Any) -> None:
        """Add an event to the log, at the present time; after `run_end` nothing is told any more."""
        if self.over:
            return
        self._check_length(len(self.log))
        self.over = kind == "run_end"
        event = {
            "v": 1,
            "t": self.env.now,
            "wall": None,
            "run": self.run_name,
            "rank": None,
            "node": None,
            "kind": kind,
        }
        event.update(fields)
        self.log.append(event)

    def pass_over(self) -> None:
        """Count a strike that is not worth a record: what is struck is out already. A run of those alone ends, too."""
        self.untold += 1
        self._check_length(self.untold)

    def _check_length(self, events: int) -> None:
        if events >= self.max_events:
            raise RunTooLong(f"the run holds more than {self.max_events:.0f} events by {self.env.now:.0f} s")

    def pause(self, until: float) -> Wait:
        """Wait until a time; the signal that woke the job before it, else None."""
        env = self.env
        try:
            if until == math.inf:
                yield env.event()
            elif until > env.now:
                yield env.timeout(until - env.now)
        except simpy.Interrupt as interrupt:
            return interrupt.cause
        return None

    def pause_for_faults(self, until: float) -> Wait:
        """Wait until a time, deaf to all but faults and the limit."""
        while True:
            signal = yield from self.pause(until)
            if signal is None or signal == LIMIT or isinstance(signal, Fault):
                return signal

    def pause_for_write(self, process: simpy.Process) -> Wait:
        """Wait until a write has ended, deaf to all but faults and the limit."""
        while process.is_alive:
            try:
                yield process
            except simpy.Interrupt as interrupt:
                if interrupt.cause == LIMIT or isinstance(interrupt.cause, Fault):
                    return interrupt.cause
        return None

    def last_at(self, when: float) -> simpy.Event:
        """Return an event at a time, behind all others of that instant: at a tie a save is durable before a fault."""
        return _Last(self.env, max(0.0, when - self.env.now))

    def signal(self, cause: Any) -> None:
        """Wake the job with a fault or another signal."""
        if self.job.is_alive and self.job is not self.env.active_process:
            self.job.interrupt(cause)


def whole(step: float) -> int:
    """Return the whole steps of a step count that may lie a rounding error below one."""
    return math.floor(step + 1e-9 + 4e-16 * step)
