"""The command `compare`: designs on the same faults, the differences with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from sim.accounts.unfinished import FEW
from sim.cli import out as cli_out
from sim.cli import study as cli_study
from sim.cli import text as cli_text
from sim.compare import METRICS, Comparison, compare, names_of, variants
from sim.scenario import Scenario, load_scenario
from sim.schema.fields import Problem, ScenarioError
from sim.units import shown
from sim.warn import Warning, warnings_between, warnings_for

SIDE_BY_SIDE = 3  # designs whose columns fit a terminal; more are rows of one table


def run(
    sources: Sequence[str],
    sets: Sequence[str],
    vs: Sequence[str],
    seed: int,
    replications: str,
    engine: str,
    as_json: bool,
) -> None:
    """Compare and print."""
    cli_out.check_engine(engine)
    runs = cli_out.replications_of(replications)
    scenarios = designs(sources, sets, vs)
    with cli_out.progress("comparing") as tell:
        found = compare(scenarios, replications=runs, seed=seed, progress=tell)  # type: ignore[arg-type]
    names, warnings = names_of(scenarios), _warnings(scenarios)
    if as_json:
        record = found.to_json()
        for design, scenario in zip(record["scenarios"], scenarios, strict=True):
            design["warnings"] = cli_out.warning_records(warnings_for(scenario))
        cli_out.print_json(record | {"warnings": cli_out.warning_records(warnings_between(scenarios))})
        return
    out = cli_out.console()
    _print_names(out, names)
    looks = _looks(sources, sets, vs, seed)
    for letter, result, look in zip(_letters(names), found.results, looks, strict=True):
        cli_out.print_failures(out, result, look, letter)
    if any(result.completed_fraction < FEW for result in found.results):
        cli_out.print_warnings(out, [warning for warning in warnings if warning.severity == "warning"])
        warnings = [warning for warning in warnings if warning.severity != "warning"]
    if len(names) <= SIDE_BY_SIDE:
        _print_designs(out, found, names)
        _print_differences(out, found, names)
        _print_ledgers(out, found, names)
    else:
        _print_rows(out, found, names)
    cli_out.print_warnings(out, warnings)
    cli_out.print_command(out, *_again(sources, sets, vs, seed, found.replications))


def designs(sources: Sequence[str], sets: Sequence[str], vs: Sequence[str]) -> list[Scenario]:
    """Return the scenarios to compare, the first one being the baseline.

    Several scenarios: --set holds for all. One with --set and --vs: the one change against the other. One with
    either of them: as it is against changed so. Raises `ScenarioError`.
    """
    if len(sources) > 1:
        if vs:
            raise ScenarioError(
                [Problem("--vs", f"is for one scenario; with several use --set {shown(list(vs))}")]
            )
        return [load_scenario(source, sets) for source in sources]
    if not sets and not vs:
        message = f"give two or more, or one with --set or --vs {shown(sources[0])}"
        raise ScenarioError([Problem("SCENARIO", message)])
    return list(variants(sources[0], *_changes(sets, vs)))


def _changes(sets: Sequence[str], vs: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return what is changed in each of two designs of one scenario."""
    return (sets, vs) if sets and vs else ([], sets or vs)


def _looks(sources: Sequence[str], sets: Sequence[str], vs: Sequence[str], seed: int) -> list[list[str]]:
    """Return the arguments of `goodput timeline` for each design, but the replication."""
    if len(sources) > 1:
        return [cli_study.again("timeline", source, sets, seed, None) for source in sources]
    return [cli_study.again("timeline", sources[0], changed, seed, None) for changed in _changes(sets, vs)]


def _again(
    sources: Sequence[str], sets: Sequence[str], vs: Sequence[str], seed: int, replications: int
) -> list[str]:
    arguments = ["compare", *sources]
    for option, texts in (("--set", sets), ("--vs", vs)):
        for text in texts:
            arguments += [option, text]
    return [*arguments, "--seed", str(seed), "--replications", str(replications)]


def _warnings(scenarios: Sequence[Scenario]) -> list[Warning]:
    """Return the warnings of the comparison, and those of the designs, each once, named where not all share it."""
    each = [warnings_for(scenario) for scenario in scenarios]
    found = list(warnings_between(scenarios))
    names = names_of(scenarios)
    for warning in dict.fromkeys(warning for own in each for warning in own):
        holders = [name for name, own in zip(names, each, strict=True) if warning in own]
        where = warning.path if len(holders) == len(names) else f"{', '.join(holders)}: {warning.path}"
        found.append(Warning(where, warning.message, warning.rule, warning.severity))
    return found


def _print_designs(out: Console, found: Comparison, names: Sequence[str]) -> None:
    made = cli_out.table("", *(f">{letter}" for letter in _letters(names)), title=_runs(found))
    for metric in METRICS:
        values = [found.metrics(i).get(metric) for i in range(len(found.results))]
        if all(value is None for value in values):
            continue
        made.add_row(
            cli_text.label(metric), *(cli_text.value(metric, None if v is None else v.mean) for v in values)
        )
        made.add_row(
            Text("  95 %", style="dim"),
            *(cli_text.interval(metric, None if v is None else v.ci95) for v in values),
        )
    if any(result.completed_fraction < 1.0 for result in found.results):
        made.add_row(
            cli_text.label("completed_fraction"),
            *(cli_text.value("completed_fraction", result.completed_fraction) for result in found.results),
        )
    cli_out.show(out, made)
    _print_rule(out, found)


def _print_rule(out: Console, found: Comparison) -> None:
    """Say which runs wall time, GPU-hours and cost are about, where not all complete."""
    if any(result.completed_fraction < 1.0 for result in found.results):
        whole = f"the {found.completed_in_all} of {found.replications} runs that complete in every design"
        if not found.completed_in_all:
            whole = "no run: none completes in every design"
        out.print(Text(f"  Wall time, GPU-hours and cost are of {whole}; the rest is of all runs.", style="yellow"))


def _runs(found: Comparison) -> str:
    runs = "1 run" if found.replications == 1 else f"{found.replications} runs"
    return f"{runs} of each, the same faults, seed {found.seed}"


def _print_names(out: Console, names: Sequence[str]) -> None:
    out.print()
    for letter, name in zip(_letters(names), names, strict=True):
        out.print(Text.assemble((f"{letter}  ", "bold"), name), soft_wrap=True)


def _print_rows(out: Console, found: Comparison, names: Sequence[str]) -> None:
    """Print one row a design: its goodput and its paired difference from the first."""
    letters = _letters(names)
    columns = ("", ">goodput", ">95 %", f">minus {letters[0]}", ">95 %", ">wall time")
    made = cli_out.table(*columns, title=_runs(found))
    for i, (letter, result) in enumerate(zip(letters, found.results, strict=True)):
        goodput, wall = result.metrics["goodput"], found.metrics(i).get("wall_time_s")
        apart = found.contrasts[i - 1].differences["goodput"] if i else None
        made.add_row(
            letter,
            cli_text.value("goodput", goodput.mean),
            cli_text.interval("goodput", goodput.ci95),
            cli_text.difference("goodput", apart.mean if apart else None),
            cli_text.interval("goodput", apart.ci95 if apart else None, as_difference=True),
            cli_text.value("wall_time_s", None if wall is None else wall.mean),
        )
    cli_out.show(out, made)
    _print_rule(out, found)


def _letters(names: Sequence[str]) -> list[str]:
    return [chr(ord("A") + i) for i in range(len(names))]


def _print_differences(out: Console, found: Comparison, names: Sequence[str]) -> None:
    letters = _letters(names)
    for letter, contrast in zip(letters[1:], found.contrasts, strict=True):
        made = cli_out.table(
            "", ">difference", ">95 % interval", title=f"{letter} minus {letters[0]}, paired"
        )
        for metric in METRICS:
            difference = contrast.differences.get(metric)
            if difference is not None:
                made.add_row(
                    cli_text.label(metric),
                    cli_text.difference(metric, difference.mean),
                    cli_text.interval(metric, difference.ci95, as_difference=True),
                )
        cli_out.show(out, made)
        share = f"{letter} has the higher goodput in {100 * contrast.better:.0f} % of the pairs (ties counted half)."
        out.print(Text(f"  {share}"))


def _print_ledgers(out: Console, found: Comparison, names: Sequence[str]) -> None:
    shares: list[dict[str, Any]] = [dict(result.ledger) for result in found.results]
    rows = [
        name
        for name in dict.fromkeys(name for share in shares for name in share)
        if any(share.get(name, 0.0) >= cli_study.SEEN for share in shares)
    ]
    made = cli_out.table("", *(f">{letter}" for letter in _letters(names)), title="Where the time went, %")
    percents = [cli_text.percents(share) for share in shares]
    for name in rows:
        made.add_row(name, *(percent.get(name, "0.00") for percent in percents))
    made.add_row("total", *(cli_text.total_percent(share) for share in shares))
    cli_out.show(out, made)
