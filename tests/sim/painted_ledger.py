"""A slow, separate accountant: paints every second of a simulated log in whole seconds, one by one.

It shares nothing with sim/accounts/accountant.py. Where that keeps a mark and a stack, this asks of each second which
intervals hold it, and of each second of a step whether any later `resumed` threw the step away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.sim.event_logs import Event

_NOT_STOPPING = ("slowdown", "silent_corruption")


def painted(log: list[Event]) -> tuple[dict[str, int], dict[str, float], float]:
    """Return seconds by category, GPU-seconds by category (with spare_idle), and GPU-seconds of cold spares."""
    wall = log[-1]["t"]
    paint: list[list[str]] = [[] for _ in range(wall)]
    stops = _stop_times(log)
    for begin, end, category in (*_phases(log), *_stalls(log, stops), *_detections(log)):
        for second in range(begin, end):
            paint[second].append(category)
    for second, category in _steps(log):
        paint[second].append(category)
    seconds: Counter[str] = Counter()
    gpu_seconds: Counter[str] = Counter()
    cold = 0.0
    start = log[0]
    for second, colours in enumerate(paint):
        assert len(colours) == 1, f"second {second} is painted {colours}"
        working, hot, cold_nodes = start["nodes"], start["spares"]["hot"], start["spares"]["cold"]
        for event in log:
            if event["kind"] in ("node_down", "node_up") and event["t"] <= second:
                working, hot, cold_nodes = event["working"], event["hot"], event["cold"]
        seconds[colours[0]] += 1
        gpu_seconds[colours[0]] += working * start["gpus_per_node"]
        gpu_seconds["spare_idle"] += hot * start["gpus_per_node"]
        cold += cold_nodes * start["gpus_per_node"]
    return dict(seconds), dict(gpu_seconds), cold


def _stop_times(log: list[Event]) -> list[int]:
    latent = {e["id"] for e in log if e["kind"] == "fault" and e["symptom"] in _NOT_STOPPING}
    return [
        e["t"]
        for e in log
        if (e["kind"] == "fault" and e["symptom"] not in _NOT_STOPPING and not e.get("idle"))
        or (e["kind"] == "detected" and e["fault"] in latent)
    ]


def _phases(log: list[Event]) -> Iterator[tuple[int, int, str]]:
    for index, event in enumerate(log):
        if event["kind"] == "phase_begin":
            end = next(e for e in log[index:] if e["kind"] == "phase_end")
            own = event["phase"] in ("checkpoint_load", "node_wait", "detect")
            layer = event["layer"]
            category = event["phase"] if own else "startup" if layer is None else f"restart.{layer}"
            yield event["t"], end["t"], category


def _stalls(log: list[Event], stops: list[int]) -> Iterator[tuple[int, int, str]]:
    over = ("save_staged", "save_durable", "save_failed")
    for index, event in enumerate(log):
        if event["kind"] == "save_begin":
            ends = [e["t"] for e in log[index:] if e["kind"] in over and e["id"] == event["id"]]
            ends += [t for t in stops if t >= event["t"]]
            yield event["t"], min([*ends, log[-1]["t"]]), "checkpoint_stall"


def _detections(log: list[Event]) -> Iterator[tuple[int, int, str]]:
    for index, event in enumerate(log):
        if event["kind"] == "fault" and not event.get("idle") and event["symptom"] not in _NOT_STOPPING:
            noticed = next(e for e in log[index:] if e["kind"] == "detected" and e["fault"] == event["id"])
            yield event["t"], noticed["t"], "detect"


def _steps(log: list[Event]) -> Iterator[tuple[int, str]]:
    nominal, mode = log[0]["nominal_step_s"], log[0]["checkpoint_mode"]
    job_end = next(e for e in log if e["kind"] == "job_end")
    kept_to = float("inf") if job_end["outcome"] == "completed" or mode == "ideal" else _kept_step(log)
    carried = 0  # seconds of the next step that an earlier stretch has run and that are kept (mode ideal)
    for index, event in enumerate(log):
        if event["kind"] == "resumed":
            if not (mode == "ideal" and event["step"] == _done_before(log, index)):
                carried = 0
        if event["kind"] != "step":
            continue
        second = event["t"] - event["dur_s"]
        step, left = event["first"], nominal - carried
        slow = event.get("slow_s", 0)
        for offset in range(event["dur_s"] - slow):
            if left == 0:
                step, left = step + 1, nominal
            left -= 1
            unfinished = step > event["last"]
            yield second + offset, _fate(log, index, step, unfinished, mode, kept_to, "productive")
        for offset in range(slow):  # only single steps are slow in these logs
            fate = _fate(log, index, event["last"], False, mode, kept_to, "slowdown")
            yield second + event["dur_s"] - slow + offset, fate
        carried = (nominal - left) % nominal if step > event["last"] else 0


def _done_before(log: list[Event], index: int) -> int:
    for event in reversed(log[:index]):
        if event["kind"] == "step":
            return int(event["last"])
        if event["kind"] == "resumed":
            return int(event["step"])
    return 0


def _fate(
    log: list[Event], index: int, step: int, unfinished: bool, mode: str, kept_to: float, otherwise: str
) -> str:
    for place, later in enumerate(log[index + 1 :], index + 1):
        if later["kind"] == "resumed":
            # An unfinished step survives in mode ideal, if the restart goes on from just there.
            just_there = later["step"] == step - 1 == _done_before(log, place)
            if later["step"] < step and not (unfinished and mode == "ideal" and just_there):
                return "rework"
            if unfinished and mode != "ideal":
                return "rework"
    if step > kept_to or (unfinished and mode != "ideal" and kept_to < float("inf")):
        return "rework"
    return otherwise


def _kept_step(log: list[Event]) -> int:
    """Return the newest durable step that no later restart passed over."""
    kept = [0]
    for index, event in enumerate(log):
        if event["kind"] == "save_durable":
            later = [e["step"] for e in log[index:] if e["kind"] == "resumed"]
            if all(step >= event["step"] for step in later):
                kept.append(event["step"])
    return max(kept)
