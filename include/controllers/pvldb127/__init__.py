"""Threshold rules behind filters: Borkowski et al., PVLDB 12(7)."""
