"""The story of one run: exact texts of hand-made logs, and agreement with the ledger on simulated ones."""

import pytest

from sim.engine import run
from sim.ledger import account
from sim.scenario import load_scenario
from sim.timeline import tell
from sim.timeline.story import End, IncidentStory, Start, Stretch
from sim.timeline.text import as_json, clock, render


def log(*events, steps=100, hot=0):
    start = {
        "kind": "run_start", "t": 0.0, "run": "story/1/0", "nominal_step_s": 1.0, "steps": steps, "start_step": 0,
        "nodes": 2, "gpus_per_node": 8, "spares": {"hot": hot, "cold": 0}, "source": "simulated",
        "checkpoint_mode": "sync", "seed": 1, "replication": 0,
    }  # fmt: skip
    told = [start, *({"t": t, "kind": kind, **fields} for t, kind, fields in events)]
    return [{"v": 1, "rank": None, "node": None, **event} for event in told]


def steps(t, first, last):
    return (t, "step", {"first": first, "last": last, "dur_s": float(last - first + 1)})


def save(t, number, step, lasts=5.0):
    return [
        (t, "save_begin", {"id": number, "step": step, "tier": "global"}),
        (t + lasts, "save_durable", {"id": number, "step": step, "tier": "global"}),
    ]


def phase(t, name, lasts, layer="in_job", attempt=1, cut=False):
    end = {"phase": name, "layer": layer, "attempt": attempt, **({"cut": True} if cut else {})}
    return [
        (t, "phase_begin", {"phase": name, "layer": layer, "attempt": attempt}),
        (t + lasts, "phase_end", end),
    ]


def fault(t, number, symptom="exception", step=0, **fields):
    return (
        t,
        "fault",
        {"id": number, "class": "bug", "symptom": symptom, "scope": "node", "step": step, **fields},
    )


COUNTS = {"working": 1, "hot": 0, "cold": 0, "repair": 1, "retired": 0}

ONE_INCIDENT = log(
    *phase(0.0, "init", 10.0, layer=None, attempt=0),
    (10.0, "resumed", {"step": 0}),
    steps(30.0, 1, 20), *save(30.0, 1, 20), steps(55.0, 21, 40), *save(55.0, 2, 40), steps(63.0, 41, 43),
    fault(63.0, 1, step=43, rank=8, node=1),
    (65.0, "detected", {"fault": 1, "by": "monitor"}),
    (65.0, "layer_begin", {"layer": "in_job", "attempt": 1, "incident": 1}),
    *phase(65.0, "rendezvous", 1.0), *phase(66.0, "checkpoint_load", 4.0),
    (70.0, "layer_end", {"layer": "in_job", "attempt": 1, "incident": 1, "outcome": "resumed"}),
    (70.0, "resumed", {"step": 40}),
    steps(130.0, 41, 100), *save(130.0, 3, 100),
    (135.0, "job_end", {"outcome": "completed", "step": 100, "kept_step": 100}),
    (135.0, "run_end", {}),
)  # fmt: skip


def test_one_incident_is_one_block():
    assert render(tell(ONE_INCIDENT)).splitlines() == [
        "story, seed 1, replication 0",
        "2 nodes x 8 GPUs, 100 steps of 1s, checkpoint mode sync",
        "",
        " 0:00:00  start: init 10s",
        " 0:00:10  steps 1 to 43, 2 saves (loop stalled 10s), last durable at step 40",
        " 0:01:03  FAULT 1: bug, exception on node 1 after step 43",
        "            noticed after 2s by monitor",
        "            in_job, attempt 1: rendezvous 1s, checkpoint_load 4s",
        "            resumes at step 40 after 7s; 3 steps (3s) to run again",
        " 0:01:10  steps 41 to 100, 1 save (loop stalled 5s), last durable at step 100",
        " 0:02:15  COMPLETED after 2m 15s at step 100 of 100",
        "",
        " |ssssss===========###===========###x??ll==================================###|",
        "  One character is 1.78s: = kept steps, x lost steps, # save, s start, ? not",
        "  noticed yet, r restart, l load",
    ]


def test_a_fault_during_recovery_joins_its_incident():
    story = tell(log(
        (0.0, "resumed", {"step": 0}), steps(5.0, 1, 5), fault(5.0, 1, step=5),
        (6.0, "detected", {"fault": 1, "by": "monitor"}),
        (6.0, "layer_begin", {"layer": "in_job", "attempt": 1, "incident": 1}),
        *phase(6.0, "init", 3.0, cut=True),
        (9.0, "layer_end", {"layer": "in_job", "attempt": 1, "incident": 1, "outcome": "cut", "reason": "hang"}),
        fault(9.0, 2, symptom="hang", step=5),
        (19.0, "detected", {"fault": 2, "by": "nccl_watchdog"}),
        (19.0, "layer_begin", {"layer": "in_job", "attempt": 2, "incident": 1}),
        *phase(19.0, "init", 5.0, attempt=2),
        (24.0, "layer_end", {"layer": "in_job", "attempt": 2, "incident": 1, "outcome": "resumed", "reason": ""}),
        (24.0, "resumed", {"step": 0}), steps(124.0, 1, 100),
        (124.0, "job_end", {"outcome": "completed", "step": 100}), (124.0, "run_end", {}),
    ))  # fmt: skip
    assert len(story.incidents) == 1
    told = [line.strip() for line in render(story).splitlines()]
    assert "in_job, attempt 1: init 3s (cut); cut (hang)" in told
    assert "0:00:09" not in " ".join(told)
    assert told.index("FAULT 2: bug, hang after step 5") < told.index("noticed after 10s by nccl_watchdog")
    assert "resumes at step 0 after 19s; 5 steps (5s) to run again" in told


def test_a_failed_run_says_why_and_what_is_kept():
    story = tell(log(
        (0.0, "resumed", {"step": 0}), steps(20.0, 1, 20), *save(20.0, 1, 20), steps(30.0, 21, 25),
        fault(30.0, 1, symptom="node_loss", step=25, node=1),
        (30.0, "node_down", {"node": 1, "why": "bug", **COUNTS}),
        (31.0, "detected", {"fault": 1, "by": "heartbeat"}),
        (31.0, "job_end", {"outcome": "failed", "step": 25, "kept_step": 20, "reason": "no enabled layer contains it"}),
        (31.0, "run_end", {}),
    ))  # fmt: skip
    told = render(story).splitlines()
    assert "            node 1 leaves (bug): 1 working, 1 repair" in told
    assert "            never resumes; 5 steps (5s) lost" in told
    assert "FAILED after 31s at step 25 of 100: no enabled layer contains it; kept: 20 steps" in " ".join(
        " ".join(told).split()
    )
    assert story.incidents[0].end_s is None


def test_a_censored_run_ends_in_the_middle_of_a_save():
    story = tell(log(
        (0.0, "resumed", {"step": 0}), steps(20.0, 1, 20), (20.0, "save_begin", {"id": 1, "step": 20, "tier": "g"}),
        (23.0, "job_end", {"outcome": "censored", "step": 20, "kept_step": 0, "reason": "limits.max_wall reached"}),
        (23.0, "run_end", {}),
    ))  # fmt: skip
    told = " ".join(render(story).split())
    assert "CENSORED after 23s at step 20 of 100: limits.max_wall reached; kept: 0 steps" in told
    assert [(s.activity, s.end_s - s.start_s) for s in story.spans] == [("lost", 20.0), ("save", 3.0)]


def test_a_log_torn_off_says_so():
    story = tell(ONE_INCIDENT[:20])
    assert story.end.outcome == "cut"
    assert "CUT after" in render(story)
    assert tell([]).end.outcome == "cut"
    assert render(tell([]))


def test_what_does_not_stop_the_loop_is_told_within_its_stretch():
    story = tell(log(
        (0.0, "resumed", {"step": 0}),
        fault(3.0, 1, symptom="slowdown", step=3, node=0), (3.0, "slow_begin", {"node": 0, "factor": 2.0}),
        fault(4.0, 2, step=4, node=2, idle=True),
        (9.0, "slow_end", {"node": 0, "factor": 2.0}),
        steps(100.0, 1, 100), (100.0, "job_end", {"outcome": "completed", "step": 100}), (100.0, "run_end", {}),
        hot=1,
    ))  # fmt: skip
    assert story.incidents == []
    assert render(story).splitlines()[3:8] == [
        " 0:00:00  steps 1 to 100",
        "            0:00:03 fault 1: bug (slowdown) on node 0, the loop goes on",
        "            0:00:03 node 0 slows every step down 2-fold",
        "            0:00:04 fault 2: bug on idle spare 2, the job goes on",
        "            0:00:09 the slow-down is over",
    ]


def test_silent_corruption_stops_the_loop_when_it_is_noticed():
    story = tell(log(
        (0.0, "resumed", {"step": 0}), fault(3.0, 1, symptom="silent_corruption", step=3, node=0),
        steps(8.0, 1, 8), (8.0, "detected", {"fault": 1, "by": "check"}),
        (8.0, "layer_begin", {"layer": "fixed", "attempt": 1, "incident": 1}),
        (8.0, "layer_end", {"layer": "fixed", "attempt": 1, "incident": 1, "outcome": "resumed", "reason": ""}),
        (8.0, "resumed", {"step": 0}), steps(108.0, 1, 100),
        (108.0, "job_end", {"outcome": "completed", "step": 100}), (108.0, "run_end", {}),
    ))  # fmt: skip
    incident = story.incidents[0]
    assert (incident.start_s, incident.end_s, incident.steps_lost) == (8.0, 8.0, 8)
    assert incident.faults[0].noticed_after_s == 5.0


def test_only_the_first_incidents_are_told_in_full():
    events, t = [(0.0, "resumed", {"step": 0})], 0.0
    for number in range(1, 6):
        t += 10.0
        events += [steps(t, 1, 10), fault(t, number, step=10), (t, "detected", {"fault": number, "by": "monitor"}),
                   (t, "resumed", {"step": 0})]  # fmt: skip
    events += [steps(t + 100.0, 1, 100), (t + 100.0, "job_end", {"outcome": "completed", "step": 100})]
    told = render(tell(log(*events)), incidents=2)
    assert told.count("FAULT") == 2
    assert "3 more incidents, not shown" in told
    assert "COMPLETED" in told
    assert render(tell(log(*events))).count("FAULT") == 5


@pytest.mark.parametrize("width", [1, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width):
    story = tell(ONE_INCIDENT)
    assert max(map(len, render(story, width).splitlines())) <= max(width, 40)


@pytest.mark.parametrize(
    ("t", "days", "text"), [(0.4, False, "0:00:00"), (3725, False, "1:02:05"), (90061, True, "1d 01:01:01")]
)
def test_the_clock(t, days, text):
    assert clock(t, days) == text


def test_the_story_as_data():
    data = as_json(tell(ONE_INCIDENT))
    assert data["saves"] == {"begun": 3, "durable": 3, "stalled_s": 15.0}
    assert data["incidents"][0]["attempts"][0]["phases"][1] == {
        "name": "checkpoint_load",
        "dur_s": 4.0,
        "cut": False,
    }
    assert data["end"]["outcome"] == "completed"


BUSY = {
    "cluster": {"nodes": 4, "gpus_per_node": 8, "spares": {"hot": 1, "cold": 1},
                "repair": {"stages": [{"time": {"exponential": {"mean": "5h"}}}]}},
    "workload": {"step_time": "2s", "steps": 20_000, "process_start": "20s", "init": "30s", "warmup": "10s"},
    "checkpoint": {"mode": "async", "interval": "10min", "write_time": "5min", "stall_time": "3s", "load_time": "20s"},
    "failures": {"classes": [
        {"name": "bug", "mtbf": "3h", "per": "job", "scope": "job", "symptom": "exception"},
        {"name": "gpu", "mtbf": "20h", "scope": "node", "symptom": "gpu_error", "repair": True},
        {"name": "slow", "mtbf": "40h", "scope": "node", "symptom": "slowdown",
         "slowdown": {"factor": 1.5, "duration": "30min"}},
        {"name": "stuck", "mtbf": "5h", "per": "job", "scope": "rank", "symptom": "hang"},
    ]},
    "recovery": {"layers": ["in_process", "in_job", "node_replacement"], "nccl_timeout": "5min",
                 "node_replacement": {"provision": "15min"}, "in_process": {"success": 0.7}},
}  # fmt: skip


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["checkpoint={mode: sync, interval: 10min, write_time: 30s, load_time: 20s}"],
        ["checkpoint={mode: none}", "limits.max_wall=2d"],
        ["checkpoint={mode: ideal}"],
        ["recovery.layers=[in_process]"],
        ["checkpoint.on_busy=queue", "checkpoint.interval=2min"],
        ["recovery.layers=[fixed]", "recovery.fixed={detect: 30s, restart: 4min}"],
    ],
)
@pytest.mark.parametrize("replication", [0, 1, 2])
def test_the_story_uses_the_time_as_the_ledger_does(overrides, replication):
    events = run(load_scenario(BUSY, overrides), seed=1, replication=replication)
    ledger, story = account(events), tell(events)
    used = dict.fromkeys(("kept", "lost", "save", "start", "detect", "restart", "load", "node_wait"), 0.0)
    for before, after in zip(story.spans, story.spans[1:], strict=False):
        assert before.end_s == after.start_s
    for span in story.spans:
        used[span.activity] += span.end_s - span.start_s
    restarts = sum(s for name, s in ledger.seconds.items() if name.startswith("restart."))
    charged = ledger.seconds | {
        "kept": ledger.seconds["productive"] + ledger.seconds["slowdown"],
        "restart": restarts,
    }
    names = {"lost": "rework", "save": "checkpoint_stall", "start": "startup", "load": "checkpoint_load"}
    for activity, used_s in used.items():
        assert used_s == pytest.approx(charged[names.get(activity, activity)], abs=1e-6 * ledger.wall_s), (
            activity
        )
    assert len(story.incidents) == len(ledger.incidents)
    for told, counted in zip(story.incidents, ledger.incidents, strict=True):
        assert (told.start_s, told.end_s) == pytest.approx((counted.start_s, counted.end_s))
        assert told.steps_lost == counted.steps_lost
    assert render(story)


def test_the_chapters_are_of_four_kinds_and_end_once():
    chapters = tell(run(load_scenario(BUSY))).chapters
    assert {type(chapter) for chapter in chapters} == {Start, Stretch, IncidentStory, End}
    assert [isinstance(chapter, End) for chapter in chapters].count(True) == 1
    assert isinstance(chapters[-1], End)
