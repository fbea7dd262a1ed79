"""The workload manufacturing: topologies, patterns, calibrations."""
