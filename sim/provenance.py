"""Where a result comes from: what every result file carries, so that a number can be made again."""

from __future__ import annotations

import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from sim.scenario import Scenario, scenario_hash

DISTRIBUTION = "goodput-planner"
GIT_TIMEOUT_S = 5.0
_ROOT = Path(__file__).resolve().parent.parent


@cache
def version() -> str:
    """Return the version of the installed distribution; ``0+unknown`` when run from bare files."""
    from importlib import metadata

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "0+unknown"


@cache
def git_hash() -> str | None:
    """Return the commit of the code, with ``-dirty`` where tracked files differ from it; None outside a checkout.

    Only the checkout that holds the package at its top counts: a copy installed inside somebody else's
    repository is not of that repository's commit.
    """
    try:
        if _git("rev-parse", "--show-toplevel") != str(_ROOT):
            return None
        commit = _git("rev-parse", "--short=12", "HEAD")
        return f"{commit}-dirty" if _git("status", "--porcelain", "--untracked-files=no") else commit
    except (OSError, subprocess.SubprocessError):  # no git here, no commit yet, or too slow to wait for
        return None


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(_ROOT), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=GIT_TIMEOUT_S,
    )
    return done.stdout.strip()


def command() -> str | None:
    """Return the command line when the `goodput` command runs; None from a notebook or another program."""
    if Path(sys.argv[0]).name.removesuffix(".exe") != "goodput":
        return None
    return shlex.join(["goodput", *sys.argv[1:]])


def provenance(*scenarios: Scenario, seed: int) -> dict[str, Any]:
    """Return {version, git, command, seed, scenario_hash}; the hash is a list where there are several scenarios."""
    hashes = [scenario_hash(scenario) for scenario in scenarios]
    return {
        "version": version(),
        "git": git_hash(),
        "command": command(),
        "seed": seed,
        "scenario_hash": hashes[0] if len(hashes) == 1 else hashes,
    }
