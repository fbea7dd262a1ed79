"""A service beside a running Flink: records it, shows what controllers would do, and may act."""
