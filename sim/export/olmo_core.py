"""OLMo-core: overrides of its configuration on the command line."""

from __future__ import annotations

from sim.export import group, kinds, writers
from sim.export.settings import Level, Settings
from sim.export.sheet import Framework, Sheet
from sim.units import format_duration

OLMO_CORE = Framework(
    "OLMo-core",
    "2.5.0, commit fa6c5014",
    "allenai/OLMo-core, src/olmo_core/train/callbacks/checkpointer.py, config.py (merge), train/__init__.py",
)
CALLBACK = "trainer.callbacks.checkpointer"
GROUP_MINUTES = 15  # prepare_training_environment's timeout
ASYNC_GROUP_S = 1800.0  # the process group of background saves, fixed in the code


def render(settings: Settings) -> tuple[str, Sheet]:
    """Return the overrides as a bash array."""
    use = 'source this file, then torchrun ... train.py RUN_NAME "${CHECKPOINT_OVERRIDES[@]}"'
    sheet = Sheet(OLMO_CORE, settings, use)
    told = kinds.split(sheet, "ephemeral")
    if told.near is not None:
        _check(sheet, told.near, told.far)
    sheet.set("save_interval", told.far.steps, f"Steps between permanent checkpoints: {told.far.text()}")
    if told.near is not None:
        why = f"Steps between ephemeral ones, of which the newest is kept: {told.near.text()}"
        sheet.set("ephemeral_save_interval", told.near.steps, why)
    keep = settings.scenario.checkpoint.keep
    sheet.set("max_checkpoints", keep, "Newest permanent checkpoints that are kept; null keeps all, 0 is refused")
    why = "A save waits for the write before it" if told.background else "The loop stands still for the write"
    sheet.set("save_async", told.background, f"{why}; by default it depends on the backend")
    kinds.end_always_saved(sheet)
    if told.background:
        _background(sheet, told)
    seconds = group.whole_life_s(sheet, settings.block_s)
    sheet.note(
        "export-in-script",
        group.PATH,
        f"the process group's timeout stands in the script: prepare_training_environment(timeout=timedelta(seconds="
        f"{seconds})); {GROUP_MINUTES} minutes without it",
    )
    return writers.bash_array(sheet, "CHECKPOINT_OVERRIDES", lambda o: f"--{CALLBACK}.{o.key}", "="), sheet


def _background(sheet: Sheet, told: kinds.Kinds) -> None:
    kinds.one_switch(sheet, told)
    for level in told.all():
        kinds.while_busy(sheet, level, "wait")
        if level.write_s >= ASYNC_GROUP_S:
            message = (
                f"a write may take {format_duration(level.write_s)}, and the process group of OLMo-core's background "
                f"saves gives up after {format_duration(ASYNC_GROUP_S)}, which no option changes"
            )
            sheet.warn("export-async-group", level.path, message)


def _check(sheet: Sheet, near: Level, far: Level) -> None:
    if near.steps >= far.steps:
        sheet.refuse(
            near.path,
            f"must be below the permanent interval, or OLMo-core refuses it (got {near.steps} steps, permanent every "
            f"{far.steps})",
        )
    sheet.warn(
        "export-ephemeral",
        near.path,
        f"OLMo-core writes ephemeral checkpoints to the same folder as permanent ones: tier {near.name} takes as long "
        f"as {far.name} there, up to {format_duration(far.stall_s + far.write_s)} instead of "
        f"{format_duration(near.stall_s + near.write_s)}, and survives what that folder survives",
    )
