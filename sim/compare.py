"""Scenarios side by side on the same faults: paired differences with their intervals.

Run i of every scenario draws the same numbers (sim/draws.py), so what chance does to both cancels in the difference;
a fault class of the same name meets the same faults in both, whatever else differs.

Wall time, GPU-hours and cost are those of the replications that complete in every scenario, in the columns as in the
differences: a job that ends early is neither fast nor cheap. Goodput and interruptions are of all runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sim.accounts.estimate import difference_interval
from sim.callable_module import make_callable
from sim.metrics import Difference, Metric, metrics, paired_difference, per_run
from sim.provenance import provenance
from sim.scenario import Scenario, load_scenario
from sim.schema.fields import Problem, ScenarioError
from sim.study import (
    FIRST_RUNS,
    HALF_WIDTH,
    Progress,
    Result,
    Source,
    Study,
    check_replications,
    finite,
    prices_of,
    room_to_double,
)
from sim.units import shown

METRICS = ("goodput", "wall_time_s", "gpu_hours", "interruptions", "usd")
OF_WHOLE_JOBS = ("wall_time_s", "gpu_hours", "usd")
MAX_SCENARIOS = 20


@dataclass(frozen=True)
class Contrast:
    """One scenario against the first one: `differences[name]` is its metric minus the first's, paired."""

    name: str
    baseline: str
    differences: dict[str, Difference]
    better: float
    """Share of pairs in which its goodput is higher, ties counted half."""
    variance_saved: float | None
    """Share of the variance of the difference in goodput that pairing takes away; None if there is none."""

    def as_json(self) -> dict[str, Any]:
        """Return the contrast as JSON values."""
        return {
            "scenario": self.name,
            "baseline": self.baseline,
            "differences": {
                name: {
                    "mean": finite(d.mean),
                    "ci95": list(d.ci95) if d.ci95 else [None, None],
                    "share_higher": d.share_higher,
                    "runs": d.runs,
                }
                for name, d in self.differences.items()
            },
            "better": self.better,
            "variance_saved": self.variance_saved,
        }


@dataclass(frozen=True)
class Comparison:
    """Results of all scenarios, the first being the one the others are compared with."""

    results: tuple[Result, ...]
    contrasts: tuple[Contrast, ...]
    seed: int
    completed_in_all: int
    """Replications that complete in every scenario: what OF_WHOLE_JOBS are about."""
    of_whole_jobs: tuple[dict[str, Metric], ...]
    """OF_WHOLE_JOBS of each scenario over these; empty without any."""

    def metrics(self, i: int) -> dict[str, Metric]:
        """Return the metrics of scenario `i`, each over the runs that its difference is about."""
        all_runs = {key: metric for key, metric in self.results[i].metrics.items() if key in METRICS}
        return {key: m for key, m in all_runs.items() if key not in OF_WHOLE_JOBS} | self.of_whole_jobs[i]

    @property
    def replications(self) -> int:
        """Count the runs of each scenario."""
        return self.results[0].replications

    @property
    def warnings(self) -> list[Any]:
        """What makes the comparison misleading: items with `path` and `message`."""
        from sim.warn import warnings_between

        return list(warnings_between([result.scenario for result in self.results]))

    def to_json(self) -> dict[str, Any]:
        """Return the record that `goodput compare --json` prints; infinite values are null."""
        scenarios = [result.scenario for result in self.results]
        origin = provenance(*scenarios, seed=self.seed)
        return {
            "scenarios": [
                {
                    "scenario": name,
                    "metrics": {key: metric.as_json() for key, metric in self.metrics(i).items()},
                    "ledger": result.ledger,
                    "completed_fraction": result.completed_fraction,
                    "censored_fraction": result.censored_fraction,
                    "failures": [failure.as_json() for failure in result.failures],
                    "warnings": [{"path": w.path, "message": w.message} for w in result.warnings],
                }
                for i, (name, result) in enumerate(zip(names_of(scenarios), self.results, strict=True))
            ],
            "comparisons": [contrast.as_json() for contrast in self.contrasts],
            "replications": self.replications,
            "completed_in_all": self.completed_in_all,
            "seed": self.seed,
            "warnings": [{"path": w.path, "message": w.message} for w in self.warnings],
            "version": origin["version"],
            "provenance": origin,
        }


def compare(
    sources: Sequence[Source],
    *,
    replications: int | Literal["auto"] = FIRST_RUNS,
    seed: int = 1,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two or more scenarios on the same faults; the first is the baseline.

    ``auto`` runs 20 replications of each and doubles them until every difference in goodput is known to +-0.002,
    within the counts that bound `simulate`. Use `variants` for one scenario with two sets of overrides.

    Raises `ScenarioError` for a scenario that is wrong or cannot be run, named if there are several.
    """
    check_replications(replications)
    if isinstance(sources, str) or not 2 <= len(sources) <= MAX_SCENARIOS:
        count = 1 if isinstance(sources, str) else len(sources)
        message = f"must be 2 to {MAX_SCENARIOS} to compare {shown(count)}"
        raise ScenarioError([Problem("scenarios", message)])
    scenarios = [load_scenario(source) for source in sources]
    names = names_of(scenarios)
    studies = [_study(scenario, name, seed) for scenario, name in zip(scenarios, names, strict=True)]
    runs = FIRST_RUNS if replications == "auto" else replications
    while True:
        _grow(studies, runs, progress)
        if replications != "auto" or _enough(studies):
            break
        runs *= 2
    whole = [i for i in range(runs) if all(study.runs[i].completed for study in studies)]
    contrasts = [
        _contrast(study, name, studies[0], names[0], whole)
        for study, name in zip(studies[1:], names[1:], strict=True)
    ]
    results = tuple(study.result() for study in studies)
    return Comparison(
        results, tuple(contrasts), seed, len(whole), tuple(_of_whole_jobs(study, whole) for study in studies)
    )


def variants(source: Source, a: Sequence[str], b: Sequence[str]) -> tuple[Scenario, Scenario]:
    """Return one scenario with two sets of overrides (``path=value``), named after them, for `compare`."""
    return _variant(source, a), _variant(source, b)


def _variant(source: Source, overrides: Sequence[str]) -> Scenario:
    scenario = load_scenario(source, overrides)
    name = f"{scenario.name} with {', '.join(overrides)}" if overrides else f"{scenario.name} as it is"
    return scenario.model_copy(update={"name": name})


def names_of(scenarios: Sequence[Scenario]) -> list[str]:
    """Return the scenarios' names, numbered where two are the same."""
    names = [scenario.name for scenario in scenarios]
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _study(scenario: Scenario, name: str, seed: int) -> Study:
    try:
        return Study(scenario, seed=seed)
    except ScenarioError as error:
        raise _named(error, name) from None


def _named(error: ScenarioError, name: str) -> ScenarioError:
    return ScenarioError([Problem(f"{name}: {problem.path}", problem.message) for problem in error.problems])


def _grow(studies: Sequence[Study], runs: int, progress: Progress | None) -> None:
    planned = runs * len(studies)
    done = sum(len(study.runs) for study in studies)

    def told(_run: int, _runs: int) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, planned)

    for study, name in zip(studies, names_of([study.scenario for study in studies]), strict=True):
        try:
            study.grow(runs, told)
        except ScenarioError as error:
            raise _named(error, name) from None


def _enough(studies: Sequence[Study]) -> bool:
    first = _productive_and_wall(studies[0])
    widths = []
    for study in studies[1:]:
        bounds = difference_interval(_productive_and_wall(study), first)
        widths.append(bounds[1] - bounds[0] if bounds is not None else math.inf)
    if max(widths) <= 2.0 * HALF_WIDTH:
        return True
    faults, events = sum(study.faults for study in studies), sum(study.events for study in studies)
    return not room_to_double(len(studies[0].runs), faults, events)


def _productive_and_wall(study: Study) -> tuple[list[float], list[float]]:
    return [run.seconds["productive"] for run in study.runs], [run.wall_s for run in study.runs]


def _of_whole_jobs(study: Study, whole: Sequence[int]) -> dict[str, Metric]:
    if not whole:
        return {}
    found = metrics([study.runs[i] for i in whole], prices_of(study.scenario))
    return {key: found[key] for key in OF_WHOLE_JOBS if key in found}


def _contrast(study: Study, name: str, base: Study, base_name: str, whole: Sequence[int]) -> Contrast:
    differences = {
        key: paired_difference(key, study.runs, base.runs) for key in ("goodput", "interruptions")
    }
    if whole:
        first, second = [study.runs[i] for i in whole], [base.runs[i] for i in whole]
        for key in ("wall_time_s", "gpu_hours"):
            differences[key] = paired_difference(key, first, second)
    usd = _cost_difference(study, base, whole)
    if usd is not None:
        differences["usd"] = usd
    a, b = per_run("goodput", study.runs), per_run("goodput", base.runs)
    apart = _variance(a) + _variance(b)
    together = _variance([x - y for x, y in zip(a, b, strict=True)])
    return Contrast(
        name=name,
        baseline=base_name,
        differences=differences,
        better=differences["goodput"].share_higher,
        variance_saved=1.0 - together / apart if apart > 0.0 else None,
    )


def _cost_difference(study: Study, base: Study, whole: Sequence[int]) -> Difference | None:
    """Return the difference in USD a run, each scenario at its own price; None unless both have one."""
    ours, theirs = prices_of(study.scenario), prices_of(base.scenario)
    if ours.usd_per_gpu_hour is None or theirs.usd_per_gpu_hour is None or not whole:
        return None
    a = per_run("usd", [study.runs[i] for i in whole], ours)
    b = per_run("usd", [base.runs[i] for i in whole], theirs)
    ones = [1.0] * len(a)
    higher = math.fsum(1.0 if x > y else 0.5 if x == y else 0.0 for x, y in zip(a, b, strict=True))
    mean = (math.fsum(a) - math.fsum(b)) / len(a)
    return Difference("usd", mean, difference_interval((a, ones), (b, ones)), higher / len(a), len(a))


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)


make_callable(__name__)
