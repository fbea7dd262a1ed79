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

COUNTS = {
    "paid_btus": "paid_btus_count",
    "vm_upscaling": "vm_upscaling_count",
    "vm_prolonging": "vm_prolonging_count",
    "vm_downscaling": "vm_downscaling_count",
    "vm_early_downscaling": "vm_early_downscaling_count",
    "operator_instance_up": "operator_instance_up_count",
    "operator_instance_down": "operator_instance_down_count",
    "operator_instance_migration": "operator_instance_migration_count",
}
"""Counts of the table by their name with a unit; its other names have one."""

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
        (row["pattern"], approach, COUNTS.get(row["metric"], row["metric"])): float(row[approach])
        for row in csv_rows(TABLE)
        for approach in APPROACHES
    }
    return {**of_table, **TEXT}


def printed_of(pattern: str, approach: str) -> dict[str, float]:
    """What is printed of an approach on a pattern, by metric."""
    return {m: value for (p, a, m), value in printed().items() if (p, a) == (pattern, approach)}
