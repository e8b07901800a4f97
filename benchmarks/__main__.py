"""Run every benchmark, print value beside bound, exit 1 if one is over its bound."""

from __future__ import annotations

import importlib
import os
import pkgutil
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version

import benchmarks


def main() -> int:
    """Measure and print; 0 if every bound was kept."""
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name.startswith("bench_"):
            importlib.import_module(f"benchmarks.{module.name}")
    packages = ", ".join(f"{name} {version(name)}" for name in ("goodput-planner", "simpy", "numpy", "numba"))
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} CPUs ({platform.machine()}), {packages}")
    print(f"Python {platform.python_version()}, {platform.system()}")
    over = 0
    for case in benchmarks.BENCHMARKS:
        value = case.measure()
        kept = value <= case.bound
        over += not kept
        verdict = "ok" if kept else "OVER ITS BOUND"
        print(f"{case.name:<60} {value:>10.3f} {case.unit:<3} (at most {case.bound:g}) {verdict}", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
