"""The published EKS + NVRx benchmark: one number fitted to one run, the other run predicted.

Source: facts of the AWS Machine Learning blog post of 16 Sept 2026 and of the reference code at 0edaf152.
"""

import pytest

from sim import aws_eks
from sim.catalog import show
from sim.published import figures
from sim.scenario import load_scenario, to_mapping
from sim.study import simulate

PAIR = (aws_eks.IN_PROCESS, aws_eks.IN_JOB)
ONLY_THESE_DIFFER = {"name", "description", "sources", "recovery", "failures"}


@pytest.fixture(scope="module")
def results():
    return {name: simulate(name, replications=100, seed=1) for name in PAIR}


def test_the_catalog_holds_the_fitted_number():
    fitted = aws_eks.fit()
    for name in PAIR:
        assert load_scenario(name).workload.init.mean_s() == fitted
        assert "[F]" in show(name).split("workload.init:")[1].splitlines()[0]


def test_the_fit_does_not_hang_on_the_seed():
    assert aws_eks.fit(seed=2) == pytest.approx(aws_eks.fit(seed=1), abs=0.5)


@pytest.mark.parametrize("name", PAIR)
def test_goodputs_are_within_their_tolerance(results, name):
    for figure in figures(name):
        assert abs(results[name].metrics[figure.metric].mean - figure.value) <= figure.tolerance, figure


def test_the_labels_say_what_was_fitted_and_what_predicted():
    assert {f.claim for f in figures(aws_eks.IN_PROCESS)} == {"fitted"}
    assert {f.claim for f in figures(aws_eks.IN_JOB)} == {"predicted"}


def test_the_pair_shares_all_inputs_but_layer_launcher_and_one_symptom():
    one, other = (to_mapping(load_scenario(name)) for name in PAIR)
    assert {key for key in one if one[key] != other.get(key)} <= ONLY_THESE_DIFFER
    assert one["workload"]["step_time"] == "370ms" or load_scenario(PAIR[0]).nominal_step_s() == 0.37
    assert load_scenario(PAIR[0]).write_law().mean_s() == 275.0
    schedules = [one["failures"].pop("schedule"), other["failures"].pop("schedule")]
    assert one["failures"] == other["failures"]
    differing = [(a, b) for a, b in zip(*schedules, strict=True) if a != b]
    assert [(a["step"], a["symptom"], b["symptom"]) for a, b in differing] == [(574, "exception", "hang")]
    recovery = [one["recovery"], other["recovery"]]
    own = {"launcher", "layers", "in_process", "in_job"}
    assert {k: v for k, v in recovery[0].items() if k not in own} == {
        k: v for k, v in recovery[1].items() if k not in own
    }


def test_a_prediction_blind_to_the_layer_would_miss_more(results):
    # The check can fail: with the hang taken away and instant detection the in-job run moves to the in-process one.
    in_job = results[aws_eks.IN_JOB].metrics["infra_goodput_aws"].mean
    easy = simulate(
        load_scenario(aws_eks.IN_JOB, ["failures.schedule.f3.symptom=exception", "workload.process_start=0s"]),
        replications=20,
    )
    assert easy.metrics["infra_goodput_aws"].mean > in_job + 0.02


def test_rework_is_724_steps_and_saves_are_four(results):
    for result in results.values():
        run = result.runs[0]
        assert run.seconds["rework"] == pytest.approx(724 * 0.37)
        assert run.durable_saves == 4
        assert run.seconds["checkpoint_stall"] == pytest.approx(4 * 275.0)
        assert [incident.faults for incident in run.incidents].__len__() == 5


def test_both_readings_of_recovery_time(results):
    in_process = aws_eks.readings(results[aws_eks.IN_PROCESS])
    in_job = aws_eks.readings(results[aws_eks.IN_JOB])
    assert (round(in_process.fault_published_s), round(in_job.fault_published_s)) == (62, 82)
    assert in_process.events_a_fault == pytest.approx(6.2, abs=0.05)
    assert in_job.events_a_fault == pytest.approx(4.8, abs=0.05)
    assert in_process.event_published_s == 10.0 and in_job.event_published_s == 17.0


def test_the_unexplained_part_is_said_and_not_hidden(results):
    # With the fit on both goodputs about 345 s stay open; with a fit on training goodput alone it would be 385 s.
    assert 300.0 < aws_eks.unexplained_s(results[aws_eks.IN_JOB]) < 400.0
    assert len(aws_eks.CANDIDATES) >= 3


def test_as_coded_goodput_is_about_53_percent_in_process(results):
    coded = "training_goodput_aws_as_coded"
    assert results[aws_eks.IN_PROCESS].metrics[coded].mean == pytest.approx(0.53, abs=0.01)
    training = results[aws_eks.IN_JOB].metrics["training_goodput_aws"].mean
    assert results[aws_eks.IN_JOB].metrics[coded].mean == pytest.approx(training)
