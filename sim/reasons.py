"""One sentence on why the recommended interval is not the one of Young or Daly, where it is not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sim.feasibility import Estimate
from sim.ledger import RunLedger
from sim.params import Params
from sim.scenario import Scenario
from sim.units import format_duration

FEW_INTERVALS = 12  # in a job of fewer, a whole number of them is felt
SHORT_WRITE = 0.02  # C/M up to which Young's first order is good to a point in a thousand


def why_different(
    scenario: Scenario,
    p: Params,
    estimate: Estimate,
    closed_s: dict[str, float | None],
    best_s: float,
    flat_s: tuple[float, float],
    runs: Sequence[RunLedger],
) -> str | None:
    """Return the sentence; None where Young's and Daly's intervals both lie in the flat region."""
    young, daly = closed_s["young"] or 0.0, closed_s["daly"] or 0.0
    if flat_s[0] <= young <= flat_s[1] and flat_s[0] <= daly <= flat_s[1]:
        return None
    formulas = {"Young's": young, "Daly's": daly}
    out = {whose: s for whose, s in formulas.items() if not flat_s[0] <= s <= flat_s[1]}
    said = [f"{whose} {format_duration(s)}" for whose, s in out.items()]
    says = f"neither {said[0]} nor {said[1]} is" if len(said) == 2 else f"{said[0]} is not"
    says = (
        f"{says[0].upper()}{says[1:]} among the intervals within 0.1 point of the best "
        f"({format_duration(flat_s[0])} to {format_duration(flat_s[1])})"
    )
    return f"{says}: {_reason(scenario, p, estimate, closed_s, best_s, flat_s, runs)}."


def _reason(
    s: Scenario,
    p: Params,
    e: Estimate,
    closed_s: dict[str, float | None],
    best_s: float,
    flat_s: tuple[float, float],
    runs: Sequence[RunLedger],
) -> str:
    unfinished = sum(not run.completed for run in runs)
    if unfinished > 0.05 * len(runs):
        return (
            f"{unfinished} of {len(runs)} runs do not complete even with the best interval, so what counts is to keep "
            "some work before the job ends, which no closed form knows"
        )
    if not p.tier_blocks[0] and best_s <= 1.3 * e.lag_s and (closed_s["young"] or 0.0) < e.lag_s:
        return (
            f"a background write takes {format_duration(e.lag_s)}, and saving more often only makes the loop wait "
            "for the writer (or the save be skipped)"
        )
    if p.publish_next:
        return "a checkpoint becomes usable only at the next save, so a fault costs an interval more than they assume"
    if p.async_factor > 1.0:
        return f"every step is {p.async_factor:g} times as long while a write is in flight, which is a cost of a save"
    exact = closed_s["exact"]
    if exact is not None and flat_s[0] <= exact <= flat_s[1] and e.write_s > SHORT_WRITE * e.mtbf_s:
        return (
            f"a save takes {e.write_s / e.mtbf_s:.2g} of the mean time between faults, too long for a formula of first "
            f"order; the exact optimum of random faults, {format_duration(exact)}, agrees"
        )
    parts = p.steps * p.pace_s / best_s
    if parts < FEW_INTERVALS:
        return (
            f"the job is only {math.ceil(parts - 1e-9)} such intervals long and a whole number of them has to fit, "
            "while they think of a job without an end"
        )
    ageing = [f.name for f in s.failures.classes if f.law.kind != "exponential" and f.rate_per_s() > 0.0]
    if ageing:
        return (
            f"faults of {', '.join(ageing)} do not come at a constant rate, as they assume, so the mean time between "
            "faults is not all that matters"
        )
    if not p.tier_blocks[0]:
        return "they are about a save that stops the loop, and these are written in the background"
    return (
        "they assume faults at a constant rate and one fixed restart, and the simulation has more than that"
    )
