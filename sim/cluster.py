"""Nodes: who works, who is spare, who is in repair. The numbers always add up to all the nodes there are."""

from __future__ import annotations

from typing import Any, NamedTuple

from sim.codes import COLD, FIXED, GONE, HOT, IN_REPAIR, NODE_LOSS, WORKING
from sim.kernel import rule

NOBODY = -1


class Nodes(NamedTuple):
    """The nodes of one run. Nodes 0.. are the first working set, then the hot, then the cold spares.

    Lists by state and a stack of empty slots keep what a fault costs the same however many nodes there are.
    """

    state: Any  # [node] WORKING | HOT | COLD | IN_REPAIR | GONE
    slot: Any  # [node] its place in the job, or -1
    node: Any  # [slot] who holds it, or -1
    count: Any  # [5] nodes in each state
    visits: Any  # [node] repairs begun
    place: Any  # [node] its place in the list of its state
    members: Any  # [5 x nodes] the lists of the states, each `count` long
    empty: Any  # [slot] the empty slots, as many as are missing


def sizes(p: Any) -> tuple[int, ...]:
    """Return the lengths of the arrays of `Nodes`, all of whole numbers."""
    total = p.nodes + p.hot + p.cold
    return total, total, p.nodes, 5, total, total, 5 * total, p.nodes


@rule
def start_nodes(nodes: Nodes, p: Any) -> None:
    """Fill the working set and the spares."""
    total = len(nodes.state)
    for s in range(5):
        nodes.count[s] = 0
    for n in range(total):
        state = WORKING if n < p.nodes else (HOT if n < p.nodes + p.hot else COLD)
        nodes.state[n] = state
        nodes.slot[n] = n if n < p.nodes else NOBODY
        nodes.visits[n] = 0
        nodes.place[n] = nodes.count[state]
        nodes.members[state * total + nodes.count[state]] = n
        nodes.count[state] += 1
    for s in range(p.nodes):
        nodes.node[s] = s


@rule
def move(nodes: Nodes, node: int, to: int) -> None:
    """Change a node's state; a node that leaves the working set frees its slot."""
    total = len(nodes.state)
    came = nodes.state[node]
    nodes.count[came] -= 1
    last = nodes.members[came * total + nodes.count[came]]  # the list's last takes the place of who leaves
    nodes.members[came * total + nodes.place[node]] = last
    nodes.place[last] = nodes.place[node]
    nodes.place[node] = nodes.count[to]
    nodes.members[to * total + nodes.count[to]] = node
    nodes.count[to] += 1
    nodes.state[node] = to
    if to != WORKING and nodes.slot[node] != NOBODY:
        nodes.empty[len(nodes.node) - nodes.count[WORKING] - 1] = nodes.slot[node]
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
    """Give a node the slot that was emptied last, if one is empty."""
    lacking = missing(nodes, p)
    if lacking > 0:
        slot = nodes.empty[lacking - 1]
        move(nodes, node, WORKING)
        nodes.node[slot] = node
        nodes.slot[node] = slot


@rule
def first_in(nodes: Nodes, p: Any, state: int) -> int:
    """Return the node in `state` whose turn it is (-1: none)."""
    return NOBODY if nodes.count[state] == 0 else int(nodes.members[state * len(nodes.state)])


@rule
def place_for_good_node(nodes: Nodes, p: Any) -> int:
    """Return where a repaired node goes: the job if it lacks one, else the hot spares up to their number, else cold."""
    if missing(nodes, p) > 0:
        return WORKING
    return HOT if nodes.count[HOT] < p.hot else COLD


@rule
def slot_at(nodes: Nodes, p: Any, share: float) -> int:
    """Return the slot that a share 0..1 of the occupied slots points at (-1: all are empty)."""
    working = int(nodes.count[WORKING])
    if working == 0:
        return NOBODY
    place = min(int(share * working), working - 1)
    if working == p.nodes:
        return place
    return int(nodes.slot[nodes.members[WORKING * len(nodes.state) + place]])


@rule
def hot_at(nodes: Nodes, p: Any, share: float) -> int:
    """Return the hot spare that a share 0..1 of them points at (-1: none)."""
    hot = int(nodes.count[HOT])
    if hot == 0:
        return NOBODY
    return int(nodes.members[HOT * len(nodes.state) + min(int(share * hot), hot - 1)])
