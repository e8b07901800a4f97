"""Text <-> SI. Durations, sizes, bandwidths and rates are parsed here and nowhere else.

Inside the code everything is seconds, bytes, bytes/s and 1/s. A plain number is already SI. Text that cannot
be read raises ``ValueError`` with one line: what was got and an example of what is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal, get_args

Per = Literal["rank", "gpu", "node", "rack", "job"]
"""The unit of the cluster a rate is counted by."""

PER_UNITS: tuple[Per, ...] = get_args(Per)
MAX_SI = 1e18  # beyond any time, size or bandwidth met in practice: such input is a slip, not a wish
MINUTE_S, HOUR_S, DAY_S, WEEK_S, YEAR_S = 60.0, 3600.0, 86400.0, 604800.0, 365.25 * 86400.0

_SHORT_S = {"s": 1.0, "m": MINUTE_S, "min": MINUTE_S, "h": HOUR_S, "d": DAY_S, "w": WEEK_S}
_LONG_S = {
    "second": 1.0,
    "sec": 1.0,
    "minute": MINUTE_S,
    "hour": HOUR_S,
    "hr": HOUR_S,
    "day": DAY_S,
    "week": WEEK_S,
}
_TIME_S = _SHORT_S | _LONG_S | {name + "s": value for name, value in _LONG_S.items()} | {"mins": MINUTE_S}
_RATE_TIME_S = _TIME_S | {"year": YEAR_S, "years": YEAR_S}
_DIVISOR = {"ms": 1e3, "us": 1e6, "ns": 1e9}  # a division keeps 500ms at exactly 0.5
_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_PREFIX |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60}

_NUMBER = r"([0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE][+-]?[0-9]{1,3})?)"
_PART = re.compile(_NUMBER + r"\s*([a-z]+)\s*")
_PLAIN = re.compile(_NUMBER + r"\Z")
_BYTES = re.compile(_NUMBER + r"\s*([kKMGTPE]i?)?B\Z")
_BITS = re.compile(_NUMBER + r"\s*([kKMGTPE])?(?:bps|bit/s|bits/s|b/s)\Z")
_RATE = re.compile(_NUMBER + r"\s*per\s+(?:" + _NUMBER + r"\s*)?(?:([a-z]+)-)?([a-z]+)\Z")


def shown(x: object) -> str:
    """``(got X)`` with X cut to a readable length; used in every message about bad input."""
    try:
        text = repr(x)
    except (ValueError, RecursionError):  # an int of over 4300 digits has no repr
        text = f"a {type(x).__name__} too large to show"
    return f"(got {text if len(text) <= 60 else text[:57] + '...'})"


def or_else(error: ValueError, other: str) -> str:
    """Add another allowed form to a message of this module, before what was got."""
    rule, got, value = str(error).rpartition(" (got ")
    return f"{rule}, or {other}{got}{value}"


def _number(x: object, example: str, what: str) -> float:
    """Check a plain number: finite, not negative, no bool."""
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        raise ValueError(f"must be {what} such as {example} {shown(x)}")
    try:
        value = float(x)
    except OverflowError:
        value = math.inf
    if math.isnan(value) or value < 0 or value > MAX_SI:
        raise ValueError(f"must be {what}, finite and not negative, such as {example} {shown(x)}")
    return value + 0.0  # -0.0 becomes 0.0


def parse_duration(x: object) -> float:
    """Seconds from ``4h30m``, ``275s``, ``30d``, ``500ms``, ``1.5h`` or a number of seconds.

    Units: ns us ms s m min h d w and the English words; ``m`` is a minute. Larger units come first.
    """
    example, what = "'4h30m' or '275s'", "a duration"
    if not isinstance(x, str):
        return _number(x, example, what)
    text = x.strip()
    if _PLAIN.match(text):
        return _number(float(text), example, what)
    total, position, last = 0.0, 0, math.inf
    while position < len(text):
        part = _PART.match(text, position)
        if not part:
            raise ValueError(f"must be {what} such as {example} {shown(x)}")
        amount, unit = float(part[1]), part[2]
        if unit in _DIVISOR:
            scale, value = 1 / _DIVISOR[unit], amount / _DIVISOR[unit]
        elif unit in _TIME_S:
            scale = _TIME_S[unit]
            value = amount * scale
        else:
            raise ValueError(f"has no time unit {unit!r}; write {what} such as {example} {shown(x)}")
        if scale >= last:
            raise ValueError(f"must name each unit once, the larger first, such as {example} {shown(x)}")
        total, position, last = total + value, part.end(), scale
    if not text:
        raise ValueError(f"must be {what} such as {example} {shown(x)}")
    return _number(total, example, what)


def parse_bytes(x: object) -> float:
    """Bytes from ``48.2GB`` (1e9), ``80GiB`` (2**30) or a number of bytes."""
    example, what = "'48.2GB' or '80GiB'", "a size in bytes"
    if not isinstance(x, str):
        return _number(x, example, what)
    text = x.strip()
    if _PLAIN.match(text):
        return _number(float(text), example, what)
    match = _BYTES.match(text)
    if not match:
        raise ValueError(f"must be {what} such as {example} {shown(x)}")
    return _number(float(match[1]) * _PREFIX[match[2] or ""], example, what)


def parse_bandwidth(x: object) -> float:
    """Bytes/s from ``175MB/s``, ``3200Gbps`` (bits, as networks are sold) or a number of bytes/s."""
    example, what = "'175MB/s' or '400Gbps'", "a bandwidth"
    if not isinstance(x, str):
        return _number(x, example, what)
    text = x.strip()
    bits = _BITS.match(text)
    if bits:
        return _number(float(bits[1]) * _PREFIX[bits[2] or ""] / 8, example, what)
    size = text.removesuffix("/s").rstrip()
    if size == text and not _PLAIN.match(text):
        raise ValueError(f"must be {what} such as {example} {shown(x)}")
    try:
        return parse_bytes(size)
    except ValueError:
        raise ValueError(f"must be {what} such as {example} {shown(x)}") from None


def parse_rate(x: object) -> tuple[float, Per | None]:
    """Events per second and what they are counted by, from ``3.8 per 1000 node-days``.

    ``0.01 per day`` and ``1 per week`` name no unit (None); a number is events per second. Exposure may be
    stated as it was observed: ``148 per 110592 node-days``. A year is 365.25 days.
    """
    example, what = "'3.8 per 1000 node-days' or '1 per week'", "a rate"
    if not isinstance(x, str):
        return _number(x, example, what), None
    text = x.strip()
    if _PLAIN.match(text):
        return _number(float(text), example, what), None
    match = _RATE.match(text)
    if not match:
        raise ValueError(f"must be {what} such as {example} {shown(x)}")
    count, exposure, unit, time = float(match[1]), float(match[2] or 1), match[3], match[4]
    if time not in _RATE_TIME_S:
        raise ValueError(f"has no time unit {time!r}; write {what} such as {example} {shown(x)}")
    per: Per | None = next((p for p in PER_UNITS if p == unit), None)
    if unit is not None and per is None:
        raise ValueError(
            f"must count by one of {', '.join(PER_UNITS)}, not {unit!r}, such as {example} {shown(x)}"
        )
    if exposure * _RATE_TIME_S[time] <= 0 or math.isinf(exposure):
        raise ValueError(f"must be events over a time above 0, such as {example} {shown(x)}")
    return _number(count / (exposure * _RATE_TIME_S[time]), example, what), per


def format_duration(s: float) -> str:
    """Text for a person, rounded to two units: ``4h 30m``, ``4m 35s``, ``0.37s``; ``never`` for infinity."""
    if math.isinf(s):
        return "never"
    if abs(s) < MINUTE_S:
        return f"{s:.3g}s" if abs(s) < 59.95 else "1m"
    sign, left = ("-" if s < 0 else ""), round(abs(s))
    sizes = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    for (_, first), (_, last) in zip(sizes, sizes[1:], strict=False):
        if left >= first:  # rounded to the second unit shown, which may fill the first
            left = (left + last // 2) // last * last
            break
    parts = []
    for unit, size in sizes:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return sign + " ".join(parts)


def format_bytes(n: float) -> str:
    """Text for a person in powers of 1000: ``48.2GB``."""
    for prefix in ("E", "P", "T", "G", "M", "k"):
        if abs(n) >= _PREFIX[prefix] * 0.9995:
            return f"{n / _PREFIX[prefix]:.3g}{prefix}B" if abs(n) < 1e21 else f"{n:.3g}B"
    return f"{n:.3g}B"


def count(x: float) -> str:
    """Return a number in at most nine characters: ``12.35``, ``12,346``, ``21.15M``."""
    if abs(x) >= 1e6:
        return f"{x / 1e6:,.4g}M" if abs(x) < 1e9 else f"{x / 1e9:,.4g}G"
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}"


def percents(shares: Mapping[str, float]) -> dict[str, str]:
    """Return shares of 1 in % with two decimals, each rounded by itself as a metric is; their total is 100.00."""
    return {name: f"{100 * share:.2f}" for name, share in shares.items()}


def exact_duration(s: float) -> str | float:
    """Write the shortest text that ``parse_duration`` reads back as exactly `s`, else the number itself."""
    whole = (
        f"{s / size:.0f}{unit}"
        for unit, size in (("d", DAY_S), ("h", HOUR_S), ("min", MINUTE_S))
        if s >= size
    )
    return _exact((*whole, f"{s!r}s".replace(".0s", "s")), s, parse_duration)


def exact_bytes(n: float) -> str | float:
    """Write the shortest text that ``parse_bytes`` reads back as exactly `n`, else the number itself."""
    texts = (f"{n / _PREFIX[p]:.12g}{p}B" for p in ("T", "Ti", "G", "Gi", "M", "Mi") if n >= _PREFIX[p])
    return min((t for t in texts if parse_bytes(t) == n), key=len, default=n)


def exact_bandwidth(n: float) -> str | float:
    """Text that ``parse_bandwidth`` reads back as exactly `n`, else the number itself."""
    size = exact_bytes(n)
    return f"{size}/s" if isinstance(size, str) else size


def exact_rate(per_s: float) -> str | float:
    """Text without a unit that ``parse_rate`` reads back as exactly `per_s`, else the number itself."""
    for exposure, time, size in (("", "day", DAY_S), ("1000 ", "days", 1000 * DAY_S), ("", "week", WEEK_S)):
        count = f"{per_s * size:.12g}"
        text = f"{count} per {exposure}{time}"
        if len(count) <= 8 and parse_rate(text)[0] == per_s:
            return text
    return per_s


def _exact(texts: tuple[str, ...], value: float, parse: object) -> str | float:
    assert callable(parse)
    for text in texts:
        try:
            if parse(text) == value:
                return text
        except ValueError:
            continue
    return value
