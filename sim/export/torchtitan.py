"""torchtitan: command-line flags. It has had no TOML files since its configuration became Python functions."""

from __future__ import annotations

from sim.export import group, kinds, writers
from sim.export.settings import Settings
from sim.export.sheet import Framework, Sheet

TORCHTITAN = Framework(
    "torchtitan",
    "0.2.2, commit b5bcd76c",
    "pytorch/torchtitan, torchtitan/components/checkpointer/base.py and dcp.py, config/configs.py (CommConfig), "
    "config/manager.py, trainer.py",
)
LEAST_KEPT = 2
INIT_S = 300.0  # comm.init_timeout_seconds


def render(settings: Settings) -> tuple[str, Sheet]:
    """Return the flags as a bash array."""
    use = 'source this file, then MODULE=... CONFIG=... ./run_train.sh "${CHECKPOINT_FLAGS[@]}"'
    sheet = Sheet(TORCHTITAN, settings, use)
    told = kinds.split(sheet, "")
    keep = settings.scenario.checkpoint.keep
    sheet.set("checkpoint.enable", True, "Off by default: without it the interval has no effect")
    sheet.set("checkpoint.interval", told.far.steps, f"Every {told.far.text()}")
    if told.background:
        kinds.while_busy(sheet, told.far, "wait")
    mode = "async" if told.background else "disabled"
    why = "Writes in the background, and a save waits for the one before it" if told.background else "Saves block"
    sheet.set("checkpoint.async_mode", mode, why)
    if keep < LEAST_KEPT:
        message = f"{keep}, but torchtitan refuses fewer than {LEAST_KEPT}, and takes 0 for all: {LEAST_KEPT} are kept"
        sheet.warn("export-keep", "checkpoint.keep", message)
    sheet.set("checkpoint.keep_latest_k", max(keep, LEAST_KEPT), "Newest checkpoints that are kept; 0 keeps all")
    kinds.end_always_saved(sheet)
    sheet.note(
        "export-last-save",
        "checkpoint.final_save",
        "torchtitan saves the last step blocking and, by default, without the optimizer: a later run cannot go on from "
        "it unless checkpoint.last_save_model_only is switched off",
    )
    running_s = group.running_s(sheet, settings.block_s)
    why = "Seconds that a collective may take up to the first step; the default is 300"
    sheet.set("comm.init_timeout_seconds", group.start_s(sheet, max(INIT_S, running_s)), why)
    why = "Seconds from then on; the default of 100 ends a job whose blocking save takes longer"
    sheet.set("comm.train_timeout_seconds", running_s, why)
    return writers.bash_array(sheet, "CHECKPOINT_FLAGS", lambda option: f"--{option.key}"), sheet
