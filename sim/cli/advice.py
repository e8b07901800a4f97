"""The command `recommend`: the best checkpoint interval, how flat it lies, what the present one costs, and why."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from sim.accounts.unfinished import FEW
from sim.cli import out as cli_out
from sim.cli import study as cli_study
from sim.cli import text as cli_text
from sim.recommend import Recommendation, recommend
from sim.scenario import load_scenario
from sim.units import format_duration
from sim.warn import warnings_for

FORMS = {"young": "Young", "daly": "Daly", "daly_higher": "Daly, higher order", "exact": "exact (renewal)",
         "async": "asynchronous, first order"}  # fmt: skip


def run(source: str, sets: Sequence[str], seed: int, replications: str, engine: str, as_json: bool) -> None:
    """Search, and print the advice."""
    cli_out.check_engine(engine)
    runs = cli_out.replications_of(replications)
    scenario = load_scenario(source, sets)
    with cli_out.progress("searching the interval") as tell:
        advice = recommend(
            scenario, replications=None if runs == "auto" else int(runs), seed=seed, progress=tell
        )
    warnings = warnings_for(scenario)
    if as_json:
        cli_out.print_json(advice.to_json() | {"warnings": cli_out.warning_records(warnings)})
        return
    out = cli_out.console()
    cli_study.print_scenario(out, scenario)
    if advice.best.completed_fraction < FEW:
        _print_unfinished(out, advice)
        cli_out.print_warnings(out, [warning for warning in warnings if warning.severity == "warning"])
        warnings = [warning for warning in warnings if warning.severity != "warning"]
    print_advice(out, advice)
    cli_out.print_warnings(out, warnings)
    cli_out.print_command(
        out, *cli_study.again("recommend", source, sets, seed, None if runs == "auto" else int(runs))
    )


def _print_unfinished(out: Console, advice: Recommendation) -> None:
    """Say that no interval lets most runs complete: the advice is then about lost jobs."""
    runs = advice.replications
    failed = runs - round(advice.best.completed_fraction * runs)
    text = (
        f"Most runs do not complete: {failed} of {runs} end before their last step even with the recommended interval. "
        "Look at `goodput simulate` and the restart layers first; the interval matters little until jobs complete."
    )
    out.print()
    out.print(Text(text, style="red"))


def print_advice(out: Console, advice: Recommendation) -> None:
    """Print the advised interval beside the present one, the closed forms, and the reasons."""
    best = advice.best
    made = cli_out.table(
        "", ">interval", ">of work", ">goodput", ">95 % interval", title="Checkpoint interval"
    )
    made.add_row(
        Text("recommended", style="bold"),
        f"{best.interval_steps} steps",
        format_duration(best.interval_s),
        cli_text.value("goodput", best.goodput),
        cli_text.interval("goodput", best.ci95),
    )
    if advice.current is not None:
        now = advice.current
        made.add_row(
            "present",
            f"{now.interval_steps} steps",
            format_duration(now.interval_s),
            cli_text.value("goodput", now.goodput),
            cli_text.interval("goodput", now.ci95),
        )
    for name, seconds in advice.closed_form_s.items():
        if seconds is not None:
            steps = max(1, round(seconds / (best.interval_s / best.interval_steps)))
            made.add_row(FORMS.get(name, name), f"{steps} steps", format_duration(seconds), "", "")
    cli_out.show(out, made)
    for text in _sentences(advice):
        out.print()
        out.print(Text(text))


def _sentences(advice: Recommendation) -> list[str]:
    low, high = advice.flat_region_s
    said = [f"As good within 0.1 point: {format_duration(low)} to {format_duration(high)}."]
    if advice.regret is not None:
        bounds = cli_text.interval("goodput", advice.regret.ci95, as_difference=True)
        text = f"The present interval costs {100 * advice.regret.mean:.2f} points of goodput (95 %: {bounds}, paired)."
        saved = [
            f"{cli_text.label(name)} {cli_text.value(name, gain.mean)}"
            for name, gain in advice.gains.items()
            if gain.mean > 0
        ]
        said.append(text + (f" The recommended one saves, in a run: {', '.join(saved)}." if saved else ""))
    if advice.current_refused is not None:
        said.append(f"The present interval cannot be run: {advice.current_refused}")
    if advice.why_different is not None:
        said.append(advice.why_different)
    if advice.stand_in is not None:
        said.append(f"Note: {advice.stand_in}.")
    if advice.hindsight is not None:
        best = advice.hindsight
        text = f"In hindsight, for exactly this schedule, {best.interval_steps} steps would have been best: goodput "
        text += cli_text.value("goodput", best.goodput)
        for what, goodput in (
            ("present", best.goodput_of_current),
            ("recommended", best.goodput_of_recommended),
        ):
            if goodput is not None:
                text += f", {what} interval {cli_text.value('goodput', goodput)}"
        said.append(f"{text}. No one knows a schedule beforehand.")
    said.append(
        f"{len(advice.curve)} intervals simulated, the recommended one {advice.replications} times, all on the same "
        f"faults, seed {advice.seed}. With endless runs the choice might be another, better by about "
        f"{100 * advice.expected_noise:.3f} points of goodput."
    )
    return said
