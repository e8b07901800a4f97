"""NVRx in-process restart (inprocess.Wrapper): the training function starts again inside living processes.

Phases and defaults: NVRx docs/source/inprocess/usage_guide.rst, "Restart latency" (0.4.1 to 0.7.0 alike):
detect (exception <= 1 s; hang: soft timeout + 1 s), last-call wait and the atomic lock, abort (0.5 s), the wrapped
function unwinds (about one iteration), health check, barrier and rank assignment (0.5 s each), then process group,
model and checkpoint load. Processes live on, so there is no process start and no warm-up.
"""

from __future__ import annotations

from typing import Any

from sim.codes import (
    ABORT,
    BACKOFF,
    DIRECT,
    ESCALATE,
    EXCEPTION,
    GPU_ERROR,
    HANG,
    INIT,
    PROCESS_EXIT,
    RENDEZVOUS,
    RESUMED,
    SILENT_CORRUPTION,
    SLOWDOWN,
    UNHEALTHY,
    UNSUCCESSFUL,
)
from sim.kernel import rule
from sim.params import ABORT_IN_PROCESS, BARRIER, HEALTH, REENTRY_WAIT, SUCCESS, UNWIND
from sim.params import INIT as INIT_ROW
from sim.recovery.loading import load_stage
from sim.recovery.state import ATTEMPT, GAVE_UP, NUMBER, SUSPECT, USED_RESERVE, WRITE_ENDS
from sim.sampling import chance, draw


@rule
def contains(inc: Any, p: Any, symptom: int, gil_held: bool, node_needed: bool) -> bool:
    """Return whether this layer can absorb the fault at all.

    A hang only by the soft timeout: the GIL must be free and the NCCL timeout longer (and the launcher's heartbeat
    timeout, if it has one), else the watchdog (or the launcher) ends the process first. A dead process only with a
    reserve rank left, and never under torchrun, whose agent then stops every worker.
    """
    if node_needed:
        return False
    if symptom == HANG:
        return not gil_held and p.nccl_s > p.soft_s and p.heartbeat_s > p.soft_s
    if symptom == PROCESS_EXIT:
        return bool(p.launcher == DIRECT and inc[USED_RESERVE] < p.reserve_ranks)
    return bool(
        symptom == EXCEPTION or symptom == GPU_ERROR or symptom == SILENT_CORRUPTION or symptom == SLOWDOWN
    )


@rule
def stage(inc: Any, p: Any, at: int, now: float, seed: int, replication: int) -> tuple[int, float]:
    """Return the phase at place `at` and how long it takes [s]; ESCALATE when the layer gives up."""
    number = int(inc[NUMBER])
    attempt = int(inc[ATTEMPT])
    if at == 1:
        wait = p.last_call_s
        if p.atomic and inc[WRITE_ENDS] > now + wait:  # the lock comes after the last call
            wait += min(inc[WRITE_ENDS] - now - wait, p.nccl_s)
        unwind = p.pace_s if p.unwind_is_step else draw(p, UNWIND, seed, replication, number, attempt)
        return ABORT, wait + draw(p, ABORT_IN_PROCESS, seed, replication, number, attempt) + unwind
    if at == 2:
        if inc[SUSPECT] > 0.0:
            stream = p.even_streams[HEALTH]
            if not chance(p, stream, seed, replication, number, attempt, p.health_in_process):
                inc[GAVE_UP] = UNHEALTHY
                return ESCALATE, 0.0
            inc[SUSPECT] = 0.0
        return RENDEZVOUS, draw(p, BARRIER, seed, replication, number, attempt)
    if at == 3:
        if not chance(p, p.even_streams[SUCCESS], seed, replication, number, attempt, p.success_in_process):
            inc[GAVE_UP] = UNSUCCESSFUL
            return ESCALATE, 0.0
        return BACKOFF, draw(p, REENTRY_WAIT, seed, replication, number, attempt)
    if at == 4:
        return INIT, draw(p, INIT_ROW, seed, replication, number, attempt)
    if at == 5:
        return load_stage(inc, p, seed, replication)
    return RESUMED, 0.0
