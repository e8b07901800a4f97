"""Rules about settings that have no effect: told, because a setting silently ignored is believed to work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from sim.scenario import Checkpoint, Layer
from sim.warn.rule import Finding, View, rule

Mode = Literal["none", "ideal", "sync", "async", "local", "tiered"]

# key of the checkpoint block -> modes that have no use for it
_UNUSED_IN: dict[str, tuple[Mode, ...]] = {
    "interval": ("none", "ideal", "tiered"),
    "write_time": ("none", "ideal", "tiered"),
    "stall_time": ("none", "ideal", "sync", "tiered"),
    "load_time": ("none", "tiered"),
    "on_busy": ("none", "ideal", "sync"),
    "async_slowdown": ("none", "ideal", "sync"),
    "write_survives": ("none", "ideal"),
    "publish": ("none", "ideal"),
    "keep": ("none", "ideal"),
    "final_save": ("none", "ideal"),
    "save_before": ("none", "ideal"),
    "load_failure": ("none", "ideal"),
    "on_load_failure": ("none", "ideal"),
    "bandwidth": ("none", "tiered"),
    "survives": ("none", "ideal", "sync", "async", "tiered"),
    "tiers": ("none", "ideal", "sync", "async", "local"),
}

_LAYERS: tuple[Layer, ...] = ("in_process", "in_job", "kubernetes", "slurm", "node_replacement", "fixed")


def _changed(block: Any, key: str) -> bool:
    return bool(getattr(block, key) != type(block).model_fields[key].default)


@rule(
    "setting-ignored",
    "Keys that the checkpoint mode has no use for",
)
def _checkpoint_settings(v: View) -> Iterator[Finding]:
    mode = v.checkpoint.mode
    for key, modes in _UNUSED_IN.items():
        if mode in modes and _changed(v.checkpoint, key):
            yield f"checkpoint.{key}", f"has no effect in mode {mode}"
    assert set(_UNUSED_IN) < set(Checkpoint.model_fields)


@rule(
    "layer-setting-ignored",
    "Settings of a layer that is not enabled, or that its launcher has no use for",
)
def _layer_settings(v: View) -> Iterator[Finding]:
    for layer in _LAYERS:
        block = getattr(v.recovery, layer)
        changed = [key for key in type(block).model_fields if _changed(block, key)]
        if layer == "node_replacement" and v.s.cluster.spares.cold > 0:  # any layer may wait for a cold spare
            changed = [key for key in changed if key != "provision"]
        if changed and not v.on(layer):
            yield (
                f"recovery.{layer}",
                f"has no effect: {layer} is not in recovery.layers (got {', '.join(changed)})",
            )
    ip = v.recovery.in_process
    if v.on("in_process") and ip.reserve_ranks > 0 and v.recovery.launcher != "direct":
        yield (
            "recovery.in_process.reserve_ranks",
            f"has no effect under {v.recovery.launcher}, which stops all workers when one process ends",
        )
    if v.on("in_process") and ip.atomic and not v.blocks:
        yield (
            "recovery.in_process.atomic",
            f"has no effect in checkpoint mode {v.checkpoint.mode}: no save blocks",
        )


@rule(
    "repair-unused",
    "Repair stages that no fault sends a node to",
)
def _repair_unused(v: View) -> Iterator[Finding]:
    drops = v.on("in_job", "node_replacement") and v.recovery.in_job.health_check_pass < 1
    if v.s.cluster.repair is not None and not any(kind.fault.repair for kind in v.faults) and not drops:
        yield "cluster.repair", "no fault sends a node to repair (repair: true)"
