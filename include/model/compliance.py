"""The levels of compliance: PeerJ CS 141, "Metrics"."""

from __future__ import annotations

LEVELS: tuple[tuple[str, float], ...] = (
    ("real_time", 1.0),
    ("near_real_time", 2.0),
    ("relaxed", 5.0),
)
"""An item meets a level when its duration is at most this multiple of o_slo; strictest first."""
LEVEL_NAMES = tuple(name for name, _ in LEVELS)


TOTALS = {
    "strict_total_cost": "total",
    "strict_relaxed_total_cost": "total",
    "strict_near_real_time_total_cost": "near real-time total",
    "strict_real_time_total_cost": "real-time total",
    "end_to_end_near_real_time_total_cost": "end-to-end total",
    "total_cost": "total of completed items",
    "relaxed_total_cost": "total of completed items",
    "near_real_time_total_cost": "near real-time total of completed items",
    "real_time_total_cost": "real-time total of completed items",
}
"""The one name for readers of every total; columns of files keep theirs."""


def in_words(column: str) -> str:
    """The name of a column as a reader has it: near_real_time_cost as near real-time cost."""
    if column in TOTALS:
        return TOTALS[column]
    words = column.replace("near_real_time", "near real-time").replace("real_time", "real-time")
    words = words.replace("end_to_end", "end-to-end")
    return words.replace("_", " ")
