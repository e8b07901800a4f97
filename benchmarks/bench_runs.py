"""What one simulated run costs, log and ledger included, and how that grows with the cluster."""

import time

from benchmarks import benchmark
from sim.engine import simulate_run
from sim.ledger import account
from sim.params import compile_scenario
from sim.scenario import load_scenario

RUNS = 5


def _seconds_a_run(overrides: list[str]) -> float:
    scenario = load_scenario("llama3-405b", overrides)
    p = compile_scenario(scenario)
    best = float("inf")
    for replication in range(RUNS):
        begin = time.perf_counter()
        account(simulate_run(p, scenario, 1, replication))
        best = min(best, time.perf_counter() - begin)
    return best


@benchmark("Llama 3 405B (54 days, 16,384 GPUs), one run", "s", 0.5)
def bench_llama() -> float:
    return _seconds_a_run([])


@benchmark("the same at 16 x the nodes, 1/16 of the rates: ratio", "", 1.5)
def bench_growth() -> float:
    scenario = load_scenario("llama3-405b")
    rarer = [f"failures.classes.{f.name}.rate={f.rate_per_s() / 16!r}" for f in scenario.failures.classes]
    per = [f"failures.classes.{f.name}.per={f.per}" for f in scenario.failures.classes]
    larger = ["cluster.nodes=32768", *rarer, *per]
    _seconds_a_run(larger)  # neither side pays for a first call
    return _seconds_a_run(larger) / _seconds_a_run([])
