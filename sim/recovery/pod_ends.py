"""How the pods' containers end: faults, timeouts, stores that end with pod 0, and the back-off that follows."""

from __future__ import annotations

from typing import Any

from sim.codes import BY_CLASS, BY_HUMAN, HANG, NODE_LOSS
from sim.kernel import rule
from sim.params import IN_PLACE_RESTART, LAUNCHER_EXIT
from sim.recovery.pods import (
    BUILD,
    EXITING,
    FAILED_PODS,
    FOUND_BY,
    HUNG,
    JOB_FAILED,
    JOINED,
    LOST,
    MEET,
    STORE,
    WAITING,
    WORKERS,
    Pods,
    enter,
    has_container,
    has_workers,
    hosts_workers,
    in_collective,
)
from sim.sampling import draw


@rule
def begin_exit(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """Let the launcher end what runs; without workers there is nothing to wait for."""
    lasts = 0.0
    if has_workers(pods.state[i]):
        lasts = draw(p, LAUNCHER_EXIT, seed, replication, i, pods.starts[i])
    enter(pods, i, EXITING, now, now + lasts)


@rule
def leave(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """End pod `i`'s workers, and with rank 0 all who are in its store."""
    store_ends = i == 0 and hosts_workers(pods.state[0])
    begin_exit(pods, p, i, now, seed, replication)
    if store_ends:
        for j in range(1, p.nodes):
            if pods.state[j] == STORE:
                begin_exit(pods, p, j, now, seed, replication)


@rule
def _lose(
    pods: Pods, p: Any, i: int, silent: bool, now: float, until: float, seed: int, replication: int
) -> None:
    """Let pod `i`'s node leave; a node that dies closes no connection, so who is in pod 0's stores waits on."""
    store_ends = i == 0 and hosts_workers(pods.state[0])
    enter(pods, i, LOST, now, until)
    if i == 0:
        for j in range(1, p.nodes):
            if pods.state[j] == STORE and store_ends:
                if silent:
                    pods.until[j] = now + p.store_s
                else:
                    begin_exit(pods, p, j, now, seed, replication)
            elif pods.state[j] == JOINED and not silent:
                begin_exit(pods, p, j, now, seed, replication)


@rule
def end_container(pods: Pods, p: Any, i: int, now: float, seed: int, replication: int) -> None:
    """Let pod `i`'s container end, and the agents' store with pod 0's; the back-off begins."""
    if i == 0:
        for j in range(1, p.nodes):
            if pods.state[j] == JOINED:
                begin_exit(pods, p, j, now, seed, replication)
    if p.in_place:
        ready = now + draw(p, IN_PLACE_RESTART, seed, replication, 0, pods.starts[i])
        for j in range(p.nodes):
            if has_container(pods.state[j]) or pods.state[j] == WAITING:
                enter(pods, j, WAITING, now, ready)
    elif p.never_restart:
        count_failed_pod(pods, p)
        enter(pods, i, WAITING, now, now)
        ready = now + backoff_s(p, pods.job[FAILED_PODS])
        for j in range(p.nodes):
            if pods.state[j] == WAITING:
                pods.until[j] = ready
    else:
        if now - pods.begun[i] >= p.backoff_reset_s:
            pods.backoffs[i] = 0
        enter(pods, i, WAITING, now, now + backoff_s(p, pods.backoffs[i]))
        pods.backoffs[i] += 1


@rule
def count_failed_pod(pods: Pods, p: Any) -> None:
    """Count a pod that failed or was evicted; the Job fails when they exceed backoffLimit [job controller]."""
    pods.job[FAILED_PODS] += 1
    if pods.job[FAILED_PODS] > p.backoff_limit:
        pods.job[JOB_FAILED] = 1


@rule
def backoff_s(p: Any, before: int) -> float:
    """Return a back-off [s], after so many others: 0, initial, 2 x initial, ... up to the cap.

    kubelet (OnFailure): after so many of this container since its last reset. Job controller (Never): after so many
    failed pods of the Job, this one included, so that it begins with `initial`.
    """
    if before < 1:
        return 0.0
    if before > 40:
        return float(p.backoff_cap_s)
    return float(min(p.backoff_initial_s * 2.0 ** (before - 1), p.backoff_cap_s))


# --- faults


@rule
def strike_pods(
    pods: Pods,
    p: Any,
    pod: int,
    symptom: int,
    leaves: bool,
    detect_s: float,
    human_s: float,
    now: float,
    seed: int,
    replication: int,
) -> None:
    """Let a fault strike one pod (-1: the job as a whole); the others notice by their watchdogs.

    `detect_s`: the fault class's own time of detection, -1 without one. `human_s`: until a person comes, inf for
    never, who ends ranks that no watchdog ends and deletes pods that nobody evicts. A pod whose node leaves is evicted
    at once if the node was drained, after grace and toleration if it is lost, never if there is a podFailurePolicy.
    """
    found_s = min(p.nccl_s, human_s)
    if symptom == HANG and detect_s >= 0.0:
        found_s = detect_s
        pods.job[FOUND_BY] = BY_CLASS
    elif human_s < p.nccl_s:
        pods.job[FOUND_BY] = BY_HUMAN
    for i in range(p.nodes):
        state = pods.state[i]
        struck = pod < 0 or i == pod
        if struck and (leaves or symptom == NODE_LOSS):
            gone_s = min(p.node_loss_s, human_s) if symptom == NODE_LOSS else 0.0
            _lose(pods, p, i, symptom == NODE_LOSS, now, now + gone_s, seed, replication)
        elif struck and symptom == HANG:
            _hang(pods, p, i, now, found_s)
        elif struck and has_workers(state) and detect_s > 0.0:
            pods.job[FOUND_BY] = BY_CLASS
            enter(pods, i, HUNG, now, now + detect_s)
        elif struck:
            if has_container(state) and state != EXITING:
                leave(pods, p, i, now, seed, replication)
        elif in_collective(state):
            enter(pods, i, HUNG, now, now + found_s)
        elif state == MEET:
            pods.until[i] = min(pods.until[i], now + human_s)


@rule
def _hang(pods: Pods, p: Any, i: int, now: float, found_s: float) -> None:
    """Let one rank of pod `i` hang: its neighbours go on to where they need it. Without workers nobody hangs."""
    state = pods.state[i]
    if in_collective(state):
        enter(pods, i, HUNG, now, now + found_s)
    elif state == BUILD:
        enter(pods, i, HUNG, now, pods.until[i] + found_s)
    elif state == MEET:
        enter(pods, i, HUNG, now, min(pods.until[i], now + found_s))
    elif state == WORKERS:
        enter(pods, i, HUNG, now, pods.until[i] + p.store_s)
    elif state == STORE:
        enter(pods, i, HUNG, now, min(pods.until[i], now + p.store_s))
