"""Scenarios: what is said is what is meant, all errors come at once with their paths, and text goes both ways."""

import copy
import json
import math
import os
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import sim
from sim import catalog, simulate, units
from sim.scenario import (
    Interval,
    Law,
    ScenarioError,
    dump_yaml,
    json_schema,
    load_scenario,
    scenario_hash,
    to_mapping,
)
from sim.schema import io as scenario_io
from sim.schema import patterns, yaml_text

DESIGN_EXAMPLE = """\
name: my-run
cluster: {node_type: p5.48xlarge, nodes: 256, gpus_per_node: 8, nodes_per_rack: 8, spares: {hot: 2, cold: 4},
          repair: {stages: [{time: {lognormal: {median: 59min, mean: 352min}}, success: 1.0}], crews: unlimited}}
workload: {step_time: 4.2s, steps: 200000}            # or useful_time: 30d
checkpoint: {mode: async, interval: 30min, write_time: 275s, stall_time: 0.9s, load_time: 45s, on_busy: wait}
failures:
  clock: wall
  classes:
    - {name: gpu, rate: 3.8 per 1000 node-days, law: exponential, scope: node, symptom: gpu_error, repair: true}
    - {name: software, mtbf: 60h, per: job, law: {weibull: {shape: 0.8}}, scope: job, symptom: exception}
  # schedule: [{step: 62, rank: 4, symptom: exception}]
recovery: {nccl_timeout: 60s, launcher: ft_launcher, nvrx: "0.6.0", layers: [in_job, kubernetes, node_replacement],
           in_job: {monitor_interval: 0.3s, max_restarts: 20}}
economics: {usd_per_gpu_hour: 3.0}
limits: {max_wall: 600d}
"""

# every key of the schema, so that the fuzz and the round trip meet all of it
FULL = {
    "name": "full",
    "description": "every key",
    "sources": {"cluster": "made up"},
    "profile": "measured.yaml",
    "cluster": {
        "node_type": "p5.48xlarge",
        "nodes": 16,
        "gpus_per_node": 8,
        "nodes_per_rack": 4,
        "spares": {"hot": 1, "cold": 2, "bill": True},
        "repair": {
            "stages": [
                {"time": "2h", "success": 0.6, "escalate": 0.8},
                {"time": {"lognormal": {"median": "59min", "mean": "352min"}}, "success": 0.8},
            ],
            "crews": 3,
            "renews": False,
        },
        "host_memory_bytes": "2TiB",
        "initial_age": "stationary",
        "lemons": {"fraction": 0.15, "added_rate": 5, "cured_by_repair": False},
        "diagnosis": {"found": 0.9, "wrong_node": 0.1},
        "retire": {"after": 3},
        "preemption": {"warning": "2min"},
        "maintenance": {"every": "30d", "duration": "4h"},
    },
    "workload": {
        "step_time": {"gamma": {"mean": "2s", "cv": 0.1}},
        "useful_time": "2d",
        "process_start": "10s",
        "init": {"uniform": {"low": "20s", "high": "60s"}},
        "warmup": {"exponential": {"mean": "3s"}},
        "count_first_process_start": False,
        "scaling": {"reference_nodes": 8, "efficiency": 0.95},
    },
    "checkpoint": {
        "mode": "tiered",
        "interval": "30min",
        "stall_time": "3s",
        "on_busy": "skip",
        "keep": 3,
        "final_save": False,
        "publish": "next_save",
        "survives": ["exception", "hang"],
        "write_survives": ["process_exit"],
        "async_slowdown": {"factor": 1.2},
        "load_failure": 0.01,
        "bytes": "48.2GB",
        "bandwidth": {"per_writer": "1GB/s", "aggregate": "175MB/s", "read_aggregate": "2GB/s"},
        "tiers": [
            {"name": "local", "every": "5min", "survives": ["exception"], "write_time": "2s", "stall_time":
            "1s"}, {"name": "global", "every": "500 steps", "survives": "all", "write_time": "275s",
            "load_time": "45s"}, ],
    },
    "failures": {
        "clock": "running",
        "classes": [
            {
                "name": "gpu",
                "rate": "3.8 per 1000 node-days",
                "per": "node",
                "law": {"weibull": {"shape": 0.8}},
                "scope": "node",
                "symptom": "gpu_error",
                "repair": True,
                "detect": "5s",
            },
            {"name": "hang", "mtbf": "60h", "per": "job", "scope": "rank", "symptom": "hang", "gil": "held"},
            {
                "name": "slow",
                "rate": "1 per week",
                "scope": "node",
                "symptom": "slowdown",
                "repair": True,
                "slowdown": {"factor": 2, "until": "repaired"},
            },
            {"name": "sdc", "rate": 1e-9, "scope": "rack", "symptom": "silent_corruption", "detect": "1h",
             "law": {"empirical": [1, 2, "3s"]}},
        ],
        "schedule": [
            {"name": "first", "step": 62, "rank": 4, "symptom": "exception", "scope": "gpu"},
            {"step": 70, "rank": 5, "symptom": "slowdown", "slowdown": {"factor": 3, "duration": "1h"}},
        ],
    },
    "recovery": {
        "nccl_timeout": "off",
        "launcher": "ft_launcher",
        "nvrx": "0.4.1",
        "human_response": {"lognormal": {"median": "1h", "mean": "3h"}},
        "layers": ["in_process", "in_job", "kubernetes", "node_replacement", "fixed"],
        "fixed": {"detect": "1min", "restart": {"weibull": {"shape": 1.5, "mean": "5min"}}},
        "in_process": {"soft_timeout": "off", "atomic": True, "reserve_ranks": 2, "unwind": "2s",
        "max_restarts": 30}, "in_job": {
            "heartbeat_timeout": "off",
            "section_timeouts": {"setup": "10min", "step": "180s", "checkpointing": "off", "out_of_section":
            "5min"}, "rendezvous": "2s",
            "memory_reclaim": "5s",
            "stop_timeout": "15s",
            "max_no_progress_cycles": 3,
        },
        "kubernetes": {
            "version": "1.34",
            "restart_policy": "OnFailure",
            "backoff_limit": 30,
            "backoff": {"initial": "1s", "cap": "60s", "reset": "10min"},
            "start_delay": {"node0": "10s", "others": "20s"},
            "dns": {"tries": 5, "every": "5s"},
            "grace": "50s",
        },
        "slurm": {"queue_wait": "10min", "time_limit": "1d", "prolog": "1min"},
        "node_replacement": {"provision": "20min", "max_restarts": 5},
    },
    "economics": {"usd_per_gpu_hour": 3},
    "limits": {"max_wall": "60d", "max_attempts": 100, "max_faults": 1000, "max_events": 10000},
}  # fmt: skip

SMALL = {
    "cluster": {"nodes": 2},
    "workload": {"step_time": "2s", "steps": 1000},
    "checkpoint": {"mode": "sync", "interval": "100 steps", "write_time": "10s"},
}


def full(**blocks):
    return copy.deepcopy(FULL) | blocks


def small(**blocks):
    return copy.deepcopy(SMALL) | blocks


def problems(source, overrides=()):
    with pytest.raises(ScenarioError) as caught:
        load_scenario(source, overrides)
    assert str(caught.value) == "\n".join(str(p) for p in caught.value.problems)
    assert all("\n" not in p.message and len(p.message) < 700 for p in caught.value.problems)
    return {p.path: p.message for p in caught.value.problems}


# --- what is said is what is meant


def test_the_example_of_the_design_loads():
    s = load_scenario(DESIGN_EXAMPLE)
    assert (s.ranks(), s.units("rack"), s.total_steps(), s.interval_steps()) == (2048, 32, 200_000, 429)
    gpu, software = s.failures.classes
    assert (gpu.per, gpu.rate_per_s()) == ("node", 3.8 / 86_400_000)
    assert software.rate_per_s() == 1 / 216_000
    assert software.life_law() == Law("weibull", shape=0.8, mean=216_000.0)
    assert s.recovery.in_job.heartbeat_timeout is None  # the NVRx version's default, not ours
    assert s.max_wall_s() == 600 * 86_400


def test_per_defaults_to_the_unit_of_the_rate_else_to_the_scope():
    def per(**given):
        fault = {"name": "a", "scope": "node", "symptom": "exception", **given}
        return load_scenario(small(failures={"classes": [fault]})).failures.classes[0].per

    assert per(rate="1 per gpu-year") == "gpu"
    assert per(rate="1 per year") == "node"
    assert per(mtbf="1d") == "node"
    assert per(mtbf="1d", per="job") == "job"


@pytest.mark.parametrize(
    ("interval", "step", "steps"),
    [
        ("500 steps", 1, 500),
        ("1 step", 1, 1),
        ("30min", 4.2, 429),
        (5, 2, 3),
        (7, 2, 4),
        (0.1, 2, 1),
        (1800, 1, 1800),
    ],
)
def test_the_interval_is_useful_work_halves_rounded_up(interval, step, steps):
    s = small(
        workload={"step_time": step, "steps": 10}, checkpoint=SMALL["checkpoint"] | {"interval": interval}
    )
    assert load_scenario(s).interval_steps() == steps


def test_gpus_per_node_and_host_memory_come_from_the_node_type():
    s = load_scenario(small(cluster={"nodes": 2, "node_type": "p5.48xlarge"}))
    assert (s.cluster.gpus_per_node, s.cluster.host_memory_bytes) == (8, 2 * 2**40)
    assert load_scenario(small(cluster={"nodes": 2, "node_type": "own", "gpus_per_node": 4})).ranks() == 8
    assert "p5.48xlarge" in problems(small(cluster={"nodes": 2, "node_type": "p5"}))["cluster.node_type"]


def test_nominal_step_is_the_median_and_scaling_keeps_the_work():
    law = {"lognormal": {"median": "2s", "mean": "3s"}}
    s = load_scenario(
        small(workload={"step_time": law, "useful_time": "2000s", "scaling": {"reference_nodes": 2}})
    )
    twice = load_scenario(s, ["cluster.nodes=4"])
    assert (s.nominal_step_s(), twice.nominal_step_s()) == (2.0, 1.0)
    assert s.total_steps() == twice.total_steps() == 1000
    half = load_scenario(twice, ["workload.scaling.efficiency=0.5"])
    assert half.nominal_step_s() == 2.0


def test_write_and_load_time_from_bytes_and_bandwidth():
    storage = {
        "bytes": "48GB",
        "bandwidth": {"per_writer": "1GB/s", "aggregate": "24GB/s", "read_aggregate": "48GB/s"},
    }
    s = load_scenario(small(checkpoint={"mode": "sync", "interval": "1h", **storage}))
    assert s.write_law() == Law.constant(3.0)  # 16 writers of 1 GB/s
    assert load_scenario(s, ["cluster.nodes=4"]).write_law() == Law.constant(2.0)  # the storage is the bound
    assert s.load_law() == Law.constant(1.0)


def test_off_switches_a_timeout_off_quoted_or_not():
    text = DESIGN_EXAMPLE.replace("max_restarts: 20", "max_restarts: 20, heartbeat_timeout: off")
    s = load_scenario(text)
    assert s.recovery.in_job.heartbeat_timeout == math.inf
    assert '"off"' in dump_yaml(s)
    assert load_scenario(dump_yaml(s)) == s
    assert load_scenario(s, ["recovery.nccl_timeout=off"]).recovery.nccl_timeout == math.inf


def test_a_null_counts_as_left_out():
    assert load_scenario(small(limits=None, economics={"usd_per_gpu_hour": None})) == load_scenario(SMALL)


def test_numpy_numbers_are_numbers():
    s = load_scenario(
        small(cluster={"nodes": np.int64(2)}, workload={"step_time": np.float32(2), "steps": 1000})
    )
    assert s == load_scenario(SMALL)


# --- laws

LAWS = [
    ("5s", 5.0, 5.0),
    ({"constant": "5s"}, 5.0, 5.0),
    ({"uniform": {"low": 0, "high": "10s"}}, 5.0, 5.0),
    ({"exponential": {"mean": "10s"}}, 10.0, 10 * math.log(2)),
    ({"weibull": {"shape": 1, "mean": "10s"}}, 10.0, 10 * math.log(2)),
    ({"weibull": {"shape": 2, "mean": 10}}, 10.0, 10 / (math.sqrt(math.pi) / 2) * math.sqrt(math.log(2))),
    ({"lognormal": {"median": 2, "mean": 3}}, 3.0, 2.0),
    ({"gamma": {"mean": 10, "cv": 1}}, 10.0, 10 * math.log(2)),
    ({"empirical": [3, "1s", 8]}, 4.0, 3.0),
]


@pytest.mark.parametrize(("raw", "mean", "median"), LAWS)
def test_each_law_has_its_mean_and_median_and_goes_back_to_its_syntax(raw, mean, median):
    law = Law.parse(raw)
    assert law.mean_s() == pytest.approx(mean, rel=1e-14)
    assert law.median_s() == pytest.approx(median, rel=1e-12)
    assert Law.parse(law.plain()) == Law.parse(law.plain(text=True)) == law


@pytest.mark.parametrize(
    ("raw", "plain", "completed_median"),
    [
        ("exponential", "exponential", 10 * math.log(2)),
        ("constant", "constant", 10.0),
        ({"exponential": {}}, "exponential", 10 * math.log(2)),
        ({"weibull": {"shape": 1}}, {"weibull": {"shape": 1.0}}, 10 * math.log(2)),
        ({"lognormal": {"median": "2s"}}, {"lognormal": {"median": 2.0}}, 2.0),
        ({"gamma": {"cv": 1}}, {"gamma": {"cv": 1.0}}, 10 * math.log(2)),
        ({"uniform": {"low": 0, "high": 1}}, {"uniform": {"low": 0.0, "high": 1.0}}, 10.0),
        ({"empirical": [1, 2, 3]}, {"empirical": [1.0, 2.0, 3.0]}, 10.0),
    ],
)
def test_in_a_fault_class_only_the_shape_is_stated(raw, plain, completed_median):
    law = Law.parse(raw, shape_only=True)
    assert law.plain() == plain
    assert Law.parse(law.plain(text=True), shape_only=True) == law
    completed = law.with_mean(10.0)
    assert completed.mean_s() == pytest.approx(10.0)
    assert completed.median_s() == pytest.approx(completed_median)


def test_a_shape_has_no_mean_of_its_own():
    with pytest.raises(ValueError, match="life_law"):
        Law("exponential").mean_s()


@pytest.mark.parametrize(
    ("law", "path"),
    [
        ("abc", ""),
        ({}, ""),
        ({"pareto": {"mean": 1}}, ""),
        ({"exponential": {"mean": 1}, "constant": 2}, ""),
        ({"exponential": 3}, ".exponential"),
        ({"exponential": {}}, ".exponential.mean"),
        ({"exponential": {"mean": 0}}, ".exponential.mean"),
        ({"weibull": {"mean": "1h"}}, ".weibull.shape"),
        ({"weibull": {"mean": "1h", "shape": 0}}, ".weibull.shape"),
        ({"weibull": {"mean": "1h", "shape": "x"}}, ".weibull.shape"),
        ({"weibull": {"mean": "1h", "shape": 1, "scale": 2}}, ".weibull.scale"),
        ({"lognormal": {"mean": "1h", "median": "2h"}}, ".lognormal.median"),
        ({"uniform": {"low": 2, "high": 1}}, ".uniform.low"),
        ({"empirical": []}, ".empirical"),
        ({"empirical": [1, "x"]}, ".empirical.1"),
        ({"empirical": "no-such-file.txt"}, ".empirical"),
        ({"empirical": "/"}, ".empirical"),
        ({"empirical": "a\0b"}, ".empirical"),
        ({"empirical": [1] * 10_001}, ".empirical"),
    ],
)
def test_a_bad_law_is_refused_at_its_place(law, path):
    assert list(problems(small(workload={"step_time": 1, "steps": 5, "init": law}))) == [
        f"workload.init{path}"
    ]


def test_an_empirical_file_is_found_beside_the_scenario_and_its_values_are_kept(tmp_path, monkeypatch):
    (tmp_path / "gaps.txt").write_text("# measured\n3s\n1\n\n8s # slow\n")
    (tmp_path / "s.yaml").write_text(
        json.dumps(small(workload={"step_time": {"empirical": "gaps.txt"}, "steps": 5}))
    )
    s = load_scenario(tmp_path / "s.yaml")
    assert s.workload.step_time.values == (1.0, 3.0, 8.0)
    monkeypatch.chdir("/")
    assert load_scenario(dump_yaml(s)) == s
    (tmp_path / "gaps.txt").write_bytes(b"\xff\xfe")
    assert "text file" in problems(tmp_path / "s.yaml")["workload.step_time.empirical"]


# --- errors


def test_all_errors_come_at_once_those_between_blocks_too():
    found = problems(
        {
            "clster": {},
            "cluster": {"nodes": True, "foo": 1, "spares": {"hot": -1}},
            "workload": {"step_time": "x", "steps": 3, "useful_time": "3d"},
            "checkpoint": {"mode": "sync"},
            "failures": {
                "classes": [
                    {"name": "gpu", "rate": "x", "scope": "rack", "symptom": "gpu_error", "repair": True},
                    {"rate": 1, "mtbf": 2, "scope": "job", "symptom": "explosion"},
                ],
                "schedule": [{"step": 1.5, "rank": "a", "symptom": "hang"}],
            },
            "recovery": {"layers": ["fixed", "in_job"], "launcher": "torchrun", "nccl_timeout": "soon"},
            "limits": {"max_wall": math.nan},
        }
    )
    assert set(found) == {
        "clster",
        "cluster.nodes",
        "cluster.foo",
        "cluster.spares.hot",
        "workload.step_time",
        "workload",
        "checkpoint.interval",
        "checkpoint.write_time",
        "failures.classes.gpu.rate",
        "failures.classes.gpu.repair",
        "failures.classes.gpu.scope",
        "failures.classes.1.name",
        "failures.classes.1.symptom",
        "failures.schedule.0.step",
        "failures.schedule.0.rank",
        "recovery.layers",
        "recovery.launcher",
        "recovery.nccl_timeout",
        "limits.max_wall",
    }
    assert found["clster"] == "unknown key; did you mean cluster? (got {})"
    assert "(got 'x')" in found["failures.classes.gpu.rate"]


MANY = 12_000


@pytest.mark.parametrize(
    "blocks",
    [
        {"failures": {"classes": [{"a": 1, "b": 2}] * MANY}},
        {
            "failures": {
                "classes": [{"name": "a", "mtbf": 1, "scope": "node", "symptom": "hang", "repair": True}]
                * (MANY // 2)
            }
        },
        {"failures": {"schedule": [5] * MANY}},
        {"recovery": {"layers": ["a"] * MANY}},
        {f"key{i}": i for i in range(MANY)},
    ],
    ids=["junk classes", "wrong classes", "junk schedule", "layers", "keys"],
)
def test_thousands_of_errors_are_told_as_the_first_fifty_and_in_time(blocks):
    began = time.monotonic()
    assert 1 <= len(problems(small(**blocks))) <= 51
    assert time.monotonic() - began < 2


CLASS = {"name": "a", "mtbf": "1d", "scope": "node", "symptom": "exception"}
REPAIR = {"stages": [{"time": "1h"}]}


@pytest.mark.parametrize(
    ("blocks", "path"),
    [
        ({"workload": {"step_time": 1}}, "workload"),
        ({"workload": {"step_time": 0, "steps": 1}}, "workload.step_time"),
        ({"workload": {"step_time": 1e-9, "useful_time": 1e17}}, "workload.useful_time"),
        ({"cluster": {"nodes": 0}}, "cluster.nodes"),
        ({"cluster": {"nodes": 10**400}}, "cluster.nodes"),
        ({"cluster": {"nodes": "2"}}, "cluster.nodes"),
        ({"cluster": {"nodes": 2, "repair": {"stages": []}}}, "cluster.repair.stages"),
        ({"cluster": {"nodes": 2, "repair": {"stages": [{"time": 1, "escalate": 1}]}}},
        "cluster.repair.stages.0.escalate"), ({"cluster": {"nodes": 2, "repair": REPAIR | {"crews": 0}}},
        "cluster.repair.crews"), ({"cluster": {"nodes": 2, "maintenance": {"every": "1h", "duration":
        "2h"}}}, "cluster.maintenance.duration"), ({"checkpoint": {"mode": "async", "interval": 9,
        "write_time": 1}}, "checkpoint.stall_time"), ({"checkpoint": {"mode": "local", "interval": 9}},
        "checkpoint.stall_time"), ({"checkpoint": {"mode": "tiered"}}, "checkpoint.tiers"),
        ({"checkpoint": {"mode": "none", "keep": 0}}, "checkpoint.keep"),
        ({"checkpoint": {"mode": "sync", "interval": "0 steps", "write_time": 1}}, "checkpoint.interval"),
        ({"checkpoint": {"mode": "sync", "interval": "5 stops", "write_time": 1}}, "checkpoint.interval"),
        ({"checkpoint": {"mode": "none", "bandwidth": {"aggregate": 1}}}, "checkpoint.bytes"),
        ({"checkpoint": {"mode": "none", "bytes": 1, "bandwidth": {}}}, "checkpoint.bandwidth"),
        ({"checkpoint": {"mode": "none", "write_survives": ["rain"]}}, "checkpoint.write_survives"),
        ({"failures": {"classes": [CLASS, CLASS]}}, "failures.classes"),
        ({"failures": {"classes": [CLASS | {"name": "1st"}]}}, "failures.classes.1st.name"),
        ({"failures": {"classes": [CLASS | {"rate": 1}]}}, "failures.classes.a"),
        ({"failures": {"classes": [CLASS | {"repair": True}]}}, "failures.classes.a.repair"),
        ({"failures": {"classes": [CLASS | {"scope": "rack"}]}}, "failures.classes.a.scope"),
        ({"failures": {"classes": [CLASS | {"per": "rack"}]}}, "failures.classes.a.per"),
        ({"failures": {"classes": [CLASS | {"symptom": "silent_corruption"}]}}, "failures.classes.a.detect"),
        ({"failures": {"classes": [CLASS | {"symptom": "slowdown"}]}}, "failures.classes.a.slowdown"),
        ({"failures": {"classes": [CLASS | {"slowdown": {"factor": 2, "duration": 1}}]}},
        "failures.classes.a.slowdown"), ({"failures": {"classes": [CLASS | {"gil": "held"}]}},
        "failures.classes.a.gil"), ({"failures": {"classes": [CLASS | {"law": {"lognormal": {"median":
        "2d"}}}]}}, "failures.classes.a.law.lognormal.median"), ({"failures": {"classes": [CLASS | {"law":
        {"weibull": {"shape": 1, "mean": "1d"}}}]}}, "failures.classes.a.law.weibull.mean"), ({"failures":
        {"classes": [CLASS | {"law": "5s"}]}}, "failures.classes.a.law"), ({"failures": {"schedule":
        [{"step": 1, "rank": 16, "symptom": "hang"}]}}, "failures.schedule.0.rank"), ({"failures":
        {"schedule": [{"step": 1, "rank": 1, "symptom": "node_loss"}]}}, "failures.schedule.0.scope"),
        ({"failures": {"classes": [], "schedule": {"a": 1}}}, "failures.schedule"), ({"recovery": {"layers":
        ["fixed", "fixed"]}}, "recovery.layers"), ({"recovery": {"layers": ["fixed", "in_job"]}},
        "recovery.layers"), ({"recovery": {"layers": ["kubernetes", "slurm"]}}, "recovery.layers"),
        ({"recovery": {"layers": ["nothing"]}}, "recovery.layers.0"),
        ({"recovery": {"layers": ["in_job"], "launcher": "direct"}}, "recovery.launcher"),
        ({"recovery": {"nvrx": "0.5.0"}}, "recovery.nvrx"),
        ({"recovery": {"nvrx": 0.6}}, "recovery.nvrx"),
        ({"recovery": {"in_process": {"reserve_ranks": 16}}}, "recovery.in_process.reserve_ranks"),
        ({"recovery": {"in_process": {"success": 1.1}}}, "recovery.in_process.success"),
        ({"recovery": {"in_process": []}}, "recovery.in_process"),
        ({"recovery": {"kubernetes": {"version": 1.3}}}, "recovery.kubernetes.version"),
        ({"economics": {"usd_per_gpu_hour": -1}}, "economics.usd_per_gpu_hour"),
        ({"sources": {"a": 1}}, "sources"),
        ({"name": 5}, "name"),
    ],
)  # fmt: skip
def test_each_rule_is_told_at_its_path(blocks, path):
    assert list(problems(small(**blocks))) == [path]


def places(data, path=()):
    """Every place of a nested mapping, the deepest last."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


PLACES = list(places(FULL))


def put(data, path, value):
    for step in path[:-1]:
        data = data[step]
    data[path[-1]] = value


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_one_bad_value_is_one_problem_and_no_other_is_made_up(place):
    bad = full()
    put(bad, place, [[]])
    steps, here = [], FULL
    for step in place:
        here = here[step]
        steps.append(
            here.get("name", str(step)) if isinstance(step, int) and isinstance(here, dict) else str(step)
        )
    if isinstance(place[-1], int):
        steps[-1] = str(place[-1])  # the item has lost its name
    elif place[-1] == "name" and len(place) > 1:
        steps[-2] = str(place[-2])
    if (
        place[0] == "sources"
        or "survives" in place[-1:]
        or place[-2:-1] in (("survives",), ("write_survives",))
    ):
        steps = None  # told at the whole list or mapping
    found = problems(bad)
    assert len(found) == 1
    if steps is not None:
        (path,) = found
        assert path.startswith(".".join(steps[:-1])) or path.startswith(".".join(steps))


def test_scope_job_cannot_send_a_node_to_repair():
    job = CLASS | {"scope": "job", "repair": True}
    found = problems(small(cluster={"nodes": 2, "repair": REPAIR}, failures={"classes": [job]}))
    assert "which node" in found["failures.classes.a.repair"]


def test_the_unit_of_the_rate_and_per_must_agree():
    clash = {"name": "a", "rate": "1 per node-day", "per": "gpu", "scope": "node", "symptom": "hang"}
    assert list(problems(small(failures={"classes": [clash]}))) == ["failures.classes.a.per"]


def test_an_error_survives_the_way_from_a_worker_process():
    with pytest.raises(ScenarioError) as caught:
        load_scenario({})
    assert pickle.loads(pickle.dumps(caught.value)).problems == caught.value.problems


# --- overrides


def test_overrides_by_path_list_items_by_name_or_index():
    s = load_scenario(
        FULL,
        [
            "failures.classes.gpu.rate=5 per 1000 node-days",
            "failures.schedule.0.rank=7",
            "checkpoint.tiers.local.every=10 steps",
            "recovery.in_process.max_restarts=null",
            "workload.steps=4000",  # takes useful_time out
            "failures.classes.slow=null",
            "workload.step_time={exponential: {mean: 2s}}",
            "failures.classes.hang.law={weibull: {shape: 0.7}}",
            "failures.classes.hang.rate=1 per day",  # takes mtbf out
        ],
    )
    assert [c.name for c in s.failures.classes] == ["gpu", "hang", "sdc"]
    assert s.failures.classes[0].rate_per_s() == 5 / 86_400_000
    assert s.failures.classes[1].rate_per_s() == 1 / 86_400
    assert s.failures.schedule[0].rank == 7
    assert s.checkpoint.tiers[0].every == Interval(steps=10)
    assert s.recovery.in_process.max_restarts is None
    assert (s.workload.steps, s.workload.useful_time) == (4000, None)
    assert s.workload.step_time.kind == "exponential"


def test_an_override_leaves_the_source_alone():
    before = copy.deepcopy(FULL)
    load_scenario(FULL, ["cluster.nodes=3", "failures.classes.gpu=null"])
    assert before == FULL


@pytest.mark.parametrize(
    ("override", "path"),
    [
        ("cluster.nodes", "--set"),
        ("=3", "--set"),
        (5, "--set"),
        ("cluster..nodes=3", "cluster..nodes"),
        ("failures.classes.nic.rate=1", "failures.classes"),
        ("failures.classes.99.rate=1", "failures.classes"),
        ("cluster.nodes.many=3", "cluster.nodes"),
        ("cluster.nodes=[", "cluster.nodes"),
        ("cluster.nodes={a: b", "cluster.nodes"),
        ("cluster.nodez=3", "cluster.nodez"),
        ("cluster.nodes=-3", "cluster.nodes"),
        ("a" * 300 + "=1", "a" * 60),
        (".".join("a" * 100) + "=1", ".".join("a" * 100)[:100]),
    ],
)
def test_a_bad_override_is_told_by_its_path(override, path):
    assert list(problems(FULL, [override])) == [path]


# --- text both ways, and the hash


def test_yaml_round_trip_of_every_key():
    s = load_scenario(FULL)
    text = dump_yaml(s)
    assert text.startswith("# yaml-language-server: $schema=goodput-scenario.schema.json\n")
    assert load_scenario(text) == s == load_scenario(to_mapping(s)) == load_scenario(s)
    assert dump_yaml(load_scenario(text)) == text
    assert hash(load_scenario(text)) == hash(s)


def test_a_written_value_overrules_the_node_type():
    own = load_scenario(small(cluster={"nodes": 2, "node_type": "gb200-nvl72", "gpus_per_node": 8}))
    assert load_scenario(dump_yaml(own)).cluster.gpus_per_node == 8


@pytest.mark.parametrize(
    "name", ["1e6", "no", "off", "1:30", "null", "2026-01-01", "ünï", "- a", "a: b", "#x", "0x1F", "=", "<<"]
)
def test_names_that_look_like_something_else_survive(name):
    s = load_scenario(small(name=name))
    assert load_scenario(dump_yaml(s)).name == name


def test_the_hash_knows_meaning_from_looks():
    s = load_scenario(FULL)
    h = scenario_hash(s)
    assert len(h) == 12 and int(h, 16) >= 0
    reordered = dict(
        reversed([(k, dict(reversed(v.items())) if isinstance(v, dict) else v) for k, v in FULL.items()])
    )
    assert scenario_hash(load_scenario(reordered)) == h
    assert scenario_hash(load_scenario(full(name="other", sources={"a": "b"}, description="x"))) == h
    assert scenario_hash(load_scenario(s, ["workload.process_start=10"])) == h  # 10 is 10s
    assert scenario_hash(load_scenario(SMALL, ["checkpoint.keep=2"])) == scenario_hash(load_scenario(SMALL))
    assert scenario_hash(load_scenario(s, ["workload.process_start=10.5s"])) != h


def test_the_hash_is_the_same_in_another_process():
    code = "from sim.scenario import *; print(scenario_hash(load_scenario('llama3-405b')))"
    env = os.environ | {"PYTHONHASHSEED": "7"}
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert other.stdout.strip() == scenario_hash(load_scenario("llama3-405b"))


def test_every_key_of_the_schema_is_explained():
    schema = json_schema()
    assert schema["$id"] == "goodput-scenario.schema.json"
    blocks = {name: body for name, body in schema["$defs"].items() if name not in patterns.SHARED}
    for name, body in [("Scenario", schema), *blocks.items()]:
        assert body["additionalProperties"] is False, name
        for key, value in body["properties"].items():
            assert len(value.get("description", "")) >= 8, f"{name}.{key}"
    json.dumps(schema)


def parts_of(schema, path=()):
    """Each mapping inside a schema, with its path."""
    if isinstance(schema, dict):
        yield path, schema
    for key, value in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if isinstance(value, (dict, list)):
            yield from parts_of(value, (*path, key))


def test_each_default_keeps_its_own_schema():
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    with_default = [(path, part) for path, part in parts_of(schema) if "default" in part]
    assert len(with_default) > 50
    for path, part in with_default:
        wrong = Draft202012Validator(part | {"$defs": schema["$defs"]}).iter_errors(part["default"])
        assert not [error.message for error in wrong], path


def test_the_schema_takes_what_loads():
    schema = Draft202012Validator(json_schema())
    design = yaml_text.read(DESIGN_EXAMPLE, "design")
    for data in (FULL, SMALL, design, *(to_mapping(load_scenario(name)) for name in catalog.names())):
        assert not [error.message for error in schema.iter_errors(json.loads(json.dumps(data)))]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("checkpoint.interval", "thirty minutes"),
        ("checkpoint.interval", "0 steps"),
        ("checkpoint.interval", 0),
        ("checkpoint.interval", "1.5 steps"),
        ("workload.step_time", "2s4h"),
        ("workload.step_time", 0),
        ("workload.init", ""),
        ("workload.init", "5 parsecs"),
        ("workload.init", {"exponential": {}}),
        ("workload.init", {"exponential": {"mean": "5min", "shape": 2}}),
        ("workload.init", {"weibull": {"shape": 0, "mean": "5min"}}),
        ("workload.init", {"normal": {"mean": "5min"}}),
        ("workload.init", {"empirical": []}),
        ("workload.init", {"uniform": {"low": 1, "high": 2}, "exponential": {"mean": 1}}),
        ("recovery.nccl_timeout", "never"),
        ("checkpoint.bytes", "48.2 gigabytes"),
        ("checkpoint.bandwidth.aggregate", "175MB"),
        ("failures.classes.gpu.rate", "3 a day"),
        ("failures.classes.gpu.rate", "3 per 1000 pod-days"),
        ("failures.classes.gpu.law", {"weibull": {"shape": 0.8, "mean": "60h"}}),
        ("failures.classes.hang.mtbf", "60 hrs.")
    ],
)  # fmt: skip
def test_the_schema_refuses_what_is_refused(path, value):
    schema = Draft202012Validator(json_schema())
    assert problems(FULL, [f"{path}={json.dumps(value)}"])
    assert list(schema.iter_errors(scenario_io.override(FULL, [f"{path}={json.dumps(value)}"])))


def read_by(parse, text):
    try:
        parse(text)
    except ValueError:
        return False
    return True


UNIT_WORDS = [*units._RATE_TIME_S, *units._DIVISOR, "B", "GB", "KiB", "MB/s", "Gbps", "b/s", "steps", "step", "x"]
TEXTS = st.lists(
    st.sampled_from([*UNIT_WORDS, "1", "2.5", "0", "1e3", ".", " ", "-", "per ", "node-", "job-", "/s"]), max_size=5
)


@settings(max_examples=400)
@given(TEXTS.map("".join) | st.tuples(st.sampled_from(["3", "1.5 ", "2 per ", "2 per 10 node-"]),
       st.sampled_from(UNIT_WORDS)).map("".join))  # fmt: skip
def test_the_patterns_say_what_the_parsers_read(text):
    schemas = {
        units.parse_duration: patterns.SHARED["DurationText"],
        units.parse_bytes: patterns.BYTES["anyOf"][1],
        units.parse_bandwidth: patterns.BANDWIDTH["anyOf"][1],
        units.parse_rate: patterns.RATE["anyOf"][1],
    }
    for parse, schema in schemas.items():
        matched = re.search(schema["pattern"], text) is not None
        if read_by(parse, text):
            assert matched, (parse, text)
        elif matched:  # only what a pattern cannot tell: a size of the number
            assert re.search(r"per\s+0|e3", text), (parse, text)


def test_the_scenario_of_the_readme_runs():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    text = re.search(r"```yaml\n(.*?)```", readme, re.S)[1]
    s = load_scenario(text, ["failures.classes.gpu.rate=8 per 1000 node-days", "cluster.spares.hot=4"])
    assert not [e.message for e in Draft202012Validator(json_schema()).iter_errors(to_mapping(s))]
    result = simulate(s, replications=2)
    assert result.completed_fraction == 1.0 and 0.9 < result.metrics["goodput"].mean < 1.0
    assert not result.warnings
    assert repr(result).startswith("<Result of my-run: 2 runs, goodput 0.9")


def test_sim_lists_its_public_names():
    assert dir(sim) == sorted(sim.__all__)
    assert all(callable(getattr(sim, name)) for name in dir(sim))


# --- files, junk, and nothing but ScenarioError


def test_a_file_without_a_name_is_named_after_itself(tmp_path):
    (tmp_path / "mine.yaml").write_text(json.dumps(SMALL))
    assert load_scenario(str(tmp_path / "mine.yaml")).name == "mine"
    assert load_scenario(SMALL).name == "scenario"


def bomb():
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60)]
    return "\n".join(lines)


JUNK_FILES = {
    "empty": b"",
    "binary": bytes(range(256)) * 10,
    "nul": b"a: \0",
    "list": b"- 1\n- 2\n",
    "text": b"hello",
    "unclosed": b"a: [1, 2",
    "tabs": b"a:\n\tb: 1",
    "duplicate": b"name: a\nname: b\n",
    "two documents": b"a: 1\n---\nb: 2\n",
    "alias": b"a: &x 1\nb: *x\n",
    "bomb": bomb().encode(),
    "self": b"a: &x [*x]\n",
    "tag": b"a: !!python/object/apply:os.system [ls]\n",
    "own tag": b"a: !foo 1\n",
    "deep flow": b"[" * 100_000,
    "deep maps": b"{a: " * 50_000,
    "deep blocks": b"".join(b" " * i + b"a:\n" for i in range(1000)),
    "wide": b"a: [" + b"1," * 200_000 + b"1]",
    "huge": b"a: 1\n" * 300_000,
    "huge number": b"cluster: {nodes: " + b"9" * 100_000 + b"}",
    "number key": b"1: 2\n",
    "list key": b"? [a, b]\n: 2\n",
    "merge": b"<<: {a: 1}\n",
    "bad escape": b'a: "\\q"\n',
    "surrogate": b'name: "\\uD800"\n',
    "latin1": "name: Müller".encode("latin-1"),
    "utf16": "name: x".encode("utf-16"),
    "directive": b"%YAML 3.9\n---\na: 1\n",
}


@pytest.mark.parametrize("kind", JUNK_FILES)
def test_a_junk_file_is_refused_with_its_name(kind, tmp_path):
    path = tmp_path / "junk.yaml"
    path.write_bytes(JUNK_FILES[kind])
    began = time.monotonic()
    assert problems(path)
    assert time.monotonic() - began < 2


def test_yaml_errors_say_the_line(tmp_path):
    (tmp_path / "a.yaml").write_text("name: a\ncluster: {nodes: 1}\ncluster: {nodes: 2}\n")
    message = problems(tmp_path / "a.yaml")[str(tmp_path / "a.yaml")]
    assert message == "must name each key once (got 'cluster' again), line 3, column 1"


@pytest.mark.parametrize(
    "name", ["no-such-scenario", "", "a\0b", "x" * 5000, "/", ".", "/etc", "llama3-405", "../x"]
)
def test_a_missing_file_a_folder_or_an_impossible_name(name):
    assert list(problems(name)) == ["scenario"]


def test_a_slip_in_a_catalog_name_is_understood():
    assert "did you mean llama3-405b?" in problems("llama3-405")["scenario"]


def test_an_unreadable_file(tmp_path):
    path = tmp_path / "secret.yaml"
    path.write_text("a: 1")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert "cannot be read" in problems(path)[str(path)]


def cyclic():
    a = {}
    a["cluster"] = a
    return a


@pytest.mark.parametrize(
    "junk", [None, 5, [], b"abc", object(), {1: 2}, {"a": object()}, {"a": {1, 2}}, {"a": b"x"}, cyclic(),
             {"cluster": {"nodes": 10**5000}}, {"name": "\ud800"}, {"a": [[[]]] * 60_000}, {"a": 1j}]
)  # fmt: skip
def test_junk_that_no_yaml_could_say(junk):
    assert problems(junk)


JSON_JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=12),
        st.sampled_from([10**400, "5s", "off"]),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def load_or_complain(source):
    """The contract: a Scenario that can be written and read back, or a ScenarioError with paths."""
    try:
        s = load_scenario(source)
    except ScenarioError as error:
        assert error.problems and all(p.path and p.message for p in error.problems)
        assert len(error.problems) <= 60
        return None
    assert load_scenario(dump_yaml(s)) == s
    assert s.nominal_step_s() > 0 and s.total_steps() >= 1 and math.isfinite(s.max_wall_s())
    assert all(math.isfinite(c.rate_per_s()) for c in s.failures.classes)
    return s


@given(st.dictionaries(st.sampled_from([*FULL, "x"]), JSON_JUNK, max_size=8))
def test_fuzz_any_mapping(junk):
    load_or_complain(junk)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(PLACES), JSON_JUNK | st.just("drop")), min_size=1, max_size=4))
def test_fuzz_a_good_scenario_with_junk_in_places(changes):
    data = full()
    for path, junk in changes:
        here = data
        try:
            for step in path[:-1]:
                here = here[step]
            if junk == "drop":
                del here[path[-1]]
            else:
                here[path[-1]] = junk
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    load_or_complain(data)


@given(st.text(alphabet="abc:{}[]-&*!|>'\"#%@`\n\t ,?1.~=", max_size=80))
def test_fuzz_text(text):
    load_or_complain(text + "\n")


@given(st.binary(max_size=60))
def test_fuzz_bytes(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(data)
    load_or_complain(path)


TIMES = st.one_of(
    st.integers(1, 10**6), st.floats(0.001, 1e6), st.sampled_from(["5s", "4h30m", "2d", "500ms"])
)
ANY_LAW = st.one_of(
    TIMES,
    st.builds(lambda m: {"exponential": {"mean": m}}, TIMES),
    st.builds(lambda k, m: {"weibull": {"shape": k, "mean": m}}, st.floats(0.2, 5), TIMES),
    st.builds(lambda a, f: {"lognormal": {"median": a, "mean": a * f}}, st.floats(1, 1e5), st.floats(1, 10)),
    st.builds(lambda v: {"empirical": v}, st.lists(TIMES, min_size=1, max_size=4)),
)


@given(
    st.builds(
        lambda step, write, interval, rate, fixed, nodes, off: {
            "cluster": {"nodes": nodes},
            "workload": {"step_time": step, "steps": 100},
            "checkpoint": {"mode": "sync", "interval": interval, "write_time": write},
            "failures": {"classes": [CLASS | {"name": "b"}, {"name": "a", "rate": rate, "scope": "node",
            "symptom": "hang"}]}, "recovery": {"layers": ["fixed"], "fixed": {"restart": fixed},
            "nccl_timeout": off}, },
        ANY_LAW, ANY_LAW, TIMES, st.floats(1e-18, 1.0), ANY_LAW, st.integers(1, 10**6), st.just("off") |
        TIMES, )
)  # fmt: skip
def test_round_trip_of_any_good_scenario(data):
    s = load_or_complain(data)
    assert s is not None
    assert scenario_hash(load_scenario(dump_yaml(s))) == scenario_hash(s)
