"""What each framework's own parser takes: the options that exports write, their types, and what is refused.

Read in the sources that sim/export names (repository and commit), none of which is a light install (all but MaxText
need torch). Plain assertions stand for the checks that a framework makes itself; each says where.
"""

import argparse
import json
import math
import re
import runpy
import subprocess
from datetime import timedelta

import yaml

BOOL, INT, NUMBER, TEXT = (bool,), (int,), (int, float), (str,)


def check(values, table):
    """Every key is known and every value of its type; bool is no int here."""
    for key, value in values.items():
        assert key in table, key
        assert isinstance(value, table[key]) and (isinstance(value, bool) <= (bool in table[key])), (key, value)
    return values


def bash_array(path, name):
    """The words of an array, as a shell that sources the file sees them; nothing else may be printed."""
    script = f'source "$1"; printf "%s\\0" "${{{name}[@]}}"'
    done = subprocess.run(["bash", "-euc", script, "-", str(path)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split("\0")[:-1]


# --- Megatron-LM d98e8a64: arguments.py builds these from config/training_config.py and common_config.py

MEGATRON = {
    "--save": str, "--save-interval": int, "--save-retain-interval": int, "--async-save": None,
    "--use-persistent-ckpt-worker": None, "--ckpt-format": ("torch", "torch_dist", "torch_dcp", "fsdp_dtensor"),
    "--non-persistent-save-interval": int, "--non-persistent-ckpt-type": ("global", "local", "in_memory"),
    "--non-persistent-local-ckpt-dir": str, "--replication": None, "--replication-jump": int,
    "--replication-factor": int, "--distributed-timeout-minutes": int,
    "--distributed-timeout-seconds-after-init": int, "--enable-ft-package": None, "--inprocess-restart": None,
    "--inprocess-soft-timeout": float, "--inprocess-hard-timeout": float, "--inprocess-heartbeat-interval": float,
    "--inprocess-heartbeat-timeout": float, "--inprocess-barrier-timeout": float,
    "--inprocess-monitor-process-interval": float, "--inprocess-last-call-wait": float,
    "--inprocess-termination-grace-time": float, "--inprocess-active-world-size": int,
    "--inprocess-granularity": ("node", "rank"),
}  # fmt: skip
MEGATRON_DEFAULTS = {
    "replication_factor": 2, "distributed_timeout_minutes": 10, "inprocess_soft_timeout": 60.0,
    "inprocess_hard_timeout": 90.0, "inprocess_heartbeat_interval": 30.0, "inprocess_heartbeat_timeout": 60.0,
    "inprocess_barrier_timeout": 120.0, "inprocess_monitor_process_interval": 1.0,
}  # fmt: skip


def megatron_lm(path, ranks):
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for flag, kind in MEGATRON.items():
        if kind is None:
            parser.add_argument(flag, action="store_true")
        elif isinstance(kind, tuple):
            parser.add_argument(flag, choices=kind)
        else:
            parser.add_argument(flag, type=kind)
    parser.set_defaults(**MEGATRON_DEFAULTS)
    words = ["--save", "D", "--non-persistent-local-ckpt-dir", "D", *bash_array(path, "CHECKPOINT_ARGS")]
    args = vars(parser.parse_args(words))
    megatron_checks(
        args | {"in_process": {k.removeprefix("inprocess_"): v for k, v in args.items() if "inprocess_" in k}}, ranks
    )
    return {key: value for key, value in args.items() if value is not None and value is not False}


def megatron_checks(args, ranks):
    assert args["save_interval"] is not None and args["save_interval"] > 0  # arguments.py:1362
    retain = args.get("save_retain_interval")
    assert retain is None or (retain > 0 and retain % args["save_interval"] == 0)  # arguments.py:1364
    assert not args.get("async_save") or args["use_persistent_ckpt_worker"]  # arguments.py:1814: else switched off
    assert not args.get("async_save") or args["ckpt_format"] == "torch_dist"  # checkpointing.py:769
    assert args.get("non_persistent_ckpt_type") in ("global", "local", None)  # arguments.py:398
    if args.get("replication"):  # arguments.py:1896; NVRx group_utils.py: parse_group_sequence
        assert args["non_persistent_ckpt_type"] == "local"
        assert ranks % (args["replication_jump"] * args["replication_factor"]) == 0
    if args.get("inprocess_restart"):
        wrapper_checks(args["in_process"])
        assert args["in_process"]["hard_timeout"] < args["distributed_timeout_seconds_after_init"]  # resiliency.md:168


def wrapper_checks(w):
    """NVRx v0.6.0, inprocess/wrap.py:195-202."""
    assert w["soft_timeout"] < w["hard_timeout"] < w["barrier_timeout"]
    assert w["monitor_process_interval"] < min(w["barrier_timeout"], w["heartbeat_timeout"], w["soft_timeout"])
    assert w["heartbeat_interval"] < w["heartbeat_timeout"] < w["barrier_timeout"]


# --- Megatron-Bridge 067f987d: training/config.py, and Megatron-LM 2a75ac12 that its classes inherit from

BRIDGE = {
    "checkpoint": {
        "save_interval": INT, "async_save": BOOL, "use_persistent_ckpt_worker": BOOL, "ckpt_format": TEXT,
        "non_persistent_save_interval": INT, "non_persistent_ckpt_type": TEXT, "replication": BOOL,
        "replication_jump": INT, "replication_factor": INT, "most_recent_k": INT,
    },
    "dist": {"distributed_timeout_minutes": INT, "distributed_timeout_seconds_after_init": INT},
    "ft": {"_target_": TEXT, "enable_ft_package": BOOL, "calc_ft_timeouts": BOOL},
    "inprocess_restart": {
        "_target_": TEXT, "enabled": BOOL, "soft_timeout": NUMBER, "hard_timeout": NUMBER,
        "heartbeat_interval": NUMBER, "heartbeat_timeout": NUMBER, "barrier_timeout": NUMBER,
        "monitor_process_interval": NUMBER, "last_call_wait": NUMBER, "termination_grace_time": NUMBER,
        "active_world_size": INT, "granularity": TEXT,
    },
}  # fmt: skip


def megatron_bridge(path, ranks):
    data = yaml.safe_load(path.read_text())
    for section, values in data.items():
        check(values, BRIDGE[section])
    for section, cls in (("ft", "FaultToleranceConfig"), ("inprocess_restart", "InProcessRestartConfig")):
        assert data.get(section, {}).get("_target_", f".{cls}").endswith(f".{cls}")
    restart = {"heartbeat_interval": 30.0, "heartbeat_timeout": 60.0} | data.get("inprocess_restart", {})
    flat = data["checkpoint"] | data["dist"] | {"inprocess_restart": "enabled" in restart, "in_process": restart}
    megatron_checks(flat, ranks)
    return data


# --- torchtitan b5bcd76c: components/checkpointer/base.py:325, dcp.py:136, config/configs.py:318; flags through tyro

TORCHTITAN = {
    "checkpoint.enable": bool, "checkpoint.interval": int, "checkpoint.keep_latest_k": int,
    "checkpoint.async_mode": str, "comm.init_timeout_seconds": int, "comm.train_timeout_seconds": int,
}  # fmt: skip


def torchtitan(path, ranks):
    words, found = bash_array(path, "CHECKPOINT_FLAGS"), {}
    while words:
        key = words.pop(0).removeprefix("--")
        found[key] = True if TORCHTITAN[key] is bool else TORCHTITAN[key](words.pop(0))
    assert found["checkpoint.interval"] >= 1
    assert found["checkpoint.keep_latest_k"] == 0 or found["checkpoint.keep_latest_k"] >= 2
    assert found["checkpoint.async_mode"] in ("disabled", "async", "async_with_pinned_mem")
    return found


# --- transformers 5.24.0: training_args.py:1171-1212, 1438, 1743; trainer_callback.py:156

TRANSFORMERS = {
    "save_strategy": TEXT, "save_steps": INT, "save_total_limit": INT, "save_only_model": BOOL, "ddp_timeout": INT,
}  # fmt: skip


def transformers(path, ranks):
    data = json.loads(path.read_text())
    assert set(data) == {"goodput_planner", "training_arguments"}
    arguments = check(data["training_arguments"], TRANSFORMERS)
    assert arguments["save_steps"] >= 1  # below 1 it is a share of all steps
    assert arguments["save_total_limit"] >= 1  # rotate_checkpoints deletes nothing at 0
    return arguments


# --- Lightning 7f0c3436: callbacks/model_checkpoint.py:215, 620-640; NeMo 8cfedd72: the same names and its own

MODEL_CHECKPOINT = {
    "every_n_train_steps": INT, "monitor": (str, type(None)), "mode": TEXT, "save_top_k": INT, "save_last": TEXT,
    "save_on_train_epoch_end": BOOL,
}  # fmt: skip
LIGHTNING = {"MODEL_CHECKPOINT": MODEL_CHECKPOINT, "STRATEGY": {"timeout": (timedelta,)}}
NEMO = {
    "MODEL_CHECKPOINT": MODEL_CHECKPOINT | {"save_optim_on_train_end": BOOL},
    "MEGATRON_STRATEGY": {"ckpt_async_save": BOOL, "save_ckpt_format": TEXT},
    "LOCAL_CHECKPOINT_CALLBACK": {"every_n_train_steps": INT},
    "ENVIRONMENT": {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": TEXT},  # megatron_strategy.py:605: int(...)
    "FAULT_TOLERANCE_PLUGIN": {  # nemo/lightning/run/plugins.py:92
        "num_in_job_restarts": INT, "initial_rank_heartbeat_timeout": INT, "rank_heartbeat_timeout": INT,
    },
}  # fmt: skip


def _python(path, table):
    module = {name: value for name, value in runpy.run_path(str(path)).items() if name.isupper()}
    for name, values in module.items():
        check(values, table[name])
    saves = module["MODEL_CHECKPOINT"]
    assert saves["every_n_train_steps"] >= 1 and saves["save_top_k"] >= -1
    if saves["monitor"] is None:
        assert saves["save_top_k"] in (-1, 0, 1)
    assert saves.get("mode", "min") in ("min", "max")
    return module


def lightning(path, ranks):
    return _python(path, LIGHTNING)


def nemo(path, ranks):
    module = _python(path, NEMO)
    assert module["MODEL_CHECKPOINT"]["monitor"] is not None  # nemo_topk_check_previous_run takes its length
    int(module["ENVIRONMENT"]["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"])
    return module


# --- Composer 64051888: trainer.py:1059-1095, core/time.py:75, utils/misc.py:58

COMPOSER = {
    "save_interval": TEXT, "save_num_checkpoints_to_keep": INT, "autoresume": BOOL, "dist_timeout": NUMBER,
}  # fmt: skip


def composer(path, ranks):
    data = check(yaml.safe_load(path.read_text()), COMPOSER)
    count, unit = re.fullmatch(r"(.+)(iter|ep|ba|sp|tok|dur|sec)", data["save_interval"]).groups()
    assert unit == "ba" and float(count) == int(float(count)) > 0
    return data | {"batches": int(count)}


# --- MaxText e591f30c: configs/types.py:330-432, 3739-3767 (pydantic; any other key is refused by pyconfig.py:271)

MAXTEXT = {
    "base_config": TEXT, "enable_checkpointing": BOOL, "checkpoint_period": INT, "async_checkpointing": BOOL,
    "enable_continuous_checkpointing": BOOL, "save_checkpoint_on_completion": BOOL,
    "max_num_checkpoints_to_keep": INT, "enable_emergency_checkpoint": BOOL, "local_checkpoint_period": INT,
    "jax_distributed_initialization_timeout": INT,
}  # fmt: skip


def maxtext(path, ranks):
    data = check(yaml.safe_load(path.read_text()), MAXTEXT)
    assert data["base_config"] == "base.yml"
    if data.get("enable_emergency_checkpoint"):
        assert data["local_checkpoint_period"] > 0
    else:
        assert "local_checkpoint_period" not in data
    return data


# --- OLMo-core fa6c5014: train/callbacks/checkpointer.py:63-130; config.py:350: values are read as YAML

OLMO_CORE = {
    "save_interval": INT, "ephemeral_save_interval": INT, "max_checkpoints": INT, "save_async": BOOL,
}  # fmt: skip


def olmo_core(path, ranks):
    found = {}
    for word in bash_array(path, "CHECKPOINT_OVERRIDES"):
        name, value = word.split("=", 1)
        prefix, key = name.strip(" -").replace("-", "_").rsplit(".", 1)
        assert prefix == "trainer.callbacks.checkpointer"
        found[key] = yaml.safe_load(value)
    check(found, OLMO_CORE)
    assert found["save_interval"] >= 1 and found["max_checkpoints"] >= 1
    assert 1 <= found.get("ephemeral_save_interval", 1) <= max(1, found["save_interval"] - 1)
    return found


# --- Kubernetes core/v1: ConfigMap of the OpenAPI specification; names as apimachinery's validation has them

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def kubernetes(path, ranks):
    text = path.read_text()
    maps = list(yaml.safe_load_all(text))
    for found in maps:
        assert set(found) <= {"apiVersion", "kind", "metadata", "data", "binaryData", "immutable"}
        assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")
        assert re.fullmatch(LABEL, found["metadata"]["name"]) and len(found["metadata"]["name"]) <= 253
        for key, value in found["data"].items():
            assert re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", key) and isinstance(value, str)
        for key, value in found["metadata"]["annotations"].items():
            assert re.fullmatch(rf"{LABEL}/[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?", key) and isinstance(value, str)
        assert len(text.encode()) < 1_048_576
    variables, files = (found["data"] for found in maps)
    assert all(re.fullmatch(r"[A-Z_][A-Z0-9_]*", key) for key in variables)  # else envFrom leaves it out, silently
    for name, content in files.items():
        assert (json.loads if name.endswith(".json") else yaml.safe_load)(content)
    assert all(math.isfinite(float(v)) for k, v in variables.items() if k.endswith(("STEPS", "SECONDS", "RESTARTS")))
    return variables | {"files": files, "names": [found["metadata"]["name"] for found in maps]}


PARSERS = {
    "megatron-lm": megatron_lm, "megatron-bridge": megatron_bridge, "nemo": nemo, "torchtitan": torchtitan,
    "transformers": transformers, "lightning": lightning, "composer": composer, "maxtext": maxtext,
    "olmo-core": olmo_core, "kubernetes": kubernetes,
}  # fmt: skip
