"""Lines of text that every file with comments has: where it comes from, its interval, its warnings, its timeouts."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable

from sim.export.settings import Settings
from sim.units import format_duration
from sim.warn import Warning
from sim.warn.rule import RULES

WIDTH = 110


def printable(text: str) -> str:
    """Return a text without what YAML, a shell or UTF-8 cannot hold."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def comment(text: str, indent: str = "") -> list[str]:
    """Return a text as comment lines; all of the languages here begin one with #."""
    lead = f"{indent}# "
    return [
        line
        for part in text.splitlines()
        for line in textwrap.wrap(
            printable(part), WIDTH, initial_indent=lead, subsequent_indent=f"{lead}  ", break_on_hyphens=False,
            break_long_words=False,
        )
    ]  # fmt: skip


def scalar(value: float | int | str | bool | None) -> str:
    """Return a value as YAML reads it: JSON's scalars are YAML's too."""
    return json.dumps(printable(value) if isinstance(value, str) else value, ensure_ascii=False)


def number(seconds: float) -> float | int:
    """Return seconds as a whole number where they are one."""
    return int(seconds) if float(seconds).is_integer() else seconds


def origin(settings: Settings) -> str:
    """Return version, scenario hash and seed in one phrase."""
    record = settings.record
    return f"goodput-planner {record['version']}, scenario {record['scenario_hash']}, seed {record['seed']}"


def command(settings: Settings) -> str:
    """Return what wrote the file."""
    return f"Written by: {settings.record['command'] or 'goodput export'}"


def said(warnings: Iterable[Warning]) -> list[str]:
    """Return warnings as lines."""
    return [f"{warning.severity.capitalize()}: {warning}" for warning in warnings]


def relevant(settings: Settings) -> list[Warning]:
    """Return the scenario's warnings, and those notes that are about exported settings."""
    return [w for w in settings.warnings if w.severity == "warning" or RULES[w.rule].export_only]


def timeouts(settings: Settings) -> str:
    """Return the timeouts that go with the interval, those of layers that are on, in one line."""
    layers = settings.scenario.recovery.layers
    parts = [
        f"{timeout.path.removeprefix('recovery.')} "
        + ("off" if timeout.seconds is None else f"{timeout.seconds:g} s ({format_duration(timeout.seconds)})")
        for timeout in settings.timeouts.all()
        if "in_job" in layers or not timeout.path.startswith("recovery.in_job.")
    ]
    return f"Timeouts that go with it: {', '.join(parts)}"
