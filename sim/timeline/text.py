"""The story of one run as text for a terminal: one block for each incident, and a bar of the wall time."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from sim.timeline.story import (
    ACTIVITIES,
    Attempt,
    Chapter,
    End,
    IncidentStory,
    Phase,
    Span,
    Start,
    Stretch,
    Struck,
    Tale,
)
from sim.units import format_duration

MARKS = dict(zip(ACTIVITIES, "=x#s?rlw", strict=True))
LEGEND = {
    "kept": "kept steps", "lost": "lost steps", "save": "save", "start": "start", "detect": "not noticed yet",
    "restart": "restart", "load": "load", "node_wait": "waits for nodes",
}  # fmt: skip
MIN_WIDTH = 40
MOMENTS = 8  # lines of a stretch at most; a long stretch of idle faults is counted


def render(tale: Tale, width: int = 80, incidents: int | None = None) -> str:
    """Return the story in lines of at most `width` characters; only the first `incidents` of them in full."""
    width = max(width, MIN_WIDTH)
    days = tale.wall_s >= 86400
    lines = [line for text in heading(tale) for line in textwrap.wrap(text, width)] + [""]
    shown, hidden = 0, 0
    for chapter in tale.chapters:
        if isinstance(chapter, IncidentStory):
            shown += 1
        if incidents is not None and shown > incidents and not isinstance(chapter, End):
            hidden += isinstance(chapter, IncidentStory)
            continue
        if hidden:
            word = "incident" if hidden == 1 else "incidents"
            lines.extend(_block("...", [f"{hidden} more {word}, not shown"], width, days))
            hidden = 0
        at, texts = _told(chapter, tale, days)
        lines.extend(_block(clock(at, days), texts, width, days))
    bar = _bar(tale, width)
    return "\n".join([*lines, *(["", *bar] if bar else [])])


def clock(t_s: float, days: bool = False) -> str:
    """Return a time since the start of the run as ``h:mm:ss``, or ``12d 03:04:05``."""
    minutes, seconds = divmod(round(t_s), 60)
    hours, minutes = divmod(minutes, 60)
    if not days:
        return f"{hours}:{minutes:02}:{seconds:02}"
    return f"{hours // 24}d {hours % 24:02}:{minutes:02}:{seconds:02}"


def heading(tale: Tale) -> tuple[str, str]:
    """Return the run by name and key, and its size."""
    start = tale.run_start
    name, _, key = str(start.get("run") or "run").partition("/")
    if start.get("seed") is not None:
        key = f"seed {start['seed']}, replication {start.get('replication', 0)}"
    parts = []
    if start.get("nodes") is not None:
        parts.append(f"{start['nodes']} nodes x {start.get('gpus_per_node')} GPUs")
    if start.get("steps") is not None and start.get("nominal_step_s") is not None:
        parts.append(f"{start['steps']} steps of {format_duration(start['nominal_step_s'])}")
    if start.get("checkpoint_mode") is not None:
        parts.append(f"checkpoint mode {start['checkpoint_mode']}")
    return f"{name}, {key}" if key else name, ", ".join(parts)


def _block(head: str, texts: list[str], width: int, days: bool) -> Iterator[str]:
    margin = 14 if days else 10
    for i, text in enumerate(texts):
        deeper = "  " if i else ""
        lead = head.rjust(margin - 2) if i == 0 else " " * (margin - 2)
        yield from textwrap.wrap(
            text, width, initial_indent=f"{lead}  {deeper}", subsequent_indent=" " * (margin + 2) + deeper
        ) or [lead]


def _told(chapter: Chapter, tale: Tale, days: bool) -> tuple[float, list[str]]:
    match chapter:
        case Start():
            return chapter.start_s, [f"start: {phases_text(chapter.attempt.phases)}"]
        case Stretch():
            return chapter.start_s, _stretch(chapter, days)
        case IncidentStory():
            return chapter.start_s, _incident(chapter)
        case End():
            return chapter.t_s, [end_text(chapter, tale)]


def _stretch(s: Stretch, days: bool) -> list[str]:
    text = f"steps {s.first} to {s.last}" if s.last >= s.first else "not one step is finished"
    if s.saves:
        saves = "1 save" if s.saves == 1 else f"{s.saves} saves"
        stalled = f" (loop stalled {format_duration(s.stalled_s)})" if s.stalled_s else ""
        text += f", {saves}{stalled}"
    if s.durable:
        text += f", last durable at step {s.last_durable}"
    moments = [f"{clock(t, days)} {what}" for t, what in s.moments]
    if len(moments) > MOMENTS:
        moments[MOMENTS - 1 :] = [f"... and {len(moments) - MOMENTS + 1} more such events"]
    return [text, *moments]


def _incident(story: IncidentStory) -> list[str]:
    texts: list[str] = []
    for item in story.order:
        match item:
            case Struck():
                texts.append(fault_text(item))
                if item.noticed_after_s is not None:
                    by = f" by {item.noticed_by}" if item.noticed_by else ""
                    texts.append(f"noticed after {format_duration(item.noticed_after_s)}{by}")
            case Attempt():
                texts.append(attempt_text(item))
            case str():
                texts.append(item)
    if story.end_s is not None:
        down = format_duration(story.end_s - story.start_s)
        texts.append(f"resumes at step {story.step} after {down}{_lost(story, 'to run again')}")
    else:
        texts.append(f"never resumes{_lost(story, 'lost')}")
    return texts


def _lost(story: IncidentStory, what: str) -> str:
    if not story.steps_lost and not story.rework_s:
        return ", nothing to run again" if story.end_s is not None else ""
    steps = "1 step" if story.steps_lost == 1 else f"{story.steps_lost} steps"
    return f"; {steps} ({format_duration(story.rework_s)}) {what}"


def fault_text(fault: Struck) -> str:
    """Return what struck whom."""
    where = [f"rank {fault.rank}"] if fault.rank is not None and fault.scope in ("rank", "gpu") else []
    if fault.node is not None:
        where.append(f"node {fault.node}")
    if fault.scope in ("rack", "job"):
        where = [f"the whole {fault.scope}" + (f" of node {fault.node}" if fault.node is not None else "")]
    after = "" if fault.step is None else f" after step {fault.step}"
    on = f" on {', '.join(where)}" if where else ""
    name = "" if fault.fault_class == fault.symptom else f"{fault.fault_class}, "
    return f"FAULT {fault.id}: {name}{fault.symptom}{on}{after}"


def attempt_text(attempt: Attempt) -> str:
    """Return an attempt with its phases, and how it ended unless the loop ran again."""
    text = f"{attempt.layer}, attempt {attempt.number}: {phases_text(attempt.phases) or 'at once'}"
    if attempt.outcome in (None, "resumed"):
        return text
    reason = f" ({attempt.reason})" if attempt.reason else ""
    return f"{text}; {attempt.outcome}{reason}"


def phases_text(phases: list[Phase]) -> str:
    """Return phases with their durations."""
    cut = {True: " (cut)", False: ""}
    return ", ".join(f"{phase.name} {format_duration(phase.dur_s)}{cut[phase.cut]}" for phase in phases)


def end_text(end: End, tale: Tale) -> str:
    """Return how the run ended."""
    of = f" of {tale.run_start['steps']}" if tale.run_start.get("steps") is not None else ""
    text = f"{end.outcome.upper()} after {format_duration(end.t_s)} at step {end.step}{of}"
    if end.reason:
        text += f": {end.reason}"
    if end.outcome != "completed" and end.kept_step is not None:
        text += f"; kept: {end.kept_step} steps"
    return text


def _bar(tale: Tale, width: int) -> list[str]:
    """Return the wall time as a row of marks, each the activity that fills most of its cell, and a legend."""
    cells = width - 4
    if tale.wall_s <= 0 or not tale.spans:
        return []
    cell_s = tale.wall_s / cells
    use: list[dict[str, float]] = [{} for _ in range(cells)]
    for span in tale.spans:
        _fill(use, span, cell_s)
    row = "".join(MARKS[max(cell, key=lambda name: cell[name])] if cell else " " for cell in use)
    seen = [name for name in ACTIVITIES if any(span.activity == name for span in tale.spans)]
    legend = ", ".join(f"{MARKS[name]} {LEGEND[name]}" for name in seen)
    note = f"One character is {format_duration(cell_s)}: {legend}"
    return [f" |{row}|", *textwrap.wrap(note, width, initial_indent="  ", subsequent_indent="  ")]


def _fill(use: list[dict[str, float]], span: Span, cell_s: float) -> None:
    first = min(int(span.start_s / cell_s), len(use) - 1)
    last = min(int(span.end_s / cell_s), len(use) - 1)
    for i in range(first, last + 1):
        share = min(span.end_s, (i + 1) * cell_s) - max(span.start_s, i * cell_s)
        if share > 0:
            use[i][span.activity] = use[i].get(span.activity, 0.0) + share


def as_json(tale: Tale) -> dict[str, Any]:
    """Return the story as plain data: start, incidents and end; stretches of the loop are left to the event log."""
    incidents = [
        {
            "start_s": story.start_s,
            "end_s": story.end_s,
            "faults": [vars(fault) for fault in story.faults],
            "attempts": [
                {**vars(attempt), "phases": [vars(phase) for phase in attempt.phases]}
                for attempt in story.attempts
            ],
            "resumed_step": story.step,
            "steps_lost": story.steps_lost,
            "rework_s": story.rework_s,
        }
        for story in tale.incidents
    ]
    stretches = [chapter for chapter in tale.chapters if isinstance(chapter, Stretch)]
    saves = {
        "begun": sum(s.saves for s in stretches),
        "durable": sum(s.durable for s in stretches),
        "stalled_s": sum(s.stalled_s for s in stretches),
    }
    return {"wall_time_s": tale.wall_s, "end": vars(tale.end), "saves": saves, "incidents": incidents}
