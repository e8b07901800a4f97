"""Many runs of one scenario: ledgers, metrics with their intervals, and the JSON that the command prints.

A run depends on (scenario, seed, replication) alone, so neither the order of the runs nor the number of workers
can change a result. `replications: auto` looks at the precision and at counts of faults and events, never at the
clock: the command and the page stop at the same run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sim import engine as events_engine
from sim import feasibility, params
from sim.accounts.estimate import ratio_interval
from sim.accounts.unfinished import Failure, failures_of
from sim.ledger import RunLedger, account
from sim.metrics import (
    Metric,
    Prices,
    gpu_hours_by_category,
    interruptions_by_class,
    ledger_fractions,
    metrics,
)
from sim.provenance import provenance
from sim.scenario import Scenario, load_scenario
from sim.schema.fields import Problem, ScenarioError
from sim.support import unsupported
from sim.units import shown

if TYPE_CHECKING:
    import pandas

Engine = Literal["auto", "events", "batch"]
Source = str | Path | Mapping[str, Any] | Scenario
Progress = Callable[[int, int], None]
"""Called with (runs done, runs planned) after each run; `auto` may plan more later."""

FIRST_RUNS = 20
HALF_WIDTH = 0.002
"""`auto` stops once the 95 % interval of goodput is this narrow to either side, ..."""
AUTO_FAULTS = 50_000
AUTO_EVENTS = 2_000_000
AUTO_RUNS = FIRST_RUNS * 2**9
"""... or when twice the runs would hold more faults, log events or runs than these, all runs together."""
MAX_REPLICATIONS = 1_000_000


@dataclass(frozen=True, repr=False)
class Result:
    """What a study found. `runs[i]` is replication i; times in seconds, shares of 1."""

    scenario: Scenario
    engine: str
    seed: int
    runs: tuple[RunLedger, ...]
    metrics: dict[str, Metric]
    provenance: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        goodput = self.metrics["goodput"].mean
        return f"<Result of {self.scenario.name}: {self.replications} runs, goodput {goodput:.4f}>"

    @property
    def replications(self) -> int:
        """Count the runs."""
        return len(self.runs)

    @cached_property
    def ledger(self) -> dict[str, float]:
        """Category -> share of the wall time of all runs; they sum to 1."""
        return ledger_fractions(self.runs)

    @cached_property
    def gpu_hours(self) -> dict[str, float]:
        """Category -> mean GPU-hours of a run, `spare_idle` included."""
        return gpu_hours_by_category(self.runs)

    @cached_property
    def interruptions(self) -> dict[str, Any]:
        """Mean number of faults that strike the job in a run, in all and by class."""
        return {"mean": self.metrics["interruptions"].mean, "by_class": interruptions_by_class(self.runs)}

    @cached_property
    def warnings(self) -> list[Any]:
        """What the scenario's author should know: items with `path` and `message`."""
        from sim.warn import warnings_for

        return list(warnings_for(self.scenario))

    @property
    def completed_fraction(self) -> float:
        """Share of runs that did all their steps."""
        return self.metrics["completed_fraction"].mean

    @property
    def censored_fraction(self) -> float:
        """Share of runs cut at `limits.max_wall`."""
        return self.metrics["censored_fraction"].mean

    @cached_property
    def worst_replication(self) -> int:
        """Number of the run to look at with `goodput timeline`: a failed one, else the one of lowest goodput."""
        return min(range(len(self.runs)), key=lambda i: (not self.runs[i].failed, goodput_of(self.runs[i])))

    @cached_property
    def failures(self) -> list[Failure]:
        """The runs that did not complete, by reason, the most frequent first."""
        return failures_of(self.runs)

    def to_json(self) -> dict[str, Any]:
        """Return the record that `goodput simulate --json` prints; infinite values are null."""
        return {
            "scenario": self.scenario.name,
            "engine": self.engine,
            "replications": self.replications,
            "seed": self.seed,
            "metrics": {name: metric.as_json() for name, metric in self.metrics.items()},
            "ledger": self.ledger,
            "gpu_hours": self.gpu_hours,
            "interruptions": self.interruptions,
            "warnings": [{"path": w.path, "message": w.message} for w in self.warnings],
            "completed_fraction": self.completed_fraction,
            "censored_fraction": self.censored_fraction,
            "worst_replication": self.worst_replication,
            "failures": [failure.as_json() for failure in self.failures],
            "version": self.provenance["version"],
            "provenance": self.provenance,
        }

    def frame(self) -> pandas.DataFrame:
        """Return one row a run: replication, outcome, wall_s, goodput, interruptions and seconds by category."""
        import pandas

        names = list(dict.fromkeys(name for run in self.runs for name in run.seconds))
        rows = [
            {
                "replication": i,
                "outcome": run.outcome,
                "wall_s": run.wall_s,
                "goodput": goodput_of(run),
                "interruptions": run.interruptions,
                **{f"{name}_s": run.seconds.get(name, 0.0) for name in names},
            }
            for i, run in enumerate(self.runs)
        ]
        return pandas.DataFrame(rows)


class Study:
    """The runs of one scenario so far; `grow` adds replications.

    Raises `ScenarioError` at once for what cannot be simulated, with every reason.
    """

    def __init__(self, scenario: Scenario, *, seed: int = 1, engine: Engine = "auto") -> None:
        problems = [*_settings(seed, engine), *unsupported(scenario)]
        if problems:
            raise ScenarioError(problems)
        self.scenario, self.seed, self.engine = scenario, seed, "events"
        self.params = params.compile_scenario(scenario)
        self.estimate = feasibility.check(scenario, self.params)
        self.runs: list[RunLedger] = []
        self.events = 0

    @property
    def faults(self) -> int:
        """Count the faults of all runs, idle spares' too."""
        return sum(run.interruptions + run.idle_faults for run in self.runs)

    def grow(self, replications: int, progress: Progress | None = None) -> None:
        """Run until there are `replications` runs."""
        limit = self.scenario.limits.max_events
        while len(self.runs) < replications:
            try:
                log = events_engine.simulate_run(
                    self.params, self.scenario, self.seed, len(self.runs), max_events=limit
                )
            except events_engine.RunTooLong as error:
                message = f"{error}, in replication {len(self.runs)} (got {limit:g})"
                raise ScenarioError([Problem("limits.max_events", message)]) from None
            self.events += len(log)
            self.runs.append(account(log))
            if progress is not None:
                progress(len(self.runs), replications)

    def result(self) -> Result:
        """Return what the runs so far say."""
        prices = prices_of(self.scenario)
        return Result(
            self.scenario,
            self.engine,
            self.seed,
            tuple(self.runs),
            metrics(self.runs, prices),
            provenance(self.scenario, seed=self.seed),
        )


def simulate(
    source: Source,
    *,
    replications: int | Literal["auto"] = FIRST_RUNS,
    seed: int = 1,
    engine: Engine = "auto",
    progress: Progress | None = None,
) -> Result:
    """Simulate a scenario (catalog name, file, mapping or Scenario) many times.

    ``auto`` runs 20 replications and doubles them until the 95 % half-width of goodput is at most 0.002, or
    until twice as many would hold more than 50,000 faults, 2 million events or 10,240 runs.

    Raises `ScenarioError`, with every reason, for a scenario that is wrong, hopeless, or not simulated yet.
    """
    check_replications(replications)
    study = Study(load_scenario(source), seed=seed, engine=engine)
    study.grow(FIRST_RUNS if replications == "auto" else replications, progress)
    while replications == "auto" and not enough(
        [run.seconds["productive"] for run in study.runs],
        [run.wall_s for run in study.runs],
        study.faults,
        study.events,
    ):
        study.grow(2 * len(study.runs), progress)
    return study.result()


def enough(productive_s: Sequence[float], wall_s: Sequence[float], faults: int, events: int) -> bool:
    """Tell whether `auto` stops here: goodput known to +-0.002, or no room for twice the runs."""
    interval = ratio_interval(productive_s, wall_s)
    if interval is not None and interval[1] - interval[0] <= 2.0 * HALF_WIDTH:
        return True
    return not room_to_double(len(wall_s), faults, events)


def room_to_double(runs: int, faults: int, events: int) -> bool:
    """Tell whether twice the runs stay within the counts that bound `auto`."""
    return 2 * runs <= AUTO_RUNS and 2 * faults <= AUTO_FAULTS and 2 * events <= AUTO_EVENTS


def goodput_of(run: RunLedger) -> float:
    """Return the goodput of one run; 0 for a job that failed before any time had passed."""
    return run.seconds["productive"] / run.wall_s if run.wall_s > 0.0 else 0.0


def prices_of(scenario: Scenario) -> Prices:
    """Return what the scenario's GPU-hours cost."""
    return Prices(scenario.economics.usd_per_gpu_hour, scenario.cluster.spares.bill)


def check_replications(replications: int | str) -> None:
    """Raise `ScenarioError` unless the number of replications is ``auto`` or a whole number from 1."""
    whole = isinstance(replications, int) and not isinstance(replications, bool)
    if replications == "auto" or (whole and 1 <= int(replications) <= MAX_REPLICATIONS):
        return
    message = f"must be auto or a whole number from 1 to {MAX_REPLICATIONS} {shown(replications)}"
    raise ScenarioError([Problem("replications", message)])


def _settings(seed: int, engine: str) -> list[Problem]:
    problems = []
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        problems.append(Problem("seed", f"must be a whole number from 0 to 2^63 - 1 {shown(seed)}"))
    if engine == "batch":
        problems.append(
            Problem("engine", f"batch, the compiled driver, does not exist yet; use events {shown(engine)}")
        )
    elif engine not in ("auto", "events"):
        problems.append(Problem("engine", f"must be one of auto, events, batch {shown(engine)}"))
    return problems


def finite(value: float | None) -> float | None:
    """Return the value for JSON: null where it is infinite or undefined."""
    return None if value is None or not math.isfinite(value) else value
