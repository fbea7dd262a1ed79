"""The figures that Borkowski et al., PVLDB 12(7), printed in Tables 3 to 5: means of 20 runs.

Every file ``pvldb_12_7_*.csv`` beside this module is read, so a further table needs only its
file or its rows. Columns: table, scenario, metric, filter, mean and sigma.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from include.files.whole import csv_rows
from include.model.errors import StoreError
from include.results.reports.comparison import PublishedFigure

RUNS = 20
FILTERS: Mapping[str, str] = {
    "kalman-pure": "PURE",
    "kalman-weierstrass": "GW",
    "kalman-ekf": "EKF",
}
"""Our controllers to the filters of the paper."""
VM_TIME, EVENTS, IMAGE_TIME, QUERY_TIME, VIOLATIONS = METRICS = (
    "total_vm_time_1000h",
    "scaling_events",
    "image_processing_s",
    "query_processing_s",
    "sla_violations_1000",
)
"""Rows of the published tables, in their order. What is printed as 1000 h are hours of a run
(deviations.md, KALMAN-VM-TIME); violations are thousands.
"""
UNITS = {
    VM_TIME: "vm_time_h",
    EVENTS: "scaling_events_count",
    IMAGE_TIME: IMAGE_TIME,
    QUERY_TIME: QUERY_TIME,
    VIOLATIONS: "sla_violations_thousands",
}
"""What each is called in cells.csv, where its unit must be in the name."""
FITTED = "pyramid"
SCENARIOS = (FITTED, "square", "lab")
WITHHELD = "square"
"""Its table does not come with the project: whoever has it compares it."""
TOLERANCE_PERCENT: Mapping[str, float] = {
    VM_TIME: 10.0, EVENTS: 20.0, IMAGE_TIME: 15.0, QUERY_TIME: 15.0, VIOLATIONS: 15.0,
}  # fmt: skip
"""How far a measured mean may be from a printed one."""

Key = tuple[str, str, str]
"""Scenario, filter of the paper, metric."""


@cache
def published() -> Mapping[Key, PublishedFigure]:
    """Every printed figure. Raises StoreError when two rows contradict each other."""
    figures: dict[Key, PublishedFigure] = {}
    for path in sorted(Path(__file__).parent.glob("pvldb_12_7_*.csv")):
        for row in csv_rows(path):
            key = (row["scenario"], row["filter"], row["metric"])
            figure = PublishedFigure(float(row["mean"]), "", row["table"], float(row["sigma"]))
            if figures.setdefault(key, figure) != figure:
                raise StoreError(f"{path}: two different rows for {key}; correct one of them")
    return figures
