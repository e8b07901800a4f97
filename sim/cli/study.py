"""The command `simulate`: many runs of one scenario, where the time went, published figures beside predicted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sim.accounts.unfinished import FEW
from sim.cli import out as cli_out
from sim.cli import text as cli_text
from sim.published import Figure, figures
from sim.scenario import Scenario, load_scenario, scenario_hash
from sim.study import Result, simulate
from sim.units import format_duration
from sim.warn import warnings_for

HEADLINES = (
    "goodput", "wall_time_s", "interruptions", "mtti_s", "incident_s", "recovery_event_s", "ettr", "gpu_hours", "usd",
    "usd_per_productive_gpu_hour",
)  # fmt: skip
ONLY_IF_BELOW_ONE = ("completed_fraction",)
ONLY_IF_ABOVE_ZERO = ("censored_fraction",)
SEEN = 1e-9  # the ledger closes to this share of the wall time: less is rounding


def run(
    source: str, sets: Sequence[str], seed: int, replications: str, engine: Any, as_json: bool, every: bool
) -> None:
    """Simulate and print."""
    scenario = load_scenario(source, sets)
    with cli_out.progress("simulating") as tell:
        result = simulate(
            scenario,
            replications=cli_out.replications_of(replications),  # type: ignore[arg-type]
            seed=seed,
            engine=engine,
            progress=tell,
        )
    warnings = warnings_for(scenario)
    if as_json:
        cli_out.print_json(
            result.to_json()
            | {"warnings": cli_out.warning_records(warnings), "published": published_records(result)}
        )
        return
    out = cli_out.console()
    print_scenario(out, scenario)
    cli_out.print_failures(out, result, again("timeline", source, sets, seed, None))
    if result.completed_fraction < FEW:  # what is missing comes before numbers of jobs that do not complete
        cli_out.print_warnings(out, [warning for warning in warnings if warning.severity == "warning"])
        warnings = [warning for warning in warnings if warning.severity != "warning"]
    print_metrics(out, result, every)
    print_ledger(out, result.ledger, result.metrics["wall_time_s"].mean, result.gpu_hours)
    print_interruptions(out, result)
    print_published(out, result)
    cli_out.print_warnings(out, warnings)
    cli_out.print_command(out, *again("simulate", source, sets, seed, result.replications, engine))


def again(
    command: str, source: str, sets: Sequence[str], seed: int, replications: int | None, engine: str = "auto"
) -> list[str]:
    """Return the arguments of the command that gives the same result."""
    arguments = [command, source]
    for text in sets:
        arguments += ["--set", text]
    arguments += ["--seed", str(seed)]
    if replications is not None:
        arguments += ["--replications", str(replications)]
    return arguments + (["--engine", engine] if engine != "auto" else [])


def print_scenario(out: Console, s: Scenario) -> None:
    """Print the scenario in three lines."""
    job = (
        f"{s.cluster.nodes} nodes x {s.cluster.gpus_per_node} GPUs, {s.total_steps()} steps of "
        f"{format_duration(s.nominal_step_s())}: {format_duration(s.useful_time_s())} of work"
    )
    saves = f"checkpoint mode {s.checkpoint.mode}"
    if s.checkpoint.mode in ("sync", "async", "local"):
        steps = s.interval_steps()
        saves += f", every {steps} steps ({format_duration(steps * s.nominal_step_s())} of work)"
    elif s.checkpoint.mode == "tiered":
        named = zip(s.checkpoint.tier_names(), s.checkpoint.tiers, strict=True)
        saves += ", " + ", ".join(f"{n} every {t.every.in_steps(s.nominal_step_s())} steps" for n, t in named)
    layers = ", ".join(s.recovery.layers) or "none"
    out.print(Text.assemble((s.name, "bold"), f"  (scenario {scenario_hash(s)})"))
    out.print(Text(job))
    out.print(Text(f"{saves}; restart layers: {layers}"))


def _shown(result: Result, every: bool) -> list[str]:
    known = result.metrics
    if every:
        return list(known)
    names = [name for name in HEADLINES if name in known]
    names += [name for name in ONLY_IF_BELOW_ONE if known[name].mean < 1.0]
    names += [name for name in ONLY_IF_ABOVE_ZERO if known[name].mean > 0.0]
    if (
        known["incident_s"].count == known["recovery_event_s"].count
    ):  # one event an incident: the same number twice
        names.remove("recovery_event_s")
    return names


def print_metrics(out: Console, result: Result, every: bool = False) -> None:
    """Print the metrics with their 95 % intervals; with `every`, all of them and what they mean."""
    runs = "1 run" if result.replications == 1 else f"{result.replications} runs"
    title = f"{runs}, seed {result.seed}, engine {result.engine}"
    cli_out.show(out, _metrics_table(result, _shown(result, every), title))
    if every:
        meanings = cli_out.table("metric", "meaning", title="What they mean")
        for name in _shown(result, every):
            meanings.add_row(
                cli_text.label(name),
                Text(f"{result.metrics[name].definition} [{result.metrics[name].source}]"),
            )
        cli_out.show(out, meanings)


def _metrics_table(result: Result, names: Sequence[str], title: str) -> Table:
    quantiles = ("p10", "p50", "p90")  # what a run's chance adds matters less than the names
    made = cli_out.table(
        "", ">mean", ">95 % interval", *(f"?>{name.upper()}" for name in quantiles), title=title
    )
    for name in names:
        metric = result.metrics[name]
        values = [None if name.endswith("_fraction") else getattr(metric, quantile) for quantile in quantiles]
        made.add_row(
            cli_text.label(name),
            cli_text.value(name, metric.mean),
            cli_text.interval(name, metric.ci95),
            *("" if x is None else cli_text.value(name, x) for x in values),
        )
    return made


def print_ledger(
    out: Console, shares: Mapping[str, float], wall_s: float, gpu_hours: Mapping[str, float] | None = None
) -> None:
    """Print where the time went: shares of 100 %, bars, times, GPU-hours."""
    made = cli_out.table("", ">%", "", ">time", ">GPU-hours", title="Where the time went")
    percents = cli_text.percents(shares)
    idle = (gpu_hours or {}).get("spare_idle", 0.0)
    names = [len(name) for name, share in shares.items() if share >= SEEN]
    names.append(len("spare_idle (hot spares)" if idle else "productive"))
    bars = max(0, min(30, out.width - 2 - max(names) - len("100.00") - 2 * len("GPU-hours") - 4 * cli_out.GAP))
    for name, share in shares.items():
        hours = (gpu_hours or {}).get(name)
        if share < SEEN and name != "productive":
            continue
        made.add_row(
            name,
            percents[name],
            cli_text.bar(out, share, bars),
            format_duration(share * wall_s),
            "" if hours is None else cli_text.count(hours),
        )
    working = sum(hours for name, hours in (gpu_hours or {}).items() if name != "spare_idle")
    made.add_row("total", cli_text.total_percent(shares), "", format_duration(wall_s),
                 cli_text.count(working) if gpu_hours else "")  # fmt: skip
    if idle:
        made.add_row("spare_idle (hot spares)", "", "", "", cli_text.count(idle))
    cli_out.show(out, made)


def print_interruptions(out: Console, result: Result) -> None:
    """Print how many faults of each class strike a run."""
    by_class = {name: mean for name, mean in result.interruptions["by_class"].items() if mean > 0}
    if by_class:
        parts = [f"{name} {mean:.3g}" for name, mean in sorted(by_class.items(), key=lambda item: -item[1])]
        out.print()
        out.print(Text(f"Faults that strike the job, in a run: {', '.join(parts)}"))


def published_records(result: Result) -> list[dict[str, Any]]:
    """Return the published figures of a catalog scenario beside the predicted ones."""
    return [
        {
            "metric": figure.metric,
            "published": figure.value,
            "at_least": figure.at_least,
            "here": result.metrics[figure.metric].mean,
            "claim": figure.claim,
            "source": figure.source,
        }
        for figure in _figures(result)
    ]


def _figures(result: Result) -> tuple[Figure, ...]:
    """Return the figures, if the scenario is still the one they were published for."""
    found = figures(result.scenario.name)
    if found and scenario_hash(load_scenario(result.scenario.name)) != scenario_hash(result.scenario):
        return ()
    return found


def print_published(out: Console, result: Result) -> None:
    """Print published figures beside the predicted ones; each says whether an input was fitted to it."""
    found = _figures(result)
    if not found:
        return
    made = cli_out.table(
        "", ">published", ">here", ">95 % interval", "claim", title="Published beside predicted"
    )
    for figure in found:
        metric = result.metrics[figure.metric]
        at_least = "> " if figure.at_least else ""
        made.add_row(
            cli_text.label(figure.metric),
            at_least + cli_text.value(figure.metric, figure.value),
            cli_text.value(figure.metric, metric.mean),
            cli_text.interval(figure.metric, metric.ci95),
            figure.claim,
        )
    cli_out.show(out, made)
    for source in dict.fromkeys(figure.source for figure in found):
        out.print(Text(f"  Published by: {source}", style="dim"))
