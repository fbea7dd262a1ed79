"""Parameters of the live testbed: its pace, containers and deadlines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from include.model.errors import SpecError
from include.model.topology import Topology
from include.testbeds.calibrations import Parameters, calibration_folders, service_times
from include.testbeds.live.operators.settings import MONITOR, RUN_PATTERN
from include.workloads.topology_file import Bounded, NotNegative, Positive

FOLDERS = calibration_folders("live", Path(__file__).parent)


class LiveCalibration(Bounded, BaseModel):
    """How a live run is set up; see calibrations/default.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    service_ms: dict[str, Positive] = {}
    """Mean CPU time per item: spent by the generic operator, and used by elasticity metrics."""
    work: Literal["own", "burn"] = "own"
    """``burn``: operators that have code of their own spend ``service_ms``, too, and pass items on,
    so that a load is as hard on every machine."""
    memory_factor: Positive = 1
    time_scale: Positive = 1
    """Seconds of the run per second of wall time."""
    sample_every_items: Annotated[int, Field(ge=1)] = 5
    timestamp_resolution_s: NotNegative = 0
    prefetch: Annotated[int, Field(ge=1)] = 5
    """Unacknowledged items of an instance."""
    heartbeat_s: Annotated[int, Field(ge=1)] = 5
    kill_after_s: NotNegative = 20
    """Time that a stopping instance has for the item in hand."""
    boot_within_s: Positive = 60
    start_within_s: Positive = 120
    silent_for_s: Positive = 10
    """Time without an answer after which a host is lost."""

    def complete(self, topology: Topology) -> LiveCalibration:
        """Fill in every operator's service time. Raises SpecError for what cannot run live."""
        problems = real_time_problems(topology, "containers", "queue")
        if MONITOR in topology.operator:
            problems.append(f"operator {MONITOR}: samples are in a queue of that name; rename it")
        problems += [
            f"edge {edge.origin} -> {edge.target}: what a source emits arrives as it is, so remove "
            "items_out and items_in"
            for edge in topology.edges
            if edge.origin in topology.source and (edge.items_out, edge.items_in) != (1, 1)
        ]
        if problems:
            raise SpecError(f"topology {topology.name}", problems)
        service_ms = service_times(self.service_ms, topology)
        return self.model_copy(update={"service_ms": service_ms})


def real_time_problems(topology: Topology, runner: str, named: str) -> list[str]:
    """Operators within others, which ``runner`` has not, and names that no ``named`` can have."""
    problems = [
        f"operator {op.name} runs in another one, which {runner} cannot; give it its own"
        for op in topology.operators
        if op.runs_in
    ]
    return problems + [
        f"{name} cannot name a {named}: letters, digits, dot, dash and underscore only"
        for name in (*topology.operator, *topology.source)
        if not RUN_PATTERN.fullmatch(name)
    ]


class NoFaults(BaseModel):
    """No parameters: on a live testbed faults are real."""

    model_config = ConfigDict(extra="forbid", frozen=True)


PARAMETERS = Parameters(LiveCalibration, NoFaults, FOLDERS)
