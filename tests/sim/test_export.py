"""Exports: the files parse, hold what the framework knows, and their timeouts leave a healthy job in peace."""

import json
import math
import os

import pytest
import yaml

from sim import catalog
from sim.export import FORMATS, LATER, check_format, render, settings_for, write
from sim.export.ft_launcher import FIELDS
from sim.export.timeouts import FLOOR_S, timeouts_for
from sim.scenario import load_scenario
from sim.schema.fields import ScenarioError
from sim.warn import warnings_for

RUN = {
    "name": "my-run",
    "cluster": {"nodes": 4, "gpus_per_node": 8},
    "workload": {
        "step_time": "20s",
        "steps": 10_000,
        "process_start": "20s",
        "init": "2min",
        "warmup": "30s",
    },
    "checkpoint": {"mode": "sync", "interval": "90 steps", "write_time": "30s", "load_time": "20s"},
    "failures": {
        "classes": [{"name": "bug", "mtbf": "20h", "per": "job", "scope": "job", "symptom": "hang"}]
    },
    "recovery": {"layers": ["in_job"], "nccl_timeout": "1min"},
}
RECORD = {
    "version": "0.1.0",
    "git": None,
    "command": "goodput export my-run",
    "seed": 1,
    "scenario_hash": "0" * 12,
}
ADVICE = {"interval_steps": 120, "interval_s": 2400.0, "flat_region_s": [2000.0, 3000.0],
          "goodput": {"mean": 0.9, "ci95": [0.89, 0.91]}}  # fmt: skip


def settings(*overrides, advice=None, **options):
    return settings_for(load_scenario(RUN, overrides), RECORD, advice, **options)


def ft(*overrides, **options):
    return yaml.safe_load(render("ft-launcher", settings(*overrides, **options)))["fault_tolerance"]


# The dataclass that ft_launcher fills from the file: nvidia-resiliency-ext, fault_tolerance/config.py,
# FaultToleranceConfig at tags v0.4.1, v0.6.0 and v0.7.0 (from_kwargs takes the fields it knows and drops the rest).
OPTIONAL_FLOAT = (float, type(None))
CONFIG = {
    "initial_rank_heartbeat_timeout": (OPTIONAL_FLOAT, ("0.4.1", "0.6.0", "0.7.0")),
    "rank_heartbeat_timeout": (OPTIONAL_FLOAT, ("0.4.1", "0.6.0", "0.7.0")),
    "rank_section_timeouts": ((dict,), ("0.4.1", "0.6.0", "0.7.0")),
    "rank_out_of_section_timeout": (OPTIONAL_FLOAT, ("0.4.1", "0.6.0", "0.7.0")),
    "max_no_progress_cycles": ((int,), ("0.6.0", "0.7.0")),
    "checkpoint_iteration_file": ((str, type(None)), ("0.6.0", "0.7.0")),
}


@pytest.mark.parametrize("nvrx", ["0.4.1", "0.6.0", "0.7.0"])
@pytest.mark.parametrize("name", [*catalog.names(), None])
@pytest.mark.parametrize("heartbeats", [False, True])
def test_every_key_and_type_is_one_that_the_launcher_reads(nvrx, name, heartbeats):
    overrides = [f'recovery.nvrx="{nvrx}"']
    if heartbeats:
        overrides += ["recovery.in_job.heartbeat_timeout=15min", "recovery.in_job.section_timeouts=null"]
    made = settings_for(load_scenario(name or RUN, overrides), RECORD, iteration_file='a "b": c')
    section = yaml.safe_load(render("ft-launcher", made))["fault_tolerance"]
    for key, value in section.items():
        types, versions = CONFIG[key]
        assert nvrx in versions
        assert isinstance(value, types) and not isinstance(value, bool), key
    assert set(section) <= set(FIELDS[nvrx])
    for seconds in section.get("rank_section_timeouts", {}).values():
        assert isinstance(seconds, OPTIONAL_FLOAT)
    assert section.get("checkpoint_iteration_file", 'a "b": c') == 'a "b": c'


def test_timeouts_cover_the_slowest_in_a_hundred_five_times():
    sections = ft()["rank_section_timeouts"]
    assert sections == {"setup": 5 * 210.0, "step": 100.0, "checkpointing": 150.0}
    lognormal = ft("checkpoint.write_time={lognormal: {median: 24s, mean: 30s}}")["rank_section_timeouts"]
    sigma = math.sqrt(2 * math.log(30 / 24))
    assert lognormal["checkpointing"] == math.ceil(5 * 24 * math.exp(2.3263478740408408 * sigma))


def test_what_the_scenario_does_not_say_is_left_off():
    silent = ft(
        "workload.init=0s", "workload.process_start=0s", "workload.warmup=0s", "checkpoint.load_time=0s"
    )
    assert silent["rank_section_timeouts"]["setup"] is None
    assert silent["rank_out_of_section_timeout"] is None


def test_sections_switch_the_heartbeats_off():
    """A monitor that waits for a first heartbeat ends a rank that only opens sections (0.4.1: after an hour)."""
    section = ft('recovery.nvrx="0.4.1"')
    assert section["rank_heartbeat_timeout"] is section["initial_rank_heartbeat_timeout"] is None
    assert "max_no_progress_cycles" not in section


def test_a_job_that_sends_heartbeats_gets_heartbeats():
    section = ft("recovery.in_job.heartbeat_timeout=15min", "recovery.in_job.initial_heartbeat_timeout=2min")
    assert section["rank_heartbeat_timeout"] == 900.0
    assert section["initial_rank_heartbeat_timeout"] == 1050.0  # 2 min would end every start
    assert "rank_section_timeouts" not in section


def test_stated_timeouts_are_kept_unless_they_end_a_healthy_job():
    sections = ft("recovery.in_job.section_timeouts={step: 25s, checkpointing: 30s, out_of_section: 4min}")
    assert sections["rank_section_timeouts"]["step"] == 25.0
    assert sections["rank_section_timeouts"]["checkpointing"] == 150.0
    assert sections["rank_out_of_section_timeout"] == 240.0
    text = render("ft-launcher", settings("recovery.in_job.section_timeouts.checkpointing=30s"))
    assert "the scenario's 30s would end a healthy job" in " ".join(text.replace("#", "").split())


def test_the_warm_up_counts_for_a_step_where_nvrx_does_not_leave_it_in_peace():
    assert ft('recovery.nvrx="0.4.1"')["rank_section_timeouts"]["step"] == 250.0
    assert ft('recovery.nvrx="0.6.0"')["rank_section_timeouts"]["step"] == 100.0


def test_an_async_save_counts_with_its_wait_and_its_last_write():
    waits = [
        "checkpoint.mode=async",
        "checkpoint.stall_time=2s",
        "checkpoint.interval=1 steps",
        "checkpoint.write_time=60s",
    ]
    assert ft(*waits)["rank_section_timeouts"]["checkpointing"] == 5 * 62.0


@pytest.mark.parametrize("overrides", [
    [], ["recovery.nccl_timeout=10min"], ["recovery.nccl_timeout=off"], ["checkpoint.write_time=20min"],
    ["recovery.layers=[in_process, in_job]"], ["recovery.layers=[in_process, in_job]", "checkpoint.write_time=20min"],
    ["workload.step_time={exponential: {mean: 20s}}"],
    ["recovery.in_process.atomic=true", "recovery.layers=[in_process]"],
])  # fmt: skip
def test_derived_timeouts_break_no_rule(overrides):
    """Put back into the scenario they derive from, they are in order and longer than what they watch."""
    scenario = load_scenario(RUN, overrides)
    exported = [
        f"{timeout.path}={'off' if timeout.seconds is None else timeout.seconds}"
        for timeout in timeouts_for(scenario).all()
        if timeout.path != "recovery.nccl_timeout" or timeout.source == "derived"
    ]
    found = {w.rule for w in warnings_for(load_scenario(scenario, exported)) if "timeout" in w.path}
    assert found <= {"save-longer-than-nccl", "hang-found-late"}
    assert (
        min(t.seconds for t in timeouts_for(scenario).all() if t.source == "derived" and t.seconds) >= FLOOR_S
    )


def test_the_restart_budget_is_never_the_launchers_zero():
    assert timeouts_for(load_scenario(RUN)).max_restarts == math.ceil(2 * 10_000 * 20 / 72_000) + 10
    assert timeouts_for(load_scenario(RUN, ["recovery.in_job.max_restarts=4"])).max_restarts == 4
    assert "--max-restarts=16" in render("ft-launcher", settings())


def test_the_interval_stands_as_a_comment():
    text = " ".join(render("ft-launcher", settings(advice=ADVICE)).replace("#", "").split())
    assert "Checkpoint interval, recommended: 120 steps (40m of work)" in text
    assert "the scenario has 90 steps" in text
    assert "Checkpoint interval, scenario: 90 steps (30m of work)" in " ".join(
        render("ft-launcher", settings()).replace("#", "").split()
    )


def test_warnings_stand_in_the_file():
    text = " ".join(render("ft-launcher", settings("recovery.layers=[fixed]")).replace("#", "").split())
    assert "does not hold in_job" in text
    assert "Note: checkpoint.write_time: the time of a save is given as the constant 30s" in text


def test_json_holds_interval_timeouts_and_provenance():
    data = json.loads(render("json", settings(advice=ADVICE)))
    assert data["interval"] == {
        "steps": 120, "seconds": 2400.0, "source": "recommended", "scenario_steps": 90,
        "flat_region_s": [2000.0, 3000.0], "goodput": {"mean": 0.9, "ci95": [0.89, 0.91]},
    }  # fmt: skip
    assert {key: data[key] for key in RECORD} == RECORD
    assert [t["path"].rpartition(".")[2] for t in data["timeouts"]] == [
        "setup", "step", "checkpointing", "out_of_section", "nccl_timeout",
    ]  # fmt: skip
    assert data["warnings"][0]["rule"] == "save-time-constant"


def test_a_mode_without_an_interval_exports_none():
    made = settings("checkpoint={mode: none}")
    assert (made.interval_steps, made.interval_source) == (None, "none")
    assert "none to export in checkpoint mode none" in render("ft-launcher", made)
    assert json.loads(render("json", made))["interval"]["steps"] is None


def test_formats_that_do_not_exist_are_refused_by_name():
    with pytest.raises(
        ScenarioError, match=r"--format: comes later; now: json, ft-launcher, .* \(got 'levanter'\)"
    ):
        check_format("levanter")
    with pytest.raises(ScenarioError, match=r"must be one of json, ft-launcher, .* \(got 'toml'\)"):
        check_format("toml")
    assert not set(FORMATS) & set(LATER)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "out.yaml"
    target.write_text("before")
    write(target, "after\n")
    assert target.read_text() == "after\n"
    assert os.listdir(tmp_path) == ["out.yaml"]
    with pytest.raises(OSError, match=r"No such file or directory: '.*no-folder/out.yaml'"):
        write(tmp_path / "no-folder" / "out.yaml", "x")
    with pytest.raises(OSError, match=f"'{tmp_path}'"):
        write(tmp_path, "x")
    with pytest.raises(UnicodeEncodeError):
        write(target, "half \ud800")
    assert target.read_text() == "after\n"
    assert os.listdir(tmp_path) == ["out.yaml"]
