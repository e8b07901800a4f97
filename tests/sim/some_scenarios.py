"""Hypothesis strategies of small scenarios that the engine can run: every mode, layer, law, scope, symptom."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from sim.scenario import Scenario, load_scenario
from sim.support import unsupported

SYMPTOMS = ("exception", "hang", "process_exit", "gpu_error", "node_loss", "slowdown", "silent_corruption")


def seconds(low: float, high: float) -> st.SearchStrategy[float]:
    """Return times that are whole or half, so that ties happen."""
    return st.integers(int(2 * low), int(2 * high)).map(lambda n: n / 2)


def law(low: float, high: float) -> st.SearchStrategy[Any]:
    """Return the law of a duration around these bounds."""
    mean = seconds(max(low, 0.5), high)
    return st.one_of(
        seconds(low, high),
        seconds(low, high),
        mean.map(lambda m: {"exponential": {"mean": m}}),
        mean.map(lambda m: {"uniform": {"low": m / 2, "high": 2 * m}}),
        mean.map(lambda m: {"lognormal": {"median": m / 2, "mean": m}}),
        mean.map(lambda m: {"weibull": {"shape": 1.5, "mean": m}}),
        mean.map(lambda m: {"gamma": {"mean": m, "cv": 1.5}}),
        mean.map(lambda m: {"empirical": [m / 2, m, 3 * m]}),
    )


LIVES = st.sampled_from(
    [
        "exponential",
        "exponential",
        "constant",
        {"weibull": {"shape": 0.7}},
        {"weibull": {"shape": 2}},
        {"gamma": {"cv": 0.5}},
        {"uniform": {"low": 1, "high": 3}},
        {"empirical": [1, 2, 5]},
    ]
)


@st.composite
def fault_classes(
    draw: st.DrawFn, useful_s: float, units: dict[str, int], repair: bool
) -> list[dict[str, Any]]:
    """Return up to three classes that together strike the job about as often as `useful_s` allows."""
    found = []
    for i in range(draw(st.integers(0, 3))):
        symptom = draw(st.sampled_from(SYMPTOMS))
        scopes = ["node"] if symptom == "node_loss" else ["rank", "gpu", "node", "job"]
        scope = draw(st.sampled_from(scopes + ["rack"] * ("rack" in units)))
        narrow = scope in ("rank", "gpu", "node")
        per = draw(st.sampled_from([unit for unit in units if unit != "rack" or not narrow]))
        faults = draw(st.sampled_from([0.2, 1.0, 4.0]))  # about so many in the time of the work
        fault: dict[str, Any] = {
            "name": f"class-{i}",
            "mtbf": max(0.25, useful_s * units[per] / faults),
            "per": per,
            "scope": scope,
            "symptom": symptom,
            "law": draw(LIVES),
            "repair": scope != "job" and repair and draw(st.booleans()),
        }
        if symptom in ("hang", "node_loss", "silent_corruption") or draw(st.integers(0, 3)) == 0:
            fault["detect"] = draw(law(0, 20))
        if symptom == "hang":
            fault["gil"] = draw(st.sampled_from(["free", "held"]))
            if draw(st.booleans()):
                del fault["detect"]
        if symptom == "slowdown":
            fault["slowdown"] = {"factor": draw(st.sampled_from([1, 1.5, 3])), "duration": draw(law(1, 30))}
            if fault["repair"] and draw(st.booleans()):
                fault["slowdown"] = {"factor": 2, "until": "repaired"}
        if symptom == "node_loss" and draw(st.booleans()):
            fault["preemption"] = False
        found.append(fault)
    return found


@st.composite
def recoveries(draw: st.DrawFn) -> dict[str, Any]:
    """Return layers in their order under a launcher that has them."""
    launcher = draw(st.sampled_from(["ft_launcher", "torchrun", "direct"]))
    layers = [
        name
        for name in ("in_process", "in_job", "slurm", "node_replacement", "fixed")
        if draw(st.booleans()) and not (name == "in_job" and launcher != "ft_launcher")
    ]
    if launcher != "direct" and draw(st.integers(0, 4)) == 0:
        layers = [name for name in layers if name not in ("slurm", "fixed")]
        layers.insert(sum(name in ("in_process", "in_job") for name in layers), "kubernetes")
    share = st.sampled_from([1.0, 1.0, 0.5])
    budget = st.sampled_from([None, None, 3])
    return {
        "launcher": launcher,
        "nvrx": draw(st.sampled_from(["0.4.1", "0.6.0", "0.7.0"])),
        "layers": layers or ["fixed"],
        "nccl_timeout": draw(st.sampled_from([8, 30, 90])),
        "human_response": draw(st.one_of(st.none(), law(5, 60))),
        "fixed": {"detect": draw(law(0, 5)), "restart": draw(law(0, 20))},
        "in_process": {
            "soft_timeout": draw(seconds(5, 20)),
            "hard_timeout": draw(seconds(20, 40)),
            "monitor_interval": draw(seconds(0, 2)),
            "last_call_wait": draw(seconds(0, 2)),
            "abort": draw(law(0, 2)),
            "atomic": draw(st.booleans()),
            "reserve_ranks": 0,
            "health_check_pass": draw(share),
            "success": draw(share),
            "max_restarts": draw(budget),
        },
        "in_job": {
            "heartbeat_timeout": draw(st.sampled_from(["off", 20])),
            "initial_heartbeat_timeout": draw(st.sampled_from(["off", "off", 15])),
            "stop": draw(law(0, 5)),
            "rendezvous": draw(law(0, 5)),
            "health_check_pass": draw(share),
            "success": draw(share),
            "max_restarts": draw(budget),
            "max_no_progress_cycles": draw(st.sampled_from([None, 0])),
        },
        "node_replacement": {"provision": draw(law(0, 30))},
        "slurm": {
            "node_down": draw(st.sampled_from([5, 300])),
            "queue_wait": draw(law(0, 30)),
            "time_limit": draw(st.sampled_from([None, None, 20, 50])),
            "prolog": draw(law(0, 5)),
            "max_restarts": draw(budget),
        },
        "kubernetes": {
            "restart_policy": draw(st.sampled_from(["Never", "OnFailure"])),
            "backoff_limit": draw(st.sampled_from([2, 50])),
        },
    }


MODES = ("none", "ideal", "sync", "async", "local", "tiered")
SURVIVES = st.sampled_from([["exception"], ["exception", "hang", "process_exit", "gpu_error"], "all", "all"])


@st.composite
def tiers(draw: st.DrawFn) -> dict[str, Any]:
    """Return one tier of a tiered checkpoint."""
    return {
        "every": f"{draw(st.integers(1, 12))} steps",
        "write_time": draw(law(0, 10)),
        "stall_time": draw(st.one_of(st.none(), law(0, 3))),
        "load_time": draw(law(0, 5)),
        "survives": draw(SURVIVES),
        "keep": draw(st.sampled_from([None, 1, 2])),
    }


@st.composite
def checkpoints(draw: st.DrawFn, modes: tuple[str, ...]) -> dict[str, Any]:
    """Return how the state is saved."""
    mode = draw(st.sampled_from(modes))
    found: dict[str, Any] = {"mode": mode, "load_time": draw(law(0, 5)), "keep": draw(st.integers(1, 3))}
    found["save_before"] = draw(st.sampled_from([None, None, 4, 15]))
    found["load_failure"] = draw(st.sampled_from([0.0, 0.0, 0.0, 0.4]))
    found["on_load_failure"] = draw(st.sampled_from(["older", "older", "exit"]))
    if mode == "local":
        found |= {"interval": f"{draw(st.integers(1, 20))} steps", "stall_time": draw(law(0, 3))}
        found |= {"survives": draw(SURVIVES), "write_time": draw(st.one_of(st.none(), law(0, 15)))}
    if mode == "tiered":
        found["tiers"] = draw(st.lists(tiers(), min_size=1, max_size=3))
    if mode in ("sync", "async"):
        found |= {"interval": f"{draw(st.integers(1, 20))} steps", "write_time": draw(law(0, 15))}
    if mode not in ("none", "ideal"):
        found |= {
            "final_save": draw(st.booleans()),
            "publish": draw(st.sampled_from(["write_end", "write_end", "next_save"])),
            "write_survives": draw(st.sampled_from([[], [], ["exception", "hang"], "all"])),
        }
    if mode == "async":
        found["stall_time"] = draw(law(0, 3))
    if mode in ("async", "local", "tiered"):
        found |= {
            "on_busy": draw(st.sampled_from(["wait", "queue", "skip"])),
            "async_slowdown": draw(st.sampled_from([None, {"factor": 1.5}])),
        }
    return found


@st.composite
def mappings(draw: st.DrawFn, modes: tuple[str, ...] = MODES) -> dict[str, Any]:
    """Return a small scenario as a mapping; not all are ones that the engine can run."""
    nodes, gpus = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    rack = draw(st.sampled_from([None, 1, 2, 3]))
    repair = draw(st.booleans())
    step_s, steps = draw(st.sampled_from([0.5, 1.0, 2.0])), draw(st.integers(1, 60))
    units = {"job": 1, "node": nodes, "gpu": nodes * gpus, "rank": nodes * gpus}
    if rack is not None:
        units["rack"] = -(-nodes // rack)
    cluster: dict[str, Any] = {
        "nodes": nodes,
        "gpus_per_node": gpus,
        "nodes_per_rack": rack,
        "spares": {"hot": draw(st.integers(0, 2)), "cold": draw(st.integers(0, 2))},
        "initial_age": draw(st.sampled_from(["new", "new", "stationary"])),
        "preemption": draw(st.sampled_from([None, {"warning": 3}, {"warning": 0}])),
    }
    if draw(st.integers(0, 3)) == 0:
        cluster["maintenance"] = {"every": draw(seconds(20, 60)), "duration": draw(seconds(0, 15))}
    if repair:
        cluster["repair"] = {
            "stages": [
                {"time": draw(law(0, 40)), "success": draw(st.sampled_from([1.0, 0.6])), "escalate": 0.3},
                {"time": draw(law(0, 90))},
            ][draw(st.integers(0, 1)) :],
            "crews": draw(st.sampled_from(["unlimited", 1])),
            "renews": draw(st.booleans()),
        }
    schedule = [
        {
            "step": draw(st.integers(0, steps)),
            "rank": draw(st.integers(0, nodes * gpus - 1)),
            "symptom": draw(st.sampled_from(["exception", "process_exit", "gpu_error", "hang"])),
        }
        for _ in range(draw(st.integers(0, 2)))
    ]
    useful_s = step_s * steps
    return {
        "name": "small",
        "cluster": cluster,
        "workload": {
            "step_time": draw(
                st.sampled_from([step_s, step_s, {"lognormal": {"median": step_s, "mean": 1.25 * step_s}}])
            ),
            "steps": steps,
            "process_start": draw(law(0, 8)),
            "init": draw(law(0, 4)),
            "warmup": draw(law(0, 4)),
        },
        "checkpoint": draw(checkpoints(modes)),
        "failures": {
            "clock": draw(st.sampled_from(["wall", "running"])),
            "classes": draw(fault_classes(useful_s, units, repair)),
            "schedule": schedule,
        },
        "recovery": draw(recoveries()),
        "limits": {"max_wall": 6 * useful_s + 200, "max_events": 20000},
    }


def scenarios(**how: Any) -> st.SearchStrategy[Scenario]:
    """Return small scenarios that the engine can run."""
    return mappings(**how).map(load_scenario).filter(lambda s: not unsupported(s))
