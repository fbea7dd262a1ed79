"""What rows of every autoscaler share: inputs, settings, and that some cannot be run here."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from include.controllers.base import Setting
from include.model.host import HostFlavor
from include.model.topology import Edge, Operator, Source, Topology

Inputs = Mapping[str, Any]


class NotRepresentable(Exception):
    """Our rule has no way to run this row; ``deviation`` is the id in the ledger that says why."""

    def __init__(self, deviation: str) -> None:
        super().__init__(deviation)
        self.deviation = deviation


def chain(stateful: Mapping[str, bool], items_out: int = 1) -> Setting:
    """A chain of operators that a source feeds: whether each has state, and how many items leave it
    for each that comes in."""
    names = list(stateful)
    operators = tuple(
        Operator(
            name=name,
            label=name,
            slo_ms=1000.0,
            cpu_cores=1.0,
            memory_mb=1.0,
            storage_mb=0.0,
            stateful=has_state,
        )
        for name, has_state in stateful.items()
    )
    topology = Topology(
        name="chain",
        level_unit="records",
        emission_period_s=1.0,
        operators=operators,
        sources=(Source(name="records", label="records", items_per_level=1, size_bytes=1),),
        edges=(
            Edge(origin="records", target=names[0]),
            *(Edge(origin=a, target=b, items_out=items_out) for a, b in pairwise(names)),
        ),
    )
    flavor = HostFlavor(name="any", vcpus=1.0, memory_mb=1.0)
    return Setting(topology=topology, flavor=flavor, btu_s=3600.0, seed=1)


ANY_SETTING = chain({"tasks": False})
"""Of rows that are about a rule alone."""
