"""Numbers as a person reads them: shares in %, times with units, and bars."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.console import Console

from sim.accounts.estimate import Interval
from sim.units import count, format_duration, percents

__all__ = ["LABELS", "PERCENT", "bar", "count", "difference", "interval", "label", "percents", "total_percent", "value"]

PERCENT = (
    "goodput", "training_goodput_aws", "training_goodput_aws_as_coded", "infra_goodput_aws", "save_efficiency_aws",
    "ettr", "availability", "completed_fraction", "censored_fraction",
)  # fmt: skip
LABELS = {
    "goodput": "goodput",
    "wall_time_s": "wall time",
    "finish_s": "finish",
    "ettr": "ETTR (Meta)",
    "availability": "availability",
    "interruptions": "interruptions",
    "mtti_s": "mean time to interruption",
    "recovery_event_s": "time of a restart event",
    "incident_s": "time of an incident",
    "gpu_hours": "GPU-hours",
    "usd": "cost",
    "usd_per_productive_gpu_hour": "cost of a productive GPU-hour",
    "training_goodput_aws": "training goodput (AWS)",
    "training_goodput_aws_as_coded": "training goodput (AWS, as coded)",
    "infra_goodput_aws": "infrastructure goodput (AWS)",
    "save_efficiency_aws": "save efficiency (AWS)",
    "completed_fraction": "runs completed",
    "censored_fraction": "runs stopped by a limit",
}


def label(metric: str) -> str:
    """Return a metric's name for people."""
    return LABELS.get(metric, metric)


def value(metric: str, x: float | None) -> str:
    """Return one value of a metric with its unit; `-` where there is none, `never` where it is infinite."""
    if x is None or math.isnan(x):
        return "-"
    if math.isinf(x):
        return "never"
    if metric in PERCENT:
        return f"{100 * x:.2f} %"
    if metric.endswith("_s"):
        return format_duration(x)
    if metric.startswith("usd"):
        sign = "-" if x < 0 else ""
        return f"{sign}${abs(x):.2f}" if abs(x) < 1000 else f"{sign}${count(abs(x))}"
    return count(x)


def total_percent(shares: Mapping[str, float]) -> str:
    """Return the total of a ledger in %: that of the shares, not of their rounded texts."""
    return f"{100 * math.fsum(shares.values()):.2f}"


def difference(metric: str, x: float | None) -> str:
    """Return a difference with its sign; of shares in points."""
    if x is None or math.isnan(x):
        return "-"
    sign = "+" if x > 0 else ""
    if metric in PERCENT:
        points = f"{100 * x:.2f}"
        return "0.00 pt" if float(points) == 0.0 else f"{sign}{points} pt"
    return f"{sign}{value(metric, x)}"


def interval(metric: str, bounds: Interval | None, as_difference: bool = False) -> str:
    """Return a 95 % interval; `-` where one run gives none."""
    if bounds is None:
        return "-"
    write = difference if as_difference else value
    low, high = (write(metric, bound) for bound in bounds)
    unit = next((unit for unit in (" %", " pt") if low.endswith(unit) and high.endswith(unit)), "")
    return f"{low.removesuffix(unit)} .. {high}"


def bar(out: Console, share: float, width: int = 30) -> str:
    """Return a bar for a share of 1, in blocks where the terminal knows them."""
    block = "█" if out.encoding.lower().startswith("utf") else "#"
    cells = round(share * width)
    return block * cells if cells or share <= 0 else ("▏" if block == "█" else ".")
