"""What the job is to do: a topology and its arrivals as the files that `java/tidebench` reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from include.files.whole import write_bytes, write_json
from include.model.topology import Topology
from include.testbeds.base import TestbedConfig
from include.testbeds.flink.calibration import FlinkCalibration
from include.testbeds.live.provider.plan import Schedule
from include.testbeds.virtual.key_groups import KEY_GROUPS


def schedules_of(config: TestbedConfig) -> dict[str, Schedule]:
    """When each source emits which item, in seconds of the run."""
    return {
        source.name: Schedule(
            config.levels_of[source.name],
            source.items_per_level / config.topology.emission_period_s,
            config.duration_s,
        )
        for source in config.topology.sources
    }


def write_schedules(folder: Path, config: TestbedConfig, scale: float) -> None:
    """One file per source: 64-bit microseconds of the wall since second 0, big endian."""
    for name, schedule in schedules_of(config).items():
        due_us = [round(schedule.due_s(k) * 1e6 / scale) for k in range(schedule.items)]
        write_bytes(schedule_file(folder, name), np.array(due_us, dtype=">i8").tobytes())


def schedule_file(folder: Path, source: str) -> Path:
    """Where the schedule of a source is."""
    return folder / "schedules" / source


def write_job(
    folder: Path, config: TestbedConfig, limits: FlinkCalibration, instances: Mapping[str, int]
) -> None:
    """The job's file; ``instances`` of each operator are what it begins with."""
    topology = config.topology
    write_json(
        folder / "job.json",
        {
            "name": config.run,
            "folder": str(folder),
            "seed": config.seed,
            "queue": limits.queue,
            "sample_every": limits.sample_every_items,
            "max_parallelism": KEY_GROUPS,
            "sources": [
                {"name": source.name, "schedule": str(schedule_file(folder, source.name))}
                for source in topology.sources
            ],
            "operators": [
                {
                    "name": name,
                    "service_us": limits.service_ms[name] * 1000 / limits.time_scale,
                    "cv": limits.service_cv,
                    "burns": limits.work == "burn",
                    "parallelism": max(1, instances.get(name, 0)),
                    **_state_of(topology, limits, name),
                }
                for name in topology.flow_order
            ],
            "edges": [
                {"from": e.origin, "to": e.target, "out": e.items_out, "in": e.items_in}
                for e in topology.edges
            ],
        },
    )


def _state_of(topology: Topology, limits: FlinkCalibration, name: str) -> dict[str, Any]:
    """Of a keyed operator that of each key, of another that of all of its instances."""
    keyed = topology.operator[name].keyed
    if keyed:
        of_key = {"keys": keyed.keys, "exponent": keyed.exponent}
        return {**of_key, "state_kb": math.ceil(keyed.state_kb)}
    state_mb = state_mb_of(topology, limits, name)
    return {"state_kb": round(state_mb * 1024)} if state_mb else {}


def state_mb_of(topology: Topology, limits: FlinkCalibration, name: str) -> float:
    """All state of an operator."""
    op = topology.operator[name]
    if op.keyed:
        return op.keyed.keys * math.ceil(op.keyed.state_kb) / 1024
    return limits.state_mb.get(name, op.state_mb if op.stateful else 0.0)
