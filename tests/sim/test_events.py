"""Event logs on disk, and the judge of logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.events import KINDS, EventError, by_run, dumps, read_jsonl, validate, write_jsonl
from sim.ledger import account
from tests.sim.event_logs import Event, Log
from tests.sim.random_logs import random_log


def story() -> Log:
    """A sound log that holds every kind of event."""
    log = Log(steps=20, spares={"hot": 1, "cold": 0})
    log(0, "job_start").phase(0, 10, "init")(10, "resumed", step=0)
    log.steps(20, 1, 10).save(20, 25, 1, 10, staged=22)
    log.insert(-1, log.steps(25, 11, 13).pop())
    log.fault(25, id=1, symptom="slowdown")(25, "slow_begin", factor=2.0)
    log.steps(29, 14, 15, dur_s=4, slow_s=2)(29, "slow_end")
    log(29, "save_begin", id=2, step=15, tier=None)
    log.fault(30, id=2, symptom="node_loss")(30, "save_failed", id=2, step=15, tier=None, reason="fault")
    log.nodes(30, "node_down", 1, 1, 0, 1).detected(31, 2)(31, "abort")
    log.nodes(31, "node_up", 2, 0, 0, 1)
    log.layer(31, "in_job").phase(31, 40, "rendezvous", "in_job")
    log(40, "resumed", step=10).layer_end(40, "in_job")
    log.steps(50, 11, 20)
    return log.end(50, step=20)  # type: ignore[return-value]


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_the_story_is_sound_and_holds_every_kind() -> None:
    assert validate(story()) == []
    assert {event["kind"] for event in story()} == set(KINDS)


# ---- on disk


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.floats(allow_nan=False, allow_infinity=False))
def test_a_log_survives_the_disk_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, seed: int, x_free: float
) -> None:
    log = [{**event, "x_free": x_free, "t": event["t"] / 3} for event in random_log(seed)]
    path = tmp_path_factory.mktemp("log") / "run.jsonl"
    assert write_jsonl(path, log) == len(log)
    assert read_jsonl(path) == log


def test_a_log_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", "the old one\n")

    def breaks_off() -> object:
        yield from story()[:3]
        raise RuntimeError("the simulation broke off")

    with pytest.raises(RuntimeError):
        write_jsonl(path, breaks_off())  # type: ignore[arg-type]
    with pytest.raises(EventError, match="cannot be written as JSON"):
        write_jsonl(path, [{"v": 1, "t": float("inf"), "kind": "run_end"}])
    assert path.read_text() == "the old one\n"
    assert [file.name for file in tmp_path.iterdir()] == ["run.jsonl"]
    with pytest.raises(EventError, match=r"nowhere/run\.jsonl: cannot be written"):
        write_jsonl(tmp_path / "nowhere" / "run.jsonl", story())


def test_torn_lines_are_dropped_where_a_crash_explains_them(tmp_path: Path) -> None:
    lines = [dumps(event) for event in story()]
    torn_end = write(tmp_path / "a", "\n".join(lines[:5]) + "\n" + lines[5][:20])
    assert read_jsonl(torn_end) == story()[:5]
    # Killed while writing line 5, then restarted: the new process writes on in the same line.
    written_on = write(
        tmp_path / "b", "\n".join(lines[:5]) + "\n" + lines[5][:20] + "\n".join(lines[6:]) + "\n"
    )
    assert read_jsonl(written_on) == story()[:5] + story()[6:]
    assert read_jsonl(write(tmp_path / "c", lines[0] + "\n\n  \n" + "\0" * 400)) == story()[:1]
    assert read_jsonl(write(tmp_path / "d", b'{"v":1,"run":"\xe2\x82')) == []
    assert account(read_jsonl(torn_end)).outcome == "cut"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("hello", "2: not an event, which is one JSON object a line (got 'hello')"),
        ("[1, 2]", "2: not an event"),
        ("null", "2: not an event"),
        ('{"v": 2, "t": 0, "kind": "step"}', "2: schema version 2; this reader knows version 1"),
        ('{"t": 0, "kind": "step"}', "2: schema version None"),
        ('{"v": true, "t": 0, "kind": "step"}', "2: schema version True"),
        ('{"v": 1, "t": NaN, "kind": "run_end"}', "2: run_end: t: must be number (got nan)"),
        ('{"v": 1, "t": 1' + "0" * 400 + ', "kind": "run_end"}', "2: run_end: t: must be number"),
        ('{"v": 1, "kind": "run_end"}', "2: run_end: t: missing"),
        ('{"v": 1, "t": 0, "kind": 7}', "2: 7: kind: must be text (got 7)"),
        (
            '{"v": 1, "t": 0, "kind": "step", "first": 1, "dur_s": "2"}',
            "2: step: last: missing; dur_s: must be",
        ),
        ('{"v":1,"t":0,' * 3, "2: not an event"),
    ],
)
def test_junk_is_refused_by_path_and_line(tmp_path: Path, line: str, complaint: str) -> None:
    path = write(tmp_path / "run.jsonl", f"{dumps(story()[0])}\n{line}\n")
    with pytest.raises(EventError) as error:
        read_jsonl(path)
    assert str(error.value).startswith(f"{path}:{complaint}")
    assert "\n" not in str(error.value)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(EventError, match="gone.jsonl: cannot be read"):
        read_jsonl(tmp_path / "gone.jsonl")
    with pytest.raises(EventError, match="cannot be read"):
        read_jsonl(tmp_path)


def test_the_files_of_several_ranks_become_one_log_in_order_of_time(tmp_path: Path) -> None:
    for rank in (0, 1):
        log = Log(source="live")
        log.rank = rank
        write_jsonl(tmp_path / f"{rank}", log(1 + rank, "job_start")(3, "run_end"))
    log = read_jsonl([tmp_path / "0", tmp_path / "1"])
    assert [(e["t"], e["kind"], e["rank"]) for e in log] == [
        (0, "run_start", None), (0, "run_start", None), (1, "job_start", 0), (2, "job_start", 1), (3, "run_end", 0),
        (3, "run_end", 1),
    ]  # fmt: skip
    other = [{**event, "run": "s"} for event in log]
    assert {run: len(part) for run, part in by_run(log + other).items()} == {"r": 6, "s": 6}


def test_unknown_kinds_and_fields_are_read_and_then_judged(tmp_path: Path) -> None:
    log: list[Event] = [*story(), {"v": 1, "t": 50, "kind": "tea_break", "x_cups": 2}]
    log[0]["colour"] = "red"
    write_jsonl(tmp_path / "log", log)
    assert account(read_jsonl(tmp_path / "log")) == account(story())
    problems = validate(read_jsonl(tmp_path / "log"))
    assert "colour: not a field of run_start" in problems[0]
    assert "not one of the vocabulary (got 'tea_break'" in problems[1]


# ---- the judge


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_required_field_is_missed_and_every_type_is_checked(kind: str) -> None:
    position, event = next((i, e) for i, e in enumerate(story()) if e["kind"] == kind)
    for name, wanted in KINDS[kind].required.items():
        log: list[Event] = list(story())
        log[position] = {key: value for key, value in event.items() if key != name}
        assert any(text.endswith(f"{name}: missing") for text in validate(log))
        log[position] = {**event, name: [1]}
        assert any(f"{name}: must be" in text for text in validate(log)), wanted


@pytest.mark.parametrize(
    ("kind", "change", "complaint"),
    [
        ("step", {"first": 2}, "first must be 1"),
        ("step", {"dur_s": 9}, "dur_s differs by 1 s"),
        ("step", {"slow_s": 11}, "slow_s is more than dur_s"),
        ("step", {"part": 1.5}, "part must lie in 0..1"),
        ("resumed", {"step": 1}, "only 0 steps were done"),
        ("save_begin", {"step": 9}, "step must be 10 (got 9)"),
        ("save_durable", {"step": 9}, "step must be 10"),
        ("save_durable", {"id": 9}, "save 9 has not begun"),
        ("detected", {"fault": 9}, "fault 9 has not struck"),
        ("node_down", {"repair": 2}, "nodes are not conserved"),
        ("node_down", {"working": 4, "repair": -2}, "a count is negative"),
        ("phase_end", {"phase": "abort"}, "it ends ('abort', None, 1), open is ('init', None, 1)"),
        ("layer_end", {"attempt": 2}, "it ends ('in_job', 2)"),
        ("layer_end", {"outcome": "fine"}, "outcome: must be one of resumed, failed, escalated, cut (got 'fine')"),
        ("job_end", {"step": 19}, "step must be 20"),
        ("job_end", {"kept_step": 21}, "kept_step is beyond"),
        ("slow_begin", {"factor": 0.5}, "a factor below 1"),
        ("run_end", {"t": 51}, "time passes after job_end"),
        ("fault", {"symptom": "measles"}, "symptom: must be one of"),
        ("fault", {"v": 2}, "this reader knows schema version 1 (got 2)"),
        ("run_start", {"steps": 30}, "completed at step 20 of 30"),
        ("run_start", {"spares": {"hot": -1}}, "spares.hot: must be a count"),
        ("abort", {"t": 29.0}, "time runs back"),
    ],
)  # fmt: skip
def test_what_the_judge_sees(kind: str, change: Event, complaint: str) -> None:
    log: list[Event] = list(story())
    position = next(i for i, event in enumerate(log) if event["kind"] == kind)
    log[position] = {**log[position], **change}
    problems = validate(log)
    assert any(complaint in text for text in problems), problems


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_a_log_that_lost_an_event_of_weight_is_not_sound(seed: int, pick: int) -> None:
    log = random_log(seed)
    always = ("run_start", "job_start", "job_end", "run_end", "phase_begin", "phase_end")
    on_the_way = ("resumed", "layer_end")  # a fault or the end at that very time would hide their loss
    hiding = {event["t"] for event in log if event["kind"] in ("fault", "run_end")}
    losses = [
        i
        for i, event in enumerate(log)
        if event["kind"] in always
        or (event["kind"] in on_the_way and event["t"] not in hiding)
        or event.get("dur_s", 0) > 0
    ]
    lost = losses[pick % len(losses)]
    assert validate(log[:lost] + log[lost + 1 :]) != []


def test_time_that_nothing_explains_is_found() -> None:
    log = Log(steps=1)(0, "job_start")(5, "resumed", step=0).steps(6, 1, 1).end(6, step=1)
    assert validate(log) == [
        "event 2 (t=5 resumed): 5 s before resumed belong to no step, stall, phase or detection"
    ]


def test_an_empty_log_two_runs_and_a_flood_of_problems() -> None:
    assert validate([]) == ["the log is empty", "no run_start"]
    two = [*story(), *({**event, "run": "s"} for event in story())]
    assert any("holds 2 runs" in text for text in validate(two))
    assert len(validate([{"kind": "step"}] * 500)) == 100


def test_a_live_log_is_held_to_the_table_but_not_to_the_grammar() -> None:
    log = Log(source="live")(0, "resumed", step=0).steps(5, 1, 2)
    assert validate(log) == []


def test_json_is_compact_and_needs_no_order() -> None:
    assert dumps({"v": 1, "t": 0.1, "kind": "run_end"}) == '{"v":1,"t":0.1,"kind":"run_end"}'
    assert json.loads(dumps({"t": 1 / 3}))["t"] == 1 / 3
