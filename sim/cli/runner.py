"""The root of the command: commands of other rooms, errors as plain lines, exit codes.

0 fine, 1 a check failed, 2 the input is wrong (told on stderr), 130 interrupted, 70 a fault of the product itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

import typer
from typer.core import TyperGroup

ROOMS = "goodput.commands"
TRACEBACK = "GOODPUT_TRACEBACK"
INPUT_WRONG, INTERRUPTED, BROKEN_PIPE, OUR_FAULT = 2, 130, 141, 70


class Root(TyperGroup):
    """The root command: ours, and what the rooms add; turns errors into exit codes."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, ours first."""
        return [*super().list_commands(ctx), *sorted(_rooms())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command of ours, or load it from its room."""
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in (rooms := _rooms()):
            found = _load(rooms[cmd_name])
        return found

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what a person can put right is told in plain lines, without a traceback."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _close_stdout()
            raise typer.Exit(BROKEN_PIPE) from None
        except Exception as error:  # every kind is told or raised again
            messages = _messages(error)
            if messages is None:
                raise
            for message in messages:
                print(f"error: {message}", file=sys.stderr)
            raise typer.Exit(INPUT_WRONG) from None


def _rooms() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=ROOMS)}


def _load(point: metadata.EntryPoint) -> Any:
    """Return the click command of a room's typer app; one that says so where the room cannot be imported."""
    try:
        command = typer.main.get_command(point.load())
    except (ImportError, AttributeError) as error:
        broken = typer.Typer()
        message = f"the command {point.name} is installed but cannot be loaded: {error}"

        @broken.command(name=point.name, help=message)
        def tell() -> None:
            print(f"error: {message}", file=sys.stderr)
            raise typer.Exit(INPUT_WRONG)

        command = typer.main.get_command(broken)
    command.name = point.name
    return command


def _messages(error: Exception) -> list[str] | None:
    """Return an error of the input as lines for a person; None for any other error."""
    if isinstance(error, OSError):
        name = f"{os.fspath(error.filename)}: " if error.filename is not None else ""
        return [f"{name}{error.strerror or error}"]
    # Not at the top: they bring the whole scenario with them.
    from sim.accounts.event_kinds import EventError
    from sim.engine import RunTooLong
    from sim.schema.fields import ScenarioError

    if isinstance(error, ScenarioError):
        return str(error).splitlines()
    return [str(error)] if isinstance(error, EventError | RunTooLong) else None


def run(app: Callable[..., Any]) -> int:
    """Run the command and return its exit code; nothing but a traceback asked for gets out."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show is no error
    try:
        code = _exit_code(app)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader has gone, as `head` does
        _close_stdout()
        return BROKEN_PIPE
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        text = f"a fault in goodput itself, please report it: {type(error).__name__}: {error}"
        print(f"error: {text}\n       {TRACEBACK}=1 shows where", file=sys.stderr)
        return OUR_FAULT
    return code


def _exit_code(app: Callable[..., Any]) -> int:
    try:
        app(prog_name="goodput")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    return 0


def _close_stdout() -> None:
    """Let nobody write to a reader that has gone; Python would complain when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
