"""Lightning and NeMo 2: keyword arguments of ModelCheckpoint and of the strategy, as a Python file."""

from __future__ import annotations

from datetime import timedelta

from sim.export import group, kinds, writers
from sim.export.settings import Level, Settings
from sim.export.sheet import Framework, Sheet

LIGHTNING = Framework(
    "Lightning",
    "2.6.2, commit 7f0c3436",
    "Lightning-AI/pytorch-lightning, src/lightning/pytorch/callbacks/model_checkpoint.py, plugins/io/async_plugin.py, "
    "strategies/ddp.py",
)
NEMO = Framework(
    "NeMo",
    "2.6.0rc0, commit 8cfedd72, with Lightning up to 2.4.0",
    "NVIDIA/NeMo, nemo/lightning/pytorch/callbacks/model_checkpoint.py, strategies/megatron_strategy.py, "
    "local_ckpt.py, nemo/lightning/run/plugins.py; NVRx ptl_resiliency/local_checkpoint_callback.py",
)
STEP = (
    "Keeps the newest ones. With monitor=None only 1 and -1 are allowed, and a metric of validation would put saves "
    "off until it is there"
)


def render_lightning(settings: Settings) -> tuple[str, Sheet]:
    """Return keyword arguments of ModelCheckpoint, and of the strategy."""
    use = (
        "from FILE import MODEL_CHECKPOINT, STRATEGY; Trainer(callbacks=[ModelCheckpoint(**MODEL_CHECKPOINT)], "
        'strategy=DDPStrategy(**STRATEGY)); go on with trainer.fit(..., ckpt_path="last")'
    )
    sheet = Sheet(LIGHTNING, settings, use)
    told = kinds.split(sheet, "")
    _model_checkpoint(sheet, told.far)
    if told.background:
        sheet.note(
            "export-async-plugin",
            "checkpoint.mode",
            "Lightning writes in the background only with Trainer(plugins=[AsyncCheckpointIO()]): experimental, it "
            "copies every tensor on its own device first, so that GPU memory must hold the checkpoint twice",
        )
        kinds.while_busy(sheet, told.far, "queue")
    timeout = timedelta(seconds=group.whole_life_s(sheet, settings.block_s))
    why = "Of the process group, the start included; Lightning's default is 30 min"
    sheet.set("timeout", timeout, why, "STRATEGY")
    return writers.python(sheet), sheet


def render_nemo(settings: Settings) -> tuple[str, Sheet]:
    """Return keyword arguments of NeMo's ModelCheckpoint, MegatronStrategy, local checkpoints and fault tolerance."""
    use = (
        "from FILE import *; nl.NeMoLogger(ckpt=nl.ModelCheckpoint(**MODEL_CHECKPOINT)), "
        "nl.MegatronStrategy(..., **MEGATRON_STRATEGY), os.environ.update(ENVIRONMENT) before the trainer starts, "
        "nl.AutoResume(resume_if_exists=True)"
    )
    sheet = Sheet(NEMO, settings, use)
    told = kinds.split(sheet, "local")
    _model_checkpoint(sheet, told.far)
    sheet.note(
        "export-monitor-step",
        told.far.path,
        "NeMo finds the step of a checkpoint by searching its path for the word step when it starts again: no folder "
        "above it may have that word in its name",
    )
    why = "NeMo leaves the optimizer out of a save at the last step otherwise"
    sheet.set("save_optim_on_train_end", True, why, "MODEL_CHECKPOINT")
    why = "Writes in the background; NeMo's default is True" if told.background else "NeMo's default is True"
    sheet.set("ckpt_async_save", told.background, why, "MEGATRON_STRATEGY")
    if told.background:
        sheet.set("save_ckpt_format", "torch_dist", "Background writes need it", "MEGATRON_STRATEGY")
        kinds.while_busy(sheet, told.far, "queue")
        kinds.one_switch(sheet, told)
    if told.near is not None:
        _nemo_local(sheet, told.near)
    seconds = str(group.whole_life_s(sheet, settings.block_s))
    why = "NeMo takes the process group's timeout from this variable, in whole seconds; torch's 10 min without it"
    sheet.set("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", seconds, why, "ENVIRONMENT")
    if "in_job" in settings.scenario.recovery.layers:
        _nemo_fault_tolerance(sheet)
    return writers.python(sheet), sheet


def _model_checkpoint(sheet: Sheet, far: Level) -> None:
    scenario, name = sheet.settings.scenario, sheet.framework.name
    keep, total, where = scenario.checkpoint.keep, scenario.total_steps(), "MODEL_CHECKPOINT"
    if scenario.checkpoint.final_save and total % far.steps:
        sheet.warn(
            "export-final-save",
            "checkpoint.final_save",
            f"true, but {name} does not save the end of the job by itself, and {total} steps are no multiple of "
            f"{far.steps}: call trainer.save_checkpoint(...) after the training",
        )
    why = (
        f"Optimizer steps: every {far.text()}. It excludes train_time_interval and every_n_epochs; several "
        "optimizers count each for itself"
    )
    sheet.set("every_n_train_steps", far.steps, why, where)
    if keep == 1 and sheet.framework is LIGHTNING:
        sheet.set("monitor", None, "", where)
        sheet.set("save_top_k", 1, "Keeps the newest one; 0 saves nothing, -1 keeps all", where)
    else:
        sheet.set("monitor", "step", STEP, where)
        sheet.set("mode", "max", "", where)
        sheet.set("save_top_k", keep, "0 saves nothing, -1 keeps all", where)
    why = (
        "A link to the newest, without which a restart finds nothing; True would write every checkpoint twice. "
        "Links need a local or mounted folder"
    )
    sheet.set("save_last", "link", why, where)
    why = "A save due at the last step of an epoch does not wait for the validation; epochs save nothing by themselves"
    sheet.set("save_on_train_epoch_end", True, why, where)


def _nemo_local(sheet: Sheet, near: Level) -> None:
    why = (
        f"Steps between local saves: {near.text()}. For nvidia_resiliency_ext's LocalCheckpointCallback, beside "
        "update_trainer_local_checkpoint_io(trainer, DIR, ...); with more than one node every copy is replicated"
    )
    sheet.set("every_n_train_steps", near.steps, why, "LOCAL_CHECKPOINT_CALLBACK")
    sheet.note(
        "export-deprecated",
        near.path,
        "NVRx calls its Lightning callbacks, and so NeMo's local checkpoints, deprecated",
    )


def _nemo_fault_tolerance(sheet: Sheet) -> None:
    timeouts, where = sheet.settings.timeouts, "FAULT_TOLERANCE_PLUGIN"
    why = "For FaultTolerancePlugin(**FAULT_TOLERANCE_PLUGIN): restarts inside the job; its default is 3"
    sheet.set("num_in_job_restarts", timeouts.max_restarts, why, where)
    why = "Seconds, whole ones. The plugin then calculates its own timeouts from what it sees, and uses those"
    if timeouts.initial_heartbeat.seconds is not None:
        sheet.set("initial_rank_heartbeat_timeout", round(timeouts.initial_heartbeat.seconds), why, where)
    if timeouts.heartbeat.seconds is not None:
        sheet.set("rank_heartbeat_timeout", round(timeouts.heartbeat.seconds), "", where)
