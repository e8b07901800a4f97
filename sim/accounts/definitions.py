"""What every metric means and who says so, and Google's names for the categories of the ledger."""

from __future__ import annotations

from sim.ledger import RunLedger

_OURS = "goodput planner"
_AWS = "awslabs/awsome-distributed-training, 3.test_cases/pytorch/nvrx/src, commit 0edaf152"

DEFINITIONS: dict[str, tuple[str, str]] = {
    "goodput": (
        "productive time / wall time; productive is the nominal time of the steps that are kept",
        _OURS,
    ),
    "wall_time_s": (
        "time from the start of the run to its end, whether or not the job completed",
        _OURS,
    ),
    "finish_s": (
        "time at which the job completed; infinite for a run that failed or was stopped, so its quantiles are "
        "null where they fall there",
        _OURS,
    ),
    "training_goodput_aws": (
        "kept steps x clean step time / job time, which starts at the first entry into the training function",
        f"the reading that fits the published figures of the benchmark whose code is {_AWS}",
    ),
    "training_goodput_aws_as_coded": (
        "loop time outside saves / job time, as the reference code keeps it: the loop clock of a process runs "
        "on through in-process restarts (rework and recovery included), and what it gained since the last save "
        "is lost when the process dies",
        f"{_AWS}: train_inprocess.py, train_ft_launcher.py",
    ),
    "infra_goodput_aws": (
        "(job time - time from each fault until the loop runs again) / job time; rework and checkpoint stalls "
        "count as good",
        f"{_AWS}: train_inprocess.py, train_ft_launcher.py",
    ),
    "save_efficiency_aws": (
        "1 - time inside save calls / wall time; the last wait for the writer is in the wall time but not in "
        "the sum",
        f"{_AWS}: train_async_ckpt.py",
    ),
    "ettr": (
        "effective training time ratio: time of the steps that are kept, at whatever speed they ran, / wall "
        "time, waits for nodes included; it exceeds goodput by the slowdown",
        "Kokolis et al., arXiv 2410.21680: productive runtime / available wall-clock time of the job run",
    ),
    "availability": (
        "share of the wall time in which the training loop was up: running steps, kept or not, or saving",
        "up time / (up time + down time), as in Trivedi & Bobbio, Reliability and Availability Engineering",
    ),
    "interruptions": (
        "faults that struck the job, those that joined an open incident included, faults of idle spares "
        "excluded",
        _OURS,
    ),
    "mtti_s": (
        "mean time to interruption: wall time / interruptions",
        "as Llama 3, arXiv 2407.21783, section 3.3.4, counts them",
    ),
    "recovery_event_s": (
        "mean time of a restart event (one attempt of a restart layer): time of the incidents that reached "
        "`resumed` / their restart events",
        f"{_AWS}: train_inprocess.py, the mean over restart events of shutdown + startup",
    ),
    "incident_s": (
        "mean time from a fault until the loop runs again, joined faults and failed attempts included, over "
        "the incidents that reached `resumed`",
        _OURS,
    ),
    "gpu_hours": ("hours x GPUs of the working nodes and the hot spares", _OURS),
    "completed_fraction": ("share of the runs that did all their steps", _OURS),
    "censored_fraction": (
        "share of the runs that were stopped by a limit, or whose log ends, before the job did",
        _OURS,
    ),
    "usd": ("GPU-hours (of cold spares too, if they are billed) x price", _OURS),
    "usd_per_productive_gpu_hour": ("USD / GPU-hours of productive time", _OURS),
}

GOOGLE_GOODPUT = "GOODPUT"
# Names: BadputType of AI-Hypercomputer/ml-goodput-measurement, src/goodput_utils.py, commit ef69c853.
# It splits our startup over TPU_INITIALIZATION, TRAINING_PREP and PROGRAM_STARTUP, and after a disruption
# counts them again beside the recovery; it has no name for slow-down, which it takes as productive.
GOOGLE_BADPUT: dict[str, str] = {
    "startup": "PROGRAM_STARTUP",
    "checkpoint_stall": "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME",
    "checkpoint_load": "UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME",
    "rework": "WASTED_PROGRESS_FROM_DISRUPTION",
    "detect": "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION",
    "restart": "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION",
    "node_wait": "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION",
    "slowdown": "OTHER",
}
# Names: the table of AI-Hypercomputer/resiliency, examples/goodput_measurement/README.md, commit 57092cfc.
# That table has no start: our startup counts as its job restart.
GOOGLE_RESILIENCY: dict[str, str] = {
    "productive": "Effective Computation Time",
    "checkpoint_load": "Checkpoint Loading",
    "rework": "Training Progress Loss",
    "startup": "Job Restart",
    "detect": "Job Restart",
    "restart": "Job Restart",
    "node_wait": "Job Restart",
    "checkpoint_stall": "Checkpoint Saving",
    "slowdown": "Training Slowdown",
}


def google_badput(ledger: RunLedger) -> dict[str, float]:
    """Return seconds under the names of Google's ml-goodput-measurement; with GOODPUT they sum to the wall."""
    return _renamed(ledger, {"productive": GOOGLE_GOODPUT, **GOOGLE_BADPUT})


def google_resiliency(ledger: RunLedger) -> dict[str, float]:
    """Return seconds under the names of the example of Google's resiliency library; they sum to the wall."""
    return _renamed(ledger, GOOGLE_RESILIENCY)


def _renamed(ledger: RunLedger, names: dict[str, str]) -> dict[str, float]:
    renamed = dict.fromkeys(names.values(), 0.0)
    for category, seconds in ledger.seconds.items():
        renamed[names[category.split(".")[0]]] += seconds
    return renamed
