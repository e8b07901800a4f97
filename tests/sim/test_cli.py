"""The command: what it prints, its exit codes, and that nothing a person can do gives a traceback."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest
import typer
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sim import cli
from sim.cli import designs as cli_compare
from sim.cli import out as cli_out
from sim.cli import runner as cli_root
from sim.cli import study as cli_study
from sim.cli import text as cli_text
from sim.scenario import dump_yaml, json_schema, load_scenario

GOODPUT = [sys.executable, "-c", "from sim.cli import main; main()"]
ROOT = Path(__file__).resolve().parents[2]

RUN = {
    "name": "my-run",
    "cluster": {"nodes": 4, "gpus_per_node": 8},
    "workload": {"step_time": "2s", "steps": 10_000, "init": "1min"},
    "checkpoint": {"mode": "sync", "interval": "10min", "write_time": "20s", "load_time": "10s"},
    "failures": {
        "classes": [{"name": "bug", "mtbf": "2h", "per": "job", "scope": "job", "symptom": "exception"}]
    },
    "recovery": {"layers": ["in_job"], "nccl_timeout": "5min"},
    "economics": {"usd_per_gpu_hour": 2.0},
}


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "my-run.yaml"
    path.write_text(dump_yaml(load_scenario(RUN)))
    return str(path)


@pytest.fixture
def goodput(monkeypatch, capsys):
    """Run the command in this process: (exit code, stdout, stderr)."""

    def run(*arguments, width=100):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr(sys, "argv", ["goodput", *map(str, arguments)])
        code = cli_root.run(cli.app)
        told = capsys.readouterr()
        assert "Traceback" not in told.out + told.err
        return code, told.out, told.err

    return run


@pytest.fixture
def goodput_json(goodput):
    def run(*arguments, code=0):
        got, out, err = goodput(*arguments, "--json")
        assert (got, err) == (code, "")
        return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))

    return run


def spawn(*arguments, **options):
    return subprocess.Popen(
        [*GOODPUT, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


# --- the root


def test_help_names_every_command(goodput):
    code, out, _ = goodput("--help")
    assert code == 0
    for command in (
        "simulate",
        "timeline",
        "recommend",
        "compare",
        "export",
        "ledger",
        "catalog",
        "schema",
        "demo",
    ):
        assert f" {command} " in out


@pytest.mark.parametrize(
    "command", ["simulate", "timeline", "recommend", "compare", "export", "ledger", "schema"]
)
def test_every_command_explains_itself(goodput, command):
    code, out, _ = goodput(command, "--help")
    assert code == 0
    assert "--json" in out


def test_version(goodput):
    assert goodput("--version")[:2] == (0, f"goodput-planner {metadata.version('goodput-planner')}\n")


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["simulate"], ["simulate", "x", "--bogus"], ["catalog", "x"]]
)
def test_what_the_command_does_not_know_is_exit_2(goodput, arguments):
    code, out, err = goodput(*arguments)
    assert (code, out) == (2, "")
    assert "Usage: goodput" in err


class Room:
    def __init__(self, name, app):
        self.name, self.app = name, app

    def load(self):
        if isinstance(self.app, Exception):
            raise self.app
        return self.app


def test_rooms_add_their_commands(goodput, monkeypatch):
    app = typer.Typer()

    @app.command()
    def greet(name: str) -> None:
        """Greet somebody."""
        print(f"hello {name}")

    rooms = [Room("greet", app), Room("lost", ModuleNotFoundError("No module named 'torch'"))]
    monkeypatch.setattr(metadata, "entry_points", lambda group: rooms if group == "goodput.commands" else [])
    assert "Greet somebody" in goodput("--help")[1]
    assert goodput("greet", "you")[:2] == (0, "hello you\n")
    code, _, err = goodput("lost")
    assert (code, err) == (
        2,
        "error: the command lost is installed but cannot be loaded: No module named 'torch'\n",
    )


def test_a_fault_of_our_own_is_one_line(goodput, monkeypatch, scenario):
    def fail(*_arguments, **_options):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(cli_study, "simulate", fail)
    code, out, err = goodput("simulate", scenario)
    assert (code, out) == (70, "")
    assert err.startswith(
        "error: a fault in goodput itself, please report it: ZeroDivisionError: division by zero\n"
    )
    monkeypatch.setenv("GOODPUT_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        goodput("simulate", scenario)


def test_an_interrupt_is_quiet(goodput, monkeypatch, scenario):
    def interrupt(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_study, "simulate", interrupt)
    assert goodput("simulate", scenario) == (130, "", "")


@pytest.mark.skipif(os.name == "nt", reason="signals")
def cpu_s(process):
    """Return the CPU time that a process has used [s], from /proc."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_an_interrupt_from_the_keyboard_ends_long_work_at_once():
    # a shell's background job hands down an ignored SIGINT, and so may whatever runs the tests
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = [sys.executable, "-c", heard + "from sim.cli import main; main()"]
    arguments = ["simulate", "llama3-405b", "--replications", "10000"]
    pipe = subprocess.PIPE
    with subprocess.Popen([*command, *arguments], cwd=ROOT, stdout=pipe, stderr=pipe) as process:
        try:
            while cpu_s(process) < 2.5:  # by then it simulates, however busy the machine
                assert process.poll() is None
                time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (130, b"", b"")


@pytest.mark.parametrize("command", [["schema"], ["timeline", "aws-eks-nvrx-in-job"]])
def test_a_reader_that_leaves_is_no_error(command):
    process = spawn(*command)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=20), err) == (141, b"")


# --- wrong input: every problem, by its path, and exit code 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["simulate", "nosuch"], "scenario: no such file or catalog scenario"),
        (["simulate", "{dir}"], "scenario: is a folder, not a file"),
        (["simulate", "{file}", "--set", "cluster.nodes=0"], "cluster.nodes: must be a whole number from 1"),
        (["simulate", "{file}", "--set", "cluster"], "--set: must be path=value"),
        (["simulate", "{file}", "--replications", "many"], "--replications: must be auto or a whole number"),
        (
            ["simulate", "{file}", "--replications", "0"],
            "replications: must be auto or a whole number from 1",
        ),
        (["simulate", "{file}", "--seed", "-1"], "seed: must be a whole number from 0"),
        (
            ["simulate", "{file}", "--engine", "batch"],
            "engine: batch, the compiled driver, does not exist yet",
        ),
        (["simulate", "{file}", "--set", "checkpoint.mode=tiered"], "checkpoint"),
        (["simulate", "{file}", "--set", "failures.classes.bug.mtbf=10s"], "expected"),
        (["timeline", "{file}", "--replication", "-1"], "--replication: must be a whole number from 0"),
        (["timeline", "{file}", "--incidents", "few"], "--incidents: must be all or a whole number"),
        (["timeline", "{file}", "--log", "{dir}/no/where.jsonl"], "no such folder to write to"),
        (["timeline", "{file}", "--engine", "batch"], "--engine: batch"),
        (["timeline", "{file}", "--set", "limits.max_events=20"], "20"),
        (["recommend", "{file}", "--set", "failures.classes=[]"], "failures: no fault stops the job"),
        (["recommend", "{file}", "--engine", "batch"], "--engine: batch"),
        (["compare", "{file}"], "SCENARIO: give two or more, or one with --set or --vs"),
        (["compare", "{file}", "{file}", "--vs", "a=1"], "--vs: is for one scenario"),
        (["compare", "{file}", "--set", "cluster.nodes=x"], "cluster.nodes: must be"),
        (
            ["export", "{file}", "--format", "deepspeed", "-o", "{dir}/x"],
            "--format: comes later; now: json, ft-launcher",
        ),
        (
            ["export", "{file}", "--format", "xml", "-o", "{dir}/x"],
            "--format: must be one of json, ft-launcher",
        ),
        (
            ["export", "{file}", "--format", "json", "-o", "{dir}/no/x", "--keep-interval"],
            "no such folder to write to",
        ),
        (["export", "{file}", "--format", "json", "-o", "{dir}"], "is a folder, not a file to write"),
        (["timeline", "{file}", "--html", "{dir}/no/where.html"], "no such folder to write to"),
        (
            ["export", "{file}", "--format", "json", "-o", "{dir}/x", "--set", "failures.classes=[]"],
            "--keep-interval",
        ),
        (["ledger", "{dir}/nothing.jsonl"], "nothing.jsonl: cannot be read"),
        (["ledger", "{file}"], "not an event"),
        (["ledger", "{empty}"], "no events"),
        (["catalog", "show", "nosuch"], "catalog: must be one of"),
        (["schema", "-o", "{dir}/no/x"], "no such folder to write to"),
    ],
)
def test_wrong_input_is_told_in_plain_lines(goodput, scenario, tmp_path, arguments, says):
    (tmp_path / "empty").write_text("")
    before = sorted(os.listdir(tmp_path))
    places = {"file": scenario, "dir": str(tmp_path), "empty": str(tmp_path / "empty")}
    code, out, err = goodput(*(text.format(**places) for text in arguments))
    assert (code, out) == (2, "")
    assert says in err
    assert all(line.startswith("error: ") for line in err.splitlines())
    assert sorted(os.listdir(tmp_path)) == before


def test_all_problems_are_told_at_once(goodput, scenario):
    sets = ["cluster.nodes=x", "workload.steps=-1", "checkpoint.bogus=1"]
    code, _, err = goodput("simulate", scenario, *(word for text in sets for word in ("--set", text)))
    assert code == 2
    assert [line.split(":")[1].strip() for line in err.splitlines()] == [
        "cluster.nodes", "workload.steps", "checkpoint.bogus",
    ]  # fmt: skip


# --- simulate


def test_simulate_as_json(goodput_json, scenario):
    data = goodput_json("simulate", scenario, "--replications", "3", "--set", "checkpoint.bytes=1TB")
    assert {"scenario", "engine", "replications", "seed", "metrics", "ledger", "gpu_hours", "interruptions", "warnings",
            "completed_fraction", "censored_fraction", "version"} <= set(data)  # fmt: skip
    assert data["replications"] == 3
    assert sum(data["ledger"].values()) == pytest.approx(1.0, abs=1e-9)
    assert data["warnings"][0]["rule"] == "storage-volume"
    assert data["warnings"][0]["severity"] == "note"


def test_what_is_infinite_is_null(goodput_json, scenario):
    data = goodput_json(
        "simulate", scenario, "--replications", "3", "--set", "recovery.in_job.max_restarts=0"
    )
    assert data["metrics"]["finish_s"]["mean"] is None
    assert data["completed_fraction"] < 1.0


def test_simulate_for_a_person(goodput, scenario):
    code, out, err = goodput(
        "simulate", scenario, "--replications", "4", "--set", "checkpoint.stall_time=1s", width=80
    )
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines()[:-1])) <= 80
    assert "4 runs, seed 1" in out
    for word in (
        "goodput",
        "95 % interval",
        "wall time",
        "Where the time went",
        "productive",
        "GPU-hours",
        "$",
    ):
        assert word in out
    assert "Warning: checkpoint.stall_time: has no effect in mode sync" in out


def shares_of(out):
    rows = out.split("Where the time went")[1].strip().split("\n\n")[0].splitlines()[1:]
    cells = [row.split() for row in rows]
    return {cell[0]: cell[1] for cell in cells if len(cell) > 2}


def test_the_ledger_for_a_person_sums_to_100_percent(goodput, scenario):
    shares = shares_of(goodput("simulate", scenario, "--replications", "4")[1])
    total = shares.pop("total")
    assert total == "100.00"
    assert sum(map(float, shares.values())) == pytest.approx(100.0, abs=0.005 * len(shares))


def test_the_last_line_gives_the_same_result_again(goodput, goodput_json, scenario):
    sets = ["--set", "failures.classes.bug.mtbf=1h", "--set", "name=it's mine"]
    out = goodput("simulate", scenario, *sets, "--seed", "7", "--replications", "3")[1]
    last = out.splitlines()[-1]
    assert last.startswith("Reproduce: goodput ")
    again = shlex.split(last.removeprefix("Reproduce: "))[1:]
    assert goodput(*again)[1] == out
    first = goodput_json("simulate", scenario, *sets, "--seed", "7", "--replications", "3")
    assert first["metrics"] == goodput_json(*again)["metrics"]


LOST = ("--set", "failures.classes.bug.scope=node", "--set", "failures.classes.bug.symptom=node_loss")


def test_runs_that_fail_are_told_first(goodput, goodput_json, scenario):
    data = goodput_json("simulate", scenario, *LOST, "--replications", "8")
    (failure,) = data["failures"]
    assert failure["outcome"] == "failed" and failure["runs"] == round(8 * (1 - data["completed_fraction"])) > 4
    assert data["worst_replication"] == failure["first_replication"] or failure["runs"] > 1
    out = " ".join(goodput("simulate", scenario, *LOST, "--replications", "8")[1].split())
    told = out.index(f"{failure['runs']} of 8 runs failed: {failure['reason']}")
    look = f"--seed 1 --replication {failure['first_replication']}`"
    assert told < out.index(look) < out.index("Warning: ") < out.index("95 % interval")


def test_recommend_says_that_most_runs_fail(goodput, scenario):
    out = goodput("recommend", scenario, *LOST, "--replications", "4")[1]
    assert out.index("Most runs do not complete") < out.index("Checkpoint interval")


def test_compare_takes_times_from_runs_that_complete_in_both(goodput, goodput_json, scenario):
    changed = ["--set", "failures.classes.bug.mtbf=8h", *LOST, "--vs", "failures.classes.bug.mtbf=8h"]
    data = goodput_json("compare", scenario, *changed, "--replications", "12")
    kept = data["completed_in_all"]
    assert 0 < kept < 12
    differences = data["comparisons"][0]["differences"]
    assert {name: d["runs"] for name, d in differences.items()} == {
        "goodput": 12, "interruptions": 12, "wall_time_s": kept, "gpu_hours": kept, "usd": kept,
    }  # fmt: skip
    for name, difference in differences.items():
        first, second = (design["metrics"][name]["mean"] for design in data["scenarios"])
        assert second - first == pytest.approx(difference["mean"])
    out = " ".join(goodput("compare", scenario, *changed, "--replications", "12")[1].split())
    assert f"of the {kept} of 12 runs that complete in every design" in out


def test_published_figures_stand_beside_predicted_ones(goodput, goodput_json):
    out = goodput("simulate", "aws-eks-nvrx-in-job", "--replications", "2")[1]
    assert "Published beside predicted" in out
    assert "25.50 %" in out
    data = goodput_json("simulate", "aws-eks-nvrx-in-job", "--replications", "2")
    assert {row["claim"] for row in data["published"]} == {"predicted"}


def test_a_changed_case_is_not_the_published_one(goodput, goodput_json):
    changed = ("simulate", "aws-eks-nvrx-in-job", "--replications", "2", "--set", "workload.step_time=1s")
    assert "Published" not in goodput(*changed)[1]
    assert goodput_json(*changed)["published"] == []


def test_all_metrics_with_their_meaning(goodput, scenario):
    out = goodput("simulate", scenario, "--replications", "2", "--all")[1]
    assert "What they mean" in out
    assert "time of the steps that are kept" in " ".join(out.split())


# --- timeline and ledger


def test_timeline_for_a_person(goodput, scenario, tmp_path):
    log = tmp_path / "log.jsonl"
    code, out, err = goodput(
        "timeline", scenario, "--replication", "2", "--log", log, "--incidents", "1", width=80
    )
    assert (code, err) == (0, "")
    assert out.count("FAULT") == 1
    assert "more incidents, not shown" in out
    assert "COMPLETED" in out
    assert (
        max(len(line) for line in out.splitlines() if not line.startswith(("Event log", "Reproduce"))) <= 80
    )
    assert log.read_text().count("\n") > 20


def test_timeline_as_json(goodput_json, scenario):
    data = goodput_json("timeline", scenario, "--replication", "2")
    assert data["end"]["outcome"] == "completed"
    assert data["incidents"][0]["faults"][0]["fault_class"] == "bug"
    assert data["provenance"]["seed"] == 1


def test_ledger_of_a_log(goodput, goodput_json, scenario, tmp_path):
    logs = [tmp_path / f"{i}.jsonl" for i in range(2)]
    for i, log in enumerate(logs):
        goodput("timeline", scenario, "--replication", i, "--log", log)
    simulated = goodput_json("simulate", scenario, "--replications", "2")
    data = goodput_json("ledger", *logs)
    assert [run["run"] for run in data["runs"]] == ["my-run/1/0", "my-run/1/1"]
    assert data["metrics"]["goodput"] == simulated["metrics"]["goodput"]
    code, out, _ = goodput("ledger", *logs)
    assert code == 0
    assert shares_of(out)["total"] == "100.00"
    assert "my-run/1/1" in out


def test_a_log_that_breaks_the_vocabulary_fails_the_check(goodput, goodput_json, scenario, tmp_path):
    log = tmp_path / "log.jsonl"
    goodput("timeline", scenario, "--log", log)
    code, out, _ = goodput("ledger", log, "--check")
    events = log.read_text().splitlines()
    assert code == 0 and f"{len(events):,} events, no problems" in out
    events = [json.loads(line) for line in log.read_text().splitlines()]
    events[3]["surprise"] = 1
    log.write_text("\n".join(map(json.dumps, events)) + "\n")
    assert goodput("ledger", log)[0] == 0
    code, out, _ = goodput("ledger", log, "--check")
    assert code == 1
    assert "surprise: not a field" in out
    assert len(goodput_json("ledger", log, "--check", code=1)["problems"]) == 1


def test_a_log_given_twice_is_refused(goodput, scenario, tmp_path):
    log, copy = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    goodput("timeline", scenario, "--log", log)
    copy.write_bytes(log.read_bytes())
    for command in ("ledger", "timeline"):
        assert goodput(command, log, log)[0] == 2
        code, _, err = goodput(command, log, copy)
        assert code == 2 and "holds the same events as" in err


# --- recommend, compare, export


def test_recommend(goodput, goodput_json, scenario):
    data = goodput_json("recommend", scenario, "--replications", "20")
    assert {"interval_s", "interval_steps", "goodput", "flat_region_s", "regret_of_current", "closed_form_s",
            "why_different"} <= set(data)  # fmt: skip
    code, out, _ = goodput("recommend", scenario, "--replications", "20", width=80)
    assert code == 0
    assert f"{data['interval_steps']} steps" in out
    for word in (
        "recommended",
        "present",
        "Young",
        "As good within 0.1 point",
        "paired",
        "Reproduce: goodput recommend",
    ):
        assert word in out


def test_compare_scenarios(goodput, goodput_json):
    names = ["aws-eks-nvrx-in-process", "aws-eks-nvrx-in-job"]
    data = goodput_json("compare", *names, "--replications", "3")
    assert [design["scenario"] for design in data["scenarios"]] == names
    assert data["comparisons"][0]["differences"]["goodput"]["mean"] < 0
    out = goodput("compare", *names, "--replications", "3")[1]
    assert "B minus A, paired" in out
    assert "aws-eks-nvrx-in-process: recovery.nccl_timeout" in out
    assert out.count("100.00") == 2


def test_more_designs_than_columns_are_rows(goodput, scenario):
    out = goodput("compare", scenario, scenario, scenario, scenario, "--replications", "2", width=80)[1]
    assert "minus A" in out
    assert max(len(line) for line in out.splitlines() if "my-run.yaml" not in line) <= 80


@pytest.mark.parametrize(
    ("sources", "sets", "vs", "intervals"),
    [
        (["F"], ["checkpoint.interval=5 steps"], [], [300, 5]),
        (["F"], [], ["checkpoint.interval=6 steps"], [300, 6]),
        (["F"], ["checkpoint.interval=5 steps"], ["checkpoint.interval=6 steps"], [5, 6]),
        (["F", "F"], ["checkpoint.interval=5 steps"], [], [5, 5]),
    ],
)
def test_which_designs_are_compared(scenario, sources, sets, vs, intervals):
    designs = cli_compare.designs([scenario for _ in sources], sets, vs)
    assert [design.interval_steps() for design in designs] == intervals


def test_designs_of_different_size_are_warned_about(goodput, scenario):
    out = goodput("compare", scenario, "--vs", "cluster.nodes=8", "--replications", "2")[1]
    assert "Warning: workload.scaling: missing" in out


def test_export_writes_the_recommended_interval(goodput, goodput_json, scenario, tmp_path):
    target = tmp_path / "ft.yaml"
    code, out, _ = goodput(
        "export", scenario, "--format", "ft-launcher", "-o", target, "--replications", "20"
    )
    assert code == 0
    assert "checkpoint interval (recommended)" in out
    assert (
        yaml.safe_load(target.read_text())["fault_tolerance"]["rank_section_timeouts"]["checkpointing"]
        == 450.0
    )
    advised = goodput_json("recommend", scenario, "--replications", "20")["interval_steps"]
    assert f"recommended: {advised} steps" in target.read_text()


def test_export_keeps_the_interval_when_told_to(goodput_json, scenario, tmp_path):
    target = tmp_path / "settings.json"
    data = goodput_json("export", scenario, "--format", "json", "-o", target, "--keep-interval")
    assert data["interval"]["steps"] == 300
    assert data["interval"]["source"] == "scenario"
    written = json.loads(target.read_text())
    assert written["interval"] == data["interval"]
    assert written["warnings"][0]["rule"] == "save-time-constant"


# --- catalog and schema


def test_catalog(goodput, goodput_json):
    out = goodput("catalog", "list", width=80)[1]
    assert "llama3-405b" in out and "p5.48xlarge" in out
    assert max(map(len, out.splitlines())) <= 80
    listed = goodput_json("catalog", "list")
    assert "llama3-405b" in [entry["name"] for entry in listed["scenarios"]]
    text = goodput("catalog", "show", "bloom-176b")[1]
    assert load_scenario(text) == load_scenario("bloom-176b")
    assert goodput_json("catalog", "show", "p5.48xlarge")["gpus_per_node"] == 8


def test_schema(goodput, tmp_path):
    assert json.loads(goodput("schema")[1]) == json_schema()
    assert goodput("schema", "-o", tmp_path / "s.json")[0] == 0
    assert json.loads((tmp_path / "s.json").read_text()) == json_schema()


# --- tables


@pytest.mark.parametrize("width", [36, 60, 80, 120])
def test_tables_break_no_word_and_cut_nothing(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    made = cli_out.table("run", ">mean", "?>extra", "why", title="T")
    made.add_row("in-process, infrastructure", "12.34 %", "1.00 .. 2.00 %", "recovery.in_job.stop_timeout is off")
    cli_out.show(cli_out.console(), made)
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= width
    for word in ("in-process,", "infrastructure", "12.34", "recovery.in_job.stop_timeout"):
        assert word in told.replace(":", " ").split()
    assert "extra" in told  # shown, or named as left out
    assert ("1.00 .. 2.00 %" in told) != ("Left out" in told)


# --- numbers for people


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12).filter(lambda parts: sum(parts) > 0))
def test_percentages_are_rounded_as_metrics_are(parts):
    shares = {str(i): part / sum(parts) for i, part in enumerate(parts)}
    told = cli_text.percents(shares)
    assert all(f"{told[name]} %" == cli_text.value("goodput", share) for name, share in shares.items())
    assert cli_text.total_percent(shares) == "100.00"


@pytest.mark.parametrize(
    ("metric", "x", "text"),
    [
        ("goodput", 0.9, "90.00 %"), ("wall_time_s", 5400.0, "1h 30m"), ("usd", 12.5, "$12.50"),
        ("usd", 1.2e6, "$1.2M"), ("interruptions", 12.345, "12.35"),
        ("gpu_hours", 12345.6, "12,346"), ("finish_s", float("inf"), "never"),
        ("goodput", float("nan"), "-"), ("goodput", None, "-"), ("usd", -2e9, "-$2G"),
        ("gpu_hours", 2.1148e7, "21.15M"),
    ],
)  # fmt: skip
def test_values_carry_their_unit(metric, x, text):
    assert cli_text.value(metric, x) == text


def test_intervals_and_differences():
    assert cli_text.interval("goodput", (0.5, 0.6)) == "50.00 .. 60.00 %"
    assert cli_text.interval("goodput", (-0.01, 0.02), as_difference=True) == "-1.00 .. +2.00 pt"
    assert cli_text.interval("wall_time_s", None) == "-"
    assert cli_text.difference("goodput", -1e-6) == "0.00 pt"
    assert cli_text.difference("wall_time_s", -90.0) == "-1m 30s"


def test_json_has_no_infinities():
    assert cli_out.finite({"a": [float("inf"), float("nan"), 1.0], 2: (3,)}) == {
        "a": [None, None, 1.0],
        "2": [3],
    }
