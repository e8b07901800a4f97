"""What the story of a run is made of: its chapters, from the start through stretches and incidents to the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sim.accounts.event_kinds import Event

# What the run did, in the order of the legend; `lost` steps were run again or never kept.
ACTIVITIES = ("kept", "lost", "save", "start", "detect", "restart", "load", "node_wait")


@dataclass
class Stretch:
    """The loop runs, from one `resumed` to the next incident. Times in s since the start of the run."""

    start_s: float
    first: int
    """the step it began to run"""
    end_s: float = 0.0
    last: int = 0
    """the last step it finished"""
    saves: int = 0
    durable: int = 0
    last_durable: int | None = None
    """the newest step that a save made durable in this stretch"""
    stalled_s: float = 0.0
    moments: list[tuple[float, str]] = field(default_factory=list)
    """what happened that did not stop the loop"""


@dataclass
class Phase:
    """One phase of a start or of an attempt [s]; cut: a fault ended it."""

    name: str
    dur_s: float
    cut: bool = False


@dataclass
class Attempt:
    """One attempt of a restart layer (layer None: the first start of the job)."""

    layer: str | None
    number: int
    phases: list[Phase] = field(default_factory=list)
    outcome: str | None = None
    reason: str | None = None


@dataclass
class Struck:
    """A fault of an incident, and who noticed it after how long [s]; None: nobody before the next one struck."""

    t_s: float
    id: object
    fault_class: str
    symptom: str
    scope: str
    rank: int | None
    node: object
    step: int | None
    noticed_after_s: float | None = None
    noticed_by: str | None = None


def struck(event: Event, t: float) -> Struck:
    """Return the fault of an event that came at t [s since the start of the run]."""
    return Struck(
        t, event["id"], event["class"], event["symptom"], event["scope"], event.get("rank"),
        event.get("node"), event.get("step"),
    )  # fmt: skip


@dataclass
class IncidentStory:
    """From a fault to `resumed`, or to the end of the run (end_s None)."""

    start_s: float
    done: int
    """steps done when it began"""
    faults: list[Struck] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    order: list[Struck | Attempt | str] = field(default_factory=list)
    """faults, attempts and what happened to nodes and writes, as they came"""
    end_s: float | None = None
    step: int | None = None
    """the step the loop goes on from"""
    steps_lost: int = 0
    rework_s: float = 0.0
    """time that the lost steps had taken"""


@dataclass
class Start:
    """The first start of the job."""

    start_s: float
    attempt: Attempt


@dataclass
class End:
    """How the run ended; `outcome` is `cut` where the log ends before the job does."""

    t_s: float
    outcome: str
    reason: str | None
    step: int | None
    kept_step: int | None


Chapter = Start | Stretch | IncidentStory | End


@dataclass
class Span:
    """A piece of the wall time and what it was used for (one of ACTIVITIES)."""

    start_s: float
    end_s: float
    activity: str


@dataclass
class Tale:
    """The whole story of one run."""

    run_start: Event
    chapters: list[Chapter] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    @property
    def wall_s(self) -> float:
        """Wall time of the run [s]."""
        return self.end.t_s

    @property
    def incidents(self) -> list[IncidentStory]:
        """The incidents, in order."""
        return [chapter for chapter in self.chapters if isinstance(chapter, IncidentStory)]

    @property
    def end(self) -> End:
        """The last chapter."""
        last = self.chapters[-1]
        assert isinstance(last, End)
        return last


def start_of(log: Sequence[Event]) -> float:
    """Return when a run began on the clock of its log [s]: at `run_start`, else at what the first event tells of."""
    first: Event = log[0] if log else {"t": 0.0}
    start = next((event for event in log if event["kind"] == "run_start"), None)
    return float(start["t"] if start is not None else first["t"] - first.get("dur_s", 0.0))
