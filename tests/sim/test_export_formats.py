"""Exports for frameworks: each file is read back as its framework would read it, and says what that framework ignores.

Real parsers: bash (arrays of Megatron-LM, torchtitan, OLMo-core), argparse, PyYAML, json, and Python itself for the
files of Lightning and NeMo. The options, types and checks behind them are tables of tests/sim/export_schemas.py with
their sources, as the frameworks are no light installs. ft-launcher and json: tests/sim/test_export.py.
"""

import json
import math
import re
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sim import catalog, cli
from sim.cli import runner
from sim.export import FORMATS, exported, settings_for
from sim.export.composer import COMPOSER
from sim.export.hf_trainer import TRANSFORMERS
from sim.export.lightning import LIGHTNING, NEMO
from sim.export.maxtext import MAXTEXT
from sim.export.megatron import BRIDGE, LM
from sim.export.olmo_core import OLMO_CORE
from sim.export.torchtitan import TORCHTITAN
from sim.scenario import dump_yaml, load_scenario
from sim.schema.fields import ScenarioError
from tests.sim.export_schemas import PARSERS, wrapper_checks

ROOT = Path(__file__).resolve().parents[2]
RUN = {
    "name": "my-run",
    "cluster": {"nodes": 4, "gpus_per_node": 8},
    "workload": {
        "step_time": "20s", "steps": 10_000, "process_start": "20s", "init": "2min", "warmup": "30s",
    },
    "checkpoint": {"mode": "sync", "interval": "90 steps", "write_time": "30s", "load_time": "20s"},
    "failures": {"classes": [{"name": "bug", "mtbf": "20h", "per": "job", "scope": "job", "symptom": "hang"}]},
    "recovery": {"layers": ["in_job"], "nccl_timeout": "1min"},
}  # fmt: skip
RECORD = {
    "version": "0.1.0", "git": None, "command": "goodput export my-run", "seed": 7, "scenario_hash": "0123456789ab",
}  # fmt: skip
ASYNC = ["checkpoint.mode=async", "checkpoint.stall_time=1s", "checkpoint.write_time=275s"]
LOCAL = ["checkpoint.mode=local", "checkpoint.stall_time=2s", "checkpoint.write_time=null"]
IN_PROCESS = "recovery.layers=[in_process, in_job]"
LOCAL_TIER = "{name: local, every: 20 steps, survives: [exception, hang], write_time: 4s, load_time: 2s}"
GLOBAL_TIER = "{name: global, every: 500 steps, survives: all, write_time: 275s, stall_time: 1s, load_time: 45s}"


def tiers(*items):
    listed = ", ".join(items)
    return [
        "checkpoint.mode=tiered", "checkpoint.interval=null", "checkpoint.write_time=null",
        f"checkpoint.tiers=[{listed}]",
    ]  # fmt: skip


VARIANTS = {
    "sync": [],
    "keep-one": ["checkpoint.keep=1"],
    "every-step": ["checkpoint.interval=1 steps"],
    "seconds": ["checkpoint.interval=30min"],
    "async": ASYNC,
    "busy": [*ASYNC, "checkpoint.write_time=4000s"],
    "in-process": [IN_PROCESS],
    "in-process-slow-save": [IN_PROCESS, "checkpoint.write_time=20min"],
    "in-process-atomic": [IN_PROCESS, "recovery.in_process.atomic=true", "checkpoint.write_time=5min"],
    "in-process-quick": [
        IN_PROCESS,
        "recovery.in_process.heartbeat_timeout=0.8s",
        "recovery.in_process.monitor_interval=0.1s",
    ],
    "in-process-reserve": [
        "recovery.layers=[in_process]", "recovery.launcher=direct", "recovery.in_process.reserve_ranks=8",
    ],
    "local": LOCAL,
    "tiered": tiers(LOCAL_TIER, GLOBAL_TIER),
    "tiered-one": tiers(GLOBAL_TIER),
    "tiered-three": tiers(LOCAL_TIER, "{every: 100 steps, survives: all, write_time: 9s}", GLOBAL_TIER),
    "tiered-replicated": tiers(LOCAL_TIER.replace("[exception, hang]", "all"), GLOBAL_TIER),
    "no-final-save": ["checkpoint.final_save=false"],
    "heartbeats": ["recovery.in_job.heartbeat_timeout=15min"],
    "lognormal": ["checkpoint.write_time={lognormal: {median: 24s, mean: 30s}}"],
    "timeouts-off": ["recovery.nccl_timeout=off", IN_PROCESS, "recovery.in_process.heartbeat_timeout=off"],
}  # fmt: skip
ONE_PLACE = ("torchtitan", "transformers", "lightning", "composer", "olmo-core")  # no local copies


def made(form, *overrides, source=RUN, record=RECORD):
    return exported(form, settings_for(load_scenario(source, overrides), record))


def read(form, tmp_path, *overrides, source=RUN, record=RECORD):
    scenario = load_scenario(source, overrides)
    path = tmp_path / "exported.py"
    path.write_text(exported(form, settings_for(scenario, record)).text, encoding="utf-8")
    return PARSERS[form](path, scenario.ranks())


def rules(form, *overrides):
    return {warning.rule: warning for warning in made(form, *overrides).warnings}


def plain(text):
    """A file without its comment marks and line breaks."""
    return " ".join(text.replace("\n", " ").replace("#", " ").split())


# --- every file


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("form", PARSERS)
def test_every_file_is_one_that_its_framework_takes(form, variant, tmp_path):
    if variant == "local" and form in ONE_PLACE:
        with pytest.raises(ScenarioError, match=r"^checkpoint.mode: .* \(got 'local'\)$"):
            read(form, tmp_path, *VARIANTS[variant])
        return
    assert read(form, tmp_path, *VARIANTS[variant])


@pytest.mark.parametrize("form", PARSERS)
@pytest.mark.parametrize("name", catalog.names())
def test_catalog_scenarios_are_exported(form, name, tmp_path):
    scenario = load_scenario(name)
    if scenario.checkpoint.mode in ("none", "ideal") and form != "kubernetes":
        with pytest.raises(ScenarioError, match=r"^checkpoint.mode: has no interval"):
            made(form, source=name)
    else:
        assert read(form, tmp_path, source=name)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("variant", ["sync", "tiered"])
def test_every_file_says_where_it_comes_from(form, variant):
    told = made(form, *VARIANTS[variant])
    text = plain(told.text)
    for part in ("0.1.0", "0123456789ab", "goodput export my-run", "my-run"):
        assert part in text
    assert re.search(r"seed\W+7\b", text)
    if form != "json":
        steps = ["90 steps (30m of work), 1800 s"] if variant == "sync" else ["20 steps (6m 40s", "500 steps (2h 47m"]
        assert all(part in text for part in steps)
    for warning in told.warnings:
        assert plain(warning.message) in text.replace("\\u2026", "…")


FRAMEWORKS = {
    "megatron-lm": LM, "megatron-bridge": BRIDGE, "nemo": NEMO, "torchtitan": TORCHTITAN, "lightning": LIGHTNING,
    "transformers": TRANSFORMERS, "composer": COMPOSER, "maxtext": MAXTEXT, "olmo-core": OLMO_CORE,
}  # fmt: skip


@pytest.mark.parametrize("form", FRAMEWORKS)
def test_the_version_stands_in_the_file_and_in_the_readme(form):
    assert str(FRAMEWORKS[form]) in plain(made(form).text)
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Exports")[1].split("\n## ")[0]
    row = next(line for line in section.splitlines() if line.startswith(f"| `{form}` |"))
    for part in FRAMEWORKS[form].version.split(", "):
        assert part.removeprefix("with ") in row


def test_every_format_has_a_row_in_the_readme_and_a_word_in_the_help(capsys, monkeypatch):
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Exports")[1].split("\n## ")[0]
    assert [form for form in FORMATS if f"\n| `{form}` |" not in section] == []
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["goodput", "export", "--help"])
    assert runner.run(cli.app) == 0
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert [form for form in FORMATS if not re.search(rf"\b{form}\b", told)] == []


HOSTILE = [
    "a\nimport os", 'quotes " and \' and \\', "$(touch /tmp/x) `id` ${X:?no}", "tab\tand \x07 bell \x1b[31m", "é 漢 🎉",
    "line\u2028separator\x85next", "---", "{{ template }}", "x" * 300, "-.-", "*/ \"\"\" '''",
]  # fmt: skip


@pytest.mark.parametrize("form", PARSERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_never_read_as_code(form, name, tmp_path):
    hostile = RECORD | {"command": f"goodput export {name}"}
    found = read(form, tmp_path, source=RUN | {"name": name}, record=hostile)
    for told in (found, expected := read(form, tmp_path)):
        for key in ("names", "files"):  # of the ConfigMaps: they hold the name
            told.pop(key, None)
    assert found == expected


# --- intervals


def test_each_framework_gets_the_interval_in_its_own_unit(tmp_path):
    for variant, steps in (("sync", 90), ("seconds", 90), ("every-step", 1)):
        overrides = VARIANTS[variant]
        assert read("megatron-lm", tmp_path, *overrides)["save_interval"] == steps
        assert read("megatron-bridge", tmp_path, *overrides)["checkpoint"]["save_interval"] == steps
        assert read("nemo", tmp_path, *overrides)["MODEL_CHECKPOINT"]["every_n_train_steps"] == steps
        assert read("lightning", tmp_path, *overrides)["MODEL_CHECKPOINT"]["every_n_train_steps"] == steps
        assert read("torchtitan", tmp_path, *overrides)["checkpoint.interval"] == steps
        assert read("transformers", tmp_path, *overrides)["save_steps"] == steps
        assert read("composer", tmp_path, *overrides)["save_interval"] == f"{steps}ba"
        assert read("maxtext", tmp_path, *overrides)["checkpoint_period"] == steps
        assert read("olmo-core", tmp_path, *overrides)["save_interval"] == steps
        assert read("kubernetes", tmp_path, *overrides)["GOODPUT_CHECKPOINT_STEPS"] == str(steps)
        assert read("kubernetes", tmp_path, *overrides)["GOODPUT_CHECKPOINT_SECONDS"] == f"{20 * steps}"


def test_two_tiers_become_persistent_and_local(tmp_path):
    overrides = VARIANTS["tiered"]
    args = read("megatron-lm", tmp_path, *overrides)
    assert (args["save_interval"], args["non_persistent_save_interval"]) == (500, 20)
    assert args["non_persistent_ckpt_type"] == "local" and "replication" not in args
    nemo = read("nemo", tmp_path, *overrides)
    assert nemo["MODEL_CHECKPOINT"]["every_n_train_steps"] == 500
    assert nemo["LOCAL_CHECKPOINT_CALLBACK"] == {"every_n_train_steps": 20}
    maxtext = read("maxtext", tmp_path, *overrides)
    assert (maxtext["checkpoint_period"], maxtext["local_checkpoint_period"]) == (500, 20)
    olmo = read("olmo-core", tmp_path, *overrides)
    assert (olmo["save_interval"], olmo["ephemeral_save_interval"]) == (500, 20)
    assert "same folder" in rules("olmo-core", *overrides)["export-ephemeral"].message
    variables = read("kubernetes", tmp_path, *overrides)
    assert variables["GOODPUT_CHECKPOINT_LOCAL_STEPS"] == "20"
    assert variables["GOODPUT_CHECKPOINT_GLOBAL_SECONDS"] == "10000"


@pytest.mark.parametrize(("form", "variant", "lost"), [
    *((form, "tiered", ["checkpoint.tiers.local.every"]) for form in ONE_PLACE[:-1]),
    *((form, "tiered-three", ["checkpoint.tiers.1.every"]) for form in ("megatron-lm", "nemo", "maxtext", "olmo-core")),
    ("transformers", "tiered-three", ["checkpoint.tiers.local.every", "checkpoint.tiers.1.every"]),
    ("megatron-lm", "tiered", []),
    ("transformers", "tiered-one", []),
])  # fmt: skip
def test_a_tier_that_is_lost_is_told(form, variant, lost):
    told = made(form, *VARIANTS[variant]).warnings
    assert [warning.path for warning in told if warning.rule == "export-tier-lost"] == lost


@pytest.mark.parametrize("form", ["megatron-lm", "megatron-bridge", "nemo", "maxtext"])
def test_local_saves_alone_leave_the_end_to_the_persistent_ones(form, tmp_path):
    found = read(form, tmp_path, *LOCAL, "checkpoint.interval=25 steps")
    flat = found | found.get("checkpoint", {}) | found.get("MODEL_CHECKPOINT", {})
    steps = [flat.get(k) for k in ("save_interval", "every_n_train_steps", "checkpoint_period") if flat.get(k)]
    assert steps == [10_000]
    assert "export-no-persistent-tier" in rules(form, *LOCAL)


def saved_by_megatron(args, total):
    """training.py: checkpoint_and_decide_exit, and the save after the last iteration."""
    persistent, local = set(), set()
    for iteration in range(1, total + 1):
        if iteration % args["save_interval"] == 0:
            persistent.add(iteration)
        elif iteration % args["non_persistent_save_interval"] == 0:
            local.add(iteration)
    return persistent | {total}, local


@settings(max_examples=25)
@given(near=st.integers(1, 60), far=st.integers(1, 60))
def test_megatron_saves_what_the_tiers_say_or_is_refused(tmp_path_factory, near, far):
    every = tiers(LOCAL_TIER.replace("20 steps", f"{near} steps"), GLOBAL_TIER.replace("500 steps", f"{far} steps"))
    overrides = [*every, "workload.steps=240"]
    if near % far == 0:
        with pytest.raises(ScenarioError, match=r"^checkpoint.tiers.local.every: must not be a multiple"):
            made("megatron-lm", *overrides)
        return
    folder = tmp_path_factory.mktemp("export")
    persistent, local = saved_by_megatron(read("megatron-lm", folder, *overrides), 240)
    assert persistent == {240, *range(far, 241, far)}
    assert local == set(range(near, 241, near)) - set(range(far, 241, far))
    assert ("export-local-skipped" in rules("megatron-lm", *overrides)) == (math.lcm(near, far) < 240)


def test_an_ephemeral_interval_must_be_below_the_permanent_one():
    overrides = tiers(LOCAL_TIER.replace("20 steps", "500 steps"), GLOBAL_TIER)
    with pytest.raises(ScenarioError, match=r"^checkpoint.tiers.local.every: must be below the permanent interval"):
        made("olmo-core", *overrides)


def test_copies_on_other_nodes_need_nodes_in_groups(tmp_path):
    overrides = VARIANTS["tiered-replicated"]
    args = read("megatron-lm", tmp_path, *overrides)
    assert (args["replication"], args["replication_jump"], args["replication_factor"]) == (True, 8, 2)
    assert read("megatron-lm", tmp_path, *overrides, "cluster.nodes=9")["replication_factor"] == 3
    with pytest.raises(ScenarioError, match=r"^checkpoint.tiers.local.survives: .*\(got 7\)"):
        made("megatron-lm", *overrides, "cluster.nodes=7")
    with pytest.raises(ScenarioError, match=r"^checkpoint.survives: "):
        made("megatron-bridge", *LOCAL, "checkpoint.survives=all", "cluster.nodes=7")


# --- what a framework ignores, or does otherwise


def test_background_saves_in_each_framework(tmp_path):
    args = read("megatron-lm", tmp_path, *ASYNC)
    assert args["async_save"] and args["use_persistent_ckpt_worker"]  # without the worker it is switched off, silently
    assert read("megatron-bridge", tmp_path, *ASYNC)["checkpoint"]["async_save"] is True
    assert read("megatron-bridge", tmp_path)["checkpoint"]["async_save"] is False
    assert read("nemo", tmp_path)["MEGATRON_STRATEGY"] == {"ckpt_async_save": False}  # its default is True
    assert read("torchtitan", tmp_path, *ASYNC)["checkpoint.async_mode"] == "async"
    assert read("maxtext", tmp_path)["async_checkpointing"] is False  # its default is True
    assert read("olmo-core", tmp_path)["save_async"] is False  # its default depends on the backend
    for form in ("transformers", "composer"):
        assert "up to 4m 36s instead of 1s" in rules(form, *ASYNC)["export-no-async"].message
        assert "export-no-async" not in rules(form)
    assert "AsyncCheckpointIO" in rules("lightning", *ASYNC)["export-async-plugin"].message


@pytest.mark.parametrize(("form", "does"), [
    ("megatron-lm", "queue"), ("megatron-bridge", "queue"), ("nemo", "queue"), ("lightning", "queue"),
    ("torchtitan", "wait"), ("maxtext", "wait"), ("olmo-core", "wait"),
])  # fmt: skip
def test_a_busy_writer_is_told_where_the_framework_does_otherwise(form, does):
    for assumed in ("wait", "queue", "skip"):
        told = rules(form, *VARIANTS["busy"], f"checkpoint.on_busy={assumed}")
        assert ("export-on-busy" in told) == (assumed != does)
    assert "export-on-busy" not in rules(form, *ASYNC, "checkpoint.on_busy=skip")  # never busy when a save comes


def test_how_many_are_kept(tmp_path):
    one = ["checkpoint.keep=1"]
    retain = read("megatron-lm", tmp_path, *one)["save_retain_interval"]
    assert retain % 90 == 0 and retain >= 10_000
    assert "save_retain_interval" not in read("megatron-lm", tmp_path)
    assert "export-keep" in rules("megatron-lm")
    assert read("megatron-bridge", tmp_path, *one)["checkpoint"]["most_recent_k"] == 1
    assert read("torchtitan", tmp_path, *one)["checkpoint.keep_latest_k"] == 2
    assert "refuses fewer than 2" in rules("torchtitan", *one)["export-keep"].message
    assert "export-keep" not in rules("torchtitan")
    last = read("lightning", tmp_path, *one)["MODEL_CHECKPOINT"]
    assert (last["monitor"], last["save_top_k"], last["save_last"]) == (None, 1, "link")
    newest = read("lightning", tmp_path, "checkpoint.keep=3")["MODEL_CHECKPOINT"]
    assert (newest["monitor"], newest["mode"], newest["save_top_k"]) == ("step", "max", 3)
    assert read("transformers", tmp_path, "checkpoint.keep=3")["save_total_limit"] == 3
    assert "export-emergency" in rules("maxtext", *VARIANTS["tiered"])


def test_the_end_of_the_job():
    unsaved = ["checkpoint.final_save=false"]
    for form in ("megatron-lm", "megatron-bridge", "torchtitan", "transformers", "composer", "olmo-core"):
        assert "whatever is set" in rules(form, *unsaved)["export-final-save"].message
        assert "export-final-save" not in rules(form)
    for form in ("lightning", "nemo"):
        assert "no multiple of 90" in rules(form)["export-final-save"].message
        assert "export-final-save" not in rules(form, *unsaved)
        assert "export-final-save" not in rules(form, "workload.steps=9000")


# --- timeouts


def test_a_process_group_outlasts_what_a_healthy_job_does(tmp_path):
    slow = ["checkpoint.write_time=275s"]
    args = read("megatron-lm", tmp_path, *slow)
    assert args["distributed_timeout_seconds_after_init"] == 5 * 275
    assert args["distributed_timeout_minutes"] == math.ceil(5 * 275 / 60)
    assert "state one above 4m 35s" in rules("megatron-lm", *slow)["export-group-timeout"].message
    stated = read("torchtitan", tmp_path, *slow, "recovery.nccl_timeout=5min")
    assert (stated["comm.train_timeout_seconds"], stated["comm.init_timeout_seconds"]) == (300, 315)
    assert "export-group-timeout" not in rules("torchtitan", *slow, "recovery.nccl_timeout=5min")
    start_s = math.ceil(1.5 * (20 + 120 + 20 + 30 + 20))
    assert read("transformers", tmp_path)["ddp_timeout"] == start_s
    assert read("composer", tmp_path, *ASYNC)["dist_timeout"] == 5 * 276  # it cannot write in the background
    assert read("lightning", tmp_path, *ASYNC)["STRATEGY"]["timeout"].total_seconds() == start_s
    assert read("maxtext", tmp_path)["jax_distributed_initialization_timeout"] == start_s
    assert f"timedelta(seconds={start_s})" in rules("olmo-core")["export-in-script"].message


def test_the_last_write_does_not_lengthen_every_hang(tmp_path):
    assert read("megatron-lm", tmp_path, *ASYNC)["distributed_timeout_seconds_after_init"] == 60
    assert "up to 4m 36s" in rules("megatron-lm", *ASYNC)["export-last-write"].message
    assert "export-last-write" not in rules("megatron-lm")


def test_the_wrapper_takes_the_timeouts(tmp_path):
    """Megatron's defaults would not fit beside the exported ones: heartbeat_interval 30 is not below 30."""
    restart = read("megatron-bridge", tmp_path, IN_PROCESS)["inprocess_restart"]
    assert (restart["soft_timeout"], restart["hard_timeout"], restart["heartbeat_interval"]) == (60, 90, 1)
    with pytest.raises(AssertionError):
        wrapper_checks(restart | {"heartbeat_interval": 30})
    quick = read("megatron-bridge", tmp_path, *VARIANTS["in-process-quick"])["inprocess_restart"]
    assert quick["heartbeat_interval"] == 0.4
    slow = read("megatron-bridge", tmp_path, *VARIANTS["in-process-atomic"])["inprocess_restart"]
    assert (slow["soft_timeout"], slow["hard_timeout"], slow["barrier_timeout"]) == (1500, 2250, 3375)
    assert "export-soft-timeout" in rules("megatron-bridge", *VARIANTS["in-process-atomic"])
    with pytest.raises(ScenarioError, match=r"^recovery.in_process.monitor_interval: must be below"):
        made("megatron-lm", IN_PROCESS, "recovery.in_process.monitor_interval=40s")
    budget = rules("megatron-lm", IN_PROCESS, "recovery.in_process.max_restarts=3")["export-in-process-budget"]
    assert "does not hand it to the Wrapper" in budget.message
    assert "export-heartbeat" in rules("megatron-lm", *VARIANTS["timeouts-off"])


def test_sections_and_heartbeats(tmp_path):
    assert read("megatron-lm", tmp_path)["enable_ft_package"]
    assert "enable_ft_package" not in read("megatron-lm", tmp_path, "recovery.layers=[fixed]")
    assert "sends no heartbeats" in rules("megatron-lm", *VARIANTS["heartbeats"])["export-heartbeats"].message
    plugin = read("nemo", tmp_path, *VARIANTS["heartbeats"])["FAULT_TOLERANCE_PLUGIN"]
    assert plugin == {
        "num_in_job_restarts": 16, "initial_rank_heartbeat_timeout": 1050, "rank_heartbeat_timeout": 900,
    }  # fmt: skip
    assert "FAULT_TOLERANCE_PLUGIN" not in read("nemo", tmp_path, "recovery.layers=[fixed]")
    files = read("kubernetes", tmp_path)["files"]
    assert "rank_section_timeouts" in files["ft_launcher.yaml"]
    assert json.loads(files["settings.json"])["interval"]["steps"] == 90
    assert list(read("kubernetes", tmp_path, "recovery.layers=[fixed]")["files"]) == ["settings.json"]


def test_the_launcher_leaves_the_last_write_of_a_tier_in_peace():
    section = yaml.safe_load(made("ft-launcher", *VARIANTS["tiered"]).text)["fault_tolerance"]
    assert section["rank_section_timeouts"]["checkpointing"] == 5 * (1 + 275)


def test_tiers_whose_names_make_the_same_variable_are_told_apart(tmp_path):
    overrides = tiers(LOCAL_TIER.replace("local", "a-b"), GLOBAL_TIER.replace("global", "a_b"))
    variables = read("kubernetes", tmp_path, *overrides)
    assert variables["GOODPUT_CHECKPOINT_A_B_STEPS"] == "20"
    assert variables["GOODPUT_CHECKPOINT_A_B_1_STEPS"] == "500"


# --- the command


@pytest.fixture
def export(tmp_path, monkeypatch, capsys):
    """Run goodput export on a scenario with overrides: (exit code, stdout, stderr, the file or None)."""

    def run(form, *overrides, options=()):
        source, target = tmp_path / "my-run.yaml", tmp_path / "target"
        source.write_text(dump_yaml(load_scenario(RUN, overrides)))
        words = ["export", str(source), "--format", form, "-o", str(target), "--keep-interval", *options]
        monkeypatch.setattr(sys, "argv", ["goodput", *words])
        code = runner.run(cli.app)
        told = capsys.readouterr()
        return code, told.out, told.err, target.read_text() if target.exists() else None

    return run


def test_a_refusal_exits_with_2_and_writes_nothing(export):
    code, out, err, written = export("transformers", *LOCAL)
    assert (code, out, written) == (2, "", None)
    assert err.startswith("error: checkpoint.mode: transformers writes every checkpoint to shared storage")


def test_warnings_stand_on_stderr_and_in_the_json(export):
    code, out, err, written = export("transformers", *ASYNC)
    assert code == 0 and json.loads(written)["training_arguments"]["save_steps"] == 90
    assert "warning: checkpoint.mode: transformers does not write in the background" in err
    assert "does not write in the background" not in out
    code, out, err, _ = export("transformers", *ASYNC, options=["--json"])
    data = json.loads(out)
    assert data["warnings"][0]["rule"] == "export-no-async" and "warning: checkpoint.mode" in err
    assert data["levels"] == [{"path": "checkpoint.interval", "name": "async", "steps": 90, "seconds": 1800.0}]


@pytest.mark.parametrize("form", FORMATS)
def test_tiers_are_exported_by_the_command(export, form):
    code, out, err, written = export(form, *VARIANTS["tiered"])
    assert code == 0 and written
    assert "checkpoint.tiers.local.every (scenario)" in out
    assert all(line.startswith("warning: ") for line in err.splitlines())
