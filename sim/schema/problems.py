"""Every problem of a scenario, told at once and by path.

Pydantic checks the rules between fields and between blocks only where the parts are sound. So what is broken is mended
with a stand-in and the rest is checked again, until nothing new is found.
"""

from __future__ import annotations

import copy
import difflib
import types
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from sim.schema.fields import INSIDE, RULES, Problem, ScenarioError
from sim.units import shown

MAX_PROBLEMS = 50
ROUNDS = 8

M = TypeVar("M", bound=BaseModel)

# What a broken part is replaced by, so that the rules around it and between the blocks can still be checked in a
# second pass; chosen so that no rule is broken by it. By whole path, else by the last step.
_STAND_IN: dict[str, Any] = {
    "cluster": {"nodes": 1_000_000, "nodes_per_rack": 8, "repair": {"stages": [{"time": 0}]}},
    "cluster.repair": {"stages": [{"time": 0}]},
    "cluster.nodes": 1_000_000,
    "cluster.gpus_per_node": 1024,
    "cluster.nodes_per_rack": 8,
    "workload": {"step_time": 1, "steps": 1},
    "checkpoint": {"mode": "none"},
    **dict.fromkeys(
        ("step_time", "steps", "useful_time", "interval", "write_time", "stall_time", "bytes"), 1
    ),
    **dict.fromkeys(("rate", "mtbf", "detect", "time", "factor"), 1),
    "every": 1e9,
    "duration": 1e-6,
    "until": "repaired",
    "repair": True,
    "bandwidth": {"aggregate": 1},
    "slowdown": {"factor": 1, "duration": 1},
    "tiers": [{"every": 1, "survives": "all", "write_time": 1}],
    "tiers.*": {"every": 1, "survives": "all", "write_time": 1},
    "stages.*": {"time": 0},
}


def build(model: type[M], raw: dict[str, Any], base: Path | None) -> M:
    """Validate; raise `ScenarioError` with every problem, those between blocks included (the first 50)."""
    try:
        return model.model_validate(raw, context={"base": base})
    except ValidationError as error:
        problems = _problems(model, raw, error)
    targets = set(problems.values())
    tried: set[str] = set()
    patched = copy.deepcopy(raw)
    rounds = ROUNDS if len(problems) <= MAX_PROBLEMS else 0
    for attempt in range(rounds):
        for path in sorted(targets, key=lambda p: (len(p), p), reverse=True):
            _mend(patched, path)
        tried |= targets
        try:
            model.model_validate(patched, context={"base": base})
        except ValidationError as error:
            more = _problems(model, patched, error)
        else:
            break
        targets = set()
        for problem, path in more.items():
            # what is found later around something mended may come from the mending
            around = attempt > 0 and any(old.startswith(f"{problem.path}.") for old in tried)
            if problem.path not in tried and path not in tried and not around:
                problems[problem] = path
            while path in tried and "." in path:  # mending the leaf was not enough: mend what holds it
                path = path.rpartition(".")[0]
            targets.add(path)
    found = list(problems)
    if len(found) > MAX_PROBLEMS:
        found[MAX_PROBLEMS:] = [Problem("scenario", f"has more problems than these {MAX_PROBLEMS}")]
    raise ScenarioError(found)


def _mend(raw: Any, path: str) -> None:
    """Put a stand-in for the value at a problem's path, or take it out; an item of a list goes as a whole."""
    here, steps = raw, path.split(".")
    for i, step in enumerate(steps):
        last = i == len(steps) - 1
        if isinstance(here, list):
            index = next((j for j, item in enumerate(here) if item_step(item, j) == step), None)
            if index is None:
                return
            if last or steps[i + 1 :] == ["name"]:
                stand_in = _STAND_IN.get(f"{steps[i - 1]}.*")
                here[index : index + 1] = [] if stand_in is None else [copy.deepcopy(stand_in)]
                return
            here = here[index]
        elif not isinstance(here, dict):
            return
        elif last:
            here.pop(step, None)
            stand_in = _STAND_IN.get(path, _STAND_IN.get(step))
            if stand_in is not None:
                here[step] = copy.deepcopy(stand_in)
        else:
            here = here.get(step)


def item_step(item: Any, index: int) -> str:
    """Name a list item in a path: its name where it has a usable one, else its number."""
    name = item.get("name") if isinstance(item, dict) else None
    return (
        name
        if isinstance(name, str) and name.isprintable() and len(name) <= 60 and "." not in name
        else str(index)
    )


def _path(raw: Any, loc: Iterable[int | str]) -> str:
    """Write a pydantic location as a path: list items by name where they have one."""
    steps, here = [], raw
    for step in loc:
        if isinstance(step, int):
            here = here[step] if isinstance(here, (list, tuple)) and step < len(here) else None
            steps.append(item_step(here, step))
        else:
            here = here.get(step) if isinstance(here, dict) else None
            steps.append(step[:60])
    return ".".join(steps)


def _problems(model: type[BaseModel], raw: Any, error: ValidationError) -> dict[Problem, str]:
    """Tell every problem of a failed validation, with the path of the value that would have to be mended."""
    found: dict[Problem, str] = {}
    for item in error.errors(include_url=False)[: MAX_PROBLEMS + 1]:
        path, kind = _path(raw, item["loc"]), item["type"]
        context: dict[str, Any] = item.get("ctx", {})
        if kind in (RULES, INSIDE):
            for inner in context["problems"][: MAX_PROBLEMS + 1]:
                below = ".".join(step for step in (path, inner.path) if step) or "scenario"
                found[Problem(below, inner.message)] = path if kind == INSIDE else below
            continue
        got = shown(item["input"])
        if kind == "missing":
            message = "required (got nothing)"
        elif kind == "extra_forbidden":
            allowed = _keys_at(model, item["loc"][:-1])
            close = difflib.get_close_matches(str(item["loc"][-1])[:60], allowed, 1)
            hint = f"did you mean {close[0]}?" if close else f"allowed: {', '.join(allowed)}"
            message = f"unknown key; {hint} {got}"
        elif kind == "literal_error":
            message = f"must be one of {context['expected']} {got}"
        elif kind in ("model_type", "model_attributes_type", "dict_type"):
            message = f"must be a mapping {got}"
        elif kind in ("tuple_type", "list_type"):
            message = f"must be a list {got}"
        elif kind == "value_error":
            text = str(context["error"])
            message = text if "(got " in text else f"{text} {got}"
        else:
            message = f"{item['msg'][:1].lower()}{item['msg'][1:]} {got}"
        found[Problem(path or "scenario", message)] = path
    return found


def _keys_at(model: type[BaseModel], loc: Sequence[int | str]) -> list[str]:
    """Keys of the block at a location, for the message about an unknown one."""
    here: type[BaseModel] | None = model
    for step in loc:
        if isinstance(step, int):
            continue
        field = here.model_fields.get(step) if here is not None else None
        here = block_in(field.annotation) if field is not None else None
    return list(here.model_fields) if here is not None else []


def block_in(annotation: Any) -> type[BaseModel] | None:
    """Find the block that a field holds: itself, one of a tuple, or none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (tuple, Union, types.UnionType):
        return next((block for arg in get_args(annotation) if (block := block_in(arg)) is not None), None)
    return None
