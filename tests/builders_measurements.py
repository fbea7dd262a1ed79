"""Measured runs made up for tests of the reporting half, in the layout of the real store.

The numbers are plausible and follow from the seed; nothing is simulated. Every rule that the
gate checks holds, and ``with_changes`` breaks exactly one of them.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from include.controllers import CONTROLLERS
from include.runs.measurements.rows import SAMPLES, TABLES
from include.runs.measurements.summaries import KEYS, summarised
from include.testbeds.columns import Coded

SLO_MS = {
    "O1": 1500.0, "O2": 600.0, "O3": 750.0, "O4": 750.0, "O5": 750.0,
    "O6": 600.0, "O7": 700.0, "O8": 500.0, "O9": 1300.0,
}  # fmt: skip
ITEMS_PER_LEVEL = {"O1": 1, "O2": 5, "O3": 1, "O4": 1, "O5": 1, "O6": 10, "O7": 3, "O8": 5, "O9": 1}
MONITORING_S = 15.0
SAMPLE_EVERY = 10

Row = dict[str, Any]
Tables = dict[str, list[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUpRun:
    """Which run to make up. ``samples_per_period`` at level 1 sizes the durations."""

    run: str = "btu-random_walk_1-btu10-seed1"
    controller: str = "btu"
    pattern: str = "random_walk_1"
    btu_min: float = 10.0
    seed: int = 1
    duration_s: float = 1200.0
    samples_per_period: float = 0.2


def measured(which: MadeUpRun) -> Tables:
    """The rows of every measured table of one run."""
    draw = random.Random(f"{which.run}:{which.seed}")
    times = [MONITORING_S * k for k in range(1, int(which.duration_s / MONITORING_S) + 1)]
    levels = [4 + round(2 * math.sin(t_s / 300)) for t_s in times]
    leases = _leases(which)
    tables: Tables = {name: [] for name in TABLES}
    tables["run"] = [_run(which)]
    tables["operator"] = [
        {"operator": name, "label": f"Operator {name}", "slo_ms": slo_ms,
         "cpu_cores": 0.1, "memory_mb": 900.0, "instances_per_level": 0.5,
         "high_volume": name in ("O2", "O6"), "path_slo_ms": 2 * slo_ms}
        for name, slo_ms in SLO_MS.items()
    ]  # fmt: skip
    tables["price"] = [
        {"price_book": f"btu{m}", "btu_s": m * 60.0, "price_per_btu": float(price),
         "penalty_per_item": 0.0001}
        for m, price in ((10, 1), (30, 3), (60, 6))
    ]  # fmt: skip
    tables["lease"] = leases
    for t_s, level in zip(times, levels, strict=True):
        _observe(tables, which, t_s, level, draw)
    _act(tables, which, draw)
    return tables


def write_runs(
    root: Path, experiment: str, *runs: MadeUpRun, change: Callable[[Tables], None] | None = None
) -> Path:
    """Write runs as the store does and return the folder of the experiment.

    ``change`` may spoil the rows of each run before they are written.
    """
    folder = root / experiment
    for which in runs:
        tables = measured(which)
        if change is not None:
            change(tables)
        tables |= summaries_of(tables)
        for name, rows in tables.items():
            write_part(folder, experiment, which, name, rows)
        manifest = folder / "runs" / which.run / "manifest.json"
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text(json.dumps({"run": which.run, "seed": which.seed}), encoding="utf-8")
    return folder


def summaries_of(tables: Tables) -> Tables:
    """What the platform counts of the samples of one run."""
    samples = tables[SAMPLES]
    if not samples:
        return {}
    names = tuple({row["operator"]: None for row in samples})
    columns: dict[str, Any] = {
        name: np.array([row.get(name, 0.0) for row in samples], dtype=float)
        for name in ("time_s", "duration_ms", "wait_ms", "age_ms")
    }
    codes = np.array([names.index(row["operator"]) for row in samples])
    counted = summarised(
        {**columns, "operator": Coded(codes, names)},
        {row["operator"]: row["slo_ms"] for row in tables["operator"]},
        duration_s=tables["run"][0]["duration_s"],
        monitor_every_s=tables["run"][0]["monitor_every_s"],
    )
    return {table: _rows_of(columns) for table, columns in counted.items()}


def _rows_of(columns: dict[str, Any]) -> list[Row]:
    codes, operators = columns["operator"]
    columns = {**columns, "operator": [operators[code] for code in codes]}
    plain = [np.asarray(values).tolist() for values in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True)]


def write_part(
    folder: Path, experiment: str, which: MadeUpRun, table: str, rows: list[Row]
) -> None:
    """Write one measured table of one run, a part per window where the table has windows."""
    once = table in ("run", "operator", "price", "lease", *KEYS)
    window_s = which.btu_min * 60
    windows: dict[int, list[Row]] = {0: []} if once else {}
    for row in rows:
        number = 0 if once else max(0, math.ceil(row["time_s"] / window_s) - 1)
        windows.setdefault(number, []).append(row)
    target = folder / "measurements" / table / f"experiment={experiment}" / f"run={which.run}"
    target.mkdir(parents=True, exist_ok=True)
    for number, part in windows.items():
        pq.write_table(as_arrow(table, part), target / f"part-{number:03}.parquet")


def as_arrow(table: str, rows: list[Row]) -> pa.Table:
    """Rows in the columns and types of a measured table; a column left out is 0 or empty."""
    empty = {"float": 0.0, "int": 0, "str": "", "bool": False}
    types = {"float": pa.float64(), "int": pa.int64(), "str": pa.string(), "bool": pa.bool_()}
    schema = pa.schema([(f.name, types[str(f.type)]) for f in fields(TABLES[table])])
    default = {f.name: empty[str(f.type)] for f in fields(TABLES[table])}
    return pa.Table.from_pylist([{**default, **row} for row in rows], schema=schema)


def _run(which: MadeUpRun) -> Row:
    return {
        "controller": which.controller, "pattern": which.pattern, "btu_min": which.btu_min,
        "seed": which.seed, "duration_s": which.duration_s, "topology": "manufacturing",
        "testbed": "simulated", "flavor": "m2.medium", "vcpus": 4.0, "memory_mb": 6451.2,
        "sample_every_items": SAMPLE_EVERY, "spec_hash": f"{abs(which.seed):08x}cafe",
        "monitor_every_s": MONITORING_S, "pays_by_btu": CONTROLLERS[which.controller].pays_by_btu,
    }  # fmt: skip


def _leases(which: MadeUpRun) -> list[Row]:
    """Two hosts for the whole run, one for the second half and one for exactly a BTU."""
    btu_s, end_s = which.btu_min * 60, which.duration_s
    spans = [(0.0, end_s, False), (0.0, end_s, False), (end_s / 2, end_s, False)]
    spans.append((60.0, min(60.0 + btu_s, end_s), 60.0 + btu_s < end_s))
    return [
        {"host": f"host-{n:03}", "flavor": "m2.medium", "ordered_s": start, "ended_s": end,
         "paid_until_s": start + btu_s * max(1, math.ceil((end - start) / btu_s)),
         "released": released}
        for n, (start, end, released) in enumerate(spans, 1)
    ]  # fmt: skip


def _observe(tables: Tables, which: MadeUpRun, t_s: float, level: int, draw: random.Random) -> None:
    busy = level >= 6
    tables["arrival"].append(
        {"time_s": t_s, "source": "S1", "level": float(level), "published_items": level * 150}
    )
    for name, slo_ms in SLO_MS.items():
        samples = max(1, round(which.samples_per_period * level * ITEMS_PER_LEVEL[name]))
        for _ in range(samples):
            wait_ms = draw.expovariate(1 / (3 * slo_ms)) if busy else 0.0
            duration_ms = wait_ms + slo_ms * draw.uniform(0.3, 1.2)
            tables["processing_duration"].append(
                {"time_s": t_s - draw.uniform(0, MONITORING_S), "operator": name,
                 "instance": f"{name}-001", "duration_ms": duration_ms, "wait_ms": wait_ms,
                 "age_ms": duration_ms + 5}
            )  # fmt: skip
        tables["queue"].append(
            {"time_s": t_s, "operator": name, "waiting_items": 40 * level if busy else 0,
             "arrived_items": samples * SAMPLE_EVERY, "completed_items": samples * SAMPLE_EVERY,
             "instances": 1 + busy, "ready_instances": 1}
        )  # fmt: skip
    for lease in tables["lease"]:
        if lease["ordered_s"] < t_s <= lease["ended_s"]:
            tables["host_utilisation"].append(
                {"time_s": t_s, "host": lease["host"], "cpu_share": draw.uniform(0.2, 0.95),
                 "memory_share": 0.8, "instances": 5}
            )  # fmt: skip


def _act(tables: Tables, which: MadeUpRun, draw: random.Random) -> None:
    def happened(t_s: float, activity: str, operator: str = "", host: str = "") -> None:
        tables["scaling_activity"].append(
            {"time_s": t_s, "activity": activity, "operator": operator, "instance": "",
             "host": host}
        )  # fmt: skip

    for lease in tables["lease"]:
        happened(lease["ordered_s"], "host_leased", host=lease["host"])
        if lease["released"]:
            happened(lease["ended_s"], "host_released", host=lease["host"])
    for step in range(1, int(which.duration_s / 60) + 1):
        operator = draw.choice(list(SLO_MS))
        action = draw.choice(["start_instance", "stop_instance", "wait", "migrate_instance"])
        activity = {"start_instance": "upscaling", "stop_instance": "downscaling",
                    "migrate_instance": "migration"}.get(action)  # fmt: skip
        if activity:
            happened(step * 60.0, activity, operator, "host-001")
        tables["decision"].append(
            {"time_s": step * 60.0, "step": 0, "action": action, "operator": operator,
             "subject": "", "host": "host-001", "accepted": draw.random() > 0.1,
             "reason": "nothing_to_do", "because": "made up", "detail": ""}
        )  # fmt: skip
