"""Kubernetes restart: every pod by its own clock, its own back-off and its own role.

Nothing here says how long an incident lasts; it follows from what each pod does:

- A container that ends is started again by its kubelet: at once the first time, then after 10 s doubling to a cap,
  from the start again once it has run for a while [kubernetes docs, pod lifecycle]. With restartPolicy Never the Job
  controller makes new pods instead, after a back-off that all pods of the Job share and that no running time resets
  [kubernetes, pkg/controller/job/backoff_utils.go]. Restarts of live pods sum up to backoffLimit [job docs].
- The survivors of a fault hang in a collective until the NCCL watchdog ends them.
- The container's script sleeps, then asks DNS for node 0, whose name exists only while its pod is ready.
- Pod 0's agent hosts the agents' store (static torchrun) and waits there until every agent has joined; who joined and
  died since still counts. An agent that finds everybody joined starts its workers at once, be the store ever so stale.
- The workers meet in a second store, which rank 0 opens and which ends with it. Who is in it then ends too; who comes
  too late for it waits, for the store timeout, for a rank 0 that cannot come: pod 0's next agent waits for this pod's.
- The model is built by each pod for itself; the first collective then needs all of them within the NCCL timeout.

So pods out of phase can chase each other, with longer and longer back-offs in between. With JobSet (`in_place`) all
containers are restarted together instead; its restarts do not count towards backoffLimit.
"""

from __future__ import annotations

import math
from typing import Any

from sim.codes import BY_WATCHDOG, FAILED, NODE_WAIT, PHASES, PODS, RESUMED
from sim.kernel import rule
from sim.params import AGENT_START, START_DELAY_0, START_DELAY_OTHERS
from sim.params import INIT as INIT_ROW
from sim.params import PROCESS_START as PROCESS_START_ROW
from sim.params import WARMUP as WARMUP_ROW
from sim.recovery.pod_ends import begin_exit, count_failed_pod, end_container, leave
from sim.recovery.pods import (
    AGENT,
    BUILD,
    COMPLETE,
    CONNECT,
    DNS,
    ENTRIES,
    EXITING,
    FOUND_BY,
    HOMELESS,
    HUNG,
    JOB_FAILED,
    JOB_SIZE,
    JOINED,
    LAST,
    LOAD_NEEDED,
    LOST,
    MEET,
    READ,
    RUN,
    SCRIPT,
    STORE,
    WAITING,
    WARM,
    WORKERS,
    Pods,
    all_in,
    enter,
    has_container,
    hosts_agents,
    hosts_workers,
)
from sim.sampling import draw


@rule
def start_pods(pods: Pods, p: Any, now: float) -> None:
    """Begin a run: every pod's first container has just started, and its loop counts as running."""
    for i in range(p.nodes):
        pods.state[i] = RUN
        pods.until[i] = math.inf
        pods.since[i] = now
        pods.joined[i] = 1
        pods.starts[i] = 0
        renew_pod(pods, i, now)
    for field in range(JOB_SIZE):
        pods.job[field] = 0
    pods.job[COMPLETE] = 1


@rule
def renew_pod(pods: Pods, i: int, now: float) -> None:
    """Put a new pod in place of pod `i`: it owes nothing for the restarts of the one before it."""
    pods.restarts[i] = 0
    pods.backoffs[i] = 0
    pods.begun[i] = now
    pods.starts[i] += 1


@rule
def open_incident(pods: Pods, p: Any) -> None:
    """Clear what is counted by incident."""
    pods.job[ENTRIES] = 0
    pods.job[FOUND_BY] = BY_WATCHDOG
    for i in range(p.nodes):
        for phase in range(len(PHASES)):
            pods.spent[i][phase] = 0.0


@rule
def give_node(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """Start a new pod for one that was evicted."""
    renew_pod(pods, i, now)
    pods.starts[i] -= 1
    _start_container(pods, p, i, now, seed, replication)


# --- how a pod comes back


@rule
def _start_container(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    pods.begun[i] = now
    pods.starts[i] += 1
    pods.tries[i] = p.dns_tries
    row = START_DELAY_0 if i == 0 else START_DELAY_OTHERS
    enter(pods, i, SCRIPT, now, now + draw(p, row, seed, replication, i, pods.starts[i]))


@rule
def _restart_container(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """Start a container again; with OnFailure it counts now, not when it ended [job controller]."""
    if not p.never_restart and not p.in_place:
        pods.restarts[i] += 1
        total = 0
        for j in range(p.nodes):
            total += pods.restarts[j]
        if total >= p.backoff_limit:
            pods.job[JOB_FAILED] = 1
    _start_container(pods, p, i, now, seed, replication)


@rule
def _ask_dns(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """Start torchrun once node 0's name is known; give up a while after the last try."""
    if p.dns_tries == 0 or i == 0:
        enter(pods, i, AGENT, now, now + draw(p, AGENT_START, seed, replication, i, pods.starts[i]))
    elif pods.tries[i] < 1:
        begin_exit(pods, p, i, now, seed, replication)
    elif has_container(pods.state[0]):
        enter(pods, i, AGENT, now, now + draw(p, AGENT_START, seed, replication, i, pods.starts[i]))
    else:
        pods.tries[i] -= 1
        enter(pods, i, DNS, now, now + p.dns_every_s)


@rule
def _agent_ready(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """Let a fresh agent found the rendezvous (pod 0), or find it."""
    if i == 0:
        pods.job[COMPLETE] = 0
        for j in range(1, p.nodes):
            pods.joined[j] = 0
            if pods.state[j] == CONNECT:
                _join(pods, p, j, now)
        _join(pods, p, 0, now)
    elif not hosts_agents(pods.state[0]):
        enter(pods, i, CONNECT, now, now + p.join_s)
    elif pods.job[COMPLETE]:  # a stale store: everybody has joined it before
        _start_workers(pods, p, i, now, seed, replication)
    else:
        _join(pods, p, i, now)


@rule
def _join(pods: Pods, p: Any, i: int, now: float) -> None:
    pods.joined[i] = 1
    enter(pods, i, JOINED, now, now + p.join_s)


@rule
def _start_workers(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    enter(pods, i, WORKERS, now, now + draw(p, PROCESS_START_ROW, seed, replication, i, pods.starts[i]))


@rule
def _enter_store(pods: Pods, p: Any, i: int, now: float) -> None:
    """Let pod `i`'s workers come to the workers' store: rank 0 opens it, and who is in it lasts as long as rank 0."""
    if i == 0:
        pods.job[ENTRIES] += 1
        enter(pods, 0, STORE, now, now + p.store_s)
        for j in range(1, p.nodes):
            if pods.state[j] == STORE:
                pods.until[j] = math.inf
    else:
        enter(pods, i, STORE, now, math.inf if hosts_workers(pods.state[0]) else now + p.store_s)


@rule
def _end_state(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """Let pod `i`'s state come to its own end."""
    state = pods.state[i]
    if state == HUNG or state == CONNECT or state == JOINED or state == STORE or state == MEET:
        leave(pods, p, i, now, seed, replication)
    elif state == EXITING:
        end_container(pods, p, i, now, seed, replication)
    elif state == WAITING:
        _restart_container(pods, p, i, now, seed, replication)
    elif state == SCRIPT or state == DNS:
        _ask_dns(pods, p, i, now, seed, replication)
    elif state == AGENT:
        _agent_ready(pods, p, i, now, seed, replication)
    elif state == WORKERS:
        _enter_store(pods, p, i, now)
    elif state == BUILD:
        enter(pods, i, MEET, now, now + p.nccl_s)
    elif state == READ:
        enter(pods, i, WARM, now, now + draw(p, WARMUP_ROW, seed, replication, p.nodes, pods.starts[0]))
    elif state == WARM:
        enter(pods, i, RUN, now, math.inf)
    elif state == LOST:
        count_failed_pod(pods, p)
        enter(pods, i, HOMELESS, now, math.inf)


@rule
def _go_on_together(pods: Pods, p: Any, now: float, seed: int, replication: int) -> bool:
    """Let all pods take the step that needs all of them, if it is time for one; whether it was."""
    if not pods.job[COMPLETE] and pods.state[0] == JOINED:
        for i in range(p.nodes):
            if not pods.joined[i]:
                return False
        pods.job[COMPLETE] = 1
        pods.job[LAST] = _last(pods, p, JOINED, 0)
        for i in range(p.nodes):
            if pods.state[i] == JOINED:
                _start_workers(pods, p, i, now, seed, replication)
        return True
    if all_in(pods, p, STORE):
        pods.job[LAST] = _last(pods, p, STORE, pods.job[LAST])
        for i in range(p.nodes):
            enter(pods, i, BUILD, now, now + draw(p, INIT_ROW, seed, replication, i, pods.starts[i]))
        return True
    if all_in(pods, p, MEET):
        pods.job[LAST] = _last(pods, p, MEET, pods.job[LAST])
        loaded = now
        if pods.job[LOAD_NEEDED] > 0:
            loaded += draw(p, pods.job[LOAD_NEEDED] - 1, seed, replication, p.nodes, pods.starts[0])
        for i in range(p.nodes):
            enter(pods, i, READ, now, loaded)
        return True
    return False


@rule
def _last(pods: Pods, p: Any, state: int, last: int) -> int:
    """Return the pod that came last into a state; at a tie `last`: who was late before has kept its place."""
    for i in range(p.nodes):
        if pods.state[i] == state and pods.since[i] > pods.since[last]:
            last = i
    return last


@rule
def advance_pods(pods: Pods, p: Any, now: float, seed: int, replication: int) -> tuple[int, float]:
    """Let everything happen that is due at `now`: (RESUMED | FAILED | NODE_WAIT | PODS, next time)."""
    moved = True
    while moved:
        moved = False
        for i in range(p.nodes):
            if pods.until[i] <= now:
                _end_state(pods, p, i, now, seed, replication)
                moved = True
                if pods.job[JOB_FAILED]:
                    return FAILED, now
        if _go_on_together(pods, p, now, seed, replication):
            moved = True
    if all_in(pods, p, RUN):
        return RESUMED, now
    soonest = math.inf
    homeless = False
    for i in range(p.nodes):
        soonest = min(soonest, pods.until[i])
        homeless = homeless or pods.state[i] == HOMELESS
    return NODE_WAIT if homeless else PODS, soonest
