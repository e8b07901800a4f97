"""What the accountant keeps books of besides time: nodes, executed steps, checkpoints, the loop clock."""

from __future__ import annotations

from bisect import insort

from sim.accounts.event_kinds import Event


class NodePools:
    """Counts of working nodes, hot and cold spares, and the GPU-seconds they amount to."""

    def __init__(self, run_start: Event, start_s: float) -> None:
        spares = run_start.get("spares") or {}
        self._gpus_per_node = int(run_start.get("gpus_per_node") or 0)
        self._nodes = {
            "working": int(run_start.get("nodes") or 0),
            "hot": int(spares.get("hot") or 0),
            "cold": int(spares.get("cold") or 0),
        }
        self.gpu_s = dict.fromkeys(self._nodes, 0.0)
        self._t = start_s
        self._working_gpus = float(self._nodes["working"] * self._gpus_per_node)

    def working_gpu_s(self, t: float) -> float:
        """Return the integral of the working GPUs up to t, which is not before the last change."""
        return self.gpu_s["working"] + (t - self._t) * self._working_gpus

    def count_to(self, t: float) -> None:
        """Bring the integrals up to t."""
        dt = max(0.0, t - self._t)
        for pool, nodes in self._nodes.items():
            self.gpu_s[pool] += dt * nodes * self._gpus_per_node
        self._t += dt

    def change(self, event: Event) -> None:
        """Take the counts that hold from a node event on."""
        self.count_to(event["t"])
        for pool, nodes in self._nodes.items():
            self._nodes[pool] = int(event.get(pool, nodes))
        self._working_gpus = float(self._nodes["working"] * self._gpus_per_node)


class Execution:
    """A stretch of the loop that took the job from `begin` to `end`, both in steps done, parts included.

    `fast_s` is its time up to the nominal step time, `slow_s` the rest; `step_s` the mean time of its steps as
    logged (None where it was not wanted).
    """

    __slots__ = ("begin", "end", "fast_s", "slow_s", "gpu_s", "step_s")

    def __init__(
        self, begin: float, end: float, fast_s: float, slow_s: float, gpu_s: float, step_s: float | None
    ) -> None:
        self.begin, self.end = begin, end
        self.fast_s, self.slow_s, self.gpu_s, self.step_s = fast_s, slow_s, gpu_s, step_s


class Executions(list[Execution]):
    """The executions that count so far: a stack in order of steps, from whose top a restart takes off."""

    def end(self, otherwise: float) -> float:
        """Return how far they reach [steps], or `otherwise` if there are none."""
        return self[-1].end if self else otherwise

    def roll_back(self, steps: float) -> tuple[float, float]:
        """Take off everything beyond `steps` done; return the seconds and GPU-seconds that are lost.

        A stretch that reaches beyond is cut in proportion.
        """
        lost_s = lost_gpu = 0.0
        while self and self[-1].end > steps:
            run = self[-1]
            share = max(0.0, steps - run.begin) / (run.end - run.begin) if run.end > run.begin else 0.0
            lost_s += (run.fast_s + run.slow_s) * (1.0 - share)
            lost_gpu += run.gpu_s * (1.0 - share)
            if share == 0.0:
                self.pop()
                continue
            run.end = steps
            run.fast_s, run.slow_s, run.gpu_s = run.fast_s * share, run.slow_s * share, run.gpu_s * share
        return lost_s, lost_gpu

    def median_step_s(self) -> float | None:
        """Return the median step time [s]; each step of a stretch counts with the stretch's mean."""
        times = sorted((run.step_s, run.end - run.begin) for run in self if run.step_s)
        half = sum(steps for _, steps in times) / 2.0
        for position, (step_s, steps) in enumerate(times):
            half -= steps
            if half < 0.0 or position == len(times) - 1:
                return step_s
            if half == 0.0:
                return (step_s + times[position + 1][0]) / 2.0
        return None


class Checkpoints:
    """Counts of saves, and the steps of the durable ones that a restart has not passed over."""

    def __init__(self) -> None:
        self.begun = self.durable = self.failed = 0
        self._steps: dict[object, int] = {}
        self._usable: list[int] = []

    def begin(self, save: object, step: int) -> None:
        """Note that a save of the state after `step` has begun."""
        self.begun += 1
        self._steps[save] = step

    def finish(self, save: object, step: int | None) -> None:
        """Note that a save is durable; its step is that of its beginning where the event has none."""
        self.durable += 1
        step = self._steps.get(save) if step is None else step
        if step is not None:
            insort(self._usable, step)

    def pass_over(self, step: float) -> None:
        """Forget those newer than the one that a restart has loaded: it would have taken them if it could."""
        while self._usable and self._usable[-1] > step:
            self._usable.pop()

    def newest(self, otherwise: int) -> int:
        """Return the step of the newest usable one, or `otherwise` if there is none."""
        return self._usable[-1] if self._usable else otherwise


class LoopClock:
    """Loop time outside saves as the AWS reference code adds it up (metric training_goodput_aws_as_coded).

    A process reads its clock, which began with its loop, at each save; what it had not written down by then
    is lost with the process. In-process restarts keep the process, and so the clock runs through them.
    """

    def __init__(self, start_s: float) -> None:
        self._began_s = start_s
        self._stalled_s = self._written_s = self._total_s = 0.0

    def new_process(self, t: float) -> None:
        """Begin a new clock at t."""
        self._total_s += self._written_s
        self._began_s, self._stalled_s, self._written_s = t, 0.0, 0.0

    def saved(self, t: float, stalled_s: float) -> None:
        """Write the clock down after a save that ended at t."""
        self._stalled_s += stalled_s
        self.read(t)

    def read(self, t: float) -> None:
        """Write the clock down."""
        self._written_s = t - self._began_s - self._stalled_s

    def total_s(self) -> float:
        """Return what all processes have written down [s]."""
        return self._total_s + self._written_s
