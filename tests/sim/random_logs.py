"""Random small simulated logs in whole seconds, for the tests of the accountant.

A tiny job with a will of its own: it knows nothing of the engine, only of the event vocabulary.
"""

from __future__ import annotations

import random

from tests.sim.event_logs import Event, Log

STEP_S = 4  # nominal, so that faults can strike within a step at a whole second


class _Job:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        r = self.random
        self.mode = r.choice(["sync", "async", "none", "ideal"])
        self.t = self.done = self.faults = self.saves = 0
        self.steps = r.randint(3, 40)
        self.interval = r.randint(1, 12)
        self.kept_part = 0  # seconds of step done + 1 that are kept (mode ideal)
        self.durable: list[int] = []
        self.flight: tuple[int, int, int] | None = None  # an async write: id, step, time it is durable
        self.pools = {"working": r.randint(1, 4), "hot": r.randint(0, 2), "cold": r.randint(0, 2), "repair": 0,
                      "retired": 0}  # fmt: skip
        self.latent: list[tuple[str, int, int]] = []
        self.log = Log(
            t=0, nominal_step_s=STEP_S, steps=self.steps, nodes=self.pools["working"], checkpoint_mode=self.mode,
            gpus_per_node=r.choice([1, 8]), spares={"hot": self.pools["hot"], "cold": self.pools["cold"]},
        )  # fmt: skip

    def coin(self, share: float) -> bool:
        return self.random.random() < share

    # ---- nodes

    def move_node(self, kind: str, source: str, target: str) -> None:
        if self.pools[source]:
            self.pools[source] -= 1
            self.pools[target] += 1
            self.log.nodes(self.t, kind, *self.pools.values())

    def stir_nodes(self) -> None:
        if self.coin(0.3):
            self.move_node(
                "node_down", self.random.choice(["hot", "cold"]), self.random.choice(["repair", "retired"])
            )
        if self.coin(0.3):
            self.move_node("node_up", self.random.choice(["repair", "cold"]), "hot")

    # ---- phases and restarts

    def phases(self, layer: str | None, attempt: int, names: list[str], cut_share: float) -> bool:
        """Run phases; return False if a fault cut one."""
        for name in names:
            begin, length = self.t, self.random.randint(0, 6)
            cut = self.faults < 12 and length > 0 and self.coin(cut_share)
            self.log(begin, "phase_begin", phase=name, layer=layer, attempt=attempt)
            if name == "node_wait" and self.coin(0.7) and length > 1:
                self.t += 1
                self.stir_nodes()
            self.t = begin + (self.random.randint(1, length) if cut and length > 1 else length)
            extra = {"cut": True} if cut else {}
            self.log(self.t, "phase_end", phase=name, layer=layer, attempt=attempt, **extra)
            if cut:
                return False
        return True

    def strike(self) -> None:
        self.faults += 1
        symptom = self.random.choice(["exception", "hang", "node_loss"])
        self.log.fault(self.t, f"f{self.faults}", symptom, class_=symptom)
        if symptom == "node_loss":
            self.move_node("node_down", "working", "repair")
        self.t += self.random.randint(0, 5)
        self.log.detected(self.t, f"f{self.faults}")

    def recover(self) -> bool:
        """Restart by one layer after the other; return False if the job gives up."""
        names = ["abort", "rendezvous", "node_wait", "process_start", "init", "checkpoint_load", "warmup"]
        for layer in self.random.sample(["in_process", "in_job", "kubernetes", "fixed"], 3):
            attempt = 1
            while True:
                self.log.layer(self.t, layer, attempt)
                wanted = [name for name in names if self.coin(0.6)]
                if self.phases(layer, attempt, wanted, 0.15):
                    break
                self.log.layer_end(self.t, layer, "cut", attempt)
                self.strike()
                attempt += 1
            if self.coin(0.75):
                for _ in range(self.pools["hot"]):
                    self.move_node("node_up", "hot", "working")
                self.resume(layer, attempt)
                return True
            self.log.layer_end(self.t, layer, "escalated", attempt)
        return False

    def resume(self, layer: str | None, attempt: int, no_later_than: int | None = None) -> None:
        if self.flight and self.flight[2] > self.t:
            self.flight = None  # lost with the processes
        self.settle_flight()
        bound = self.no_later_than
        if self.mode == "ideal":
            step = self.done if bound is None else min(bound, self.done)
            self.kept_part = self.kept_part if step == self.done else 0
        else:
            usable = [step for step in self.durable if bound is None or step <= bound]
            step = max(usable, default=0)
            if len(usable) > 1 and self.coin(0.2):
                step = sorted(usable)[-2]  # the newest did not load
        self.no_later_than = None
        self.durable = [saved for saved in self.durable if saved <= step]
        self.done = step
        self.log(self.t, "resumed", step=step)
        if layer is not None:
            self.log.layer_end(self.t, layer, "resumed", attempt)

    no_later_than: int | None = None

    # ---- the loop

    def settle_flight(self) -> None:
        if self.flight and self.flight[2] <= self.t:
            save, step, at = self.flight
            self.durable.append(step)
            self.log(at, "save_durable", id=save, step=step, tier="global")
            self.flight = None

    def steps_until(self, last: int) -> bool:
        """Run steps done+1..last; return False if a fault struck before the end."""
        first, begin = self.done + 1, self.t
        head = STEP_S - self.kept_part
        count = last - self.done
        slow = 0
        if count == 1 and not self.kept_part and self.coin(0.4):
            slow = self.random.randint(1, 7)
        length = head + (count - 1) * STEP_S + slow
        if self.faults < 12 and self.coin(0.25):
            ran = self.random.randint(0, length - 1 - slow)
            self.t += ran
            whole = 0 if ran < head else 1 + (ran - head) // STEP_S
            rest = ran - (0 if whole == 0 else head + (whole - 1) * STEP_S)
            if ran:
                self.log.steps(self.t, first, first + whole - 1, dur_s=ran, part=rest / STEP_S)
            self.done += whole
            self.kept_part = (rest + (self.kept_part if whole == 0 else 0)) if self.mode == "ideal" else 0
            return False
        self.t = begin + length
        self.log.steps(self.t, first, last, dur_s=length, **({"slow_s": slow} if slow else {}))
        self.done, self.kept_part = last, 0
        return True

    def save(self) -> bool:
        """Save; return False if a fault struck in the stall."""
        if self.mode in ("none", "ideal"):
            return True
        self.saves += 1
        save, step, begin = self.saves, self.done, self.t
        self.log(begin, "save_begin", id=save, step=step, tier="global")
        if self.mode == "async" and self.flight:  # wait for the busy writer
            self.t = max(self.t, self.flight[2])
            self.settle_flight()
        length = self.random.randint(0, 5)
        if self.faults < 12 and length and self.coin(0.2):
            self.t += self.random.randint(0, length - 1)
            return False
        self.t += length
        if self.mode == "async":
            self.log(self.t, "save_staged", id=save)
            self.flight = (save, step, self.t + self.random.randint(0, 20))
        else:
            self.log(self.t, "save_durable", id=save, step=step, tier="global")
            self.durable.append(step)
        return True

    def notice_latent(self) -> bool:
        """Stop the loop for a corruption whose time has come; return whether it did."""
        for entry in self.latent:
            fault, struck_at_step, at = entry
            if at <= self.t:
                self.latent.remove(entry)
                self.no_later_than = struck_at_step
                self.log.detected(self.t, fault)
                return True
        return False

    def run(self) -> list[Event]:
        outcome = self.story()
        if outcome == "completed" and self.mode == "async" and self.flight:
            save, step, at = self.flight
            self.log(self.t, "save_begin", id=save, drain=True)
            self.t = max(self.t, at)
            self.settle_flight()
        self.log.end(self.t, outcome, self.done)
        self.log.sort(key=lambda event: event["t"])
        return self.log

    def story(self) -> str:
        limit = self.random.choice([10**9, 10**9, self.random.randint(5, 150)])
        self.log(0, "job_start")
        if self.phases(None, 1, ["process_start", "init", "checkpoint_load"], 0.1):
            self.resume(None, 1)
        else:
            self.strike()
            if not self.recover():
                return "failed"
        while self.done < self.steps:
            if self.t > limit:
                return "censored"
            boundary = min(self.steps, (self.done // self.interval + 1) * self.interval)
            healthy = self.steps_until(self.random.randint(self.done + 1, boundary))
            self.settle_flight()
            if healthy and self.done % self.interval == 0:
                healthy = self.save()
                self.settle_flight()
            if healthy and self.faults < 12 and self.coin(0.08):
                self.faults += 1
                self.log.fault(self.t, f"f{self.faults}", "silent_corruption", class_="corruption")
                self.latent.append((f"f{self.faults}", self.done, self.t + self.random.randint(0, 60)))
            if healthy and self.coin(0.05):
                self.faults += 1
                self.log.fault(self.t, f"f{self.faults}", "gpu_error", class_="idle", idle=True)
                self.move_node("node_down", "hot", "repair")
            if healthy and self.notice_latent():
                if not self.recover():
                    return "failed"
            elif not healthy:
                self.strike()
                if not self.recover():
                    return "failed"
        return "completed"


def random_log(seed: int) -> list[Event]:
    """Return the simulated log of a random small job, in whole seconds."""
    return _Job(seed).run()
