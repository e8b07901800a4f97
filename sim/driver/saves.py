"""Saves: the loop's stall, the background writes as SimPy processes, and what a fault does to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import simpy

from sim import checkpoint, codes, params
from sim.driver.story import NODES, PACE, Fault, Story, Wait, whole
from sim.sampling import draw


@dataclass(eq=False)
class Write:
    """One write: blocking, or in flight in the background."""

    id: int
    step: float
    begun: float
    ends: float
    process: simpy.Process | None = None


class Saves:
    """The checkpoints of one run and the writes on their way to be some."""

    def __init__(self, story: Story) -> None:
        self.story, self.p = story, story.p
        keep = self.p.keep
        self.durable = checkpoint.Checkpoints([0.0] * keep, [0.0] * keep, [0] * keep, [0])
        self.durable_count = 0
        self.in_flight: list[Write] = []
        self.struck: Write | None = None  # a blocking write that the fault interrupted
        self.held: Write | None = None  # ... and that an atomic section lets finish
        self.corruptions: list[Fault] = []  # silent ones that live in the state or its checkpoints
        self._ids = 0
        self._draining = False

    def tainted_since(self) -> float:
        """Return since when checkpoints are known to be corrupt [s]; inf: none known."""
        return min((f.since for f in self.corruptions if f.noticed), default=math.inf)

    def any_usable(self) -> bool:
        """Return whether a restart has a checkpoint to load."""
        return checkpoint.newest_usable(self.durable, self.tainted_since()) != checkpoint.STEP0

    def restore(self) -> float:
        """Go back to the newest checkpoint that holds; the done steps in it."""
        tainted = self.tainted_since()
        place = checkpoint.newest_usable(self.durable, tainted)
        begun = -1.0 if place == checkpoint.STEP0 else self.durable.begun[place]
        # a corruption after the restored state's save is undone with it
        self.corruptions = [f for f in self.corruptions if f.since < begun]
        return checkpoint.restore(self.durable, tainted)

    def save(self, step: float) -> Wait:
        """Let the loop save its state; the signal that cut it short, else None."""
        p, story = self.p, self.story
        if p.publish_next:
            checkpoint.publish(self.durable)
        if p.mode != codes.SYNC and p.on_busy == codes.SKIP and self.in_flight:
            return None
        self._ids += 1
        number, begun = self._ids, story.env.now
        story.emit("save_begin", id=number, step=whole(step), tier="global")
        if p.mode == codes.SYNC:
            write = Write(number, step, begun, begun + draw(p, params.WRITE, *story.key, number, 0))
            signal = yield from story.pause_for_faults(write.ends)
            if signal is not None:
                self.struck = write
                return signal
            self._becomes_durable(write)
            return None
        signal = None
        if p.on_busy == codes.WAIT and self.in_flight:
            signal = yield from story.pause_for_faults(self.in_flight[-1].ends)
        if signal is None:
            staged_at = story.env.now + draw(p, params.STALL, *story.key, number, 0)
            signal = yield from story.pause_for_faults(staged_at)
        if signal is not None:
            story.emit("save_failed", id=number, step=whole(step), tier="global", reason="fault")
            return signal
        story.emit("save_staged", id=number)
        free_at = self.in_flight[-1].ends if self.in_flight else 0.0
        starts = checkpoint.write_begins(story.env.now, 0.0, free_at)
        write = Write(number, step, begun, starts + draw(p, params.WRITE, *story.key, number, 0))
        self.in_flight.append(write)
        write.process = story.env.process(self._background(write))
        return None

    def drain(self, step: float) -> Wait:
        """Wait at the end of the work for the writes in flight; the signal that cut it short, else None."""
        if not self.in_flight:
            return None
        last = self.in_flight[-1].id
        self.story.emit("save_begin", id=last, step=whole(step), tier="global", drain=True)
        self._draining = True
        signal = None
        while self.in_flight and signal is None:
            signal = yield from self.story.pause(math.inf)
            if signal == PACE or signal == NODES:
                signal = None
        self._draining = False
        if signal is None:
            self.story.emit("save_staged", id=last)
        return signal

    def strike(self, symptom: int) -> None:
        """Lose the writes that this symptom ends."""
        for write in [w for w in self.in_flight if not self.p.survives[symptom]]:
            self.in_flight.remove(write)
            self._lose(write)
        self.drop_held()

    def settle_struck(self, hold: bool) -> float:
        """Let the interrupted blocking write go on (`hold`: an atomic section) or lose it; when it ends [s], or 0."""
        write, self.struck = self.struck, None
        if write is None:
            return 0.0
        if not hold:
            self._lose(write)
            return 0.0
        self.held = write
        write.process = self.story.env.process(self._background(write))
        return write.ends

    def drop_held(self) -> None:
        """Lose the write that an atomic section held and that has not ended in time."""
        if self.held is not None:
            write, self.held = self.held, None
            self._lose(write)

    def _background(self, write: Write) -> Wait:
        try:
            yield self.story.env.timeout(write.ends - self.story.env.now)
        except simpy.Interrupt:
            return
        if write is self.held:
            self.held = None
        if write in self.in_flight:
            self.in_flight.remove(write)
        self._becomes_durable(write)
        if self.p.async_factor != 1.0 or self._draining:
            self.story.signal(PACE)

    def _becomes_durable(self, write: Write) -> None:
        checkpoint.add_durable(self.durable, self.p, write.step, write.begun)
        self.durable_count += 1
        self.story.emit("save_durable", id=write.id, step=whole(write.step), tier="global")

    def _lose(self, write: Write) -> None:
        if write.process is not None and write.process.is_alive:
            write.process.interrupt()
        fields: dict[str, Any] = {"step": whole(write.step), "tier": "global", "reason": "fault"}
        self.story.emit("save_failed", id=write.id, **fields)
