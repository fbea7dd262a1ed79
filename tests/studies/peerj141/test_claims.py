"""Claims: asked of the paper's own tables and of made-up measurements."""

from __future__ import annotations

import pytest

from include.studies.peerj141.metrics import PeerjMetrics, metrics_of_paper, metrics_of_runs
from include.studies.peerj141.specs import patterns
from include.studies.peerj141.study import STUDY

PAPER = metrics_of_paper()


def answers(metrics: PeerjMetrics, claim: str) -> dict[str, str]:
    rows = STUDY.claims_of({"ours": metrics})
    return {row["pattern"]: row["holds"] for row in rows if row["id"] == claim}


ASKED_OF = {
    "Two-level data arrival pattern": {"two_level"},
    "Random walk 1 data arrival pattern": {"random_walk_1"},
    "Random walk 2 data arrival pattern": {"random_walk_2"},
}
"""By section; the others speak of every pattern."""


@pytest.mark.parametrize("claim", STUDY.claims, ids=lambda claim: claim["id"])
def test_a_claim_is_asked_of_the_patterns_of_its_section(claim):
    together = claim["id"] == "same-everywhere"
    asked = {"all"} if together else ASKED_OF.get(claim["section"], set(patterns()))
    assert set(answers(PAPER, claim["id"])) == asked


def test_every_claim_says_where_it_stands_and_what_was_found():
    rows = STUDY.claims_of({"ours": PAPER})
    columns = (
        "id", "section", "claim", "pattern", "controller", "published", "holds", "measured",
        "apart", "because",
    )  # fmt: skip
    assert all(tuple(row) == columns for row in rows)


def test_where_the_text_contradicts_its_own_tables():
    """Tables 3 and 5 do not bear out everything that the text says about them."""
    rows = STUDY.claims_of({"paper": PAPER})
    failing = {(row["id"], row["pattern"]) for row in rows if row["holds"] == "no"}
    assert failing == {
        ("gain-range", "stepwise"),
        ("gain-range", "random_walk_1"),
        ("total-higher", "random_walk_1"),
        ("total-lower", "stepwise"),
    }
    marked = {(row["id"], row["pattern"]) for row in rows if row["apart"] == "contradicted"}
    assert marked == failing
    assert {row["published"] for row in rows} == {row["measured"] for row in rows}


def test_what_the_paper_does_not_print_is_not_known():
    assert answers(PAPER, "scalings-fall")["stepwise"] == ""


def curve(*instances: float, hosts: float = 2):
    """Two machines for an hour, six for another; instances per half hour."""
    return [
        (minute, 2.0 if minute < 60 else 6.0, hosts, instances[minute // 30])
        for minute in range(120)
    ]


def test_alignment_is_the_correlation_with_the_load():
    case = ("p", "btu", 60.0)
    assert PeerjMetrics({}, curves={case: curve(1, 1, 3, 3)}).alignment(case) == pytest.approx(1)
    assert PeerjMetrics({}, curves={case: curve(3, 3, 1, 1)}).alignment(case) == pytest.approx(-1)
    assert PeerjMetrics({}, curves={case: curve(2, 2, 2, 2)}).alignment(case) == 0


def test_metrics_of_runs_average_over_seeds_and_know_one_controller():
    runs = [
        {"run": name, "controller": controller, "pattern": "p", "btu_min": 10.0}
        for name, controller in (
            ("a", "btu"),
            ("b", "btu"),
            ("c", "btu-runtime"),
            ("t", "threshold"),
        )
    ]
    timeline = [
        {"run": run, "time_s": 60.0, "level_machines": 2.0, "instances": n, "hosts": 1}
        for run, n in (("a", 4), ("b", 6), ("c", 99), ("t", 3))
    ]
    scaling = [
        {"run": run, "minute": 0, "upscaling": n, "downscaling": 1, "migrations": 0}
        for run, n in (("a", 2), ("b", 4), ("c", 99), ("t", 7))
    ]
    cells = [
        {
            "pattern": "p",
            "controller": name,
            "btu_min": btu,
            "metric": "resource_cost",
            "mean": mean,
        }
        for name, mean in (("btu", 5.0), ("btu-runtime", 9.0), ("threshold", 4.0))
        for btu in (10.0, 30.0)
    ]
    tables = {"runs": runs, "timeline": timeline, "scaling": scaling, "cells": cells}
    metrics = metrics_of_runs(tables, "btu")
    assert metrics.cell("p", "btu", 10.0, "resource_cost") == 5.0
    assert metrics.instances(("p", "btu", 10.0), 0, 2) == 5
    assert metrics.scalings("p", "btu", 10.0) == 4
    assert metrics.scalings("p", "threshold", 30.0) == 8
