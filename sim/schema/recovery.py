"""Scenario blocks of recovery: one for each restart layer.

A setting left at None has no value of its own: the default of the NVRx (or Kubernetes) version stated is
used, as sim/recovery resolves it. ``off`` switches a timeout off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from sim.schema.cluster import NO_TIME
from sim.schema.fields import (
    Block,
    Budget,
    Duration,
    Flag,
    LawField,
    Layer,
    PositiveDuration,
    Probability,
    Problem,
    Text,
    Timeout,
)
from sim.schema.law import Law
from sim.units import shown

LAYERS: tuple[Layer, ...] = get_args(Layer)


class Fixed(Block):
    """Layer fixed: contains every fault and takes the stated times."""

    detect: LawField = NO_TIME
    """Time until the fault is noticed."""
    restart: LawField = NO_TIME
    """Time from there until the loop could run, the checkpoint load excepted."""


class InProcess(Block):
    """Layer in_process: NVRx's in-process Wrapper. Defaults are the Wrapper's, 0.4.1 to 0.7.0."""

    soft_timeout: Timeout = 60.0
    """Silence after which the watchdog aborts the rank, where the GIL is free."""
    hard_timeout: Timeout = 90.0
    """Silence after which the monitor process kills the rank."""
    heartbeat_timeout: Timeout = 30.0
    """Silence after which other ranks take a rank for lost."""
    monitor_interval: Duration = 1.0
    """Time between two looks of the monitor."""
    last_call_wait: Duration = 1.0
    """Wait for more ranks to report before the abort."""
    termination_grace: Duration = 5.0
    """Time between SIGTERM and SIGKILL of a hung rank."""
    abort: LawField = Law.constant(0.5)
    """Abort of the process groups."""
    unwind: LawField | None = None
    """Time for the wrapped function to unwind; default: one training step."""
    barrier: LawField = Law.constant(1.0)
    """Barrier and rank assignment."""
    reentry_wait: LawField = NO_TIME
    """What the job itself waits at re-entry before it builds the process group again."""
    atomic: Flag = False
    """Whether saves run under the Wrapper's atomic lock, so that the abort waits for a running save."""
    reserve_ranks: Budget = 0
    """Ranks kept idle that can take the place of a lost one."""
    health_check_pass: Probability = 1.0
    """Probability that the health check passes after a gpu_error."""
    success: Probability = 1.0
    """Probability that one attempt succeeds."""
    max_restarts: Budget | None = None
    """Restarts before the layer gives up; None: no limit."""


class SectionTimeouts(Block):
    """ft_launcher's section timeouts."""

    setup: Timeout | None = None
    """From the start of the workers to the first step."""
    step: Timeout | None = None
    """One step."""
    checkpointing: Timeout | None = None
    """One save."""
    out_of_section: Timeout | None = None
    """Time outside every section."""


class InJob(Block):
    """Layer in_job: NVRx's ft_launcher restarts the workers inside the job."""

    monitor_interval: PositiveDuration | None = None
    """Time between two looks at the workers' exit codes."""
    heartbeat_timeout: Timeout | None = None
    """Silence after which a rank is taken for hung."""
    initial_heartbeat_timeout: Timeout | None = None
    """The same before its first heartbeat: it must cover start, init and load."""
    section_timeouts: SectionTimeouts | None = None
    """Timeouts by section, in place of heartbeats."""
    stop: LawField = NO_TIME
    """Time for the workers to stop on SIGTERM."""
    stop_timeout: Timeout | None = None
    """Time after which they are killed."""
    memory_reclaim: LawField | None = None
    """Wait until GPU memory is free again."""
    rendezvous: LawField | None = None
    """Health check and rendezvous of the launchers."""
    health_check_pass: Probability = 1.0
    """Probability that the node's health check passes after a gpu_error."""
    success: Probability = 1.0
    """Probability that one attempt succeeds."""
    max_restarts: Budget | None = None
    """Restarts before the layer gives up (ft_launcher's --max-restarts)."""
    max_no_progress_cycles: Budget | None = None
    """Restarts in a row without a new checkpoint before the launcher stops the job."""


def _minor(version: str | None) -> int | None:
    """Return the minor version of '1.34'; None without one."""
    major, _, minor = (version or "").partition(".")
    return int(minor) if major == "1" and minor.isascii() and minor.isdigit() and len(minor) < 4 else None


class Backoff(Block):
    """Back-off between the restarts of a container."""

    initial: Duration | None = None
    """Wait before the second restart (the first comes at once); default 10 s, reduced 1 s."""
    cap: Duration | None = None
    """Longest wait; it doubles up to here. Default 300 s, reduced 60 s, with restart_policy Never 600 s."""
    reset: Duration = 600.0
    """Clean running after which it starts again."""
    reduced: Flag = False
    """The feature gate ReduceDefaultCrashLoopBackOffDecay (KEP-4603, alpha from 1.33): 1 s doubling to 60 s."""
    max_container_restart_period: PositiveDuration | None = None
    """The kubelet's crashLoopBackOff.maxContainerRestartPeriod (KEP-5593, on by default from 1.35): 1 s to 300 s."""

    def rules(self) -> Iterator[Problem]:
        """Keep the kubelet's own bound."""
        period = self.max_container_restart_period
        if period is not None and not 1.0 <= period <= 300.0:
            yield Problem("max_container_restart_period", f"must be 1 s to 300 s (got {period:g} s)")


class StartDelay(Block):
    """What the container's start script sleeps."""

    node0: LawField = NO_TIME
    """On the node that hosts the rendezvous."""
    others: LawField = NO_TIME
    """On the other nodes."""


class Dns(Block):
    """The container's wait for node 0's name; a headless Service lists ready pods only."""

    tries: Budget = 10
    """Tries before the container exits."""
    every: Duration = 5.0
    """Time between two tries."""


class Kubernetes(Block):
    """Layer kubernetes: pods restart, each by its own clock."""

    version: Text | None = None
    """Kubernetes version in quotes, such as '1.34'; sets defaults."""
    restart_policy: Literal["Never", "OnFailure"] = "Never"
    """The pods' restartPolicy."""
    backoff_limit: Budget = 6
    """Job backoffLimit: with OnFailure the restarts of all live pods sum up to it."""
    backoff: Backoff = Backoff()
    """Back-off between restarts."""
    start_delay: StartDelay = StartDelay()
    """What the start script sleeps."""
    dns: Dns | None = None
    """The start script's wait for node 0's name; None: it does not wait."""
    store_timeout: Timeout = 300.0
    """Wait in the TCPStore for all ranks."""
    join_timeout: Timeout = 900.0
    """Wait of node 0's agent for all agents to join."""
    launcher_exit: LawField = NO_TIME
    """Time for the launcher to end its other workers and itself, once one of them has ended."""
    agent_start: LawField = NO_TIME
    """Time for torchrun itself to start in a new container, before it starts the workers."""
    grace: Duration | None = None
    """Node silence until NotReady: 40 s, 50 s from 1.32."""
    toleration: Duration = 300.0
    """Wait from NotReady until the pods are evicted."""
    pod_failure_policy: Flag = False
    """With one, a replacement waits for phase Failed, which a dead kubelet never reports."""
    in_place: Flag = False
    """JobSet's in-place restart (1.35): when one container ends, all are restarted together."""
    in_place_restart: LawField = Law.constant(10.0)
    """Time from the first end of a container to the restart of all: about 10 s at 5,000 nodes [JobSet blog]."""

    def rules(self) -> Iterator[Problem]:
        """Ask for a version that has what is set."""
        at = _minor(self.version)
        if self.version is not None and at is None:
            yield Problem("version", f"must be like '1.34', in quotes {shown(self.version)}")
        needed = (
            ("backoff.reduced", self.backoff.reduced, 33),
            (
                "backoff.max_container_restart_period",
                self.backoff.max_container_restart_period is not None,
                32,
            ),
            ("in_place", self.in_place, 35),
        )
        for path, is_set, minor in needed:
            if is_set and at is not None and at < minor:
                yield Problem(path, f"needs version 1.{minor} or later {shown(self.version)}")

    def grace_s(self) -> float:
        """Node silence until NotReady [s]: 40, and 50 from 1.32 on."""
        if self.grace is not None:
            return self.grace
        at = _minor(self.version)
        return 40.0 if at is not None and at < 32 else 50.0

    def backoff_initial_s(self) -> float:
        """Back-off before the second restart of a container [s]."""
        given = 1.0 if self.backoff.reduced else 10.0
        initial = given if self.backoff.initial is None else self.backoff.initial
        return min(initial, self.backoff_cap_s())

    def backoff_cap_s(self) -> float:
        """Longest back-off [s]: the kubelet's, or (Never) the Job controller's."""
        if self.backoff.cap is not None:
            return self.backoff.cap
        if self.restart_policy == "Never":
            return 600.0
        return self.backoff.max_container_restart_period or (60.0 if self.backoff.reduced else 300.0)


class Slurm(Block):
    """Layer slurm: the job is requeued."""

    node_down: Duration = 300.0
    """Node silence until Slurm takes it for down (SlurmdTimeout)."""
    queue_wait: LawField = NO_TIME
    """Time in the queue after a requeue; the nodes are given back meanwhile, and not paid for."""
    time_limit: PositiveDuration | None = None
    """Time limit of one allocation, which begins with the run, and then with the end of each wait in the queue."""
    prolog: LawField = NO_TIME
    """Prolog and health check before the job starts again."""
    max_restarts: Budget | None = None
    """Requeues before the layer gives up; None: no limit."""


class NodeReplacement(Block):
    """Layer node_replacement: the node leaves and a spare joins."""

    provision: LawField = NO_TIME
    """Time until a cold spare is ready; a hot one is at once."""
    max_restarts: Budget | None = None
    """Replacements before the layer gives up; None: no limit."""


class Recovery(Block):
    """How the job comes back."""

    nccl_timeout: Timeout = 600.0
    """The process-group watchdog (torch's default: 10 min); off: a hang is left to the other detectors."""
    launcher: Literal["ft_launcher", "torchrun", "direct"] = "ft_launcher"
    """What starts the ranks. Under torchrun, in-process restart survives only faults that end no process."""
    nvrx: Literal["0.4.1", "0.6.0", "0.7.0"] = "0.6.0"
    """NVRx version, in quotes; sets the defaults of in_job."""
    layers: tuple[Layer, ...] = ()
    """Restart layers that are in use; the lowest that contains the symptom tries first."""
    human_response: LawField | None = None
    """Time until a person ends a hang that nothing detects."""
    fixed: Fixed = Fixed()
    """Settings of layer fixed."""
    in_process: InProcess = InProcess()
    """Settings of layer in_process."""
    in_job: InJob = InJob()
    """Settings of layer in_job."""
    kubernetes: Kubernetes = Kubernetes()
    """Settings of layer kubernetes."""
    slurm: Slurm = Slurm()
    """Settings of layer slurm."""
    node_replacement: NodeReplacement = NodeReplacement()
    """Settings of layer node_replacement, and of spares that join."""

    def rules(self) -> Iterator[Problem]:
        """Keep the layers in a possible order and under a launcher that has them."""
        listed = list(self.layers)
        for layer in dict.fromkeys(name for name in listed if listed.count(name) > 1):
            yield Problem("layers", f"must name each layer once {shown(layer)}")
        if "fixed" in listed and listed[-1] != "fixed":
            yield Problem("layers", f"must have fixed last: it contains everything {shown(listed)}")
        if {"kubernetes", "slurm"} <= set(listed):
            yield Problem("layers", f"must not hold both kubernetes and slurm {shown(listed)}")
        if "in_job" in listed and self.launcher != "ft_launcher":
            yield Problem("launcher", f"must be ft_launcher with layer in_job {shown(self.launcher)}")
