"""The break-even analysis of PVLDB 12(7), section 4.3: eq. 20 to 23, and what it should weigh.

The paper compares rates of change: 1.078 VM hours against 1.132 violations (eq. 20), whatever
one run has of either. Beside it stands the balance of a run, in numbers: extra VM hours paid
with c_v each against violations avoided at c_s each.
"""

from __future__ import annotations

from typing import Any

from include.studies.pvldb127.metrics import PvldbMetrics
from include.studies.pvldb127.published import IMAGE_TIME, VIOLATIONS, VM_TIME

DOLLARS_PER_VM_HOUR = 0.0612
"""Section 4.3: a core hour of Google Cloud Platform in Frankfurt."""
PRINTED = (7.8, -13.2, -43.7)
"""Total changes of VM time, violations and processing time, EKF against GW, in percent."""

COLUMNS = (
    "basis", "vm_time_percent", "violations_percent", "processing_percent", "c_v_below_c_s",
    "c_v_below_r_p", "c_s_dollars", "r_p_dollars", "c_s_dollars_of_a_run",
)  # fmt: skip


def ratio_to_penalty(vm_time_percent: float, violations_percent: float) -> float:
    """Eq. 20 and 21: c_v must be below this many c_s."""
    return (1 - violations_percent / 100) / (1 + vm_time_percent / 100)


def ratio_to_revenue(vm_time_percent: float, processing_percent: float) -> float:
    """Eq. 22 and 23: c_v must be below this many r_p. Shorter processing means more of it."""
    return 1 / (1 + processing_percent / 100) / (1 + vm_time_percent / 100)


def break_even(metrics: PvldbMetrics) -> list[dict[str, Any]]:
    """One row as printed, and one per measured scenario."""
    rows = [_row("as printed", PRINTED, None)]
    for scenario in metrics.scenarios():
        changes = tuple(
            metrics.change_percent(scenario, metric, "GW")
            for metric in (VM_TIME, VIOLATIONS, IMAGE_TIME)
        )
        rows.append(_row(scenario, changes, _of_a_run(metrics, scenario)))
    return rows


def _of_a_run(metrics: PvldbMetrics, scenario: str) -> float | None:
    """The penalty per violation from which EKF pays; None when it avoids none."""
    more_h = metrics.mean(scenario, "EKF", VM_TIME) - metrics.mean(scenario, "GW", VM_TIME)
    fewer = metrics.mean(scenario, "GW", VIOLATIONS) - metrics.mean(scenario, "EKF", VIOLATIONS)
    return max(0.0, more_h) * DOLLARS_PER_VM_HOUR / (1000 * fewer) if fewer > 0 else None


def _row(basis: str, changes: tuple[float, ...], of_a_run: float | None) -> dict[str, Any]:
    vm_time, violations, processing = changes
    penalty = ratio_to_penalty(vm_time, violations)
    revenue = ratio_to_revenue(vm_time, processing)
    dollars = (DOLLARS_PER_VM_HOUR / penalty, DOLLARS_PER_VM_HOUR / revenue, of_a_run)
    return dict(zip(COLUMNS, (basis, *changes, penalty, revenue, *dollars), strict=True))
