"""What holds of every run: properties over small scenarios of all modes, layers, laws, scopes and symptoms."""

import copy

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sim import cluster, codes, engine
from sim.ledger import account
from sim.scenario import dump_yaml, load_scenario, to_mapping
from sim.support import unsupported
from tests.sim.some_scenarios import mappings, scenarios
from tests.sim.stories import check

SEEDS = st.integers(0, 1000)
SAVING = ("sync", "async")


def without_names(log):
    """Return a log without the label of its run, which holds the scenario's name and the replication."""
    return [
        {key: value for key, value in event.items() if key not in ("run", "replication")} for event in log
    ]


# --- every run


@given(scenarios(), SEEDS)
def test_what_holds_of_every_run(scenario, seed):
    """One run an example, and all that must be true of it: a run costs more than the looks at its log."""
    log = engine.run(scenario, seed)
    ledger = account(log)
    check(log, ledger)
    ends_as_it_says(scenario, log, ledger)
    conserves_nodes(scenario, log)
    corrupted = any(fault.symptom == "silent_corruption" for fault in scenario.failures.classes)
    known = not corrupted and scenario.checkpoint.publish == "write_end"
    if scenario.checkpoint.mode in ("local", "tiered") and known:
        goes_on_from_the_newest_that_survived(scenario, log)
    if scenario.checkpoint.mode in ("sync", "async") and scenario.checkpoint.load_failure == 0.0:
        if all(fault.symptom != "silent_corruption" for fault in scenario.failures.classes):
            progress_never_falls(log)
            rework_is_bounded(scenario, log)


ENDS = {"slurm": "node_loss"}  # what a layer's restart amounts to; in_process ends nothing, all others the processes


def goes_on_from_the_newest_that_survived(scenario, log):
    """A restart finds, of each tier, the durable saves that no fault, layer or leaving node has taken since."""
    ck = scenario.checkpoint
    names = ck.tier_names()
    survives = dict(zip(names, [tier.survives for tier in ck.tiers] or [ck.survives], strict=True))
    keep = dict(zip(names, [tier.keep or ck.keep for tier in ck.tiers] or [ck.keep], strict=True))
    there = {name: [] for name in names}  # steps, oldest first
    latent, idle = {}, None

    def lose(symptom):
        for name in names:
            if symptom not in survives[name]:
                there[name].clear()

    for event in log:
        kind = event["kind"]
        if kind == "save_durable":
            there[event["tier"]] = (there[event["tier"]] + [event["step"]])[-keep[event["tier"]] :]
        elif kind == "fault" and event["idle"]:
            idle = (event["t"], event["node"])
        elif kind == "fault":
            if event.get("planned"):
                lose("node_loss")
            if event["symptom"] == "slowdown":
                latent[event["id"]] = event
            else:
                lose(event["symptom"])
        elif kind == "detected" and event["fault"] in latent:
            lose("slowdown")
        elif kind == "node_down" and event["node"] is not None and (event["t"], event["node"]) != idle:
            lose("node_loss")
        elif kind == "layer_begin" and event["layer"] != "in_process":
            lose(ENDS.get(event["layer"], "process_exit"))
        elif kind == "resumed":
            newest = max((step for steps in there.values() for step in steps), default=0)
            assert event["step"] <= newest
            assert event["step"] == newest or ck.load_failure > 0.0
            there = {name: [s for s in steps if s <= event["step"]] for name, steps in there.items()}


def ends_as_it_says(scenario, log, ledger):
    end = log[-2]
    assert ledger.wall_s <= scenario.max_wall_s() * (1 + 1e-12)
    assert ledger.completed == (end["outcome"] == "completed")
    if ledger.completed:
        assert ledger.kept_steps == end["step"] == scenario.total_steps()
    else:
        assert ledger.reason  # the run says why it did not complete
        assert ledger.kept_steps == pytest.approx(
            end["kept_step"], abs=1 if scenario.checkpoint.mode == "ideal" else 0
        )


def conserves_nodes(scenario, log):
    """The counts add up at each event, and a node is out for one reason at a time."""
    spares = scenario.cluster.spares
    total = scenario.cluster.nodes + spares.hot + spares.cold
    out = set()
    for event in log:
        if event["kind"] in ("node_down", "node_up") and event["node"] is None:
            continue  # all are given back to Slurm, or got again
        if event["kind"] == "node_down":
            assert event["node"] not in out
            out.add(event["node"])
        elif event["kind"] == "node_up":
            out.discard(event["node"])
        else:
            continue
        counts = [event[pool] for pool in codes.NODE_STATES]
        assert sum(counts) == total and min(counts) >= 0
        assert event["repair"] + event["retired"] == len(out)
        assert event["working"] <= scenario.cluster.nodes


def progress_never_falls(log):
    """A restart goes on from no earlier step than one before it did (silent corruption aside)."""
    resumed = [event["step"] for event in log if event["kind"] == "resumed"]
    assert resumed == sorted(resumed)
    assert log[-2]["kept_step"] >= max(resumed, default=0)


def rework_is_bounded(scenario, log):
    """Lost at most: an interval, and all since the oldest save that was not durable (or not published) yet.

    A save that is skipped makes the interval longer by what passes until the next one that is not.
    """
    every, late = scenario.interval_steps(), scenario.checkpoint.publish == "next_save"
    waiting = {}  # saves begun and of no use yet: id -> step
    durable = set()
    done = oldest = newest = 0
    down = False
    for event in log:
        kind = event["kind"]
        if kind == "step":
            done = event["last"]
        elif kind == "save_begin" and not event.get("drain"):
            if late:
                waiting = {save: step for save, step in waiting.items() if save not in durable}
            waiting[event["id"]] = event["step"]
            if scenario.checkpoint.on_busy == "skip":
                every = max(every, event["step"] - newest)
            newest = event["step"]
        elif kind == "save_durable":
            durable.add(event["id"])
            if not late:
                waiting.pop(event["id"], None)
        elif kind == "fault" and not down and not event["idle"] and event["symptom"] != "slowdown":
            down, oldest = True, min(waiting.values(), default=done)
        elif kind == "detected" and not down:
            down, oldest = True, min(waiting.values(), default=done)
        elif kind == "save_failed":
            waiting.pop(event["id"], None)
        elif kind == "resumed":
            if down:
                unsaved = done - newest if scenario.checkpoint.on_busy == "skip" else 0
                assert done - event["step"] <= every + (done - oldest) + max(0, unsaved)
            done, down, newest = event["step"], False, event["step"]
            waiting = {save: step for save, step in waiting.items() if save not in durable}


# --- two runs


@given(scenarios(), SEEDS)
@settings(max_examples=30)
def test_the_same_seed_gives_the_same_log(scenario, seed):
    assert engine.run(scenario, seed) == engine.run(scenario, seed)


def test_another_replication_or_seed_gives_another_log():
    scenario = load_scenario(
        {
            "cluster": {"nodes": 4},
            "workload": {"step_time": 1, "steps": 20000},
            "checkpoint": {"mode": "sync", "interval": 600, "write_time": 20},
            "failures": {"classes": [{"name": "x", "mtbf": "1h", "scope": "job", "symptom": "exception"}]},
            "recovery": {"layers": ["fixed"], "fixed": {"restart": 300}},
        }
    )
    logs = [without_names(engine.run(scenario, seed, k)) for seed in (1, 2) for k in (0, 1, 2)]
    assert all(a != b for i, a in enumerate(logs) for b in logs[:i])


UNUSED = {"name": "unused", "rate": 0, "per": "node", "scope": "node", "symptom": "node_loss", "detect": 1}


@given(mappings(), SEEDS, st.sampled_from(["first", "last"]))
@settings(max_examples=30)
def test_a_class_that_never_strikes_changes_nothing(mapping, seed, where):
    scenario = load_scenario(mapping)
    assume(not unsupported(scenario))
    more = copy.deepcopy(mapping)
    more["failures"]["classes"].insert(0 if where == "first" else len(more["failures"]["classes"]), UNUSED)
    rare = copy.deepcopy(mapping)
    rare["failures"]["classes"].append({**UNUSED, "rate": 1e-15, "law": {"weibull": {"shape": 1.5}}})
    log = engine.run(scenario, seed)
    assert engine.run(load_scenario(more), seed) == log
    assert engine.run(load_scenario(rare), seed) == log


@given(scenarios(), SEEDS)
@settings(max_examples=30)
def test_a_scenario_written_as_yaml_and_read_again_gives_the_same_log(scenario, seed):
    again = load_scenario(dump_yaml(scenario))
    assert again == scenario and load_scenario(to_mapping(scenario)) == scenario
    assert engine.run(again, seed) == engine.run(scenario, seed)


@given(st.integers(1, 400), st.integers(1, 50), st.integers(0, 40), st.integers(0, 9), st.booleans())
def test_without_faults_the_wall_time_is_the_closed_form(steps, interval, write, start, final):
    scenario = load_scenario(
        {
            "cluster": {"nodes": 2},
            "workload": {"step_time": 0.25, "steps": steps, "process_start": start, "init": 1, "warmup": 2},
            "checkpoint": {
                "mode": "sync",
                "interval": f"{interval} steps",
                "write_time": write,
                "final_save": final,
            },
            "limits": {"max_wall": "1d"},
        }
    )
    log = engine.run(scenario)
    saves = (steps - 1) // interval + (1 if final else 0)
    assert account(log).wall_s == start + 3 + 0.25 * steps + saves * write
    assert sum(event["kind"] == "save_durable" for event in log) == saves


@given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 60), st.integers(0, 5))
def test_without_faults_an_async_job_waits_only_for_a_busy_writer(steps, interval, write, stall):
    """Save k may be staged when save k - 1 is durable; the job ends when the last one is."""
    scenario = load_scenario(
        {
            "cluster": {"nodes": 2},
            "workload": {"step_time": 1, "steps": steps},
            "checkpoint": {
                "mode": "async",
                "interval": f"{interval} steps",
                "write_time": write,
                "stall_time": stall,
            },
            "limits": {"max_wall": "1d"},
        }
    )
    t = free = done = 0
    for at in sorted({*range(interval, steps, interval), steps}):
        t += at - done
        done = at
        t = max(t, free) + stall
        free = t + write
    assert account(engine.run(scenario)).wall_s == max(t, free)


def scaled(value, factor):
    """Return a mapping's numbers that are times, times a factor."""
    if isinstance(value, dict):
        return {key: item if key in ("shape", "cv") else scaled(item, factor) for key, item in value.items()}
    if isinstance(value, list):
        return [scaled(item, factor) for item in value]
    return value * factor if isinstance(value, (int, float)) and not isinstance(value, bool) else value


@given(mappings(), SEEDS, st.sampled_from([0.25, 64.0]))
@settings(max_examples=30)
def test_all_times_scaled_scale_the_wall_time(mapping, seed, factor):
    """By a power of two, so exact but for sums with times that are constants of the tools, left out here."""
    mapping["recovery"]["launcher"] = "ft_launcher"
    mapping["recovery"]["in_job"] |= {"monitor_interval": 0.5, "stop_timeout": 4, "memory_reclaim": 0.5}
    mapping["recovery"]["in_job"] |= {"heartbeat_timeout": "off"}
    mapping["recovery"]["in_process"] |= {
        "termination_grace": 1,
        "heartbeat_timeout": 5,
        "barrier": 1,
        "unwind": 1,
    }
    layers = mapping["recovery"]["layers"]
    assume("kubernetes" not in layers)
    if "in_job" not in layers and layers != ["fixed"]:
        layers.insert(1 if layers[0] == "in_process" else 0, "in_job")
    assume(not unsupported(load_scenario(mapping)))
    big = copy.deepcopy(mapping)
    big["workload"] = {**scaled(mapping["workload"], factor), "steps": mapping["workload"]["steps"]}
    for block in (big["checkpoint"], *big["checkpoint"].get("tiers", ())):
        for key in ("write_time", "stall_time", "load_time"):
            if block.get(key) is not None:
                block[key] = scaled(block[key], factor)
    for fault in big["failures"]["classes"]:
        fault["mtbf"] *= factor
        if "detect" in fault:
            fault["detect"] = scaled(fault["detect"], factor)
        if "duration" in fault.get("slowdown", {}):
            fault["slowdown"]["duration"] = scaled(fault["slowdown"]["duration"], factor)
    for key, value in big["cluster"].items():
        if key in ("maintenance", "preemption") and value is not None:
            big["cluster"][key] = scaled(value, factor)
    if big["checkpoint"].get("save_before") is not None:
        big["checkpoint"]["save_before"] *= factor
    for stage in big["cluster"].get("repair", {}).get("stages", []):
        stage["time"] = scaled(stage["time"], factor)
    recovery = big["recovery"]
    times = {"nccl_timeout", "human_response", "detect", "restart", "provision", "abort", "barrier", "unwind"}
    times |= {
        "soft_timeout",
        "hard_timeout",
        "heartbeat_timeout",
        "monitor_interval",
        "last_call_wait",
        "stop",
    }
    times |= {"node_down", "queue_wait", "time_limit", "prolog"}
    times |= {
        "termination_grace",
        "initial_heartbeat_timeout",
        "stop_timeout",
        "memory_reclaim",
        "rendezvous",
    }
    for block in (
        recovery,
        *(recovery[name] for name in ("fixed", "in_process", "in_job", "slurm", "node_replacement")),
    ):
        for key in times & block.keys():
            block[key] = scaled(block[key], factor)
    big["limits"] = {"max_wall": mapping["limits"]["max_wall"] * factor}
    one, other = engine.run(load_scenario(mapping), seed), engine.run(load_scenario(big), seed)
    assert [e["kind"] for e in one] == [e["kind"] for e in other]
    assert [e["t"] * factor for e in one] == pytest.approx([e["t"] for e in other], rel=1e-9, abs=1e-9)


# --- the rules of nodes against a model of five lines


class _Sizes:
    """As much of the parameters as the rules of nodes read."""

    def __init__(self, nodes, hot, cold):
        self.nodes, self.hot, self.cold = nodes, hot, cold
        self.layer_on = [False] * len(codes.LAYERS)


class NodePool(RuleBasedStateMachine):
    """Random takes, repairs and seats; the model is a dict from node to where it is."""

    @initialize(nodes=st.integers(1, 5), hot=st.integers(0, 3), cold=st.integers(0, 3))
    def begin(self, nodes, hot, cold):
        self.p = _Sizes(nodes, hot, cold)
        total = nodes + hot + cold
        self.nodes = cluster.Nodes(*([0] * size for size in cluster.sizes(self.p)))
        cluster.start_nodes(self.nodes, self.p)
        self.model = dict.fromkeys(range(nodes), codes.WORKING)
        self.model |= dict.fromkeys(range(nodes, nodes + hot), codes.HOT)
        self.model |= dict.fromkeys(range(nodes + hot, total), codes.COLD)

    def those(self, *states):
        return sorted(node for node, state in self.model.items() if state in states)

    @precondition(lambda self: self.those(codes.WORKING, codes.HOT))
    @rule(data=st.data(), repair=st.booleans())
    def lose(self, data, repair):
        node = data.draw(st.sampled_from(self.those(codes.WORKING, codes.HOT)))
        cluster.take_out(self.nodes, self.p, node, repair)
        self.model[node] = codes.IN_REPAIR if repair else codes.GONE

    @precondition(lambda self: self.those(codes.HOT) and cluster.missing(self.nodes, self.p) > 0)
    @rule()
    def seat_a_hot_spare(self):
        node = cluster.first_in(self.nodes, self.p, codes.HOT)
        assert node in self.those(codes.HOT)
        cluster.seat(self.nodes, self.p, node)
        self.model[node] = codes.WORKING

    @precondition(lambda self: self.those(codes.COLD) and cluster.missing(self.nodes, self.p) > 0)
    @rule()
    def seat_a_cold_spare(self):
        node = cluster.first_in(self.nodes, self.p, codes.COLD)
        cluster.seat(self.nodes, self.p, node)
        self.model[node] = codes.WORKING

    @precondition(lambda self: self.those(codes.IN_REPAIR))
    @rule(data=st.data())
    def mend(self, data):
        node = data.draw(st.sampled_from(self.those(codes.IN_REPAIR)))
        place = cluster.place_for_good_node(self.nodes, self.p)
        if place == codes.WORKING:
            cluster.seat(self.nodes, self.p, node)
        else:
            cluster.move(self.nodes, node, place)
        lacks = len(self.those(codes.WORKING)) < self.p.nodes
        spare = codes.HOT if len(self.those(codes.HOT)) < self.p.hot else codes.COLD
        self.model[node] = codes.WORKING if lacks else spare

    @rule()
    def nothing(self):
        """There may be no node left to do anything with."""

    @precondition(lambda self: self.those(codes.WORKING))
    @rule(share=st.sampled_from([0.0, 0.25, 0.5, 0.999]))
    def point_at_a_working_node(self, share):
        count = len(self.those(codes.WORKING))
        shares = [(i + share) / count for i in range(count)]
        found = [self.nodes.node[cluster.slot_at(self.nodes, self.p, one)] for one in shares]
        assert sorted(found) == self.those(codes.WORKING)  # each as often

    @precondition(lambda self: self.those(codes.HOT))
    @rule(share=st.sampled_from([0.0, 0.25, 0.5, 0.999]))
    def point_at_a_hot_spare(self, share):
        count = len(self.those(codes.HOT))
        found = [cluster.hot_at(self.nodes, self.p, (i + share) / count) for i in range(count)]
        assert sorted(found) == self.those(codes.HOT)

    @invariant()
    def agrees_with_the_model(self):
        if not hasattr(self, "model"):
            return
        assert list(self.nodes.state) == [self.model[node] for node in sorted(self.model)]
        assert list(self.nodes.count) == [len(self.those(state)) for state in range(5)]
        seated = [node for node in self.nodes.node if node >= 0]
        assert sorted(seated) == self.those(codes.WORKING)
        assert all(self.nodes.node[self.nodes.slot[node]] == node for node in seated)
        assert cluster.missing(self.nodes, self.p) == self.p.nodes - len(seated)
        for state in range(5):
            assert cluster.first_in(self.nodes, self.p, state) in (self.those(state) or [-1])


TestNodePool = NodePool.TestCase
TestNodePool.settings = settings(max_examples=40, stateful_step_count=20)
