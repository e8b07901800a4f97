"""The published EKS + NVRx benchmark: one number fitted to one run, the other two runs predicted from it.

The scenarios share every input but the restart layer, its launcher settings and the symptom at step 574. The time of
process group, model and checkpoint load after a fault (`workload.init`) has no published value: it is fitted to the
in-process run's two goodputs by least squares. In-job and Kubernetes are then predictions. docs/aws-benchmark.md tells
the whole story.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.published import RECOVERY_EVENT_S, figures
from sim.scenario import Scenario, load_scenario
from sim.study import Result, simulate

IN_PROCESS, IN_JOB = "aws-eks-nvrx-in-process", "aws-eks-nvrx-in-job"
KUBERNETES = "aws-eks-nvrx-kubernetes"
RUNS = (IN_PROCESS, IN_JOB, KUBERNETES)
FIT_RANGE_S = (0.0, 300.0)

CANDIDATES = (
    "a restart event repeated: 82 s a fault over 17 s an event is 4.8 events a fault; the model has one",
    "workers stopped slowly: up to the 30 s stop timeout of ft_launcher 0.4.1 a restart (5 x 30 s = 150 s); the model"
    " lets them end at once",
    "imports, CUDA context and NCCL set-up longer than the 10 s assumed (each 10 s more is 50 s of the run)",
    "a cold page cache after process restart: model and data read again, which in-process restart finds in memory",
    "the hang of step 574 noticed later than the 60 s NCCL timeout (the heartbeat timeout is 900 s)",
    "one more save of 275 s than the four published ones",
)
"""What could fill the unexplained time of the in-job run; no input is bent to hide it."""

KUBERNETES_CANDIDATES = (
    "restarts that die on the way: 826 s a fault over 270 s an event are 3.1 events a fault, and rank 0 enters the"
    " training function a second time only if a restart fails after all pods have met",
    "pods that build the model at different speeds: more than the 60 s NCCL timeout apart, the first collective ends"
    " the restart, every back-off doubles, and all begins again",
    "imports, CUDA context and a cold page cache as in the in-job run, each time anew",
)
"""What could fill that of the Kubernetes run; the published figures do not tell which."""


def with_init(name: str, init_s: float) -> Scenario:
    """Return a scenario of the benchmark with its one fitted number set."""
    return load_scenario(name, [f"workload.init={init_s!r}"])


def misfit(init_s: float, replications: int = 20, seed: int = 1) -> float:
    """Return the sum of squared distances of the in-process run's two goodputs from the published ones."""
    result = simulate(with_init(IN_PROCESS, init_s), replications=replications, seed=seed)
    return sum((result.metrics[f.metric].mean - f.value) ** 2 for f in figures(IN_PROCESS))


def fit(replications: int = 20, seed: int = 1) -> float:
    """Return the init + load time a fault that fits the in-process run best [s], to a tenth of a second."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda x: misfit(float(x), replications, seed),
        bounds=FIT_RANGE_S,
        method="bounded",
        options={"xatol": 0.01},
    )
    return round(float(found.x), 1)


@dataclass(frozen=True)
class Reading:
    """One run's "recovery time" read both ways [s]; neither is known to be the one that was published."""

    event_published_s: float
    event_s: float
    fault_published_s: float
    """Downtime a fault that the published infrastructure goodput implies."""
    fault_s: float
    events_a_fault: float
    """Events a fault that the two published figures imply together."""


def readings(result: Result) -> Reading:
    """Read the recovery time of one of the runs as time a restart event and as downtime a fault."""
    name = result.scenario.name
    published = {f.metric: f.value for f in figures(name)}
    wall_s = published_wall_s(result)
    faults = len(result.scenario.failures.schedule)
    down_s = (1.0 - published["infra_goodput_aws"]) * wall_s / faults
    event_s = RECOVERY_EVENT_S[name]
    return Reading(
        event_s,
        result.metrics["recovery_event_s"].mean,
        down_s,
        result.metrics["incident_s"].mean,
        down_s / event_s,
    )


def published_wall_s(result: Result) -> float:
    """Return the wall time that the published training goodput implies: kept steps x step time / goodput [s]."""
    published = {f.metric: f.value for f in figures(result.scenario.name)}
    return result.scenario.useful_time_s() / published["training_goodput_aws"]


def unexplained_s(result: Result) -> float:
    """Return the published wall time that the prediction does not account for [s]; negative: too much."""
    return published_wall_s(result) - result.metrics["wall_time_s"].mean
