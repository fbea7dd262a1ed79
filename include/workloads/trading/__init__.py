"""The workload trading: topologies, patterns, calibrations."""
