"""One run as a story: its event log folded into a few chapters that a person can read.

`tell` reads any event log and returns the chapters: the start, stretches of the loop, incidents, the end. What is
uneventful is counted, not listed. sim/timeline/text.py prints them, sim/timeline/page.py draws them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.accounts.event_kinds import Event, of_one_pod
from sim.accounts.reduce import is_multi_rank, one_timeline
from sim.timeline.story import Tale, start_of
from sim.timeline.teller import Teller

__all__ = ["job_log", "tell"]


def job_log(events: Sequence[Event]) -> list[Event]:
    """Return the one timeline of the job, in order of time: without what ranks or pods tell of themselves."""
    log = sorted(events, key=lambda event: event["t"])
    if is_multi_rank(log):
        struck: dict[object, object] = {}
        for event in log:
            if event["kind"] == "fault":
                struck.setdefault(event["id"], event.get("rank"))
        # The timeline is no rank's own, but whom a fault struck is part of the story.
        return [
            {**event, "rank": struck[event["id"]]} if event["kind"] == "fault" else event
            for event in one_timeline(log)
        ]
    simulated = any(event["kind"] == "run_start" and event.get("source") == "simulated" for event in log)
    return [event for event in log if not of_one_pod(event)] if simulated else log


def tell(events: Sequence[Event]) -> Tale:
    """Fold an event log into its chapters."""
    log = job_log(events)
    run_start = next((event for event in log if event["kind"] == "run_start"), {})
    teller = Teller(run_start, start_of(log))
    for event in log:
        teller.hear(event)
    teller.finish(log[-1]["t"] if log else teller.zero)
    return teller.tale
