"""2,000 scenarios out of the dice: each is run, or refused with paths, within two seconds; nothing else happens.

Valid scenarios are mutated (values of every wrong type, absurd sizes, keys lost, added and swapped, letters changed in
the YAML text) or made of junk. Fixed seeds: a red test is a change in the product.
"""

import copy
import math
import random
import time

import pytest

from sim import catalog, engine, events
from sim.ledger import account
from sim.scenario import ScenarioError, dump_yaml, load_scenario, to_mapping
from sim.study import Study

CASES, BATCHES = 2000, 10
MOST_S = 2.0
MAX_EVENTS = 20_000

RICH = {
    "name": "rich",
    "cluster": {
        "nodes": 4,
        "gpus_per_node": 2,
        "nodes_per_rack": 2,
        "spares": {"hot": 1, "cold": 2},
        "repair": {
            "stages": [
                {"time": {"lognormal": {"median": "10min", "mean": "20min"}}, "escalate": 0.2},
                {"time": "1h"},
            ],
            "crews": 1,
        },
        "initial_age": "stationary",
    },
    "workload": {
        "step_time": {"gamma": {"mean": "2s", "cv": 0.1}},
        "steps": 4000,
        "process_start": "20s",
        "init": "10s",
    },
    "checkpoint": {
        "mode": "async",
        "interval": "10min",
        "write_time": {"uniform": {"low": 60, "high": 90}},
        "stall_time": "1s",
        "load_time": "30s",
        "on_busy": "queue",
        "keep": 3,
    },
    "failures": {
        "clock": "wall",
        "classes": [
            {
                "name": "gpu",
                "rate": "20 per 1000 node-hours",
                "scope": "node",
                "symptom": "gpu_error",
                "repair": True,
            },
            {
                "name": "soft",
                "mtbf": "1h",
                "per": "job",
                "scope": "job",
                "symptom": "exception",
                "law": {"weibull": {"shape": 0.8}},
            },
            {
                "name": "slow",
                "mtbf": "3h",
                "scope": "node",
                "symptom": "slowdown",
                "slowdown": {"factor": 2, "duration": "5min"},
            },
            {
                "name": "bits",
                "mtbf": "9h",
                "per": "job",
                "scope": "rank",
                "symptom": "silent_corruption",
                "detect": "10min",
            },
        ],
        "schedule": [
            {"step": 62, "rank": 4, "symptom": "exception"},
            {"step": 99, "rank": 1, "symptom": "hang"},
        ],
    },
    "recovery": {
        "nccl_timeout": "60s",
        "layers": ["in_process", "in_job", "node_replacement"],
        "in_process": {"atomic": True, "max_restarts": 50, "health_check_pass": 0.5},
        "in_job": {"monitor_interval": "0.3s", "max_restarts": 20, "section_timeouts": {"step": "2min"}},
        "node_replacement": {"provision": {"exponential": {"mean": "5min"}}},
        "human_response": "1h",
    },
    "economics": {"usd_per_gpu_hour": 3.0},
    "limits": {"max_wall": "3d"},
}
PLAIN = {
    "cluster": {"node_type": "p5.48xlarge", "nodes": 16},
    "workload": {"step_time": "4.2s", "useful_time": "2d"},
    "checkpoint": {"mode": "sync", "interval": "500 steps", "write_time": "275s"},
    "failures": {
        "classes": [
            {"name": "any", "rate": "3.8 per 1000 node-days", "scope": "node", "symptom": "node_loss"}
        ]
    },
    "recovery": {
        "layers": ["fixed"],
        "fixed": {"detect": "1min", "restart": {"empirical": ["1min", "2min", "1h"]}},
    },
}

JUNK = [
    *(None, True, False, 0, 1, -1, 2, 0.5, 1e-300, 1e300, -0.0, math.nan, math.inf, -math.inf, 10**30, 2**63),
    *("", " ", "off", "5s", "-5s", "1e9d", "500 steps", "0 steps", "3 per week", "48GB", "all", "exponential"),
    *("in_job", "fixed", "node", "job", "hang", "node_loss", "wait", "a" * 10_000, "\x00", "é\u2028", "{", "../x"),
    *("~", "0x10", "1:30", [], {}, [None], [[]], {"": 1}, {1: 2}, {"mean": {}}, {"exponential": {"mean": "1s"}}),
    *({"gamma": {"cv": 100, "mean": 1}}, {"weibull": {"shape": 0.1}}, {"gamma": {"cv": 0.001}}),
    *({"uniform": {"low": 0, "high": 1}}, {"lognormal": {"median": "1ms", "mean": "1000s"}}),
    *({"empirical": [0, 0, 1]}, {"weibull": {"shape": 0.1, "mean": 1}}),
]  # fmt: skip


def places(value, path=()):
    """Return the path of every value in a mapping, lists included."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


def at(value, path):
    for key in path:
        value = value[key]
    return value


def mutate(dice, mapping):
    """Change one thing in a mapping."""
    path = dice.choice(places(mapping))
    parent, key, old = at(mapping, path[:-1]), path[-1], at(mapping, path)
    match dice.randrange(8):
        case 0:
            del parent[key]
        case 1 | 2:
            parent[key] = copy.deepcopy(dice.choice(JUNK))
        case 3 if isinstance(old, (int, float)) and not isinstance(old, bool):
            parent[key] = old * 10.0 ** dice.randint(-12, 12)
        case 4:  # a value of another place
            parent[key] = copy.deepcopy(at(mapping, dice.choice(places(mapping))))
        case 5 if isinstance(parent, list):
            parent.insert(key, copy.deepcopy(old))
        case 6 if isinstance(parent, dict):
            parent[
                dice.choice(["nodes", "mtbf", "per", "repair", "detect", "unknown", "law", "keep", "mean"])
            ] = old
        case _ if isinstance(old, int) and not isinstance(old, bool):
            parent[key] = dice.choice([0, 1, 2, 3, 1000, 10**6, old + 1, -old])


def source(dice, bases):
    """Return something to load: mostly nearly a scenario, now and then nothing like one."""
    kind = dice.random()
    if kind < 0.03:
        return copy.deepcopy(dice.choice(JUNK))
    mapping = copy.deepcopy(dice.choice(bases))
    for _ in range(dice.choice([0, 1, 1, 1, 2, 2, 3, 6])):
        if places(mapping):
            mutate(dice, mapping)
    if kind < 0.8:
        return mapping
    text = list(dump_yaml(load_scenario(dice.choice(bases))))
    for _ in range(dice.randint(1, 6)):
        i = dice.randrange(len(text))
        match dice.randrange(4):
            case 0:
                del text[i : i + dice.randint(1, 30)]
            case 1:
                text.insert(
                    i,
                    dice.choice(list(" \n\t:-{}[]#&*!|>'\"%@`,?0123456789eE.~\x00") + ["<<: *a", "&a [*a]"]),
                )
            case 2:
                text[i] = dice.choice("0123456789smhd:-. ")
            case _:
                text[i:i] = text[: dice.randint(1, 80)]
    return "".join(text) + "\n"


def run(what):
    """Load and run as the commands do; what came of it."""
    try:
        scenario = load_scenario(what)
        study = Study(scenario)  # refuses what is not simulated yet, hopeless or too long
    except ScenarioError as error:
        assert error.problems and all(problem.message for problem in error.problems)
        assert "\n" not in "".join(problem.message for problem in error.problems)
        return "refused"
    try:
        log = engine.simulate_run(study.params, scenario, 1, 0, max_events=MAX_EVENTS)
    except engine.RunTooLong:
        return "too long"
    assert events.validate(log) == []
    ledger = account(log)
    assert math.isclose(sum(ledger.seconds.values()), ledger.wall_s, rel_tol=1e-9, abs_tol=1e-12)
    return ledger.outcome


@pytest.fixture(scope="module")
def bases():
    found = [RICH, RICH, PLAIN, PLAIN]
    return found + [to_mapping(load_scenario(name)) for name in ("aws-eks-nvrx-in-job", "meta-rsc-1")]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_anything_is_run_or_refused(batch, bases):
    counts = dict.fromkeys(("refused", "too long", "completed", "failed", "censored"), 0)
    for case in range(batch, CASES, BATCHES):
        what = source(random.Random(case), bases)
        begun = time.process_time()
        try:
            counts[run(what)] += 1
        except BaseException as error:
            error.add_note(f"case {case}: {str(what)[:2000]}")
            raise
        took = time.process_time() - begun
        assert took < MOST_S, f"case {case} took {took:.1f} s: {str(what)[:2000]}"
    assert counts["refused"] > 20 and counts["completed"] + counts["failed"] + counts["censored"] > 20


def test_the_bases_themselves_run(bases):
    assert catalog.names()
    assert {run(copy.deepcopy(base)) for base in bases} <= {"completed", "censored"}
