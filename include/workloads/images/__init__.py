"""The workload images: topologies, patterns, calibrations."""
