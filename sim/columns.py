"""What the columns of the parameters are filled with: the law table, checkpoint tiers and fault classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim import codes, sampling
from sim.draws import stream_id

if TYPE_CHECKING:
    from sim.scenario import FaultClass, Law, Scenario


class Table:
    """The law table while it is being filled."""

    def __init__(self) -> None:
        self.rows: list[sampling.Row] = []
        self.tables: list[float] = []
        self.streams: list[int] = []

    def add(self, path: str, law: Law | float | None) -> int:
        """Add a law, or a constant [s], under the path it has in the scenario; its row."""
        if law is None or isinstance(law, (int, float)):
            row: sampling.Row = (sampling.CONSTANT, float(law or 0.0), 0.0, 0, 0)
        else:
            row = sampling.build_row(law, self.tables)
        return self.add_row(path, row)

    def add_row(self, path: str, row: sampling.Row) -> int:
        """Add a row that is made already."""
        self.rows.append(row)
        self.streams.append(stream_of(path))
        return len(self.rows) - 1


def stream_of(name: str) -> int:
    """Return the random stream of a name."""
    return stream_id(name) >> 2  # leaves room to add small numbers to it


def tiers(s: Scenario, table: Table, write_row: int, stall_row: int, load_row: int) -> dict[str, Any]:
    """Return the columns of the checkpoint tiers, the nearest first; modes sync, async and local have one."""
    ck, step_s = s.checkpoint, s.nominal_step_s()
    # (steps between two, keep, blocks, rows of write, staging and load, symptoms that it survives)
    rows: list[tuple[float, int, bool, int, int, int, tuple[str, ...]]] = []
    if ck.mode == "tiered":
        for name, tier in zip(ck.tier_names(), ck.tiers, strict=True):
            path = f"checkpoint.tiers.{name}"
            laws = (tier.write_time, tier.stall_time, tier.load_time)
            keys = ("write_time", "stall_time", "load_time")
            write, stall, load = (table.add(f"{path}.{key}", law) for key, law in zip(keys, laws, strict=True))
            keep = ck.keep if tier.keep is None else tier.keep
            steps = float(tier.every.in_steps(step_s))
            rows.append((steps, keep, tier.stall_time is None, write, stall, load, tier.survives))
    elif ck.mode in ("sync", "async", "local"):
        copied = ck.mode == "local" and not ck.writes_on()  # durable as soon as it is copied
        blocks, write = copied or ck.mode == "sync", stall_row if copied else write_row
        survives = ck.survives if ck.mode == "local" else codes.SYMPTOMS
        rows.append((float(s.interval_steps()), ck.keep, blocks, write, stall_row, load_row, survives))
    return {
        "tier_every": [row[0] for row in rows],
        "tier_keep": [row[1] for row in rows],
        "tier_blocks": [row[2] for row in rows],
        "tier_write": [row[3] for row in rows],
        "tier_stall": [row[4] for row in rows],
        "tier_load": [row[5] for row in rows],
        "tier_survives": [symptom in row[6] for row in rows for symptom in codes.SYMPTOMS],
    }


class Classes:
    """The columns of the fault classes."""

    def __init__(self, s: Scenario, table: Table) -> None:
        self.s = s
        self.row0 = len(table.rows)
        self.units = [_units_a_node(f, s) for f in s.failures.classes]
        self.trees = []
        for f in s.failures.classes:
            name = f"failures.{f.name}"
            law = f.life_law()  # None: the rate is 0, and the class never strikes
            life = table.add(f"{name}.life", law)
            table.add(f"{name}.detect", f.detect)
            table.add(f"{name}.slowdown", f.slowdown.duration if f.slowdown is not None else None)
            self.trees.append(law is not None and law.kind != "exponential")
            needs_age = self.trees[-1] and s.cluster.initial_age == "stationary"
            age = sampling.equilibrium_row(table.rows, table.tables, life) if needs_age else table.rows[life]
            table.add_row(f"{name}.age", age)

    def fields(self) -> dict[str, Any]:
        """Return the columns by name."""
        classes, s = self.s.failures.classes, self.s
        all_nodes = s.cluster.nodes + s.cluster.spares.hot + s.cluster.spares.cold
        leaves, tree0, unit0 = [], [], []
        n_units = tree_size = 0
        for f, tree, units in zip(classes, self.trees, self.units, strict=True):
            own = {"job": 1, "rack": -(-s.cluster.nodes // (s.cluster.nodes_per_rack or 1))}
            n = own.get((f.per or f.scope), all_nodes * units) if tree else 0
            size = 1
            while size < n:
                size *= 2
            leaves.append(size)
            tree0.append(tree_size)
            unit0.append(n_units)
            n_units += size if tree else 0
            tree_size += 2 * size if tree else 0
        slow = [f.slowdown for f in classes]
        return {
            "n_classes": len(classes),
            "class_row0": self.row0,
            "class_rate": [f.rate_per_s() for f in classes],
            "class_per": [codes.SCOPES.index(f.per or f.scope) for f in classes],
            "class_scope": [codes.SCOPES.index(f.scope) for f in classes],
            "class_symptom": [codes.SYMPTOMS.index(f.symptom) for f in classes],
            "class_repair": [f.repair for f in classes],
            "class_gil_held": [f.gil == "held" for f in classes],
            "class_detect": [f.detect is not None for f in classes],
            "class_factor": [x.factor if x is not None else 1.0 for x in slow],
            "class_until_repaired": [x is not None and x.until == "repaired" for x in slow],
            "class_warning_s": [s.warning_s(f) for f in classes],
            "class_tree": self.trees,
            "class_units": self.units,
            "class_leaves": leaves,
            "class_tree0": tree0,
            "class_unit0": unit0,
            "class_stream": [stream_of(f"failures.{f.name}") for f in classes],
            "n_units": n_units,
            "tree_size": tree_size,
        }


def _units_a_node(f: FaultClass, s: Scenario) -> int:
    return s.cluster.gpus_per_node if (f.per or f.scope) in ("rank", "gpu") else 1
