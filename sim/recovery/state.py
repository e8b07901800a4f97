"""The state of the incident under way, as one row of numbers that rules read and write.

Budgets belong to the processes that keep count of them: a restart that starts new processes gives in_process its
budget and its reserve ranks back, and one from outside (layers kubernetes, slurm, fixed) gives back those of the
launcher as well.
"""

from __future__ import annotations

from typing import Any, Final

from sim.codes import NO_LAYER, NO_REASON, RESUMED
from sim.kernel import rule

(
    LAYER,  # who handles the incident, NO_LAYER = nobody contains it
    PHASE,  # RESUMED = no incident
    STAGE,  # place in the layer's list of phases
    NUMBER,  # incidents so far, this one included
    ATTEMPT,  # restart attempts in this incident, this one included
    SYMPTOM,  # the latest fault's
    GIL_HELD,
    CLASS,  # -1 = scheduled
    NEW_ALLOCATION,  # 1: Slurm's allocation is over: only layers that get a new one help
    PLANNED,  # 1: a planned stop has struck, which is charged to no budget
    PAUSE_UNTIL,  # when the job may start again after a planned stop [s]
    PAUSED,  # 1: the present phase is that pause
    NODE_NEEDED,  # a node left in this incident: only layers that bring a new one help
    UNTIL,  # when the present phase ends
    DEADLINE,  # start-up must be over by then (in_job: initial heartbeat timeout)
    LATE,  # why the present phase ends the attempt: the deadline cuts it short, or the load fails; 0: it does not
    ASK,  # 1: what follows depends on what the driver does at the end of this phase, however short it is
    REASON,  # why the job failed
    GAVE_UP,  # why a layer gave up
    SUSPECT,  # 1: a GPU error is not cleared by a health check yet
    SUSPECT_NODE,  # where (-1: not known)
    DROP_NODE,  # 1: it failed its health check; the driver takes it out and clears this
    # used up
    USED_IN_PROCESS,
    USED_IN_JOB,
    USED_REPLACEMENT,
    USED_SLURM,
    USED_RESERVE,
    NO_PROGRESS_CYCLES,
    PROGRESS_AT_CYCLE,  # newest checkpoint at the last in-job cycle
    # what the driver tells before it asks (see observe)
    MISSING,  # empty slots
    LOAD_FROM,  # row of the law of the load to come, -1 = no checkpoint
    LOAD_FAILS,  # 1: that load fails
    WRITE_ENDS,  # end of the synchronous write that the fault struck [s]; 0 = none
    PROGRESS,  # checkpoints made durable so far
    DETECTOR,  # who noticed the latest fault
    LOADS,  # loads that failed in this incident
) = range(36)
SIZE: Final = 36


@rule
def clear(inc: Any) -> None:
    """Reset everything: no incident yet, all budgets full."""
    for i in range(SIZE):
        inc[i] = 0.0
    inc[PHASE] = RESUMED
    inc[LAYER] = NO_LAYER
    inc[CLASS] = -1
    inc[SUSPECT_NODE] = -1
    inc[REASON] = NO_REASON
    inc[LOAD_FROM] = -1


@rule
def observe(inc: Any, missing: int, load_from: int, load_fails: bool, progress: float) -> None:
    """Tell the incident what the world looks like; called before every `advance`.

    `load_from` is the row of the law of the time that the load of the newest usable checkpoint takes (-1: none).
    """
    inc[MISSING] = missing
    inc[LOAD_FROM] = load_from
    inc[LOAD_FAILS] = 1.0 if load_fails else 0.0
    inc[PROGRESS] = progress
