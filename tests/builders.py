"""The worlds of the papers, in a few lines. The plain ones are in include.testing.builders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple

import numpy as np

from include.controllers.placement import FreeCapacities, FreeCapacity
from include.model.host import HostFlavor
from include.model.topology import Edge, Operator, Source, Topology

PAPER = HostFlavor(name="docker-host", vcpus=4, memory_mb=7168, usable_memory_share=0.9)
"""The Dockerhost VM of PeerJ CS 141."""

TABLE_2 = {  # o_slo (ms), CPU shares, memory (MB), storage (MB)
    "O1": (1500, 660, 452, 89),
    "O2": (600, 131, 524, 68),
    "O3": (750, 100, 430, 68),
    "O4": (750, 83, 502, 68),
    "O5": (750, 77, 527, 68),
    "O6": (600, 65, 440, 68),
    "O7": (700, 46, 464, 68),
    "O8": (500, 74, 466, 68),
    "O9": (1300, 47, 452, 70),
}


def manufacturing(memory_factor: float = 2.0) -> Topology:
    """O1 to O9 of Tables 1 and 2 with the calibrated memory need, without reading YAML."""
    operators = tuple(
        Operator(
            name=name,
            label=name,
            slo_ms=slo,
            cpu_cores=shares / 1024,
            memory_mb=memory * memory_factor,
            storage_mb=storage,
        )
        for name, (slo, shares, memory, storage) in TABLE_2.items()
    )
    sources = tuple(
        Source(name=name, label=name, items_per_level=items, size_bytes=size)
        for name, items, size in (("S1", 5, 95), ("S2", 1, 12500), ("S3", 10, 90))
    )
    links = "S2 O1,S1 O2,S3 O6,O1 O3,O1 O4,O1 O5,O3 O7,O4 O7,O5 O7,O7 O9,O9 O8,O6 O8,O2 O8"
    out = {("O7", "O9"): (1, 3), ("O9", "O8"): (1, 300), ("O6", "O8"): (1, 102)}
    edges = []
    for link in links.split(","):
        origin, target = link.split()
        items_out, items_in = out.get((origin, target), (1, 1))
        edges.append(Edge(origin=origin, target=target, items_out=items_out, items_in=items_in))
    return Topology(
        name="manufacturing",
        level_unit="machines",
        emission_period_s=0.48,
        operators=operators,
        sources=sources,
        edges=tuple(edges),
    )


def free_capacities(hosts: Iterable[FreeCapacity]) -> FreeCapacities:
    """As a plan has them at the beginning of a decision, in the order of ``hosts``."""
    rooms = list(hosts)
    numbers = [(*astuple(room.total), *astuple(room.left), float(room.up)) for room in rooms]
    return FreeCapacities(
        {room.host: room.images for room in rooms}, np.array(numbers).reshape(-1, 5).T.copy()
    )
