"""What one simulated run costs, log and ledger included, and how that grows with the cluster."""

import time

from benchmarks import benchmark
from sim.engine import simulate_run
from sim.ledger import account
from sim.params import compile_scenario
from sim.scenario import load_scenario

RUNS = 5
REPEATS = 3


def _best_s(*designs: list[str]) -> list[float]:
    """Return each design's time for the same RUNS replications, best of REPEATS, designs by turns."""
    prepared = []
    for overrides in designs:
        scenario = load_scenario("llama3-405b", overrides)
        prepared.append((compile_scenario(scenario), scenario))
    best = [[float("inf")] * RUNS for _ in designs]
    for _ in range(REPEATS):
        for replication in range(RUNS):
            for i, (p, scenario) in enumerate(prepared):
                begin = time.perf_counter()
                ledger = account(simulate_run(p, scenario, 1, replication))
                best[i][replication] = min(best[i][replication], time.perf_counter() - begin)
                assert ledger.completed
    return [sum(times) / RUNS for times in best]


@benchmark("Llama 3 405B (54 days, 16,384 GPUs), one run", "s", 0.5)
def bench_llama() -> float:
    return _best_s([])[0]


@benchmark("the same at 16 x the nodes, 1/16 of the rates: ratio", "", 1.5)
def bench_growth() -> float:
    classes = load_scenario("llama3-405b").failures.classes
    rarer = [f"failures.classes.{f.name}.rate={f.rate_per_s() / 16!r}" for f in classes]
    per = [f"failures.classes.{f.name}.per={f.per}" for f in classes]
    small, large = _best_s([], ["cluster.nodes=32768", *rarer, *per])
    return large / small
