"""The rules in one compiled loop: a run made of faults, saves, repairs and incidents gives the same bits as in Python.

test_kernel.py holds each rule by itself to its plain self; here they are held together, over arrays of parameters,
as a compiled driver would use them.
"""

import math

import numpy as np
import pytest

from sim import checkpoint, cluster, codes, failures, kernel, params, sampling
from sim.recovery import base, state
from sim.scenario import load_scenario

pytestmark = pytest.mark.slow
numba = pytest.importorskip("numba")


def load_of(saved, p, seed, replication):
    place = checkpoint.newest_usable(saved, p, math.inf)
    if place == checkpoint.STEP0:
        return -1, False
    fails = checkpoint.cannot_load(p, saved.number[place], seed, replication)
    return p.tier_load[checkpoint.tier_of(p, place)], fails


def play(p, src, nodes, saved, inc, seed, replication, faults, story):
    """Play a job of `faults` faults: one number after another of what happens goes into `story`."""
    told = 0
    cluster.start_nodes(nodes, p)
    failures.start(src, p, seed, replication)
    state.clear(inc)
    now = 0.0
    done = 0.0
    durable = 0.0
    for _ in range(faults):
        failures.set_rates(src, p, now, True, nodes.count[codes.WORKING], nodes.count[codes.HOT])
        source = failures.next_source(src, p)
        if source < 0:
            break
        strike = max(now, failures.strike_time(src.row[source]))
        while True:  # steps and saves until the fault strikes
            step = checkpoint.next_save(p, done, p.steps)
            begun = now + (step - done) * p.pace_s
            ends = begun + sampling.draw(p, params.WRITE, seed, replication, int(durable) + 1, 0)
            if ends > strike:
                break
            tier = checkpoint.due_tier(p, step, p.steps)
            checkpoint.publish(saved, p, tier)
            durable += 1.0
            checkpoint.add_durable(saved, p, tier, step, begun, int(durable))
            done = step
            now = checkpoint.write_begins(ends, 0.0, begun)
        now = strike
        c = source // 2
        who = failures.victim(src, p, source, seed, replication)
        symptom = p.class_symptom[c]
        per = p.class_per[c]
        takes = cluster.takes_node(p, symptom, p.class_repair[c])
        node = -1
        unit = 0
        if per == codes.RACK or (p.class_tree[c] and per != codes.JOB):
            unit = int(who)
        if per == codes.JOB:
            node = nodes.node[cluster.slot_at(nodes, p, who)]
        elif per != codes.RACK:
            if p.class_tree[c]:
                node = unit // p.class_units[c]
            elif source % 2 == 1:
                node = cluster.hot_at(nodes, p, who)
            else:
                node = nodes.node[cluster.slot_at(nodes, p, who)]
        idle = node >= 0 and nodes.state[node] != codes.WORKING
        failures.renew(src, p, source, unit, seed, replication)
        for value in (
            now,
            float(source),
            float(node),
            float(symptom),
            float(checkpoint.kept_step(saved, p, now)),
        ):
            story[told] = value
            told += 1
        if takes and node >= 0:
            failures.stop_ageing(src, p, node, now, c, unit)
            cluster.take_out(nodes, p, node, p.class_repair[c])
        if idle:
            continue
        spare = cluster.first_in(nodes, p, codes.HOT)
        if cluster.missing(nodes, p) > 0 and spare >= 0:
            cluster.seat(nodes, p, spare)
        base.strike(inc, symptom, p.class_gil_held[c], c, node, takes)
        checkpoint.lose(saved, p, symptom)
        row, fails = load_of(saved, p, seed, replication)
        state.observe(inc, cluster.missing(nodes, p), row, fails, durable)
        phase, until = base.advance(inc, p, codes.ON_FAULT, now, seed, replication)
        for turn in range(40):
            story[told] = phase
            story[told + 1] = until
            story[told + 2] = inc[state.LAYER]
            told += 3
            if phase == codes.RESUMED or phase == codes.FAILED:
                break
            event = codes.ON_TIMER
            if phase == codes.NODE_WAIT:
                until = now + 60.0
                event = codes.ON_NODES
                for state_of_node in (codes.COLD, codes.IN_REPAIR, codes.GONE):
                    comes = cluster.first_in(nodes, p, state_of_node)
                    while comes >= 0 and cluster.missing(nodes, p) > 0:
                        failures.start_ageing(src, p, comes, until, turn % 2 == 0, seed, replication)
                        cluster.seat(nodes, p, comes)
                        comes = cluster.first_in(nodes, p, state_of_node)
            now = min(until, now + 1e6)
            if inc[state.DROP_NODE] > 0.0:
                inc[state.DROP_NODE] = 0.0
                sick = int(inc[state.SUSPECT_NODE])
                if nodes.state[sick] == codes.WORKING:
                    failures.stop_ageing(src, p, sick, now, -1, -1)
                    failures.renew_resting(src, p, sick)
                    cluster.take_out(nodes, p, sick, True)
            if fails and phase == codes.CHECKPOINT_LOAD and not p.load_exit:
                checkpoint.drop(saved, p, checkpoint.newest_usable(saved, p, math.inf))
            if phase == codes.DETECT and inc[state.LAYER] >= 0:
                amount = checkpoint.amounts_to(int(inc[state.LAYER]))
                if amount >= 0:
                    checkpoint.lose(saved, p, amount)
            row, fails = load_of(saved, p, seed, replication)
            state.observe(inc, cluster.missing(nodes, p), row, fails, durable)
            phase, until = base.advance(inc, p, event, now, seed, replication)
        mended = cluster.first_in(nodes, p, codes.IN_REPAIR)
        if mended >= 0:
            place = cluster.place_for_good_node(nodes, p)
            if place == codes.WORKING:
                cluster.seat(nodes, p, mended)
            else:
                cluster.move(nodes, mended, place)
            if place != codes.COLD:
                failures.start_ageing(src, p, mended, now, p.renews, seed, replication)
        done = checkpoint.restore(saved, p, now)
        if inc[state.PHASE] == codes.FAILED:
            state.clear(inc)
    return told


STORY = 4000
FAULTS = 30


def blank(p, array):
    """Return the state of a run before it begins."""
    places = p.n_tiers * checkpoint.places(p)
    whole, real = np.int64, np.float64
    sources = failures.Sources(
        array([[0.0, 0.0, 0.0, math.inf, 0.0]] * (2 * p.n_classes), real, -1, 5),
        array([math.inf] * p.tree_size, real),
        array([0.0] * p.n_units, real),
        array([0.0] * p.n_units, real),
        array([0] * p.n_units, whole),
    )
    nodes = cluster.Nodes(*(array([0] * size, whole) for size in cluster.sizes(p)))
    saved = checkpoint.Checkpoints(
        array([0.0] * places, real),
        array([0.0] * places, real),
        array([0] * places, whole),
        array([0] * places, whole),
        array([0] * p.n_tiers, whole),
    )
    return sources, nodes, saved, array([0.0] * state.SIZE, real), array([0.0] * STORY, real)


def as_list(values, kind, *shape):
    return [list(v) if isinstance(v, list) else v for v in values]


def as_array(values, kind, *shape):
    return np.array(values, dtype=kind).reshape(shape or -1)


CLASSES = [
    {"name": "gpu", "mtbf": "9h", "scope": "gpu", "symptom": "gpu_error", "law": {"weibull": {"shape": 0.8}}},
    {"name": "node", "mtbf": "8h", "scope": "node", "symptom": "node_loss", "repair": True},
    {"name": "rack", "mtbf": "9h", "scope": "rack", "symptom": "process_exit", "law": {"gamma": {"cv": 0.7}}},
    {"name": "soft", "mtbf": "2h", "per": "job", "scope": "rank", "symptom": "exception", "law": "constant"},
    {"name": "stuck", "mtbf": "4h", "per": "job", "scope": "rank", "symptom": "hang", "gil": "held"},
    {
        "name": "bad",
        "mtbf": "3h",
        "scope": "node",
        "per": "job",
        "symptom": "node_loss",
        "law": {"lognormal": {"median": "2h"}},
    },
]
BASE = {
    "cluster": {
        "nodes": 4,
        "gpus_per_node": 2,
        "nodes_per_rack": 2,
        "spares": {"hot": 1, "cold": 1},
        "repair": {"stages": [{"time": {"exponential": {"mean": "2h"}}, "success": 0.8}]},
    },
    "workload": {
        "step_time": {"uniform": {"low": 1, "high": 2}},
        "steps": 10**7,
        "process_start": 10,
        "init": 20,
    },
    "checkpoint": {
        "mode": "sync",
        "interval": "10min",
        "write_time": {"lognormal": {"median": 20, "mean": 30}},
        "load_time": 30,
    },
    "failures": {"classes": CLASSES},
    "recovery": {
        "layers": ["in_process", "in_job", "node_replacement"],
        "launcher": "ft_launcher",
        "in_process": {"success": 0.9, "health_check_pass": 0.5},
        "in_job": {
            "health_check_pass": 0.5,
            "success": 0.9,
            "heartbeat_timeout": 300,
            "initial_heartbeat_timeout": 120,
        },
        "human_response": {"weibull": {"shape": 2, "mean": "1h"}},
    },
}
VARIANTS = {
    "as above": {},
    "fixed": {
        "recovery": {
            "layers": ["fixed"],
            "fixed": {"detect": {"gamma": {"cv": 2, "mean": 60}}, "restart": 600},
        }
    },
    "stationary, running, published late": {
        "cluster": {**BASE["cluster"], "initial_age": "stationary"},
        "failures": {"clock": "running", "classes": CLASSES},
        "checkpoint": {**BASE["checkpoint"], "publish": "next_save", "keep": 1},
    },
    "requeued": {"recovery": {"layers": ["in_process", "slurm"], "slurm": {"queue_wait": 900, "max_restarts": 9}}},
    "no faults": {"failures": {}},
    "tiers, loads that fail": {
        "checkpoint": {
            "mode": "tiered",
            "load_failure": 0.3,
            "tiers": [
                {"every": "5min", "write_time": 5, "load_time": 10, "survives": ["exception"], "keep": 3},
                {"every": "15min", "write_time": 30, "load_time": {"gamma": {"cv": 1, "mean": 60}}, "survives": "all"},
            ],
        }
    },
}


def test_a_compiled_run_tells_the_same_story_to_the_last_bit():
    kernel.register_overloads()
    numba.extending.register_jitable(load_of)
    compiled = numba.njit(play)
    lengths = []
    for variant in VARIANTS.values():
        p = params.compile_scenario(load_scenario({**BASE, **variant}))
        arrays = params.as_arrays(p)
        for replication in range(4):
            plain, fast = blank(p, as_list), blank(p, as_array)
            told = play(p, *plain[:4], 1, replication, FAULTS, plain[4])
            assert compiled(arrays, *fast[:4], 1, replication, FAULTS, fast[4]) == told
            for one, other in zip(_flat(plain), _flat(fast), strict=True):
                assert np.array_equal(
                    np.array(one, dtype=np.float64).ravel(), np.array(other, dtype=np.float64).ravel()
                )
            lengths.append(told)
    assert max(lengths) < STORY and min(lengths[:16]) > 300 and lengths[16:20] == [0] * 4
    assert min(lengths[20:]) > 300
    assert len(compiled.signatures) == 1, "one compilation must serve every scenario"


def _flat(states):
    sources, nodes, saved, inc, story = states
    return (*sources, *nodes, *saved, inc, story)
