"""Tiny jobs with constant times, and their logs as short lines: the language of the story tests.

`tell(...)` runs a scenario and returns its story, a line an event (`time what`), after its log has been found valid
and its ledgers have been found to close. A phase is one line, at its end and with its length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim import engine, events
from sim.accounts.event_kinds import of_one_pod
from sim.ledger import RunLedger, account
from sim.scenario import Scenario, load_scenario

# Steps of 1 s on 2 nodes of 2 GPUs, a save of 2 s every 4 steps; times are whole as nothing waits for a look.
# Left alone it ends at 12: steps to 4, save to 6, steps to 10, save to 12. A restart takes 3, and the load 1 more.
TINY: dict[str, Any] = {
    "name": "tiny",
    "cluster": {"nodes": 2, "gpus_per_node": 2},
    "workload": {"step_time": 1, "steps": 8},
    "checkpoint": {"mode": "sync", "interval": "4 steps", "write_time": 2, "load_time": 1},
    "recovery": {"layers": ["fixed"], "fixed": {"detect": 1, "restart": 2}},
}
IN_PROCESS: dict[str, Any] = {
    "monitor_interval": 0,
    "last_call_wait": 0,
    "abort": 1,
    "unwind": 1,
    "barrier": 1,
}
IN_JOB: dict[str, Any] = {"monitor_interval": 1e-9, "memory_reclaim": 1, "rendezvous": 2}
ASYNC: dict[str, Any] = {
    "checkpoint": {"mode": "async", "interval": "4 steps", "write_time": 3, "stall_time": 1, "load_time": 1}
}


@dataclass(frozen=True)
class Told:
    """A run and what it came to."""

    scenario: Scenario
    log: list[dict[str, Any]]
    lines: list[str]
    ledger: RunLedger

    @property
    def seconds(self) -> dict[str, float]:
        """The ledger's categories that took time, rounded as the lines are."""
        return {name: _round(s) for name, s in self.ledger.seconds.items() if _round(s)}

    def after(self, text: str) -> list[str]:
        """Return the lines from the first one that tells `text`."""
        at = next(i for i, line in enumerate(self.lines) if text in line)
        return self.lines[at:]

    def during(self, text: str, until: str = " resumed") -> list[str]:
        """Return the lines from the first one that tells `text` to the next that tells `until`."""
        rest = self.after(text)
        at = next(i for i, line in enumerate(rest) if i and until in line)
        return rest[: at + 1]


def scenario(*changes: Mapping[str, Any]) -> Scenario:
    """Return the tiny job with changes laid over it, block by block and key by key."""
    return load_scenario(merged(TINY, *changes))


def merged(*blocks: Mapping[str, Any]) -> dict[str, Any]:
    """Lay mappings over each other; a recovery layer's or checkpoint's keys are merged, lists replaced."""
    result: dict[str, Any] = {}
    for block in blocks:
        for key, value in block.items():
            old = result.get(key)
            fresh = key == "checkpoint" and isinstance(value, Mapping) and "mode" in value
            both = isinstance(old, dict) and isinstance(value, Mapping) and not fresh
            result[key] = merged(old, value) if both else value
    return result


def scheduled(step: int, symptom: str = "exception", rank: int = 3, **more: Any) -> dict[str, Any]:
    """Return the changes that let one fault strike at a step."""
    scope = {"scope": "node"} if symptom in ("node_loss", "gpu_error") else {}
    return {"failures": {"schedule": [{"step": step, "rank": rank, "symptom": symptom, **scope, **more}]}}


def every(seconds: float, symptom: str = "exception", name: str = "soft", **more: Any) -> dict[str, Any]:
    """Return a fault class that strikes the job once in so many seconds exactly."""
    shape = {"per": "job", "scope": "job", "law": "constant"}
    return {"name": name, "mtbf": seconds, "symptom": symptom, **shape, **more}


def classes(*found: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the changes that give the job these fault classes."""
    return {"failures": {"classes": list(found), **more}}


def recovery(*layers: str, **more: Any) -> dict[str, Any]:
    """Return the changes that give the job these layers, without random waits."""
    return {
        "recovery": {
            "layers": list(layers),
            "in_process": {**IN_PROCESS, **more.pop("in_process", {})},
            "in_job": {**IN_JOB, **more.pop("in_job", {})},
            **more,
        }
    }


def tell(*changes: Mapping[str, Any] | Scenario, seed: int = 1) -> Told:
    """Run a job and check what holds of every run: a valid log whose two ledgers close."""
    given = changes[0] if isinstance(changes[0], Scenario) else scenario(*changes)
    log = engine.run(given, seed)
    ledger = account(log)
    check(log, ledger)
    return Told(given, log, lines(log), ledger)


def check(log: list[dict[str, Any]], ledger: RunLedger) -> None:
    """Check that a log is valid and that its ledgers close."""
    assert events.validate(log) == []
    assert all(seconds >= -1e-9 * ledger.wall_s for seconds in ledger.seconds.values())
    assert math.isclose(sum(ledger.seconds.values()), ledger.wall_s, rel_tol=1e-9)
    assert math.isclose(sum(ledger.gpu_seconds.values()), paid_gpu_s(log), rel_tol=1e-9)


def paid_gpu_s(log: list[dict[str, Any]]) -> float:
    """Integrate the GPUs of the working set and the hot spares over a run, from the counts in its log."""
    start = log[0]
    nodes, since, total = start["nodes"] + start["spares"]["hot"], start["t"], 0.0
    for event in log:
        if event["kind"] in ("node_down", "node_up", "run_end"):
            total += nodes * (event["t"] - since)
            since = event["t"]
            if event["kind"] != "run_end":
                nodes = event["working"] + event["hot"]
    return total * start["gpus_per_node"]


def lines(log: list[dict[str, Any]]) -> list[str]:
    """Return the log as lines; the run's own begin and end are left out, and what single pods tell."""
    found: list[str] = []
    begun = 0.0
    for event in log:
        if of_one_pod(event):
            continue
        kind, t = event["kind"], event["t"]
        if kind == "phase_begin":
            begun = t
        elif kind == "phase_end":
            cut = " cut" if event.get("cut") else " failed" if event.get("failed") else ""
            found.append(f"{brief(t)} {event['phase']} {brief(t - begun)}{cut}")
        elif kind in _TEXTS:
            found.append(f"{brief(t)} {_TEXTS[kind](event)}")
    return found


def brief(seconds: float) -> str:
    """Write a time with at most six decimals."""
    return f"{seconds:.6f}".rstrip("0").rstrip(".")


def _round(seconds: float) -> float:
    return round(seconds, 6)


def _steps(e: dict[str, Any]) -> str:
    first, last, part = e["first"], e["last"], e.get("part", 0.0)
    text = f"steps {first}-{last}" if last >= first else "no whole step"
    text += f" +{brief(part)}" if part else ""
    return text + (f" slow {brief(e['slow_s'])}" if e["slow_s"] > 1e-6 else "")


def _fault(e: dict[str, Any]) -> str:
    text = f"fault {e['id']} {e['symptom']}"
    text += "" if e["rank"] is None else f" rank {e['rank']}"
    text += "" if e["node"] is None else f" node {e['node']}"
    return text + (" idle" if e["idle"] else " planned" if e.get("planned") else "")


def _node(e: dict[str, Any]) -> str:
    return "all nodes" if e["node"] is None else f"node {e['node']}"


def _counts(e: dict[str, Any]) -> str:
    return "/".join(str(e[pool]) for pool in ("working", "hot", "cold", "repair", "retired"))


def _job_end(e: dict[str, Any]) -> str:
    if e["outcome"] == "completed":
        return f"completed {e['step']}"
    return f"{e['outcome']} at {e['step']}, kept {e['kept_step']}: {e['reason']}"


def _resumed(e: dict[str, Any]) -> str:
    return f"resumed {e['step']}" + (f" +{brief(e['part'])}" if e.get("part") else "")


def _layer_end(e: dict[str, Any]) -> str:
    return f"{e['layer']} {e['attempt']} {e['outcome']}" + (f": {e['reason']}" if e["reason"] else "")


_TEXTS = {
    "resumed": _resumed,
    "step": _steps,
    "save_begin": lambda e: f"{'drain' if e.get('drain') else 'save'} {e['id']} begins",
    "save_staged": lambda e: f"save {e['id']} staged",
    "save_durable": lambda e: f"save {e['id']} durable",
    "save_failed": lambda e: f"save {e['id']} lost",
    "fault": _fault,
    "detected": lambda e: f"fault {e['fault']} noticed by {e['by']}",
    "layer_begin": lambda e: f"{e['layer']} {e['attempt']} begins",
    "layer_end": _layer_end,
    "node_down": lambda e: f"{_node(e)} down {_counts(e)}",
    "node_up": lambda e: f"{_node(e)} up {e['to']} {_counts(e)}",
    "slow_begin": lambda e: f"node {e['node']} slow x{e['factor']:g}",
    "slow_end": lambda e: f"node {e['node']} no longer slow",
    "job_end": _job_end,
}

BEGIN = [
    "0 resumed 0",
    "4 steps 1-4",
    "4 save 1 begins",
    "6 save 1 durable",
]  # how the tiny job always begins


def rest(t: float, save: int) -> list[str]:
    """Return the lines of the tiny job from step 4 at time `t` to its end, without a fault."""
    end = brief(t + 4), brief(t + 6)
    return [
        f"{end[0]} steps 5-8",
        f"{end[0]} save {save} begins",
        f"{end[1]} save {save} durable",
        f"{end[1]} completed 8",
    ]
