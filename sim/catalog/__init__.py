"""The catalog: published scenarios and hardware, as YAML beside this file; each value names its source.

Tags of the sources: [P] published, [C] read in public code, [I] inferred (with the reason), [F] fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sim import units
from sim.schema import yaml_text
from sim.schema.fields import Problem, ScenarioError
from sim.units import shown

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Hardware:
    """One node type. Sizes in bytes, bandwidths in bytes/s; None: not known."""

    name: str
    description: str
    gpus_per_node: int
    nodes_per_rack: int | None
    gpu: str
    gpu_memory_bytes: float
    host_memory_bytes: float | None
    network_bytes_per_s: float | None
    nvme_bytes: float | None
    sources: dict[str, str]


def _stems(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


@cache
def names() -> tuple[str, ...]:
    """Names of the catalog scenarios."""
    return _stems(FOLDER)


@cache
def hardware_names() -> tuple[str, ...]:
    """Names of the node types."""
    return _stems(FOLDER / "hardware")


def path_of(name: str) -> Path | None:
    """File of a catalog scenario, or None."""
    return FOLDER / f"{name}.yaml" if name in names() else None


def show(name: str) -> str:
    """Give the text of a catalog scenario or node type; raise `ScenarioError` on an unknown name."""
    path = path_of(name)
    if path is None and name in hardware_names():
        path = FOLDER / "hardware" / f"{name}.yaml"
    if path is None:
        known = ", ".join(names() + hardware_names())
        raise ScenarioError([Problem("catalog", f"must be one of {known} {shown(name)}")])
    return path.read_text(encoding="utf-8")


@cache
def find_hardware(node_type: str) -> Hardware | None:
    """Look a node type up; None if the catalog does not hold it."""
    if node_type not in hardware_names():
        return None
    data: dict[str, Any] = yaml_text.read((FOLDER / "hardware" / f"{node_type}.yaml").read_bytes(), node_type)
    size = {k: None if data.get(k) is None else units.parse_bytes(data[k]) for k in ("host_memory", "nvme")}
    network = data.get("network")
    return Hardware(
        name=data["name"],
        description=data["description"],
        gpus_per_node=data["gpus_per_node"],
        nodes_per_rack=data.get("nodes_per_rack"),
        gpu=data["gpu"],
        gpu_memory_bytes=units.parse_bytes(data["gpu_memory"]),
        host_memory_bytes=size["host_memory"],
        network_bytes_per_s=None if network is None else units.parse_bandwidth(network),
        nvme_bytes=size["nvme"],
        sources=data["sources"],
    )


def hardware(node_type: str) -> Hardware:
    """Look a node type up; raise `ScenarioError` naming the known ones."""
    found = find_hardware(node_type)
    if found is None:
        known = ", ".join(hardware_names())
        raise ScenarioError([Problem("node_type", f"must be one of {known} {shown(node_type)}")])
    return found
