"""The model: scenario to events, events to ledger, ledger to advice. Imports no other room.

For notebooks: ``from sim import load_scenario, simulate, recommend, compare``. Each name is loaded when it is first
asked for, so that ``import sim`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.compare import compare
    from sim.recommend import recommend
    from sim.scenario import ScenarioError, load_scenario
    from sim.study import simulate

__all__ = ["ScenarioError", "compare", "load_scenario", "recommend", "simulate"]

_HOMES = {
    "ScenarioError": "sim.scenario",
    "compare": "sim.compare",
    "load_scenario": "sim.scenario",
    "recommend": "sim.recommend",
    "simulate": "sim.study",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sim' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
