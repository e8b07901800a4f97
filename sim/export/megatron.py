"""Megatron-LM (arguments) and Megatron-Bridge (YAML overrides): one set of options under two spellings.

Bridge's configuration classes inherit Megatron-LM's, so most keys are the same. Both save persistently every
save_interval iterations and, in an `elif`, non-persistently every non_persistent_save_interval.
"""

from __future__ import annotations

import math

from sim.export import group, kinds, writers
from sim.export.settings import Level, Settings
from sim.export.sheet import Framework, Option, Sheet
from sim.export.text import number
from sim.export.timeouts import MARGIN
from sim.units import format_duration, shown
from sim.warn.rule import SAFETY_FACTOR

LM = Framework(
    "Megatron-LM",
    "core 0.20.0, commit d98e8a64",
    "NVIDIA/Megatron-LM, megatron/training/config/training_config.py (CheckpointConfig), config/common_config.py, "
    "arguments.py, training.py (checkpoint_and_decide_exit), inprocess_restart.py",
)
BRIDGE = Framework(
    "Megatron-Bridge",
    "0.7.0, commit 067f987d",
    "NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/training/config.py, train.py, checkpointing.py, "
    "inprocess_restart.py, utils/omegaconf_utils.py; Megatron-LM at commit 2a75ac12, its submodule",
)
CONFIG = "megatron.bridge.training.config"
INIT_MINUTES = 10  # --distributed-timeout-minutes
BARRIER_S = 120.0  # --inprocess-barrier-timeout
REPLICAS = (2, 3)  # --replication-factor: tried in this order


def render_lm(settings: Settings) -> tuple[str, Sheet]:
    """Return the arguments as a bash array."""
    use = (
        'source this file, then torchrun ... pretrain_gpt.py --save DIR "${CHECKPOINT_ARGS[@]}" ...; without --save '
        "nothing is saved"
    )
    sheet = Sheet(LM, settings, use)
    far = _saves(sheet)
    keep = settings.scenario.checkpoint.keep
    if keep == 1:
        beyond = far.steps * math.ceil(settings.scenario.total_steps() / far.steps)
        why = (
            "Keeps the newest checkpoint alone: all others but multiples of this are deleted, and none lies before the "
            "end. Megatron-LM demands a multiple of save_interval"
        )
        sheet.set("save_retain_interval", beyond, why, "checkpoint")
    else:
        sheet.note(
            "export-keep",
            "checkpoint.keep",
            f"{keep}, but Megatron-LM has no argument for a number of checkpoints: it keeps all of them, or with "
            "--save-retain-interval (a multiple of --save-interval) the newest and those multiples",
        )
    return writers.bash_array(sheet, "CHECKPOINT_ARGS", _flag), sheet


def render_bridge(settings: Settings) -> tuple[str, Sheet]:
    """Return the overrides as YAML."""
    use = (
        "process_config_with_overrides(config, config_filepath=FILE), which the examples call with --config-file; "
        "checkpoint.save must be set beside it, or nothing is saved. A key that does not exist is skipped there with "
        "no more than a line in the log"
    )
    sheet = Sheet(BRIDGE, settings, use)
    for section, cls in (("inprocess_restart", "InProcessRestartConfig"), ("ft", "FaultToleranceConfig")):
        if _wants(sheet, section):
            why = "The section is null in most recipes; without its class it would stay a plain dict"
            sheet.set("_target_", f"{CONFIG}.{cls}", why, section)
    _saves(sheet)
    keep = settings.scenario.checkpoint.keep
    why = "Newest checkpoints that are kept; -1 keeps all, 0 deletes every one"
    sheet.set("most_recent_k", keep, why, "checkpoint")
    return writers.yaml(sheet), sheet


def _flag(option: Option) -> str:
    if option.group == "inprocess_restart":
        return "--inprocess-restart" if option.key == "enabled" else f"--inprocess-{option.key.replace('_', '-')}"
    return f"--{option.key.replace('_', '-')}"


def _wants(sheet: Sheet, section: str) -> bool:
    layers = sheet.settings.scenario.recovery.layers
    return {"inprocess_restart": "in_process", "ft": "in_job"}[section] in layers


def _saves(sheet: Sheet) -> Level:
    """Fill the sheet with what both share; return the persistent save."""
    told = kinds.split(sheet, "local")
    name = sheet.framework.name
    sheet.set("save_interval", told.far.steps, f"Iterations between persistent saves: {told.far.text()}", "checkpoint")
    kinds.end_always_saved(sheet)
    if told.background:
        why = "Writes in the background"
        sheet.set("async_save", True, why, "checkpoint")
        why = "Megatron-LM switches async_save off, with no more than a line in the log, unless this is set"
        sheet.set("use_persistent_ckpt_worker", True, why, "checkpoint")
        sheet.set("ckpt_format", "torch_dist", "Background writes need a distributed format", "checkpoint")
        for level in told.all():
            kinds.while_busy(sheet, level, "queue")
        kinds.one_switch(sheet, told)
    elif sheet.framework is BRIDGE:
        sheet.set("async_save", False, "The loop stands still for the write", "checkpoint")
    if told.near is not None:
        _local(sheet, told.near, told.far, name)
    _timeouts(sheet)
    return told.far


def _local(sheet: Sheet, near: Level, far: Level, name: str) -> None:
    if near.steps % far.steps == 0:
        sheet.refuse(
            near.path,
            f"must not be a multiple of the persistent interval: {name} skips the local save whenever a persistent one "
            f"is due, here always (got {near.steps} steps, persistent every {far.steps})",
        )
    why = f"Iterations between local saves: {near.text()}"
    sheet.set("non_persistent_save_interval", near.steps, why, "checkpoint")
    why = "Node-local files; non_persistent_local_ckpt_dir must name their folder (the planner does not know it)"
    sheet.set("non_persistent_ckpt_type", "local", why, "checkpoint")
    both = math.lcm(near.steps, far.steps)
    if both < sheet.settings.scenario.total_steps():
        sheet.warn(
            "export-local-skipped",
            near.path,
            f"every {both} steps both saves are due, and {name} then makes the persistent one only: the newest local "
            f"copy is {near.steps} steps older there",
        )
    if near.survives_node_loss:
        _replicas(sheet, near, name)


def _replicas(sheet: Sheet, near: Level, name: str) -> None:
    cluster = sheet.settings.scenario.cluster
    factor = next((factor for factor in REPLICAS if cluster.nodes % factor == 0), None)
    if factor is None:
        sheet.refuse(
            f"{near.path.rpartition('.')[0]}.survives",
            f"node_loss needs copies on other nodes, and {name} groups the nodes by 2 or 3 for that: cluster.nodes "
            f"must be a multiple {shown(cluster.nodes)}",
        )
    sheet.set("replication", True, "The copies survive the loss of a node", "checkpoint")
    why = "Ranks between a rank and its copy: the next node's; needed with replication"
    sheet.set("replication_jump", cluster.gpus_per_node, why, "checkpoint")
    sheet.set("replication_factor", factor, "Nodes that hold each copy; they must divide the nodes", "checkpoint")


def _timeouts(sheet: Sheet) -> None:
    in_process = _in_process_s(sheet) if _wants(sheet, "inprocess_restart") else None
    running_s = group.running_s(sheet, sheet.settings.block_s, 0.0 if in_process is None else MARGIN * in_process[1])
    minutes = math.ceil(group.start_s(sheet, max(INIT_MINUTES * 60.0, running_s)) / 60.0)
    why = "Minutes that a collective may take up to the first iteration: the start of the slowest rank"
    sheet.set("distributed_timeout_minutes", minutes, why, "dist")
    why = "Seconds from the first iteration on; evaluations count too, and the model knows none"
    sheet.set("distributed_timeout_seconds_after_init", running_s, why, "dist")
    if in_process is not None:
        _in_process(sheet, *in_process)
    if _wants(sheet, "ft"):
        _ft_package(sheet)


def _in_process_s(sheet: Sheet) -> tuple[float, float]:
    """Return soft and hard timeout [s], longer than the model's where a save would be taken for a hang."""
    timeouts, name = sheet.settings.timeouts, sheet.framework.name
    assert timeouts.soft is not None and timeouts.hard is not None
    soft_s, hard_s = timeouts.soft.seconds, timeouts.hard.seconds
    assert soft_s is not None and hard_s is not None  # a step always has a length
    save_s = sheet.settings.block_s
    if save_s < soft_s:
        return soft_s, hard_s
    longer_s = float(math.ceil(SAFETY_FACTOR * save_s))
    sheet.warn(
        "export-soft-timeout",
        "recovery.in_process.soft_timeout",
        f"{format_duration(soft_s)} in the model, {format_duration(longer_s)} in this file: {name} counts a save as "
        f"silence, and one may take {format_duration(save_s)}",
    )
    return longer_s, max(hard_s, float(math.ceil(MARGIN * longer_s)))


def _in_process(sheet: Sheet, soft_s: float, hard_s: float) -> None:
    s, name, where = sheet.settings.scenario, sheet.framework.name, "inprocess_restart"
    ip = s.recovery.in_process
    if ip.monitor_interval >= min(soft_s, ip.heartbeat_timeout):
        rule = "must be below soft_timeout and heartbeat_timeout, or NVRx refuses the Wrapper"
        sheet.refuse("recovery.in_process.monitor_interval", f"{rule} {shown(ip.monitor_interval)}")
    sheet.set("enabled", True, "NVRx's in-process Wrapper around the training function", where)
    sheet.set("soft_timeout", number(soft_s), "Seconds without progress until a rank is aborted", where)
    why = "Seconds until it is killed; the process group's timeout must be longer"
    sheet.set("hard_timeout", number(hard_s), why, where)
    barrier_s = max(BARRIER_S, math.ceil(MARGIN * hard_s))
    if math.isfinite(ip.heartbeat_timeout):
        barrier_s = max(barrier_s, math.ceil(MARGIN * ip.heartbeat_timeout))
        why = f"The Wrapper's own 1 s; {name}'s default is 30, and NVRx refuses one that is not below heartbeat_timeout"
        sheet.set("heartbeat_interval", number(min(1.0, ip.heartbeat_timeout / 2.0)), why, where)
        why = f"Seconds of silence until a rank is taken for lost; {name}'s default is 60, the Wrapper's 30"
        sheet.set("heartbeat_timeout", number(ip.heartbeat_timeout), why, where)
    else:
        message = f"off, but {name} cannot switch it off; its default of 60 s holds"
        sheet.warn("export-heartbeat", "recovery.in_process.heartbeat_timeout", message)
    sheet.set("barrier_timeout", number(barrier_s), "Must be above hard_timeout and heartbeat_timeout", where)
    sheet.set("monitor_process_interval", number(ip.monitor_interval), "", where)
    sheet.set("last_call_wait", number(ip.last_call_wait), "", where)
    why = f"Seconds from SIGTERM to SIGKILL; {name}'s default is 1, the Wrapper's 5"
    sheet.set("termination_grace_time", number(ip.termination_grace), why, where)
    if ip.reserve_ranks > 0:
        sheet.set("active_world_size", s.ranks() - ip.reserve_ranks, "Ranks that train; the others wait", where)
        sheet.set("granularity", "rank", "A reserve is counted in ranks", where)
    if ip.max_restarts is not None:
        sheet.warn(
            "export-in-process-budget",
            "recovery.in_process.max_restarts",
            f"{ip.max_restarts}, but {name} reads its max_iterations and does not hand it to the Wrapper: in-process "
            "restarts have no limit there",
        )


def _ft_package(sheet: Sheet) -> None:
    name = sheet.framework.name
    why = (
        "Opens the sections setup, step and checkpointing for ft_launcher; their timeouts: goodput export --format "
        "ft-launcher. A file ft_state.json in the save folder overrides them. NVIDIA calls this flag internal"
    )
    sheet.set("enable_ft_package", True, why, "ft")
    if sheet.framework is BRIDGE:
        sheet.set("calc_ft_timeouts", False, "Would replace the exported timeouts by its own", "ft")
    if sheet.settings.timeouts.by_heartbeat:
        sheet.warn(
            "export-heartbeats",
            "recovery.in_job.heartbeat_timeout",
            f"{name} opens sections and sends no heartbeats: a launcher that waits for one ends every rank; state "
            "section_timeouts in its place",
        )
