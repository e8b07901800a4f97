"""Judge an event log: `validate` returns what is wrong with it, one text a problem.

Every log is held to the table of kinds, to the order of time and to its references. A simulated log is one
story, so it is held to its grammar too: every instant between `run_start` and `run_end` is covered exactly
once (by a phase, by a fault not yet noticed, by a stall or by steps), steps follow one another, and nodes
are conserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.accounts.event_kinds import KINDS, LATENT_SYMPTOMS, Event, field_problems, is_number, of_one_pod

_POOLS = ("working", "hot", "cold", "repair", "retired")


def validate(events: Sequence[Event], limit: int = 100) -> list[str]:
    """Return at most `limit` problems of a log, in its order; empty when it is sound.

    Each text names the event by its position, time and kind: `event 12 (t=3.5 step): dur_s: missing`.
    """
    found = _Problems(limit)
    if not events:
        found.add("the log is empty")
    sound: list[tuple[int, Event]] = []
    for position, event in enumerate(events):
        problems = field_problems(event)
        for problem in problems:
            found.at(position, event, problem)
        if not problems:
            sound.append((position, event))
    _order(sound, found)
    starts = [event for _, event in sound if event["kind"] == "run_start"]
    if not starts:
        found.add("no run_start")
    elif starts[0]["source"] == "simulated" and not found.texts:
        _Story(found).tell([(place, event) for place, event in sound if not of_one_pod(event)])
    return found.texts


class _Problems:
    def __init__(self, limit: int) -> None:
        self.texts: list[str] = []
        self._limit = limit

    def add(self, text: str) -> None:
        if len(self.texts) < self._limit:
            self.texts.append(text)

    def at(self, position: int, event: Event, text: str) -> None:
        self.add(f"event {position} (t={event.get('t')} {event.get('kind')}): {text}")


def _order(events: list[tuple[int, Event]], found: _Problems) -> None:
    """Check time, which never runs back, and that notices name faults and writes name saves that exist."""
    last_t = float("-inf")
    faults: set[object] = set()
    saves: set[object] = set()
    runs = {event.get("run") for _, event in events}
    if len(runs) > 1:
        found.add(f"the log holds {len(runs)} runs; split it by `run` first")
    for position, event in events:
        kind = event["kind"]
        if event["t"] < last_t:
            found.at(position, event, f"time runs back from {last_t}")
        last_t = max(last_t, event["t"])
        if kind == "fault":
            faults.add(event["id"])
        elif kind == "save_begin":
            saves.add(event["id"])
        elif kind == "detected" and event["fault"] is not None and event["fault"] not in faults:
            found.at(position, event, f"fault {event['fault']!r} has not struck")
        elif kind in ("save_staged", "save_durable", "save_failed") and event["id"] not in saves:
            found.at(position, event, f"save {event['id']!r} has not begun")


class _Story:
    """Walks through a simulated log and complains where the story does not hold together."""

    def __init__(self, found: _Problems) -> None:
        self.found = found
        self.position = 0
        self.event: Event = {}
        self.state = "start"  # start | loop | down (an incident) | over
        self.tolerance = 0.0
        self.covered = 0.0  # everything before this time is accounted for
        self.done = 0
        self.steps: int | None = None
        self.phase: tuple[Any, ...] | None = None
        self.layer: tuple[Any, ...] | None = None
        self.unnoticed = False
        self.latent: set[object] = set()
        self.fault_ids: set[object] = set()
        self.stalls: list[object] = []
        self.saves: dict[object, int] = {}
        self.settled: dict[object, str] = {}
        self.nodes: dict[str, int] = {}

    def bad(self, text: str) -> None:
        self.found.at(self.position, self.event, text)

    def tell(self, events: list[tuple[int, Event]]) -> None:
        kinds = [event["kind"] for _, event in events]
        for kind in ("run_start", "job_start", "job_end", "run_end"):
            if kinds.count(kind) != 1:
                self.found.add(f"{kind} must occur once (got {kinds.count(kind)} times)")
        if kinds[:1] != ["run_start"] or kinds[-1:] != ["run_end"]:
            self.found.add("a log begins with run_start and ends with run_end")
        first, last = events[0][1], events[-1][1]
        self.covered = first["t"]
        self.tolerance = 1e-9 * max(1.0, last["t"] - first["t"])
        for self.position, self.event in events:
            event = self.event
            if self.state == "over" and event["kind"] != "run_end":
                self.bad("the job is over")
            getattr(self, f"_{event['kind']}")(event)

    def _cover(self, what: str) -> None:
        """Charge the time up to now to the state that holds; complain if nothing explains it."""
        gap = self.event["t"] - self.covered
        explained = self.phase or self.stalls or (self.state == "down" and self.unnoticed)
        if gap > self.tolerance and not explained:
            self.bad(f"{gap:.9g} s before {what} belong to no step, stall, phase or detection")
        self.covered = self.event["t"]

    # ---- the run and its phases

    def _run_start(self, event: Event) -> None:
        self.done, self.steps = event["start_step"], event["steps"]
        spares = event["spares"]
        self.nodes = {"working": event["nodes"], "repair": 0, "retired": 0}
        for pool in ("hot", "cold"):
            count = spares.get(pool, 0)
            if not is_number(count) or count < 0:
                self.bad(f"spares.{pool}: must be a count (got {count!r})")
                count = 0
            self.nodes[pool] = count

    def _job_start(self, event: Event) -> None:
        self._cover("job_start")

    def _phase_begin(self, event: Event) -> None:
        self._cover("the phase")
        if self.phase:
            self.bad(f"{self.phase[0]} has not ended")
        if self.state == "loop":
            self.bad("the loop runs")
        self.phase = (event["phase"], event["layer"], event["attempt"])

    def _phase_end(self, event: Event) -> None:
        self._cover("the end of the phase")
        named = (event["phase"], event["layer"], event["attempt"])
        if self.phase != named:
            self.bad(f"it ends {named}, open is {self.phase}")
        self.phase = None

    def _resumed(self, event: Event) -> None:
        self._cover("resumed")
        if self.state == "loop":
            self.bad("the loop runs already")
        if event["step"] > self.done:
            self.bad(f"only {self.done} steps were done")
        if self.phase:
            self.bad(f"{self.phase[0]} has not ended")
        self.state, self.phase, self.unnoticed = "loop", None, False
        self.done = event["step"]

    # ---- the loop

    def _step(self, event: Event) -> None:
        if self.state != "loop" or self.stalls:
            self.bad("the loop stands still")
        if self.layer:
            self.bad(f"{self.layer[0]} has not ended")
        if event["first"] != self.done + 1:
            self.bad(f"first must be {self.done + 1}")
        part = event.get("part", 0.0)
        if event["last"] < event["first"] - (1 if part else 0):
            self.bad("last comes before first")
        if not 0.0 <= part <= 1.0 or event["dur_s"] < 0.0 or event.get("slow_s", 0.0) < 0.0:
            self.bad("part must lie in 0..1, dur_s and slow_s must not be negative")
        if event.get("slow_s", 0.0) > event["dur_s"] + self.tolerance:
            self.bad("slow_s is more than dur_s")
        gap = event["t"] - event["dur_s"] - self.covered
        if abs(gap) > self.tolerance:
            self.bad(f"dur_s differs by {gap:.9g} s from the time the loop has run")
        self.covered = event["t"]
        self.done = event["last"]

    def _save_begin(self, event: Event) -> None:
        self._cover("the save")
        save = event["id"]
        if self.state != "loop":
            self.bad("the loop stands still")
        if event.get("drain"):
            if save not in self.saves:
                self.bad(f"save {save!r} has not begun")
        else:
            if save in self.saves:
                self.bad(f"save {save!r} has begun before")
            if event.get("step") != self.done:
                self.bad(f"step must be {self.done} (got {event.get('step')!r})")
            self.saves[save] = self.done
        self.stalls.append(save)

    def _save_over(self, event: Event) -> None:
        save = event["id"]
        if save in self.stalls:
            self._cover("the save")
            self.stalls.remove(save)
        if event["kind"] == "save_staged":
            return
        if event["step"] != self.saves.get(save):
            self.bad(f"step must be {self.saves.get(save)}")
        if save in self.settled:
            self.bad(f"save {save!r} is settled already: {self.settled[save]}")
        self.settled[save] = event["kind"]

    _save_staged = _save_durable = _save_failed = _save_over

    # ---- faults and restarts

    def _fault(self, event: Event) -> None:
        if event["id"] in self.fault_ids:
            self.bad("a fault of this id has struck before")
        self.fault_ids.add(event["id"])
        if event.get("idle"):
            return
        if event["symptom"] in LATENT_SYMPTOMS:
            self.latent.add(event["id"])
        else:
            self._stop("the fault")
            self.unnoticed = True

    def _stop(self, what: str) -> None:
        self._cover(what)
        if self.phase:
            self.bad(f"{self.phase[0]} must be cut (phase_end) before {what}")
        self.phase = None
        self.stalls.clear()
        self.state = "down"

    def _detected(self, event: Event) -> None:
        if event["fault"] in self.latent:
            self._stop("the notice")
        else:
            self._cover("the notice")
            self.unnoticed = False
        if self.state != "down":
            self.bad("nothing has stopped the job")

    def _abort(self, event: Event) -> None:
        self._cover("abort")
        if self.state != "down":
            self.bad("nothing has stopped the job")

    def _layer_begin(self, event: Event) -> None:
        self._cover("the layer")
        if self.state != "down":
            self.bad("nothing has stopped the job")
        if self.layer:
            self.bad(f"{self.layer[0]} has not ended")
        self.layer = (event["layer"], event["attempt"])

    def _layer_end(self, event: Event) -> None:
        self._cover("the end of the layer")
        named = (event["layer"], event["attempt"])
        if self.layer != named:
            self.bad(f"it ends {named}, open is {self.layer}")
        self.layer = None

    # ---- nodes and the end

    def _counts(self, event: Event) -> None:
        counts = {pool: event[pool] for pool in _POOLS}
        if any(count < 0 for count in counts.values()):
            self.bad(f"a count is negative: {counts}")
        if sum(counts.values()) != sum(self.nodes.values()):
            self.bad(f"nodes are not conserved: {self.nodes} became {counts}")
        self.nodes = counts

    _node_down = _node_up = _counts

    def _slow_begin(self, event: Event) -> None:
        if event["factor"] < 1.0:
            self.bad("a factor below 1 is no slow-down")

    def _slow_end(self, event: Event) -> None:
        pass

    def _job_end(self, event: Event) -> None:
        self._cover("job_end")
        if self.phase:
            self.bad(f"{self.phase[0]} has not ended")
        if event["step"] != self.done:
            self.bad(f"step must be {self.done}")
        kept = event.get("kept_step")
        if kept is not None and kept > self.done:
            self.bad(f"kept_step is beyond the {self.done} steps done")
        if event["outcome"] == "completed":
            if self.steps is not None and self.done != self.steps:
                self.bad(f"completed at step {self.done} of {self.steps}")
            if self.state != "loop" or self.stalls:
                self.bad("completed, but the loop stands still")
        self.state = "over"

    def _run_end(self, event: Event) -> None:
        if self.event["t"] - self.covered > self.tolerance:
            self.bad("time passes after job_end")


assert all(hasattr(_Story, f"_{kind}") for kind in KINDS)
