"""Rows of upstream that nothing here can run."""

from __future__ import annotations


class NotRepresentable(Exception):
    """Our rule has no way to run this row; ``deviation`` is the id in the ledger that says why."""

    def __init__(self, deviation: str) -> None:
        super().__init__(deviation)
        self.deviation = deviation
