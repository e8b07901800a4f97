"""What the scenario blocks are made of: problems with a path, the base class, and fields that read text.

Every field type here reads number or text, keeps SI, and writes text back only where that is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sim import units
from sim.schema import patterns
from sim.schema.law import Law, LawError
from sim.units import shown

Symptom = Literal[
    "exception", "hang", "process_exit", "gpu_error", "node_loss", "slowdown", "silent_corruption"
]
"""How a fault shows."""
Scope = Literal["rank", "gpu", "node", "rack", "job"]
"""What one event takes down."""
Layer = Literal["in_process", "in_job", "kubernetes", "slurm", "node_replacement", "fixed"]
"""A restart layer, the lowest first."""

# pydantic error types that carry several problems, each with its own path: below a block, or inside one value
RULES, INSIDE = "rules", "inside"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the input: where (dotted path) and what, ending in ``(got X)``."""

    path: str
    message: str

    def __str__(self) -> str:
        """Read as one line."""
        return f"{self.path}: {self.message}" if self.path else self.message


class ScenarioError(Exception):
    """The input is wrong. `problems` holds everything found, at once; ``str`` is one line for each."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[list[Problem]]]:
        """Keep the problems when a worker process sends the error back."""
        return type(self), (self.problems,)


class Block(BaseModel):
    """A part of a scenario: frozen, unknown keys refused; rules between its fields are told in `rules`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def rules(self) -> Iterator[Problem]:
        """Yield what is wrong between the fields of this block, paths relative to it."""
        yield from ()

    @model_validator(mode="after")
    def _keep_rules(self) -> Any:
        problems = list(self.rules())
        if problems:
            raise broken(problems)
        return self


def broken(problems: list[Problem], kind: Literal["rules", "inside"] = "rules") -> PydanticCustomError:
    """Wrap several problems so that they travel through pydantic with their paths."""
    return PydanticCustomError(kind, "broken rules", {"problems": problems})


def _field(
    parse: Callable[[Any], Any], write: Callable[[Any], Any], schema: dict[str, Any]
) -> tuple[Any, Any, Any]:
    return PlainValidator(parse), PlainSerializer(write, when_used="json"), WithJsonSchema(schema)


def _positive(parse: Callable[[object], float]) -> Callable[[Any], float]:
    def read(x: Any) -> float:
        value = parse(x)
        if value <= 0:
            raise ValueError(f"must be above 0 {shown(x)}")
        return value

    return read


def _or_off(x: Any) -> float:
    """Read a timeout; ``off`` (YAML 1.1 readers make it False) switches it off and is kept as infinity."""
    if x is False or x == "off" or (isinstance(x, float) and x == math.inf):
        return math.inf
    try:
        return _positive(units.parse_duration)(x)
    except ValueError as error:
        raise ValueError(units.or_else(error, "off")) from None


def _write_or_off(seconds: float) -> str | float:
    return "off" if math.isinf(seconds) else units.exact_duration(seconds)


def _real(low: float, high: float, what: str = "a number") -> Callable[[Any], float]:
    def read(x: Any) -> float:
        if isinstance(x, bool) or not isinstance(x, (int, float)) or not low <= x <= high:
            raise ValueError(f"must be {what} from {low:g} to {high:g} {shown(x)}")
        return float(x) + 0.0

    return read


def whole(low: int, high: int) -> tuple[Any, ...]:
    """Annotations of an integer field from `low` to `high`; 2000.0 is 2000, true is not 1."""

    def read(x: Any) -> int:
        ok = not isinstance(x, bool) and isinstance(x, (int, float)) and low <= x <= high
        if not ok or int(x) != x:
            raise ValueError(f"must be a whole number from {low} to {high} {shown(x)}")
        return int(x)

    return PlainValidator(read), WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})


def _flag(x: Any) -> bool:
    if not isinstance(x, bool):
        raise ValueError(f"must be true or false {shown(x)}")
    return x


def _text(x: Any) -> str:
    if not isinstance(x, str) or not x.strip() or len(x) > 10_000:
        raise ValueError(f"must be text, in quotes if it looks like a number {shown(x)}")
    return x


def _item_name(x: Any) -> str:
    # a name is a step of a path: no dot, no '=', and not a bare number, which would be an index
    if not isinstance(x, str) or not x.replace("-", "_").isidentifier() or len(x) > 60:
        raise ValueError(f"must be a name of letters, digits, - and _, not starting with a digit {shown(x)}")
    return x


def _law(x: Any, info: ValidationInfo, shape_only: bool) -> Law:
    try:
        return Law.parse(x, shape_only=shape_only, base=(info.context or {}).get("base"))
    except LawError as error:
        raise broken([Problem(path, message) for path, message in error.problems], "inside") from None


def _read_law(x: Any, info: ValidationInfo) -> Law:
    return _law(x, info, shape_only=False)


def _read_shape(x: Any, info: ValidationInfo) -> Law:
    return _law(x, info, shape_only=True)


def _read_positive_law(x: Any, info: ValidationInfo) -> Law:
    law = _law(x, info, shape_only=False)
    if law.median_s() <= 0:
        raise ValueError(f"must be above 0 {shown(x)}")
    return law


def _write_law(law: Law, info: Any) -> Any:
    return law.plain(text=info.mode == "json")


Duration = Annotated[float, *_field(units.parse_duration, units.exact_duration, patterns.TIME)]
PositiveDuration = Annotated[
    float, *_field(_positive(units.parse_duration), units.exact_duration, patterns.POSITIVE_TIME)
]
Timeout = Annotated[float, *_field(_or_off, _write_or_off, patterns.TIMEOUT)]
Bytes = Annotated[float, *_field(_positive(units.parse_bytes), units.exact_bytes, patterns.BYTES)]
Bandwidth = Annotated[
    float, *_field(_positive(units.parse_bandwidth), units.exact_bandwidth, patterns.BANDWIDTH)
]
Rate = Annotated[float, *_field(lambda x: units.parse_rate(x)[0], units.exact_rate, patterns.RATE)]
Probability = Annotated[
    float, PlainValidator(_real(0, 1)), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
]
PositiveFraction = Annotated[
    float, PlainValidator(_real(0.01, 1)), WithJsonSchema({"type": "number", "minimum": 0.01, "maximum": 1})
]
Factor = Annotated[float, PlainValidator(_real(0, 1e6)), WithJsonSchema({"type": "number", "minimum": 0})]
Slowing = Annotated[float, PlainValidator(_real(1, 1e3)), WithJsonSchema({"type": "number", "minimum": 1})]
Bound = Annotated[float, PlainValidator(_real(1, 1e12)), WithJsonSchema({"type": "number", "minimum": 1})]
Count = Annotated[int, *whole(0, 10**12)]
Budget = Annotated[int, *whole(0, 10**9)]
Flag = Annotated[bool, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]
Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})]
ItemName = Annotated[str, PlainValidator(_item_name), WithJsonSchema({"type": "string"})]
LawField = Annotated[
    Law, PlainValidator(_read_law), PlainSerializer(_write_law), WithJsonSchema(patterns.LAW)
]
PositiveLaw = Annotated[
    Law,
    PlainValidator(_read_positive_law),
    PlainSerializer(_write_law),
    WithJsonSchema(patterns.POSITIVE_LAW),
]
ShapeField = Annotated[
    Law, PlainValidator(_read_shape), PlainSerializer(_write_law), WithJsonSchema(patterns.SHAPE)
]
