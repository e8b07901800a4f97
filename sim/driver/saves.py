"""Saves: the loop's stall, the background writes as SimPy processes, and what a fault does to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import simpy

from sim import checkpoint, codes, params
from sim.driver.story import PACE, Fault, Story, Wait, whole
from sim.sampling import draw


@dataclass(eq=False)
class Write:
    """One write: blocking, or in flight in the background."""

    id: int
    tier: int
    step: float
    begun: float
    ends: float
    cut: bool = False  # it is lost when it ends: an abort does not wait for all of it
    process: simpy.Process | None = None


class Saves:
    """The checkpoints of one run and the writes on their way to be some."""

    def __init__(self, story: Story, tier_names: Sequence[str]) -> None:
        self.story, self.p, self.tier_names = story, story.p, tier_names
        tiers = self.p.n_tiers
        n = tiers * checkpoint.places(self.p)
        self.durable = checkpoint.Checkpoints([0.0] * n, [0.0] * n, [0] * n, [0] * n, [0] * tiers)
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

    def next_load(self) -> tuple[int, bool]:
        """Return what a restart loads now: (row of the law of its time, -1 = no checkpoint; whether it fails)."""
        if self.p.mode == codes.IDEAL:
            return params.LOAD, False
        place = self._newest()
        if place == checkpoint.STEP0:
            return -1, False
        fails = checkpoint.cannot_load(self.p, self.durable.number[place], *self.story.key)
        return self.p.tier_load[checkpoint.tier_of(self.p, place)], fails

    def next_tier(self) -> str | None:
        """Return the name of the tier that a restart loads from now."""
        place = self._newest()
        return None if place == checkpoint.STEP0 else self.tier_names[checkpoint.tier_of(self.p, place)]

    def load_failed(self) -> None:
        """Give up the checkpoint that could not be loaded: the next older one is tried."""
        checkpoint.drop(self.durable, self.p, self._newest())

    def _newest(self) -> int:
        return int(checkpoint.newest_usable(self.durable, self.p, self.tainted_since()))

    def kept(self, done: float) -> float:
        """Return the done steps that a run keeps that ends here without completing."""
        tainted = self.tainted_since()
        if self.p.mode == codes.IDEAL:
            return min([done] + [f.done for f in self.corruptions if f.since == tainted])
        return min(done, checkpoint.kept_step(self.durable, self.p, tainted))

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
            place = self._newest()
            begun = -1.0 if place == checkpoint.STEP0 else self.durable.begun[place]
            step = checkpoint.restore(self.durable, self.p, tainted)
        # a corruption after the restored state's save is undone with it
        self.corruptions = [f for f in self.corruptions if f.since < begun]
        return step

    def save_now(self, step: float) -> Wait:
        """Save in the farthest tier before the job ends itself, and wait for it; the signal that cut it short.

        Nothing to save if that tier has this step, or is about to. What is durable then is also published.
        """
        far = self.p.n_tiers - 1
        signal = None
        coming = any(write.tier == far and write.step == step for write in self.in_flight)
        if step > 0 and not coming and not checkpoint.has(self.durable, self.p, far, step):
            signal = yield from self.save(step, far)
        if signal is None:
            signal = yield from self.drain(step)
        if signal is None:
            for tier in range(self.p.n_tiers):
                checkpoint.publish(self.durable, self.p, tier)
        return signal

    def save(self, step: float, asked_tier: int | None = None) -> Wait:
        """Let the loop save its state in the tier that is due, or asked for; the signal that cut it short."""
        p, story = self.p, self.story
        tier = checkpoint.due_tier(p, step, p.steps) if asked_tier is None else asked_tier
        if p.publish_next:
            checkpoint.publish(self.durable, p, tier)
        ahead = [write for write in self.in_flight if write.tier == tier and not p.tier_blocks[tier]]
        final = step >= p.steps or asked_tier is not None  # it is asked for by name, so it is never skipped
        if ahead and p.on_busy == codes.SKIP and not final:
            return None
        self._ids += 1
        number, begun = self._ids, story.env.now
        story.emit("save_begin", id=number, step=whole(step), tier=self.tier_names[tier])
        lasts = draw(p, p.tier_write[tier], *story.key, number, 0)
        write = self.struck = Write(number, tier, step, begun, begun + lasts)
        if p.tier_blocks[tier]:
            signal = yield from story.pause_for_faults(write.ends)
            if signal is None:
                self.struck = None
                self._becomes_durable(write)
            return signal
        if ahead and p.on_busy != codes.QUEUE:
            signal = yield from story.pause_for_write(self._process(ahead[-1]))
            if signal is not None:
                return signal
        staged_at = story.env.now + draw(p, p.tier_stall[tier], *story.key, number, 0)
        signal = yield from story.pause_for_faults(staged_at)
        if signal is not None:
            return signal
        self.struck = None
        story.emit("save_staged", id=number)
        free_at = max((other.ends for other in self.in_flight if other.tier == tier), default=0.0)
        write.ends = checkpoint.write_begins(story.env.now, 0.0, free_at) + lasts
        self._go_on(write)
        return None

    def drain(self, step: float) -> Wait:
        """Wait at the end of the work for the writes in flight; the signal that cut it short, else None."""
        if not self.in_flight:
            return None
        last = max(reversed(self.in_flight), key=lambda write: write.ends)
        tier = self.tier_names[last.tier]
        self.story.emit("save_begin", id=last.id, step=whole(step), tier=tier, drain=True)
        signal = yield from self.story.pause_for_write(self._process(last))
        while signal is None and self.in_flight:  # another tier's, which ends at the same time
            signal = yield from self.story.pause_for_write(self._process(self.in_flight[-1]))
        if signal is None:
            self.story.emit("save_staged", id=last.id)
        return signal

    def strike(self, symptom: int, takes_node: bool) -> None:
        """Lose the writes and the tiers that a fault ends, the interrupted write excepted (see `settle_struck`).

        A node that leaves, whatever the symptom, takes along what was on it.
        """
        for write in list(self.in_flight):
            if not self.p.survives[symptom]:
                self._lose(write)
        self.lose_tiers(symptom)
        if takes_node:
            self.lose_tiers(codes.NODE_LOSS)

    def reach(self, layer: int) -> None:
        """Lose the tiers that do not survive the restart of a layer, whatever the fault was."""
        symptom = checkpoint.amounts_to(layer)
        if symptom >= 0:
            self.lose_tiers(symptom)

    def lose_tiers(self, symptom: int) -> None:
        """Lose the checkpoints, and the writes on their way, of tiers that do not survive a symptom."""
        checkpoint.lose(self.durable, self.p, symptom)
        for write in list(self.in_flight):
            if not checkpoint.survives(self.p, write.tier, symptom):
                self._lose(write)

    def settle_struck(self, symptom: int, takes_node: bool, hold: bool) -> float:
        """Let an interrupted blocking write go on, or lose it; when a held one ends [s], or 0.

        It goes on where writes survive this symptom, and until the abort (`drop_held`) where an atomic section
        holds it. A staging that was interrupted is lost: the state is not all copied.
        """
        write, self.struck = self.struck, None
        if write is not None:
            blocks = self.p.tier_blocks[write.tier] and checkpoint.survives(self.p, write.tier, symptom)
            if takes_node:
                blocks = blocks and checkpoint.survives(self.p, write.tier, codes.NODE_LOSS)
            if blocks and self.p.survives[symptom]:
                self._go_on(write)
            elif blocks and hold:
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
        checkpoint.add_durable(self.durable, self.p, write.tier, write.step, write.begun, write.id)
        self.durable_count += 1
        tier = self.tier_names[write.tier]
        self.story.emit("save_durable", id=write.id, step=whole(write.step), tier=tier)

    def _lose(self, write: Write, reason: str = "fault") -> None:
        process = write.process
        if process is not None and process.is_alive and process is not self.story.env.active_process:
            process.interrupt()
        self._forget(write)
        tier = self.tier_names[write.tier]
        self.story.emit("save_failed", id=write.id, step=whole(write.step), tier=tier, reason=reason)

    def _forget(self, write: Write) -> None:
        if write is self.held:
            self.held = None
        if write in self.in_flight:
            self.in_flight.remove(write)
