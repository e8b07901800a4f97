"""What all commands share: JSON on stdout, tables for people, progress on stderr, and errors in one line."""

from __future__ import annotations

import errno
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from sim.schema.fields import Problem, ScenarioError
from sim.units import shown

if TYPE_CHECKING:
    from sim.study import Result
    from sim.warn import Warning

Progress = Callable[[int, int], None]
GAP = 2  # between the columns of a table
PIPE_WIDTH = 100  # columns when stdout is no terminal


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would exit with 1, which here means that a check failed


def console() -> Console:
    """Return the console of stdout; wide enough for the tables when it is piped into a file."""
    out = _Console(highlight=False, markup=False)
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out = _Console(highlight=False, markup=False, width=PIPE_WIDTH)
    return out


def table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table: ``>name`` is a column of numbers, to the right; one with an empty name is never cut.

    A name that begins with ``?`` is one that a narrow terminal does without.
    """
    heads = any(name.lstrip("?>") for name in columns)
    made = Table(box=None, title=title, padding=(0, GAP, 0, 0), pad_edge=False, show_header=heads)
    for name in columns:
        number = name.lstrip("?").startswith(">")
        justify: Literal["left", "right"] = "right" if number else "left"
        made.add_column(name.lstrip(">"), justify=justify, no_wrap=number or not name, overflow="fold")
    return made


def show(out: Console, made: Table) -> None:
    """Print a table set in by two columns, with a line before it; words are never broken and nothing is cut.

    Where the terminal is too narrow, the columns that it can do without are left out and named; where that is not
    enough, each row is a block of lines.
    """
    room = out.width - 2
    out.print()
    if made.title:
        out.print(Text(str(made.title), style="bold"))
    optional = [str(column.header).lstrip("?>") for column in made.columns if str(column.header).startswith("?")]
    narrow = bool(optional) and _least(made.columns) > room
    columns = [c for c in made.columns if not (narrow and str(c.header).startswith("?"))]
    for column in columns:
        column.header = str(column.header).lstrip("?>")
    if _least(columns) > room:
        _stack(out, columns)
    else:
        shown = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, show_header=made.show_header)
        for column, width in zip(columns, _widths(columns, room), strict=True):
            shown.add_column(
                column.header, justify=column.justify, no_wrap=column.no_wrap, overflow="fold", width=width
            )
        for row in zip(*(column.cells for column in columns), strict=True):
            shown.add_row(*row)
        out.print(Padding(shown, (0, 0, 0, 2), expand=False))
    if narrow:
        out.print(Text(f"  Left out in {out.width} columns: {', '.join(optional)}", style="dim"))


def _texts(column: Column) -> list[str]:
    return [str(column.header).lstrip("?>"), *(str(cell) for cell in column.cells)]


def _natural(column: Column) -> int:
    return max(cell_len(line) for text in _texts(column) for line in (text.splitlines() or [""]))


def _smallest(column: Column) -> int:
    """Return the width below which a word would be broken."""
    if column.no_wrap:
        return _natural(column)
    return max((cell_len(word) for text in _texts(column) for word in text.split()), default=0)


def _least(columns: Sequence[Column]) -> int:
    return sum(map(_smallest, columns)) + GAP * (len(columns) - 1)


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """Give each column its words, and what room is left to those with most to wrap."""
    widths, natural = list(map(_smallest, columns)), list(map(_natural, columns))
    for _ in range(room - _least(columns)):
        i = max(range(len(widths)), key=lambda i: natural[i] - widths[i])
        if natural[i] <= widths[i]:
            break
        widths[i] += 1
    return widths


def _stack(out: Console, columns: Sequence[Column]) -> None:
    names = [str(column.header) for column in columns]
    for row in zip(*(column.cells for column in columns), strict=True):
        out.print(Padding(Text(str(row[0]), style="bold"), (0, 0, 0, 2)))
        for name, cell in zip(names[1:], row[1:], strict=True):
            if str(cell):
                out.print(Padding(Text(f"{name}{': ' if name else ''}{cell}"), (0, 0, 0, 4)))


def print_json(data: Any) -> None:
    """Write the one JSON document of a command to stdout; infinite and undefined numbers are null."""
    sys.stdout.write(json.dumps(finite(data), indent=2, allow_nan=False) + "\n")


def finite(data: Any) -> Any:
    """Replace what JSON has no form for by null, all the way down."""
    if isinstance(data, float) and not math.isfinite(data):
        return None
    if isinstance(data, dict):
        return {str(key): finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return data


def warning_records(warnings: Sequence[Warning]) -> list[dict[str, str]]:
    """Return warnings as JSON values: path, message, rule, severity."""
    return [asdict(warning) for warning in warnings]


def print_failures(out: Console, result: Result, look: Sequence[str], name: str = "") -> None:
    """Tell of the runs that did not complete; `look` are the arguments of `goodput timeline` but the replication."""
    for failure in result.failures:
        command = shlex.join(["goodput", *look, "--replication", str(failure.first_replication)])
        text = f"{name}{': ' if name else ''}{failure.text(result.replications)}; see `{command}`"
        style = "red" if failure.outcome == "failed" else "yellow"
        out.print()
        out.print(Text.assemble((text, style)))


def print_warnings(out: Console, warnings: Sequence[Warning]) -> None:
    """Print warnings, then notes, one paragraph each."""
    for severity, style in (("warning", "yellow"), ("note", "dim")):
        for warning in warnings:
            if warning.severity == severity:
                out.print()
                out.print(Text.assemble((f"{severity.capitalize()}: ", style), str(warning)))


def print_command(out: Console, *arguments: str) -> None:
    """Print the last line: the command that gives this very result again."""
    out.print()
    command = shlex.join(["goodput", *arguments])
    out.print(Text.assemble(("Reproduce: ", "dim"), command), soft_wrap=True)


def check_place(path: Path | None) -> None:
    """Raise `OSError` at once for a file that cannot be written where it is wanted, before anything is computed."""
    if path is None:
        return
    folder = path.parent
    if not folder.exists():
        raise FileNotFoundError(errno.ENOENT, "no such folder to write to", str(folder))
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "is a file, not a folder to write to", str(folder))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a file to write", str(path))
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "no permission to write in this folder", str(folder))


def check_distinct(logs: Sequence[Path]) -> None:
    """Raise `EventError` for a log that is given twice: merged, its run would count double."""
    from sim.accounts.event_kinds import EventError

    by_size: dict[int, list[Path]] = {}
    for log in logs:
        try:
            size = log.stat().st_size
            for other in by_size.get(size, []):
                if size and (log.samefile(other) or log.read_bytes() == other.read_bytes()):
                    same = "given twice" if log == other else f"holds the same events as {other}"
                    raise EventError(f"{log}: {same}; give each log once (got {len(logs)} logs)")
        except OSError:  # told when it is read
            continue
        by_size.setdefault(size, []).append(log)


def replications_of(text: str) -> int | str:
    """Read ``--replications``: auto, or a whole number."""
    if text == "auto":
        return "auto"
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise ScenarioError(
        [Problem("--replications", f"must be auto or a whole number such as 40 {shown(text)}")]
    )


def check_engine(engine: str) -> None:
    """Refuse the driver that does not exist yet, in commands that would not notice."""
    if engine == "batch":
        message = f"batch, the compiled driver, does not exist yet; use events {shown(engine)}"
        raise ScenarioError([Problem("--engine", message)])


@contextmanager
def progress(what: str) -> Iterator[Progress | None]:
    """Show a bar on stderr while runs are made, when stderr is a terminal; else None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def tell(done: int, planned: int) -> None:
            bar.update(task, completed=done, total=planned)

        yield tell
