"""The pods of a job: what each is doing, and what follows from that alone.

Pod 0 is the one whose agent hosts the rendezvous (the agents' store) and whose rank 0 hosts the workers' store. What
happens next is in kubernetes.py.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from sim.codes import (
    ABORT,
    BACKOFF,
    CHECKPOINT_LOAD,
    DETECT,
    INIT,
    NODE_WAIT,
    PHASES,
    PROCESS_START,
    RENDEZVOUS,
    WARMUP,
)
from sim.kernel import rule

# What a pod can be doing, ...
(
    RUN,  # in the training loop
    HUNG,  # in a collective that a dead peer never joins, until the watchdog
    EXITING,  # the launcher ends its other workers and itself
    WAITING,  # back-off
    SCRIPT,  # the container's start script sleeps
    DNS,  # ... and asks for node 0
    AGENT,  # torchrun starts
    CONNECT,  # tries to reach node 0's agent
    JOINED,  # has joined the agents' store; waits for all agents
    WORKERS,  # worker processes start
    STORE,  # workers wait in the workers' store for all ranks, or for rank 0 to open it
    BUILD,  # process group and model, each pod for itself
    MEET,  # in the first collective, for which all pods are needed
    READ,  # checkpoint load
    WARM,  # compilation, data loader
    LOST,  # its node is gone; nobody has noticed, or its pod is being evicted
    HOMELESS,  # evicted, waits for a node
) = range(17)

# ... and the phase it counts as.
PHASE_OF: Final = (
    DETECT,
    DETECT,
    ABORT,
    BACKOFF,
    PROCESS_START,
    RENDEZVOUS,
    PROCESS_START,
    RENDEZVOUS,
    RENDEZVOUS,
    PROCESS_START,
    RENDEZVOUS,
    INIT,
    INIT,
    CHECKPOINT_LOAD,
    WARMUP,
    NODE_WAIT,
    NODE_WAIT,
)

NAMES: Final = (
    "run", "hung", "exiting", "waiting", "script", "dns", "agent", "connect", "joined", "workers", "store", "build",
    "meet", "read", "warm", "lost", "homeless",
)  # fmt: skip


class Pods(NamedTuple):
    """The pods of one run, one a node of the job."""

    state: Any  # [pod]
    until: Any  # [pod] when its state ends by itself [s]
    since: Any  # [pod] when its state began [s]
    begun: Any  # [pod] when its container last started [s]
    backoffs: Any  # [pod] back-offs taken since the last reset
    restarts: Any  # [pod] container restarts of the pod that now lives (OnFailure)
    joined: Any  # [pod] 1: has joined the agents' store that stands now, be it alive or not
    tries: Any  # [pod] DNS tries left
    starts: Any  # [pod] containers started in this run: numbers its draws
    spent: Any  # [pod][phase] seconds in this incident
    job: Any  # [JOB_SIZE] what all share


# Fields of Pods.job
(
    COMPLETE,  # everybody has joined the agents' store that stands now
    ENTRIES,  # times that rank 0 entered the training function, in this incident
    FAILED_PODS,  # pods that ended (Never), and those evicted
    JOB_FAILED,
    LOAD_NEEDED,  # 1 + row of the law of the load's time; 0: nothing to load
    LAST,  # the pod that was ready last: the incident is split along its timeline
    FOUND_BY,  # who ends the ranks that hang
) = range(7)
JOB_SIZE: Final = 7


def blank(n: int) -> Pods:
    """Return room for `n` pods, as lists."""
    return Pods(
        state=[0] * n,
        until=[0.0] * n,
        since=[0.0] * n,
        begun=[0.0] * n,
        backoffs=[0] * n,
        restarts=[0] * n,
        joined=[0] * n,
        tries=[0] * n,
        starts=[0] * n,
        spent=[[0.0] * len(PHASES) for _ in range(n)],
        job=[0] * JOB_SIZE,
    )


@rule
def enter(pods: Pods, i: int, state: int, now: float, until: float) -> None:
    """Let pod `i` go over to another state."""
    before = pods.state[i]
    if before != RUN:
        pods.spent[i][PHASE_OF[before]] += now - pods.since[i]
    pods.state[i] = state
    pods.since[i] = now
    pods.until[i] = until


@rule
def all_in(pods: Pods, p: Any, state: int) -> bool:
    """Return whether every pod is in this state."""
    for i in range(p.nodes):
        if pods.state[i] != state:
            return False
    return True


@rule
def in_collective(state: int) -> bool:
    """Return whether the workers are in a collective, or enter one at once: a dead peer makes them hang."""
    return state == RUN or state == READ or state == WARM


@rule
def has_workers(state: int) -> bool:
    """Return whether worker processes exist, which the launcher has to end."""
    return (
        in_collective(state)
        or state == HUNG
        or state == WORKERS
        or state == STORE
        or state == BUILD
        or state == MEET
    )


@rule
def has_container(state: int) -> bool:
    """Return whether a pod in this state runs a container: then it is ready, and DNS knows its name."""
    return state != WAITING and state != LOST and state != HOMELESS


@rule
def hosts_agents(state: int) -> bool:
    """Return whether pod 0's agent is up: its store outlives the workers until the launcher is gone."""
    return state == JOINED or state == EXITING or has_workers(state)


@rule
def hosts_workers(state: int) -> bool:
    """Return whether pod 0's rank 0 is up, and with it the workers' store."""
    return has_workers(state) and state != WORKERS
