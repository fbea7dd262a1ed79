"""Whole files, files that may be read, and plain YAML."""
