"""Stops of the job that are known in advance: time limit, maintenance, pre-emption; and the save before them.

`checkpoint.save_before` is the grace: so long before such a stop (or as soon as it is told, if that is later) the
job finishes its step, saves in its farthest tier, waits until the save is durable, and ends by itself, as Megatron-LM's
--exit-signal-handler and --exit-duration-in-mins do, and the just-in-time checkpoint of transformers. What is not
durable when the stop comes is lost. A warning is heard where the loop runs or saves; a job that is restarting has
nothing to save.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim import codes, params
from sim.driver.story import WARNED, Fault, Wait
from sim.sampling import draw

if TYPE_CHECKING:
    from sim.engine import Job


@dataclass(eq=False)
class Stop:
    """One stop: when it is due, and the fault by which it strikes (None: it has lost its object by then)."""

    due: float
    fault: Callable[[], Fault | None]
    told: bool = True  # the job hears of it before
    over: bool = False


class Stops:
    """The stops of one run that are known in advance."""

    def __init__(self, job: Job) -> None:
        self.job, self.story, self.p = job, job.story, job.p
        self.heard: Stop | None = None  # the job is to end itself before this one
        self.winding_up = False

    def begin(self) -> None:
        """Begin the run: the maintenance is planned."""
        if self.p.maintenance_every_s < math.inf:
            self.story.env.process(self._maintenance())

    def announce(self, stop: Stop) -> None:
        """Let a stop come in its time."""
        self.story.env.process(self._come(stop))

    def wind_up(self) -> Wait:
        """End the job before the stop that it has heard of: the fault of the stop, or what came before it.

        None: the job is done, or the stop has nothing to stop any more.
        """
        job, stop = self.job, self.heard
        assert stop is not None
        self.heard, self.winding_up = None, True
        signal = yield from job.finish_step()
        if signal is None and (job.done < self.p.steps or self.p.final_save):
            signal = yield from job.saves.save_now(job.done)
        self.winding_up = False
        if signal is not None or job.done >= self.p.steps or stop.over:
            return signal
        stop.over = True
        return stop.fault()

    def _come(self, stop: Stop) -> Wait:
        if self.p.save_before_s > 0.0 and self.p.n_tiers > 0:
            yield self.story.last_at(max(self.story.env.now, stop.due - self.p.save_before_s))
            if stop.told and not stop.over and not self.winding_up and self.job.in_loop:
                self.heard = stop
                self.story.signal(WARNED)
        yield self.story.last_at(stop.due)
        if not stop.over:
            stop.over = True
            fault = stop.fault()
            if fault is not None:
                self.story.signal(fault)

    def _maintenance(self) -> Wait:
        number = 0
        while True:
            number += 1
            due = number * self.p.maintenance_every_s
            until = due + draw(self.p, params.MAINTENANCE, *self.story.key, number, 0)
            yield from self._come(Stop(due, lambda until=until: self._stop_for(until)))  # type: ignore[misc]

    def _stop_for(self, until: float) -> Fault:
        on_slurm = bool(self.p.layer_on[codes.SLURM])
        return self.job.strikes.ended_by("maintenance", ends_allocation=on_slurm, pause_until=until)
