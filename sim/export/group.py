"""The process group's timeout, in the forms that frameworks have it: one for the whole life, or one after the start.

A rank that has written its part waits in a collective for the slowest, and before the first step for the slowest to
start; a timeout that does not outlast that ends a healthy job.
"""

from __future__ import annotations

import math

from sim.export.sheet import Sheet
from sim.export.timeouts import MARGIN
from sim.units import format_duration
from sim.warn.rule import SAFETY_FACTOR

PATH = "recovery.nccl_timeout"


def start_s(sheet: Sheet, least_s: float) -> int:
    """Return the timeout until the first step is done: 1.5 starts, as no rank waits longer than another one starts [s].

    `least_s` is the framework's own default, which is never lowered.
    """
    covers_s = sheet.settings.timeouts.setup.covers_s or 0.0
    return math.ceil(max(least_s, MARGIN * covers_s))


def running_s(sheet: Sheet, block_s: float, least_s: float = 0.0) -> int:
    """Return the timeout while the loop runs [s]: the scenario's, unless a save outlasts it, or `least_s` is more.

    `block_s` is the time the loop stands still for a save. The wait for the last write of all is left out: it comes
    once, and a timeout for it would let every hang of the job last that long.
    """
    seconds = max(_running_s(sheet, block_s), math.ceil(least_s))
    last_s = max((level.stall_s + level.write_s for level in sheet.settings.levels), default=0.0)
    if block_s < seconds <= last_s:
        sheet.note(
            "export-last-write",
            PATH,
            f"{format_duration(seconds)}, and at the end of the job a rank whose write is done may wait up to "
            f"{format_duration(last_s)} for the slowest one's: the last checkpoint may be lost to the watchdog",
        )
    return _told(sheet, seconds, block_s, "a save of the slowest rank")


def whole_life_s(sheet: Sheet, block_s: float) -> int:
    """Return the one timeout of a framework that has no other for the start [s]."""
    seconds = max(_running_s(sheet, block_s), start_s(sheet, 0.0))
    return _told(sheet, seconds, block_s, "the start and a save of the slowest rank")


def _running_s(sheet: Sheet, block_s: float) -> int:
    nccl_s = _model_s(sheet)
    return math.ceil(nccl_s if nccl_s > block_s else SAFETY_FACTOR * block_s)


def _model_s(sheet: Sheet) -> float:
    seconds = sheet.settings.timeouts.nccl.seconds
    assert seconds is not None  # a step always has a length
    return seconds


def _told(sheet: Sheet, seconds: int, block_s: float, outlasts: str) -> int:
    nccl_s = _model_s(sheet)
    if seconds > math.ceil(nccl_s):
        choose = f"; state one above {format_duration(block_s)} to choose another" if nccl_s <= block_s else ""
        sheet.warn(
            "export-group-timeout",
            PATH,
            f"{format_duration(nccl_s)} in the model, {format_duration(seconds)} in this file: in "
            f"{sheet.framework.name} it must outlast {outlasts}, and a hang that nothing else notices costs that much "
            f"more{choose}",
        )
    return seconds
