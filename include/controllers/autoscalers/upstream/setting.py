"""The setting of rows that are about a rule alone: one operator that one source feeds."""

from __future__ import annotations

from include.controllers.base import Setting
from include.model.host import HostFlavor
from include.model.topology import Edge, Operator, Source, Topology

ANY_SETTING = Setting(
    topology=Topology(
        name="stream",
        level_unit="records",
        emission_period_s=1.0,
        operators=(
            Operator(
                name="tasks",
                label="tasks",
                slo_ms=1000.0,
                cpu_cores=1.0,
                memory_mb=1.0,
                storage_mb=0.0,
            ),
        ),
        sources=(Source(name="records", label="records", items_per_level=1, size_bytes=1),),
        edges=(Edge(origin="records", target="tasks"),),
    ),
    flavor=HostFlavor(name="any", vcpus=1.0, memory_mb=1.0),
    btu_s=3600.0,
    seed=1,
)
