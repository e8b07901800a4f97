"""The scenario: everything one prediction depends on.

Attribute names are the keys of the YAML file. The blocks are described in scenario_cluster.py (cluster,
workload, economics, limits), scenario_faults.py (checkpoint, failures) and scenario_recovery.py (recovery);
the rules between the blocks are here. Times are seconds, sizes bytes, rates 1/s; text such as ``4h30m`` is
parsed on the way in.

>>> s = load_scenario({"cluster": {"nodes": 2}, "workload": {"step_time": "2s", "steps": 1000},
...                    "checkpoint": {"mode": "sync", "interval": "100 steps", "write_time": "10s"}})
>>> s.interval_steps(), s.useful_time_s()
(100, 2000.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from sim.schema import io as scenario_io
from sim.schema import patterns, yaml_text
from sim.schema.cluster import NO_TIME, Cluster, Economics, Limits, RepairStage, Workload
from sim.schema.faults import Checkpoint, Failures, FaultClass, Interval, ScheduledFault, Slowdown, Tier
from sim.schema.fields import Block, Layer, Problem, ScenarioError, Scope, Symptom, Text
from sim.schema.law import Law
from sim.schema.problems import build
from sim.schema.recovery import Fixed, InJob, InProcess, Kubernetes, NodeReplacement, Recovery, Slurm
from sim.units import Per, shown

__all__ = [
    "Checkpoint",
    "Cluster",
    "Economics",
    "Failures",
    "FaultClass",
    "Fixed",
    "InJob",
    "InProcess",
    "Interval",
    "Kubernetes",
    "Law",
    "Layer",
    "Limits",
    "NodeReplacement",
    "Per",
    "Problem",
    "Recovery",
    "RepairStage",
    "Scenario",
    "ScenarioError",
    "ScheduledFault",
    "Scope",
    "Slowdown",
    "Slurm",
    "Symptom",
    "Tier",
    "Workload",
    "dump_yaml",
    "json_schema",
    "load_scenario",
    "scenario_hash",
    "to_mapping",
]

MAX_WALL_FACTOR = 20.0  # default bound on the wall time, in useful times [design 5.0]


def _sources(x: Any) -> dict[str, str]:
    if not isinstance(x, dict) or not all(isinstance(value, str) and value.strip() for value in x.values()):
        raise ValueError(f"must map paths to the text of their source {shown(x)}")
    return dict(x)


Sources = Annotated[
    dict[str, str],
    PlainValidator(_sources),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
]


class Scenario(Block):
    """Everything one prediction depends on. Make one with `load_scenario`."""

    name: Text = "scenario"
    """Name in reports; a file without one is named after itself."""
    description: Text | None = None
    """What this is, for people."""
    sources: Sources | None = None
    """Where the values come from: path -> text. Every value of a catalog scenario has one."""
    profile: Text | None = None
    """File with measured parameters, written by calibration."""
    cluster: Cluster
    """The machines."""
    workload: Workload
    """The job."""
    checkpoint: Checkpoint
    """How and when the state is saved."""
    failures: Failures = Failures()
    """What goes wrong."""
    recovery: Recovery = Recovery()
    """How the job comes back."""
    economics: Economics = Economics()
    """What it costs."""
    limits: Limits = Limits()
    """Bounds that keep a hopeless scenario from running for ever."""

    def rules(self) -> Iterator[Problem]:
        """Check the blocks against each other."""
        cluster, racks = self.cluster, self.cluster.nodes_per_rack is not None
        for field, faults in (("classes", self.failures.classes), ("schedule", self.failures.schedule)):
            for i, fault in enumerate(faults):
                path = f"failures.{field}.{fault.name or i}"
                if fault.repair and cluster.repair is None:
                    yield Problem(f"{path}.repair", "needs cluster.repair.stages (got True without them)")
                if isinstance(fault, FaultClass) and fault.preemption and cluster.preemption is None:
                    yield Problem(f"{path}.preemption", "needs cluster.preemption.warning (got True without it)")
                if fault.scope == "rack" and not racks:
                    yield Problem(f"{path}.scope", "needs cluster.nodes_per_rack (got 'rack' without it)")
                if (
                    isinstance(fault, FaultClass)
                    and fault.per == "rack"
                    and not (racks or fault.scope == "rack")
                ):
                    yield Problem(f"{path}.per", "needs cluster.nodes_per_rack (got 'rack' without it)")
                if isinstance(fault, ScheduledFault) and fault.rank >= self.ranks():
                    yield Problem(
                        f"{path}.rank",
                        f"must be below {self.ranks()}, the number of ranks (got {fault.rank})",
                    )
        if self.recovery.in_process.reserve_ranks >= self.ranks():
            got = self.recovery.in_process.reserve_ranks
            yield Problem(
                "recovery.in_process.reserve_ranks",
                f"must be below {self.ranks()}, the number of ranks (got {got})",
            )
        if not 1e-9 <= self.nominal_step_s() <= 1e9:
            yield Problem(
                "workload.step_time", f"must be 1e-9 to 1e9 s on this cluster (got {self.nominal_step_s():g})"
            )

    def ranks(self) -> int:
        """Ranks of the working set, one a GPU."""
        return self.cluster.nodes * self.cluster.gpus_per_node

    def units(self, per: Per) -> int:
        """How many units of a kind the working set has; a last, smaller rack counts."""
        nodes = self.cluster.nodes
        if per == "rack":
            return math.ceil(nodes / (self.cluster.nodes_per_rack or nodes))
        return {"rank": self.ranks(), "gpu": self.ranks(), "node": nodes, "job": 1}[per]

    def warning_s(self, fault: FaultClass) -> float:
        """How long before it comes a fault is told [s]: pre-emptions; 0 for all others."""
        preemption = self.cluster.preemption
        is_one = fault.symptom == "node_loss" if fault.preemption is None else fault.preemption
        return preemption.warning if preemption is not None and is_one else 0.0

    def step_factor(self) -> float:
        """Step time on this cluster over `workload.step_time` (1 without scaling)."""
        scaling = self.workload.scaling
        return 1.0 if scaling is None else scaling.factor(self.cluster.nodes)

    def nominal_step_s(self) -> float:
        """Step time with nothing in its way [s]: the median of its law, scaled to this cluster."""
        return self.workload.step_time.median_s() * self.step_factor()

    def total_steps(self) -> int:
        """Count the steps of the job; useful_time is steps of the unscaled step time, halves rounded up."""
        if self.workload.steps is not None:
            return self.workload.steps
        assert self.workload.useful_time is not None
        return max(1, math.floor(self.workload.useful_time / self.workload.step_time.median_s() + 0.5))

    def useful_time_s(self) -> float:
        """Time of all steps with nothing in their way [s]."""
        return self.total_steps() * self.nominal_step_s()

    def interval_steps(self) -> int:
        """Count the steps between two saves; raise ``ValueError`` where the mode has no interval."""
        if self.checkpoint.interval is None:
            raise ValueError(f"checkpoint.interval is not set (mode {self.checkpoint.mode})")
        return self.checkpoint.interval.in_steps(self.nominal_step_s())

    def write_law(self) -> Law:
        """Law of the time until a save is durable: stated, or bytes over the slower bandwidth."""
        checkpoint = self.checkpoint
        if checkpoint.bandwidth is None or checkpoint.bytes is None:
            return checkpoint.write_time or NO_TIME
        speeds = [checkpoint.bandwidth.aggregate or math.inf]
        if checkpoint.bandwidth.per_writer is not None:
            speeds.append(checkpoint.bandwidth.per_writer * self.ranks())
        return Law.constant(checkpoint.bytes / min(speeds))

    def load_law(self) -> Law:
        """Law of the time to load a checkpoint: as stated, or bytes over the read bandwidth."""
        checkpoint = self.checkpoint
        if (
            checkpoint.bandwidth is None
            or checkpoint.bytes is None
            or checkpoint.bandwidth.read_aggregate is None
        ):
            return checkpoint.load_time
        return Law.constant(checkpoint.bytes / checkpoint.bandwidth.read_aggregate)

    def max_wall_s(self) -> float:
        """Wall time at which a run is censored [s]."""
        stated = self.limits.max_wall
        return MAX_WALL_FACTOR * self.useful_time_s() if stated is None else stated

    def fault_rate_per_s(self) -> float:
        """Faults of all classes that strike the working set, per second, in the long run."""
        return sum(c.rate_per_s() * self.units(c.per or "job") for c in self.failures.classes)

    def __hash__(self) -> int:
        """Agree with equality; `sources` is a dict, so pydantic's own hash would fail."""
        return hash(scenario_hash(self))


def load_scenario(
    source: str | Path | Mapping[str, Any] | Scenario, overrides: Sequence[str] = ()
) -> Scenario:
    """Load a scenario: a catalog name, a file, YAML text (a str of several lines), a mapping or a Scenario.

    `overrides` are ``path=value``, list items by name: ``failures.classes.gpu.rate=5 per 1000 node-days``;
    null takes a key out; setting steps takes useful_time out, and so on for keys that exclude each other.

    Raises `ScenarioError`, and nothing else, with every problem found.
    """
    raw, base = scenario_io.read_source(to_mapping(source) if isinstance(source, Scenario) else source)
    return build(Scenario, scenario_io.override(raw, overrides), base)


def to_mapping(scenario: Scenario) -> dict[str, Any]:
    """Write a scenario as the mapping that `load_scenario` reads back exactly; defaults are left out."""
    data = scenario.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    data = {"name": scenario.name} | data
    # a node type would bring its own values in place of a left-out default
    data["cluster"]["gpus_per_node"] = scenario.cluster.gpus_per_node
    return data


def dump_yaml(scenario: Scenario) -> str:
    """Write a scenario as YAML that `load_scenario` reads back exactly."""
    return (
        f"# yaml-language-server: $schema={scenario_io.SCHEMA_FILE}\n{yaml_text.write(to_mapping(scenario))}"
    )


def json_schema() -> dict[str, Any]:
    """Describe the scenario file as a JSON Schema, each key with its meaning."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": scenario_io.SCHEMA_FILE}
    return head | patterns.share(scenario_io.describe(Scenario.model_json_schema(), Scenario))


def scenario_hash(scenario: Scenario) -> str:
    """12 hex characters over everything a prediction depends on; not name, description and sources."""
    return scenario_io.digest(scenario.model_dump(exclude={"name", "description", "sources"}))
