"""Export: checkpoint intervals and timeouts in the form that a framework reads.

`FORMATS` is the register. A format is a function from `Settings` to the text of its file and the warnings that hold
for that framework; it raises `ScenarioError` where the framework would refuse what the scenario says. Frameworks whose
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

from sim.export import (
    composer,
    config_map,
    ft_launcher,
    hf_trainer,
    lightning,
    maxtext,
    megatron,
    olmo_core,
    torchtitan,
)
from sim.export.settings import Level, Settings, settings_for
from sim.export.sheet import Sheet
from sim.schema.fields import Problem, ScenarioError
from sim.units import shown
from sim.warn import Warning

__all__ = [
    "FORMATS",
    "LATER",
    "Exported",
    "Format",
    "Level",
    "Settings",
    "as_json",
    "check_format",
    "exported",
    "render",
    "settings_for",
    "write",
]


@dataclass(frozen=True, slots=True)
class Exported:
    """A file's text, and what this framework refuses, ignores or does otherwise than the model."""

    text: str
    warnings: tuple[Warning, ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """One format: what it is, and how its file is made."""

    says: str
    make: Callable[[Settings], Exported]


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
        "levels": [
            {"path": level.path, "name": level.name, "steps": level.steps, "seconds": level.interval_s}
            for level in settings.levels
        ],
        "nvrx": settings.scenario.recovery.nvrx,
        "timeouts": [asdict(timeout) for timeout in timeouts.all()],
        "max_restarts": timeouts.max_restarts,
        "max_no_progress_cycles": timeouts.max_no_progress_cycles,
        "warnings": [asdict(warning) for warning in settings.warnings],
        **settings.record,
    }


def _json_text(settings: Settings) -> str:
    return json.dumps(as_json(settings), indent=2, allow_nan=False) + "\n"


def _of(render: Callable[[Settings], tuple[str, Sheet]]) -> Callable[[Settings], Exported]:
    def make(settings: Settings) -> Exported:
        made, sheet = render(settings)
        return Exported(made, tuple(sheet.warnings))

    return make


FORMATS: dict[str, Format] = {
    "json": Format("intervals, timeouts and provenance as plain data", lambda s: Exported(_json_text(s))),
    "ft-launcher": Format(
        "NVRx ft_launcher: the YAML section fault_tolerance",
        lambda s: Exported(ft_launcher.render(s), ft_launcher.warnings(s)),
    ),
    "megatron-lm": Format("Megatron-LM: arguments in a bash array", _of(megatron.render_lm)),
    "megatron-bridge": Format("Megatron-Bridge: YAML overrides", _of(megatron.render_bridge)),
    "nemo": Format("NeMo 2: Python keyword arguments of its classes", _of(lightning.render_nemo)),
    "torchtitan": Format("torchtitan: flags in a bash array", _of(torchtitan.render)),
    "transformers": Format("Hugging Face TrainingArguments: JSON", _of(hf_trainer.render)),
    "lightning": Format("Lightning: Python keyword arguments of its classes", _of(lightning.render_lightning)),
    "composer": Format("Composer and LLM Foundry: YAML", _of(composer.render)),
    "maxtext": Format("MaxText: YAML on top of base.yml", _of(maxtext.render)),
    "olmo-core": Format("OLMo-core: overrides in a bash array", _of(olmo_core.render)),
    "kubernetes": Format(
        "Kubernetes: ConfigMaps of variables and files", _of(lambda s: config_map.render(s, _json_text(s)))
    ),
}
LATER = ("accelerate", "deepspeed", "levanter")
"""Frameworks whose format does not exist yet."""


def check_format(name: str) -> Format:
    """Return a format by its name; raise `ScenarioError` naming those that exist."""
    if name in FORMATS:
        return FORMATS[name]
    now = ", ".join(FORMATS)
    what = f"comes later; now: {now}" if name in LATER else f"must be one of {now}"
    raise ScenarioError([Problem("--format", f"{what} {shown(name)}")])


def exported(name: str, settings: Settings) -> Exported:
    """Return the file of a format and its warnings; raise `ScenarioError` for what the framework would refuse."""
    return check_format(name).make(settings)


def render(name: str, settings: Settings) -> str:
    """Return the text of the file in a format."""
    return exported(name, settings).text


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
