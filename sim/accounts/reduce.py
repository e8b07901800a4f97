"""Many ranks, one job: reduce a merged live log to the one timeline that the ledger accounts.

A start or an incident ends when its last rank has `resumed`, and is split along that rank's own events;
what the rank did not log itself (the notice of a fault, the layer's attempts) is taken from the launcher
(rank null) or else from the rank that logged it first. Between incidents the loop is synchronous, so one
rank speaks for all: the one that got furthest before the loop stopped. A checkpoint is durable when every
rank that writes one has said so.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sim.accounts.event_kinds import LATENT_SYMPTOMS, Event

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
    durable: dict[int | None, int] = field(default_factory=dict)
    failed: int | None = None


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
    settled_to = -math.inf
    for window, following in zip(windows, [*windows[1:], None], strict=True):
        last = len(log) - 1 if window.end is None else window.end
        span = range(window.begin, last + 1)
        speaker = _speaker(log, window)
        chosen = {*_incident_events(log, span, speaker), *_shared_events(log, span, fault_seen)}
        if window.end is not None:
            chosen.add(window.end)
        chosen |= {place for place in told if settled_to < log[place]["t"] <= log[last]["t"]}
        timeline += [log[place] for place in sorted(chosen)]
        settled_to = max(settled_to, log[last]["t"])
        if window.end is None:
            break
        loop_end = following.begin if following else len(log)
        stop_t = log[loop_end]["t"] if following else math.inf
        chosen = set(_loop_events(log, last + 1, stop_t, speaker, window.world))
        chosen |= set(_shared_events(log, range(last + 1, loop_end), fault_seen))
        chosen |= {place for place in told if settled_to < log[place]["t"] <= stop_t}
        timeline += [log[place] for place in sorted(chosen)]
        settled_to = max(settled_to, stop_t)
    return [{**event, "rank": None} for event in (*timeline, *_ends(log))]


def _windows(log: Sequence[Event]) -> list[_Window]:
    """Find when the loop stood still: the start, and each incident to the last rank's `resumed`."""
    latent: set[object] = set()
    struck: set[object] = set()
    window = _Window(0)
    windows = [window]
    down, stepped = True, False
    world: set[int | None] = set()  # the ranks that ran last; before the first loop, those that have spoken
    for index, event in enumerate(log):
        kind, rank = event["kind"], event.get("rank")
        stops = False
        if kind == "fault" and event["id"] not in struck and not event.get("idle"):
            struck.add(event["id"])
            if event.get("symptom") in LATENT_SYMPTOMS:
                latent.add(event["id"])
            else:
                stops = True
        elif kind == "detected" and event.get("fault") in latent:
            latent.discard(event["fault"])
            stops = True
        if down:
            if len(windows) == 1 and rank is not None and kind in _PROCESS_KINDS:
                world.add(rank)
            if stops:
                window.resumed.clear()  # those that were ready have to begin again
            elif kind == "resumed":
                window.resumed[rank] = index
                down = not (rank is None or world <= window.resumed.keys())
            elif kind == "step" and rank in window.resumed:
                down = False  # a step takes all ranks: all that will have resumed
            if not down:
                stepped = kind == "step"
                window.end = max(window.resumed.values())
                window.world = world = set(window.resumed)
            continue
        stepped = stepped or kind == "step"
        member = rank is None or rank in window.world
        if kind == "resumed" and not member:
            window.world.add(rank)
            if not stepped:  # one more was to come
                window.end = index
        elif stops or (member and kind in _STOP_KINDS):
            window, down = _Window(index), True
            windows.append(window)
            if kind == "resumed":
                window.resumed[rank] = index
    return windows


def _speaker(log: Sequence[Event], window: _Window) -> int | None:
    """Return the rank along whose timeline a window is split: the last to be ready, else to have spoken."""
    if window.end is not None:
        rank: int | None = log[window.end].get("rank")
        return rank
    for event in reversed(log[window.begin :]):
        if event.get("rank") is not None and event["kind"] in _PROCESS_KINDS:
            return int(event["rank"])
    return None


def _incident_events(log: Sequence[Event], span: range, speaker: int | None) -> list[int]:
    """Return the places in the log of the phases, notices and attempts that tell of a start or an incident."""
    told: dict[tuple[object, ...], list[int]] = {}
    attempts: dict[tuple[object, ...], list[int]] = {}
    chosen = []
    for place in span:
        event = log[place]
        kind = event["kind"]
        if kind in ("phase_begin", "phase_end"):
            if event.get("rank") in (None, speaker):
                chosen.append(place)
        elif kind in ("layer_begin", "layer_end"):
            attempts.setdefault((kind, event.get("layer"), event.get("attempt")), []).append(place)
        elif kind in ("detected", "abort", "job_start"):
            told.setdefault((kind, event.get("fault")), []).append(place)
    for places in (*told.values(), *attempts.values()):
        own = [place for place in places if log[place].get("rank") == speaker]
        launcher = [place for place in places if log[place].get("rank") is None]
        chosen.append((own or launcher or places)[0])
    return chosen


def _loop_events(
    log: Sequence[Event], begin: int, stop_t: float, speaker: int | None, world: Iterable[int | None]
) -> list[int]:
    """Return the places of the steps and stalls of the rank that got furthest by stop_t, the speaker if any."""
    end = bisect_right(log, stop_t, lo=begin, key=lambda event: float(event["t"]))
    reached: dict[int | None, int] = {}
    savers: list[int | None] = []
    for event in log[begin:end]:
        rank = event.get("rank")
        if event["kind"] == "step":
            reached[rank] = event["last"]
        elif event["kind"] == "save_begin" and rank not in savers:
            savers.append(rank)
    order = sorted(world, key=lambda rank: (rank != speaker, -1 if rank is None else rank))
    teller = max(order, key=lambda rank: reached.get(rank, -1), default=speaker)
    saver = teller if teller in savers or not savers else savers[0]
    speakers = {"step": teller, "save_begin": saver, "save_staged": saver}
    return [
        place
        for place in range(begin, end)
        if log[place]["kind"] in speakers and log[place].get("rank") == speakers[log[place]["kind"]]
    ]


def _shared_events(log: Sequence[Event], span: range, fault_seen: set[object]) -> list[int]:
    """Return the places of what concerns the job whoever logged it: each fault once, and the nodes."""
    chosen = []
    for place in span:
        event = log[place]
        if event["kind"] == "fault" and event["id"] not in fault_seen:
            fault_seen.add(event["id"])
            chosen.append(place)
        elif event["kind"] in _PASSED_ON:
            chosen.append(place)
    return chosen


def _settled_saves(log: Sequence[Event]) -> list[int]:
    """Return the places of the job's save_durable and save_failed: where the last of its writers was done."""
    writers = {event.get("rank") for event in log if event["kind"] == "save_durable"}
    saves: list[_Save] = []
    current: dict[object, _Save] = {}
    for place, event in enumerate(log):
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
                current[name].durable[rank] = place
            elif current[name].failed is None:
                current[name].failed = place
    told = []
    for save in saves:
        if save.failed is not None:
            told.append(save.failed)
        elif save.durable and save.begun & writers <= save.durable.keys():
            told.append(max(save.durable.values()))
    return told


def _run_start(log: Sequence[Event]) -> list[Event]:
    starts = [event for event in log if event["kind"] == "run_start"]
    if not starts:
        return []
    merged: Event = {}
    for event in reversed(starts):  # what the first one says goes; what it leaves open, others may tell
        merged.update({key: value for key, value in event.items() if value is not None})
    return [{**starts[0], **merged, "t": starts[0]["t"]}]


def _ends(log: Sequence[Event]) -> list[Event]:
    job_ends = [event for event in log if event["kind"] == "job_end"]
    run_ends = [event for event in log if event["kind"] == "run_end"]
    return job_ends[-1:] + [{**event, "t": log[-1]["t"]} for event in run_ends[-1:]]
