"""Sweeps: every point of an experiment as one Spark task, into the same store as any other run."""
