"""The figures of the preprint's Table 3, of one run's measured rows.

They are counted as the authors' reporting tool does (visp-streaming/reporting): a migration is
no start and no stop (``ReportingScalingActivities``), and the time to adapt of an operator goes
from the last sample that is later than 5 x o_slo to the first within it (``SLACompliance``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any

BTU_S = 600.0
RUN_BTUS = 12
"""BTUs of 600 s in 120 minutes."""
LEVELS = (("real_time", 1), ("near_real_time", 2), ("relaxed", 5))
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
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def compliance(durations: Columns, slo_ms: Mapping[str, float]) -> dict[str, float]:
    """Percent of samples within 1, 2 and 5 times the o_slo, of all operators and without O2, O6."""
    found: dict[str, float] = {}
    shares = [
        (operator, duration / slo_ms[operator])
        for operator, duration in zip(durations["operator"], durations["duration_ms"], strict=True)
    ]
    others = [share for operator, share in shares if operator not in HIGH_VOLUME]
    every = [share for _, share in shares]
    for group, name in ((every, ""), (others, "_without_o2_o6")):
        for level, factor in LEVELS:
            percent = 100 * fmean(share <= factor for share in group)
            found[f"{level}_compliance{name}_percent"] = percent
    gain = found["real_time_compliance_without_o2_o6_percent"]
    gain -= found["real_time_compliance_percent"]
    return {**found, "real_time_gain_without_o2_o6_points": gain}


def times_to_adapt(durations: Columns, slo_ms: Mapping[str, float]) -> dict[str, float]:
    """Mean and deviation over all operators; {} when nothing was ever that late."""
    rows: dict[str, list[tuple[float, float]]] = {}
    for time_s, operator, duration_ms in zip(
        durations["time_s"], durations["operator"], durations["duration_ms"], strict=True
    ):
        rows.setdefault(operator, []).append((time_s, duration_ms / slo_ms[operator]))
    times_s = [time_s for own in rows.values() for time_s in _recoveries(sorted(own))]
    if not times_s:
        return {}
    return {"time_to_adapt_mean_s": fmean(times_s), "time_to_adapt_sigma_s": pstdev(times_s)}


def _recoveries(samples: Sequence[tuple[float, float]]) -> list[float]:
    found, late_s = [], None
    for time_s, share in samples:
        if share >= 5:
            late_s = time_s
        elif share <= 1 and late_s is not None:
            if time_s > late_s:
                found.append(time_s - late_s)
            late_s = None
    return found
