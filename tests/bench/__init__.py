"""Measurements, not tests: `make bench`. Nothing here asserts a time."""
