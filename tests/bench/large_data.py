"""Measured runs by the thousand, made up with numpy: as a sweep of two-hour runs leaves them.

An operator's load goes up and down in steps. While it is above what its instances can do, items
wait ever longer, and a while after an instance was added they do no more. The recorded durations
that come out are between some milliseconds and a minute, most of them around o_slo, a fifth later.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from include.files.whole import write_json
from include.runs.measurements.rows import DURATION_COUNT, DURATION_SUM
from include.runs.measurements.store import RunStore
from include.runs.measurements.summaries import summarised
from include.testbeds.columns import Coded

EXPERIMENT = "large"
DURATION_S = 7200.0
SAMPLES_PER_RUN = 106_000
DISTINCT = 48
"""Runs that differ; the others are copies of them under their own ids."""
RUN_ID = "btu-runtime-made_up-btu10-s{0}-{0:06x}"
SAMPLE_EVERY = 10

OPERATORS = {
    "O1": (1500.0, 0.035), "O2": (600.0, 0.18), "O3": (750.0, 0.035), "O4": (750.0, 0.035),
    "O5": (750.0, 0.035), "O6": (600.0, 0.36), "O7": (700.0, 0.105), "O8": (500.0, 0.18),
    "O9": (1300.0, 0.035),
}  # fmt: skip
"""o_slo in ms and the share of all samples, per operator of the manufacturing topology."""


def generate(root: Path, rows: int, windows: int) -> tuple[Path, int]:
    """The folder of an experiment with about ``rows`` durations, and how many there are.

    Each run has one file per table, or ``windows`` parts of its durations where that is above 1.
    """
    folder, runs = root / EXPERIMENT, max(1, round(rows / SAMPLES_PER_RUN))
    stores = [RunStore(folder, EXPERIMENT, RUN_ID.format(number)) for number in range(runs)]
    written = [_write(store, number, windows) for number, store in enumerate(stores[:DISTINCT])]
    for number, store in enumerate(stores[DISTINCT:]):
        for table in (*_once(0), "processing_duration", DURATION_COUNT, DURATION_SUM):
            source = stores[number % DISTINCT].part(table, 0).parent
            shutil.copytree(source, store.part(table, 0).parent)
        write_json(store.manifest, {"run": store.run_id})
        written.append(written[number % DISTINCT])
    return folder, sum(written)


def _write(store: RunStore, seed: int, windows: int) -> int:
    for table, columns in _once(seed).items():
        store.write_rows(table, 0, columns)
    durations = durations_of(seed)
    ends = np.linspace(0, DURATION_S, windows + 1)[1:]
    window_of = np.searchsorted(ends, durations["time_s"])
    for table, columns in counted(durations).items():
        store.write_rows(table, 0, columns)
    if windows == 1:
        rows = store.write_window(0, {"processing_duration": durations})
        store.gather(["processing_duration"], [rows["sha256"]])
    for window in range(windows if windows > 1 else 0):
        own = window_of == window
        chosen = {name: _chosen(values, own) for name, values in durations.items()}
        store.write_rows("processing_duration", window, chosen)
    write_json(store.manifest, {"run": store.run_id})
    return len(durations["time_s"])


def counted(durations: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a run counts of its samples as it measures them."""
    slo_ms = {name: slo for name, (slo, _) in OPERATORS.items()}
    return summarised(durations, slo_ms, duration_s=DURATION_S, monitor_every_s=15.0)


def _chosen(values: Any, own: np.ndarray) -> Any:
    return Coded(values.codes[own], values.names) if isinstance(values, Coded) else values[own]


def durations_of(seed: int) -> dict[str, Any]:
    """The samples of one run, as columns."""
    draw = np.random.default_rng(seed)
    parts = [_of_operator(draw, code) for code in range(len(OPERATORS))]
    columns: dict[str, Any] = {
        name: np.concatenate([part[name] for part in parts])
        for name in ("time_s", "code", "instance", "duration_ms", "wait_ms", "age_ms")
    }
    names, codes = tuple(OPERATORS), columns.pop("code")
    columns["operator"] = Coded(codes, names)
    instances = tuple(f"{name}-{number}" for name in names for number in range(6))
    columns["instance"] = Coded(codes * 6 + columns["instance"], instances)
    return columns


def _of_operator(draw: np.random.Generator, code: int) -> dict[str, np.ndarray]:
    slo_ms, share = list(OPERATORS.values())[code]
    count = int(SAMPLES_PER_RUN * share)
    # Load by the minute, then the times of items by that load.
    load = np.repeat(draw.integers(2, 7, size=30), 4).astype(float)
    minutes = draw.choice(120, size=count, p=load / load.sum())
    time_s = np.round(np.sort(minutes * 60 + draw.uniform(0, 60, count)), 6)
    # Where the load has risen, a backlog builds up for some minutes and is worked off.
    risen = np.convolve(np.maximum(np.diff(load, prepend=load[0]), 0), [0.5, 1.0, 0.7, 0.3])[:120]
    backlog_ms = risen[np.minimum(time_s // 60, 119).astype(int)] * draw.exponential(4 * slo_ms)
    wait_ms = np.round(backlog_ms * draw.uniform(0.6, 1.0, count), 3)
    service_ms = draw.gamma(4.0, 0.3 * slo_ms / 4, count)
    exact_ms = np.round(wait_ms + service_ms + draw.exponential(10, count), 3)
    return {
        "time_s": time_s,
        "code": np.full(count, code, dtype=np.int32),
        "instance": draw.integers(0, 6, count).astype(np.int32),
        # Publication times have a resolution of a second.
        "duration_ms": np.round(exact_ms + draw.uniform(0, 1000, count), 3),
        "wait_ms": wait_ms,
        "age_ms": np.round(exact_ms + draw.uniform(0, 5000, count), 3),
    }


def _once(seed: int) -> dict[str, dict[str, list[Any]]]:
    names = list(OPERATORS)
    hosts = [f"host-{number:03}" for number in range(1, 7)]
    return {
        "run": {
            "controller": ["btu"], "pattern": ["made_up"], "btu_min": [10.0], "seed": [seed],
            "duration_s": [DURATION_S], "topology": ["manufacturing"], "testbed": ["simulated"],
            "flavor": ["docker-4cpu-7gb"], "vcpus": [4.0], "memory_mb": [6451.2],
            "sample_every_items": [SAMPLE_EVERY], "spec_hash": [f"{seed:016x}"],
            "monitor_every_s": [15.0], "pays_by_btu": [True], "variant": [""], "conditions": [""],
        },
        "operator": {
            "operator": names, "label": names, "slo_ms": [slo for slo, _ in OPERATORS.values()],
            "cpu_cores": [0.1] * 9, "memory_mb": [900.0] * 9, "instances_per_level": [0.5] * 9,
            "high_volume": [name in ("O2", "O6") for name in names],
        },
        "price": {
            "price_book": ["btu10", "btu30", "btu60"], "btu_s": [600.0, 1800.0, 3600.0],
            "price_per_btu": [1.0, 3.0, 6.0], "penalty_per_item": [0.0001] * 3,
        },
        "lease": {
            "host": hosts, "flavor": ["docker-4cpu-7gb"] * 6, "ordered_s": [0.0] * 6,
            "ended_s": [DURATION_S] * 6, "paid_until_s": [DURATION_S] * 6, "released": [False] * 6,
        },
    }  # fmt: skip
