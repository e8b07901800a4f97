"""The register of rules, and that numba compiles every rule in it."""

import copy
import importlib
import pkgutil
import sys
from typing import NamedTuple

import numpy as np
import pytest

import sim
from sim import engine, kernel
from sim.params import Params
from sim.scenario import load_scenario

pytest.importorskip("numba")


def double(x: float) -> float:
    return 2.0 * x


def add_up(x: "np.ndarray[tuple[int], np.dtype[np.float64]]", n: int) -> float:
    x[0] = 0.0
    return x[0] + x[1] + n


def with_a_generator(x: float) -> float:
    total = 0.0
    for y in (z for z in {x, 2.0 * x} if type(z) is float):
        total += y
    return total


def add_one(x):
    return x + 1.0


def add_two(x: float) -> float:
    return x + 2.0


def fill_one(x):
    x[0] = 1.0


def fill_two(x):
    x[0] = 2.0


def of_no_type(x):
    return x


@pytest.fixture
def rules(monkeypatch):
    """Keep this module's rules out of the product's register."""
    monkeypatch.setattr(kernel, "RULES", dict(kernel.RULES))


def name(function):
    return f"{function.__module__}.{function.__qualname__}"


def test_a_rule_stays_the_same_plain_function(rules):
    assert kernel.rule(double) is double
    assert kernel.RULES[name(double)] is double


def test_a_rule_inside_a_function_is_refused():
    def inner():
        pass

    with pytest.raises(ValueError, match="module level"):
        kernel.rule(inner)


def test_registering_again_registers_nothing(rules):
    kernel.rule(double)
    assert name(double) in kernel.register_overloads()
    assert kernel.register_overloads() == []


def test_the_check_passes_rules_that_compile(rules):
    kernel.rule(double)
    kernel.rule(add_up)
    names = ["sim.draws.u", name(double), name(add_up)]
    examples = {"sim.draws.u": [(1, 2, 3, 4, 5)], name(add_up): [(np.ones(3), 1), ([5.0, 6.0], 2)]}
    assert kernel.compile_check(names=names) == {}
    assert kernel.compile_check(examples, names) == {}


def test_the_check_names_a_rule_that_does_not_compile(rules):
    kernel.rule(with_a_generator)
    kernel.rule(of_no_type)
    problems = kernel.compile_check(names=[name(with_a_generator), name(of_no_type)])
    assert set(problems) == {name(with_a_generator), name(of_no_type)}
    assert "parameters without a type: x" in problems[name(of_no_type)]


def test_the_check_names_a_rule_that_compiles_to_something_else(rules):
    kernel.rule(compiled=lambda: add_one)(add_two)
    kernel.rule(compiled=lambda: fill_one)(fill_two)
    examples = {name(add_two): [(1.5,)], name(fill_two): [([0.0, 0.0, 0.0],)]}
    problems = kernel.compile_check(examples, examples)
    assert problems[name(add_two)] == "plain gives 3.5, compiled gives 2.5"
    assert problems[name(fill_two)].startswith("plain leaves its arguments as")


def test_lists_become_arrays_also_within_tuples():
    class Pair(NamedTuple):
        rows: object
        flags: object

    got = kernel.as_arrays((Pair([(1.0, 2), (3.0, 4)], [True, False]), 7, []))
    assert got[1] == 7
    assert got[0].rows.shape == (2, 2)
    assert [a.dtype for a in (*got[0], got[2])] == [np.float64, np.bool_, np.float64]


# --- the rules of the model, with the arguments that real runs give them

BASE = {
    "name": "two-clocks",
    "cluster": {
        "nodes": 4,
        "nodes_per_rack": 2,
        "spares": {"hot": 1, "cold": 1},
        "repair": {"stages": [{"time": {"exponential": {"mean": "2h"}}, "success": 0.8}], "crews": 1},
    },
    "workload": {"step_time": "1s", "steps": 100000, "process_start": "10s", "init": "20s"},
    "checkpoint": {"mode": "sync", "interval": "30min", "write_time": "30s", "load_time": "30s"},
    "failures": {
        "classes": [
            {
                "name": "gpu",
                "mtbf": "20h",
                "scope": "node",
                "symptom": "gpu_error",
                "repair": True,
                "law": {"weibull": {"shape": 0.8}},
            },
            {"name": "software", "mtbf": "2h", "scope": "job", "symptom": "exception"},
            {"name": "stuck", "mtbf": "10h", "scope": "rank", "per": "job", "symptom": "hang"},
            {"name": "lost", "mtbf": "40h", "scope": "node", "symptom": "node_loss", "repair": True},
        ]
    },
    "recovery": {
        "nccl_timeout": "10min",
        "layers": ["in_process", "in_job", "node_replacement"],
        "human_response": "1h",
        "in_job": {"max_restarts": 1000},
    },
}
VARIANTS = {
    "as above": {},
    "async, published late, ages": {
        "checkpoint": {
            "mode": "async",
            "interval": "10min",
            "write_time": {"lognormal": {"median": "60s", "mean": "90s"}},
            "stall_time": "1s",
            "load_time": "30s",
            "publish": "next_save",
        },
        "cluster": {**BASE["cluster"], "initial_age": "stationary"},
        "failures": {**BASE["failures"], "clock": "running"},
    },
    "fixed, every instant saved": {
        "checkpoint": {"mode": "ideal"},
        "recovery": {"nccl_timeout": "10min", "layers": ["fixed"], "fixed": {"detect": "1min", "restart": "5min"}},
    },
    "pods": {
        "workload": {**BASE["workload"], "init": {"lognormal": {"median": "40s", "mean": "60s"}}},
        "recovery": {
            "nccl_timeout": "1min",
            "layers": ["kubernetes"],
            "kubernetes": {
                "restart_policy": "OnFailure",
                "backoff_limit": 10000,
                "start_delay": {"node0": "10s", "others": "20s"},
                "dns": {"tries": 10, "every": "5s"},
                "launcher_exit": {"uniform": {"low": "0s", "high": "30s"}},
                "agent_start": {"uniform": {"low": "3s", "high": "15s"}},
            },
        },
    },
    "tiers, loads that fail": {
        "checkpoint": {
            "mode": "tiered",
            "load_failure": 0.2,
            "tiers": [
                {"every": "10min", "write_time": "5s", "load_time": "5s", "survives": ["exception", "process_exit"]},
                {"every": "1h", "write_time": "60s", "stall_time": "2s", "load_time": "30s", "survives": "all"},
            ],
        }
    },
    "requeued": {
        "recovery": {
            **BASE["recovery"],
            "layers": ["in_job", "slurm"],
            "slurm": {"queue_wait": {"exponential": {"mean": "1h"}}, "time_limit": "8h", "prolog": "1min"},
        },
        "checkpoint": {**BASE["checkpoint"], "save_before": "5min"},
        "cluster": {**BASE["cluster"], "maintenance": {"every": "10h", "duration": "1h"}},
    },
    "gives up": {"recovery": {**BASE["recovery"], "layers": ["in_job"], "in_job": {"max_restarts": 2}}},
}
KEPT = 40  # calls of each rule and run that are played again


def calls_of(rules, run):
    """Return the arguments of the driver's calls of each rule in a run: of the first ones, then ever fewer."""
    found, counts = {}, dict.fromkeys(rules.values(), 0)

    def watch(frame, event, _argument):
        name = rules.get(frame.f_code)
        if event == "call" and name is not None and frame.f_back.f_code not in rules:
            counts[name] += 1
            if counts[name] <= KEPT // 2 or counts[name] % 50 == 0 and len(found[name]) < KEPT:
                code = frame.f_code
                args = tuple(frame.f_locals[v] for v in code.co_varnames[: code.co_argcount])
                frozen = {id(a): a for a in args if isinstance(a, Params)}
                found.setdefault(name, []).append(copy.deepcopy(args, frozen))

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.slow
def test_every_rule_of_the_model_compiles_and_gives_the_same():
    """Plain and compiled, to the last bit, on calls from runs of four kinds of scenario."""
    for module in pkgutil.walk_packages(sim.__path__, "sim."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    ours = {name: function for name, function in kernel.RULES.items() if name.startswith("sim.")}
    by_code = {function.__code__: name for name, function in ours.items()}
    examples = {}
    for variant in VARIANTS.values():
        scenario = load_scenario({**BASE, **variant})
        for name, calls in calls_of(by_code, lambda s=scenario: engine.run(s)).items():
            examples.setdefault(name, []).extend(calls)
    called = {word for function in ours.values() for word in function.__code__.co_names}
    entries = [name for name, function in ours.items() if function.__name__ not in called]
    unused = [name for name in entries if name not in examples]
    assert unused == [], "rules that neither the driver nor a rule calls in these runs: add a variant"
    # The others are compiled and compared within their callers; each compilation of its own takes a second.
    assert kernel.compile_check(examples, entries) == {}
