"""Warnings: what a scenario alone shows to be wrong, costly or without effect, before anything is simulated.

The rules live in warn_timeouts.py, warn_saves.py, warn_recovery.py and warn_ignored.py; each has a stable id, and a
wrong and a right example in tests/sim/test_warn.py. `warnings_between` is for two designs that are compared, and
`warnings_for_log` for the ledger of a log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from sim.scenario import Scenario
from sim.units import format_duration
from sim.warn import ignored as warn_ignored
from sim.warn import recovery as warn_recovery
from sim.warn import saves as warn_saves
from sim.warn import stops as warn_stops
from sim.warn import timeouts as warn_timeouts
from sim.warn.rule import RULES, Severity, View

if TYPE_CHECKING:
    from sim.ledger import RunLedger

__all__ = ["RULES", "Severity", "Warning", "warnings_between", "warnings_for", "warnings_for_log"]

assert all((warn_ignored, warn_recovery, warn_saves, warn_stops, warn_timeouts))  # importing them registers their rules

MIN_GAPS = 5  # gaps between restarts from which their regularity can be judged
STEADY = 0.1  # their coefficient of variation below which a timer is at work; random faults have 1


@dataclass(frozen=True, slots=True)
class Warning:
    """One thing that a person should know: where (path), what, by which rule, and how much it matters."""

    path: str
    message: str
    rule: str
    severity: Severity

    def __str__(self) -> str:
        """Read as one line."""
        return f"{self.path}: {self.message}"


def warnings_for(scenario: Scenario, *, for_export: bool = False) -> list[Warning]:
    """Return what the rules find, warnings before notes; `for_export` adds what matters to exported settings."""
    view = View(scenario)
    found = [
        Warning(path, message, rule.id, rule.severity)
        for rule in RULES.values()
        if for_export or not rule.export_only
        for path, message in rule.check(view)
    ]
    return sorted(found, key=lambda warning: warning.severity != "warning")


def warnings_between(scenarios: Sequence[Scenario]) -> list[Warning]:
    """Return what makes a comparison of these scenarios misleading."""
    sizes = {s.cluster.nodes for s in scenarios}
    if len(sizes) > 1 and any(s.workload.scaling is None for s in scenarios):
        message = (
            f"missing, and the designs differ in nodes ({', '.join(map(str, sorted(sizes)))}): more nodes do the "
            "same steps in the same time, so they only look useless"
        )
        return [Warning("workload.scaling", message, "nodes-differ-without-scaling", "warning")]
    return []


def warnings_for_log(ledger: RunLedger) -> list[Warning]:
    """Return what the incidents of a log show: near-constant gaps between restarts are a timer's, not hardware's."""
    if ledger.source == "simulated":
        return []
    starts = [incident.start_s for incident in ledger.incidents]
    gaps = [after - before for before, after in zip(starts, starts[1:], strict=False)]
    if len(gaps) < MIN_GAPS or pstdev(gaps) >= STEADY * fmean(gaps):
        return []
    message = (
        f"{len(gaps)} gaps between incidents, all near {format_duration(fmean(gaps))}: a detector or a limit ends the "
        "job at that age, not hardware"
    )
    return [Warning("incidents", message, "steady-gaps", "warning")]
