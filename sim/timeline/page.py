"""One run as one HTML file: a chart to zoom into, its incidents in words, and the ledger. It needs nothing else.

The template, its style and its script lie beside this module (page.html, page.css, page.js). What the chart draws is
in it as JSON (sim/timeline/chart.py); all that comes from a scenario or a log is escaped on its way in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from sim.accounts.event_kinds import Event
from sim.ledger import RunLedger
from sim.timeline.chart import chart
from sim.timeline.looks import FAMILIES, LEDGER, PHASE_TILES, TILES
from sim.timeline.story import IncidentStory, Tale
from sim.timeline.text import attempt_text, clock, end_text, fault_text, heading
from sim.units import DAY_S, count, format_duration, percents

MOST_INCIDENTS = 1_000  # rows of the table; a file of more than 3 MB is no page
SEEN = 1e-9  # share of the wall time below which a category is rounding


def page(
    events: Sequence[Event], ledger: RunLedger, tale: Tale, origin: Mapping[str, Any], title: str
) -> str:
    """Return the whole file; the same input gives the same bytes. `origin` is told at the foot, line by line."""
    drawn = chart(events, ledger, tale)
    parts = {
        "title": escape(title),
        "size": escape(heading(tale)[1]),
        "end": escape(end_text(tale.end, tale)),
        "figures": _figures(ledger, tale),
        "chart_label": escape(_label(ledger, tale)),
        "patterns": _patterns(),
        "legend": _legend(drawn),
        "notes": _notes(drawn),
        "incidents": _incidents(tale),
        "ledger": _ledger(ledger),
        "origin": "".join(f"<dt>{escape(key)}</dt><dd>{_shown(value)}</dd>" for key, value in origin.items()),
        "css": _asset("page.css"),
        "js": _asset("page.js"),
        "data": _json(drawn),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return resources.files("sim.timeline").joinpath(name).read_text(encoding="utf-8")


def _json(data: Any) -> str:
    """Return JSON that no HTML parser takes for anything else."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _shown(value: Any) -> str:
    return escape("none" if value is None else str(value))


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


# ---- the head


def _figures(ledger: RunLedger, tale: Tale) -> str:
    wall_s = ledger.wall_s or 1.0
    figures = [
        ("goodput", _percent(ledger.seconds["productive"] / wall_s)),
        ("wall time", format_duration(ledger.wall_s)),
        ("incidents", f"{len(tale.incidents):,}"),
        ("faults", f"{ledger.interruptions:,}"),
        ("time in incidents", format_duration(ledger.downtime_s)),
        ("rework", format_duration(ledger.seconds["rework"])),
        ("kept steps", f"{ledger.kept_steps:,.0f}"),
        ("durable saves", f"{ledger.durable_saves:,}"),
    ]
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures)


def _label(ledger: RunLedger, tale: Tale) -> str:
    """Return the chart in a sentence, for those who cannot see it."""
    wall_s = ledger.wall_s or 1.0
    shares = sorted(ledger.seconds.items(), key=lambda item: -item[1])
    parts = [f"{name} {_percent(seconds / wall_s)}" for name, seconds in shares if seconds / wall_s > 5e-5]
    return (
        f"Timeline of the run over {format_duration(ledger.wall_s)}, {len(tale.incidents)} incidents. "
        f"Where the time went: {', '.join(parts)}. The incidents and the ledger follow as tables."
    )


# ---- legend


def _swatch(colour: str, ink: str, tile: str, thin: bool = False) -> str:
    y, height = (5, 5) if thin else (0.5, 15)
    shape = f'x="0.5" y="{y}" width="29" height="{height}" rx="2"'
    pattern = f'<rect {shape} fill="url(#{_id(tile, ink)})"/>' if TILES[tile] else ""
    frame = f'<rect {shape} fill="none" stroke="currentColor" stroke-opacity=".5"/>'
    return f'<svg class="swatch" width="30" height="16" aria-hidden="true"><rect {shape} fill="{colour}"/>{pattern}{frame}</svg>'  # noqa: E501


def _id(tile: str, ink: str) -> str:
    return f"tile-{tile.replace(' ', '-')}-{ink.lstrip('#')}"


def _patterns() -> str:
    """Return the patterns of the swatches, once for each ink; the chart makes its own from the same paths."""
    return "".join(
        f'<pattern id="{_id(tile, ink)}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<path d="{path}" fill="none" stroke="{ink}" stroke-opacity=".6"/></pattern>'
        for tile, path in TILES.items()
        if path
        for ink in sorted({family.ink for family in FAMILIES})
    )


def _legend(drawn: Mapping[str, Any]) -> str:
    """Return what the colours, patterns and marks of this very run mean."""
    used = {look[0] for look in drawn["looks"]} | ({_place("slowdown")} if drawn["job"]["s"] else set())
    shown = [family for place, family in enumerate(FAMILIES) if place in used]
    items = [
        f"<li>{_swatch(f.colour, f.ink, f.tile, f.thin)}{_mark(f.mark)}{escape(f.label)}</li>" for f in shown
    ]
    labels = {look[2] for look in drawn["looks"]}
    phases = [
        f"<li>{_swatch('#CC79A7', '#000000', tile)}{phase}</li>"
        for phase, tile in PHASE_TILES.items()
        if phase in labels
    ]
    if phases:
        items.append(
            f'<li class="sub">Phases of a start or restart, by pattern: <ul>{"".join(phases)}</ul></li>'
        )
    items.append('<li><span class="mark" aria-hidden="true">▼</span> a fault (hollow: the loop goes on)</li>')
    return "".join(items)


def _breakable(name: str) -> str:
    """Return a name that may be broken after a dot or a bar, where a line is short."""
    return escape(name).replace(".", ".<wbr>").replace("_", "_<wbr>")


def _mark(mark: str) -> str:
    return f"<b>{escape(mark)}</b> " if mark else ""


def _place(key: str) -> int:
    return next(place for place, family in enumerate(FAMILIES) if family.key == key)


def _notes(drawn: Mapping[str, Any]) -> str:
    notes = []
    if drawn["job"]["s"]:
        notes.append("The height of the slow-down in a stretch of steps is its share of that time.")
    if drawn["thinned"]:
        notes.append(
            "Stretches too short to be seen at any zoom are drawn together, in the right proportion."
        )
    return "".join(f"<p>{note}</p>" for note in notes)


# ---- incidents


def _incidents(tale: Tale) -> str:
    days, found = tale.wall_s >= DAY_S, tale.incidents
    rows = [_incident(number, story, tale, days) for number, story in enumerate(found[:MOST_INCIDENTS])]
    if not rows:
        return '<tr><td colspan="7">No incident: the loop was never stopped by a fault.</td></tr>'
    if len(found) > MOST_INCIDENTS:
        more = f"{len(found) - MOST_INCIDENTS:,} more incidents are in the chart but not in this table."
        rows.append(f'<tr><td colspan="7">{more}</td></tr>')
    return "".join(rows)


def _incident(number: int, story: IncidentStory, tale: Tale, days: bool) -> str:
    end_s = tale.wall_s if story.end_s is None else story.end_s
    faults = [fault_text(fault) for fault in story.faults]
    noticed = [
        "before the next one struck nobody noticed"
        if fault.noticed_after_s is None
        else f"after {format_duration(fault.noticed_after_s)}"
        + (f" by {fault.noticed_by}" if fault.noticed_by else "")
        for fault in story.faults
    ]
    attempts = [attempt_text(attempt) for attempt in story.attempts]
    others = [item for item in story.order if isinstance(item, str)]
    down = format_duration(end_s - story.start_s)
    if story.end_s is None:
        down += ", never resumes"
    rework = "none"
    if story.steps_lost or story.rework_s:
        steps = "1 step" if story.steps_lost == 1 else f"{story.steps_lost:,} steps"
        rework = f"{format_duration(story.rework_s)} ({steps})"
    cells = [
        ("What struck whom", _lines(faults or ["no fault in the log"])),
        ("Noticed", _lines(noticed or ["-"])),
        (
            "Restart",
            _lines(attempts or ["-"]) + (f'<div class="aside">{_lines(others)}</div>' if others else ""),
        ),
        ("Down", escape(down)),
        ("Rework", escape(rework)),
    ]
    told = "".join(f'<td data-label="{name}">{html}</td>' for name, html in cells)
    at = clock(story.start_s, days)
    button = (
        f'<button type="button" aria-label="Show incident {number + 1} at {at} in the timeline">{at}</button>'
    )
    return f'<tr data-i="{number}"><th scope="row">{number + 1}</th><td data-label="Time">{button}</td>{told}</tr>'


def _lines(texts: Iterable[str]) -> str:
    return "".join(f"<div>{escape(text)}</div>" for text in texts)


# ---- the ledger


def _ledger(ledger: RunLedger) -> str:
    """Return the rows of the ledger."""
    wall_s = ledger.wall_s or 1.0
    shares = {name: seconds / wall_s for name, seconds in ledger.seconds.items()}
    shown = percents(shares)
    with_gpus = sum(ledger.gpu_seconds.values()) > 0.0
    rows = []
    for name, share in shares.items():
        if share < SEEN and name != "productive":
            continue
        family = next(f for f in LEDGER if f.key == name.partition(".")[0])
        gpu = count(ledger.gpu_seconds.get(name, 0.0) / 3600.0) if with_gpus else "-"
        rows.append(
            f'<tr><th scope="row">{_swatch(family.colour, family.ink, family.tile)}{_breakable(name)}</th>'
            f'<td class="words">{escape(family.label)}</td><td class="n">{shown[name]}</td>'
            f'<td class="n">{format_duration(ledger.seconds[name])}</td><td class="n">{gpu}</td>'
            f'<td class="bar"><svg width="100%" height="10" aria-hidden="true"><rect width="{100 * share:.3f}%" '
            f'height="10" fill="{family.colour}" stroke="currentColor" stroke-opacity=".5"/></svg></td></tr>'
        )
    total = 100.0 * sum(shares.values())
    working = sum(s for name, s in ledger.gpu_seconds.items() if name != "spare_idle") / 3600.0
    rows.append(
        f'<tr class="total"><th scope="row">total</th><td class="words"></td><td class="n">{total:.2f}</td>'
        f'<td class="n">{format_duration(ledger.wall_s)}</td>'
        f'<td class="n">{count(working) if with_gpus else "-"}</td><td class="bar"></td></tr>'
    )
    idle = ledger.gpu_seconds.get("spare_idle", 0.0) / 3600.0
    if idle:
        rows.append(
            f'<tr><th scope="row">spare_idle</th><td class="words">hot spares that wait; beside the job</td>'
            f'<td class="n"></td><td class="n"></td><td class="n">{count(idle)}</td><td class="bar"></td></tr>'
        )
    return "".join(rows)
