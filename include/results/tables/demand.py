"""Instances that a level of each source keeps busy: what elasticity holds the supply against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from include.files.whole import read_json
from include.model.errors import StoreError
from include.model.topology import Topology

_TOPOLOGY = TypeAdapter(Topology)


def demand_rows(folder: Path, run: str) -> list[dict[str, Any]]:
    """One row per source and operator with instances that its items keep busy.

    From what the run was resolved to. Raises StoreError where that is missing or damaged.
    """
    path = folder / "runs" / run / "run.json"
    resolved = read_json(path)
    of_run = {"experiment": folder.name, "run": run}
    try:
        topology = _TOPOLOGY.validate_python(resolved["topology"])
        service_ms = resolved["calibration"]["service_ms"]
        return [
            {**of_run, "source": source, "operator": operator, "instances_per_level": instances}
            for source in topology.source
            for operator, instances in _busy_instances(topology, source, service_ms).items()
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged ({error!r}); remove it and run again") from error


def _busy_instances(
    topology: Topology, source: str, service_ms: dict[str, float]
) -> dict[str, float]:
    """By operator, with the work of the one that runs in its instances."""
    levels = {name: float(name == source) for name in topology.source}
    busy: dict[str, float] = {}
    for name, instances in topology.busy_instances(levels, service_ms).items():
        if instances:
            runs_in = topology.operator[name].runs_in or name
            busy[runs_in] = busy.get(runs_in, 0.0) + instances
    return busy
