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
    )
}
