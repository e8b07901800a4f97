"""Schedules of faults: the random stand-in that advice is given for, and the best interval in hindsight."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sim.scenario import FaultClass, Interval, Law, Scenario
from sim.schema.fields import Problem, ScenarioError
from sim.study import Study, goodput_of
from sim.units import format_duration

MAX_CANDIDATES = 400
MAX_EVENTS = 300_000  # log events of all candidates; the nearest ones are tried first


def with_interval(scenario: Scenario, steps: int) -> Scenario:
    """Return the scenario with another checkpoint interval."""
    checkpoint = scenario.checkpoint.model_copy(update={"interval": Interval(steps=steps)})
    return scenario.model_copy(update={"checkpoint": checkpoint})


def stand_in(scenario: Scenario, wall_s: float) -> tuple[Scenario, str]:
    """Return the scenario with its schedule replaced by Poisson faults of the same mix, and a sentence that says so.

    M is the wall time over the number of scheduled faults: what a person who saw this run would take for it.
    """
    schedule = scenario.failures.schedule
    mix: dict[tuple[str, str, str, bool], int] = {}
    for fault in schedule:
        kind = (fault.symptom, fault.gil, fault.scope, fault.repair)
        mix[kind] = mix.get(kind, 0) + 1
    classes = tuple(
        FaultClass(
            name=f"stand-in-{i}",
            rate=count / wall_s,
            per="job",
            law=Law("exponential"),
            scope=scope,
            symptom=symptom,
            gil=gil,
            repair=repair,
        )
        for i, ((symptom, gil, scope, repair), count) in enumerate(mix.items())
    )
    failures = scenario.failures.model_copy(
        update={"schedule": (), "classes": (*scenario.failures.classes, *classes)}
    )
    text = (
        f"the schedule holds {len(schedule)} faults and no rate, so the advice is for random faults (Poisson) of the "
        f"same mix with M = wall / faults = {format_duration(wall_s / len(schedule))}"
    )
    return scenario.model_copy(update={"failures": failures}), text


def best_in_hindsight(scenario: Scenario, seed: int, around_steps: int) -> tuple[int, float]:
    """Return (interval in steps, goodput) of the best interval for exactly these scheduled faults.

    Tries the intervals that can be best, one run each: those that divide the job evenly, and those whose save is
    durable just before a fault; the nearest to `around_steps` first, none below an eighth of it, as many as hold
    300,000 log events. Raises `ScenarioError` if none can be run.
    """
    found: list[tuple[float, int]] = []
    events, refused = 0, None
    for steps in sorted(_candidates(scenario, around_steps), key=lambda n: abs(math.log(n / around_steps))):
        try:
            study = Study(with_interval(scenario, steps), seed=seed)
            study.grow(1)
        except ScenarioError as error:  # an interval that cannot be run is not the best
            refused = error
            events += MAX_EVENTS // 20
        else:
            found.append((goodput_of(study.runs[0]), steps))
            events += study.events
        if events > MAX_EVENTS:
            break
    if not found:
        raise refused or ScenarioError([Problem("checkpoint.interval", "no interval can be run (got none)")])
    goodput, steps = max(found)
    return steps, goodput


def _candidates(scenario: Scenario, around_steps: int) -> list[int]:
    lowest = max(1, around_steps // 8)
    found: dict[int, None] = {around_steps: None}
    for steps in (*_even(scenario.total_steps()), *_before_faults(scenario)):
        if steps >= lowest and len(found) < MAX_CANDIDATES:
            found[steps] = None
    return list(found)


def _even(total: int) -> Iterator[int]:
    for parts in range(1, MAX_CANDIDATES // 2):
        yield -(-total // parts)


def _before_faults(scenario: Scenario) -> Iterator[int]:
    """Intervals with a save that is durable just before a scheduled fault."""
    step_s = scenario.nominal_step_s()
    lag = 0 if scenario.checkpoint.mode == "sync" else math.ceil(scenario.write_law().mean_s() / step_s)
    for parts in range(1, 50):
        for fault in scenario.failures.schedule:
            for before in (1, lag + 1):
                if fault.step > before:
                    yield max(1, (fault.step - before) // parts)
