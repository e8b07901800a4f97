"""The page of one run: well-formed, self-contained, harmless, and drawn from the very seconds of the ledger."""

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim import cli
from sim.cli import runner
from sim.engine import run
from sim.events import write_jsonl
from sim.ledger import account
from sim.scenario import load_scenario
from sim.timeline import bands, chart, job_log, rows, tell
from sim.timeline.looks import FAMILIES, PHASE_TILES, TILES, of_band
from sim.timeline.page import page
from tests.sim.event_logs import Log
from tests.sim.random_logs import random_log

VOID = {"meta", "link", "input", "br", "hr", "img", "wbr"}
SPARES = {
    "name": "spares",
    "cluster": {
        "nodes": 4, "gpus_per_node": 2, "spares": {"hot": 1, "cold": 1},
        "repair": {"stages": [{"time": "2h"}], "crews": 1},
    },
    "workload": {"step_time": "2s", "steps": 20_000, "init": "30s", "warmup": "20s"},
    "checkpoint": {"mode": "async", "interval": "10min", "write_time": "60s", "stall_time": "2s", "load_time": "10s"},
    "failures": {
        "classes": [
            {"name": "gpu", "mtbf": "2h", "per": "job", "scope": "node", "symptom": "gpu_error", "repair": True},
            {"name": "slow", "mtbf": "4h", "per": "job", "scope": "node", "symptom": "slowdown",
             "slowdown": {"factor": 2, "duration": "10min"}},
            {"name": "hang", "mtbf": "6h", "per": "job", "scope": "rank", "symptom": "hang"},
        ]
    },
    "recovery": {"layers": ["in_job", "node_replacement", "fixed"], "nccl_timeout": "5min",
                 "in_job": {"success": 0.7}, "node_replacement": {"provision": "3min"}, "fixed": {"restart": "4min"}},
}  # fmt: skip


class Elements(HTMLParser):
    """Reads a page strictly: every element is closed in its turn, no id is given twice."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.found, self.ids, self.texts, self.script = [], [], {}, [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        assert len(named) == len(attributes), f"{tag} has an attribute twice"
        self.found.append((tag, named))
        if "id" in named:
            assert named["id"] not in self.ids
            self.ids[named["id"]] = tag
        if tag not in VOID:
            self.open.append((tag, named))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1][0] in ("script", "style"):
            self.script[self.open[-1][1].get("id", self.open[-1][0])] = data
        else:
            self.texts.append(data)


def draw(events, title="a run", **origin):
    return page(events, account(events), tell(events), {"seed": 1, **origin}, title)


def data_of(text):
    return json.loads(Elements(text).script["data"])


def seconds_of(data):
    """Return category -> seconds as the chart draws them."""
    found = {}
    for place, (lasts, look) in enumerate(zip(data["job"]["d"], data["job"]["k"], strict=True)):
        slow = data["job"]["s"].get(str(place), data["job"]["s"].get(place, 0.0))
        category = data["looks"][look][3]
        found[category] = found.get(category, 0.0) + lasts - slow
        found["slowdown"] = found.get("slowdown", 0.0) + slow
    return {name: s for name, s in found.items() if s}


@pytest.fixture(scope="module")
def spares():
    return run(load_scenario(SPARES), 1, 0)


@pytest.fixture(scope="module")
def spares_page(spares):
    return draw(spares, "spares")


@pytest.fixture(scope="module")
def in_job():
    return run(load_scenario("aws-eks-nvrx-in-job"), 1, 0)


# --- the file


def test_every_element_is_closed_in_its_turn(spares_page, in_job):
    for text in (spares_page, draw(in_job), draw([])):
        assert {"chart", "incidents", "ledger", "tip", "data"} <= Elements(text).ids.keys()


def test_what_the_script_looks_for_is_there(spares_page):
    elements = Elements(spares_page)
    wanted = set(re.findall(r'\bel\("([\w-]+)"\)', elements.script["script"]))
    assert {"chart", "stage", "map", "spacer", "window"} <= wanted
    assert wanted <= elements.ids.keys()
    refers = [
        named[key]
        for _, named in elements.found
        for key in named
        if key in ("aria-labelledby", "aria-describedby", "aria-controls")
    ]  # noqa: E501
    assert refers
    assert set(refers) <= elements.ids.keys()
    fills = set(re.findall(r"url\(#([\w-]+)\)", spares_page))
    assert fills
    assert fills <= elements.ids.keys()


def test_it_needs_nothing_from_elsewhere(spares_page):
    assert re.findall(r"https?:|//[a-z]", spares_page.replace("// ", "")) == []
    elements = Elements(spares_page)
    for tag, named in elements.found:
        assert named.get("src") is None, tag
        assert named.get("href", "data:,") == "data:,"
    assert not re.search(r"@import|url\((?!#)|\bfetch\b|XMLHttpRequest|\bimport\b|eval\(", spares_page)
    policy = next(named["content"] for _, named in elements.found if "http-equiv" in named)
    assert policy.startswith("default-src 'none'")


def test_a_normal_run_is_small(in_job):
    assert len(draw(in_job).encode()) < 100_000


def test_the_same_run_gives_the_same_bytes(spares, spares_page):
    assert draw(run(load_scenario(SPARES), 1, 0), "spares") == spares_page
    assert draw(list(spares), "spares") == spares_page


def named(word):
    """Return the page of a run in which everything bears the name `word`."""
    log = Log(run=word, nodes=2, source="live")
    log.phase(0, 1, "init")(1, "resumed", step=0).steps(3, 1, 2).save(3, 4, word, 2).steps(6, 3, 4)
    log.fault(6, word, class_=word, node=word, scope="node", step=4).detected(7, word, by=word)
    log.layer(7, "in_job").phase(7, 9, "init", "in_job")
    log(9, "layer_end", layer="in_job", attempt=1, incident=1, outcome="failed", reason=word)
    log(9, "node_down", node=word, why=word, working=1, hot=0, cold=0, repair=1, retired=0)
    return draw(log.end(12, "failed", 4, kept_step=2), word, file=word)


@pytest.mark.parametrize(
    "evil",
    [
        "<script>alert(1)</script>",
        "</script><img src=x onerror=alert(1)>",
        "<!--<script>",
        "\"'><b a=1>&amp;",
        "{{data}}",
    ],
)
def test_names_are_text_wherever_they_come_from(evil):
    elements, plain = Elements(named(evil)), Elements(named("harmless"))
    assert [(tag, list(has)) for tag, has in elements.found] == [(tag, list(has)) for tag, has in plain.found]
    assert "".join(elements.texts).count(evil) == "".join(plain.texts).count("harmless") >= 8
    texts = json.loads(elements.script["data"])["texts"]
    assert [text for text in texts if evil in text] != []
    assert elements.script["script"] == plain.script["script"]


# --- what is drawn is what was accounted


def agrees(events):
    ledger = account(events)
    painted = bands.bands(job_log(events), ledger)
    at, found = 0.0, {}
    for band in painted:
        assert band.start_s == pytest.approx(at, abs=1e-9 * (1 + ledger.wall_s))
        assert band.end_s > band.start_s
        assert 0.0 <= band.slow_s <= (band.end_s - band.start_s) * (1 + 1e-9)
        at = band.end_s
        for name, seconds in band.seconds().items():
            found[name] = found.get(name, 0.0) + seconds
    assert at == pytest.approx(ledger.wall_s, abs=1e-9 * (1 + ledger.wall_s)) or not painted
    for name in {*found, *ledger.seconds}:
        close = pytest.approx(ledger.seconds.get(name, 0.0), abs=1e-9 * (1 + ledger.wall_s))
        assert found.get(name, 0.0) == close, name
    return painted, ledger


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from(["simulated", "live", "imported"]), st.floats(0, 1))
def test_the_bands_cover_the_wall_time_with_the_ledgers_seconds(seed, source, torn):
    log = random_log(seed)
    log = [{**event, "source": source} if event["kind"] == "run_start" else event for event in log]
    agrees(log)
    agrees(log[: 1 + round(torn * (len(log) - 1))])


def test_bands_of_several_ranks_are_those_of_the_job():
    story = [{**e, "source": "live"} if e["kind"] == "run_start" else e for e in random_log(7)]
    ranks = [{**event, "rank": rank} for event in story for rank in (2, 0, 1)]
    assert agrees(ranks)[0] == agrees(story)[0]


@pytest.mark.parametrize(
    "name", ["aws-eks-nvrx-in-process", "aws-eks-nvrx-in-job", "aws-eks-save-async", "spares"]
)
def test_the_seconds_in_the_page_are_the_ledgers(name, spares):
    events = spares if name == "spares" else run(load_scenario(name), 1, 0)
    data, ledger = data_of(draw(events)), account(events)
    rounding = 1e-6 * len(data["job"]["d"])
    assert data["wall"] == pytest.approx(ledger.wall_s, abs=1e-6)
    assert sum(data["job"]["d"]) == pytest.approx(ledger.wall_s, abs=rounding)
    found = seconds_of(data)
    for category in {*found, *ledger.seconds}:
        assert found.get(category, 0.0) == pytest.approx(ledger.seconds.get(category, 0.0), abs=rounding), (
            category
        )


def test_thinned_bands_keep_every_second_and_their_place():
    events = run(load_scenario(SPARES), 2, 0)
    painted, ledger = agrees(events)
    most = 40
    thin = bands.thinned([bands.Band(**vars(band)) for band in painted], ledger.wall_s, most)
    assert len(thin) < len(painted) / 3

    def share(found, category, until):
        return sum(
            max(0.0, min(band.end_s, until) - band.start_s) for band in found if band.category == category
        )

    cell_s = 8 * ledger.wall_s / most
    for category in ledger.seconds:
        assert share(thin, category, ledger.wall_s) == pytest.approx(share(painted, category, ledger.wall_s))
        for i in range(20):
            until = ledger.wall_s * i / 20
            assert share(thin, category, until) == pytest.approx(share(painted, category, until), abs=cell_s)
    assert [band.start_s for band in thin[1:]] == pytest.approx([band.end_s for band in thin[:-1]])


def test_the_ledger_on_the_page_sums_to_100(spares_page):
    ledger = re.search(r'<table id="ledger">.*?</table>', spares_page, re.S)[0]
    rows_of_it = ledger.partition('<tr class="total">')[0].split("<tr>")[2:]
    cells = [re.search(r'<td class="n">([\d.]+)</td>', row)[1] for row in rows_of_it]
    assert len(cells) >= 8
    assert sum(map(float, cells)) == pytest.approx(100.0, abs=0.005 * len(cells))  # each is rounded by itself
    assert '<td class="n">100.00</td>' in ledger


def test_a_stretch_rolled_back_is_cut_at_its_step():
    log = (
        Log().phase(0, 5, "init")(5, "resumed", step=0).steps(15, 1, 10).save(15, 16, 1, 10).steps(26, 11, 20)
    )
    log.fault(26.5).detected(28).layer(28, "in_job").phase(28, 30, "init", "in_job").layer_end(30, "in_job")
    log(30, "resumed", step=14).steps(116, 15, 100).end(116)
    told = [(b.start_s, b.end_s, b.category, b.phase, b.steps) for b in agrees(log)[0]]
    assert told == [
        (0, 5, "startup", "init", None),
        (5, 15, "productive", "", (0, 10)),
        (15, 16, "checkpoint_stall", "", None),
        (16, 20, "productive", "", (10, 14)),
        (20, 26, "rework", "", (14, 20)),
        (26, 26.5, "rework", "", None),
        (26.5, 28, "detect", "", None),
        (28, 30, "restart.in_job", "init", None),
        (30, 116, "productive", "", (14, 100)),
    ]


# --- the rows


def pieces(row):
    return [(piece.start_s, piece.end_s, piece.look.family, piece.note) for piece in row.pieces]


def test_a_node_goes_and_a_spare_takes_its_place():
    log = Log(nodes=2, spares={"hot": 1, "cold": 1})(0, "resumed", step=0).steps(10, 1, 10)
    log.fault(10, node=1, scope="node")
    log(10, "node_down", node=1, why="gpu", working=1, hot=1, cold=1, repair=1, retired=0)
    log(10, "node_up", node=2, to="working", working=2, hot=0, cold=1, repair=1, retired=0).detected(11)
    log.layer(11, "in_job").layer_end(12, "in_job")(12, "resumed", step=0)
    log(20, "slow_begin", node=0, factor=1.5)(30, "slow_end", node=0)
    log(40, "node_up", node=1, to="hot", working=2, hot=1, cold=1, repair=0, retired=0)
    log(50, "node_down", node=2, why="gpu", working=1, hot=1, cold=1, repair=0, retired=1)
    log.steps(112, 1, 100).end(112)
    found = {row.name: row for row in rows.node_rows(job_log(log), tell(log))}
    assert list(found) == ["node 0", "node 1", "node 2"]
    assert pieces(found["node 0"]) == [
        (0, 112, "works", ""), (20, 30, "slow", "every step takes 1.5 times as long"),
    ]  # fmt: skip
    assert pieces(found["node 1"]) == [
        (0, 10, "works", ""), (10, 40, "repair", "left: gpu"), (40, 112, "hot", "back as a hot spare"),
    ]  # fmt: skip
    assert pieces(found["node 2"]) == [
        (0, 10, "hot", ""), (10, 50, "works", "joined the job"), (50, 112, "retired", "left: gpu"),
    ]  # fmt: skip
    assert found["node 1"].strikes == [(10, 1)]
    titles = [group["title"] for group in data_of(draw(log))["groups"]]
    assert titles == ["Restart layers", "Nodes that something happened to (3 of 4)"]


def test_attempts_and_writes_have_rows_of_their_own():
    log = Log()(0, "resumed", step=0).steps(10, 1, 10).save(10, 14, "a", 10, staged=11)
    log.steps(21, 11, 20)(21, "save_begin", id="b", step=20, tier="global").fault(22)
    log(22, "save_failed", id="b", step=20, tier="global", reason="fault").detected(23)
    log.layer(23, "in_process").layer_end(25, "in_process", "escalated").layer(25, "in_job", 2)
    log.layer_end(29, "in_job", attempt=2)(29, "resumed", step=10).steps(119, 11, 100).end(119)
    told, tale = job_log(log), tell(log)
    assert [(row.name, pieces(row)) for row in rows.layer_rows(told, tale)] == [
        ("in_job", [(25, 29, "attempt", "attempt 2, resumed")]),
        ("in_process", [(23, 25, "attempt_failed", "attempt 1, escalated")]),
    ]
    assert [(row.name, pieces(row)) for row in rows.write_rows(told, tale)] == [
        ("writes global", [
            (10, 14, "write", "save a, step 10, durable"), (21, 22, "write_lost", "save b, step 20, lost: fault"),
        ])
    ]  # fmt: skip


def two_ranks():
    log = Log(source="live", nodes=1)
    for rank in (0, 1):
        log.rank = rank
        log.phase(0, 3 + rank, "init")(3 + rank, "resumed", step=0)
    log.rank = 0
    log.steps(14, 1, 10).fault(14, rank=0).detected(15)
    for rank in (1, 0):
        log.rank = rank
        log.phase(15, 18 + rank, "rendezvous", "in_job")(18 + rank, "resumed", step=0)
    log.rank = 0
    return log.steps(119, 1, 100).end(119)


def test_ranks_that_tell_of_themselves_have_rows():
    log = two_ranks()
    found = rows.process_rows(log, tell(log))
    assert [(row.name, row.group) for row in found] == [("rank 0", "ranks"), ("rank 1", "ranks")]
    assert [piece[:3] for piece in pieces(found[0])] == [
        (0, 3, "startup"), (3, 14, "works"), (15, 18, "restart"), (18, 119, "works"),
    ]  # fmt: skip
    assert [piece[:3] for piece in pieces(found[1])] == [
        (0, 4, "startup"), (4, 14, "works"), (15, 19, "restart"), (19, 119, "works"),
    ]  # fmt: skip
    assert [len(row.strikes) for row in found] == [1, 0]
    assert "on rank 0" in draw(log)


def pods(count, incidents=1):
    """Return a simulated log with the phases of every pod beside those of the job."""
    log = Log(nodes=count, steps=10 * incidents + 10)(0, "resumed", step=0)
    t = 0
    for number in range(incidents):
        log.rank = None
        t += 10
        log.steps(t, 10 * number + 1, 10 * number + 10).save(t, t + 1, number, 10 * number + 10)
        t += 1
        log.fault(t, number, node=count - 1, rank=8 * count - 3).detected(t, number).layer(t, "kubernetes")
        log.phase(t, t + 6, "backoff", "kubernetes").phase(t + 6, t + 9, "init", "kubernetes")
        for pod in range(count):
            log.rank = 8 * pod
            wait = 6 if pod == count - 1 else 5
            log.phase(t, t + wait, "backoff", "kubernetes").phase(t + wait, t + 9, "init", "kubernetes")
        log.rank = None
        t += 9
        log.layer_end(t, "kubernetes")(t, "resumed", step=10 * number + 10)
    t += 10
    log.steps(t, 10 * incidents + 1, 10 * incidents + 10).end(t, step=10 * incidents + 10)
    log.sort(key=lambda event: event["t"])
    return log


def test_pods_have_rows_and_the_job_keeps_its_own():
    log = pods(3)
    found = rows.process_rows(log, tell(log))
    assert [row.name for row in found] == ["pod of rank 0", "pod of rank 8", "pod of rank 16"]
    assert [piece[:3] for piece in pieces(found[0])] == [
        (0, 11, "works"), (11, 16, "restart"), (16, 20, "restart"), (20, 30, "works"),
    ]  # fmt: skip
    assert [len(row.strikes) for row in found] == [0, 0, 1]
    [incident] = tell(log).incidents
    assert [(p.name, p.dur_s) for p in incident.attempts[0].phases] == [("backoff", 6), ("init", 3)]
    agrees(log)


def test_many_pods_are_shown_struck_ones_first(monkeypatch):
    monkeypatch.setattr(chart, "MOST_ROWS", 2)
    group = data_of(draw(pods(5)))["groups"][-1]
    assert group["title"] == "Pods: 2 of 5 rows, the others are left out"
    assert [row["name"] for row in group["rows"]] == ["pod of rank 0", "pod of rank 32"]


def test_a_restart_without_a_logged_fault_is_an_incident():
    log = Log(source="imported")(0, "resumed", step=0).steps(10, 1, 10)(15, "job_start")(
        20, "resumed", step=0
    )
    log.steps(120, 1, 100).end(120)
    [incident] = tell(log).incidents
    assert (incident.start_s, incident.end_s, incident.faults) == (10, 20, [])
    assert "the log knows of no fault" in draw(log)


# --- size


def test_a_long_run_stays_small():
    log = Log(nodes=2048, steps=4000)(0, "resumed", step=0)
    t, step = 0.25, 0
    for number in range(400):
        for _ in range(10):
            t, step = t + 100.123456, step + 1
            log.steps(t, step, step, dur_s=100.1).save(t, t + 1.5, step, step, staged=t + 0.7)
        log.fault(t + 2, f"f{number}", "gpu_error", node=5 * number, scope="node").detected(
            t + 40, f"f{number}"
        )
        log(t + 40, "node_down", node=5 * number, why="gpu", working=2047, hot=0, cold=0, repair=1, retired=0)
        log(
            t + 40, "node_up", node=5 * number, to="working", working=2048, hot=0, cold=0, repair=0, retired=0
        )
        log.layer(t + 40, "in_job").phase(t + 40, t + 90, "rendezvous", "in_job").phase(
            t + 90, t + 160, "init", "in_job"
        )
        log.layer_end(t + 160, "in_job")(t + 160, "resumed", step=step)
        t += 160
    text = draw(log.end(t, step=4000))
    assert text.count("<tr data-i=") == 400
    assert 100_000 < len(text.encode()) < 1_500_000
    Elements(text)


def test_whatever_the_run_the_page_stays_below_3_mb(monkeypatch):
    monkeypatch.setattr(chart, "MOST_BANDS", 4_000)  # a tenth of all bounds, for a run a tenth as long
    monkeypatch.setattr(chart, "MOST_PIECES", 4_000)
    log = pods(40, incidents=150)
    assert len(draw(log).encode()) < 600_000


# --- looks


def test_nothing_is_told_by_hue_alone():
    pairs = {(f.colour, f.tile) for f in FAMILIES[:9]}
    assert len(pairs) == 9
    assert len({f.colour for f in FAMILIES[:9]}) == 9
    assert len({f.mark for f in FAMILIES[:9]}) == 9
    assert all(f.label for f in FAMILIES)
    assert set(PHASE_TILES.values()) <= TILES.keys()
    looks = [of_band("restart.in_job", phase, "in_job") for phase in PHASE_TILES]
    assert len({look.tile for look in looks}) == len({look.label for look in looks}) == len(PHASE_TILES)


def test_words_can_be_read_on_their_colours():
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for f in FAMILIES:
        a, b = sorted((light(f.colour), light(f.ink)))
        assert (b + 0.05) / (a + 0.05) >= 4.5, f.key  # WCAG 2.1, contrast minimum


# --- the command


@pytest.fixture
def goodput(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["goodput", *map(str, arguments)])
        code = runner.run(cli.app)
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def test_the_command_writes_a_page(goodput, tmp_path):
    target = tmp_path / "run.html"
    code, out, err = goodput("timeline", "aws-eks-nvrx-in-job", "--replication", "1", "--html", target)
    assert (code, err) == (0, "")
    assert re.search(r"Page of \d+\.\dkB, to open in a browser: ", out)
    assert str(target) in out
    text = target.read_text(encoding="utf-8")
    for told in (
        "aws-eks-nvrx-in-job",
        "scenario hash",
        "replication",
        "version",
        f"--replication 1 --html {target}",
    ):
        assert told in "".join(Elements(text).texts)
    assert os.listdir(tmp_path) == ["run.html"]
    assert goodput("timeline", "aws-eks-nvrx-in-job", "--replication", "1", "--html", target)[0] == 0
    assert target.read_text(encoding="utf-8") == text


def test_the_command_as_json_names_the_page(goodput, tmp_path):
    code, out, _ = goodput("timeline", "aws-eks-nvrx-in-job", "--html", tmp_path / "x.html", "--json")
    assert (code, json.loads(out)["html"]) == (0, str(tmp_path / "x.html"))


def test_recorded_logs_are_told_and_drawn(goodput, tmp_path, in_job):
    log = tmp_path / "run.jsonl"
    write_jsonl(log, in_job)
    code, told, err = goodput("timeline", log, "--html", tmp_path / "x.html")
    assert (code, err) == (0, "")
    simulated = goodput("timeline", "aws-eks-nvrx-in-job")[1]
    assert told.split("\n\n")[:2] == simulated.split("\n\n")[:2]
    texts = "".join(Elements((tmp_path / "x.html").read_text(encoding="utf-8")).texts)
    assert f"goodput timeline {log} --html {tmp_path / 'x.html'}" in texts
    data = json.loads(goodput("timeline", log, "--json")[1])
    assert (data["logs"], data["source"], len(data["incidents"])) == ([str(log)], "simulated", 5)


def test_logs_of_ranks_are_told_together(goodput, tmp_path):
    names = [tmp_path / f"rank{rank}.jsonl" for rank in (0, 1)]
    for rank, name in enumerate(names):
        write_jsonl(
            name, [event for event in two_ranks() if event["rank"] == rank or event["kind"] == "run_start"]
        )
    code, out, _ = goodput("timeline", *names)
    assert code == 0
    assert "exception on rank 0" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["aws-eks-nvrx-in-job", "--html", "{dir}/no/x.html"], "no: no such folder to write to"),
        (["aws-eks-nvrx-in-job", "--html", "{dir}"], "is a folder, not a file to write"),
        (["{log}", "--seed", "2"], "--seed: is for a scenario"),
        (["{log}", "--replication", "0", "--set", "a=1"], "--set: is for a scenario"),
        (["{log}", "--log", "{dir}/y"], "--log: is for a scenario"),
        (["{log}", "aws-eks-nvrx-in-job"], "SOURCE: must be one scenario, or the event logs of one run"),
        (["{dir}/none.jsonl"], "none.jsonl: cannot be read"),
        (["{dir}/empty.jsonl"], "no events"),
        (["{log}", "{dir}/other.jsonl"], "2 runs, where a timeline tells one"),
    ],
)  # fmt: skip
def test_wrong_input_is_exit_2_and_leaves_nothing(goodput, tmp_path, in_job, arguments, says):
    write_jsonl(tmp_path / "run.log", in_job)
    write_jsonl(tmp_path / "other.jsonl", [{**event, "run": "other"} for event in in_job])
    (tmp_path / "empty.jsonl").write_text("")
    before = sorted(os.listdir(tmp_path))
    places = {"dir": tmp_path, "log": tmp_path / "run.log"}
    code, out, err = goodput("timeline", *(text.format(**places) for text in arguments))
    assert (code, out) == (2, "")
    assert says in err
    assert sorted(os.listdir(tmp_path)) == before


def test_a_page_that_cannot_be_finished_leaves_the_old_one(goodput, tmp_path, monkeypatch):
    target = tmp_path / "run.html"
    target.write_text("the old one")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, _, err = goodput("timeline", "aws-eks-nvrx-in-job", "--html", target)
    assert (code, err) == (2, f"error: {target}: No space left on device\n")
    assert target.read_text() == "the old one"
    assert os.listdir(tmp_path) == ["run.html"]


def test_the_template_is_packaged():
    root = Path(chart.__file__).parent
    assert {path.suffix for path in root.glob("page.*")} == {".py", ".html", ".css", ".js"}
    packaged = (root.parents[1] / "pyproject.toml").read_text()
    assert '"timeline/page.*"' in packaged
