"""What is asked behind the claims of the preprint: one pattern, the means of both approaches."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from include.model.compliance import LEVEL_NAMES
from include.studies.base import Answer, known

Means = Mapping[tuple[str, str], float]
"""By approach (btu_based, threshold_based) and metric."""


def _both(means: Means, metric: str) -> tuple[float, float]:
    return known(means, ("btu_based", metric)), known(means, ("threshold_based", metric))


def _cheaper(means: Means) -> Answer:
    own, other = _both(means, "paid_btus_count")
    return own < other, f"BTU-based {own:.1f}, threshold {other:.1f}"


def _cheaper_than_constant(means: Means) -> Answer:
    constant = max(_both(means, "fixed_paid_btus_count"))
    own, other = _both(means, "paid_btus_count")
    figures = f"BTU-based {own:.1f}, threshold {other:.1f}, constant {constant:.1f}"
    return max(own, other) < constant, figures


def _compliance(means: Means, better: tuple[bool, ...]) -> Answer:
    """Whether the BTU-based approach complies better, or worse, level by level."""
    pairs = [_both(means, f"{level}_compliance_percent") for level in LEVEL_NAMES]
    holds = all(
        own > other if more else own < other
        for (own, other), more in zip(pairs, better, strict=True)
    )
    approaches = zip(*pairs, strict=True)
    btu, threshold = ("/".join(f"{percent:.1f}" for percent in levels) for levels in approaches)
    return holds, f"BTU-based {btu}, threshold {threshold} %"


_better_compliance = partial(_compliance, better=(True, True, True))
_mixed_compliance = partial(_compliance, better=(False, True, True))


def _early_releases(means: Means) -> Answer:
    own, other = _both(means, "vm_early_downscaling_count")
    return own == 0 < other, f"BTU-based {own:.1f}, threshold {other:.1f}"


def _fewer_scalings(means: Means) -> Answer:
    ups = _both(means, "operator_instance_up_count")
    downs = _both(means, "operator_instance_down_count")
    own, other = ups[0] + downs[0], ups[1] + downs[1]
    return own < other, f"BTU-based {own:.0f}, threshold {other:.0f}"


def _high_volume_operators(means: Means) -> Answer:
    own, other = _both(means, "real_time_gain_without_o2_o6_points")
    return 0 < own < other, f"BTU-based {own:+.1f}, threshold {other:+.1f} points"


def _slower_to_adapt(means: Means) -> Answer:
    own, other = _both(means, "time_to_adapt_mean_s")
    return own > other, f"BTU-based {own:.1f} s, threshold {other:.1f} s"
