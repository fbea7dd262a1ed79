"""What a tenant's performance is worth to it: Henge, section 4.1, eq. 1 and 2."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from statistics import fmean

from include.model.observation import TenantSample
from include.model.tenant import Intent

Points = Sequence[tuple[float, float]]


def utility(intent: Intent, sample: TenantSample) -> float | None:
    """The current utility, from 0 to ``max_utility``; None when a metric of the SLO is absent.

    A hybrid SLO is worth the mean of its two utilities ("Hybrid SLOs", section 7.2.2).
    """
    shares = []
    if intent.latency_ms is not None:
        latency_ms = sample.tail_latency_ms if intent.tail else sample.latency_ms
        if latency_ms is None:
            return None
        shares.append(latency_share(latency_ms, intent.latency_ms, intent.points))
    if intent.juice is not None:
        if sample.juice is None:
            return None
        shares.append(juice_share(sample.juice, intent.juice, intent.points))
    return intent.max_utility * fmean(shares)


def juice_share(juice: float, threshold: float, points: Points = ()) -> float:
    """Eq. 1: linear from the origin up to the threshold, then 1."""
    return _knee(juice / threshold, points)


def latency_share(latency_ms: float, threshold_ms: float, points: Points = ()) -> float:
    """Eq. 2: 1 up to the threshold, then hyperbolic."""
    return 1.0 if latency_ms <= threshold_ms else _knee(threshold_ms / latency_ms, points)


def _knee(achieved: float, points: Points) -> float:
    """The plateau, and below it the share achieved or what the user's points make of it.

    The points are joined by lines and constant outside; two at one place are a step.
    """
    if achieved >= 1:
        return 1.0
    if not points:
        return achieved
    after = bisect_right(points, achieved, key=lambda point: point[0])
    if after == 0:
        return points[0][1]
    if after == len(points):
        return points[-1][1]
    (x0, y0), (x1, y1) = points[after - 1], points[after]
    return y0 + (y1 - y0) * (achieved - x0) / (x1 - x0)
