"""Stories of launchers that gave up: whoever takes over starts a new one, with a new budget."""

from sim.engine import run
from sim.ledger import account
from sim.scenario import load_scenario


def told(in_job, *schedule):
    scenario = {
        "name": "budgets",
        "cluster": {"nodes": 4, "gpus_per_node": 8, "spares": {"hot": 2}, "repair": {"stages": [{"time": "2h"}]}},
        "workload": {"step_time": 10, "steps": 1000, "process_start": 10, "init": 20},
        "checkpoint": {"mode": "sync", "interval": "100 steps", "write_time": 1},
        "failures": {
            "schedule": [
                {"step": step, "rank": 0, "symptom": symptom, "scope": "node", "repair": symptom == "gpu_error"}
                for step, symptom in schedule
            ]
        },
        "recovery": {"layers": ["in_job", "node_replacement"], "in_job": in_job},
    }
    log = run(load_scenario(scenario))
    layers = [event["layer"] for event in log if event["kind"] == "layer_begin"]
    return layers, account(log)


def test_a_launcher_that_gave_up_for_lack_of_progress_is_a_new_one_after_the_replacement():
    faults = (10, "exception"), (30, "gpu_error"), (900, "exception")
    layers, ledger = told({"max_no_progress_cycles": 2}, *faults)
    assert layers == ["in_job", "node_replacement", "in_job"]
    assert ledger.completed


def test_a_launcher_that_used_up_its_restarts_is_a_new_one_after_the_replacement():
    faults = (150, "exception"), (250, "gpu_error"), (900, "exception")
    layers, ledger = told({"max_restarts": 1, "max_no_progress_cycles": 0}, *faults)
    assert layers == ["in_job", "node_replacement", "in_job"]
    assert ledger.completed


def test_a_launcher_that_lives_on_keeps_its_count():
    faults = (150, "exception"), (250, "exception"), (900, "exception")
    layers, ledger = told({"max_restarts": 2, "max_no_progress_cycles": 0}, *faults)
    assert layers == ["in_job", "in_job"]
    assert ledger.failed and "max_restarts" in ledger.reason
