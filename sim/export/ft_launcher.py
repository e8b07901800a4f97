"""The file that NVRx's ft_launcher reads: the section `fault_tolerance` of a YAML file.

It has no key for the checkpoint interval, so that stands in it as a comment.
Source of keys, types and options: nvidia-resiliency-ext 0.4.1, 0.6.0, 0.7.0, fault_tolerance/config.py
(FaultToleranceConfig), rank_monitor_server.py, progress_tracker.py and launcher.py.
"""

from __future__ import annotations

import math
from typing import Any

from sim.export import text as export_text
from sim.export.settings import Settings
from sim.export.text import comment as _comment
from sim.export.text import scalar as _scalar
from sim.export.timeouts import FLOOR_S, Timeout
from sim.recovery.defaults import IN_JOB
from sim.schema import yaml_text
from sim.units import format_duration
from sim.warn import Warning
from sim.warn.rule import SAFETY_FACTOR

_ALWAYS = {
    "initial_rank_heartbeat_timeout": "seconds|null",
    "rank_heartbeat_timeout": "seconds|null",
    "rank_section_timeouts": "map of seconds|null",
    "rank_out_of_section_timeout": "seconds|null",
}
_PROGRESS = {"max_no_progress_cycles": "int", "checkpoint_iteration_file": "text|null"}  # from 0.6 on
FIELDS: dict[str, dict[str, str]] = {
    "0.4.1": _ALWAYS,
    "0.6.0": _ALWAYS | _PROGRESS,
    "0.7.0": _ALWAYS | _PROGRESS,
}
"""The keys this export writes and their types, by NVRx version."""


def render(settings: Settings) -> str:
    """Return the YAML file with its comments."""
    nvrx = settings.scenario.recovery.nvrx
    lines = [*_heading(settings), "fault_tolerance:"]
    for key, value, why in _entries(settings):
        assert key in FIELDS[nvrx], key
        lines.extend(_comment(why, "  "))
        lines.extend(_plain(key, value))
    if "checkpoint_iteration_file" in FIELDS[nvrx] and settings.iteration_file is None:
        lines.extend(_comment(
            "checkpoint_iteration_file: the trainer's file with the iteration of its newest checkpoint (Megatron: "
            "latest_checkpointed_iteration.txt). Without it progress is not tracked, and nothing stops a job that "
            "restarts for ever (goodput export --checkpoint-iteration-file FILE sets it)", "  ",
        ))  # fmt: skip
    text = "\n".join(lines) + "\n"
    assert list(yaml_text.read(text, "export")) == ["fault_tolerance"]
    return text


def warnings(settings: Settings) -> tuple[Warning, ...]:
    """Return what this launcher does otherwise than the scenario says."""
    if "in_job" in settings.scenario.recovery.layers:
        return ()
    message = "does not hold in_job, the layer this file is for"
    return (Warning("recovery.layers", message, "ft-launcher-without-in-job", "warning"),)


def _heading(settings: Settings) -> list[str]:
    s = settings.scenario
    job, defaults = s.recovery.in_job, IN_JOB[s.recovery.nvrx]
    monitor = defaults.monitor_interval_s if job.monitor_interval is None else job.monitor_interval
    stop = defaults.stop_timeout_s if job.stop_timeout is None else job.stop_timeout
    options = ["--ft-cfg-path=FILE", f"--max-restarts={settings.timeouts.max_restarts}"]
    options.append(f"--monitor-interval={monitor:g}")
    if math.isfinite(stop):
        options.append(f"--workers-stop-timeout={stop:g}")
    interval = settings.interval_text()
    if settings.levels:
        interval += "; this file has no key for it, set it in the trainer"
    texts = [
        f"Fault tolerance of {s.name} for NVRx {s.recovery.nvrx}",
        export_text.origin(settings),
        export_text.command(settings),
        f"Start with: ft_launcher {' '.join(options)} ...",
        f"--max-restarts={settings.timeouts.max_restarts}: {settings.timeouts.why_max_restarts}",
        interval,
        *export_text.said([*export_text.relevant(settings), *warnings(settings)]),
    ]
    return [line for text in texts for line in _comment(text, "")]


def _entries(settings: Settings) -> list[tuple[str, Any, str]]:
    t = settings.timeouts
    if t.by_heartbeat:
        entries: list[tuple[str, Any, str]] = [
            ("initial_rank_heartbeat_timeout", t.initial_heartbeat.seconds, _why(t.initial_heartbeat)),
            ("rank_heartbeat_timeout", t.heartbeat.seconds, _why(t.heartbeat)),
        ]
    else:
        off = (
            "The training code opens and closes sections and sends no heartbeats: off, or the monitor ends a rank "
            "that never sends one"
        )
        sections = {"setup": t.setup, "step": t.step, "checkpointing": t.checkpointing}
        whys = [f"{name}: {_why(timeout)}" for name, timeout in sections.items()]
        entries = [
            ("initial_rank_heartbeat_timeout", None, off),
            ("rank_heartbeat_timeout", None, ""),
            (
                "rank_section_timeouts",
                {name: timeout.seconds for name, timeout in sections.items()},
                "\n".join(whys),
            ),
            ("rank_out_of_section_timeout", t.out_of_section.seconds, _why(t.out_of_section)),
        ]
    if "max_no_progress_cycles" in FIELDS[settings.scenario.recovery.nvrx]:
        why = "Restarts in a row without a new checkpoint before the launcher gives up; 0: never"
        entries.append(("max_no_progress_cycles", t.max_no_progress_cycles, why))
        if settings.iteration_file is not None:
            entries.append(("checkpoint_iteration_file", settings.iteration_file, "How progress is seen"))
    return entries


def _why(timeout: Timeout) -> str:
    if timeout.covers_s is None:
        if timeout.seconds is not None:
            return f"{timeout.covers}: as the scenario states"
        return f"{timeout.covers}: the scenario says nothing of it; null leaves it unwatched"
    text = f"{timeout.covers}: {format_duration(timeout.covers_s)} or less in 99 % of cases"
    assert timeout.seconds is not None
    factor = timeout.seconds / timeout.covers_s
    if timeout.source == "default":
        return f"{text}; the default, {factor:.3g} times that"
    if timeout.source == "scenario":
        return f"{text}; the scenario's own value, {factor:.3g} times that"
    what = f"times {SAFETY_FACTOR:g}"
    if timeout.seconds > math.ceil(SAFETY_FACTOR * timeout.covers_s):
        what = (
            "a minute at least"
            if timeout.seconds == FLOOR_S
            else "and more, so that the NCCL watchdog comes first"
        )
    if timeout.stated_s is not None:
        return f"{text}, {what}; the scenario's {format_duration(timeout.stated_s)} would end a healthy job"
    return f"{text}, {what}"


def _plain(key: str, value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"  {key}:", *(f"    {name}: {_scalar(inner)}" for name, inner in value.items())]
    return [f"  {key}: {_scalar(value)}"]
