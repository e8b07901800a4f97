"""The benchmark's Kubernetes run over what is not published about it: ranges of inputs, each with its source.

No input is fitted here. A design takes every unknown from its range, evenly and by itself; what comes out is set
beside the published figures, and whether a run reaches them is counted, not sought.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sim.aws_eks import KUBERNETES
from sim.draws import stream_id, u
from sim.ledger import RunLedger
from sim.metrics import per_run
from sim.published import figures
from sim.scenario import Scenario, load_scenario
from sim.study import simulate

POINT_TOLERANCE = {"training_goodput_aws": 0.03, "infra_goodput_aws": 0.05}
"""How near a run must come to count as having reached the published point: what the other two runs are allowed."""


class Range(NamedTuple):
    """What one unknown may be [s], and why."""

    low: float
    high: float
    source: str


BUILD_S = 53.7
"""init + load a fault, fitted to the in-process run (catalog)."""
WEIGHTS_S, CHECKPOINT_S = 92.0, 275.0
"""Reading 16.06 GB of bf16 weights, or the checkpoint of 48.2 GB, at the 175 MB/s at which the file system wrote."""

RANGES = {
    "workload.process_start": Range(
        10.0,
        79.0,
        "10 s is assumed in the catalog; up to 69 s more a fault is what the in-job run leaves unexplained",
    ),
    "workload.init": Range(
        48.0, 82.0, "the tolerance of 3 points on the in-process run admits this much a fault; all pods alike"
    ),
    "recovery.kubernetes.agent_start": Range(
        3.0, 15.0, "interpreter and imports of torch: from a warm page cache to a cold one; every start anew"
    ),
    "recovery.kubernetes.launcher_exit": Range(
        0.0, 30.0, "between ending at once and torchrun's 30 s from SIGTERM to SIGKILL; every end anew"
    ),
}
EVERY_TIME = ("recovery.kubernetes.agent_start", "recovery.kubernetes.launcher_exit")
"""Inputs that differ at every start of every pod; the others are one constant of the cluster."""


def apart(seconds: float, build_s: float = BUILD_S) -> list[str]:
    """Return the overrides that let pods build the model up to so many seconds apart, evenly, every time anew."""
    if seconds <= 0.0:
        return [f"workload.init={build_s!r}"]
    return [f"workload.init={{uniform: {{low: {build_s!r}, high: {build_s + seconds!r}}}}}"]


def kubernetes(*changes: str) -> Scenario:
    """Return the benchmark's Kubernetes run with overrides."""
    return load_scenario(KUBERNETES, changes)


def designs(n: int, apart_up_to_s: float = 0.0) -> Iterator[Scenario]:
    """Yield `n` designs, each with its own constants from RANGES and its own largest difference between builds."""

    def share(i: int, name: str) -> float:
        return u(1, i, stream_id(f"aws_cascade.{name}"), 0, 0)

    for i in range(n):
        at = {
            path: r.low + (r.high - r.low) * share(i, path)
            for path, r in RANGES.items()
            if path not in EVERY_TIME
        }
        changes = [f"workload.process_start={at['workload.process_start']!r}"]
        yield kubernetes(*changes, *apart(apart_up_to_s * share(i, "apart"), at["workload.init"]))


def run_designs(n: int, apart_up_to_s: float = 0.0) -> tuple[RunLedger, ...]:
    """Run each of `n` designs once, under a seed of its own."""
    return tuple(
        simulate(scenario, replications=1, seed=1 + i).runs[0]
        for i, scenario in enumerate(designs(n, apart_up_to_s))
    )


Percentiles = tuple[float, float, float]
"""10th, 50th and 90th; nan without a run."""


@dataclass(frozen=True)
class Cascade:
    """What runs came to: shares of 1, and seconds; all but `failed` of the runs that completed."""

    runs: int
    failed: float
    """Share of runs whose Job failed by backoffLimit."""
    training: Percentiles
    infra: Percentiles
    events: Percentiles
    """Restart events a fault: entries of rank 0 into the training function."""
    event_s: Percentiles
    incident_s: Percentiles
    at_the_point: float
    """Share of all runs within POINT_TOLERANCE of both published goodputs."""


def cascade(runs: Sequence[RunLedger]) -> Cascade:
    """Return what the runs of one design, or of many, came to."""
    done = [run for run in runs if run.completed]
    training, infra = (per_run(name, done) for name in POINT_TOLERANCE)
    reached = sum(_at_the_point(t, i) for t, i in zip(training, infra, strict=True))
    events = [sum(incident.restart_events for incident in run.incidents) / len(run.incidents) for run in done]
    return Cascade(
        runs=len(runs),
        failed=sum(run.failed for run in runs) / len(runs),
        training=percentiles(training),
        infra=percentiles(infra),
        events=percentiles(events),
        event_s=percentiles(per_run("recovery_event_s", done)),
        incident_s=percentiles(per_run("incident_s", done)),
        at_the_point=reached / len(runs),
    )


def _at_the_point(training: float, infra: float) -> bool:
    published = {figure.metric: figure.value for figure in figures(KUBERNETES)}
    got = {"training_goodput_aws": training, "infra_goodput_aws": infra}
    return all(abs(got[name] - published[name]) <= tolerance for name, tolerance in POINT_TOLERANCE.items())


def percentiles(values: Sequence[float]) -> Percentiles:
    """Return the 10th, 50th and 90th percentile: the smallest value with at least that share at or below it."""
    ordered = sorted(values)
    if not ordered:
        return math.nan, math.nan, math.nan
    p10, p50, p90 = (ordered[max(0, math.ceil(p * len(ordered)) - 1)] for p in (0.1, 0.5, 0.9))
    return p10, p50, p90
