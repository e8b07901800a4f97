"""From text and mappings to a validated model, with every problem told by path; and back to text."""

from __future__ import annotations

import ast
import copy
import difflib
import hashlib
import inspect
import itertools
import json
import textwrap
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from sim import catalog, yaml_text
from sim.fields import INSIDE, RULES, Problem, ScenarioError
from sim.units import shown

SCHEMA_FILE = "goodput-scenario.schema.json"
MAX_PROBLEMS = 50
EXCLUSIVE = (("steps", "useful_time"), ("rate", "mtbf"), ("write_time", "bandwidth"), ("duration", "until"))
"""Pairs of keys of which only one may stand: an override of one takes the other out."""

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


def read_source(source: str | Path | Mapping[str, Any]) -> tuple[dict[str, Any], Path | None]:
    """Give the raw mapping of a source, and the folder that file names in it are relative to.

    A source is a catalog name, a file, YAML text (a str of several lines) or a mapping. A file is preferred
    to a catalog scenario of the same name. Raises `ScenarioError`.
    """
    base: Path | None = None
    origin, raw = "scenario", source
    if isinstance(source, str) and "\n" in source:
        raw = yaml_text.read(source, origin)
    elif isinstance(source, (str, Path)):
        path, origin = _find(source), str(source)[:200]
        base = path.parent
        try:
            with path.open("rb") as file:
                raw = yaml_text.read(file.read(yaml_text.MAX_BYTES + 1), origin)
        except OSError as error:
            raise ScenarioError([Problem(origin, f"cannot be read: {error.strerror or error}")]) from None
        if isinstance(raw, dict):
            raw = {"name": path.stem} | raw
    if not isinstance(raw, Mapping):
        got = "nothing" if raw is None else f"a {type(raw).__name__}"
        raise ScenarioError([Problem(origin, f"must be a mapping with the keys of a scenario (got {got})")])
    return yaml_text.plain(raw), base


def _find(source: str | Path) -> Path:
    path, name = Path(source), str(source)
    try:
        if path.is_file() or (isinstance(source, Path) and path.exists() and not path.is_dir()):
            return path
        known = catalog.path_of(name)
        if known is not None:
            return known
        message = "is a folder, not a scenario file" if path.is_dir() else ""
    except (OSError, ValueError):  # a name too long, or with a NUL
        message = ""
    if not message:
        close = difflib.get_close_matches(name[:200], catalog.names(), 1)
        hint = f"did you mean {close[0]}?" if close else f"catalog: {', '.join(catalog.names())}"
        message = f"no such file or catalog scenario; {hint}"
    raise ScenarioError([Problem("scenario", f"{message} {shown(name)}")])


def override(raw: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Apply ``path=value`` in their order (list items by name or index); null takes a key out."""
    problems: list[Problem] = []
    raw = copy.deepcopy(raw)
    for text in overrides:
        path, equals, value_text = text.partition("=") if isinstance(text, str) else ("", "", "")
        if not equals or not path.strip():
            problems.append(
                Problem("--set", f"must be path=value, such as checkpoint.interval=30min {shown(text)}")
            )
            continue
        try:
            value = yaml_text.plain(yaml_text.read(value_text, path.strip()), path.strip())
            _set(raw, path.strip(), value)
        except ScenarioError as error:
            problems.extend(error.problems)
    if problems:
        raise ScenarioError(problems)
    return raw


def _set(raw: dict[str, Any], path: str, value: Any) -> None:
    steps = path.split(".")
    if len(steps) > yaml_text.MAX_DEPTH or not all(steps):
        raise ScenarioError(
            [Problem(path[:100], "must be names joined by dots, such as checkpoint.interval")]
        )
    here: Any = raw
    for i, step in enumerate(steps):
        last, so_far = i == len(steps) - 1, ".".join(steps[:i])
        if isinstance(here, list):
            named = [j for j, item in enumerate(here) if isinstance(item, dict) and item.get("name") == step]
            index = (
                named[0]
                if named
                else int(step)
                if step.isascii() and step.isdigit() and len(step) < 6
                else -1
            )
            if not 0 <= index < len(here):
                known = ", ".join(_item_step(item, j) for j, item in enumerate(here[:20])) or "none"
                raise ScenarioError([Problem(so_far, f"has no item {step!r}; items: {known}")])
            if last:
                here[index : index + 1] = [] if value is None else [value]
            else:
                here = here[index]
        elif isinstance(here, dict):
            if last:
                _put(here, step, value)
            else:
                here = here.setdefault(step, {})
        else:
            raise ScenarioError([Problem(so_far, f"is a single value: set it as a whole {shown(here)}")])


def _put(here: dict[str, Any], key: str, value: Any) -> None:
    here.pop(key, None) if value is None else here.__setitem__(key, value)
    for pair in EXCLUSIVE:
        if value is not None and key in pair:
            here.pop(pair[1 - pair.index(key)], None)


def build(model: type[M], raw: dict[str, Any], base: Path | None) -> M:
    """Validate; raise `ScenarioError` with every problem, those between blocks included."""
    try:
        return model.model_validate(raw, context={"base": base})
    except ValidationError as error:
        problems = _problems(model, raw, error)
    targets = set(problems.values())
    tried: set[str] = set()
    patched = copy.deepcopy(raw)
    for attempt in range(
        8
    ):  # mend the leaves, then the blocks around those that stay broken, until the rules run
        for path in sorted(targets, key=len, reverse=True):
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
            around = attempt > 0 and any(old.startswith(f"{problem.path}.") for old in tried)
            if problem.path not in tried and path not in tried and not around:
                problems[problem] = path
            while path in tried and "." in path:
                path = path.rpartition(".")[0]
            targets.add(path)
    unique = list(problems)
    if len(unique) > MAX_PROBLEMS:
        unique = [
            *unique[:MAX_PROBLEMS],
            Problem("scenario", f"and {len(unique) - MAX_PROBLEMS} more problems"),
        ]
    raise ScenarioError(unique)


def _mend(raw: Any, path: str) -> None:
    """Put a stand-in for the value at a problem's path, or take it out; an item of a list goes as a whole."""
    here, steps = raw, path.split(".")
    for i, step in enumerate(steps):
        last = i == len(steps) - 1
        if isinstance(here, list):
            index = next((j for j, item in enumerate(here) if _item_step(item, j) == step), None)
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


def _item_step(item: Any, index: int) -> str:
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
            steps.append(_item_step(here, step))
        else:
            here = here.get(step) if isinstance(here, dict) else None
            steps.append(step[:60])
    return ".".join(steps)


def _problems(model: type[BaseModel], raw: Any, error: ValidationError) -> dict[Problem, str]:
    """Tell every problem of a failed validation, with the path of the value that would have to be mended."""
    found: dict[Problem, str] = {}
    for item in error.errors(include_url=False):
        path, kind = _path(raw, item["loc"]), item["type"]
        context: dict[str, Any] = item.get("ctx", {})
        if kind in (RULES, INSIDE):
            for inner in context["problems"]:
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
        here = _block_in(field.annotation) if field is not None else None
    return list(here.model_fields) if here is not None else []


def _block_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (tuple, Union, types.UnionType):
        return next((block for arg in get_args(annotation) if (block := _block_in(arg)) is not None), None)
    return None


def describe(schema: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Put the docstring under each field into the JSON Schema of a model.

    Pydantic can do so itself, but parses all sources at import: that costs every command 0.2 s.
    """
    blocks: dict[str, type[BaseModel]] = {}

    def collect(block: type[BaseModel]) -> None:
        blocks[block.__name__] = block
        for field in block.model_fields.values():
            inner = _block_in(field.annotation)
            if inner is not None and inner.__name__ not in blocks:
                collect(inner)

    collect(model)
    for name, body in [(model.__name__, schema), *schema.get("$defs", {}).items()]:
        docs: dict[str, str] = {}
        for base in reversed(blocks[name].__mro__):
            if base.__module__.startswith("sim."):
                docs |= _field_docs(base)
        for field, keys in body.get("properties", {}).items():
            if field in docs:
                keys["description"] = docs[field]
    return schema


def _field_docs(block: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(block))).body[0]
    assert isinstance(tree, ast.ClassDef)
    docs = {}
    for field, doc in itertools.pairwise(tree.body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(doc, ast.Expr)
        ):
            docs[field.target.id] = ast.literal_eval(doc.value).strip()
    return docs


def digest(data: Mapping[str, Any]) -> str:
    """12 hex characters of SHA-256 over the values, whatever the order of the keys."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
