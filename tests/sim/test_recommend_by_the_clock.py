"""Faults that come by the clock make a saw-tooth of the interval curve: the best save ends just before the fault."""

from pathlib import Path

import pytest

from sim.recommend import recommend
from sim.scenario import load_scenario

EIGHT_HOURS = Path(__file__).parent.parent / "published" / "scenarios" / "eight-hours.yaml"


@pytest.mark.parametrize("clock", ["wall", "running"])
def test_the_save_just_before_the_limit_is_found_from_far_away(clock):
    scenario = load_scenario(EIGHT_HOURS, ["checkpoint.interval=47 steps", f"failures.clock={clock}"])
    advice = recommend(scenario, replications=2)
    assert advice.interval_steps == {"wall": 465, "running": 475}[clock]  # 8 h less (restart and) save
    assert advice.best.goodput > 0.96 and advice.regret.mean > 0.08


def test_a_present_interval_as_good_as_any_is_kept():
    scenario = load_scenario(EIGHT_HOURS, ["checkpoint.interval=465 steps"])
    advice = recommend(scenario, replications=2)
    assert advice.interval_steps == 465
    assert advice.regret.mean == 0.0
