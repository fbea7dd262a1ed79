"""Each claim of PVLDB 12(7) holds of figures in which it does, and fails of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from include.studies.base import ask
from include.studies.pvldb127.metrics import PvldbMetrics
from include.studies.pvldb127.published import (
    EVENTS,
    IMAGE_TIME,
    QUERY_TIME,
    SCENARIOS,
    VIOLATIONS,
    VM_TIME,
    WITHHELD,
)
from include.studies.pvldb127.study import STUDY

FIGURES = {
    VM_TIME: (8.0, 8.4, 8.9),
    EVENTS: (420.0, 300.0, 50.0),
    IMAGE_TIME: (2.7, 2.3, 1.4),
    QUERY_TIME: (0.6, 0.5, 0.3),
    VIOLATIONS: (54.0, 52.0, 47.0),
}
"""PURE, GW and EKF in every scenario, but for what is extreme in one."""
EXTREME = {
    ("square", VM_TIME): (8.0, 8.4, 8.6),
    ("lab", VM_TIME): (8.0, 8.4, 9.6),
    ("square", EVENTS): (420.0, 300.0, 30.0),
    ("square", VIOLATIONS): (54.0, 52.0, 40.0),
}
Changes = Mapping[tuple[str, str], tuple[float, float, float]]


def measured(changes: Changes | None = None, sigma: float = 0.05) -> PvldbMetrics:
    """Twenty runs of each, with curves in which EKF reacts at once and GW keeps its VMs."""
    figures = {(s, m): FIGURES[m] for s in SCENARIOS for m in FIGURES} | EXTREME
    found = {
        (scenario, name, metric): [
            values[rank] * (1 + sigma * side / 10) for side in range(-10, 11)
        ]
        for (scenario, metric), values in {**figures, **(changes or {})}.items()
        for rank, name in enumerate(("PURE", "GW", "EKF"))
    }
    return PvldbMetrics(found, curves())


def curves(quick: str = "EKF", keeps: tuple[str, ...] = ("GW", "EKF"), most: str = "EKF"):
    """VMs every half second on Pyramid."""
    found = {}
    for name in ("PURE", "GW", "EKF"):
        curve = np.full(5400, 12.0 if name == most else 10.0)
        for step_s in (130, 260, 390, 520):
            delay_s = 5 if name == quick else 40
            curve[2 * (step_s + delay_s) :] += 3
        if name not in keeps:
            curve[2 * 690 :] -= 3
        found["pyramid", name] = curve
    return found


def everywhere(metric: str, *values: float) -> Changes:
    return {(scenario, metric): values for scenario in SCENARIOS}


FAILS = {
    "vm-time-order": measured({("lab", VM_TIME): (8.0, 8.9, 8.4)}),
    "events-order": measured({("pyramid", EVENTS): (250.0, 300.0, 50.0)}),
    "image-order": measured({("square", IMAGE_TIME): (2.3, 2.7, 1.4)}),
    "query-order": measured({("lab", QUERY_TIME): (0.6, 0.3, 0.4)}),
    "fewest-violations": measured({("lab", VIOLATIONS): (46.0, 52.0, 47.0)}),
    "violations-order": measured({("lab", VIOLATIONS): (52.0, 54.0, 47.0)}),
    "events-by-80": measured({("lab", EVENTS): (420.0, 300.0, 70.0)}),
    "vm-time-increase": measured({("lab", VM_TIME): (8.0, 8.4, 10.6)}),
    "processing-reduction": measured({("lab", IMAGE_TIME): (2.7, 2.3, 1.8)}),
    "square-vm-time": measured({("square", VM_TIME): (8.0, 8.4, 9.5)}),
    "lab-vm-time": measured({("lab", VM_TIME): (8.0, 8.4, 8.5)}),
    "square-events": measured({("square", EVENTS): (420.0, 300.0, 59.0)}),
    "square-violations": measured({("square", VIOLATIONS): (54.0, 52.0, 51.0)}),
    "significant": measured(sigma=3.0),
    "asymmetric": replace(measured(), curves=curves(keeps=("PURE", "EKF"))),
    "more-vms": replace(measured(), curves=curves(most="GW")),
    "prompt": replace(measured(), curves=curves(quick="GW")),
}


@pytest.mark.parametrize(
    ("changes", "holds", "apart"),
    [
        ({("lab", IMAGE_TIME): (5.9, 5.3, 3.1)}, True, ""),
        ({("lab", IMAGE_TIME): (6.1, 5.3, 3.1)}, False, "lab PURE"),
        ({("pyramid", IMAGE_TIME): (2.7, 2.1, 0.74)}, False, "pyramid EKF"),
        # Of Square nothing is printed here: it is held against the other two scenarios.
        ({("square", IMAGE_TIME): (5.9, 5.3, 3.1)}, True, ""),
        ({("square", IMAGE_TIME): (36.0, 32.0, 6.1)}, False, "square PURE, square GW, square EKF"),
    ],
)
def test_an_order_counts_only_among_figures_like_those_of_the_paper(changes, holds, apart):
    answer, numbers = STUDY.predicates["image_order"](measured(changes))
    assert answer is holds
    assert "(printed 2.7/2.1/1.5), square" in numbers
    assert numbers.partition("times apart: ")[2] == apart


def test_violations_on_square_are_in_no_order():
    between = measured({("square", VIOLATIONS): (50.0, 52.0, 40.0)})
    assert STUDY.predicates["violations_order"](between)[0] is True
    assert STUDY.predicates["fewest_violations"](between)[0] is True


def test_vm_time_that_falls_is_no_moderate_increase():
    falls = measured(everywhere(VM_TIME, 9.0, 9.0, 8.0))
    holds, numbers = STUDY.predicates["vm_time_moderate"](falls)
    assert not holds
    assert "-11.1" in numbers


def test_claims_are_asked_of_pyramid_and_lab_alone_too():
    worse = measured({("square", IMAGE_TIME): (2.3, 2.7, 1.4)})
    rows = {row["id"]: row for row in STUDY.claims_of(worse)}
    assert (rows["image-order"]["holds"], rows["image-order"]["without_square"]) == ("no", "yes")
    about_square = {name for name, row in rows.items() if row["without_square"] == ""}
    assert about_square == {"square-vm-time", "square-events", "square-violations"}


def test_what_was_not_measured_of_square_leaves_the_others_known():
    found = measured()
    others = {key: cell for key, cell in found.cells.items() if key[0] != WITHHELD}
    rows = STUDY.claims_of(replace(found, cells=others))
    assert sum(row["without_square"] == "yes" for row in rows) == 14
    assert ask(STUDY.predicates["vm_time_order"], replace(found, cells=others))[0] == ""


def test_single_runs_say_nothing_about_significance():
    """They have no deviation, and a test without one would call every difference significant."""
    found = measured()
    first = {key: values[:1] for key, values in found.cells.items()}
    rows = {row["id"]: row["holds"] for row in STUDY.claims_of(replace(found, cells=first))}
    assert rows["significant"] == ""
