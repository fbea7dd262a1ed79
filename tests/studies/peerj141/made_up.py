"""A made-up measurement of which every claim holds, and others of which one fails each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from include.studies.peerj141.metrics import Case, PeerjMetrics
from include.studies.peerj141.specs import BTUS_MIN, patterns

COMPLIANCE = {
    "real_time": ((51, 53, 55), 40),
    "near_real_time": ((86, 90, 93), 67),
    "relaxed": ((89, 93, 95), 68),
}
RESOURCE = ((72, 92, 98), (58, 79, 120))
TOTALS = {
    "real_time": ((158, 173, 174), (152, 174, 214)),
    "near_real_time": ((97, 108, 109), (110, 131, 172)),
    "relaxed": ((91, 103, 105), (104, 125, 165)),
}
MINUTES = range(120)


def level(minute: float) -> float:
    """Two machines and six, eight minutes each."""
    return 2.0 if (minute // 8) % 2 == 0 else 6.0


def cells() -> dict[tuple[str, str, float, str], float]:
    found: dict[tuple[str, str, float, str], float] = {}
    for pattern in patterns():
        for i, btu in enumerate(BTUS_MIN):
            for name, (own, other) in COMPLIANCE.items():
                found[pattern, "btu", btu, f"{name}_compliance"] = own[i]
                found[pattern, "threshold", btu, f"{name}_compliance"] = other
            for name, (own, others) in TOTALS.items():
                found[pattern, "btu", btu, f"{name}_total_cost"] = own[i]
                found[pattern, "threshold", btu, f"{name}_total_cost"] = others[i]
            found[pattern, "btu", btu, "resource_cost"] = RESOURCE[0][i]
            found[pattern, "threshold", btu, "resource_cost"] = RESOURCE[1][i]
    return found


def instances(pattern: str, policy: str, btu: float, minute: float) -> float:
    follows = 1.0 if policy == "threshold" or btu == 10 else 0.4 - btu / 300
    if (pattern, policy) == ("random_walk_2", "btu"):
        follows *= 2
    grows = minute / 6 if minute < 60 else (minute - 60) / 6
    return 20 + follows * level(minute) + grows * (policy == "btu") * (btu / 60)


def good() -> PeerjMetrics:
    """Measurements of which every claim holds."""
    curves, activities = {}, {}
    for pattern in patterns():
        for policy in ("btu", "threshold"):
            for btu in BTUS_MIN:
                case = (pattern, policy, btu)
                hosts = 9.0 if policy == "btu" else 8.0
                rows = [(m, level(m), hosts, instances(*case, m)) for m in MINUTES]
                curves[case] = rows
                activities[case] = [5.0 if policy == "threshold" else 4.0 - btu / 30] * 120
    return PeerjMetrics(cells(), activities, curves)


def with_cells(**changes: float) -> Callable[[PeerjMetrics], PeerjMetrics]:
    """Other figures of every pattern: ``btu_10_resource_cost=50``."""

    def change(metrics: PeerjMetrics) -> PeerjMetrics:
        found = dict(metrics.cells)
        for name, value in changes.items():
            policy, btu, metric = name.split("_", 2)
            for pattern in patterns():
                found[pattern, policy, float(btu), metric] = value
        return replace(metrics, cells=found)

    return change


def with_compliance(pattern: str, points: float) -> Callable[[PeerjMetrics], PeerjMetrics]:
    """One pattern complies otherwise than the others at one BTU."""
    key = (pattern, "btu", 30.0, "relaxed_compliance")
    return lambda metrics: replace(
        metrics, cells={**metrics.cells, key: metrics.cells[key] + points}
    )


def busy(policy: str, btu: float, per_minute: float, from_min: int = 0):
    """More instances scaled or moved, from a minute on."""

    def change(metrics: PeerjMetrics) -> PeerjMetrics:
        found = dict(metrics.activities)
        for pattern in patterns():
            before = list(found[pattern, policy, btu])[:from_min]
            found[pattern, policy, btu] = [*before, *[per_minute] * (120 - from_min)]
        return replace(metrics, activities=found)

    return change


def redrawn(
    row: Callable[[Case, float], tuple[float, float]],
) -> Callable[[PeerjMetrics], PeerjMetrics]:
    """Other hosts and instances."""

    def change(metrics: PeerjMetrics) -> PeerjMetrics:
        found = {
            case: [(m, machines, *row(case, m)) for m, machines, _, _ in rows]
            for case, rows in metrics.curves.items()
        }
        return replace(metrics, curves=found)

    return change


def grown_at_one_level(case: Case, minute: float) -> tuple[float, float]:
    """The counterexample of a growth that is only the load: more in the high phases."""
    return 8.0, 20 + (minute / 10 if level(minute) == 6 else 0)


def falls_with_the_load(case: Case, minute: float) -> tuple[float, float]:
    """Instances follow the load: they fall at minute 64 and not at 60."""
    return 8.0, 20 + 3 * level(minute)


def unfollowed(case: Case, minute: float) -> tuple[float, float]:
    """With BTU60 as well as with BTU30."""
    follows = 3.0 if case[1] == "threshold" or case[2] == 10 else 1.0
    return 8.0, 20 + minute / 10 + follows * level(minute)


FAILING: dict[str, Callable[[PeerjMetrics], PeerjMetrics]] = {
    "compliance-higher": with_cells(btu_10_real_time_compliance=39),
    "gain-range": with_cells(btu_60_near_real_time_compliance=99),
    "over-90": with_cells(btu_30_near_real_time_compliance=89),
    "compliance-rises": with_cells(btu_60_relaxed_compliance=93),
    "scalings-fall": busy("btu", 60.0, 3.0),
    "scalings-fewer": busy("btu", 30.0, 6.0),
    "resource-higher": with_cells(btu_30_resource_cost=78),
    "resource-lower": with_cells(btu_60_resource_cost=121),
    "total-higher": with_cells(btu_10_real_time_total_cost=151),
    "total-lower": with_cells(btu_30_real_time_total_cost=175),
    "largest-saving": with_cells(btu_10_relaxed_total_cost=20),
    "more-instances": redrawn(lambda case, m: (8.0, 22 if case[1] == "btu" else 21)),
    "instances-grow": redrawn(grown_at_one_level),
    "cut-back": redrawn(falls_with_the_load),
    "no-more-hosts": redrawn(lambda _, m: (8.0 if m < 100 else 9.0, 20)),
    "like-stepwise": with_compliance("random_walk_1", 3),
    "long-btus-detach": redrawn(unfollowed),
    "better-aligned": redrawn(lambda _, m: (8.0, 20 + m + level(m))),
    "scalings-fewer-late": busy("btu", 10.0, 6.0, from_min=60),
    "same-everywhere": with_compliance("two_level", 4),
    "low-real-time": with_cells(threshold_10_real_time_compliance=43),
    "meets-requirements": with_cells(btu_10_near_real_time_compliance=83),
}
