"""The walls between the rooms, held by reading every import in the source, lazy ones included."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What a room may import of ours, beside itself.
MAY_IMPORT = {
    "sim": set(),
    "live": {"sim"},
    "calibration": {"sim"},
    "planner_app": {"sim", "calibration"},
}
OURS = {*MAY_IMPORT, "tests", "benchmarks"}

# Who alone may import a package: files and folders, relative to the root.
ONLY = {
    "torch": "live/",
    "nvidia_resiliency_ext": "live/nvrx.py",
    "streamlit": "planner_app/",
}

# The model draws from sim/draws.py alone.
NO_GENERATORS = {"random", "secrets", "numpy.random"}


def imported(path, root):
    """Yield (line, dotted name) of everything a file imports, statically or by a constant name."""
    package = path.relative_to(root).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}" if module else alias.name
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__", "find_spec"}:
                yield node.lineno, str(node.args[0].value)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in {"np.random", "numpy.random"}:
            yield node.lineno, "numpy.random"


def within(name, package):
    return name == package or name.startswith(f"{package}.")


def broken_walls(root):
    """Return one line for each import that crosses a wall in the rooms under a folder."""
    broken = []
    for room, allowed in MAY_IMPORT.items():
        for path in sorted((root / room).rglob("*.py")):
            place = path.relative_to(root).as_posix()
            for line, name in imported(path, root):
                if name.partition(".")[0] in OURS - allowed - {room}:
                    broken.append(f"{place}:{line}: {room} imports {name}")
                for package, owner in ONLY.items():
                    if within(name, package) and place != owner and not place.startswith(owner):
                        broken.append(f"{place}:{line}: {name}, which only {owner} may import")
                if room == "sim" and any(within(name, package) for package in NO_GENERATORS):
                    broken.append(f"{place}:{line}: {name}, where draws come from sim/draws.py alone")
    return broken


def test_no_import_crosses_a_wall():
    assert (ROOT / "sim").is_dir()
    assert broken_walls(ROOT) == []


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("sim/planted.py", "import live"),
        ("sim/planted.py", "from calibration.fit import fit"),
        ("sim/recovery/planted.py", "def f():\n    from planner_app import page"),
        ("sim/planted.py", "from .. import live"),
        ("sim/planted.py", "import importlib\nimportlib.import_module('live.train')"),
        ("sim/planted.py", "import torch"),
        ("sim/planted.py", "if False:\n    import torch.distributed as dist"),
        ("sim/planted.py", "from random import random"),
        ("sim/planted.py", "import numpy as np\nx = np.random.default_rng(1)"),
        ("sim/planted.py", "from numpy import random"),
        ("sim/planted.py", "from tests import conftest"),
        ("live/planted.py", "import calibration"),
        ("live/planted.py", "from nvidia_resiliency_ext.inprocess import Wrapper"),
        ("live/planted.py", "import streamlit"),
        ("calibration/planted.py", "from live.record import write"),
        ("calibration/readers/planted.py", "import torch"),
        ("planner_app/planted.py", "import live.train"),
    ],
)
def test_a_planted_import_is_caught(tmp_path, place, source):
    for room in MAY_IMPORT:
        (tmp_path / room).mkdir()
    planted = tmp_path / place
    planted.parent.mkdir(exist_ok=True)
    planted.write_text(source)
    assert len(broken_walls(tmp_path)) == 1


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("sim/planted.py", "from sim import draws\nfrom . import kernel\nimport numpy as np, randomly"),
        ("live/nvrx.py", "import torch\nfrom nvidia_resiliency_ext import inprocess\nimport sim"),
        ("live/launch/planted.py", "import torch, random\nfrom sim.events import write"),
        ("calibration/planted.py", "import sim.ledger"),
        ("planner_app/planted.py", "import streamlit as st, sim, calibration"),
    ],
)
def test_a_rightful_import_passes(tmp_path, place, source):
    planted = tmp_path / place
    planted.parent.mkdir(parents=True)
    planted.write_text(source)
    assert broken_walls(tmp_path) == []


def loaded_after(statement):
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_root_command_starts_light():
    """A half of the 0.7 s that `goodput --help` may take would go into any one of these."""
    heavy = {"numba", "scipy.stats", "pandas", "pyarrow", "joblib", "torch", "streamlit"}
    assert loaded_after("import sim.cli") & heavy == set()


def test_rules_load_without_numba():
    assert "numba" not in loaded_after("import sim.kernel, sim.draws, sim.analytic")
