"""Host flavors by name. To add one, add a line."""

from __future__ import annotations

from collections.abc import Mapping

from include.model.host import HostFlavor

FLAVORS: Mapping[str, HostFlavor] = {
    flavor.name: flavor
    for flavor in (
        # PeerJ CS 141, "four virtual CPU cores and 7 GB RAM"; a tenth is the system's.
        HostFlavor(name="docker-4cpu-7gb", vcpus=4, memory_mb=7168, usable_memory_share=0.9),
        # Its preprint, section 5.2.
        HostFlavor(name="docker-3cpu-5gb", vcpus=3, memory_mb=5120, usable_memory_share=0.9),
        HostFlavor(name="docker-8cpu-16gb", vcpus=8, memory_mb=16384, usable_memory_share=0.9),
        # Henge, section 7: four cores (eight threads) of 2.4 GHz and 12 GB; 7.5.1: two eight-core
        # processors and 64 GB. Executors share the cores.
        HostFlavor(name="storm-8cpu-12gb", vcpus=8, memory_mb=12288, cpu_shared=True),
        HostFlavor(name="storm-16cpu-64gb", vcpus=16, memory_mb=65536, cpu_shared=True),
        # Heinze et al., "up to 10 processing nodes" of a private cloud; their size is not said.
        HostFlavor(name="query-4cpu-8gb", vcpus=4, memory_mb=8192, cpu_shared=True),
        # PVLDB 12(7), section 3.1: "each VM is exclusively assigned one physical core" of 32 that
        # share 128 GB; a tenth is the system's.
        HostFlavor(name="kvm-1cpu", vcpus=1, memory_mb=4096, usable_memory_share=0.9),
        # Of the live testbed on a small machine: half a core, which an engine shares with its
        # containers, so a tenth of the memory is its.
        HostFlavor(name="live-half-cpu-1gb", vcpus=0.5, memory_mb=1024, usable_memory_share=0.9),
        # Small enough for five on two cores, and large enough for an O1 of manufacturing_live.
        HostFlavor(name="live-third-cpu-1gb", vcpus=0.35, memory_mb=1024, usable_memory_share=0.9),
    )
}
