"""The search for the best checkpoint interval: paired runs on a grid, a smooth curve, its best place.

All intervals meet the same faults (same seed, same replications), so their differences are known far better than
their goodputs; and the curve of sim/smooth.py, not the luckiest point, gives the best interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from sim import smooth
from sim.accounts.estimate import difference_interval, ratio_interval
from sim.hindsight import with_interval
from sim.ledger import RunLedger
from sim.metrics import paired_difference
from sim.scenario import Scenario
from sim.schema.fields import ScenarioError
from sim.study import AUTO_RUNS, HALF_WIDTH, Progress, Study

FLAT = 0.001
"""Intervals whose goodput is at most this much below the best are as good: 0.1 point."""
NOISE = 5e-5
"""The regret that chance alone is expected to cost, at which no more replications are run; nor are more ..."""
SEARCH_EVENTS = 2_000_000
"""... than hold this many log events, over all intervals that the curve is fitted to."""
SHARP_EVENTS = 500_000
"""The same for the last runs, of the best and of the present interval."""
EVEN_PARTS = 64
"""A job of at most so many intervals is cut evenly: a last, shorter one would cost a save like any other."""

MAX_OVERRUNS = 3
"""Intervals that may turn out too long to run only when they are run, before the search gives up."""

_COARSE = (-1.0, 0.0, 1.0)  # places around the closed form's interval, in powers of 2
_FINE = (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5)  # ... around the best of those
_WIDEN = 20  # factors of 2 (or 4) outwards until the best lies inside


class Search:
    """Intervals of one scenario and their paired runs."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        seed: int,
        replications: int,
        fixed: bool,
        mtbf_s: float,
        kink_steps: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Begin with so many replications, and stay with them if `fixed`.

        `kink_steps`: below this interval an asynchronous writer no longer keeps up; goodput has a corner there.
        """
        self.scenario, self.seed, self.mtbf_s = scenario, seed, mtbf_s
        self.replications, self.fixed, self.kink = replications, fixed, kink_steps
        self.total, self.step_s = scenario.total_steps(), scenario.nominal_step_s()
        self.low, self.high = 1, self.total
        self.studies: dict[int, Study] = {}
        self.refused: dict[int, ScenarioError] = {}
        self.curve: smooth.Curve | None = None
        self.fitted: tuple[int, ...] = ()
        self.expected_noise = 0.0
        self._progress, self._done, self._planned = progress, 0, 0
        self._overruns = 0

    # --- runs

    def can_run(self, steps: int) -> bool:
        """Run an interval as often as all others; False, with the refusal kept, if it is beyond the limits."""
        if steps in self.refused:
            return False
        study = self.studies.get(steps)
        try:
            if study is None:
                study = self.studies[steps] = Study(with_interval(self.scenario, steps), seed=self.seed)
            study.grow(self.replications, self._tell)
        except ScenarioError as error:
            self.refused[steps] = error
            self.studies.pop(steps, None)
            self._overruns += study is not None
            if self._overruns > MAX_OVERRUNS:
                raise
            return False
        return True

    def runs(self, steps: int) -> list[RunLedger]:
        """Return the runs of an interval; raise its refusal."""
        if not self.can_run(steps):
            raise self.refused[steps]
        return self.studies[steps].runs

    def goodput(self, steps: int) -> float:
        """Return the simulated goodput of an interval."""
        return 1.0 / smooth.overhead(*_kept_and_wall(self.runs(steps)))

    def _tell(self, _run: int, _runs: int) -> None:
        self._done += 1
        self._planned = max(self._planned, self._done)
        if self._progress is not None:
            self._progress(self._done, self._planned)

    # --- places

    def place(self, steps: float) -> int:
        """Return the interval to try at or near a number of steps: within bounds, even in a short job."""
        near = min(max(steps, self.low), self.high)
        parts = max(1, round(self.total / near))
        if parts > EVEN_PARTS:
            return max(1, round(near))
        if -(-self.total // parts) < self.low and parts > 1:
            parts -= 1
        return -(-self.total // parts)

    def places(self, center: float, octaves: Iterable[float]) -> list[int]:
        """Return the different intervals at these distances (in powers of 2) that could be run, in order."""
        found = sorted({self.place(center * 2.0**octave) for octave in octaves})
        done = [len(self.studies[steps].runs) if steps in self.studies else 0 for steps in found]
        self._planned = self._done + sum(max(0, self.replications - runs) for runs in done)
        return [steps for steps in found if self.can_run(steps)]

    # --- the search

    def best(self, start: float) -> int:
        """Return the best interval in steps, searched from `start` (a closed form's) outwards."""
        best = self._coarse(start)
        if self.kink is not None and 1 < self.kink < self.total and self.can_run(self.kink):
            if best >= self.kink or self.goodput(self.kink) >= self.goodput(best):
                self.low = self.kink  # the curve is fitted to one side of the corner
            else:
                self.high = self.kink
            best = max(self.places(best, (-1.0, -0.5, 0.0, 0.5, 1.0)), key=self.goodput)
        best = self._refine(best)
        simulated = max(self.studies, key=self.goodput)
        gain = paired_difference("goodput", self.runs(simulated), self.runs(best))
        sure = gain.ci95 is not None and gain.ci95[0] > 0.0 and gain.mean > FLAT
        return simulated if sure else best  # beyond the noise: the curve does not fit here

    def _coarse(self, start: float) -> int:
        tried = self.places(start, _COARSE)
        for _ in range(_WIDEN):
            if tried:
                break
            start /= 4.0  # so seldom makes no progress
            tried = self.places(start, _COARSE)
        if not tried:
            raise self.refused[max(self.refused)]
        for _ in range(_WIDEN):
            best = max(tried, key=self.goodput)
            out = -1.0 if best == tried[0] else 1.0 if best == tried[-1] else 0.0
            wider = self.places(best, (out,)) if out else []
            if all(steps in tried for steps in wider):
                break
            tried = sorted({*tried, *wider})
        return max(tried, key=self.goodput)

    def _refine(self, center: int) -> int:
        best = center
        for _ in range(12):
            tried = self.places(center, _FINE)
            best = self._fitted_best(tried)
            inside = tried[0] < best < tried[-1]
            if not inside and best != center and self.places(best, _FINE) != tried:
                center = best  # the best place may lie beyond those tried: go on from there
                continue
            events = sum(self.studies[steps].events for steps in tried)
            if self.fixed or self.expected_noise <= NOISE:
                break
            if 2 * self.replications > AUTO_RUNS or 2 * events > SEARCH_EVENTS:
                break
            self.replications *= 2
        return best

    def _fitted_best(self, tried: list[int]) -> int:
        """Fit the curve to these intervals; return its best place and keep what noise is expected to cost."""
        pairs = [_kept_and_wall(self.runs(steps)) for steps in tried]
        curve = self.curve = self._fit(tried, pairs)
        self.fitted, self.expected_noise = tuple(tried), 0.0
        if curve is None:
            return max(tried, key=self.goodput)
        options = self._between(tried[0], tried[-1])
        found = max(options, key=self._goodput_on(curve))
        groups = min(smooth.GROUPS, self.replications)
        for g in range(groups if groups > 1 else 0):  # the jackknife: without a tenth of the runs each
            some = [(_without(kept, g, groups), _without(wall, g, groups)) for kept, wall in pairs]
            other = self._fit(tried, some)
            if other is not None:
                lost = curve.goodput(found * self.step_s)
                lost -= curve.goodput(max(options, key=self._goodput_on(other)) * self.step_s)
                self.expected_noise += lost * (groups - 1) / groups
        return found

    def _fit(self, tried: list[int], pairs: list[tuple[list[float], list[float]]]) -> smooth.Curve | None:
        overheads = [smooth.overhead(kept, wall) for kept, wall in pairs]
        points = [
            (steps * self.step_s, h) for steps, h in zip(tried, overheads, strict=True) if math.isfinite(h)
        ]
        if len(points) < smooth.MIN_POINTS:
            return None
        return smooth.fit([t for t, _ in points], [h for _, h in points], self.mtbf_s)

    def _goodput_on(self, curve: smooth.Curve) -> Callable[[int], float]:
        return lambda steps: curve.goodput(steps * self.step_s)

    def _between(self, low: int, high: int) -> list[int]:
        fine = 0.02
        count = math.ceil(math.log2(high / low) / fine)
        return sorted({low, high, *(self.place(low * 2.0 ** (fine * i)) for i in range(count))})

    # --- how flat it is there

    def flat_region(self, best: int) -> tuple[float, float]:
        """Return the bounds [steps] between which goodput is at most FLAT below the best interval's.

        By the curve as far as it was fitted, by the paired runs beyond; both ends are within 1 and the job.
        """
        self.low, self.high = 1, self.total
        return self._edge(best, -1), self._edge(best, 1)

    def _edge(self, best: int, way: int) -> float:
        at, loss_at = best, 0.0
        while True:
            beyond = self._next(at, way)
            if not 1 <= beyond <= self.total:
                return float(at)
            if self._on_curve(best) and self._on_curve(beyond):
                assert self.curve is not None
                loss = self._goodput_on(self.curve)(best) - self._goodput_on(self.curve)(beyond)
            elif self.can_run(beyond):
                loss = self.goodput(best) - self.goodput(beyond)
            else:
                return float(at)
            if loss > FLAT:
                share = (FLAT - loss_at) / (loss - loss_at)
                return float(at * (beyond / at) ** share)
            at, loss_at = beyond, max(0.0, loss)

    def _next(self, at: int, way: int) -> int:
        on_curve = self._on_curve(at) and at != self.fitted[0 if way < 0 else -1]
        beyond = self.place(at * 2.0 ** (way * (0.1 if on_curve else 1.0)))
        if on_curve:
            beyond = min(max(beyond, self.fitted[0]), self.fitted[-1])
        if beyond != at:
            return beyond
        parts = round(self.total / at)
        if 0 < parts - way <= EVEN_PARTS:
            beyond = -(-self.total // (parts - way))
        return beyond if beyond != at else at + way

    def _on_curve(self, steps: int) -> bool:
        return self.curve is not None and self.fitted[0] <= steps <= self.fitted[-1]

    # --- more runs of a few

    def sharpen(self, intervals: Sequence[int]) -> None:
        """Double the runs of one interval, or of two, until goodput, or their difference, is known to +-0.002.

        Stops before these runs would hold more than SHARP_EVENTS log events.
        """
        while not self.fixed:
            studies = [self.studies[steps] for steps in intervals]
            kept_and_wall = [_kept_and_wall(study.runs) for study in studies]
            if len(studies) == 2:
                bounds = difference_interval(kept_and_wall[0], kept_and_wall[1])
            else:
                bounds = ratio_interval(*kept_and_wall[0])
            if bounds is None or bounds[1] - bounds[0] <= 2.0 * HALF_WIDTH:
                return
            runs = len(studies[0].runs)
            if 2 * runs > AUTO_RUNS or 2 * sum(study.events for study in studies) > SHARP_EVENTS:
                return
            self._planned = self._done + runs * len(studies)
            for study in studies:
                study.grow(2 * runs, self._tell)


def _kept_and_wall(runs: list[RunLedger]) -> tuple[list[float], list[float]]:
    return [run.seconds["productive"] for run in runs], [run.wall_s for run in runs]


def _without(values: list[float], group: int, groups: int) -> list[float]:
    return [value for i, value in enumerate(values) if i % groups != group]
