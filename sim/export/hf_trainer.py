"""Hugging Face transformers: keyword arguments of TrainingArguments, as JSON."""

from __future__ import annotations

from sim.export import group, kinds, writers
from sim.export.settings import Settings
from sim.export.sheet import Framework, Sheet

TRANSFORMERS = Framework(
    "transformers",
    "5.24.0",
    "huggingface/transformers, src/transformers/training_args.py, trainer_callback.py, trainer_utils.py",
)
ARGUMENTS = "training_arguments"


def render(settings: Settings) -> tuple[str, Sheet]:
    """Return two JSON objects: where it comes from, and the keyword arguments."""
    use = (
        f'TrainingArguments(output_dir=..., **json.load(open(FILE))["{ARGUMENTS}"]); go on with '
        "trainer.train(resume_from_checkpoint=True). The whole file is no input for HfArgumentParser"
    )
    sheet = Sheet(TRANSFORMERS, settings, use)
    told = kinds.split(sheet, "")
    block_s = kinds.no_background(sheet, told.far)
    kinds.end_always_saved(sheet)
    sheet.set("save_strategy", "steps", "By steps; epoch and best ignore save_steps", ARGUMENTS)
    why = (
        f"Optimizer updates, counted after gradient accumulation: {told.far.text()}. A whole number: a value below 1 "
        "is taken for a share of all steps, and 1.5 is refused. With load_best_model_at_end it must be a multiple of "
        "eval_steps"
    )
    sheet.set("save_steps", told.far.steps, why, ARGUMENTS)
    why = "Newest checkpoints that are kept, the best one among them; 0 and null keep all"
    sheet.set("save_total_limit", settings.scenario.checkpoint.keep, why, ARGUMENTS)
    sheet.set("save_only_model", False, "A checkpoint without the optimizer cannot be gone on from", ARGUMENTS)
    why = "Seconds that a collective may take, the start and a save by one rank included; the default is 1800"
    sheet.set("ddp_timeout", group.whole_life_s(sheet, block_s), why, ARGUMENTS)
    return writers.json_text(sheet), sheet
