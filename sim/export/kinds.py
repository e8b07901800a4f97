"""Which kinds of saves a framework knows, and what becomes of those that it does not know.

Also what holds for one save in every framework: what it does while the write before it is in flight, whether it can
write in the background, whether the end of the job is saved.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from sim.export.settings import Level
from sim.export.sheet import Sheet
from sim.units import format_duration, shown


class Kinds(NamedTuple):
    """The saves that a framework is told of."""

    far: Level
    """the persistent one"""
    near: Level | None
    """the non-persistent one, where the framework has it"""
    background: bool
    """the loop goes on while one of them is written"""

    def all(self) -> tuple[Level, ...]:
        """Return the one or two."""
        return (self.far,) if self.near is None else (self.far, self.near)


def split(sheet: Sheet, second: Literal["", "local", "ephemeral"]) -> Kinds:
    """Return the persistent save, and the nearer one if the framework has a `second` kind.

    Says which tiers are lost; refuses what leaves no interval to export.
    """
    settings, framework = sheet.settings, sheet.framework.name
    checkpoint, levels = settings.scenario.checkpoint, settings.levels
    if not levels:
        got = shown(checkpoint.mode)
        sheet.refuse(
            "checkpoint.mode", f"has no interval that {framework} could be told; now: sync, async, tiered {got}"
        )
    if checkpoint.mode == "local":
        if second != "local":
            sheet.refuse(
                "checkpoint.mode",
                f"{framework} writes every checkpoint to shared storage, and this interval is meant for local copies; "
                f"take mode sync or async, whose interval is another {shown('local')}",
            )
        return _only_local(sheet, levels[0])
    far = levels[-1]
    near = levels[0] if len(levels) > 1 and second else None
    for level in levels:
        if level not in (far, near):
            has = "no second kind of save" if not second else "two kinds of saves"
            sheet.warn(
                "export-tier-lost",
                level.path,
                f"tier {level.name}, every {level.text()}, is not in this file: {framework} has {has}",
            )
    return Kinds(far, near, any(level.write_s > 0 for level in (far, near) if level is not None))


def one_switch(sheet: Sheet, kinds: Kinds) -> None:
    """Say that both kinds are written in the background although the scenario has one of them blocking."""
    far, near = kinds.far, kinds.near
    if near is not None and far.stall_s > 0 and (near.write_s > 0) != (far.write_s > 0):
        sheet.warn(
            "export-async-mixed",
            near.path,
            f"{sheet.framework.name} has one switch for both kinds of saves: {near.name} and {far.name} are both "
            "written in the background, and the scenario has one of them blocking",
        )


def _only_local(sheet: Sheet, near: Level) -> Kinds:
    """Return the local save, and as the persistent one that of the job's end: these frameworks demand an interval."""
    scenario, framework = sheet.settings.scenario, sheet.framework.name
    total = scenario.total_steps()
    sheet.warn(
        "export-no-persistent-tier",
        "checkpoint.mode",
        f"local: {framework} needs an interval of persistent saves beside the local ones; it is set to the job's "
        f"{total} steps, so that the end alone is saved persistently and a fault that no local copy survives begins "
        "the job anew",
    )
    far = Level("checkpoint.final_save", "the end", total, total * scenario.nominal_step_s(), 0.0, 0.0, True)
    return Kinds(far, near, near.write_s > 0)


def no_background(sheet: Sheet, level: Level) -> float:
    """Say what it costs that the framework cannot write in the background; return the time of a save [s]."""
    if level.write_s > 0:
        sheet.warn(
            "export-no-async",
            "checkpoint.mode",
            f"{sheet.framework.name} does not write in the background: the loop stands still for the whole save, up "
            f"to {format_duration(level.stall_s + level.write_s)} instead of {format_duration(level.stall_s)}; the "
            "interval for that is the one of mode sync",
        )
    return level.stall_s + level.write_s


def while_busy(sheet: Sheet, level: Level, does: Literal["wait", "queue"]) -> None:
    """Say that the framework does otherwise than the model while a write is in flight, where that can happen."""
    assumed = sheet.settings.scenario.checkpoint.on_busy
    if level.write_s > level.interval_s and assumed != does:
        what = {
            "wait": "waits until it has ended, and the loop stands still",
            "queue": "queues behind it, and host memory grows",
        }[does]
        sheet.warn(
            "export-on-busy",
            "checkpoint.on_busy",
            f"{assumed}, but in {sheet.framework.name} a save that finds a write in flight {what}; a write takes up to "
            f"{format_duration(level.write_s)}, and the next save comes after {format_duration(level.interval_s)}",
        )


def end_always_saved(sheet: Sheet) -> None:
    """Say that the framework saves the end of the job although the scenario does not."""
    if not sheet.settings.scenario.checkpoint.final_save:
        message = f"false, but {sheet.framework.name} saves after the last step whatever is set"
        sheet.warn("export-final-save", "checkpoint.final_save", message)
