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


def running_s(sheet: Sheet, least_s: float = 0.0) -> int:
    """Return the timeout while the loop runs [s]: the scenario's, unless a save outlasts it, or `least_s` is more."""
    return _told(sheet, max(_running_s(sheet), math.ceil(least_s)), "save")


def whole_life_s(sheet: Sheet) -> int:
    """Return the one timeout of a framework that has no other for the start [s]."""
    return _told(sheet, max(_running_s(sheet), start_s(sheet, 0.0)), "start or a save")


def _running_s(sheet: Sheet) -> int:
    timeouts = sheet.settings.timeouts
    assert timeouts.nccl.seconds is not None  # a step always has a length
    save_s = timeouts.checkpointing.covers_s or 0.0
    if timeouts.nccl.seconds > save_s:
        return math.ceil(timeouts.nccl.seconds)
    return math.ceil(SAFETY_FACTOR * save_s)


def _told(sheet: Sheet, seconds: int, outlasts: str) -> int:
    nccl_s = sheet.settings.timeouts.nccl.seconds
    assert nccl_s is not None
    if seconds > math.ceil(nccl_s):
        sheet.warn(
            "export-group-timeout",
            PATH,
            f"{format_duration(nccl_s)} in the model, {format_duration(seconds)} in this file: in "
            f"{sheet.framework.name} it must outlast a {outlasts} of the slowest rank too; a hang that nothing else "
            "notices costs that much more",
        )
    return seconds
