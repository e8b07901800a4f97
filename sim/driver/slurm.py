"""Slurm under SimPy: allocations, their time limit, and the nodes that a queued job does not have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sim.driver.story import Wait

if TYPE_CHECKING:
    from sim.engine import Job


class Allocations:
    """The allocations of one run. The first one stands when the run begins."""

    def __init__(self, job: Job) -> None:
        self.job, self.story, self.p = job, job.story, job.p
        self.number = 0  # of the one that stands, or stood last

    def begin(self) -> None:
        """Begin an allocation: its time runs."""
        self.number += 1
        if self.p.time_limit_s < math.inf:
            self.story.env.process(self._time_limit(self.number))

    def give_back(self, wait_s: float) -> None:
        """Give all nodes back for a wait in the queue (none: the next allocation follows at once)."""
        self.number += 1  # the time of the last one is over
        if wait_s > 0.0:
            self.job.pool.release()

    def get(self) -> None:
        """Get the nodes of the next allocation, once there are enough of them."""
        pool = self.job.pool
        pool.replace_lost()
        if pool.missing() == 0:
            pool.take_back()
            self.begin()

    def _time_limit(self, number: int) -> Wait:
        yield self.story.last_at(self.story.env.now + self.p.time_limit_s)
        if number == self.number:
            self.story.signal(self.job.strikes.planned("time_limit", ends_allocation=True))
