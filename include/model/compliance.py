"""The levels of compliance: PeerJ CS 141, "Metrics"."""

from __future__ import annotations

LEVELS: tuple[tuple[str, float], ...] = (
    ("real_time", 1.0),
    ("near_real_time", 2.0),
    ("relaxed", 5.0),
)
"""An item meets a level when its duration is at most this multiple of o_slo; strictest first."""
LEVEL_NAMES = tuple(name for name, _ in LEVELS)


def in_words(column: str) -> str:
    """The name of a column as a reader has it: near_real_time_cost as near real-time cost."""
    words = column.replace("near_real_time", "near real-time").replace("real_time", "real-time")
    return words.replace("_", " ")
