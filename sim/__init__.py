"""The model: scenario to events, events to ledger, ledger to advice. Imports no other room.

For notebooks; each name is loaded when it is first asked for, so that ``import sim`` costs nothing:

>>> from sim import load_scenario, recommend, simulate
>>> scenario = load_scenario("aws-eks-nvrx-in-job", ["checkpoint.interval=250 steps"])
>>> result = simulate(scenario, replications=20, seed=1)
>>> goodput, ledger = result.metrics["goodput"].mean, result.ledger
>>> seconds_of_work = recommend(scenario).interval_s
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


def __dir__() -> list[str]:
    return list(__all__)
