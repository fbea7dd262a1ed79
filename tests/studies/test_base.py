"""What every study shares: outcomes, claims, runs and CSV files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from include.model.errors import SpecError
from include.results.tables.staged import Rows
from include.studies import ALIASES, STUDIES, printed, study_named
from include.studies.base import ClaimCase, Study, ask, cells_of, known
from include.studies.fugu.predicates import DAYS
from include.studies.henge.metrics import HengeMetrics
from include.studies.preprint.study import PreprintMetrics
from include.studies.pvldb127.published import SCENARIOS
from tests.studies.fugu import test_study as fugu
from tests.studies.henge import test_claims as henge
from tests.studies.live import test_study as live
from tests.studies.peerj141 import made_up as peerj141
from tests.studies.preprint import test_study as preprint
from tests.studies.pvldb127 import test_claims as pvldb127

CLAIMS = [
    {"id": "C1", "section": "4", "claim": "it is fast", "published": "3 s", "predicate": "fast"},
    {"id": "C2", "section": "5", "claim": "it is small", "published": "", "predicate": "small"},
]
PREDICATES = {
    "fast": lambda metrics: (metrics["s"] < 4, f"{metrics['s']} s"),
    "small": lambda metrics: (known(metrics, "mb") < 1, "small"),
}


class Tiny(Study):
    claims, predicates = CLAIMS, PREDICATES


rows_for = Tiny().claims_of


def test_a_claim_holds_fails_or_is_unknown():
    assert [row["holds"] for row in rows_for({"s": 3})] == ["yes", ""]
    assert [row["holds"] for row in rows_for({"s": 5, "mb": 0.5})] == ["no", "yes"]
    assert rows_for({"s": 5})[0] == {
        "id": "C1", "section": "4", "claim": "it is fast", "published": "3 s", "holds": "no",
        "measured": "5 s", "apart": "", "because": "",
    }  # fmt: skip


def test_a_claim_says_what_sets_it_apart():
    study = Tiny()
    study.claims = [{**CLAIMS[0], "contradicted": "Table 2 has 5 s"}]
    (row,) = study.claims_of({"s": 3})
    assert (row["apart"], row["because"]) == ("contradicted", "Table 2 has 5 s")


def test_cells_are_means_over_runs_with_their_sample_deviation():
    cell = ("p", "btu")
    rows = cells_of(
        [(*cell, "cost_usd", 1.0), (*cell, "hosts_count", 2.0), (*cell, "cost_usd", 3.0)]
    )
    assert rows == [
        {"scenario": "p", "controller": "btu", "metric": "cost_usd", "mean": 2.0,
         "sigma": pytest.approx(2**0.5), "runs": 2},
        {"scenario": "p", "controller": "btu", "metric": "hosts_count", "mean": 2.0,
         "sigma": None, "runs": 1},
    ]  # fmt: skip


@pytest.mark.parametrize("error", [KeyError, ZeroDivisionError, ValueError])
def test_only_a_figure_that_is_not_known_is_unknown(error):
    def broken():
        raise error("a mistake")

    with pytest.raises(error):
        ask(broken)


def test_cases_name_themselves_in_columns():
    class OfSeeds(Tiny):
        claims = CLAIMS[:1]

        def cases(self, metrics, _):
            return [ClaimCase(({"s": n},), {"seed": n}) for n in metrics]

        def beside(self, predicate, case):
            return {"next": ask(predicate, {"s": case.about["seed"] + 1})[0]}

    rows = OfSeeds().claims_of([3, 5])
    assert [(row["id"], row["seed"], row["holds"], row["next"]) for row in rows] == [
        ("C1", 3, "yes", "no"), ("C1", 5, "no", "no"),
    ]  # fmt: skip


def test_csv_files_have_twelve_digits_and_nothing_for_what_is_not_known():
    rows: Rows = [{"a": 8.1234567890123, "b": None, "c": True}, {"a": "x,y", "b": 3, "c": "no"}]
    assert Tiny().csv_files({"t": rows})["t.csv"] == 'a,b,c\n8.12345678901,,True\n"x,y",3,no\n'


def test_a_table_without_rows_is_a_file_only_where_its_columns_are_known():
    tables: dict[str, Rows] = {"claims": [], "drift": [], "cells": []}
    assert study_named("fugu").csv_files(tables) == {}
    assert set(study_named("peerj141").csv_files(tables)) == {"drift.csv", "cells.csv"}


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_runs_of_its_own_experiment(name):
    study = study_named(name)
    runs = study.runs([7])
    assert study.name == name
    assert runs
    assert {(run.seed, run.experiment) for run in runs} == {(7, study.experiment)}
    assert len({run.run_id for run in runs}) == len(runs)
    assert len({study_named(one).experiment for one in STUDIES}) == len(STUDIES)


@pytest.mark.parametrize("name", STUDIES)
def test_every_claim_has_a_predicate_and_an_id_of_its_own(name):
    study = study_named(name)
    assert all(map(callable, study.predicates.values()))
    assert len({claim["id"] for claim in study.claims}) == len(study.claims)


HOLDING_AND_FAILING: dict[str, Callable[[str], Iterable[Any]]] = {
    "fugu": fugu.holding_and_failing,
    "henge": lambda claim: map(HengeMetrics, henge.HOLDS_AND_FAILS[claim]),
    "live": lambda _: (live.off_by(), live.off_by(points=5.1, instances=1.6)),
    "peerj141": lambda claim: (
        {"ours": one} for one in (peerj141.good(), peerj141.FAILING[claim](peerj141.good()))
    ),
    "preprint": preprint.holding_and_failing,
    "pvldb127": lambda claim: (pvldb127.measured(), pvldb127.FAILS[claim]),
}
"""By study, metrics of which a claim holds in every case, and of which it does not in one."""


@pytest.mark.parametrize(
    ("name", "claim"),
    [(name, claim["id"]) for name in STUDIES for claim in study_named(name).claims],
)
def test_every_claim_of_a_study_can_hold_and_can_fail(name, claim):
    held, failed = (
        {row["holds"] for row in study_named(name).claims_of(metrics) if row["id"] == claim}
        for metrics in HOLDING_AND_FAILING[name](claim)
    )
    assert held == {"yes"}
    assert "no" in failed


@pytest.mark.parametrize(
    ("name", "metrics", "workloads", "controllers", "units", "runs"),
    [
        ("fugu", fugu.the_paper(), {*DAYS}, {"fugu-sarsa (imp 0.5)"}, "_ms _share _count", 2),
        ("henge", HengeMetrics(henge.R60), {"tenants_linear_60"}, {"henge"}, "_percent _count", 2),
        ("preprint", PreprintMetrics(preprint.figures()), {"stepwise"},
         {preprint.OF["btu_based"][3]}, "_count _percent _points _s", 2),
        ("pvldb127", pvldb127.measured(), {*SCENARIOS},
         {"kalman-pure", "kalman-weierstrass", "kalman-ekf"}, "_h _s _count _thousands", 21),
    ],
)  # fmt: skip
def test_cells_name_workload_controller_and_unit(
    name, metrics, workloads, controllers, units, runs
):
    study = study_named(name)
    cells = study.results_of(metrics).tables["cells"]
    assert {row[study.workload] for row in cells} == workloads
    assert controllers <= {row["controller"] for row in cells}
    assert all(row["metric"].endswith(tuple(units.split())) for row in cells)
    assert {row["runs"] for row in cells} == {runs}


def test_a_study_is_found_by_its_name_or_alias():
    assert study_named("kalman") is study_named("pvldb127")
    assert set(ALIASES).isdisjoint(STUDIES)
    with pytest.raises(SpecError, match=r"kalmann.*kalman"):
        study_named("kalmann")


def test_what_sources_print_is_known_of_their_own_workload_only():
    run = {
        "controller": "threshold", "pattern": "stepwise", "btu_min": 10.0, "conditions": "",
        "variant": "",
        "topology": "manufacturing",
    }  # fmt: skip
    figure = printed(run, "resource_cost", 10.0)
    assert figure is not None
    assert figure.mean == 58.0
    assert printed({**run, "topology": "cell_images"}, "resource_cost", 10.0) is None
    assert printed({**run, "conditions": "faults"}, "resource_cost", 10.0) is None
    assert printed({**run, "variant": "interval_s=5"}, "resource_cost", 10.0) is None
    own = {**run, "controller": "btu"}
    assert printed(own, "resource_cost", 10.0) is not None
    assert printed(own, "resource_cost", 30.0) is None, "priced at its own BTU only"
