"""Scenario blocks of the machine and the job: cluster, workload, economics, limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema, model_validator

from sim import catalog
from sim.schema.fields import (
    Block,
    Bound,
    Bytes,
    Duration,
    Factor,
    Flag,
    LawField,
    PositiveDuration,
    PositiveFraction,
    PositiveLaw,
    Probability,
    Problem,
    Text,
    broken,
    whole,
)
from sim.schema.law import Law
from sim.units import shown

NO_TIME = Law.constant(0.0)
MAX_NODES = 1_000_000
MAX_STEPS = 10**12


def _crews(x: Any) -> int | str:
    if x == "unlimited":
        return "unlimited"
    if isinstance(x, bool) or not isinstance(x, (int, float)) or not 1 <= x <= MAX_NODES or int(x) != x:
        raise ValueError(f"must be a whole number from 1 or unlimited {shown(x)}")
    return int(x)


Crews = Annotated[
    int | Literal["unlimited"],
    PlainValidator(_crews),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "unlimited"}]}),
]


class Spares(Block):
    """Nodes kept beside the working set."""

    hot: Annotated[int, *whole(0, MAX_NODES)] = 0
    """Spares that run, age and are paid for; they replace a node without a wait."""
    cold: Annotated[int, *whole(0, MAX_NODES)] = 0
    """Spares that must be scheduled first: `recovery.node_replacement.provision`."""
    bill: Flag = False
    """Whether cold spares are paid for as well."""


class RepairStage(Block):
    """One stage of the repair of a node."""

    time: LawField
    """How long the stage takes."""
    success: Probability = 1.0
    """Probability that a node leaving after this stage is really mended."""
    escalate: Probability = 0.0
    """Probability that the node goes on to the next stage instead of leaving."""


class Repair(Block):
    """What happens to a node that left the working set."""

    stages: tuple[RepairStage, ...]
    """Stages in their order; the last one cannot escalate."""
    crews: Crews = "unlimited"
    """How many nodes can be worked on at once; others queue."""
    renews: Flag = True
    """Whether a mended node starts with age 0 or keeps its age."""

    def rules(self) -> Iterator[Problem]:
        """Ask for at least one stage, and for an end of the escalation."""
        if not 1 <= len(self.stages) <= 10:
            yield Problem("stages", f"must hold 1 to 10 stages (got {len(self.stages)})")
        elif self.stages[-1].escalate > 0:
            yield Problem(
                f"stages.{len(self.stages) - 1}.escalate",
                f"must be 0: there is no stage after the last {shown(self.stages[-1].escalate)}",
            )


class Lemons(Block):
    """A share of the nodes is bad from the start."""

    fraction: Probability
    """Share of all nodes, spares included, that is bad."""
    added_rate: Factor
    """What a bad node adds to its fault rate, in ordinary rates (5: six times as many faults)."""
    cured_by_repair: Flag = True
    """Whether a successful repair makes a bad node good."""


class Diagnosis(Block):
    """How well the node at fault is found."""

    found: Probability = 1.0
    """Probability that the fault is put down to any node at all."""
    wrong_node: Probability = 0.0
    """Probability that, when it is, the wrong one is sent to repair."""


class Retire(Block):
    """When a node is given up."""

    after: Annotated[int, *whole(1, 10**6)]
    """Repairs after which a node does not come back."""


class Preemption(Block):
    """Spot capacity that is taken back."""

    warning: Duration
    """Time between the notice and the loss: node_loss classes strike so much later; see checkpoint.save_before."""


class Maintenance(Block):
    """Planned stops of the whole job; the nodes are down meanwhile."""

    every: PositiveDuration
    """Time from the start of one stop to the start of the next, and from the start of the run to the first."""
    duration: LawField
    """How long one stop lasts."""

    def rules(self) -> Iterator[Problem]:
        """Leave time to work between two stops."""
        if self.duration.mean_s() >= self.every:
            yield Problem("duration", f"must be shorter than every {shown(self.duration.plain(text=True))}")


class Cluster(Block):
    """The machines."""

    node_type: Text | None = None
    """A hardware preset (`goodput catalog list`): gives gpus_per_node and host memory unless stated."""
    nodes: Annotated[int, *whole(1, MAX_NODES)]
    """Nodes the job runs on (the working set), spares not counted."""
    gpus_per_node: Annotated[int, *whole(1, 1024)] = 8
    """GPUs, and ranks, of one node; default: the node type's, else 8."""
    nodes_per_rack: Annotated[int, *whole(1, MAX_NODES)] | None = None
    """Nodes that fail together in a fault of scope rack; default: the node type's."""
    spares: Spares = Spares()
    """Nodes kept beside the working set."""
    repair: Repair | None = None
    """What happens to nodes that must leave; without it none may."""
    host_memory_bytes: Bytes | None = None
    """Host memory of one node; default: the node type's."""
    initial_age: Literal["new", "stationary"] = "new"
    """Whether all nodes are new at the start, or of the age a long run would have given them."""
    lemons: Lemons | None = None
    """A share of bad nodes."""
    diagnosis: Diagnosis = Diagnosis()
    """How well the node at fault is found."""
    retire: Retire | None = None
    """When a node is given up."""
    preemption: Preemption | None = None
    """Spot capacity that is taken back."""
    maintenance: Maintenance | None = None
    """Planned stops of the whole job."""

    @model_validator(mode="before")
    @classmethod
    def _from_node_type(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("node_type"), str):
            return given
        preset = catalog.find_hardware(given["node_type"])
        if preset is None:
            if "gpus_per_node" in given:
                return given  # a machine of one's own, described by its numbers
            names = ", ".join(catalog.hardware_names())
            message = f"must be one of {names}, or state gpus_per_node {shown(given['node_type'])}"
            raise broken([Problem("node_type", message)])
        filled = {
            "gpus_per_node": preset.gpus_per_node,
            "nodes_per_rack": preset.nodes_per_rack,
            "host_memory_bytes": preset.host_memory_bytes,
        }
        return {key: value for key, value in filled.items() if value is not None} | given


class Scaling(Block):
    """How the step time changes with the number of nodes; without it the cluster size cannot be varied."""

    reference_nodes: Annotated[int, *whole(1, MAX_NODES)]
    """The number of nodes `workload.step_time` holds for."""
    efficiency: PositiveFraction = 1.0
    """Share of the speed-up kept at each doubling: 1 halves the step time, 0.5 leaves it as it is."""

    def factor(self, nodes: int) -> float:
        """Step time on `nodes` over that on the reference: (2 efficiency)^-log2(nodes / reference)."""
        return float((2 * self.efficiency) ** -math.log2(nodes / self.reference_nodes))


class Workload(Block):
    """The job."""

    step_time: PositiveLaw
    """Time of one training step with nothing in its way; nominal is the median of its law."""
    steps: Annotated[int, *whole(1, MAX_STEPS)] | None = None
    """Steps of the whole job; give this or useful_time."""
    useful_time: PositiveDuration | None = None
    """Work of the whole job as time of undisturbed steps (on scaling.reference_nodes, where given)."""
    process_start: LawField = NO_TIME
    """Interpreter, imports and CUDA context of a new process."""
    init: LawField = NO_TIME
    """Process group and model, at every entry into the training function; the load comes on top."""
    warmup: LawField = NO_TIME
    """Compilation and data-loader refill after every process start."""
    count_first_process_start: Flag = True
    """Whether the clock starts before the first process start, or after it as in a job that times itself."""
    scaling: Scaling | None = None
    """How the step time changes with the number of nodes."""

    def rules(self) -> Iterator[Problem]:
        """Ask for exactly one measure of the work, and a sane number of steps."""
        if (self.steps is None) == (self.useful_time is None):
            got = "neither" if self.steps is None else "both"
            yield Problem("", f"must have exactly one of steps, useful_time (got {got})")
        elif self.useful_time is not None and self.useful_time / self.step_time.median_s() > MAX_STEPS:
            yield Problem("useful_time", f"must be at most {MAX_STEPS} steps {shown(self.useful_time)}")


class Economics(Block):
    """What it costs."""

    usd_per_gpu_hour: Factor | None = None
    """Price of one allocated GPU for one hour."""


class Limits(Block):
    """Bounds that keep a hopeless scenario from running for ever."""

    max_wall: PositiveDuration | None = None
    """A run is cut (censored) at this wall time; default 20 x the useful time."""
    max_attempts: Bound = 1e4
    """Refuse a scenario whose expected attempts per checkpoint interval exceed this."""
    max_faults: Bound = 1e6
    """Refuse a scenario whose expected faults per run exceed this."""
    max_events: Bound = 5e6
    """Stop a run whose event log grows beyond this."""
