"""MaxText: a YAML configuration on top of its base.yml."""

from __future__ import annotations

from sim.export import group, kinds, writers
from sim.export.settings import Level, Settings
from sim.export.sheet import Framework, Sheet

MAXTEXT = Framework(
    "MaxText",
    "0.2.4, commit e591f30c",
    "AI-Hypercomputer/maxtext, src/maxtext/configs/base.yml and types.py, common/checkpointing.py, "
    "common/emergency_checkpointing.py, utils/train_utils.py, utils/max_utils.py",
)
INIT_S = 300.0  # jax_distributed_initialization_timeout


def render(settings: Settings) -> tuple[str, Sheet]:
    """Return the configuration."""
    use = "train.py FILE.yml run_name=... base_output_directory=...; a name that does not end in .yml is not read"
    sheet = Sheet(MAXTEXT, settings, use)
    told = kinds.split(sheet, "local")
    checkpoint = settings.scenario.checkpoint
    sheet.set("base_config", "base.yml", "Everything that is not said here")
    sheet.set("enable_checkpointing", True)
    why = f"Every {told.far.text()}. MaxText counts from 0 and saves after step 0 and each multiple, one step late"
    sheet.set("checkpoint_period", told.far.steps, why)
    sheet.set("enable_continuous_checkpointing", False, "Would save without a pause, and ignore checkpoint_period")
    sheet.set("save_checkpoint_on_completion", checkpoint.final_save, "The end of the job")
    if told.near is None:
        why = "A save waits for the write before it" if told.background else "The loop stands still for the write"
        sheet.set("async_checkpointing", told.background, why)
        if told.background:
            kinds.while_busy(sheet, told.far, "wait")
        sheet.set("max_num_checkpoints_to_keep", checkpoint.keep, "Newest checkpoints that are kept; None keeps all")
    else:
        _local(sheet, told.near)
    why = "Seconds until all processes have joined; the default is 300"
    sheet.set("jax_distributed_initialization_timeout", group.start_s(sheet, INIT_S), why)
    sheet.note(
        "export-no-watchdog",
        group.PATH,
        "MaxText has no option for the timeout of a collective: a hang lasts until something outside notices it",
    )
    return writers.yaml(sheet), sheet


def _local(sheet: Sheet, near: Level) -> None:
    why = (
        "Local saves beside persistent ones. On GPUs enable_multi_tier_checkpointing, which MaxText prefers, is set up "
        "for TPUs only. local_checkpoint_directory must be set too (the planner does not know it), or MaxText refuses "
        "to start"
    )
    sheet.set("enable_emergency_checkpoint", True, why)
    sheet.set("local_checkpoint_period", near.steps, f"Every {near.text()}")
    sheet.warn(
        "export-emergency",
        near.path,
        "with local saves MaxText ignores async_checkpointing and max_num_checkpoints_to_keep: its emergency manager "
        f"has its own ways, and checkpoint.keep {sheet.settings.scenario.checkpoint.keep} is not handed on",
    )
