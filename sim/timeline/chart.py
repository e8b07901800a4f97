"""The data of the page's chart: the job's bands, the rows below, faults and incidents, as compact plain lists."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from sim.accounts.event_kinds import LATENT_SYMPTOMS, Event
from sim.ledger import RunLedger
from sim.timeline import job_log, rows
from sim.timeline.bands import bands, thinned
from sim.timeline.looks import FAMILIES, TILES, of_band
from sim.timeline.rows import Row
from sim.timeline.story import Tale, start_of, struck
from sim.timeline.text import fault_text

MOST_BANDS = 40_000  # of the job; more are thinned
MOST_PIECES = 40_000  # of each group of rows; rows beyond are left out, and the page says so
MOST_ROWS = 512  # of a group
MOST_FAULTS = 5_000
GROUPS = {
    "layers": "Restart layers",
    "writes": "Checkpoints",
    "nodes": "Nodes",
    "pods": "Pods",
    "ranks": "Ranks",
}
_FAMILY = {family.key: place for place, family in enumerate(FAMILIES)}
_TILE = {name: place for place, name in enumerate(TILES)}


class _Table(list[Any]):
    """A list of different values, each referred to by its place."""

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[Hashable, int] = {}

    def place(self, value: Hashable) -> int:
        if value not in self._places:
            self._places[value] = len(self)
            self.append(value)
        return self._places[value]


def chart(events: Sequence[Event], ledger: RunLedger, tale: Tale) -> dict[str, Any]:
    """Return what the page draws.

    `job` holds the bands: `d` their lengths [s, to the microsecond], one after the other from 0; `k` their looks; `s`
    the part of each that is slow-down, where there is any; `n` the steps done at both ends of bands of steps.
    """
    log = job_log(events)
    looks, texts = _Table(), _Table()
    painted = bands(log, ledger)
    drawn = thinned(painted, ledger.wall_s, MOST_BANDS)
    job: dict[str, Any] = {"d": [], "k": [], "s": {}, "n": []}
    for place, band in enumerate(drawn):
        job["d"].append(_short(band.end_s - band.start_s, 6))
        job["k"].append(looks.place(of_band(band.category, band.phase, band.layer)))
        if slow_s := _short(band.slow_s, 6):
            job["s"][place] = slow_s
        if band.category in ("productive", "rework"):
            job["n"] += [-1, -1] if band.steps is None else [_short(steps, 2) for steps in band.steps]
    groups = []
    for found in (
        rows.layer_rows(log, tale),
        rows.write_rows(log, tale),
        rows.node_rows(log, tale),
        rows.process_rows(events, tale),
    ):
        if found:
            groups.append(_group(found, looks, texts, tale))
    return {
        "wall": _short(ledger.wall_s, 6),
        "thinned": len(painted) - len(drawn),
        "families": [[f.key, f.label, f.mark, f.colour, f.ink, f.thin] for f in FAMILIES],
        "tiles": list(TILES.values()),
        "job": job,
        "groups": groups,
        "faults": _faults(log, tale, texts),
        "incidents": [[_short(i.start_s, 3), i.end_s and _short(i.end_s, 3)] for i in tale.incidents],
        "looks": [[_FAMILY[k.family], _TILE[k.tile], k.label, k.category, k.layer] for k in looks],
        "texts": texts,
    }


def _group(found: list[Row], looks: _Table, texts: _Table, tale: Tale) -> dict[str, Any]:
    """Return a group of rows; where there are too many, those that were struck are kept first."""
    order = sorted(range(len(found)), key=lambda place: (not found[place].strikes, place))
    kept, pieces = set[int](), 0
    for place in order[:MOST_ROWS]:
        pieces += len(found[place].pieces)
        if pieces > MOST_PIECES and kept:
            break
        kept.add(place)
    group = found[0].group
    title = GROUPS[group]
    if group == "nodes":
        title += " that something happened to"
        if isinstance(tale.run_start.get("nodes"), int):
            title += f" ({len(found)} of {_all_nodes(tale)})"
    if len(kept) < len(found):
        title += f": {len(kept)} of {len(found)} rows, the others are left out"
    if max(len(found[place].pieces) for place in kept) > MOST_PIECES:
        title += f": the first {MOST_PIECES:,} of each row"
    return {"title": title, "rows": [_row(found[place], looks, texts) for place in sorted(kept)]}


def _all_nodes(tale: Tale) -> int:
    spares = tale.run_start.get("spares") or {}
    return int(tale.run_start["nodes"]) + int(spares.get("hot") or 0) + int(spares.get("cold") or 0)


def _row(row: Row, looks: _Table, texts: _Table) -> dict[str, Any]:
    pieces = row.pieces[:MOST_PIECES]
    return {
        "name": row.name,
        "t": [_short(piece.start_s, 3) for piece in pieces],
        "d": [_short(piece.end_s - piece.start_s, 3) for piece in pieces],
        "k": [looks.place(piece.look) for piece in pieces],
        "x": [texts.place(piece.note) if piece.note else -1 for piece in pieces],
        "hits": [_short(t, 3) for t, _ in row.strikes],
    }


def _faults(log: Sequence[Event], tale: Tale, texts: _Table) -> list[list[Any]]:
    """Return each fault: time, id, number of its incident (-1: none), whether the loop went on, text."""
    incident_of = {
        fault.id: number for number, incident in enumerate(tale.incidents) for fault in incident.faults
    }
    zero, found = start_of(log), []
    for event in log:
        if event["kind"] == "fault":
            latent = bool(event.get("idle")) or event["symptom"] in LATENT_SYMPTOMS
            number = -1 if event.get("idle") else incident_of.get(event["id"], -1)
            text = fault_text(struck(event, event["t"] - zero))
            found.append(
                [_short(event["t"] - zero, 3), str(event["id"]), number, int(latent), texts.place(text)]
            )
    return found[:MOST_FAULTS]


def _short(value: float, digits: int) -> float | int:
    """Round, and drop a fraction of nought, which JSON would spell out."""
    rounded = round(value, digits)
    return int(rounded) if rounded == int(rounded) else rounded
