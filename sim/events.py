"""Event logs on disk: JSON lines, one event a line, written whole and read forgivingly.

The vocabulary is the table `KINDS` (sim/accounts/event_kinds.py); `validate` (sim/accounts/event_check.py) judges.
A log of a real run is what a crash leaves behind, so `read_jsonl` copes with a torn last line, a missing
`run_end` and ranks that died; text that no crash explains is refused with `path:line`.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from sim.accounts.event_check import validate
from sim.accounts.event_kinds import (
    KINDS,
    LATENT_SYMPTOMS,
    LAYERS,
    PHASES,
    SCHEMA_VERSION,
    Event,
    EventError,
    Kind,
    misfits,
)

__all__ = [
    "KINDS", "LATENT_SYMPTOMS", "LAYERS", "PHASES", "SCHEMA_VERSION", "Event", "EventError", "Kind", "by_run",
    "dumps", "read_jsonl", "validate", "write_jsonl",
]  # fmt: skip


def dumps(event: Event) -> str:
    """Return one event as a line of JSON without its newline; floats survive the round trip to the last bit.

    Raises EventError for values that JSON has no form for (infinite or undefined numbers, foreign objects).
    """
    try:
        return json.dumps(event, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise EventError(f"event cannot be written as JSON: {error} (got {event!r})") from None


def write_jsonl(path: str | Path, events: Iterable[Event]) -> int:
    """Write a log and return its number of events; the file is complete or not there at all.

    The lines go to a file beside `path` that takes its name only when all are on disk. Raises EventError.
    """
    target = Path(path)
    count = 0
    beside = ""
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
            for event in events:
                out.write(dumps(event))
                out.write("\n")
                count += 1
            out.flush()
            os.fsync(out.fileno())
        _like_a_plain_file(beside)
        os.replace(beside, target)
    except OSError as error:
        raise EventError(f"{target}: cannot be written ({error.strerror or error})") from None
    finally:
        if beside:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(beside)
    return count


def _like_a_plain_file(path: str) -> None:
    """Give the private temporary file the permissions that `open` would have given it."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)


def read_jsonl(paths: str | Path | Sequence[str | Path]) -> list[Event]:
    """Read one log, or the files of several ranks merged into one log in the order of `t`.

    Events of the same `t` keep the order of their file, and files the order given. Torn lines are dropped
    where a crash explains them: the last line of a file, or one that a restarted process has written on
    from. Blank lines are skipped. Raises EventError (`path:line: ...`) for anything else that is no event
    of this schema version.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    events: list[Event] = []
    for file in files:
        events.extend(_read_file(Path(file)))
    events.sort(key=lambda event: event["t"])
    return events


def by_run(events: Iterable[Event]) -> dict[object, list[Event]]:
    """Split a merged log by its `run` label, in order of appearance."""
    runs: dict[object, list[Event]] = {}
    for event in events:
        runs.setdefault(event.get("run"), []).append(event)
    return runs


def _read_file(path: Path) -> list[Event]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EventError(f"{path}: cannot be read ({error.strerror or error})") from None
    events: list[Event] = []
    lines = data.split(b"\n")
    for number, raw in enumerate(lines, 1):
        line = raw.strip(b"\x00 \t\r")  # a power cut may leave a block of zeros
        if not line:
            continue
        value = _parse(line)
        if value is None:
            # A torn record: its writer died. A process that was restarted may have appended to it since.
            value = _parse(line[tail:]) if (tail := line.rfind(b'{"v":')) > 0 else None
            if value is None and number == len(lines):
                continue
        _check(value, path, number, line)
        assert isinstance(value, dict)
        events.append(value)
    return events


def _parse(line: bytes) -> object | None:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):  # undecodable bytes are a ValueError too
        return None
    return value


def _check(value: object, path: Path, number: int, line: bytes) -> None:
    where = f"{path}:{number}"
    if not isinstance(value, dict):
        shown = line[:60].decode("utf-8", "replace")
        raise EventError(f"{where}: not an event, which is one JSON object a line (got {shown!r})")
    version = value.get("v")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise EventError(f"{where}: schema version {version!r}; this reader knows version {SCHEMA_VERSION}")
    if problems := misfits(value):
        raise EventError(f"{where}: {value.get('kind', 'event')}: {'; '.join(problems)}")
