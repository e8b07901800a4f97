"""YAML in and out, safely: bounded size and depth, no tags, no aliases, no repeated keys.

Reads the YAML 1.2 core schema rather than PyYAML's 1.1: ``off``, ``no`` and ``1:30`` stay text, ``1e6`` is a
number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import yaml

from sim.schema.fields import Problem, ScenarioError
from sim.units import shown

MAX_BYTES = 1_000_000
MAX_DEPTH = 30
MAX_ITEMS = 50_000
MAX_PROBLEMS = 50

_INT = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_Loader: Any = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)  # the C parser is ten times faster where it is built


def read(text: str | bytes, origin: str) -> Any:
    """Parse one YAML document into dict, list and scalars; raise `ScenarioError` at path `origin`."""
    if len(text) > MAX_BYTES:
        raise ScenarioError([Problem(origin, f"must be at most {MAX_BYTES} bytes (got more)")])
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ScenarioError(
                [Problem(origin, f"must be UTF-8 text (got byte {error.start} outside it)")]
            ) from None
    try:
        return _Builder(origin).build(text)
    except yaml.MarkedYAMLError as error:
        what = (error.problem or "cannot be read").strip()
        raise ScenarioError([Problem(origin, f"is not YAML: {what}{_at(error.problem_mark)}")]) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise ScenarioError([Problem(origin, f"is not YAML: {str(error).splitlines()[0]}")]) from None


def scalar(text: str) -> Any:
    """Resolve a plain scalar as YAML 1.2 does."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        return int(text) if len(text) <= 300 else math.inf
    return float(text) if _FLOAT.match(text) else text


class _Builder:
    """Builds the data from parser events, without recursion: depth is bounded by us, not the stack."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.problems: list[Problem] = []

    def build(self, text: str) -> Any:
        root: list[Any] = []
        stack: list[Any] = [root]
        keys: list[Any] = [None]  # the pending key of each open mapping
        items = 0
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.DocumentStartEvent) and root:
                self.refuse(event, "must hold one document (got a second)")
            if isinstance(event, yaml.AliasEvent):
                self.refuse(event, f"must not use aliases (got '*{event.anchor}')")
            if not isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                continue
            if isinstance(event, yaml.CollectionEndEvent):
                stack.pop()
                keys.pop()
                continue
            items += 1
            if items > MAX_ITEMS or len(stack) > MAX_DEPTH:
                self.refuse(
                    event, f"must hold at most {MAX_ITEMS} values, nested {MAX_DEPTH} deep (got more)"
                )
            tag = getattr(event, "tag", None)
            if tag is not None and tag != "!":
                self.refuse(event, f"must not use tags (got {tag[:40]!r})")
            value: Any
            if isinstance(event, yaml.ScalarEvent):
                value = scalar(event.value) if event.implicit[0] else event.value
            else:
                value = {} if isinstance(event, yaml.MappingStartEvent) else []
            self.put(stack[-1], keys, value, event)
            if not isinstance(event, yaml.ScalarEvent):
                stack.append(value)
                keys.append(_NO_KEY)
        if self.problems:
            raise ScenarioError(self.problems)
        return root[0] if root else None

    def put(self, parent: Any, keys: list[Any], value: Any, event: Any) -> None:
        if isinstance(parent, list):
            parent.append(value)
        elif keys[-1] is _NO_KEY:
            if not isinstance(value, str):
                key = event.value if isinstance(event, yaml.ScalarEvent) else "a collection"
                self.problems.append(
                    Problem(self.origin, f"must have text keys (got {key[:40]!r}){_at(event.start_mark)}")
                )
                value = f"{key}"
            elif value in parent:
                self.problems.append(
                    Problem(
                        self.origin,
                        f"must name each key once (got {value[:40]!r} again){_at(event.start_mark)}",
                    )
                )
            if len(self.problems) >= MAX_PROBLEMS:
                raise ScenarioError(self.problems)
            keys[-1] = value
        else:
            parent[keys[-1]] = value
            keys[-1] = _NO_KEY

    def refuse(self, event: Any, message: str) -> None:
        raise ScenarioError([*self.problems, Problem(self.origin, message + _at(event.start_mark))])


_NO_KEY = object()


def _at(mark: Any) -> str:
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""


class _Dumper(yaml.SafeDumper):
    """Quotes whatever a YAML 1.1 or a 1.2 reader would not take for text; short collections on one line."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, data: str) -> yaml.ScalarNode:
        tag_1_1: str = self.resolve(yaml.ScalarNode, data, (True, False))  # type: ignore[no-untyped-call]
        plain = isinstance(scalar(data), str) and tag_1_1.endswith(":str")
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if plain else '"')

    def represent_real(self, data: float) -> yaml.ScalarNode:
        text = repr(data) if math.isfinite(data) else ".inf" if data > 0 else "-.inf" if data < 0 else ".nan"
        mantissa, e, exponent = text.partition("e")
        point = ".0" if e and "." not in mantissa else ""  # YAML 1.1 reads 1e-07 as text
        return self.represent_scalar("tag:yaml.org,2002:float", mantissa + point + e + exponent)


_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_representer(float, _Dumper.represent_real)


def write(data: Mapping[str, Any]) -> str:
    """Write YAML that `read` reads back exactly; keys keep their order."""
    text: str = yaml.dump(
        dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None
    )
    return text


def plain(data: Any, origin: str = "scenario") -> Any:
    """Reduce any mapping from Python to what YAML could have said; raise `ScenarioError` with every problem.

    Numpy numbers become Python's, tuples lists; a None in a mapping counts as left out. Cycles end at the
    depth limit.
    """
    problems: list[Problem] = []
    left = [MAX_ITEMS]

    def walk(x: Any, path: str, depth: int) -> Any:
        left[0] -= 1
        if len(problems) >= MAX_PROBLEMS:
            return None
        if depth > MAX_DEPTH or left[0] < 0:
            problems.append(
                Problem(path, f"must hold at most {MAX_ITEMS} values, nested {MAX_DEPTH} deep (got more)")
            )
            return None
        if x is None or isinstance(x, (bool, float)):
            return x
        if isinstance(x, str):
            try:
                x.encode("utf-8")
            except UnicodeEncodeError:
                problems.append(Problem(path, f"must be text that UTF-8 can write {shown(x)}"))
            return str(x)
        if isinstance(x, int):
            return x if abs(x) < 10**300 else math.inf
        if isinstance(x, Mapping):
            out = {}
            for key, value in list(x.items())[: MAX_ITEMS + 1]:
                if not isinstance(key, str):
                    problems.append(Problem(path, f"must have text keys {shown(key)}"))
                elif value is not None:
                    out[key] = walk(value, f"{path}.{key[:60]}" if path != origin else key[:60], depth + 1)
            return out
        if isinstance(x, (list, tuple)):
            return [walk(value, f"{path}.{i}", depth + 1) for i, value in enumerate(x[: MAX_ITEMS + 1])]
        if hasattr(x, "item") and hasattr(x, "dtype") and getattr(x, "ndim", 1) == 0:  # a numpy number
            return walk(x.item(), path, depth + 1)
        problems.append(
            Problem(path, f"must be text, a number, a list or a mapping (got a {type(x).__name__})")
        )
        return None

    result = walk(data, origin, 0)
    if problems:
        raise ScenarioError(problems)
    return result
