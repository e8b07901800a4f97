"""The rows below the job: attempts of restart layers, writes of checkpoints, nodes, and ranks or pods.

Each row is what the log itself says of one layer, tier, node, or process; where it says nothing, the row is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sim.accounts.event_kinds import Event
from sim.timeline import looks
from sim.timeline.looks import Look
from sim.timeline.story import Stretch, Tale, start_of

NODE_STATES = ("works", "hot", "cold")


@dataclass
class Piece:
    """A stretch of a row [s since the start of the run], and what is to say of it beyond its look."""

    start_s: float
    end_s: float
    look: Look
    note: str = ""


@dataclass
class Row:
    """One row: its name, the group it belongs to, its stretches, and the ids of faults that struck here, with times."""

    name: str
    group: str
    pieces: list[Piece] = field(default_factory=list)
    strikes: list[tuple[float, object]] = field(default_factory=list)


def layer_rows(log: Sequence[Event], tale: Tale) -> list[Row]:
    """Return one row for each restart layer that tried; its stretches are attempts."""
    zero, rows = start_of(log), dict[str, Row]()
    begun: Event | None = None
    for event in log:
        if event["kind"] == "layer_begin":
            begun = event
        elif event["kind"] == "layer_end" and begun is not None:
            _attempt(rows, begun, event["t"] - zero, event, zero)
            begun = None
        elif event["kind"] == "resumed" and begun is not None:  # its end is not in the log
            _attempt(rows, begun, event["t"] - zero, {"outcome": "resumed"}, zero)
            begun = None
    if begun is not None:
        _attempt(rows, begun, tale.wall_s, {"outcome": "cut", "reason": "the run ends"}, zero)
    return [rows[name] for name in sorted(rows)]


def _attempt(rows: dict[str, Row], begun: Event, end_s: float, end: Event, zero: float) -> None:
    layer, outcome = begun["layer"], end["outcome"]
    key = {"resumed": "attempt", "cut": "attempt_cut"}.get(outcome, "attempt_failed")
    reason = f": {end['reason']}" if end.get("reason") else ""
    note = f"attempt {begun['attempt']}, {outcome}{reason}"
    row = rows.setdefault(layer, Row(layer, "layers"))
    row.pieces.append(Piece(begun["t"] - zero, end_s, looks.of_row(key), note))


def write_rows(log: Sequence[Event], tale: Tale) -> list[Row]:
    """Return one row for each tier that checkpoints are written to, from save_begin to durable or lost."""
    zero, rows = start_of(log), dict[str, Row]()
    under_way: dict[object, Event] = {}

    def end(begun: Event, end_s: float, key: str, note: str) -> None:
        tier = begun.get("tier") or ""
        row = rows.setdefault(tier, Row(f"writes {tier}".strip(), "writes"))
        step = f"step {begun['step']}, " if begun.get("step") is not None else ""
        row.pieces.append(
            Piece(begun["t"] - zero, end_s, looks.of_row(key), f"save {begun['id']}, {step}{note}")
        )

    for event in log:
        if event["kind"] == "save_begin" and not event.get("drain"):
            under_way[event["id"]] = event
        elif event["kind"] in ("save_durable", "save_failed"):
            begun = under_way.pop(event["id"], None)
            if begun is not None:
                durable = event["kind"] == "save_durable"
                lost = f"lost: {event.get('reason') or 'no reason given'}"
                key, note = ("write", "durable") if durable else ("write_lost", lost)
                end(begun, event["t"] - zero, key, note)
    for begun in under_way.values():
        end(begun, tale.wall_s, "write_lost", "not durable when the log ends")
    return list(rows.values())


def node_rows(log: Sequence[Event], tale: Tale) -> list[Row]:
    """Return one row for each node that something happened to: struck, away, slow, a spare that joins."""
    zero = start_of(log)
    at = {"works": tale.run_start.get("nodes") or 0}
    spares = tale.run_start.get("spares") or {}
    at["hot"] = at["works"] + (spares.get("hot") or 0)
    rows: dict[object, Row] = {}
    state: dict[object, tuple[str, float, str]] = {}
    slow: dict[object, Event] = {}
    retired = 0

    def enter(node: object, t: float, key: str, note: str) -> None:
        was, since, why = state[node]
        if t > since:
            rows[node].pieces.append(Piece(since, t, looks.of_row(was), why))
        state[node] = key, t, note

    for event in log:
        kind, node, t = event["kind"], event.get("node"), event["t"] - zero
        if node is None or kind not in ("fault", "node_down", "node_up", "slow_begin", "slow_end"):
            continue
        if node not in rows:
            rows[node] = Row(f"node {node}", "nodes")
            # Nodes are numbered: those of the job, hot spares, cold spares. One with a name that joins was a spare.
            first = next((s for s in ("works", "hot") if isinstance(node, int) and node < at[s]), "cold")
            named = "hot" if kind == "node_up" else "works"
            state[node] = first if isinstance(node, int) else named, 0.0, ""
        if kind == "fault":
            rows[node].strikes.append((t, event["id"]))
        elif kind == "node_down":
            gone = event["retired"] > retired
            retired = event["retired"]
            enter(node, t, "retired" if gone else "repair", f"left: {event['why']}")
        elif kind == "node_up":
            to = event["to"]
            note = "joined the job" if to == "working" else f"back as a {to} spare"
            enter(node, t, "works" if to == "working" else to, note)
        elif kind == "slow_begin":
            slow[node] = event
        elif node in slow:
            begun = slow.pop(node)
            _slowed(rows[node], begun, t, zero)
    for node, begun in slow.items():
        _slowed(rows[node], begun, tale.wall_s, zero)
    for node in rows:
        enter(node, tale.wall_s, "works", "")
        rows[node].pieces.sort(key=lambda piece: piece.start_s)
    return [rows[node] for node in sorted(rows, key=_order)]


def _slowed(row: Row, begun: Event, end_s: float, zero: float) -> None:
    note = f"every step takes {begun['factor']:g} times as long"
    row.pieces.append(Piece(begun["t"] - zero, end_s, looks.of_row("slow"), note))


def process_rows(events: Sequence[Event], tale: Tale) -> list[Row]:
    """Return one row for each rank or pod that logged its own phases (the log as written, not the job's alone).

    A pod is told by its first rank. Between its phases a process is in the loop when the job is; a rank of a live
    log only after its own `resumed`.
    """
    zero, pods = start_of(events), tale.run_start.get("source") == "simulated"
    per_node = int(tale.run_start.get("gpus_per_node") or 1)
    told: dict[int, list[Event]] = {}
    struck: dict[int, list[tuple[float, object]]] = {}
    for event in events:
        rank = event.get("rank")
        if rank is None:
            continue
        if event["kind"] in ("phase_begin", "phase_end", "resumed"):
            told.setdefault(rank, []).append(event)
        elif event["kind"] == "fault":  # it names the rank it struck, a pod its first one
            struck.setdefault(rank // per_node * per_node if pods else rank, []).append(
                (event["t"] - zero, event["id"])
            )
    stretches = [chapter for chapter in tale.chapters if isinstance(chapter, Stretch)]
    rows = []
    for rank, own in sorted(told.items()):
        nodes = list(dict.fromkeys(event["node"] for event in own if event.get("node") is not None))
        where = f", node {'→'.join(map(str, nodes[:3]))}" if nodes else ""
        row = Row(f"{'pod of rank' if pods else 'rank'} {rank}{where}", "pods" if pods else "ranks")
        ready = None if pods else [event["t"] - zero for event in own if event["kind"] == "resumed"]
        row.pieces = [*_phases(own, tale, zero), *_in_the_loop(ready, stretches)]
        row.pieces.sort(key=lambda piece: piece.start_s)
        row.strikes = struck.get(rank, [])
        rows.append(row)
    return rows


def _phases(told: Sequence[Event], tale: Tale, zero: float) -> list[Piece]:
    pieces, begun = [], dict[tuple[str, str | None], float]()
    for event in told:
        if event["kind"] not in ("phase_begin", "phase_end"):
            continue
        key, t = (event["phase"], event["layer"]), event["t"] - zero
        if event["kind"] == "phase_begin":
            begun[key] = t
        elif key in begun:
            note = "cut" if event.get("cut") else ""
            pieces.append(Piece(begun.pop(key), t, looks.of_phase(*key), note))
    pieces += [Piece(t, tale.wall_s, looks.of_phase(*key), "not over yet") for key, t in begun.items()]
    return [piece for piece in pieces if piece.end_s > piece.start_s]


def _in_the_loop(ready: Sequence[float] | None, stretches: Sequence[Stretch]) -> list[Piece]:
    """Return when a process ran the loop; `ready` are the times of its `resumed`, None where the job's count."""
    pieces, look = [], looks.of_row("works", "in the loop")
    down_since = 0.0
    for stretch in stretches:
        begins = [stretch.start_s]
        if ready is not None:  # a late rank may be ready while others run already
            begins = [t for t in ready if down_since <= t <= max(stretch.start_s, stretch.end_s)][-1:]
        pieces += [Piece(t, stretch.end_s, look) for t in begins if stretch.end_s > t]
        down_since = stretch.end_s
    return pieces


def _order(node: object) -> tuple[bool, int, str]:
    return (False, node, "") if isinstance(node, int) else (True, 0, str(node))
