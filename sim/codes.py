"""Small integers that the rules use for words, and the words they stand for.

The rules are compiled for the batch driver, so they carry codes; logs, ledgers and messages carry the words.
"""

from __future__ import annotations

from typing import Final

SYMPTOMS: Final = (
    "exception",
    "hang",
    "process_exit",
    "gpu_error",
    "node_loss",
    "slowdown",
    "silent_corruption",
)
EXCEPTION, HANG, PROCESS_EXIT, GPU_ERROR, NODE_LOSS, SLOWDOWN, SILENT_CORRUPTION = range(7)

SCOPES: Final = ("rank", "gpu", "node", "rack", "job")
RANK, GPU, NODE, RACK, JOB = range(5)

# In the order in which they take over from each other.
LAYERS: Final = ("in_process", "in_job", "kubernetes", "slurm", "node_replacement", "fixed")
IN_PROCESS, IN_JOB, KUBERNETES, SLURM, NODE_REPLACEMENT, FIXED = range(6)
NO_LAYER: Final = -1

PHASES: Final = (
    "detect",
    "abort",
    "backoff",
    "rendezvous",
    "process_start",
    "init",
    "checkpoint_load",
    "warmup",
    "node_wait",
)
DETECT, ABORT, BACKOFF, RENDEZVOUS, PROCESS_START, INIT, CHECKPOINT_LOAD, WARMUP, NODE_WAIT = range(9)
RESUMED: Final = 9
FAILED: Final = 10
ESCALATE: Final = 11  # a stage's answer: this layer gives up
PODS: Final = 12  # the pods have taken over; kubernetes.advance_pods leads them

# What can happen to an incident.
ON_FAULT, ON_TIMER, ON_NODES = range(3)

MODES: Final = ("none", "ideal", "sync", "async", "local", "tiered")
NONE, IDEAL, SYNC, ASYNC, LOCAL, TIERED = range(6)
ON_BUSY: Final = ("wait", "queue", "skip")
WAIT, QUEUE, SKIP = range(3)

LAUNCHERS: Final = ("ft_launcher", "torchrun", "direct")
FT_LAUNCHER, TORCHRUN, DIRECT = range(3)

# Why a job failed, or a layer gave up.
REASONS: Final = (
    "",
    "no enabled layer contains this fault",
    "restart budget (max_restarts) exhausted",
    "no progress: max_no_progress_cycles restarts without a new checkpoint",
    "out of nodes: none left, none in repair",
    "the health check failed",
    "the restart attempt failed",
    "start-up outlasted the initial heartbeat timeout",
    "no spare for a lost node",
    "the Job failed: its restarts reached backoffLimit",
    "the checkpoint could not be loaded",
)
NO_REASON, NOT_CONTAINED, BUDGET, NO_PROGRESS, OUT_OF_NODES = range(5)
UNHEALTHY, UNSUCCESSFUL, TOO_SLOW, NO_SPARE, BACKOFF_LIMIT, NO_LOAD = range(5, 11)

NODE_STATES: Final = ("working", "hot", "cold", "repair", "retired")
WORKING, HOT, COLD, IN_REPAIR, GONE = range(5)

DETECTORS: Final = (
    "monitor",  # the launcher's or wrapper's next look finds an exception or a dead process
    "nccl_watchdog",
    "heartbeat",
    "soft_timeout",
    "hard_timeout",
    "human",
    "class",  # the fault class's own `detect` law
    "fixed",
    "slurm",  # Slurm itself: a node that is silent, an allocation that is over
    "plan",  # a stop that was planned
    "check",  # loss spikes, performance monitors: what notices silent corruption and slowdowns
)
(
    BY_MONITOR,
    BY_WATCHDOG,
    BY_HEARTBEAT,
    BY_SOFT_TIMEOUT,
    BY_HARD_TIMEOUT,
    BY_HUMAN,
    BY_CLASS,
    BY_FIXED,
    BY_SLURM,
    BY_PLAN,
    BY_CHECK,
) = range(11)
