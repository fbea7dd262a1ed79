"""What a source asks of every operator: instances, for elasticity, and executions, end to end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from include.files.whole import read_json
from include.model.errors import StoreError
from include.model.topology import Topology

_TOPOLOGY = TypeAdapter(Topology)


def demand_rows(folder: Path, run: str) -> list[dict[str, Any]]:
    """One row per source and operator that its items reach.

    From what the run was resolved to. Raises StoreError where that is missing or damaged.
    """
    path = folder / "runs" / run / "run.json"
    resolved = read_json(path)
    of_run = {"experiment": folder.name, "run": run}
    try:
        topology = _TOPOLOGY.validate_python(resolved["topology"])
        service_ms = resolved["calibration"]["service_ms"]
        return [
            {**of_run, "source": source, **row}
            for source in topology.source
            for row in _of_source(topology, source, service_ms)
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} is damaged ({error!r}); remove it and run again") from error


def _of_source(
    topology: Topology, source: str, service_ms: dict[str, float]
) -> Iterator[dict[str, Any]]:
    levels = dict.fromkeys(topology.source, 0.0) | {source: 1.0}
    busy: dict[str, float] = {}
    for name, instances in topology.busy_instances(levels, service_ms).items():
        if instances:
            runs_in = topology.operator[name].runs_in or name
            busy[runs_in] = busy.get(runs_in, 0.0) + instances
    for name, executions in topology.executions_per_item(source).items():
        if executions or name in busy:
            yield {
                "operator": name,
                "instances_per_level": busy.get(name),
                "executions_per_item": executions,
            }
