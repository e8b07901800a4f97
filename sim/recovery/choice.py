"""Which layer takes an incident: what each one contains, what it may still try, and what its attempts cost it."""

from __future__ import annotations

from typing import Any

from sim.codes import (
    BUDGET,
    FIXED,
    IN_JOB,
    IN_PROCESS,
    KUBERNETES,
    NO_LAYER,
    NO_PROGRESS,
    NO_REASON,
    NODE_REPLACEMENT,
    NOT_CONTAINED,
    PROCESS_EXIT,
    SLURM,
)
from sim.kernel import rule
from sim.recovery import in_job, in_process, node_replacement
from sim.recovery.state import (
    ATTEMPT,
    LAYER,
    NEW_ALLOCATION,
    NO_PROGRESS_CYCLES,
    PROGRESS,
    PROGRESS_AT_CYCLE,
    REASON,
    SYMPTOM,
    USED_IN_JOB,
    USED_IN_PROCESS,
    USED_REPLACEMENT,
    USED_RESERVE,
    USED_SLURM,
)


@rule
def _contains(inc: Any, p: Any, layer: int, symptom: int, gil_held: bool, node_needed: bool) -> bool:
    if layer == FIXED or layer == SLURM:
        return True
    if inc[NEW_ALLOCATION] > 0.0:
        return False
    if layer == KUBERNETES:
        return True
    if layer == IN_PROCESS:
        return in_process.contains(inc, p, symptom, gil_held, node_needed)
    if layer == IN_JOB:
        return in_job.contains(inc, symptom, node_needed)
    if layer == NODE_REPLACEMENT:
        return node_replacement.contains(inc, node_needed)
    return False


@rule
def _has_budget(inc: Any, p: Any, layer: int) -> int:
    """Return NO_REASON if the layer may try once more, else why not."""
    if layer == IN_PROCESS and inc[USED_IN_PROCESS] >= p.max_in_process:
        return BUDGET
    if layer == IN_JOB and inc[USED_IN_JOB] >= p.max_in_job:
        return BUDGET
    stuck = inc[NO_PROGRESS_CYCLES] >= p.max_no_progress and inc[PROGRESS] <= inc[PROGRESS_AT_CYCLE]
    if layer == IN_JOB and stuck:
        return NO_PROGRESS
    if layer == NODE_REPLACEMENT and inc[USED_REPLACEMENT] >= p.max_replacements:
        return BUDGET
    if layer == SLURM and inc[USED_SLURM] >= p.max_requeues:
        return BUDGET
    return NO_REASON


@rule
def choose(inc: Any, p: Any, lowest: int, symptom: int, gil_held: bool, node_needed: bool) -> int:
    """Return the lowest enabled layer from `lowest` up that contains the fault and may still try."""
    reason = NOT_CONTAINED
    for layer in range(max(lowest, 0), FIXED + 1):
        if p.layer_on[layer] and _contains(inc, p, layer, symptom, gil_held, node_needed):
            short_of = _has_budget(inc, p, layer)
            if short_of == NO_REASON:
                return layer
            reason = short_of
    inc[REASON] = reason
    return NO_LAYER


@rule
def lowest_that_starts(inc: Any, p: Any) -> int:
    """Return the layer that starts the job again after a planned stop: Slurm, else the lowest that starts processes."""
    if p.layer_on[SLURM] and inc[LAYER] <= SLURM:
        return SLURM
    for layer in range(max(IN_JOB, int(inc[LAYER])), FIXED + 1):
        if p.layer_on[layer]:
            return layer
    inc[REASON] = NOT_CONTAINED
    return NO_LAYER


@rule
def charge(inc: Any, layer: int) -> None:
    """Begin an attempt: charge the layer's budget."""
    inc[ATTEMPT] += 1
    if layer == IN_PROCESS:
        inc[USED_IN_PROCESS] += 1
        if inc[SYMPTOM] == PROCESS_EXIT:
            inc[USED_RESERVE] += 1
    elif layer == IN_JOB:
        inc[USED_IN_JOB] += 1
    elif layer == NODE_REPLACEMENT:
        inc[USED_REPLACEMENT] += 1
    elif layer == SLURM:
        inc[USED_SLURM] += 1


@rule
def renew_budgets(inc: Any, p: Any, layer: int) -> None:
    """Give the layers below `layer` what the processes that it started anew had used up.

    A launcher that gave up has ended: whoever takes over from it starts a new one, with a new budget.
    """
    if layer == IN_PROCESS:
        return
    inc[USED_IN_PROCESS] = 0.0
    inc[USED_RESERVE] = 0.0
    ended = inc[USED_IN_JOB] >= p.max_in_job or inc[NO_PROGRESS_CYCLES] >= p.max_no_progress
    if layer != IN_JOB and ended:
        inc[USED_IN_JOB] = 0.0
        inc[NO_PROGRESS_CYCLES] = 0.0
        inc[PROGRESS_AT_CYCLE] = inc[PROGRESS]
    if layer == FIXED or layer == KUBERNETES or layer == SLURM:
        inc[USED_IN_JOB] = 0.0
        inc[USED_REPLACEMENT] = 0.0
        inc[NO_PROGRESS_CYCLES] = 0.0
        inc[PROGRESS_AT_CYCLE] = inc[PROGRESS]
    if layer == FIXED:
        inc[USED_SLURM] = 0.0


@rule
def count_cycle(inc: Any) -> float:
    """End a cycle of the launcher; the number of them in a row that brought no new checkpoint."""
    inc[NO_PROGRESS_CYCLES] += 1
    if inc[PROGRESS] > inc[PROGRESS_AT_CYCLE]:
        inc[NO_PROGRESS_CYCLES] = 0.0
        inc[PROGRESS_AT_CYCLE] = inc[PROGRESS]
    return float(inc[NO_PROGRESS_CYCLES])
