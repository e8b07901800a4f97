"""The table of the event vocabulary: every kind of event with its fields (design: section 3).

An event is a plain dict, one line of JSON: the envelope below, `kind`, and the kind's own fields. Times `t`
are seconds since the run began, on a monotonic clock; `wall` (unix seconds) is a label that no sum uses. A
field whose name begins with `x_` is free: a writer may add it anywhere and no reader judges it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

Event = dict[str, Any]


class EventError(ValueError):
    """A log that cannot be read, written or judged; one line that begins with `path:line`, where known."""


SCHEMA_VERSION = 1

ENVELOPE: dict[str, str] = {
    "v": "int", "t": "number", "wall": "number|null", "run": "id|null", "rank": "int|null", "node": "id|null",
    "kind": "text",
}  # fmt: skip
ENVELOPE_REQUIRED = ("v", "t", "kind")

SOURCES = ("simulated", "live", "imported")
SYMPTOMS = (
    "exception", "hang", "process_exit", "gpu_error", "node_loss", "slowdown", "silent_corruption",
)  # fmt: skip
# The loop runs on through these two; it stops when they are noticed, if ever.
LATENT_SYMPTOMS = ("slowdown", "silent_corruption")
SCOPES = ("rank", "gpu", "node", "rack", "job")
LAYERS = ("in_process", "in_job", "kubernetes", "slurm", "node_replacement", "fixed")
PHASES = (
    "detect", "abort", "backoff", "rendezvous", "process_start", "init", "checkpoint_load", "warmup",
    "node_wait",
)  # fmt: skip
JOB_OUTCOMES = ("completed", "failed", "censored")
LAYER_OUTCOMES = ("resumed", "failed", "escalated", "cut")


class Kind(NamedTuple):
    """The fields of one kind of event (name -> type) and what the event says."""

    required: dict[str, str]
    optional: dict[str, str]
    says: str


_COUNTS = {"working": "int", "hot": "int", "cold": "int", "repair": "int", "retired": "int"}
_SAVE = {"id": "id", "step": "int", "tier": "text|null"}
_ATTEMPT = {"layer": "text", "attempt": "int"}

KINDS: dict[str, Kind] = {
    "run_start": Kind(
        {"nominal_step_s": "number|null", "steps": "int|null", "start_step": "int", "nodes": "int",
         "gpus_per_node": "int", "spares": "map", "source": "text"},
        {"checkpoint_mode": "text|null", "scenario": "any", "seed": "int|null", "replication": "int|null",
         "version": "text|null"},
        "the log begins; `steps` is the number of the job's last step, `start_step` is done already",
    ),
    "job_start": Kind({}, {"attempt": "int", "world": "int"}, "the job's processes are started (again)"),
    "phase_begin": Kind(
        {"phase": "text", "layer": "text|null", "attempt": "int"}, {"incident": "id|null", "tier": "text|null"},
        "a stretch of the start (layer null) or of a restart begins",
    ),
    "phase_end": Kind(
        {"phase": "text", "layer": "text|null", "attempt": "int"},
        {"incident": "id|null", "cut": "bool", "failed": "bool"},
        "it ends; cut: a fault struck before it was over; failed: it was a load that failed",
    ),
    "resumed": Kind(
        {"step": "int"}, {"incident": "id|null", "part": "number"},
        "the loop runs (again) from `step` done steps; what was done beyond them is rework",
    ),
    "step": Kind(
        {"first": "int", "last": "int", "dur_s": "number"}, {"part": "number", "slow_s": "number"},
        "steps first..last were completed in the dur_s seconds up to t; part: a share of the next one too",
    ),
    "save_begin": Kind(
        {"id": "id"}, {"step": "int", "tier": "text|null", "drain": "bool", "bytes": "number"},
        "the loop stands still for save `id` (drain: only to wait for a save that was begun before)",
    ),
    "save_staged": Kind(
        {"id": "id"}, {"step": "int", "tier": "text|null"}, "the loop goes on, and so does the write",
    ),
    "save_durable": Kind(dict(_SAVE), {"bytes": "number"}, "the checkpoint can be loaded from now on"),
    "save_failed": Kind({**_SAVE, "reason": "text|null"}, {}, "the checkpoint will never be usable"),
    "fault": Kind(
        {"id": "id", "class": "text", "symptom": "text", "scope": "text"},
        {"step": "int|null", "idle": "bool", "gil": "text|null", "repair": "bool", "planned": "bool"},
        "a fault strikes (idle: on a spare, the job goes on; planned: no fault, but a stop such as maintenance)",
    ),
    "detected": Kind({"fault": "id|null", "by": "text"}, {"incident": "id|null"}, "the fault is noticed"),
    "abort": Kind({}, {"incident": "id|null"}, "the communicators are torn down"),
    "layer_begin": Kind(dict(_ATTEMPT), {"incident": "id|null"}, "a restart layer begins an attempt"),
    "layer_end": Kind(
        {**_ATTEMPT, "outcome": "text"}, {"incident": "id|null", "reason": "text|null"},
        "the attempt is over",
    ),
    "node_down": Kind({"why": "text", **_COUNTS}, {}, "a node leaves its place; node counts after it"),
    "node_up": Kind({"to": "text", **_COUNTS}, {}, "a node takes a place; node counts after it"),
    "slow_begin": Kind({"factor": "number"}, {}, "a node begins to slow the job down"),
    "slow_end": Kind({}, {"factor": "number"}, "it no longer does"),
    "job_end": Kind(
        {"outcome": "text", "step": "int"}, {"reason": "text|null", "kept_step": "int|null"},
        "the job is over",
    ),
    "run_end": Kind({}, {}, "the log ends"),
}  # fmt: skip

_CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    ("run_start", "source"): SOURCES,
    ("phase_begin", "phase"): PHASES,
    ("phase_end", "phase"): PHASES,
    ("phase_begin", "layer"): LAYERS,
    ("phase_end", "layer"): LAYERS,
    ("layer_begin", "layer"): LAYERS,
    ("layer_end", "layer"): LAYERS,
    ("layer_end", "outcome"): LAYER_OUTCOMES,
    ("fault", "symptom"): SYMPTOMS,
    ("fault", "scope"): SCOPES,
    ("node_up", "to"): ("working", "hot", "cold"),
    ("job_end", "outcome"): JOB_OUTCOMES,
}


def _is_int(value: object) -> bool:
    # A larger one would overflow on its way to a float.
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def is_number(value: object) -> bool:
    """Tell whether `value` is a finite number (True and False are none)."""
    return _is_int(value) or (isinstance(value, float) and math.isfinite(value))


def _fits(value: object, name: str) -> bool:
    if name.endswith("|null"):
        return value is None or _fits(value, name[: -len("|null")])
    match name:
        case "int":
            return _is_int(value)
        case "number":
            return is_number(value)
        case "id":
            return _is_int(value) or isinstance(value, str)
        case "text":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "map":
            return isinstance(value, dict)
    return name == "any"


def misfits(event: Event) -> list[str]:
    """Return the fields of a known kind that are missing or of a wrong type, one text each."""
    name = event.get("kind")
    kind = KINDS.get(name) if isinstance(name, str) else None
    problems = []
    for name in ENVELOPE_REQUIRED if kind is None else (*ENVELOPE_REQUIRED, *kind.required):
        if name not in event:
            problems.append(f"{name}: missing")
    for name, value in event.items():
        wanted = ENVELOPE.get(name)
        if wanted is None and kind is not None:
            wanted = kind.required.get(name) or kind.optional.get(name)
        if wanted is not None and not _fits(value, wanted):
            problems.append(f"{name}: must be {wanted.replace('|', ' or ')} (got {value!r})")
    return problems


def field_problems(event: Event) -> list[str]:
    """Return what is wrong with one event by itself, one text a problem; empty when it fits the table."""
    problems = misfits(event)
    if problems:
        return problems
    name = event["kind"]
    if event["v"] != SCHEMA_VERSION:
        problems.append(f"v: this reader knows schema version {SCHEMA_VERSION} (got {event['v']!r})")
    if name not in KINDS:
        return [*problems, f"kind: not one of the vocabulary (got {name!r}; allowed: {', '.join(KINDS)})"]
    known = {**ENVELOPE, **KINDS[name].required, **KINDS[name].optional}
    for key, value in event.items():
        if key not in known and not key.startswith("x_"):
            problems.append(f"{key}: not a field of {name} (a writer's own fields begin with x_)")
        choices = _CHOICES.get((name, key))
        if choices and value is not None and value not in choices:
            problems.append(f"{key}: must be one of {', '.join(choices)} (got {value!r})")
    return problems


def of_one_pod(event: Event) -> bool:
    """Tell whether a record of a simulated log is one pod's own phase, beside the job's timeline (rank null)."""
    return event["kind"] in ("phase_begin", "phase_end") and event.get("rank") is not None
