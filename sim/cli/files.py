"""The commands around files: export, ledger, catalog, schema."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from sim.cli import out as cli_out
from sim.cli import study as cli_study
from sim.cli import text as cli_text
from sim.scenario import Scenario, json_schema, load_scenario
from sim.schema.fields import Problem, ScenarioError
from sim.units import format_duration
from sim.warn import warnings_for_log


def export(
    source: str,
    sets: Sequence[str],
    seed: int,
    replications: str,
    engine: str,
    form: str,
    output: Path,
    keep_interval: bool,
    iteration_file: str | None,
    as_json: bool,
) -> None:
    """Write the settings of a scenario in the form that a framework reads."""
    from sim import export as exports
    from sim.provenance import provenance

    exports.check_format(form)
    cli_out.check_engine(engine)
    cli_out.check_place(output)
    runs = cli_out.replications_of(replications)
    scenario = load_scenario(source, sets)
    advice = None if keep_interval else _advice(scenario, seed, runs)
    record = provenance(scenario, seed=seed)
    settings = exports.settings_for(scenario, record, advice, iteration_file)
    made = exports.exported(form, settings)
    exports.write(output, made.text)
    for warning in (*made.warnings, *settings.warnings):  # on stderr: stdout may be a file that nobody looks at
        if warning.severity == "warning":
            sys.stderr.write(f"warning: {warning}\n")
    if as_json:
        data = exports.as_json(settings)
        data["warnings"] = cli_out.warning_records(made.warnings) + data["warnings"]
        cli_out.print_json({"format": form, "file": str(output)} | data)
        return
    out = cli_out.console()
    out.print(Text(f"Written: {output} ({form}, {exports.FORMATS[form].says})"), soft_wrap=True)
    table = cli_out.table("setting", "value", title="Settings")
    for level in settings.levels:
        where = level.path if settings.interval_steps is None else "checkpoint interval"
        origin = "scenario" if settings.interval_steps is None else settings.interval_source
        table.add_row(f"{where} ({origin})", level.text())
    for timeout in settings.timeouts.all():
        seconds = "off" if timeout.seconds is None else format_duration(timeout.seconds)
        table.add_row(timeout.path, f"{seconds} ({timeout.source})")
    if "in_job" in settings.scenario.recovery.layers or form == "ft-launcher":
        timeouts = settings.timeouts
        table.add_row("--max-restarts", f"{timeouts.max_restarts} ({timeouts.why_max_restarts})")
    cli_out.show(out, table)
    found = [*made.warnings, *settings.warnings]
    cli_out.print_warnings(out, [warning for warning in found if warning.severity == "note"])
    command = cli_study.again("export", source, sets, seed, None if runs == "auto" else int(runs))
    command += ["--format", form, "-o", str(output)] + (["--keep-interval"] if keep_interval else [])
    if iteration_file is not None:
        command += ["--checkpoint-iteration-file", iteration_file]
    cli_out.print_command(out, *command)


def _advice(scenario: Scenario, seed: int, runs: int | str) -> dict[str, Any] | None:
    """Return the record of `recommend`; None where the mode knows no interval."""
    if scenario.checkpoint.mode in ("none", "ideal"):
        return None
    from sim.recommend import recommend

    try:
        with cli_out.progress("searching the interval") as tell:
            count = None if runs == "auto" else int(runs)
            return recommend(scenario, replications=count, seed=seed, progress=tell).to_json()
    except ScenarioError as error:
        hint = Problem("--keep-interval", "exports the scenario's own interval without a search")
        raise ScenarioError([*error.problems, hint]) from None


def ledger(logs: Sequence[Path], check: bool, as_json: bool) -> int:
    """Account event logs; return 1 if `check` finds one that breaks the vocabulary."""
    from sim import events, metrics
    from sim.ledger import account
    from sim.provenance import version

    cli_out.check_distinct(logs)
    told = events.read_jsonl(list(logs))
    if not told:
        raise events.EventError(f"{', '.join(map(str, logs))}: no events (an empty log has no ledger)")
    runs = {str(name): log for name, log in events.by_run(told).items()}
    problems = (
        [f"{name}: {text}" for name, log in runs.items() for text in events.validate(log)] if check else []
    )
    ledgers = {name: account(log) for name, log in runs.items()}
    warnings = [warning for run in ledgers.values() for warning in warnings_for_log(run)]
    pooled = metrics.metrics(list(ledgers.values()))
    if as_json:
        record: dict[str, Any] = {
            "runs": [_run_record(name, run) for name, run in ledgers.items()],
            "metrics": {name: metric.as_json() for name, metric in pooled.items()},
            "ledger": metrics.ledger_fractions(list(ledgers.values())),
            "warnings": cli_out.warning_records(warnings),
            "version": version(),
        }
        cli_out.print_json(record | ({"problems": problems} if check else {}))
        return 1 if problems else 0
    out = cli_out.console()
    _print_runs(out, ledgers)
    many = list(ledgers.values())
    hours = (
        metrics.gpu_hours_by_category(many) if any(sum(run.gpu_seconds.values()) for run in many) else None
    )
    cli_study.print_ledger(out, metrics.ledger_fractions(many), pooled["wall_time_s"].mean, hours)
    made = cli_out.table("", ">mean", ">95 % interval", title="Metrics")
    for name in (
        "goodput",
        "ettr",
        "interruptions",
        "mtti_s",
        "incident_s",
        "training_goodput_aws",
        "infra_goodput_aws",
    ):
        made.add_row(
            cli_text.label(name),
            cli_text.value(name, pooled[name].mean),
            cli_text.interval(name, pooled[name].ci95),
        )
    cli_out.show(out, made)
    cli_out.print_warnings(out, warnings)
    for text in problems:
        out.print()
        out.print(Text.assemble(("Problem: ", "red"), text), soft_wrap=True)
    if check and not problems:
        out.print()
        out.print(Text(f"{len(told):,} events, no problems"))
    cli_out.print_command(out, "ledger", *map(str, logs), *(["--check"] if check else []))
    return 1 if problems else 0


def _run_record(name: str, run: Any) -> dict[str, Any]:
    wall_s = run.wall_s or 1.0
    return {
        "run": name,
        "source": run.source,
        "outcome": run.outcome,
        "reason": run.reason,
        "wall_time_s": run.wall_s,
        "done_steps": run.done_steps,
        "kept_steps": run.kept_steps,
        "interruptions": {"total": run.interruptions, "by_class": run.faults_by_class},
        "incidents": len(run.incidents),
        "ledger": {category: seconds / wall_s for category, seconds in run.seconds.items()},
        "seconds": run.seconds,
        "gpu_hours": {category: seconds / 3600.0 for category, seconds in run.gpu_seconds.items()},
    }


def _print_runs(out: Console, ledgers: dict[str, Any]) -> None:
    made = cli_out.table("run", "outcome", ">wall time", ">kept steps", ">faults", ">incidents", title="Runs")
    for name, run in list(ledgers.items())[:20]:
        made.add_row(
            name, run.outcome, format_duration(run.wall_s), f"{run.kept_steps:,.0f}", str(run.interruptions),
            str(len(run.incidents)),
        )  # fmt: skip
    if len(ledgers) > 20:
        made.add_row(f"... and {len(ledgers) - 20} more", "", "", "", "", "")
    cli_out.show(out, made)


def catalog_list(as_json: bool) -> None:
    """List scenarios and node types, each with its one-line description."""
    from sim import catalog

    scenarios = {name: load_scenario(name) for name in catalog.names()}
    nodes = {name: catalog.hardware(name) for name in catalog.hardware_names()}
    if as_json:
        cli_out.print_json(
            {
                "scenarios": [{"name": n, "description": s.description} for n, s in scenarios.items()],
                "hardware": [{"name": n, "description": h.description} for n, h in nodes.items()],
            }
        )
        return
    out = cli_out.console()
    made = cli_out.table("name", ">size", "what", title="Scenarios")
    for name, scenario in scenarios.items():
        first = (scenario.description or "").partition(": ")[0].partition(". ")[0]
        size = f"{scenario.cluster.nodes} nodes x {scenario.cluster.gpus_per_node} GPUs"
        made.add_row(Text(name, style="bold"), size, Text(first))
    cli_out.show(out, made)
    made = cli_out.table("name", "what", title="Node types")
    for name, hardware in nodes.items():
        made.add_row(Text(name, style="bold"), Text(hardware.description))
    cli_out.show(out, made)
    out.print(Text("\ngoodput catalog show NAME prints one, with the source of each value", style="dim"))


def catalog_show(name: str, as_json: bool) -> None:
    """Print one catalog file as it is; with --json, its content."""
    from sim import catalog
    from sim.schema import yaml_text

    text = catalog.show(name)
    if as_json:
        cli_out.print_json(yaml_text.read(text, name))
    else:
        sys.stdout.write(text)


def schema(output: Path | None) -> None:
    """Print the JSON Schema of the scenario file, or write it."""
    cli_out.check_place(output)
    text = json.dumps(json_schema(), indent=2) + "\n"
    if output is None:
        sys.stdout.write(text)
        return
    from sim.export import write

    write(output, text)
    sys.stdout.write(f"Written: {shlex.quote(os.fspath(output))}\n")
