"""Export: recommended settings in the form that a framework reads.

`FORMATS` is the register; a format is a function from `Settings` to the text of its file. Formats of frameworks whose
turn has not come are known by name, so that asking for one says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sim.export import ft_launcher as export_ft_launcher
from sim.export.settings import Settings, settings_for
from sim.schema.fields import Problem, ScenarioError
from sim.units import shown

__all__ = [
    "FORMATS",
    "LATER",
    "Format",
    "Settings",
    "as_json",
    "check_format",
    "render",
    "settings_for",
    "write",
]


@dataclass(frozen=True, slots=True)
class Format:
    """One format: what it is, and how its file is written."""

    says: str
    write: Callable[[Settings], str]


def as_json(settings: Settings) -> dict[str, Any]:
    """Return the settings as plain data: interval, timeouts [s], launcher options, warnings, provenance."""
    advice = settings.advice or {}
    timeouts = settings.timeouts
    return {
        "scenario": settings.scenario.name,
        "interval": {
            "steps": settings.interval_steps,
            "seconds": settings.interval_s,
            "source": settings.interval_source,
            "scenario_steps": settings.scenario_steps,
            "flat_region_s": advice.get("flat_region_s"),
            "goodput": advice.get("goodput"),
        },
        "nvrx": settings.scenario.recovery.nvrx,
        "timeouts": [asdict(timeout) for timeout in timeouts.all()],
        "max_restarts": timeouts.max_restarts,
        "max_no_progress_cycles": timeouts.max_no_progress_cycles,
        "warnings": [asdict(warning) for warning in settings.warnings],
        **settings.record,
    }


def _json_text(settings: Settings) -> str:
    return json.dumps(as_json(settings), indent=2, allow_nan=False) + "\n"


FORMATS: dict[str, Format] = {
    "json": Format("interval, timeouts and provenance as plain data", _json_text),
    "ft-launcher": Format("NVRx ft_launcher: the YAML section fault_tolerance", export_ft_launcher.render),
}
LATER = (
    "megatron-lm", "megatron-bridge", "nemo", "torchtitan", "transformers", "accelerate", "lightning", "deepspeed",
    "composer", "maxtext", "levanter", "olmo-core",
)  # fmt: skip
"""Frameworks of facts/exports.md whose format does not exist yet."""


def check_format(name: str) -> Format:
    """Return a format by its name; raise `ScenarioError` naming those that exist."""
    if name in FORMATS:
        return FORMATS[name]
    now = ", ".join(FORMATS)
    what = f"comes later; now: {now}" if name in LATER else f"must be one of {now}"
    raise ScenarioError([Problem("--format", f"{what} {shown(name)}")])


def render(name: str, settings: Settings) -> str:
    """Return the text of the file in a format."""
    return check_format(name).write(settings)


def write(path: str | Path, text: str) -> None:
    """Write a file that is complete or not there at all: beside its place, then renamed.

    Raises `OSError` that names `path`, not the file beside it.
    """
    target = Path(path)
    try:
        _write_beside(target, text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from None


def _write_beside(target: Path, text: str) -> None:
    handle, beside = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)  # mkstemp makes it private
        os.replace(beside, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
