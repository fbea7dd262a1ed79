"""The workload tenants: topologies, patterns, calibrations."""
