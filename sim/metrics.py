"""Metrics from ledgers: every name with its definition and its source, pooled over runs with its interval.

Each metric is the ratio of two amounts that a run contributes, so its mean over runs is total over total
(`mean_of_runs` stands beside it) and its 95 % interval is that of a ratio (sim/accounts/estimate.py). Names of
different origins are never mixed: where two communities use one word for two amounts, there are two
metrics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sim.accounts.definitions import DEFINITIONS
from sim.accounts.estimate import (
    MIN_RUNS,
    Interval,
    difference_interval,
    quantile,
    ratio,
    ratio_interval,
    share_interval,
)
from sim.ledger import RunLedger

__all__ = [
    "DEFINITIONS", "Difference", "Metric", "Prices", "gpu_hours_by_category", "interruptions_by_class",
    "ledger_fractions", "metrics", "paired_difference", "per_run",
]  # fmt: skip


@dataclass(frozen=True)
class Prices:
    """What a GPU-hour costs [USD] and whether cold spares are billed; without a price no USD metric."""

    usd_per_gpu_hour: float | None = None
    bill_cold: bool = False


@dataclass(frozen=True)
class Metric:
    """A metric over runs. Infinite values (a job that never finishes) are kept here and null in `as_json`.

    `mean` is total over total, `mean_of_runs` the plain mean of the runs' own values, `ci95` the interval of
    `mean` (None from fewer than three runs), within what is possible. Quantiles are over runs; over incidents
    for the two that are pooled, whose `count` is the number pooled and whose `unresolved` counts the
    incidents left out because the job never resumed.
    """

    name: str
    mean: float
    mean_of_runs: float
    ci95: Interval | None
    p10: float
    p50: float
    p90: float
    p99: float
    runs: int
    count: int | None = None
    unresolved: int | None = None

    @property
    def definition(self) -> str:
        """What the metric says, in one sentence."""
        return DEFINITIONS[self.name][0]

    @property
    def source(self) -> str:
        """Who defines it so."""
        return DEFINITIONS[self.name][1]

    def as_json(self) -> dict[str, object]:
        """Return the metric as JSON values: numbers that are infinite or undefined are null."""
        numbers = ("mean", "mean_of_runs", "p10", "p50", "p90", "p99")
        record: dict[str, object] = {name: _finite(getattr(self, name)) for name in numbers}
        record["ci95"] = [_finite(bound) for bound in self.ci95] if self.ci95 else [None, None]
        record["definition"], record["source"] = self.definition, self.source
        if self.count is not None:
            record["count"], record["unresolved"] = self.count, self.unresolved
        return record


@dataclass(frozen=True)
class Difference:
    """Metric `name` of the first design minus that of the second, over paired runs (same seeds, same faults).

    `share_higher` is the share of pairs in which the first is higher, ties counted half.
    """

    name: str
    mean: float
    ci95: Interval | None
    share_higher: float
    runs: int


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# What a run contributes to a metric: (above, below) the line.
_Share = Callable[[RunLedger, Prices], tuple[float, float]]


def _aws_job_s(ledger: RunLedger) -> float:
    """Return the AWS job time [s]: from the first entry into the training function to the end."""
    return ledger.wall_s - ledger.first_process_s


def _aws_downtime_s(ledger: RunLedger) -> float:
    """Return the time in incidents that lies within the AWS job time [s]."""
    entered = ledger.first_process_s
    before = [
        min(entered, math.inf if incident.end_s is None else incident.end_s) - incident.start_s
        for incident in ledger.incidents
        if incident.start_s < entered
    ]
    return ledger.downtime_s - math.fsum(before)


def _gpu_s(ledger: RunLedger) -> float:
    return math.fsum(ledger.gpu_seconds.values())


def _usd(ledger: RunLedger, prices: Prices) -> float:
    billed_s = _gpu_s(ledger) + (ledger.cold_gpu_s if prices.bill_cold else 0.0)
    return billed_s / 3600.0 * (prices.usd_per_gpu_hour or 0.0)


def _loop_s(ledger: RunLedger) -> float:
    seconds = ledger.seconds
    return (
        seconds["productive"] + seconds["slowdown"] + seconds["rework"] + seconds["checkpoint_stall"]
    )  # fmt: skip


def _resolved(ledger: RunLedger) -> list[tuple[float, int]]:
    """Return (seconds, restart events) of the incidents that reached `resumed`, planned stops left out."""
    return [
        (incident.end_s - incident.start_s, incident.restart_events)
        for incident in ledger.incidents
        if incident.end_s is not None and not incident.planned
    ]


def _recovery_share(ledger: RunLedger, prices: Prices) -> tuple[float, float]:
    resolved = _resolved(ledger)
    return math.fsum(seconds for seconds, _ in resolved), float(sum(events for _, events in resolved))


def _incident_share(ledger: RunLedger, prices: Prices) -> tuple[float, float]:
    resolved = _resolved(ledger)
    return math.fsum(seconds for seconds, _ in resolved), float(len(resolved))


_SHARES: dict[str, _Share] = {
    "goodput": lambda led, _: (led.seconds["productive"], led.wall_s),
    "wall_time_s": lambda led, _: (led.wall_s, 1.0),
    "finish_s": lambda led, _: (led.finish_s, 1.0),
    "training_goodput_aws": lambda led, _: (led.kept_steps * (led.nominal_step_s or 0.0), _aws_job_s(led)),
    "training_goodput_aws_as_coded": lambda led, _: (led.loop_clock_s, _aws_job_s(led)),
    "infra_goodput_aws": lambda led, _: (_aws_job_s(led) - _aws_downtime_s(led), _aws_job_s(led)),
    "save_efficiency_aws": lambda led, _: (
        led.wall_s - led.seconds["checkpoint_stall"] + led.drain_s, led.wall_s,
    ),
    "ettr": lambda led, _: (led.seconds["productive"] + led.seconds["slowdown"], led.wall_s),
    "availability": lambda led, _: (_loop_s(led), led.wall_s),
    "interruptions": lambda led, _: (float(led.interruptions), 1.0),
    "mtti_s": lambda led, _: (led.wall_s, float(led.interruptions)),
    "recovery_event_s": _recovery_share,
    "incident_s": _incident_share,
    "gpu_hours": lambda led, _: (_gpu_s(led) / 3600.0, 1.0),
    "completed_fraction": lambda led, _: (float(led.completed), 1.0),
    "censored_fraction": lambda led, _: (float(led.censored), 1.0),
    "usd": lambda led, prices: (_usd(led, prices), 1.0),
    "usd_per_productive_gpu_hour": lambda led, prices: (
        _usd(led, prices), led.gpu_seconds["productive"] / 3600.0,
    ),
}  # fmt: skip
_POOLED = ("recovery_event_s", "incident_s")
_PRICED = ("usd", "usd_per_productive_gpu_hour")
_YES_OR_NO = ("completed_fraction", "censored_fraction")
_BOUNDED = (
    "goodput", "training_goodput_aws_as_coded", "infra_goodput_aws", "save_efficiency_aws", "ettr",
    "availability",
)  # fmt: skip
assert set(_SHARES) == set(DEFINITIONS)


def metrics(ledgers: Sequence[RunLedger], prices: Prices | None = None) -> dict[str, Metric]:
    """Return every metric of DEFINITIONS over the runs of one design; USD only where `prices` gives a price.

    Raises ValueError without runs.
    """
    if not ledgers:
        raise ValueError("metrics need at least one run")
    prices = prices or Prices()
    names = [name for name in DEFINITIONS if prices.usd_per_gpu_hour is not None or name not in _PRICED]
    return {name: _metric(name, ledgers, prices) for name in names}


def _metric(name: str, ledgers: Sequence[RunLedger], prices: Prices) -> Metric:
    above, below = _totals(name, ledgers, prices)
    values = _values(above, below)
    sample = values
    count = unresolved = None
    if name in _POOLED:
        resolved = [entry for ledger in ledgers for entry in _resolved(ledger)]
        if name == "incident_s":
            sample = [seconds for seconds, _ in resolved]
        else:  # each event of an incident took its share of it
            sample = [seconds / events for seconds, events in resolved for _ in range(events)]
        count, unresolved = len(sample), sum(ledger.unresolved for ledger in ledgers)
    ordered = sorted(sample)
    if name in _YES_OR_NO:
        interval = share_interval(int(sum(above)), len(ledgers)) if len(ledgers) >= MIN_RUNS else None
    else:
        interval = ratio_interval(above, below)
        if interval:  # no metric can be negative
            interval = max(0.0, interval[0]), min(1.0 if name in _BOUNDED else math.inf, interval[1])
    return Metric(
        name=name,
        mean=ratio(above, below),
        mean_of_runs=math.fsum(values) / len(values) if values else math.nan,
        ci95=interval,
        p10=quantile(ordered, 0.1),
        p50=quantile(ordered, 0.5),
        p90=quantile(ordered, 0.9),
        p99=quantile(ordered, 0.99),
        runs=len(ledgers),
        count=count,
        unresolved=unresolved,
    )


def _totals(name: str, ledgers: Sequence[RunLedger], prices: Prices) -> tuple[list[float], list[float]]:
    share = _SHARES[name]
    pairs = [share(ledger, prices) for ledger in ledgers]
    return [above for above, _ in pairs], [below for _, below in pairs]


def _values(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Return each run's own ratio; runs without either amount have none."""
    return [a / b if b else math.inf for a, b in zip(above, below, strict=True) if a or b]


def per_run(name: str, ledgers: Sequence[RunLedger], prices: Prices | None = None) -> list[float]:
    """Return one metric's value of each run, in their order; nan where a run has none (no incident, say).

    Raises KeyError for a name that is not in DEFINITIONS.
    """
    share = _SHARES[name]
    return [ratio([above], [below]) for above, below in (share(led, prices or Prices()) for led in ledgers)]


def paired_difference(
    name: str, first: Sequence[RunLedger], second: Sequence[RunLedger], prices: Prices | None = None
) -> Difference:
    """Return a metric of `first` minus that of `second`, whose i-th runs share their faults.

    Raises ValueError when they differ in their number of runs, KeyError for an unknown name.
    """
    prices = prices or Prices()
    one, other = _totals(name, first, prices), _totals(name, second, prices)
    interval = difference_interval(one, other)
    if interval and name in _BOUNDED:
        interval = max(-1.0, interval[0]), min(1.0, interval[1])
    pairs = list(zip(per_run(name, first, prices), per_run(name, second, prices), strict=True))
    higher = math.fsum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs)
    return Difference(name, ratio(*one) - ratio(*other), interval, higher / len(pairs), len(pairs))


def ledger_fractions(ledgers: Sequence[RunLedger]) -> dict[str, float]:
    """Return category -> share of all runs' wall time, total over total; the shares sum to 1."""
    return _over([ledger.seconds for ledger in ledgers], math.fsum(ledger.wall_s for ledger in ledgers))


def gpu_hours_by_category(ledgers: Sequence[RunLedger]) -> dict[str, float]:
    """Return category -> mean GPU-hours a run, `spare_idle` included; they sum to the metric `gpu_hours`."""
    return _over([ledger.gpu_seconds for ledger in ledgers], 3600.0 * len(ledgers))


def interruptions_by_class(ledgers: Sequence[RunLedger]) -> dict[str, float]:
    """Return fault class -> mean faults a run that struck the job; they sum to the metric `interruptions`."""
    return _over([ledger.faults_by_class for ledger in ledgers], float(len(ledgers)))


def _over(amounts: Sequence[dict[str, float]] | Sequence[dict[str, int]], whole: float) -> dict[str, float]:
    names = dict.fromkeys(name for amount in amounts for name in amount)
    sums = {name: math.fsum(amount.get(name, 0.0) for amount in amounts) for name in names}
    return {name: amount / whole if whole else 0.0 for name, amount in sums.items()}
