"""The worked example of Google's resiliency library (examples/goodput_measurement/README.md, commit 57092cfc)."""

import pytest

from sim.accounts.definitions import google_badput, google_resiliency
from sim.ledger import RunLedger, account
from tests.sim.event_logs import Log


@pytest.fixture(params=["source_fault", "phases"])
def ledger(request: pytest.FixtureRequest) -> RunLedger:
    """The run of 200 minutes, told by an importer (no phases) and by a log that names them."""
    minutes = 60.0
    source = "imported" if request.param == "source_fault" else "simulated"
    log = Log(source=source, nominal_step_s=2 * minutes, steps=75, start_step=25)
    log(0, "job_start")
    log.phase(0, 5 * minutes, "checkpoint_load")
    log(5 * minutes, "resumed", step=25)
    log.steps(55 * minutes, 26, 50, dur_s=50 * minutes)
    log.save(55 * minutes, 60 * minutes, 1, 50)
    log.steps(100 * minutes, 51, 70, dur_s=40 * minutes)
    log.fault(100 * minutes)
    if source == "imported":
        log(115 * minutes, "job_start")
    else:
        log.detected(100 * minutes)
        log.layer(100 * minutes, "fixed")
        log.phase(100 * minutes, 115 * minutes, "process_start", "fixed")
    log.phase(115 * minutes, 120 * minutes, "checkpoint_load", None if source == "imported" else "fixed")
    log(120 * minutes, "resumed", step=50)
    if source == "simulated":
        log.layer_end(120 * minutes, "fixed")
    log.steps(195 * minutes, 51, 75, dur_s=75 * minutes)
    log.save(195 * minutes, 200 * minutes, 2, 75)
    log.end(200 * minutes, step=75)
    return account(log)


def test_the_percentages_are_the_published_ones_exactly(ledger: RunLedger) -> None:
    percent = {name: 100 * seconds / ledger.wall_s for name, seconds in google_resiliency(ledger).items()}
    assert percent == {
        "Effective Computation Time": 50.0,
        "Checkpoint Loading": 5.0,
        "Training Progress Loss": 20.0,
        "Job Restart": 7.5,
        "Checkpoint Saving": 5.0,
        "Training Slowdown": 12.5,
    }


def test_our_categories_and_the_other_google_names(ledger: RunLedger) -> None:
    minutes = {name: seconds / 60 for name, seconds in ledger.seconds.items() if seconds}
    assert minutes == {
        "productive": 100, "checkpoint_load": 10, "rework": 40, "restart.fixed": 15, "checkpoint_stall": 10,
        "slowdown": 25,
    }  # fmt: skip
    badput = google_badput(ledger)
    assert badput["GOODPUT"] == 6000
    assert badput["WASTED_PROGRESS_FROM_DISRUPTION"] == 2400
    assert badput["INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION"] == 900
    assert sum(badput.values()) == ledger.wall_s
    assert ledger.kept_steps == 50
    (incident,) = ledger.incidents
    assert (incident.start_s, incident.end_s, incident.steps_lost) == (6000, 7200, 20)
