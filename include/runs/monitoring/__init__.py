"""Runs as they go on, seen from outside: what their windows have committed, as metrics."""
