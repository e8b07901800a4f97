"""The command `timeline`: one run told and drawn, whether simulated now or recorded in event logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from sim.accounts.event_kinds import Event, EventError
from sim.cli import out as cli_out
from sim.cli import study as cli_study
from sim.scenario import load_scenario
from sim.schema.fields import Problem, ScenarioError
from sim.units import format_bytes, shown
from sim.warn import warnings_for, warnings_for_log

ALL_INCIDENTS = "all"
DEFAULT_SEED = 1


@dataclass(frozen=True)
class _Run:
    """A run and where it comes from: for a page's foot, and for the reader of its JSON."""

    title: str
    events: list[Event]
    origin: dict[str, Any]
    record: dict[str, Any]
    provenance: dict[str, Any]
    warnings: Sequence[Any]
    command: list[str]


def run(
    sources: Sequence[str],
    sets: Sequence[str],
    seed: int | None,
    replication: int | None,
    engine: str,
    log: Path | None,
    html: Path | None,
    incidents: str,
    as_json: bool,
) -> None:
    """Tell one run; write its log and its page if asked to."""
    from sim import events, export, timeline
    from sim.timeline import text as timeline_text

    cli_out.check_engine(engine)
    limit = _limit(incidents)
    for path in (log, html):
        cli_out.check_place(path)
    if all(_is_log(source) for source in sources):
        made = {"--set": sets or None, "--seed": seed, "--replication": replication, "--log": log}
        told = _recorded(sources, [name for name, value in made.items() if value is not None])
    elif len(sources) > 1:
        raise ScenarioError(
            [Problem("SOURCE", f"must be one scenario, or the event logs of one run {shown(list(sources))}")]
        )
    else:
        told = _simulated(sources[0], sets, DEFAULT_SEED if seed is None else seed, replication or 0)
    tale = timeline.tell(told.events)
    if incidents == ALL_INCIDENTS:
        told.command.extend(["--incidents", ALL_INCIDENTS])
    if html is not None:
        told.command.extend(["--html", str(html)])
    page = None if html is None else _page(told, tale)
    if log is not None:
        events.write_jsonl(log, told.events)
    if html is not None and page is not None:
        export.write(html, page)
    if as_json:
        cli_out.print_json(
            told.record
            | timeline_text.as_json(tale)
            | ({} if html is None else {"html": str(html)})
            | {"warnings": cli_out.warning_records(told.warnings), "provenance": told.provenance}
        )
        return
    out = cli_out.console()
    out.print(Text(timeline_text.render(tale, out.width, limit)), soft_wrap=True)
    if limit is not None and len(tale.incidents) > limit:
        out.print(Text("\n  --incidents all tells every incident", style="dim"))
    if log is not None:
        out.print(Text(f"\nEvent log of {len(told.events)} events: {log}"), soft_wrap=True)
    if page is not None:
        size = format_bytes(len(page.encode()))
        out.print(Text(f"\nPage of {size}, to open in a browser: {html}"), soft_wrap=True)
    cli_out.print_warnings(out, told.warnings)
    cli_out.print_command(out, *told.command)


def _is_log(source: str) -> bool:
    """Tell whether a source is an event log: by its name, or because it begins like one."""
    if source.lower().endswith(".jsonl"):
        return True
    try:
        with open(source, "rb") as file:
            return file.read(5) == b'{"v":'
    except (OSError, ValueError):  # no file: the name of a catalog scenario, or nothing at all
        return False


def _simulated(source: str, sets: Sequence[str], seed: int, replication: int) -> _Run:
    from sim import engine, study
    from sim.provenance import provenance

    if not 0 <= replication < study.MAX_REPLICATIONS:
        rule = f"must be a whole number from 0 to {study.MAX_REPLICATIONS - 1}"
        raise ScenarioError([Problem("--replication", f"{rule} {shown(replication)}")])
    scenario = load_scenario(source, sets)
    study.Study(scenario, seed=seed)  # refuses what cannot be run
    events = engine.run(scenario, seed, replication, max_events=scenario.limits.max_events)
    record = provenance(scenario, seed=seed)
    return _Run(
        title=scenario.name,
        events=events,
        origin={
            "scenario hash": record["scenario_hash"],
            "seed": seed,
            "replication": replication,
            "version": _version(record),
        },
        record={"scenario": scenario.name, "seed": seed, "replication": replication},
        provenance=record,
        warnings=warnings_for(scenario),
        command=cli_study.again("timeline", source, sets, seed, None) + ["--replication", str(replication)],
    )


def _recorded(sources: Sequence[str], refused: Sequence[str]) -> _Run:
    from sim import events
    from sim.ledger import account
    from sim.provenance import command, git_hash, version

    if refused:
        rule = "is for a scenario; an event log is what happened"
        raise ScenarioError([Problem(option, rule) for option in refused])
    files = ", ".join(sources)
    cli_out.check_distinct([Path(source) for source in sources])
    runs = events.by_run(events.read_jsonl([Path(source) for source in sources]))
    if not runs:
        raise EventError(f"{files}: no events (an empty log has no timeline)")
    if len(runs) > 1:
        names = ", ".join(map(str, list(runs)[:5])) + (", ..." if len(runs) > 5 else "")
        raise EventError(f"{files}: {len(runs)} runs, where a timeline tells one (got {names})")
    (name, told), record = next(iter(runs.items())), {"version": version(), "git": git_hash()}
    start = next((event for event in told if event["kind"] == "run_start"), {})
    title = str(name or "") if start.get("seed") is None else str(name or "").partition("/")[0]
    origin = {"event log" if len(sources) == 1 else "event logs": files, "run": name}
    origin |= {"source": start.get("source", "unknown"), "seed": start.get("seed")}
    origin |= {"replication": start.get("replication"), "written by version": start.get("version")}
    return _Run(
        title=title or Path(sources[0]).stem,
        events=told,
        origin={key: value for key, value in origin.items() if value is not None}
        | {"version": _version(record)},
        record={"logs": list(sources), "run": name, "source": start.get("source")},
        provenance=record | {"command": command()},
        warnings=warnings_for_log(account(told)),
        command=["timeline", *sources],
    )


def _version(record: dict[str, Any]) -> str:
    return f"{record['version']} (git {record['git']})" if record["git"] else str(record["version"])


def _page(told: _Run, tale: Any) -> str:
    import shlex

    from sim.ledger import account
    from sim.timeline.page import page

    origin = told.origin | {"command": shlex.join(["goodput", *told.command])}
    return page(told.events, account(told.events), tale, origin, told.title)


def _limit(incidents: str) -> int | None:
    if incidents == ALL_INCIDENTS:
        return None
    if incidents.isascii() and incidents.isdigit() and len(incidents) < 10:
        return int(incidents)
    raise ScenarioError(
        [Problem("--incidents", f"must be all or a whole number such as 20 {shown(incidents)}")]
    )
