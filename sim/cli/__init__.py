"""The command `goodput`: its commands and their options.

Every command does its work in a module that is imported when it runs, so that the root answers at once. Other rooms
add their commands by the entry-point group `goodput.commands` (sim/cli/root.py, with errors and exit codes).
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from sim.cli.runner import Root, run

app = typer.Typer(
    cls=Root,
    name="goodput",
    help="Where the GPU-hours of a large training run go, and which settings would save them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
catalog_app = typer.Typer(no_args_is_help=True, help="Scenarios and node types that come with goodput.")
app.add_typer(catalog_app, name="catalog")

Source = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", show_default=False, help="A file, or a name of `goodput catalog list`."
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", show_default=False,
        help="Change a value, list items by name: failures.classes.gpu.mtbf=60h. Repeatable.",
    ),
]  # fmt: skip
Seed = Annotated[int, typer.Option(metavar="K", help="Seed of the random draws.")]
Runs = Annotated[
    str,
    typer.Option("--replications", metavar="N|auto", help="Runs; auto: until goodput is known to 0.2 pt."),
]
Engine = Annotated[Literal["auto", "batch", "events"], typer.Option(help="Which driver runs the rules.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Where the GPU-hours of a large training run go, and which settings would save them."""
    if version:
        from sim.provenance import version as installed

        print(f"goodput-planner {installed()}")
        raise typer.Exit()


@app.command()
def simulate(
    scenario: Source,
    set_: Sets = None,
    seed: Seed = 1,
    replications: Runs = "auto",
    engine: Engine = "auto",
    every: Annotated[bool, typer.Option("--all", help="Show every metric, and what each means.")] = False,
    json: Json = False,
) -> None:
    """Predict goodput, wall time and cost; show where the time goes."""
    _work("study").run(scenario, set_ or [], seed, replications, engine, json, every)


@app.command()
def timeline(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO|LOG...",
            show_default=False,
            help="A file or a name of `goodput catalog list`; or the event logs (.jsonl) of one run.",
        ),
    ],
    set_: Sets = None,
    seed: Annotated[
        int | None, typer.Option(metavar="K", help="Seed of the random draws.", show_default="1")
    ] = None,
    replication: Annotated[
        int | None, typer.Option(metavar="N", help="Which of the runs.", show_default="0")
    ] = None,
    engine: Engine = "auto",
    incidents: Annotated[str, typer.Option(metavar="N|all", help="How many incidents to tell.")] = "20",
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the event log (JSON lines).")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a chart to zoom into, as one HTML page.")
    ] = None,
    json: Json = False,
) -> None:
    """Tell the story of one run, incident by incident."""
    _work("timeline").run(sources, set_ or [], seed, replication, engine, log, html, incidents, json)


@app.command()
def recommend(
    scenario: Source,
    set_: Sets = None,
    seed: Seed = 1,
    replications: Runs = "auto",
    engine: Engine = "auto",
    json: Json = False,
) -> None:
    """Recommend the checkpoint interval; say what the present costs."""
    _work("advice").run(scenario, set_ or [], seed, replications, engine, json)


@app.command()
def compare(
    scenarios: Annotated[
        list[str],
        typer.Argument(metavar="SCENARIO...", show_default=False, help="Two or more, or one with --vs."),
    ],
    set_: Sets = None,
    vs: Annotated[
        list[str] | None,
        typer.Option(
            "--vs",
            metavar="PATH=VALUE",
            show_default=False,
            help="The other design, for one scenario.",
        ),
    ] = None,
    seed: Seed = 1,
    replications: Runs = "auto",
    engine: Engine = "auto",
    json: Json = False,
) -> None:
    """Compare designs on the same faults: paired differences.

    One SCENARIO with --set A compares it as it is with it changed so; with --set A --vs B, one change with the other.
    """
    _work("designs").run(scenarios, set_ or [], vs or [], seed, replications, engine, json)


@app.command()
def export(
    scenario: Source,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            show_default=False,
            help="json, ft-launcher, megatron-lm, megatron-bridge, nemo, torchtitan, transformers, lightning, "
            "composer, maxtext, olmo-core or kubernetes.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", show_default=False, help="Where to.")
    ],
    set_: Sets = None,
    keep_interval: Annotated[
        bool,
        typer.Option("--keep-interval", help="Export the scenario's own checkpoint interval."),
    ] = False,
    checkpoint_iteration_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="For ft-launcher: where the trainer notes its newest checkpoint."),
    ] = None,
    seed: Seed = 1,
    replications: Runs = "auto",
    engine: Engine = "auto",
    json: Json = False,
) -> None:
    """Write interval and timeouts in the form that a framework reads.

    The interval is the recommended one, unless --keep-interval is given.

    What the framework would refuse is refused; what it ignores or does otherwise is told, in the file and on stderr.
    """
    _work("files").export(
        scenario,
        set_ or [],
        seed,
        replications,
        engine,
        format_,
        output,
        keep_interval,
        checkpoint_iteration_file,
        json,
    )


@app.command()
def ledger(
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG...", show_default=False, help="Event logs (JSON lines).")
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 if a log breaks the event vocabulary.")
    ] = False,
    json: Json = False,
) -> None:
    """Show where the time of logged runs went.

    The files of several ranks of one run are merged.
    """
    raise typer.Exit(_work("files").ledger(logs, check, json))


@catalog_app.command("list")
def catalog_list(json: Json = False) -> None:
    """List what the catalog holds."""
    _work("files").catalog_list(json)


@catalog_app.command("show")
def catalog_show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="A scenario or a node type.")
    ],
    json: Json = False,
) -> None:
    """Print one file of the catalog; each value names its source."""
    _work("files").catalog_show(name, json)


@app.command()
def schema(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there.")
    ] = None,
    json: Json = False,
) -> None:
    """Print the JSON Schema of the scenario file."""
    _work("files").schema(output)


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the export files go.")
    ] = Path("out"),
    seed: Seed = 1,
) -> None:
    """Predict, explain and improve upon the published EKS benchmark."""
    raise typer.Exit(_work("demo").run(output, seed))


def _work(module: str) -> Any:
    return import_module(f"sim.cli.{module}")


def main() -> NoReturn:
    """Run the command and exit."""
    sys.exit(run(app))
