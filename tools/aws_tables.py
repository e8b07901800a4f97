"""The tables of docs/aws-benchmark.md, each made by the model when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from sim import aws_cascade, aws_eks, engine
from sim.aws_cascade import CHECKPOINT_S, RANGES, WEIGHTS_S, Cascade, apart, cascade, kubernetes, percentiles
from sim.ledger import RunLedger, account
from sim.metrics import paired_difference
from sim.published import RECOVERY_EVENT_S, figures
from sim.scenario import load_scenario
from sim.study import Result, simulate

RUNS, SWEEP_RUNS, DESIGNS = 200, 100, 200
K8S = "recovery.kubernetes"
BLOCKS: dict[str, Callable[[], str]] = {}


def block(function: Callable[[], str]) -> Callable[[], str]:
    """Register the maker of the block of this name."""
    BLOCKS[function.__name__.replace("_", "-")] = function
    return function


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; columns whose head begins with > stand right."""
    marks = ["---:" if head.startswith(">") else "---" for head in heads]
    lines = [[head.lstrip(">") for head in heads], marks, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def pct(share: float) -> str:
    """Write a share in percent."""
    return f"{100 * share:.1f}"


def spread(values: Sequence[float], text: Callable[[float], str]) -> str:
    """Write three percentiles."""
    return " / ".join(text(value) for value in values)


def whole(value: float) -> str:
    """Write seconds."""
    return f"{value:.0f}"


@cache
def of_the_run(name: str, *changes: str, runs: int = RUNS) -> Result:
    """Return a study of one of the benchmark's runs with overrides."""
    return simulate(load_scenario(name, list(changes)), replications=runs, seed=1)


def pods(*changes: str, runs: int = SWEEP_RUNS) -> Result:
    """Return a study of the Kubernetes run with overrides."""
    return of_the_run(aws_eks.KUBERNETES, *changes, runs=runs)


def short(name: str) -> str:
    """Return the name of a run as the article has it."""
    return name.removeprefix("aws-eks-nvrx-")


# --- the published rows


@block
def three_rows() -> str:
    """Return the three runs, published beside predicted."""
    rows = []
    for name in aws_eks.RUNS:
        result = of_the_run(name)
        reading = aws_eks.readings(result)
        for figure in figures(name):
            mean = result.metrics[figure.metric].mean
            low, high = result.metrics[figure.metric].ci95
            kind = "training" if figure.metric.startswith("training") else "infrastructure"
            rows.append(
                [short(name), f"{kind} goodput, %", pct(figure.value), pct(mean), f"{pct(low)} .. {pct(high)}",
                 f"{100 * (mean - figure.value):+.1f}", figure.claim]
            )  # fmt: skip
        event = result.metrics["recovery_event_s"]
        fault = result.metrics["incident_s"]
        rows.append([short(name), "seconds a restart event", f"~{RECOVERY_EVENT_S[name]:.0f}", whole(event.mean),
                     spread(event.ci95, whole).replace(" / ", " .. "), "", "not scored"])  # fmt: skip
        rows.append([short(name), "seconds a fault [I]", whole(reading.fault_published_s), whole(fault.mean),
                     spread(fault.ci95, whole).replace(" / ", " .. "), "", figures(name)[0].claim])  # fmt: skip
        rows.append([short(name), "restart events a fault [I]", f"{reading.events_a_fault:.1f}",
                     f"{events_a_fault(result.runs):.1f}", "", "", "not scored"])  # fmt: skip
    heads = ["run", "figure", ">published", ">model", ">95 % interval of the mean", ">off by", "label"]
    return table(heads, rows)


def events_a_fault(runs: Sequence[RunLedger]) -> float:
    """Return restart events over incidents, all runs together."""
    incidents = [incident for run in runs for incident in run.incidents]
    return sum(incident.restart_events for incident in incidents) / len(incidents)


@block
def why_31() -> str:
    """Return the training goodput of the in-process run with more and more of its losses counted."""
    name = aws_eks.IN_PROCESS
    steps = [
        ("only steps that are kept", ["failures.schedule=[]", "checkpoint={mode: none}", "workload.init=0s"]),
        ("+ the first set-up", ["failures.schedule=[]", "checkpoint={mode: none}"]),
        ("+ four blocking saves of 275 s", ["failures.schedule=[]"]),
        ("+ rework after five faults, restarts taking no time", ["recovery.layers=[fixed]"]),
        ("+ the restarts: the run as it is", []),
    ]
    rows = []
    for what, changes in steps:
        goodput = of_the_run(name, *changes, runs=20).metrics["training_goodput_aws"].mean
        rows.append([what, pct(goodput)])
    return table(["what is counted", ">training goodput, %"], rows)


@block
def where_the_time_goes() -> str:
    """Return the ledgers of the three runs, in shares of their wall time."""
    groups = {
        "kept steps": ("productive", "slowdown"),
        "saves and set-up": ("checkpoint_stall", "startup"),
        "rework": ("rework",),
        "restarts": ("detect", "checkpoint_load", "node_wait", "restart."),
    }
    ledgers = [of_the_run(name).ledger for name in aws_eks.RUNS]
    rows = [
        [group, *(pct(sum(x for key, x in led.items() if key.startswith(prefixes))) for led in ledgers)]
        for group, prefixes in groups.items()
    ]
    walls = [of_the_run(name).metrics["wall_time_s"].mean for name in aws_eks.RUNS]
    rows.append(["wall time, s", *(whole(wall) for wall in walls)])
    published = [aws_eks.published_wall_s(of_the_run(name)) for name in aws_eks.RUNS]
    rows.append(["wall time that the published goodput implies, s", *(whole(wall) for wall in published)])
    return table(["% of wall time", *(f">{short(name)}" for name in aws_eks.RUNS)], rows)


# --- one incident, and five


STALE_S = 290.0
"""A stretch of rendezvous this long is a store timeout of 300 s."""


@block
def one_incident() -> str:
    """Return, pod by pod, the second fault of the first run in which pod 1 waits out the store timeout."""
    scenario = kubernetes()
    for replication in range(RUNS):
        log = engine.run(scenario, 1, replication)
        incident = account(log).incidents[1]
        if incident.end_s is not None and incident.end_s - incident.start_s > STALE_S:
            break
    begun: dict[tuple[int, str], float] = {}
    found: list[list[str]] = []
    for event in log:
        if event["kind"] not in ("phase_begin", "phase_end") or event["rank"] is None:
            continue
        if not incident.start_s <= event["t"] <= incident.end_s:
            continue
        key = (event["rank"], event["phase"])
        if event["kind"] == "phase_begin":
            begun[key] = event["t"] - incident.start_s
        elif key in begun:
            end = event["t"] - incident.start_s
            found.append([f"{event['rank'] // 8}", event["phase"], f"{begun[key]:.0f}", f"{end:.0f}"])
    found.sort(key=lambda row: (float(row[2]), row[0]))
    title = f"Seconds after fault 2 (exception on pod 1), seed 1, replication {replication}:\n\n"
    return title + table(["pod", "phase", ">from", ">to"], found)


@block
def by_fault() -> str:
    """Return how long each of the five faults takes."""
    result = of_the_run(aws_eks.KUBERNETES)
    rows = []
    for number, fault in enumerate(result.scenario.failures.schedule):
        took = [run.incidents[number].end_s - run.incidents[number].start_s for run in result.runs]
        stale = sum(run.incidents[number].by_phase.get("rendezvous", 0.0) > STALE_S for run in result.runs)
        rows.append([f"{number + 1}", f"{fault.step}", f"{fault.rank // 8}", fault.symptom,
                     spread(percentiles(took), whole), pct(stale / len(took))])  # fmt: skip
    heads = ["fault", ">step", "pod", "symptom", ">incident, s: P10 / P50 / P90", ">store timeout waited, % of runs"]
    return table(heads, rows)


# --- ranges


@block
def ranges() -> str:
    """Return what is not published, and what it may be."""
    rows = []
    for path, r in RANGES.items():
        drawn = "each time" if path in aws_cascade.EVERY_TIME else "once a run"
        rows.append([f"`{path}`", f"{r.low:.0f} to {r.high:.0f} s", drawn, r.source])
    rows.append(["builds of two pods apart", f"0 to {WEIGHTS_S:.0f} s", "each time",
                 "one pod finds the 16 GB of weights in its page cache, the other reads them at 175 MB/s"])  # fmt: skip
    rows.append(["the same", f"0 to {CHECKPOINT_S:.0f} s", "each time", "the same with the checkpoint of 48.2 GB"])
    return table(["input", "range", "drawn", "why [I]"], rows)


CASCADE_HEADS = [
    "design", ">Job fails, %", ">training, %", ">infrastructure, %", ">events a fault", ">s an event",
    ">at the point, %",
]  # fmt: skip


def cascade_row(what: str, c: Cascade) -> list[str]:
    """Return one row of percentiles."""
    return [what, pct(c.failed), spread(c.training, pct), spread(c.infra, pct),
            spread(c.events, lambda x: f"{x:.1f}"), spread(c.event_s, whole), pct(c.at_the_point)]  # fmt: skip


@block
def what_the_ranges_give() -> str:
    """Return P10, P50 and P90 of the runs that completed, beside the published figures."""
    training, infra = (figure.value for figure in figures(aws_eks.KUBERNETES))
    published = of_the_run(aws_eks.KUBERNETES)
    events = aws_eks.readings(published).events_a_fault
    rows = [["published", "0", pct(training), pct(infra), f"{events:.1f} [I]", "~270", ""]]
    rows.append(cascade_row("the catalog's run", cascade(published.runs)))
    for path, r in RANGES.items():
        for end in (r.low, r.high):
            name = path.rpartition(".")[2]
            rows.append(cascade_row(f"`{name}` always {end:.0f} s", cascade(pods(f"{path}={end}s").runs)))
    for apart_s in (0.0, WEIGHTS_S, CHECKPOINT_S):
        more = f", builds up to {apart_s:.0f} s apart" if apart_s else ""
        rows.append(cascade_row(f"all ranges at once{more}", cascade(aws_cascade.run_designs(DESIGNS, apart_s))))
    for apart_s in (WEIGHTS_S, 180.0, CHECKPOINT_S):
        runs = pods(*apart(apart_s), runs=RUNS).runs
        rows.append(cascade_row(f"catalog, builds always up to {apart_s:.0f} s apart", cascade(runs)))
    return table(CASCADE_HEADS, rows)


@block
def other_timeouts() -> str:
    """Return the same with inputs moved that are published or have a default."""
    rows = [cascade_row("the catalog's run", cascade(pods().runs))]
    for what, change in (
        ("NCCL 30 s", "recovery.nccl_timeout=30s"),
        ("NCCL 120 s", "recovery.nccl_timeout=2min"),
        ("NCCL 600 s (torch's default, not what was set)", "recovery.nccl_timeout=10min"),
        ("store timeout 60 s", f"{K8S}.store_timeout=1min"),
        ("store timeout 900 s", f"{K8S}.store_timeout=15min"),
        ("join timeout 300 s", f"{K8S}.join_timeout=5min"),
        ("back-off cap 60 s", f"{K8S}.backoff.cap=1min"),
        ("back-off cap 600 s", f"{K8S}.backoff.cap=10min"),
    ):
        rows.append(cascade_row(what, cascade(pods(change).runs)))
    return table(CASCADE_HEADS, rows)


# --- where it locks up


LOCK_HEADS = ["", ">Job fails, %", ">incident, s: P10 / P50 / P90", ">infrastructure, %: P10 / P50 / P90"]


def lock_row(what: str, result: Result) -> list[str]:
    """Return one row of a sweep."""
    c = cascade(result.runs)
    return [what, pct(c.failed), spread(c.incident_s, whole), spread(c.infra, pct)]


@block
def join_timeout() -> str:
    """Return what the wait of pod 0's agent for the other one does."""
    heads = ["join timeout", *LOCK_HEADS[1:]]
    waits = (15, 30, 60, 120, 300, 900)
    return table(heads, [lock_row(f"{s} s", pods(f"{K8S}.join_timeout={s}s")) for s in waits])


@block
def builds_apart_by_nccl() -> str:
    """Return median goodput and failed runs by how far apart the pods build and by the NCCL timeout."""
    timeouts = (30, 60, 120, 300)
    rows = []
    for apart_s in (0.0, 60.0, WEIGHTS_S, 180.0, CHECKPOINT_S):
        row = [f"up to {apart_s:.0f} s"]
        for nccl_s in timeouts:
            c = cascade(pods(*apart(apart_s), f"recovery.nccl_timeout={nccl_s}s").runs)
            row.append(f"{pct(c.infra[1])} ({100 * c.failed:.0f})")
        rows.append(row)
    return table(["builds apart", *(f">NCCL {s} s" for s in timeouts)], rows)


@block
def backoff_cap() -> str:
    """Return what the cap of the back-off does where pods chase each other."""
    heads = [f"cap, builds up to {CHECKPOINT_S:.0f} s apart", *LOCK_HEADS[1:]]
    rows = [
        lock_row(f"{s} s", pods(*apart(CHECKPOINT_S), f"{K8S}.backoff.cap={s}s", runs=RUNS))
        for s in (10, 60, 300, 600)
    ]
    return table(heads, rows)


@block
def knife_edge() -> str:
    """Return the mean incident of each fault by the reset of the back-off."""
    rows = []
    for minutes in (5, 10, 11, 12, 13, 15):
        runs = pods(f"{K8S}.backoff.reset={minutes}min").runs
        took = [[i.end_s - i.start_s for i in run.incidents if i.end_s is not None] for run in runs]
        means = [sum(column) / len(column) for column in zip(*took, strict=True)]
        rows.append([f"{minutes} min", *(whole(mean) for mean in means)])
    return table(["reset after", *(f">fault {n}, s" for n in range(1, 6))], rows)


# --- what would have helped


ASYNC = (
    "checkpoint={mode: async, interval: 500 steps, write_time: 275s, stall_time: 2.9s, load_time: 0s, on_busy: wait,"
    " bytes: 48.2GB}"
)
WHAT_IF = (
    ("asynchronous saves (2.9 s of stall [I])", ASYNC),
    ("a first checkpoint at 250 steps, and every 250", "checkpoint.interval=250 steps"),
    ("a first checkpoint at 60 steps, and every 60", "checkpoint.interval=60 steps"),
    ("both: asynchronous and every 250 steps", f"{ASYNC}; checkpoint.interval=250 steps"),
    ("store timeout 60 s", f"{K8S}.store_timeout=1min"),
    ("store timeout 900 s", f"{K8S}.store_timeout=15min"),
    ("back-off cap 60 s", f"{K8S}.backoff.cap=1min"),
    ("NCCL timeout 30 s", "recovery.nccl_timeout=30s"),
    ("NCCL timeout 120 s", "recovery.nccl_timeout=2min"),
    ("JobSet: all containers restarted in place", f"{K8S}.in_place=true; {K8S}.version='1.35'"),
)


@block
def what_would_have_helped() -> str:
    """Return paired differences: the same draws with and without a change."""
    rows = []
    for what, changes in WHAT_IF:
        row = [what]
        for apart_s in (0.0, WEIGHTS_S):
            base = pods(*apart(apart_s))
            other = pods(*apart(apart_s), *changes.split("; "))
            for metric in ("training_goodput_aws", "infra_goodput_aws"):
                d = paired_difference(metric, other.runs, base.runs)
                half = 100 * (d.ci95[1] - d.ci95[0]) / 2 if d.ci95 else 0.0
                row.append(f"{100 * d.mean:+.1f} ± {half:.1f}")
        rows.append(row)
    heads = [
        "change", ">training", ">infrastructure", f">training, builds up to {WEIGHTS_S:.0f} s apart", ">infrastructure",
    ]  # fmt: skip
    return table(heads, rows)


# --- saves


def efficiency(mode: str, interval: int, saves: int = 10) -> float:
    """Return the script's efficiency of a run of so many saves on 64 GPUs."""
    changes = (f"checkpoint.interval={interval} steps", f"workload.steps={interval * saves}")
    result = of_the_run(f"aws-eks-save-{mode}", *changes, runs=1)
    return result.metrics["save_efficiency_aws"].mean


@block
def save_table() -> str:
    """Return the efficiency of saves on 64 GPUs."""
    rows = [
        ["sync", "1000", "60.3", pct(efficiency("sync", 1000)), "fitted (step time 0.418 s)"],
        ["sync", "100", "14.7", pct(efficiency("sync", 100)), "predicted"],
        ["async", "1000", "99.8", pct(efficiency("async", 1000)), "fitted (stall 0.84 s)"],
    ]
    rows += [
        ["async", f"100, {saves} saves", "29.6", pct(efficiency("async", 100, saves)), "predicted"]
        for saves in (5, 6, 7, 10, 22)
    ]
    endless = of_the_run("aws-eks-save-async", "checkpoint.interval=100 steps", "workload.steps=20000", runs=1).runs[0]
    rows.append(["async", "100, steady state", "", pct(endless.seconds["productive"] / endless.wall_s), "predicted"])
    return table(["saves", ">interval, steps", ">published, %", ">model, %", "label"], rows)


@block
def break_even() -> str:
    """Return the interval from which no asynchronous save waits any more."""
    rows = []
    for gpus, step_s in ((16, 0.365), (64, 0.418)):
        interval = next(n for n in range(1, 2000) if n * step_s >= 275.0)
        length = (f"checkpoint.interval={interval} steps", f"workload.steps={10 * interval}")
        found = []
        for mode in ("async", "sync"):
            result = of_the_run(f"aws-eks-save-{mode}", f"workload.step_time={step_s}s", *length, runs=1)
            found.append(pct(result.metrics["save_efficiency_aws"].mean))
        rows.append([f"{gpus}", f"{step_s}", f"{interval}", *found])
    return table([">GPUs", ">step, s", ">break-even, steps", ">async there, %", ">sync there, %"], rows)
