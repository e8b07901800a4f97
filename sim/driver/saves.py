"""Saves: the loop's stall, the background writes as SimPy processes, and what a fault does to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import simpy

from sim import checkpoint, codes, params
from sim.driver.story import PACE, Fault, Story, Wait, whole
from sim.sampling import draw


@dataclass(eq=False)
class Write:
    """One write: blocking, or in flight in the background."""

    id: int
    step: float
    begun: float
    ends: float
    cut: bool = False  # it is lost when it ends: an abort does not wait for all of it
    process: simpy.Process | None = None


class Saves:
    """The checkpoints of one run and the writes on their way to be some."""

    def __init__(self, story: Story) -> None:
        self.story, self.p = story, story.p
        n = checkpoint.places(self.p)
        self.durable = checkpoint.Checkpoints([0.0] * n, [0.0] * n, [0] * n, [0])
        self.durable_count = 0
        self.in_flight: list[Write] = []
        self.struck: Write | None = None  # a blocking write, or a staging, that the fault interrupted
        self.loop_stopped_s = 0.0  # since when the loop stands still
        self.held: Write | None = None  # ... and that an atomic section lets finish
        self.corruptions: list[Fault] = []  # silent ones that live in the state or its checkpoints
        self._ids = 0

    def tainted_since(self) -> float:
        """Return since when checkpoints are known to be corrupt [s]; inf: none known."""
        return min((f.since for f in self.corruptions if f.noticed), default=math.inf)

    def any_usable(self) -> bool:
        """Return whether a restart has a checkpoint to load."""
        if self.p.mode == codes.IDEAL:
            return True
        return checkpoint.newest_usable(self.durable, self.tainted_since()) != checkpoint.STEP0

    def kept(self, done: float) -> float:
        """Return the done steps that a run keeps that ends here without completing."""
        tainted = self.tainted_since()
        if self.p.mode == codes.IDEAL:
            return min([done] + [f.done for f in self.corruptions if f.since == tainted])
        return min(done, checkpoint.kept_step(self.durable, tainted))

    def choose(self) -> None:
        """Settle what a restart loads: a write that is still in flight now comes too late, and is given up.

        The restarted job will save the same steps again, in the same place.
        """
        for write in list(self.in_flight):
            self._lose(write, "superseded")

    def restore(self, done: float) -> float:
        """Go back from `done` steps to the newest checkpoint that holds; the done steps in it."""
        tainted = self.tainted_since()
        if self.p.mode == codes.IDEAL:  # a checkpoint exists at every instant, so also at the corruption's
            step, begun = self.kept(done), min(tainted, self.loop_stopped_s)
        else:
            place = checkpoint.newest_usable(self.durable, tainted)
            begun = -1.0 if place == checkpoint.STEP0 else self.durable.begun[place]
            step = checkpoint.restore(self.durable, tainted)
        # a corruption after the restored state's save is undone with it
        self.corruptions = [f for f in self.corruptions if f.since < begun]
        return step

    def save(self, step: float) -> Wait:
        """Let the loop save its state; the signal that cut it short, else None."""
        p, story = self.p, self.story
        if p.publish_next:
            checkpoint.publish(self.durable)
        busy = p.mode != codes.SYNC and len(self.in_flight) > 0
        final = step >= p.steps  # it is asked for by name, so it is never skipped
        if busy and p.on_busy == codes.SKIP and not final:
            return None
        self._ids += 1
        number, begun = self._ids, story.env.now
        story.emit("save_begin", id=number, step=whole(step), tier="global")
        lasts = draw(p, params.WRITE, *story.key, number, 0)
        write = self.struck = Write(number, step, begun, begun + lasts)
        if p.mode == codes.SYNC:
            signal = yield from story.pause_for_faults(write.ends)
            if signal is None:
                self.struck = None
                self._becomes_durable(write)
            return signal
        if busy and p.on_busy != codes.QUEUE:
            signal = yield from story.pause_for_write(self._process(self.in_flight[-1]))
            if signal is not None:
                return signal
        staged_at = story.env.now + draw(p, params.STALL, *story.key, number, 0)
        signal = yield from story.pause_for_faults(staged_at)
        if signal is not None:
            return signal
        self.struck = None
        story.emit("save_staged", id=number)
        free_at = self.in_flight[-1].ends if self.in_flight else 0.0
        write.ends = checkpoint.write_begins(story.env.now, 0.0, free_at) + lasts
        self._go_on(write)
        return None

    def drain(self, step: float) -> Wait:
        """Wait at the end of the work for the writes in flight; the signal that cut it short, else None."""
        if not self.in_flight:
            return None
        last = self.in_flight[-1]
        self.story.emit("save_begin", id=last.id, step=whole(step), tier="global", drain=True)
        signal = yield from self.story.pause_for_write(self._process(last))
        if signal is None:
            self.story.emit("save_staged", id=last.id)
        return signal

    def strike(self, symptom: int) -> None:
        """Lose the writes that this symptom ends, the interrupted one excepted (see `settle_struck`)."""
        if not self.p.survives[symptom]:
            for write in list(self.in_flight):
                self._lose(write)

    def settle_struck(self, symptom: int, hold: bool) -> float:
        """Let an interrupted blocking write go on, or lose it; when a held one ends [s], or 0.

        It goes on where writes survive this symptom, and until the abort (`drop_held`) where an atomic section
        holds it. A staging that was interrupted is lost: the state is not all copied.
        """
        write, self.struck = self.struck, None
        if write is not None:
            if self.p.mode == codes.SYNC and self.p.survives[symptom]:
                self._go_on(write)
            elif self.p.mode == codes.SYNC and hold:
                self.held = write
                write.process = self.story.env.process(self._background(write))
            else:
                self._lose(write)
        if not hold:
            self.drop_held()
        return 0.0 if self.held is None else self.held.ends

    def abort_waits_until(self, until: float) -> None:
        """Tell how long the abort waits for the write that an atomic section holds."""
        write = self.held
        if write is not None and write.ends > until * (1 + 1e-12):
            self._process(write).interrupt()
            write.ends, write.cut = until, True
            write.process = self.story.env.process(self._background(write))

    def drop_held(self) -> None:
        """Lose the write that an atomic section held, unless it ends just now."""
        write, now = self.held, self.story.env.now
        if write is None:
            return
        if write.cut or write.ends - now > 1e-9 * now:
            self._lose(write)
        else:
            self._process(write).interrupt()
            self._forget(write)
            self._becomes_durable(write)

    def _go_on(self, write: Write) -> None:
        self.in_flight.append(write)
        write.process = self.story.env.process(self._background(write))

    def _process(self, write: Write) -> simpy.Process:
        assert write.process is not None
        return write.process

    def _background(self, write: Write) -> Wait:
        try:
            yield self.story.env.timeout(write.ends - self.story.env.now)
        except simpy.Interrupt:
            return
        if write.cut:
            self._lose(write)
            return
        self._forget(write)
        self._becomes_durable(write)
        if self.p.async_factor != 1.0:
            self.story.signal(PACE)

    def _becomes_durable(self, write: Write) -> None:
        checkpoint.add_durable(self.durable, self.p, write.step, write.begun)
        self.durable_count += 1
        self.story.emit("save_durable", id=write.id, step=whole(write.step), tier="global")

    def _lose(self, write: Write, reason: str = "fault") -> None:
        process = write.process
        if process is not None and process.is_alive and process is not self.story.env.active_process:
            process.interrupt()
        self._forget(write)
        fields: dict[str, Any] = {"step": whole(write.step), "tier": "global", "reason": reason}
        self.story.emit("save_failed", id=write.id, **fields)

    def _forget(self, write: Write) -> None:
        if write is self.held:
            self.held = None
        if write in self.in_flight:
            self.in_flight.remove(write)
