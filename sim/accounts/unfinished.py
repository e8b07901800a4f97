"""Runs that did not do all their steps: why, how many, and which one to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sim.ledger import RunLedger

FEW = 0.5
"""Share of completed runs below which a study is about a job that mostly does not complete."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Runs that ended alike before their last step; `first_replication` is the first of them."""

    outcome: str
    reason: str
    runs: int
    first_replication: int

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "reason": self.reason,
            "runs": self.runs,
            "first_replication": self.first_replication,
            "outcome": self.outcome,
        }

    def text(self, of: int) -> str:
        """Say it: ``1 of 80 runs failed: no progress (replication 45)``."""
        verb = {"failed": "failed", "censored": "stopped by a limit"}.get(self.outcome, "not finished")
        which = "replication" if self.runs == 1 else "first: replication"
        runs = "run" if of == 1 else "runs"
        return f"{self.runs} of {of} {runs} {verb}: {self.reason} ({which} {self.first_replication})"


def failures_of(runs: Sequence[RunLedger]) -> list[Failure]:
    """Return the runs that did not complete, by how and why they ended, the most frequent first."""
    found: dict[tuple[str, str], list[int]] = {}
    for i, run in enumerate(runs):
        if not run.completed:
            found.setdefault((run.outcome, run.reason or "no reason given"), []).append(i)
    made = [
        Failure(outcome, reason, len(which), which[0]) for (outcome, reason), which in found.items()
    ]
    return sorted(made, key=lambda failure: (-failure.runs, failure.first_replication))
