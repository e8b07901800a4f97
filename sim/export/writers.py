"""The forms a sheet can take: arguments in a bash array, YAML, Python keyword arguments, JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from sim.export import text
from sim.export.sheet import Option, Sheet, Value


def heading(sheet: Sheet) -> list[str]:
    """Return the comment lines at the top of a file: provenance, interval, use, warnings, timeouts."""
    settings = sheet.settings
    parts = [
        f"Checkpoint settings of {settings.scenario.name} for {sheet.framework}",
        text.origin(settings),
        text.command(settings),
        settings.interval_text(),
        f"Use: {sheet.use}",
        f"Options read in: {sheet.framework.source}",
        text.timeouts(settings),
        *text.said(sheet.warnings),
        *text.said(text.relevant(settings)),
    ]
    return [line for part in parts for line in text.comment(part)]


def bash_array(sheet: Sheet, array: str, flag: Callable[[Option], str], joint: str = " ") -> str:
    """Return options as a bash array; a value of True is a bare flag where values stand apart (`joint` a space)."""
    lines = [*heading(sheet), f"{array}=("]
    for option in sheet.options:
        lines += text.comment(option.why, "  ")
        name, value = flag(option), option.value
        if joint == " " and value is True:
            lines.append(f"  {name}")
        elif joint == " ":
            lines.append(f"  {name} {shlex.quote(_plain(value))}")
        else:
            lines.append(f"  {shlex.quote(f'{name}{joint}{_plain(value)}')}")
    return "\n".join([*lines, ")"]) + "\n"


def yaml(sheet: Sheet) -> str:
    """Return options as YAML, each group a section; those of group '' stand at the top level, first."""
    lines = heading(sheet)
    for group in sorted({option.group for option in sheet.options}, key=lambda name: (name != "", name)):
        indent = "  " if group else ""
        lines += [f"{group}:"] if group else []
        for option in sheet.options:
            if option.group == group:
                lines += text.comment(option.why, indent)
                lines.append(f"{indent}{option.key}: {_yaml(option.value)}")
    return "\n".join(lines) + "\n"


def python(sheet: Sheet) -> str:
    """Return options as Python, each group a dict of keyword arguments; nothing of the framework is imported."""
    lines = heading(sheet)
    if any(isinstance(option.value, timedelta) for option in sheet.options):
        lines += ["", "from datetime import timedelta"]
    for group in dict.fromkeys(option.group for option in sheet.options):
        lines += ["", f"{group} = dict("]
        for option in sheet.options:
            if option.group == group:
                lines += text.comment(option.why, "    ")
                lines.append(f"    {option.key}={_python(option.value)},")
        lines.append(")")
    return "\n".join(lines) + "\n"


def json_text(sheet: Sheet) -> str:
    """Return options as JSON, each group an object, and beside them as data what other forms have in comments."""
    settings = sheet.settings
    data: dict[str, Any] = {
        "goodput_planner": {
            "for": str(sheet.framework),
            "options_read_in": sheet.framework.source,
            "use": sheet.use,
            "scenario": settings.scenario.name,
            **settings.record,
            "interval": settings.interval_text(),
            "interval_steps": [level.steps for level in settings.levels],
            "interval_seconds": [level.interval_s for level in settings.levels],
            "timeouts": text.timeouts(settings),
            "warnings": [asdict(w) for w in (*sheet.warnings, *text.relevant(settings))],
            "why": {option.key: option.why for option in sheet.options if option.why},
        }
    }
    for option in sheet.options:
        data.setdefault(option.group, {})[option.key] = option.value
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _plain(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _yaml(value: Value) -> str:
    assert not isinstance(value, timedelta)
    return text.scalar(value)


def _python(value: Value) -> str:
    if isinstance(value, timedelta):
        return f"timedelta(seconds={text.number(value.total_seconds())!r})"
    return repr(value)
