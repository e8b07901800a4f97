"""Nodes: who works, who is spare, who is in repair. The numbers always add up to all the nodes there are."""

from __future__ import annotations

from typing import Any, NamedTuple

from sim.codes import COLD, FIXED, GONE, HOT, IN_REPAIR, NODE_LOSS, WORKING
from sim.kernel import rule

NOBODY = -1


class Nodes(NamedTuple):
    """The nodes of one run. Nodes 0.. are the first working set, then the hot, then the cold spares."""

    state: Any  # [node] WORKING | HOT | COLD | IN_REPAIR | GONE
    slot: Any  # [node] its place in the job, or -1
    node: Any  # [slot] who holds it, or -1
    count: Any  # [5] nodes in each state
    visits: Any  # [node] repairs begun


@rule
def start_nodes(nodes: Nodes, p: Any) -> None:
    """Fill the working set and the spares."""
    for n in range(p.nodes + p.hot + p.cold):
        nodes.state[n] = WORKING if n < p.nodes else (HOT if n < p.nodes + p.hot else COLD)
        nodes.slot[n] = n if n < p.nodes else NOBODY
        nodes.visits[n] = 0
    for s in range(p.nodes):
        nodes.node[s] = s
    nodes.count[WORKING] = p.nodes
    nodes.count[HOT] = p.hot
    nodes.count[COLD] = p.cold
    nodes.count[IN_REPAIR] = 0
    nodes.count[GONE] = 0


@rule
def move(nodes: Nodes, node: int, to: int) -> None:
    """Change a node's state; a node that leaves the working set frees its slot."""
    nodes.count[nodes.state[node]] -= 1
    nodes.count[to] += 1
    nodes.state[node] = to
    if to != WORKING and nodes.slot[node] != NOBODY:
        nodes.node[nodes.slot[node]] = NOBODY
        nodes.slot[node] = NOBODY


@rule
def takes_node(p: Any, symptom: int, repair: bool) -> bool:
    """Return whether the struck node leaves: to repair, or (lost, and not repaired) for good.

    With layer fixed a node that is lost but not repaired is back with the stated restart: that layer contains
    everything in the times it states.
    """
    return bool(repair or (symptom == NODE_LOSS and not p.layer_on[FIXED]))


@rule
def missing(nodes: Nodes, p: Any) -> int:
    """Return how many slots of the job stand empty."""
    return int(p.nodes - nodes.count[WORKING])


@rule
def take_out(nodes: Nodes, p: Any, node: int, repair: bool) -> None:
    """Take a failed node out, to repair or (not repairable) for good."""
    move(nodes, node, IN_REPAIR if repair else GONE)
    if repair:
        nodes.visits[node] += 1


@rule
def seat(nodes: Nodes, p: Any, node: int) -> None:
    """Give a node the first empty slot."""
    for s in range(p.nodes):
        if nodes.node[s] == NOBODY:
            move(nodes, node, WORKING)
            nodes.node[s] = node
            nodes.slot[node] = s
            return


@rule
def first_in(nodes: Nodes, p: Any, state: int) -> int:
    """Return the first node in `state` (-1: none)."""
    if nodes.count[state] == 0:
        return NOBODY
    for n in range(p.nodes + p.hot + p.cold):
        if nodes.state[n] == state:
            return n
    return NOBODY


@rule
def place_for_good_node(nodes: Nodes, p: Any) -> int:
    """Return where a repaired node goes: the job if it lacks one, else the hot spares up to their number, else cold."""
    if missing(nodes, p) > 0:
        return WORKING
    return HOT if nodes.count[HOT] < p.hot else COLD


@rule
def slot_at(nodes: Nodes, p: Any, share: float) -> int:
    """Return the slot that a share 0..1 of the occupied slots points at."""
    working = int(nodes.count[WORKING])
    place = min(int(share * working), working - 1)
    if working == p.nodes:
        return place
    for s in range(p.nodes):
        if nodes.node[s] != NOBODY:
            if place == 0:
                return s
            place -= 1
    return NOBODY


@rule
def hot_at(nodes: Nodes, p: Any, share: float) -> int:
    """Return the hot spare that a share 0..1 of them points at (-1: none)."""
    place = min(int(share * nodes.count[HOT]), int(nodes.count[HOT]) - 1)
    for n in range(p.nodes + p.hot + p.cold):
        if nodes.state[n] == HOT:
            if place == 0:
                return n
            place -= 1
    return NOBODY
