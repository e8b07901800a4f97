"""Composer: arguments of its Trainer as YAML, which LLM Foundry's training files take under the same names."""

from __future__ import annotations

from sim.export import group, kinds, writers
from sim.export.settings import Settings
from sim.export.sheet import Framework, Sheet

COMPOSER = Framework(
    "Composer",
    "0.33.0.dev0, commit 64051888",
    "mosaicml/composer, composer/trainer/trainer.py, callbacks/checkpoint_saver.py, utils/misc.py "
    "(create_interval_scheduler), core/time.py; mosaicml/llm-foundry at commit 8c8dd48f, utils/config_utils.py",
)


def render(settings: Settings) -> tuple[str, Sheet]:
    """Return the arguments as YAML."""
    use = (
        "Trainer(save_folder=..., run_name=..., **yaml.safe_load(open(FILE))), or the same keys in LLM Foundry's file; "
        "without save_folder nothing is saved"
    )
    sheet = Sheet(COMPOSER, settings, use)
    told = kinds.split(sheet, "")
    block_s = kinds.no_background(sheet, told.far)
    kinds.end_always_saved(sheet)
    why = f"Batches, one a step: {told.far.text()}. The unit is needed: a plain number is taken for epochs"
    sheet.set("save_interval", f"{told.far.steps}ba", why)
    keep = settings.scenario.checkpoint.keep
    why = (
        "Newest checkpoints that are kept in a local folder; -1 keeps all, 0 deletes each one as soon as it is written "
        "(or uploaded)"
    )
    sheet.set("save_num_checkpoints_to_keep", keep, why)
    sheet.note(
        "export-keep",
        "checkpoint.keep",
        "Composer counts the checkpoints of the running process only, and deletes none from remote storage: each "
        "restart leaves its own behind",
    )
    why = "A restarted job goes on from its newest checkpoint; Composer then demands run_name and save_folder"
    sheet.set("autoresume", True, why)
    why = "Seconds that a collective may take, the start and a save included; the default is 300, LLM Foundry's 600"
    sheet.set("dist_timeout", float(group.whole_life_s(sheet, block_s)), why)
    return writers.yaml(sheet), sheet
