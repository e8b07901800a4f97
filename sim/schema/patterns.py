"""JSON Schema of texts and laws: what an editor can tell is wrong before the scenario is loaded.

The patterns say what sim/units.py reads; a test holds the two together. Each schema that many keys share stands
once under ``$defs`` and is referred to.
"""

from __future__ import annotations

from typing import Any

from sim.units import MAX_SI, PER_UNITS

_SHARED_KEY = "x-shared"  # pydantic refuses a $ref that it did not make; `share` makes it one
_NUMBER = r"[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,3})?"
_WORDS = {
    "w": "weeks?|w",
    "d": "days?|d",
    "h": "hours?|hrs?|h",
    "min": "minutes?|mins?|m",
    "s": "seconds?|secs?|s",
    "ms": "ms",
    "us": "us",
    "ns": "ns",
}
_PARTS = "".join(rf"({_NUMBER}\s*({words})\s*)?" for words in _WORDS.values())
_DURATION = rf"{_NUMBER}|(?=[0-9]){_PARTS}"
_SIZE = rf"{_NUMBER}(\s*([kKMGTPE]i?)?B)?"
_BITS = rf"{_NUMBER}\s*[kKMGTPE]?(bps|bit/s|bits/s|b/s)"
_RATE_TIME = "|".join([*(_WORDS[unit] for unit in ("w", "d", "h", "min", "s")), "years?"])
_RATE = rf"{_NUMBER}(\s*per\s+({_NUMBER}\s*)?(({'|'.join(PER_UNITS)})-)?({_RATE_TIME}))?"


def _text(pattern: str, *examples: str) -> dict[str, Any]:
    return {"type": "string", "pattern": rf"^\s*({pattern})\s*$", "examples": list(examples)}


def _number(positive: bool = False) -> dict[str, Any]:
    return {"type": "number", "exclusiveMinimum" if positive else "minimum": 0, "maximum": MAX_SI}


SHARED: dict[str, dict[str, Any]] = {
    "DurationText": {
        **_text(_DURATION, "4h30m", "275s", "500ms"),
        "description": "Text for a duration: ns us ms s m (min) h d w, the larger unit first.",
    },
    "StepsText": {**_text(r"0*[1-9][0-9]{0,12}\s*steps?", "500 steps"), "description": "Text for steps."},
}
"""Schemas that stand under ``$defs``, by name."""


def _ref(name: str) -> dict[str, Any]:
    return {_SHARED_KEY: name}


def share(schema: dict[str, Any]) -> dict[str, Any]:
    """Put the shared schemas under ``$defs`` and refer to them."""

    def resolved(x: Any) -> Any:
        if isinstance(x, dict):
            if _SHARED_KEY in x:
                return {"$ref": f"#/$defs/{x[_SHARED_KEY]}"}
            return {key: resolved(value) for key, value in x.items()}
        return [resolved(value) for value in x] if isinstance(x, list) else x

    whole: dict[str, Any] = resolved({**schema, "$defs": SHARED | schema["$defs"]})
    return whole


TIME: dict[str, Any] = {"anyOf": [_number(), _ref("DurationText")]}
POSITIVE_TIME: dict[str, Any] = {"anyOf": [_number(positive=True), _ref("DurationText")]}
TIMEOUT: dict[str, Any] = {"anyOf": [*POSITIVE_TIME["anyOf"], {"enum": ["off", False]}]}
INTERVAL: dict[str, Any] = {"anyOf": [*POSITIVE_TIME["anyOf"], _ref("StepsText")]}
BYTES: dict[str, Any] = {"anyOf": [_number(positive=True), _text(_SIZE, "48.2GB", "80GiB")]}
BANDWIDTH: dict[str, Any] = {
    "anyOf": [_number(positive=True), _text(rf"{_SIZE}\s*/s|{_BITS}|{_NUMBER}", "175MB/s", "400Gbps")]
}
RATE: dict[str, Any] = {"anyOf": [_number(), _text(_RATE, "3.8 per 1000 node-days", "1 per week")]}


def _fields(fields: dict[str, Any], about: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": about,
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _one_law(kinds: dict[str, Any], about: str, example: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": about,
        "properties": kinds,
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "examples": [example],
    }


_SHAPE = {"type": "number", "minimum": 0.1, "maximum": 100}
_CV = {"type": "number", "minimum": 0.001, "maximum": 100}
_UNIFORM = _fields({"low": TIME, "high": POSITIVE_TIME}, "Anything from low to high.")
_EMPIRICAL = {
    "description": "Measured durations: a list, or a file with one a line, beside the scenario.",
    "anyOf": [{"type": "string"}, {"type": "array", "items": TIME, "minItems": 1, "maxItems": 10_000}],
}
SHARED["LawBody"] = _one_law(
    {
        "constant": TIME,
        "uniform": _UNIFORM,
        "exponential": _fields({"mean": POSITIVE_TIME}, "Exponential."),
        "weibull": _fields({"shape": _SHAPE, "mean": POSITIVE_TIME}, "Weibull; shape 1 is exponential."),
        "lognormal": _fields(
            {"median": POSITIVE_TIME, "mean": POSITIVE_TIME}, "Lognormal; median below mean."
        ),
        "gamma": _fields({"mean": POSITIVE_TIME, "cv": _CV}, "Gamma; cv is standard deviation over mean."),
        "empirical": _EMPIRICAL,
    },
    "Law of a random duration.",
    {"exponential": {"mean": "5min"}},
)
SHARED["ShapeBody"] = _one_law(
    {
        "uniform": _UNIFORM,
        "exponential": {**_fields({}, "Exponential."), "type": ["object", "null"]},
        "weibull": _fields({"shape": _SHAPE}, "Weibull; below 1 faults come in bursts, 1 is exponential."),
        "lognormal": _fields({"median": POSITIVE_TIME}, "Lognormal; the median lies below the mean."),
        "gamma": _fields({"cv": _CV}, "Gamma; cv is standard deviation over mean."),
        "empirical": _EMPIRICAL,
    },
    "Shape of the time between faults; rate or mtbf sets the mean.",
    {"weibull": {"shape": 0.8}},
)
LAW: dict[str, Any] = {"anyOf": [*TIME["anyOf"], _ref("LawBody")]}
POSITIVE_LAW: dict[str, Any] = {"anyOf": [*POSITIVE_TIME["anyOf"], _ref("LawBody")]}
SHAPE: dict[str, Any] = {
    "anyOf": [{"type": "string", "enum": ["exponential", "constant"]}, _ref("ShapeBody")]
}
