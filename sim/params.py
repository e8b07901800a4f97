"""What the rules read: a scenario turned into numbers, once, before a run.

Every duration becomes a row of the law table (see sampling.py) with a random stream named after its path in the
scenario, so that a draw depends on what it means and not on where its row happens to lie.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sim import codes, columns, sampling
from sim.recovery import defaults

if TYPE_CHECKING:
    from sim.scenario import Scenario, ScheduledFault

# Rows of the law table; fault classes and repair stages follow.
(
    PROCESS_START,
    INIT,
    WARMUP,
    WRITE,
    STALL,
    LOAD,
    HUMAN,
    FIXED_DETECT,
    FIXED_RESTART,
    ABORT_IN_PROCESS,
    UNWIND,
    BARRIER,
    REENTRY_WAIT,
    STOP,
    RECLAIM,
    RENDEZVOUS_ROW,
    PROVISION,
    STEP,
    LAUNCHER_EXIT,
    START_DELAY_0,
    START_DELAY_OTHERS,
    AGENT_START,
    IN_PLACE_RESTART,
    QUEUE_WAIT,
    PROLOG,
    MAINTENANCE,
) = range(26)
FIRST_CLASS_ROW: Final = 26
LIFE, CLASS_DETECT, SLOW_FOR, AGE = range(4)

# Streams of things that happen with a probability or spread evenly over a poll interval.
POLL, HEALTH, SUCCESS, REPAIR_ESCALATES, REPAIR_CURES, HEARTBEAT, LOAD_FAILS = range(7)
_EVEN_STREAMS = (
    "poll",
    "health_check",
    "success",
    "repair.escalate",
    "repair.success",
    "heartbeat_check",
    "checkpoint.load_failure",
)


class Params(NamedTuple):
    """One scenario as numbers [s, steps, 1/s, fractions]. Arrays for the batch driver, lists for SimPy."""

    laws: Any
    tables: Any
    streams: Any  # [row]
    even_streams: Any  # [POLL..]
    # workload
    steps: float
    nominal_s: float  # a step's nominal time: the median of its law
    pace_s: float  # a step's mean time
    step_productive_s: float  # mean of min(step time, nominal)
    first_process_start: bool
    # checkpoint
    mode: int
    interval_steps: float  # the shortest, where there are tiers
    n_tiers: int  # 0 = no save events (modes none and ideal)
    tier_every: Any  # steps between two saves
    tier_keep: Any
    tier_blocks: Any  # the loop stands still for the whole write
    tier_write: Any  # rows of the law table: the write, ...
    tier_stall: Any  # ... the staging (or copy) before it, and ...
    tier_load: Any  # ... the load
    tier_survives: Any  # [tiers x symptoms] its checkpoints can be loaded after the symptom
    on_busy: int
    final_save: bool
    publish_next: bool
    async_factor: float
    survives: Any  # [symptom] a write in flight goes on
    save_before_s: float  # so long before a stop that is known the job saves and ends; 0 = it does not
    load_failure: float
    load_exit: bool  # a failed load ends the attempt; else the next older checkpoint is tried
    # cluster
    nodes: int
    gpus_per_node: int
    hot: int
    cold: int
    racks: int
    nodes_per_rack: int
    crews: int  # 0 = no limit
    renews: bool
    stationary: bool
    maintenance_every_s: float  # inf = none
    repair_row0: int
    repair_success: Any
    repair_escalate: Any
    # failures
    running_clock: bool
    n_classes: int
    class_row0: int
    class_rate: Any  # per unit [1/s]
    class_per: Any
    class_scope: Any
    class_symptom: Any
    class_repair: Any
    class_gil_held: Any
    class_detect: Any  # has its own detection law
    class_factor: Any  # slowdown
    class_until_repaired: Any
    class_warning_s: Any  # pre-emption: how long before it comes it is told; 0 = it is none
    class_tree: Any  # drawn unit by unit
    class_units: Any  # units a node
    class_leaves: Any  # of its tree, a power of two
    class_tree0: Any
    class_unit0: Any
    class_stream: Any
    n_units: int
    tree_size: int
    scheduled_step: Any
    scheduled_rank: Any
    scheduled_symptom: Any
    scheduled_scope: Any
    scheduled_repair: Any
    scheduled_gil_held: Any
    # recovery
    layer_on: Any  # [layer]
    launcher: int
    monitor_s: float  # how often the launcher looks at its processes
    nccl_s: float
    soft_s: float
    hard_s: float
    heartbeat_in_process_s: float
    monitor_in_process_s: float
    last_call_s: float
    termination_grace_s: float
    unwind_is_step: bool
    atomic: bool
    reserve_ranks: int
    health_in_process: float
    success_in_process: float
    max_in_process: float
    heartbeat_s: float
    initial_heartbeat_s: float
    stop_timeout_s: float
    reclaim_timeout_s: float
    health_in_job: float
    success_in_job: float
    max_in_job: float
    max_no_progress: float
    max_replacements: float
    never_restart: bool  # kubernetes: restartPolicy Never
    backoff_limit: int
    backoff_initial_s: float
    backoff_cap_s: float
    backoff_reset_s: float
    dns_tries: int  # 0 = the container's script does not ask
    dns_every_s: float
    store_s: float
    join_s: float
    node_loss_s: float  # from the loss of a node to the eviction of its pod; inf = never
    in_place: bool
    node_down_s: float  # slurm: silence after which a node is taken for down; inf where the layer is off
    time_limit_s: float  # of an allocation
    max_requeues: float
    has_human: bool
    max_wall_s: float


_BOOLEAN: Final = frozenset(
    ("survives", "class_repair", "class_gil_held", "class_detect", "class_until_repaired", "class_tree")
    + ("scheduled_repair", "scheduled_gil_held", "layer_on", "tier_blocks", "tier_survives")
)
_REAL: Final = frozenset(
    ("laws", "tables", "repair_success", "repair_escalate", "class_rate", "class_factor", "scheduled_step")
    + ("tier_every", "class_warning_s")
)


def as_arrays(p: Params) -> Params:
    """Return the same numbers with numpy arrays for lists, each of one type whatever the scenario.

    Booleans, int64 (streams, codes, counts) or float64; `laws` is two-dimensional. One compiled driver serves all
    scenarios then, those without fault classes included.
    """
    import numpy as np

    def array(name: str, values: Any) -> Any:
        if not isinstance(values, list):
            return values
        kind = np.bool_ if name in _BOOLEAN else np.float64 if name in _REAL else np.int64
        assert kind is not np.int64 or all(type(value) is int for value in values), name
        made = np.array(values, dtype=kind)
        return made.reshape(len(values), 5) if name == "laws" else made

    return Params(*(array(name, values) for name, values in zip(p._fields, p, strict=True)))


def schedule_in_order(s: Scenario) -> list[ScheduledFault]:
    """Return the scheduled faults as the numbers of a run count them: by step."""
    return sorted(s.failures.schedule, key=lambda f: f.step)


def compile_scenario(s: Scenario) -> Params:
    """Turn a scenario into the numbers that the rules read (plain lists; `as_arrays` for numba)."""
    r, cl, ck, w = s.recovery, s.cluster, s.checkpoint, s.workload
    ip, ij, k = r.in_process, r.in_job, r.kubernetes
    d = defaults.IN_JOB[r.nvrx]
    table = columns.Table()
    for path, law in (
        ("workload.process_start", w.process_start),
        ("workload.init", w.init),
        ("workload.warmup", w.warmup),
        ("checkpoint.write_time", s.write_law()),
        ("checkpoint.stall_time", ck.stall_time),
        ("checkpoint.load_time", s.load_law()),
        ("recovery.human_response", r.human_response),
        ("recovery.fixed.detect", r.fixed.detect),
        ("recovery.fixed.restart", r.fixed.restart),
        ("recovery.in_process.abort", ip.abort),
        ("recovery.in_process.unwind", ip.unwind),
        ("recovery.in_process.barrier", ip.barrier),
        ("recovery.in_process.reentry_wait", ip.reentry_wait),
        ("recovery.in_job.stop", ij.stop),
        (
            "recovery.in_job.memory_reclaim",
            d.memory_reclaim_s if ij.memory_reclaim is None else ij.memory_reclaim,
        ),
        ("recovery.in_job.rendezvous", d.rendezvous_s if ij.rendezvous is None else ij.rendezvous),
        ("recovery.node_replacement.provision", r.node_replacement.provision),
        ("workload.step_time", w.step_time),
        ("recovery.kubernetes.launcher_exit", k.launcher_exit),
        ("recovery.kubernetes.start_delay.node0", k.start_delay.node0),
        ("recovery.kubernetes.start_delay.others", k.start_delay.others),
        ("recovery.kubernetes.agent_start", k.agent_start),
        ("recovery.kubernetes.in_place_restart", k.in_place_restart),
        ("recovery.slurm.queue_wait", r.slurm.queue_wait),
        ("recovery.slurm.prolog", r.slurm.prolog),
        ("cluster.maintenance.duration", cl.maintenance.duration if cl.maintenance is not None else None),
    ):
        table.add(path, law)
    assert len(table.rows) == FIRST_CLASS_ROW

    mean, nominal, productive = sampling.split_at_median(table.rows, table.tables, STEP)
    scale = s.step_factor()
    classes = columns.Classes(s, table)
    repair_row0 = len(table.rows)
    stages = cl.repair.stages if cl.repair is not None else ()
    for i, stage in enumerate(stages):
        table.add(f"cluster.repair.stages.{i}.time", stage.time)
    tiers = columns.tiers(s, table, WRITE, STALL, LOAD)

    def given(value: float | None, default: float) -> float:
        return default if value is None else float(value)

    def count(value: int | None, default: float = math.inf) -> float:
        return default if value is None else float(value)

    in_job_on, slurm_on = "in_job" in r.layers, "slurm" in r.layers
    sections = ij.section_timeouts
    step_section = sections.step if sections is not None and sections.step is not None else math.inf
    setup_section = sections.setup if sections is not None and sections.setup is not None else math.inf
    schedule = schedule_in_order(s)
    return Params(
        laws=table.rows,
        tables=table.tables,
        streams=table.streams,
        even_streams=[columns.stream_of(name) for name in _EVEN_STREAMS],
        steps=float(s.total_steps()),
        nominal_s=nominal * scale,
        pace_s=mean * scale,
        step_productive_s=productive * scale,
        first_process_start=w.count_first_process_start,
        mode=codes.MODES.index(ck.mode),
        interval_steps=min(tiers["tier_every"], default=math.inf),
        n_tiers=len(tiers["tier_every"]),
        **tiers,
        on_busy=codes.ON_BUSY.index(ck.on_busy),
        final_save=ck.final_save,
        publish_next=ck.publish == "next_save",
        async_factor=ck.async_slowdown.factor if ck.async_slowdown is not None else 1.0,
        survives=[symptom in ck.write_survives for symptom in codes.SYMPTOMS],
        save_before_s=ck.save_before or 0.0,
        load_failure=ck.load_failure if ck.mode != "ideal" else 0.0,
        load_exit=ck.on_load_failure == "exit",
        nodes=cl.nodes,
        gpus_per_node=cl.gpus_per_node,
        hot=cl.spares.hot,
        cold=cl.spares.cold,
        racks=-(-cl.nodes // (cl.nodes_per_rack or cl.nodes)),
        nodes_per_rack=cl.nodes_per_rack or cl.nodes,
        crews=0 if cl.repair is None or cl.repair.crews == "unlimited" else int(cl.repair.crews),
        renews=cl.repair is None or cl.repair.renews,
        stationary=cl.initial_age == "stationary",
        maintenance_every_s=cl.maintenance.every if cl.maintenance is not None else math.inf,
        repair_row0=repair_row0,
        repair_success=[stage.success for stage in stages],
        repair_escalate=[stage.escalate for stage in stages],
        running_clock=s.failures.clock == "running",
        **classes.fields(),
        scheduled_step=[float(f.step) for f in schedule],
        scheduled_rank=[f.rank for f in schedule],
        scheduled_symptom=[codes.SYMPTOMS.index(f.symptom) for f in schedule],
        scheduled_scope=[codes.SCOPES.index(f.scope) for f in schedule],
        scheduled_repair=[f.repair for f in schedule],
        scheduled_gil_held=[f.gil == "held" for f in schedule],
        layer_on=[layer in r.layers for layer in codes.LAYERS],
        launcher=codes.LAUNCHERS.index(r.launcher),
        monitor_s=given(ij.monitor_interval, d.monitor_interval_s)
        if in_job_on
        else defaults.TORCHRUN_MONITOR_S,
        nccl_s=r.nccl_timeout,
        soft_s=ip.soft_timeout,
        hard_s=ip.hard_timeout,
        heartbeat_in_process_s=ip.heartbeat_timeout,
        monitor_in_process_s=ip.monitor_interval,
        last_call_s=ip.last_call_wait,
        termination_grace_s=ip.termination_grace,
        unwind_is_step=ip.unwind is None,
        atomic=ip.atomic,
        reserve_ranks=ip.reserve_ranks,
        health_in_process=ip.health_check_pass,
        success_in_process=ip.success,
        max_in_process=count(ip.max_restarts),
        heartbeat_s=min(given(ij.heartbeat_timeout, d.heartbeat_timeout_s), step_section)
        if in_job_on
        else math.inf,
        initial_heartbeat_s=min(
            given(ij.initial_heartbeat_timeout, d.initial_heartbeat_timeout_s), setup_section
        )
        if in_job_on
        else math.inf,
        stop_timeout_s=given(ij.stop_timeout, d.stop_timeout_s),
        reclaim_timeout_s=d.memory_reclaim_timeout_s if d.memory_reclaim_timeout_s > 0 else math.inf,
        health_in_job=ij.health_check_pass,
        success_in_job=ij.success,
        max_in_job=count(ij.max_restarts),
        max_no_progress=count(ij.max_no_progress_cycles, float(d.max_no_progress_cycles)) or math.inf,
        max_replacements=count(r.node_replacement.max_restarts),
        never_restart=k.restart_policy == "Never",
        backoff_limit=k.backoff_limit,
        backoff_initial_s=k.backoff_initial_s(),
        backoff_cap_s=k.backoff_cap_s(),
        backoff_reset_s=k.backoff.reset,
        dns_tries=0 if k.dns is None else k.dns.tries,
        dns_every_s=0.0 if k.dns is None else k.dns.every,
        store_s=k.store_timeout,
        join_s=k.join_timeout,
        node_loss_s=math.inf if k.pod_failure_policy else k.grace_s() + k.toleration,
        in_place=k.in_place,
        node_down_s=r.slurm.node_down if slurm_on else math.inf,
        time_limit_s=r.slurm.time_limit if slurm_on and r.slurm.time_limit is not None else math.inf,
        max_requeues=count(r.slurm.max_restarts),
        has_human=r.human_response is not None,
        max_wall_s=s.max_wall_s(),
    )
