"""Laws of random durations: one syntax everywhere a time may vary.

``5s`` | ``{uniform: {low, high}}`` | ``{exponential: {mean}}`` | ``{weibull: {shape, mean}}`` |
``{lognormal: {median, mean}}`` | ``{gamma: {mean, cv}}`` | ``{empirical: file or [values]}``.

In a fault class the rate sets the mean, so only the shape is stated there: ``exponential``, ``constant``,
``{weibull: {shape: 0.8}}``, ``{lognormal: {median: 10h}}``, ``{gamma: {cv: 2}}``; a uniform or empirical law
is scaled to that mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal, get_args

from sim.units import exact_duration, or_else, parse_duration, shown

Kind = Literal["constant", "uniform", "exponential", "weibull", "lognormal", "gamma", "empirical"]

KINDS: tuple[Kind, ...] = get_args(Kind)
MAX_VALUES = 10_000  # measured values in one empirical law
MAX_FILE_BYTES = 1_000_000

_TIMES: dict[str, tuple[str, ...]] = {
    "uniform": ("low", "high"),
    "exponential": ("mean",),
    "weibull": ("mean",),
    "lognormal": ("median", "mean"),
    "gamma": ("mean",),
}
_NUMBERS: dict[str, str] = {"weibull": "shape", "gamma": "cv"}
_BOUNDS = {
    "shape": (0.1, 100.0),
    "cv": (0.001, 100.0),
}  # outside, gamma functions overflow or the law is a constant


class LawError(ValueError):
    """A law that cannot be read; `problems` are (path below the law, message)."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__("; ".join(f"{path}: {message}" if path else message for path, message in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Law:
    """One law of a duration. Times in seconds; a field that its kind does not use is None.

    ``mean`` is None only in the shape of a fault class; `FaultClass.life_law` fills it from the rate.
    """

    kind: Kind
    value: float | None = None
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    shape: float | None = None
    median: float | None = None
    cv: float | None = None
    values: tuple[float, ...] = ()

    @classmethod
    def constant(cls, seconds: float) -> Law:
        """Make the law that always gives `seconds`."""
        return cls("constant", value=seconds)

    @classmethod
    def parse(cls, raw: object, *, shape_only: bool = False, base: Path | None = None) -> Law:
        """Read the short syntax; raise `LawError` with every problem found.

        An empirical file is looked for beside `base` and holds one duration a line (``#`` comments); its
        values are kept, not its name, so that a written scenario stands on its own.
        """
        if isinstance(raw, Law):
            return raw
        if shape_only and isinstance(raw, str) and raw.strip() in ("exponential", "constant"):
            return cls("exponential" if raw.strip() == "exponential" else "constant")
        if not isinstance(raw, Mapping):
            if shape_only:
                raise LawError(
                    ("", f"must be exponential, constant or such as {{weibull: {{shape: 0.8}}}} {shown(raw)}")
                )
            try:
                return cls.constant(parse_duration(raw))
            except ValueError as error:
                raise LawError(("", or_else(error, "a law such as {exponential: {mean: 5min}}"))) from None
        kind = next((k for k in KINDS if k in raw), None)
        if kind is None or len(raw) != 1:
            raise LawError(("", f"must be one law of {', '.join(KINDS)} {shown(list(raw))}"))
        if kind == "empirical":
            return cls("empirical", values=_empirical(raw[kind], base))
        if kind == "constant":
            if shape_only:
                raise LawError(
                    ("constant", f"must be written `constant`: the rate or mtbf sets it {shown(raw[kind])}")
                )
            return cls.constant(_read({"constant": raw[kind]}, "constant", "", "constant"))
        return cls._from_mapping(kind, raw[kind], shape_only)

    @classmethod
    def _from_mapping(cls, kind: Kind, given: object, shape_only: bool) -> Law:
        times, number = list(_TIMES[kind]), _NUMBERS.get(kind)
        if shape_only and "mean" in times:
            times.remove("mean")
        names = times + [number] * bool(number)
        given = {} if given is None else given
        if not isinstance(given, Mapping):
            raise LawError(
                (kind, f"must be a mapping with {', '.join(map(str, names)) or 'no key'} {shown(given)}")
            )
        problems: list[tuple[str, str]] = []
        for key in given:
            if key == "mean" and shape_only and "mean" in _TIMES[kind]:
                problems.append(
                    (f"{kind}.mean", f"must be left out: the rate or mtbf sets the mean {shown(given[key])}")
                )
            elif key not in names:
                problems.append(
                    (
                        f"{kind}.{key}",
                        f"unknown key; allowed: {', '.join(map(str, names)) or 'none'} {shown(given[key])}",
                    )
                )
        found: dict[str, float] = {}
        for name in (*times, *([number] if number else [])):
            if name not in given:
                problems.append((f"{kind}.{name}", "required (got nothing)"))
                continue
            try:
                found[name] = _read(given, name, kind, name)
            except LawError as error:
                problems.extend(error.problems)
        if not problems:
            problems.extend(_relations(kind, found, shape_only))
        if problems:
            raise LawError(*problems)
        return cls(kind, **found)  # type: ignore[arg-type]

    def plain(self, *, text: bool = False) -> Any:
        """Write the short syntax that `parse` reads back exactly; with `text`, durations as text."""

        def time(seconds: float) -> str | float:
            return exact_duration(seconds) if text else seconds

        if self.kind == "constant":
            return "constant" if self.value is None else time(self.value)
        if self.kind == "empirical":
            return {"empirical": [time(value) for value in self.values]}
        fields = {
            name: time(value) for name in _TIMES[self.kind] if (value := getattr(self, name)) is not None
        }
        number = _NUMBERS.get(self.kind)
        if number:
            fields = {number: getattr(self, number), **fields}
        return {self.kind: fields} if fields else self.kind

    def mean_s(self) -> float:
        """Mean [s]."""
        if self.kind == "uniform":
            assert self.low is not None and self.high is not None
            return (self.low + self.high) / 2
        if self.kind == "empirical":
            return fmean(self.values)
        mean = self.value if self.kind == "constant" else self.mean
        if mean is None:
            raise ValueError(
                f"the {self.kind} law of a fault class has no mean of its own; use FaultClass.life_law()"
            )
        return mean

    def median_s(self) -> float:
        """Median [s]."""
        mean = self.mean_s()
        if self.kind == "exponential":
            return mean * math.log(2)
        if self.kind == "weibull":
            assert self.shape is not None
            return float(mean / math.gamma(1 + 1 / self.shape) * math.log(2) ** (1 / self.shape))
        if self.kind == "lognormal":
            assert self.median is not None
            return self.median
        if self.kind == "gamma":
            from scipy.special import gammaincinv  # lazy: scipy is slow to import

            assert self.cv is not None
            return float(gammaincinv(self.cv**-2, 0.5)) * mean * self.cv**2
        return float(median(self.values)) if self.kind == "empirical" else mean

    def with_mean(self, mean_s: float) -> Law:
        """Complete the shape of a fault class with its mean [s]; uniform and empirical are scaled to it."""
        if self.kind == "constant":
            return Law.constant(mean_s)
        if self.kind == "uniform":
            assert self.low is not None and self.high is not None
            scale = mean_s / self.mean_s()
            return replace(self, low=self.low * scale, high=self.high * scale)
        if self.kind == "empirical":
            scale = mean_s / self.mean_s()
            return replace(self, values=tuple(value * scale for value in self.values))
        if self.kind == "lognormal":
            assert self.median is not None
            if not self.median < mean_s <= 1e6 * self.median:
                rule = f"must be below the mean, {exact_duration(mean_s)}, and at least a millionth of it"
                raise LawError(("lognormal.median", f"{rule} {shown(exact_duration(self.median))}"))
        return replace(self, mean=mean_s)


def _read(given: Mapping[Any, Any], name: str, kind: str, field: str) -> float:
    """One parameter of a law: a duration, or a bounded plain number."""
    path = f"{kind}.{name}" if kind else name
    raw = given[name]
    if field in _BOUNDS:
        low, high = _BOUNDS[field]
        if isinstance(raw, bool) or not isinstance(raw, (int, float)) or not low <= raw <= high:
            raise LawError((path, f"must be a number from {low:g} to {high:g} {shown(raw)}"))
        return float(raw)
    try:
        return parse_duration(raw)
    except ValueError as error:
        raise LawError((path, str(error))) from None


def _relations(kind: str, found: Mapping[str, float], shape_only: bool) -> list[tuple[str, str]]:
    """Rules between the parameters of one law."""
    if kind == "uniform":
        if found["low"] > found["high"]:
            return [("uniform.low", f"must not be above high {shown(found['low'])}")]
        return [("uniform.high", f"must be above 0 {shown(found['high'])}")] if found["high"] <= 0 else []
    zero = [
        (f"{kind}.{name}", f"must be above 0; write a plain 0 for no time {shown(value)}")
        for name, value in found.items()
        if value <= 0
    ]
    if zero or kind != "lognormal" or shape_only:
        return zero
    if found["median"] > found["mean"]:
        return [("lognormal.median", f"must not be above the mean {shown(found['median'])}")]
    if found["mean"] > 1e6 * found["median"]:
        return [("lognormal.mean", f"must be at most a million medians {shown(found['mean'])}")]
    return []


def _empirical(given: object, base: Path | None) -> tuple[float, ...]:
    """Read the measured values: a list, or a file with one duration a line."""
    items: list[Any]
    if isinstance(given, str):
        path = (base or Path()) / given
        try:
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES:
                raise LawError(
                    ("empirical", f"must be a file of at most {MAX_FILE_BYTES} bytes {shown(given)}")
                )
            lines = data.decode("utf-8").splitlines()
        except UnicodeDecodeError:
            raise LawError(
                ("empirical", f"must be a text file with one duration a line {shown(given)}")
            ) from None
        except (OSError, ValueError) as error:
            if isinstance(error, LawError):
                raise
            reason = getattr(error, "strerror", None) or "not a usable file name"
            raise LawError(("empirical", f"cannot read the file: {reason} {shown(given)}")) from None
        items = [text for line in lines if (text := line.partition("#")[0].strip())]
    elif isinstance(given, (list, tuple)):
        items = list(given)
    else:
        raise LawError(("empirical", f"must be a file name or a list of durations {shown(given)}"))
    if not 1 <= len(items) <= MAX_VALUES:
        raise LawError(("empirical", f"must hold 1 to {MAX_VALUES} values (got {len(items)})"))
    values, problems = [], []
    for i, item in enumerate(items):
        try:
            values.append(parse_duration(item))
        except ValueError as error:
            problems.append((f"empirical.{i}", str(error)))
    if problems:
        raise LawError(*problems[:10])
    if max(values) <= 0:
        raise LawError(("empirical", "must hold a value above 0"))
    return tuple(sorted(values))
