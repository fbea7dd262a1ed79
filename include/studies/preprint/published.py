"""What the preprint of PeerJ CS 141 prints: its Table 3 and figures of its text.

Table 3 is one selected run of each approach; the two-level half is not at hand. Metrics have
their unit in the name. Figures of the text: 6.1 for stepwise, 6.2 for two-level.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from include.files.whole import csv_rows

TABLE = Path(__file__).with_name("peerj_preprint_table_3_stepwise.csv")
APPROACHES = ("btu_based", "threshold_based")
Key = tuple[str, str, str]
"""Pattern, approach and metric."""

TEXT: Mapping[Key, float] = {
    ("stepwise", "both", "most_vms_count"): 8,
    ("stepwise", "both", "fixed_paid_btus_count"): 96,
    ("stepwise", "both", "paid_btus_saving_percent"): 12,
    ("stepwise", "btu_based", "real_time_gain_without_o2_o6_points"): 9.61,
    ("stepwise", "threshold_based", "real_time_gain_without_o2_o6_points"): 18,
    ("two_level", "both", "most_vms_count"): 9,
    ("two_level", "both", "fixed_paid_btus_count"): 108,
    ("two_level", "both", "paid_btus_saving_percent"): 12,
    ("two_level", "both", "fixed_saving_percent"): 29,
    ("two_level", "btu_based", "real_time_compliance_percent"): 33.71,
    ("two_level", "btu_based", "real_time_compliance_without_o2_o6_percent"): 50.05,
}
"""Of 6.1 and 6.2; "both" compares the approaches, or is the most of either."""


@cache
def printed() -> Mapping[Key, float]:
    """Every printed figure."""
    of_table = {
        (row["pattern"], approach, _with_unit(row["metric"])): float(row[approach])
        for row in csv_rows(TABLE)
        for approach in APPROACHES
    }
    return {**of_table, **TEXT}


def printed_of(pattern: str, approach: str) -> dict[str, float]:
    """What is printed of an approach on a pattern, by metric."""
    return {m: value for (p, a, m), value in printed().items() if (p, a) == (pattern, approach)}


def _with_unit(metric: str) -> str:
    """The table prints counts without one."""
    return metric if metric.endswith(("_percent", "_s")) else f"{metric}_count"
