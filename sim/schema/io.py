"""Around a scenario: reading its sources, overrides by path, the docs of its JSON Schema, its hash."""

from __future__ import annotations

import ast
import copy
import difflib
import hashlib
import inspect
import itertools
import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sim import catalog
from sim.schema import yaml_text
from sim.schema.fields import Problem, ScenarioError
from sim.schema.law import Law
from sim.schema.problems import block_in, item_step
from sim.units import shown

SCHEMA_FILE = "goodput-scenario.schema.json"
EXCLUSIVE = (("steps", "useful_time"), ("rate", "mtbf"), ("write_time", "bandwidth"), ("duration", "until"))
"""Pairs of keys of which only one may stand: an override of one takes the other out."""


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
        if path.is_file():  # not a pipe or a device: reading one could wait for ever
            return path
        known = catalog.path_of(name)
        if known is not None:
            return known
        message = f"is a {'folder' if path.is_dir() else 'device'}, not a file" if path.exists() else ""
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
            index = _index(here, step)
            if index is None:
                known = ", ".join(item_step(item, j) for j, item in enumerate(here[:20])) or "none"
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


def _index(items: list[Any], step: str) -> int | None:
    """Find a list item by its name, else by its number."""
    for i, item in enumerate(items):
        if isinstance(item, dict) and item.get("name") == step:
            return i
    number = int(step) if step.isascii() and step.isdigit() and len(step) < 6 else len(items)
    return number if number < len(items) else None


def _put(here: dict[str, Any], key: str, value: Any) -> None:
    here.pop(key, None) if value is None else here.__setitem__(key, value)
    for pair in EXCLUSIVE:
        if value is not None and key in pair:
            here.pop(pair[1 - pair.index(key)], None)


def describe(schema: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Put the docstring under each field, and laws as a scenario writes them, into the JSON Schema of a model.

    Pydantic can do so itself, but parses all sources at import: that costs every command 0.2 s.
    """
    blocks: dict[str, type[BaseModel]] = {}

    def collect(block: type[BaseModel]) -> None:
        blocks[block.__name__] = block
        for field in block.model_fields.values():
            inner = block_in(field.annotation)
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
            default = blocks[name].model_fields[field].default
            if isinstance(default, Law):  # pydantic writes its attributes, not the text that a scenario holds
                keys["default"] = default.plain(text=True)
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
