"""What is asked behind the claims: each predicate is about one pattern, says yes or no, and why.

``BTUS`` are the BTUs of the evaluation in minutes; "points" are percentage points of compliance
as the paper prints it. A figure that is not known raises NotKnown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations, pairwise
from statistics import fmean

from include.model.compliance import LEVEL_NAMES
from include.studies.base import Answer
from include.studies.peerj141.metrics import PeerjMetrics
from include.studies.peerj141.specs import patterns

BTUS = (10.0, 30.0, 60.0)
AROUND_POINTS = 2.5
"""How far "around 40 %" reaches, and "around 50-55 %"."""

_SHORT = {"real_time": "rt", "near_real_time": "nrt", "relaxed": "rel"}


def _each(
    of: Callable[[str, float], float],
    levels: Sequence[str] = LEVEL_NAMES,
    btus: Sequence[float] = BTUS,
) -> dict[tuple[str, float], float]:
    """A figure by level and BTU."""
    return {(level, btu): of(level, btu) for level in levels for btu in btus}


def _gains(metrics: PeerjMetrics, pattern: str) -> dict[tuple[str, float], float]:
    """Compliance of the BTU-based approach minus that of the threshold, in printed points."""
    own, other = (partial(metrics.compliance, pattern, name) for name in ("btu", "threshold"))
    return _each(lambda level, btu: own(level, btu) - other(level, btu))


def _share(metrics: PeerjMetrics, pattern: str, level: str, btu_min: float) -> float:
    """Compliance of the BTU-based approach, as it is known."""
    return metrics.cell(pattern, "btu", btu_min, f"{level}_compliance")


def _extra_percent(metrics: PeerjMetrics, pattern: str, metric: str, btu_min: float) -> float:
    """How much more the BTU-based approach costs than the threshold, in percent."""
    own = metrics.cell(pattern, "btu", btu_min, metric)
    return 100 * (own / metrics.cell(pattern, "threshold", btu_min, metric) - 1)


def _extra_totals(metrics: PeerjMetrics, pattern: str) -> dict[tuple[str, float], float]:
    """The same of total costs, by level and BTU."""
    return _each(lambda level, btu: _extra_percent(metrics, pattern, f"{level}_total_cost", btu))


def _better_compliance(metrics: PeerjMetrics, pattern: str) -> Answer:
    gains = _gains(metrics, pattern)
    return min(gains.values()) > 0, "gain " + _levels(gains, "{:+g}") + " points"


def _gain_range(metrics: PeerjMetrics, pattern: str) -> Answer:
    gains = _gains(metrics, pattern)
    least, most = min(gains, key=lambda k: gains[k]), max(gains, key=lambda k: gains[k])
    holds = gains["real_time", 10.0] == gains[least] and gains["relaxed", 60.0] == gains[most]
    return holds, f"least {_gain(least, gains)}, most {_gain(most, gains)}"


def _gain(key: tuple[str, float], gains: Mapping[tuple[str, float], float]) -> str:
    return f"{gains[key]:g} ({_SHORT[key[0]]}, BTU{key[1]:g})"


def _over_90(metrics: PeerjMetrics, pattern: str) -> Answer:
    shares = _each(partial(_share, metrics, pattern), LEVEL_NAMES[1:], BTUS[1:])
    return min(shares.values()) >= 90, _levels(shares, "{:.1f}") + " %"


def _rises_with_btu(metrics: PeerjMetrics, pattern: str) -> Answer:
    shares = _each(partial(_share, metrics, pattern))
    holds = all(shares[lv, a] < shares[lv, b] for lv in LEVEL_NAMES for a, b in pairwise(BTUS))
    return holds, _levels(shares, "{:.1f}") + " %"


def _fewer_scalings_with_btu(metrics: PeerjMetrics, pattern: str) -> Answer:
    counts = [metrics.scalings(pattern, "btu", btu) for btu in BTUS]
    return all(a > b for a, b in pairwise(counts)), _by_btu(counts, "{:.0f}")


def _fewer_than_threshold(
    metrics: PeerjMetrics, pattern: str, btus: Sequence[float], from_min: int
) -> Answer:
    counts = [metrics.scalings(pattern, "btu", btu, from_min) for btu in btus]
    other = metrics.scalings(pattern, "threshold", btus[0], from_min)
    return max(counts) < other, f"{_by_btu(counts, '{:.0f}', btus)}; threshold {other:.0f}"


_fewer_scalings_than_threshold = partial(_fewer_than_threshold, btus=BTUS[1:], from_min=0)
_fewer_scalings_in_second_half = partial(_fewer_than_threshold, btus=BTUS, from_min=60)


def _short_btus_cost_more(metrics: PeerjMetrics, pattern: str) -> Answer:
    extra = [_extra_percent(metrics, pattern, "resource_cost", btu) for btu in BTUS[:2]]
    return min(extra) > 0, _by_btu(extra, "{:+.1f} %", BTUS[:2])


def _btu60_costs_less(metrics: PeerjMetrics, pattern: str) -> Answer:
    extra = _extra_percent(metrics, pattern, "resource_cost", 60.0)
    return extra < 0, f"BTU60 {extra:+.1f} %"


def _btu10_real_time_costs_more(metrics: PeerjMetrics, pattern: str) -> Answer:
    extra = _extra_percent(metrics, pattern, "real_time_total_cost", 10.0)
    return extra > 0, f"rt BTU10 {extra:+.1f} %"


def _others_cost_less(metrics: PeerjMetrics, pattern: str) -> Answer:
    extra = _extra_totals(metrics, pattern)
    del extra["real_time", 10.0]
    return max(extra.values()) < 0, _levels(extra, "{:+.1f}") + " %"


def _largest_saving(metrics: PeerjMetrics, pattern: str) -> Answer:
    saving = {key: -extra for key, extra in _extra_totals(metrics, pattern).items()}
    most = max(saving, key=lambda key: saving[key])
    numbers = f"most {saving[most]:.1f} % ({_SHORT[most[0]]}, BTU{most[1]:g})"
    return most == ("near_real_time", 60.0), numbers


def _more_instances(metrics: PeerjMetrics, pattern: str) -> Answer:
    """Computational resources, as the text has it: hosts, and what runs on them."""
    cases = [(pattern, policy, 60.0) for policy in ("btu", "threshold")]
    own, other = (metrics.instances(case, 0, 120) for case in cases)
    own_hosts, other_hosts = (fmean(metrics.hosts(case, 0, 120)) for case in cases)
    numbers = (
        f"mean hosts {own_hosts:.1f}, threshold {other_hosts:.1f}; "
        f"instances {own:.1f}, threshold {other:.1f}"
    )
    return own > other and own_hosts > other_hosts, numbers


def _instances_grow(metrics: PeerjMetrics, pattern: str) -> Answer:
    """At the same load: both in the low and in the high phases (8 minutes each) by one or more."""
    case = (pattern, "btu", 60.0)
    grown = {
        name: metrics.instances(case, last, last + 8) - metrics.instances(case, first, first + 8)
        for name, first, last in (("high", 24, 40), ("low", 32, 48))
    }
    numbers = (
        f"high level {grown['high']:+.1f} from minutes 24-32 to 40-48, "
        f"low level {grown['low']:+.1f} from minutes 32-40 to 48-56"
    )
    return min(grown.values()) >= 1, numbers


def _cut_at_60(metrics: PeerjMetrics, pattern: str) -> Answer:
    """By a tenth or more, though the load is high before and after (minutes 56 to 64)."""
    case = (pattern, "btu", 60.0)
    before, after = metrics.instances(case, 56, 59), metrics.instances(case, 60, 63)
    return after <= 0.9 * before, f"minutes 56 to 59 {before:.1f}, minutes 60 to 63 {after:.1f}"


def _no_hosts_after_80(metrics: PeerjMetrics, pattern: str) -> Answer:
    hosts = metrics.hosts((pattern, "btu", 60.0), 80, 119)
    return max(hosts) <= hosts[0], f"minute 80 {hosts[0]:.1f}, highest after {max(hosts):.1f}"


def _off(metrics: PeerjMetrics, pairs: Iterable[tuple[str, str]]) -> tuple[int, str]:
    """By how many printed points the compliance of two patterns differs at most, and where."""
    off = {
        (pattern, other, policy, level, btu): abs(
            metrics.compliance(pattern, policy, level, btu)
            - metrics.compliance(other, policy, level, btu)
        )
        for pattern, other in pairs
        for policy in ("btu", "threshold")
        for level in LEVEL_NAMES
        for btu in BTUS
    }
    most = max(off, key=lambda key: off[key])
    pattern, other, policy, level, btu = most
    where = f"{policy}, {_SHORT[level]}, BTU{btu:g}, {pattern} and {other}"
    return off[most], f"at most {off[most]:g} points ({where})"


def _like_stepwise(metrics: PeerjMetrics, pattern: str) -> Answer:
    off, where = _off(metrics, [(pattern, "stepwise")])
    return off < 3, where


def _same_everywhere(metrics: PeerjMetrics, _: str) -> Answer:
    """Of all patterns: every two once."""
    off, where = _off(metrics, combinations(patterns(), 2))
    return off <= 3, where


def _long_btus_detach(metrics: PeerjMetrics, pattern: str) -> Answer:
    align = [metrics.alignment((pattern, "btu", btu)) for btu in BTUS]
    other = metrics.alignment((pattern, "threshold", 10.0))
    holds = min(align[0], other) > align[1] > align[2]
    return holds, f"correlation {_by_btu(align, '{:.2f}')}; threshold {other:.2f}"


def _better_aligned(metrics: PeerjMetrics, pattern: str) -> Answer:
    own = [metrics.alignment((pattern, "btu", btu)) for btu in BTUS]
    other = [metrics.alignment(("random_walk_1", "btu", btu)) for btu in BTUS]
    holds = all(a > b for a, b in zip(own, other, strict=True))
    numbers = f"correlation {_by_btu(own, '{:.2f}')}; random walk 1 {_by_btu(other, '{:.2f}')}"
    return holds, numbers


def _low_real_time(metrics: PeerjMetrics, pattern: str) -> Answer:
    own = [metrics.cell(pattern, "btu", btu, "real_time_compliance") for btu in BTUS]
    other = metrics.cell(pattern, "threshold", 10.0, "real_time_compliance")
    holds = abs(other - 40) <= AROUND_POINTS and all(
        50 - AROUND_POINTS <= share <= 55 + AROUND_POINTS for share in own
    )
    return holds, f"{_by_btu(own, '{:.1f}')}; threshold {other:.1f} %"


def _meets_requirements(metrics: PeerjMetrics, pattern: str) -> Answer:
    shares = _each(partial(metrics.compliance, pattern, "btu"), LEVEL_NAMES[1:])
    holds = min(shares.values()) >= 84 and max(shares.values()) <= 95
    return holds, _levels(shares, "{:g}") + " %"


def _levels(values: Mapping[tuple[str, float], float], form: str) -> str:
    """Values by level, the BTUs of a level separated by slashes."""
    return ", ".join(
        f"{_SHORT[level]} "
        + "/".join(form.format(value) for (own, _), value in values.items() if own == level)
        for level in dict.fromkeys(level for level, _ in values)
    )


def _by_btu(values: Sequence[float], form: str, btus: Sequence[float] = BTUS) -> str:
    return ", ".join(
        f"BTU{btu:g} {form.format(value)}" for btu, value in zip(btus, values, strict=True)
    )
