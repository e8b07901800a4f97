"""Slurm under SimPy: allocations, their time limit, and the nodes that a queued job does not have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sim.driver.stops import Stop

if TYPE_CHECKING:
    from sim.engine import Job


class Allocations:
    """The allocations of one run. The first one stands when the run begins."""

    def __init__(self, job: Job) -> None:
        self.job, self.story, self.p = job, job.story, job.p
        self.limit: Stop | None = None  # of the one that stands

    def begin(self) -> None:
        """Begin an allocation: its time runs."""
        self._end()
        if self.p.time_limit_s < math.inf:
            ends = self.story.env.now + self.p.time_limit_s
            self.limit = Stop(ends, lambda: self.job.strikes.ended_by("time_limit", ends_allocation=True))
            self.job.stops.announce(self.limit)

    def give_back(self, wait_s: float) -> None:
        """Give all nodes back for a wait in the queue (none: the next allocation follows at once)."""
        self._end()
        if wait_s > 0.0:
            self.job.pool.release()

    def get(self) -> None:
        """Get the nodes of the next allocation, once there are enough of them."""
        pool = self.job.pool
        pool.replace_lost()
        if pool.missing() == 0:
            pool.take_back()
            self.begin()

    def _end(self) -> None:
        if self.limit is not None:
            self.limit.over = True
