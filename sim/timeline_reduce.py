"""Many ranks, one job: reduce a merged live log to the one timeline that the ledger accounts.

A start or an incident ends when its last rank has `resumed`, and is split along that rank's own events;
what the rank did not log itself (the notice of a fault, the layer's attempts) is taken from the launcher
(rank null) or else from the rank that logged it first. Between incidents the loop is synchronous, so one
rank speaks for all: the one that got furthest before the loop stopped. A checkpoint is durable when every
rank that writes one has said so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sim.event_kinds import LATENT_SYMPTOMS, Event

_PROCESS_KINDS = ("resumed", "step", "phase_begin", "job_start")
_STOP_KINDS = ("abort", "layer_begin", "phase_begin", "job_start", "resumed")
_PASSED_ON = ("node_down", "node_up", "slow_begin", "slow_end")


@dataclass
class _Window:
    """A start or an incident: log[begin..end], both included; end None: the log ends in it."""

    begin: int
    end: int | None = None
    resumed: dict[int | None, int] = field(default_factory=dict)
    world: set[int | None] = field(default_factory=set)


@dataclass
class _Save:
    """One checkpoint as its writers logged it."""

    begun: set[int | None] = field(default_factory=set)
    durable: dict[int | None, Event] = field(default_factory=dict)
    failed: Event | None = None


def is_multi_rank(log: Sequence[Event]) -> bool:
    """Tell whether several ranks tell their own story in this log (simulated logs have one teller)."""
    ranks = set()
    for event in log:
        kind = event["kind"]
        if kind == "run_start" and event.get("source") == "simulated":
            return False
        if kind in _PROCESS_KINDS and event.get("rank") is not None:
            ranks.add(event["rank"])
    return len(ranks) > 1


def one_timeline(log: Sequence[Event]) -> list[Event]:
    """Return the timeline of the job (rank null) from the events of all its ranks, given in order of time."""
    windows = _windows(log)
    told = _settled_saves(log)
    fault_seen: set[object] = set()
    timeline = _run_start(log)
    settled_to = float("-inf")
    for position, window in enumerate(windows):
        last = len(log) - 1
        window_end = last if window.end is None else window.end
        speaker = _speaker(log, window, window_end)
        until = log[window_end]["t"]
        pieces = _incident_events(log[window.begin : window_end + 1], speaker, window.end is not None)
        pieces += _shared_events(log[window.begin : window_end + 1], fault_seen)
        pieces += [event for event in told if settled_to < event["t"] <= until]
        # At equal times `resumed` closes the incident, faults open it.
        timeline += sorted(pieces, key=lambda event: (event["t"], _RANKING.get(event["kind"], 1)))
        settled_to = max(settled_to, until)
        if window.end is None:
            break
        loop_end = windows[position + 1].begin if position + 1 < len(windows) else len(log)
        stop_t = log[loop_end]["t"] if loop_end < len(log) else float("inf")
        loop = _loop_events(log, window_end + 1, stop_t, speaker, window.world)
        loop += _shared_events(log[window_end + 1 : loop_end], fault_seen)
        loop += [event for event in told if settled_to < event["t"] <= stop_t]
        timeline += sorted(loop, key=lambda event: event["t"])
        settled_to = max(settled_to, min(stop_t, log[-1]["t"]))
    return timeline + _ends(log)


_RANKING = {"fault": 0, "resumed": 2}


def _windows(log: Sequence[Event]) -> list[_Window]:
    """Find when the loop stood still: the start, and each incident to the last rank's `resumed`."""
    latent: set[object] = set()
    window = _Window(0)
    windows = [window]
    down = True
    previous: set[int | None] = set()
    for index, event in enumerate(log):
        kind, rank = event["kind"], event.get("rank")
        if kind == "fault" and event.get("symptom") in LATENT_SYMPTOMS:
            latent.add(event["id"])
        if kind == "fault":
            stops = not event.get("idle") and event.get("symptom") not in LATENT_SYMPTOMS
        else:
            stops = kind == "detected" and event.get("fault") in latent
        if down:
            if stops:
                window.resumed.clear()  # those that were ready have to begin again
            elif kind == "resumed":
                window.resumed[rank] = index
                if rank is None or (previous and previous <= window.resumed.keys()):
                    down = False
            elif kind == "step" and rank in window.resumed:
                down = False  # a step takes all ranks: all that will have resumed
            if not down:
                window.end = max(window.resumed.values())
                window.world = previous = set(window.resumed)
            continue
        member = rank is None or rank in window.world
        if kind == "resumed" and not member:
            window.world.add(rank)
        elif stops or (member and kind in _STOP_KINDS):
            window, down = _Window(index), True
            windows.append(window)
            if kind == "resumed":
                window.resumed[rank] = index
    if down and window.resumed and not previous:  # the log ends before the first step
        window.end, window.world = max(window.resumed.values()), set(window.resumed)
    return windows


def _speaker(log: Sequence[Event], window: _Window, last: int) -> int | None:
    """Return the rank along whose timeline a window is split: the last to be ready, else to have spoken."""
    if window.end is not None:
        rank: int | None = log[window.end].get("rank")
        return rank
    for event in reversed(log[window.begin : last + 1]):
        if event.get("rank") is not None and event["kind"] in _PROCESS_KINDS:
            return int(event["rank"])
    return None


def _incident_events(piece: Sequence[Event], speaker: int | None, closed: bool) -> list[Event]:
    chosen: list[Event] = []
    for event in piece:
        if event["kind"] in ("phase_begin", "phase_end") and event.get("rank") in (None, speaker):
            chosen.append(event)
    detected = [event for event in piece if event["kind"] == "detected"]
    for fault in dict.fromkeys(event.get("fault") for event in detected):
        chosen += _tell([event for event in detected if event.get("fault") == fault], speaker)[:1]
    chosen += _tell([event for event in piece if event["kind"] == "abort"], speaker)[:1]
    chosen += _tell([event for event in piece if event["kind"] == "job_start"], speaker)[:1]
    layers = [event for event in piece if event["kind"] in ("layer_begin", "layer_end")]
    named: dict[object, Event] = {}
    for event in [e for e in layers if e.get("rank") in (None, speaker)] or layers:
        named.setdefault((event["kind"], event.get("layer"), event.get("attempt")), event)
    chosen += named.values()
    if closed:
        chosen.append(piece[-1])
    return [{**event, "rank": None} for event in chosen]


def _tell(events: list[Event], speaker: int | None) -> list[Event]:
    """Return the speaker's events, else the launcher's, else everybody's."""
    own = [event for event in events if event.get("rank") == speaker]
    return own or [event for event in events if event.get("rank") is None] or events


def _loop_events(
    log: Sequence[Event], begin: int, stop_t: float, speaker: int | None, world: Iterable[int | None]
) -> list[Event]:
    """Return the steps and stalls of the rank that got furthest by stop_t; the speaker, where several did."""
    end = bisect_left(log, stop_t, lo=begin, key=lambda event: event["t"])
    while end < len(log) and log[end]["t"] == stop_t:
        end += 1
    piece = log[begin:end]
    reached: dict[int | None, int] = {}
    savers: list[int | None] = []
    for event in piece:
        rank = event.get("rank")
        if event["kind"] == "step":
            reached[rank] = event["last"]
        elif event["kind"] == "save_begin" and rank not in savers:
            savers.append(rank)
    order = sorted(world, key=lambda rank: (rank != speaker, -1 if rank is None else rank))
    teller = max(order, key=lambda rank: reached.get(rank, -1), default=speaker)
    saver = teller if teller in savers or not savers else savers[0]
    chosen = [
        event
        for event in piece
        if (event["kind"] == "step" and event.get("rank") == teller)
        or (event["kind"] in ("save_begin", "save_staged") and event.get("rank") == saver)
    ]
    return [{**event, "rank": None} for event in chosen]


def _shared_events(piece: Sequence[Event], fault_seen: set[object]) -> list[Event]:
    """Return what concerns the job whoever logged it: each fault once, and the nodes."""
    chosen = []
    for event in piece:
        if event["kind"] == "fault" and event["id"] not in fault_seen:
            fault_seen.add(event["id"])
            chosen.append(event)
        elif event["kind"] in _PASSED_ON:
            chosen.append(event)
    return chosen


def _settled_saves(log: Sequence[Event]) -> list[Event]:
    """Return the job's save_durable and save_failed, in order of time: when the last writer was done."""
    writers = {event.get("rank") for event in log if event["kind"] == "save_durable"}
    saves: list[_Save] = []
    current: dict[object, _Save] = {}
    for event in log:
        kind, rank, name = event["kind"], event.get("rank"), event.get("id")
        if kind == "save_begin" and not event.get("drain"):
            save = current.get(name)
            if save is None or rank in save.begun:  # an id used again after a restart is another save
                save = current[name] = _Save()
                saves.append(save)
            save.begun.add(rank)
        elif kind in ("save_durable", "save_failed"):
            if name not in current:
                saves.append(current.setdefault(name, _Save()))
            if kind == "save_durable":
                current[name].durable[rank] = event
            elif current[name].failed is None:
                current[name].failed = event
    told: list[Event] = []
    for save in saves:
        if save.failed is not None:
            told.append({**save.failed, "rank": None})
        elif save.durable and save.begun & writers <= save.durable.keys():
            told.append({**max(save.durable.values(), key=lambda event: float(event["t"])), "rank": None})
    return sorted(told, key=lambda event: event["t"])


def _run_start(log: Sequence[Event]) -> list[Event]:
    starts = [event for event in log if event["kind"] == "run_start"]
    if not starts:
        return []
    merged: Event = {}
    for event in reversed(starts):  # what the first one says goes; what it leaves open, others may tell
        merged.update({key: value for key, value in event.items() if value is not None})
    return [{**starts[0], **merged, "rank": None, "t": starts[0]["t"]}]


def _ends(log: Sequence[Event]) -> list[Event]:
    job_ends = [event for event in log if event["kind"] == "job_end"]
    run_ends = [event for event in log if event["kind"] == "run_end"]
    ends = [{**job_ends[-1], "rank": None}] if job_ends else []
    if run_ends:
        ends.append({**run_ends[-1], "rank": None, "t": log[-1]["t"]})
    return ends
