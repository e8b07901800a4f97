"""A builder of event logs for tests: each call appends one event."""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]


class Log(list[Event]):
    """An event log that begins with `run_start`; `log(t, kind, **fields)` appends an event."""

    def __init__(self, *, source: str = "simulated", t: float = 0, **fields: Any) -> None:
        super().__init__()
        self.rank: int | None = None
        start: Event = {
            "nominal_step_s": 1, "steps": 100, "start_step": 0, "nodes": 2, "gpus_per_node": 8,
            "spares": {"hot": 0, "cold": 0}, "source": source,
        }  # fmt: skip
        self(t, "run_start", **{**start, **fields})

    def __call__(self, t: float, kind: str, **fields: Any) -> Log:
        fields = {name.rstrip("_"): value for name, value in fields.items()}
        self.append(
            {
                "v": 1,
                "t": t,
                "wall": None,
                "run": "r",
                "rank": self.rank,
                "node": None,
                "kind": kind,
                **fields,
            }
        )
        return self

    def phase(self, begin: float, end: float, phase: str, layer: str | None = None, attempt: int = 1,
              cut: bool = False) -> Log:  # fmt: skip
        self(begin, "phase_begin", phase=phase, layer=layer, attempt=attempt)
        return self(
            end, "phase_end", phase=phase, layer=layer, attempt=attempt, **({"cut": True} if cut else {})
        )

    def steps(self, t: float, first: int, last: int, **fields: Any) -> Log:
        """Steps first..last end at t; they took a second each unless `dur_s` is given."""
        return self(t, "step", **{"first": first, "last": last, "dur_s": last - first + 1, **fields})

    def save(self, begin: float, end: float, id: object, step: int, staged: float | None = None) -> Log:
        """A save: sync, or async with the loop going on at `staged`."""
        self(begin, "save_begin", id=id, step=step, tier="global")
        if staged is not None:
            self(staged, "save_staged", id=id)
        return self(end, "save_durable", id=id, step=step, tier="global")

    def fault(self, t: float, id: object = 1, symptom: str = "exception", class_: str = "software",
              **fields: Any) -> Log:  # fmt: skip
        told = {"id": id, "class": class_, "symptom": symptom, "scope": "rank", "step": None}
        return self(t, "fault", **{**told, **fields})

    def detected(self, t: float, fault: object = 1, by: str = "monitor") -> Log:
        return self(t, "detected", fault=fault, by=by)

    def layer(self, t: float, layer: str, attempt: int = 1) -> Log:
        return self(t, "layer_begin", layer=layer, attempt=attempt, incident=1)

    def layer_end(self, t: float, layer: str, outcome: str = "resumed", attempt: int = 1) -> Log:
        return self(t, "layer_end", layer=layer, attempt=attempt, incident=1, outcome=outcome, reason=None)

    def nodes(self, t: float, kind: str, working: int, hot: int = 0, cold: int = 0, repair: int = 0,
              retired: int = 0) -> Log:  # fmt: skip
        extra = {"why": "fault"} if kind == "node_down" else {"to": "working"}
        return self(t, kind, working=working, hot=hot, cold=cold, repair=repair, retired=retired, **extra)

    def end(self, t: float, outcome: str = "completed", step: int = 100, **fields: Any) -> Log:
        self(t, "job_end", outcome=outcome, reason=None, step=step, **fields)
        return self(t, "run_end")
