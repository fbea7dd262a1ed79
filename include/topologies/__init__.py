"""The topologies: one YAML file each. To add one: write the file, or give a spec its path."""

from __future__ import annotations

from include.topologies.load import load_topology, topology_names

__all__ = ["load_topology", "topology_names"]
