"""Kubernetes restart: every pod by its own clock, its own back-off and its own role.

Nothing here says how long an incident lasts; it follows from what each pod does:

- A container that ends is started again by its kubelet: at once the first time, then after 10 s doubling to a cap,
  until it has run cleanly for a while [kubernetes docs, pod lifecycle]. With restartPolicy Never the Job controller
  makes a new pod after a back-off of its own [job controller]. Restarts sum up to backoffLimit [job docs].
- The survivors of a fault hang in a collective until the NCCL watchdog ends them.
- The container's script sleeps, then asks DNS for node 0, whose name exists only while its pod is ready.
- Pod 0 hosts the rendezvous (static torchrun). Its agent waits for all others. A pod that comes back while pod 0 still
  runs its *old* agent joins that stale store at once, starts its workers, and dies with the store. Workers wait in the
  store for all ranks, for the store timeout at most.

So pods out of phase can chase each other, with longer and longer back-offs in between. With JobSet (`in_place`) all
containers are restarted together instead.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from sim.codes import (
    ABORT,
    BACKOFF,
    CHECKPOINT_LOAD,
    DETECT,
    FAILED,
    HANG,
    INIT,
    NODE_LOSS,
    NODE_WAIT,
    PHASES,
    PROCESS_START,
    RENDEZVOUS,
    RESUMED,
    WARMUP,
)
from sim.kernel import rule
from sim.params import (
    AGENT_START,
    IN_PLACE_RESTART,
    LAUNCHER_EXIT,
    START_DELAY_0,
    START_DELAY_OTHERS,
)
from sim.params import INIT as INIT_ROW
from sim.params import LOAD as LOAD_ROW
from sim.params import PROCESS_START as PROCESS_START_ROW
from sim.params import WARMUP as WARMUP_ROW
from sim.sampling import draw

# What a pod can be doing, and the phase it counts as.
(
    RUN,  # in the training loop
    HUNG,  # in a collective that a dead peer never joins, until the watchdog
    EXITING,  # the launcher ends its other workers and itself
    WAITING,  # back-off
    SCRIPT,  # the container's start script sleeps
    DNS,  # ... and asks for node 0
    AGENT,  # torchrun starts
    CONNECT,  # tries to reach node 0's agent
    JOINED,  # has joined; waits for all agents
    WORKERS,  # worker processes start
    STORE,  # workers wait in the store for all ranks
    BUILD,  # process group and model, all together
    READ,  # checkpoint load
    WARM,  # compilation, data loader
    LOST,  # its node is gone; nobody has noticed, or its pod is being evicted
    HOMELESS,  # evicted, waits for a node
) = range(16)

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
    CHECKPOINT_LOAD,
    WARMUP,
    NODE_WAIT,
    NODE_WAIT,
)

STATE_NAMES: Final = (
    "run", "hung", "exiting", "back-off", "script", "dns", "agent", "connect", "joined", "workers", "store",
    "build", "read", "warm", "lost", "homeless",
)  # fmt: skip


class Pods(NamedTuple):
    """The pods of one run, one a node of the job; pod 0 hosts the rendezvous."""

    state: Any  # [pod]
    until: Any  # [pod] when its state ends by itself [s]
    since: Any  # [pod] when its state began [s]
    begun: Any  # [pod] when its container last started [s]
    backoffs: Any  # [pod] back-offs taken since the last reset
    restarts: Any  # [pod] container restarts, or (Never) failed pods
    tries: Any  # [pod] DNS tries left
    starts: Any  # [pod] containers started in this run: numbers its draws
    spent: Any  # [pod][phase] seconds in this incident
    job: Any  # [JOB_SIZE] what all share


# Fields of Pods.job
(
    COMPLETE,  # everybody has joined pod 0's present store
    ENTRIES,  # times that rank 0 entered the training function, in this incident
    JOB_FAILED,
    LOAD_NEEDED,
    LAST,  # the pod whose workers came last to the store: the incident is split along its timeline
) = range(5)
JOB_SIZE: Final = 5


@rule
def start_pods(pods: Pods, p: Any, now: float) -> None:
    """Begin a run: every pod's first container has just started, and its loop counts as running."""
    for i in range(p.nodes):
        pods.state[i] = RUN
        pods.until[i] = math.inf
        pods.since[i] = now
        pods.begun[i] = now
        pods.backoffs[i] = 0
        pods.restarts[i] = 0
        pods.starts[i] = 1
    for field in range(JOB_SIZE):
        pods.job[field] = 0
    pods.job[COMPLETE] = 1


@rule
def open_incident(pods: Pods, p: Any, load_needed: bool) -> None:
    """Clear what is counted by incident."""
    pods.job[ENTRIES] = 0
    pods.job[LOAD_NEEDED] = 1 if load_needed else 0
    for i in range(p.nodes):
        for phase in range(len(PHASES)):
            pods.spent[i][phase] = 0.0


@rule
def _enter(pods: Pods, i: int, state: int, now: float, until: float) -> None:
    """Let pod `i` go over to another state."""
    before = pods.state[i]
    if before != RUN:
        pods.spent[i][PHASE_OF[before]] += now - pods.since[i]
    pods.state[i] = state
    pods.since[i] = now
    pods.until[i] = until


@rule
def _in_collective(state: int) -> bool:
    return state == RUN or state == BUILD or state == READ or state == WARM


@rule
def has_container(state: int) -> bool:
    """Return whether a pod in this state runs a container: then it is ready, and DNS knows its name."""
    return state != WAITING and state != LOST and state != HOMELESS


@rule
def _agent_up(state: int) -> bool:
    return (
        _in_collective(state)
        or state == JOINED
        or state == WORKERS
        or state == STORE
        or state == HUNG
        or (state == EXITING)
    )


@rule
def _exit(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    _enter(pods, i, EXITING, now, now + draw(p, LAUNCHER_EXIT, seed, replication, i, pods.starts[i]))


@rule
def strike_pods(
    pods: Pods, p: Any, pod: int, symptom: int, leaves: bool, now: float, seed: int, replication: int
) -> None:
    """Let a fault strike one pod (-1: the job as a whole); the others notice by their watchdogs.

    A pod whose node leaves is evicted: at once if the node was drained, after grace and toleration if it is lost.
    """
    for i in range(p.nodes):
        state = pods.state[i]
        struck = pod < 0 or i == pod
        if struck and (leaves or symptom == NODE_LOSS):
            _enter(pods, i, LOST, now, now + (p.node_loss_s if symptom == NODE_LOSS else 0.0))
        elif struck and symptom != HANG:
            if has_container(state) and state != EXITING:
                _exit(pods, p, i, now, seed, replication)
        elif _in_collective(state):
            _enter(pods, i, HUNG, now, now + p.nccl_s)


@rule
def give_node(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """Start a new pod for one that was evicted from a lost node: its restarts no longer count."""
    pods.restarts[i] = 0
    pods.backoffs[i] = 0
    _start_container(pods, p, i, now, seed, replication)


@rule
def _start_container(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    pods.begun[i] = now
    pods.starts[i] += 1
    pods.tries[i] = p.dns_tries
    row = START_DELAY_0 if i == 0 else START_DELAY_OTHERS
    _enter(pods, i, SCRIPT, now, now + draw(p, row, seed, replication, i, pods.starts[i]))


@rule
def _ask_dns(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """Start torchrun once node 0's name is known; give up after the last try."""
    if p.dns_tries == 0 or i == 0 or has_container(pods.state[0]):
        _enter(pods, i, AGENT, now, now + draw(p, AGENT_START, seed, replication, i, pods.starts[i]))
    elif pods.tries[i] <= 1:
        _enter(pods, i, EXITING, now, now)
    else:
        pods.tries[i] -= 1
        _enter(pods, i, DNS, now, now + p.dns_every_s)


@rule
def _start_workers(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    _enter(pods, i, WORKERS, now, now + draw(p, PROCESS_START_ROW, seed, replication, i, pods.starts[i]))


@rule
def _agent_ready(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """Let a fresh agent find, or found, the rendezvous."""
    if i == 0:
        pods.job[COMPLETE] = 0
        _enter(pods, 0, JOINED, now, now + p.join_s)
        for j in range(1, p.nodes):
            if pods.state[j] == CONNECT:
                _enter(pods, j, JOINED, now, now + p.join_s)
    elif not _agent_up(pods.state[0]):
        _enter(pods, i, CONNECT, now, now + p.join_s)
    elif pods.job[COMPLETE]:  # a stale store: everybody has joined it before
        _start_workers(pods, p, i, now, seed, replication)
    else:
        _enter(pods, i, JOINED, now, now + p.join_s)


@rule
def _end_container(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """Let a container end: its store dies with pod 0's, and the back-off begins."""
    if i == 0:
        for j in range(1, p.nodes):
            state = pods.state[j]
            if state == JOINED or state == WORKERS or state == STORE:
                _exit(pods, p, j, now, seed, replication)
            elif _in_collective(state):
                _enter(pods, j, HUNG, now, now + p.nccl_s)
    if p.in_place:
        ready = now + draw(p, IN_PLACE_RESTART, seed, replication, 0, pods.starts[i])
        for j in range(p.nodes):
            if has_container(pods.state[j]) or pods.state[j] == WAITING:
                _enter(pods, j, WAITING, now, ready)
        return
    pods.restarts[i] += 1
    total = 0
    for j in range(p.nodes):
        total += pods.restarts[j]
    if total >= p.backoff_limit + (1 if p.never_restart else 0):
        pods.job[JOB_FAILED] = 1
    if now - pods.begun[i] >= p.backoff_reset_s:
        pods.backoffs[i] = 0
    _enter(pods, i, WAITING, now, now + backoff_s(p, pods.backoffs[i]))
    pods.backoffs[i] += 1


@rule
def backoff_s(p: Any, taken: int) -> float:
    """Return the back-off before a restart, after so many back-offs since the last reset [s].

    kubelet (OnFailure): 0, initial, 2 x initial, ... up to the cap. Job controller (Never): from initial at once.
    """
    doublings = taken if p.never_restart else taken - 1
    if doublings < 0:
        return 0.0
    if doublings > 40:
        return float(p.backoff_cap_s)
    return float(min(p.backoff_initial_s * 2.0**doublings, p.backoff_cap_s))


@rule
def _end_state(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """Let pod `i`'s state come to its own end."""
    state = pods.state[i]
    if state == HUNG or state == CONNECT or state == JOINED or state == STORE:
        _exit(pods, p, i, now, seed, replication)
    elif state == EXITING:
        _end_container(pods, p, i, now, seed, replication)
    elif state == WAITING:
        _start_container(pods, p, i, now, seed, replication)
    elif state == SCRIPT or state == DNS:
        _ask_dns(pods, p, i, now, seed, replication)
    elif state == AGENT:
        _agent_ready(pods, p, i, now, seed, replication)
    elif state == WORKERS:
        if i == 0:
            pods.job[ENTRIES] += 1
        _enter(pods, i, STORE, now, now + p.store_s)
    elif state == BUILD:
        last = draw(p, LOAD_ROW, seed, replication, p.nodes, pods.starts[0]) if pods.job[LOAD_NEEDED] else 0.0
        _enter(pods, i, READ, now, now + last)
    elif state == READ:
        _enter(pods, i, WARM, now, now + draw(p, WARMUP_ROW, seed, replication, p.nodes, pods.starts[0]))
    elif state == WARM:
        _enter(pods, i, RUN, now, math.inf)
    elif state == LOST:
        _enter(pods, i, HOMELESS, now, math.inf)


@rule
def _all_in(pods: Pods, p: Any, state: int) -> bool:
    for i in range(p.nodes):
        if pods.state[i] != state:
            return False
    return True


@rule
def advance_pods(pods: Pods, p: Any, now: float, seed: int, replication: int) -> tuple[int, float]:
    """Let everything happen that is due at `now`: (RESUMED | FAILED | NODE_WAIT | DETECT, next time)."""
    moved = True
    while moved:
        moved = False
        for i in range(p.nodes):
            if pods.until[i] <= now:
                _end_state(pods, p, i, now, seed, replication)
                moved = True
                if pods.job[JOB_FAILED]:
                    return FAILED, now
        if _all_in(pods, p, JOINED):
            pods.job[COMPLETE] = 1
            for i in range(p.nodes):
                _start_workers(pods, p, i, now, seed, replication)
            moved = True
        elif _all_in(pods, p, STORE):
            last = 0
            for i in range(p.nodes):
                if pods.since[i] > pods.since[last]:
                    last = i
            pods.job[LAST] = last
            built = now + draw(p, INIT_ROW, seed, replication, p.nodes, pods.starts[0])
            for i in range(p.nodes):
                _enter(pods, i, BUILD, now, built)
            moved = True
    if _all_in(pods, p, RUN):
        return RESUMED, now
    soonest = math.inf
    homeless = False
    for i in range(p.nodes):
        soonest = min(soonest, pods.until[i])
        homeless = homeless or pods.state[i] == HOMELESS
    return NODE_WAIT if homeless else DETECT, soonest
