"""The best checkpoint interval of a scenario, what the present one costs, and why it is not Young's.

The search (sim/search.py) starts at a closed form and judges by simulation; the closed forms stand beside its answer
as a check. Advice is judged by goodput: the optimum is flat, and the flat region says how flat.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from sim import analytic, feasibility, params
from sim.accounts.estimate import Interval
from sim.callable_module import make_callable
from sim.feasibility import Estimate
from sim.hindsight import best_in_hindsight, stand_in, with_interval
from sim.ledger import RunLedger
from sim.metrics import Difference, metrics, paired_difference
from sim.provenance import provenance
from sim.reasons import why_different
from sim.scenario import Scenario, load_scenario
from sim.schema.fields import Problem, ScenarioError
from sim.search import FLAT, Search
from sim.study import FIRST_RUNS, Progress, Source, Study, check_replications, finite, goodput_of, prices_of
from sim.support import unsupported
from sim.units import shown

SAVES_IN_TIME = 6  # at most so many saves between two faults that come by the clock are tried


@dataclass(frozen=True)
class Setting:
    """One checkpoint interval and its goodput."""

    interval_steps: int
    interval_s: float
    goodput: float
    ci95: Interval | None
    replications: int
    completed_fraction: float
    """Share of the runs that did all their steps."""

    def as_json(self) -> dict[str, Any]:
        """Return the setting as JSON values."""
        goodput = {"mean": finite(self.goodput), "ci95": list(self.ci95) if self.ci95 else [None, None]}
        return {
            "interval_steps": self.interval_steps,
            "interval_s": self.interval_s,
            "goodput": goodput,
            "replications": self.replications,
            "completed_fraction": self.completed_fraction,
        }


@dataclass(frozen=True)
class Hindsight:
    """Goodputs of a schedule of faults as it stands: the best interval for it, the present one, the advised one."""

    interval_steps: int
    goodput: float
    goodput_of_current: float | None
    goodput_of_recommended: float | None
    gain_s: float | None
    """Wall time that the advised interval saves on this schedule."""


@dataclass(frozen=True)
class Recommendation:
    """The advised interval. Goodputs are shares of 1; `regret` is paired: best minus current."""

    scenario: Scenario
    best: Setting
    flat_region_s: tuple[float, float]
    current: Setting | None
    """None where the present interval cannot be run: `current_refused` says why."""
    current_refused: str | None
    regret: Difference | None
    gains: dict[str, Difference]
    """Wall time, GPU-hours and (with a price) USD of a run that the advised interval saves, over the pairs of runs
    that both complete."""
    closed_form_s: dict[str, float | None]
    why_different: str | None
    stand_in: str | None
    hindsight: Hindsight | None
    curve: tuple[Setting, ...]
    """Every interval that was simulated."""
    expected_noise: float
    """Regret that chance alone is expected to have cost in the choice."""
    seed: int
    estimate: Estimate
    provenance: dict[str, Any]

    @property
    def interval_steps(self) -> int:
        """The advised interval in steps."""
        return self.best.interval_steps

    @property
    def replications(self) -> int:
        """Count the runs of the advised interval; all intervals share the same faults."""
        return self.best.replications

    @property
    def interval_s(self) -> float:
        """The advised interval in seconds of useful work."""
        return self.best.interval_s

    @property
    def warnings(self) -> list[Any]:
        """What the scenario's author should know: items with `path` and `message`."""
        from sim.warn import warnings_for

        return list(warnings_for(self.scenario))

    def to_json(self) -> dict[str, Any]:
        """Return the record that `goodput recommend --json` prints; infinite values are null."""
        regret = self.regret
        return {
            "scenario": self.scenario.name,
            **self.best.as_json(),
            "flat_region_s": list(self.flat_region_s),
            "regret_of_current": regret.mean if regret is not None else None,
            "regret_of_current_ci95": list(regret.ci95)
            if regret is not None and regret.ci95
            else [None, None],
            "current": self.current.as_json() if self.current is not None else None,
            "current_refused": self.current_refused,
            "gain": {name: _difference(gain) for name, gain in self.gains.items()},
            "closed_form_s": {name: finite(value) for name, value in self.closed_form_s.items()},
            "why_different": self.why_different,
            "stand_in": self.stand_in,
            "hindsight_interval_steps": self.hindsight.interval_steps if self.hindsight else None,
            "hindsight": asdict(self.hindsight) if self.hindsight else None,
            "curve": [setting.as_json() for setting in self.curve],
            "mtbf_s": finite(self.estimate.mtbf_s),
            "expected_noise": self.expected_noise,
            "seed": self.seed,
            "warnings": [{"path": w.path, "message": w.message} for w in self.warnings],
            "version": self.provenance["version"],
            "provenance": self.provenance,
        }


def recommend(
    source: Source, *, replications: int | None = None, seed: int = 1, progress: Progress | None = None
) -> Recommendation:
    """Recommend the checkpoint interval of a scenario (catalog name, file, mapping or Scenario).

    `replications` None starts with 20 and doubles them while noise is expected to cost more than 0.00005 of
    goodput, then doubles those of the best and the present interval until their difference is known to +-0.002;
    both within counts of log events (sim/search.py). A number is kept to.

    Raises `ScenarioError` for a scenario that is wrong or not simulated yet, or that has nothing to optimise.
    """
    check_replications(FIRST_RUNS if replications is None else replications)
    scenario = load_scenario(source)
    problems = unsupported(scenario) or _nothing_to_optimise(scenario)
    if problems:
        raise ScenarioError(problems)
    judged, text = scenario, None
    compiled = params.compile_scenario(scenario)
    estimate = feasibility.estimate(scenario, compiled)
    if not _rates_per_s(scenario):
        judged, text = stand_in(scenario, _wall_s(scenario, estimate, seed))
        compiled = params.compile_scenario(judged)
        estimate = feasibility.estimate(judged, compiled)
    if estimate.mtbf_s == math.inf:  # lives too long for this job, as far as an estimate can tell
        estimate = replace(estimate, mtbf_s=1.0 / sum(_rates_per_s(judged)))
    closed = closed_forms_s(judged, estimate)
    search = Search(
        judged,
        seed=seed,
        replications=FIRST_RUNS if replications is None else replications,
        fixed=replications is not None,
        mtbf_s=estimate.mtbf_s,
        kink_steps=_kink_steps(judged),
        progress=progress,
    )
    first = closed["exact"] or closed["async"] or closed["young"] or estimate.interval_s
    best = search.best(first / search.step_s)
    in_time = [steps for steps in _just_in_time(judged, estimate) if search.can_run(steps)]
    clocked = max(in_time, key=search.goodput, default=best)
    if search.goodput(clocked) > search.goodput(best) + FLAT:  # a saw-tooth, which no smooth curve finds
        best, search.curve = clocked, None
    low, high = search.flat_region(best)
    flat_s = low * search.step_s, high * search.step_s
    now = scenario.interval_steps()
    can_now = search.can_run(now)
    search.sharpen([best, now] if can_now and now != best else [best])
    if can_now and search.goodput(now) >= search.goodput(best):
        best = now  # the present interval is as good as any: leave it
    best_runs = search.runs(best)
    now_runs = search.runs(now) if can_now else []
    settings = {steps: _setting(search, steps) for steps in sorted(search.studies)}
    return Recommendation(
        scenario=scenario,
        best=settings[best],
        flat_region_s=flat_s,
        current=settings.get(now),
        current_refused=None if can_now else str(search.refused[now]),
        regret=paired_difference("goodput", best_runs, now_runs) if can_now else None,
        gains=_gains(judged, now_runs, best_runs),
        closed_form_s=closed,
        why_different=why_different(
            judged, compiled, estimate, closed, settings[best].interval_s, flat_s, best_runs
        ),
        stand_in=text,
        hindsight=_hindsight(scenario, seed, best) if text is not None else None,
        curve=tuple(settings.values()),
        expected_noise=search.expected_noise,
        seed=seed,
        estimate=estimate,
        provenance=provenance(scenario, seed=seed),
    )


def _just_in_time(s: Scenario, e: Estimate) -> list[int]:
    """Return the intervals whose last save ends just before a fault of the whole job that comes by the clock."""
    found = []
    for c in s.failures.classes:
        law = c.life_law()
        if law is None or law.kind != "constant" or c.per != "job":
            continue
        down_s = 0.0 if s.failures.clock == "running" else e.detect_s + e.restart_s + e.wait_s
        for saves in range(1, SAVES_IN_TIME + 1):
            steps = math.floor(((law.mean_s() - down_s) / saves - e.write_s - e.lag_s) / s.nominal_step_s())
            found += [n for n in (steps, steps - 1) if 1 <= n <= s.total_steps()]
    return sorted(set(found))


def closed_forms_s(scenario: Scenario, estimate: Estimate) -> dict[str, float | None]:
    """Return the closed forms' intervals [s]: young, daly, daly_higher, exact; for asynchronous saves async.

    C is the time that a save stops the loop and M the mean time between the faults that stop the job. None
    where a form does not hold (exact: synchronous saves; async: asynchronous ones).
    """
    c, m = estimate.write_s, estimate.mtbf_s
    forms: dict[str, float | None] = {
        "young": analytic.young(c, m),
        "daly": analytic.daly(c, m),
        "daly_higher": analytic.daly_higher(c, m),
        "exact": None,
        "async": None,
    }
    ck = scenario.checkpoint
    if ck.mode == "sync" or (ck.mode == "local" and not ck.writes_on()):  # the loop stands still for all of C
        forms["exact"] = analytic.exact_interval(c, m)
    else:
        stall = ck.stall_time.mean_s() if ck.stall_time is not None else 0.0
        forms["young"], forms["daly"] = analytic.young(stall, m), analytic.daly(stall, m)
        forms["daly_higher"] = analytic.daly_higher(stall, m)
        forms["async"] = analytic.async_interval(stall, estimate.lag_s, m)
    return forms


def _nothing_to_optimise(s: Scenario) -> list[Problem]:
    ck = s.checkpoint
    if ck.mode == "tiered":
        return [Problem("checkpoint.mode", f"recommend on tiers comes later; now: sync, async, local {shown(ck.mode)}")]
    if ck.mode not in ("sync", "async", "local"):
        message = f"has no interval to recommend; now: sync, async, local {shown(ck.mode)}"
        return [Problem("checkpoint.mode", message)]
    limited = "slurm" in s.recovery.layers and s.recovery.slurm.time_limit is not None
    if not _rates_per_s(s) and not s.failures.schedule and (limited or s.cluster.maintenance is not None):
        message = "only stops known in advance stop the job: checkpoint.save_before saves just before them"
        return [Problem("failures", f"{message}; for the rest state failures.classes (got none)")]
    if not _rates_per_s(s) and not s.failures.schedule:
        message = "no fault stops the job, so the best interval is the whole job: state failures.classes"
        return [Problem("failures", f"{message} or failures.schedule (got none)")]
    stall = 0.0 if ck.stall_time is None or ck.mode == "sync" else ck.stall_time.mean_s()
    if s.write_law().mean_s() + stall <= 0.0:
        return [Problem("checkpoint.write_time", "saves cost nothing, so every step is best (got 0)")]
    return []


def _rates_per_s(s: Scenario) -> list[float]:
    """Return the long-run rates of the classes whose faults stop the job [1/s]."""
    return [
        fault.rate_per_s() * s.units(fault.per or "job")
        for fault in s.failures.classes
        if fault.rate_per_s() > 0.0 and (fault.symptom != "slowdown" or fault.detect is not None)
    ]


def _wall_s(scenario: Scenario, estimate: Estimate, seed: int) -> float:
    """Return the wall time [s] of the schedule with the present interval, simulated where that can be run."""
    run = _on_schedule(scenario, seed, scenario.interval_steps())
    return run.wall_s if run is not None and run.completed else estimate.wall_s


def _kink_steps(s: Scenario) -> int | None:
    """Return the shortest interval [steps] at which an asynchronous writer keeps up, where that is a sharp bound."""
    write = s.write_law()
    if s.checkpoint.mode == "sync" or write.kind != "constant" or write.mean_s() == 0.0:
        return None
    return max(1, math.ceil(write.mean_s() / s.nominal_step_s()))


def _setting(search: Search, steps: int) -> Setting:
    runs = search.runs(steps)
    goodput = metrics(runs)["goodput"]
    completed = sum(run.completed for run in runs) / len(runs)
    return Setting(steps, steps * search.step_s, goodput.mean, goodput.ci95, len(runs), completed)


def _gains(s: Scenario, now: list[RunLedger], best: list[RunLedger]) -> dict[str, Difference]:
    pairs = [(a, b) for a, b in zip(now, best, strict=False) if a.completed and b.completed]
    if not pairs:
        return {}
    prices = prices_of(s)
    names = ("wall_time_s", "gpu_hours") + (("usd",) if prices.usd_per_gpu_hour is not None else ())
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    return {name: paired_difference(name, first, second, prices) for name in names}


def _difference(d: Difference) -> dict[str, Any]:
    return {"mean": finite(d.mean), "ci95": list(d.ci95) if d.ci95 else [None, None], "runs": d.runs}


def _hindsight(scenario: Scenario, seed: int, recommended: int) -> Hindsight:
    steps, goodput = best_in_hindsight(scenario, seed, recommended)
    now = _on_schedule(scenario, seed, scenario.interval_steps())
    then = _on_schedule(scenario, seed, recommended)
    return Hindsight(
        interval_steps=steps,
        goodput=goodput,
        goodput_of_current=_share(now),
        goodput_of_recommended=_share(then),
        gain_s=now.wall_s - then.wall_s if now and then and now.completed and then.completed else None,
    )


def _on_schedule(scenario: Scenario, seed: int, steps: int) -> RunLedger | None:
    try:
        study = Study(with_interval(scenario, steps), seed=seed)
        study.grow(1)
    except ScenarioError:
        return None
    return study.runs[0]


def _share(run: RunLedger | None) -> float | None:
    return None if run is None else goodput_of(run)


make_callable(__name__)
