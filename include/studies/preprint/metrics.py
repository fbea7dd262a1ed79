"""The figures of the preprint's Table 3, of one run's measured rows.

They are counted as the authors' reporting tool does (visp-streaming/reporting): a migration is
no start and no stop (``ReportingScalingActivities``), and the time to adapt of an operator goes
from the last sample of 5 x o_slo or more to the first within o_slo (``SLACompliance``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from include.model.compliance import LEVELS

BTU_S = 600.0
RUN_BTUS = 12
"""BTUs of 600 s in 120 minutes."""
HIGH_VOLUME = ("O2", "O6")

Columns = Mapping[str, Any]


def figures_of_run(
    durations: Columns, activities: Columns, leases: Columns, slo_ms: Mapping[str, float]
) -> dict[str, float]:
    """Every metric of one run; those of what never happened are 0, times to adapt may be absent.

    The columns are those of processing_duration, scaling_activity and lease.
    """
    counts: Counter[str] = Counter(activities["activity"])
    return {
        **lease_figures(leases, counts),
        "operator_instance_up_count": counts["upscaling"],
        "operator_instance_down_count": counts["downscaling"],
        "operator_instance_migration_count": counts["migration"],
        **compliance(durations, slo_ms),
        **times_to_adapt(durations, slo_ms),
    }


def lease_figures(leases: Columns, counts: Mapping[str, int]) -> dict[str, float]:
    """What was leased: a host that ends before its BTU does is an early downscaling."""
    spans = list(zip(leases["ordered_s"], leases["ended_s"], leases["paid_until_s"], strict=True))
    paid = [
        max(1, -int(-(ended - ordered - 1e-6) // BTU_S), round((until - ordered) / BTU_S))
        for ordered, ended, until in spans
    ]
    released = [
        (ended, ordered + btus * BTU_S)
        for (ordered, ended, _), btus, done in zip(spans, paid, leases["released"], strict=True)
        if done
    ]
    # The last tick of a BTU is up to a minute before its end.
    early = sum(until - ended > 60.0 for ended, until in released)
    most = most_at_once([(ordered, ended) for ordered, ended, _ in spans])
    return {
        "paid_btus_count": sum(paid),
        "vm_upscaling_count": counts["host_leased"],
        "vm_prolonging_count": sum(paid) - len(paid),
        "vm_downscaling_count": len(released) - early,
        "vm_early_downscaling_count": early,
        "most_vms_count": most,
        "fixed_paid_btus_count": RUN_BTUS * most,
    }


def most_at_once(spans: Sequence[tuple[float, float]]) -> int:
    """The most hosts that are leased at one time."""
    changes = sorted([(end, -1) for _, end in spans] + [(start, 1) for start, _ in spans])
    return max(accumulate((change for _, change in changes), initial=0))


def compliance(durations: Columns, slo_ms: Mapping[str, float]) -> dict[str, float]:
    """Percent of samples within 1, 2 and 5 times the o_slo, of all operators and without O2, O6."""
    operators, shares = _shares(durations, slo_ms)
    percents: dict[str, float] = {}
    for own, name in ((shares, ""), (shares[~np.isin(operators, HIGH_VOLUME)], "_without_o2_o6")):
        for level, factor in LEVELS:
            percent = float(100 * (own <= factor).mean()) if own.size else 0.0
            percents[f"{level}_compliance{name}_percent"] = percent
    gain = percents["real_time_compliance_without_o2_o6_percent"]
    gain -= percents["real_time_compliance_percent"]
    return {**percents, "real_time_gain_without_o2_o6_points": gain}


def times_to_adapt(durations: Columns, slo_ms: Mapping[str, float]) -> dict[str, float]:
    """Mean and deviation over all operators; {} when nothing was ever that late."""
    operators, shares = _shares(durations, slo_ms)
    times_s = np.asarray(durations["time_s"], dtype=float)
    took_s: list[float] = []
    for operator in np.unique(operators):
        own = operators == operator
        order = np.argsort(times_s[own], kind="stable")
        at_s, share = times_s[own][order], shares[own][order]
        crossing = (share >= 5) | (share <= 1)
        at_s, late = at_s[crossing], share[crossing] >= 5
        ends = np.flatnonzero(late[:-1] & ~late[1:])
        spans_s = at_s[ends + 1] - at_s[ends]
        took_s += spans_s[spans_s > 0].tolist()
    if not took_s:
        return {}
    return {"time_to_adapt_mean_s": fmean(took_s), "time_to_adapt_sigma_s": pstdev(took_s)}


def _shares(durations: Columns, slo_ms: Mapping[str, float]) -> tuple[Any, Any]:
    """Operators, and durations as shares of their o_slo."""
    operators = np.asarray(durations["operator"], dtype=str)
    names, place = np.unique(operators, return_inverse=True)
    limits_ms = np.array([slo_ms[str(name)] for name in names])
    return operators, np.asarray(durations["duration_ms"], dtype=float) / limits_ms[place]
