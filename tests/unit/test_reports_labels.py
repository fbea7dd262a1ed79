"""Tags, notes and the archive beside the results: kept, found, and gone with their run."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from include.model.errors import SpecError
from include.results.reports.database import Publication, removed_rows, sent_rows
from include.results.reports.labels import Change, change_labels, tags_in
from include.results.reports.results import Query, find_runs, read_runs
from include.runs.measurements.origin import DagRun
from tests.builders_staged import tables_of

RUNS = {"cheap": 10.0, "fair": 50.0, "dear": 90.0}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Three runs of two experiments that differ in cost, BTU, seed, testbed and date."""
    url = f"sqlite:///{tmp_path / 'results.db'}"
    for number, (name, cost) in enumerate(RUNS.items()):
        tables = tables_of(name, seed=number + 1)
        tables["outcomes"][0] |= {"strict_total_cost": cost}
        tables["runs"][0] |= {
            "btu_min": 10.0 * (number + 1), "testbed": "docker" if number else "simulated",
        }  # fmt: skip
        del tables["input_checks"]
        publication = Publication(
            experiment="one" if number < 2 else "two", edition=name, checks=1,
            by=DagRun("experiment", "m"), published_at=f"2026-01-0{number + 1}T12:00:00+00:00",
        )  # fmt: skip
        with sent_rows(url, publication, tables):
            pass
    return url


def names(url: str, **asked: object) -> set[str]:
    return {str(row["run"]) for row in find_runs(url, Query(**asked)).runs}


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        ({"ranges": {"cost_from": 50.0}}, {"fair", "dear"}),
        ({"ranges": {"cost_to": 50.0}}, {"cheap", "fair"}),
        ({"ranges": {"cost_from": 20.0, "cost_to": 60.0}}, {"fair"}),
        ({"ranges": {"date_from": "2026-01-02"}}, {"fair", "dear"}),
        ({"ranges": {"date_from": "2026-01-02", "date_to": "2026-01-02"}}, {"fair"}),
        ({"equal": {"btu_min": 20.0}}, {"fair"}),
        ({"equal": {"seed": 3}}, {"dear"}),
        ({"equal": {"testbed": "docker"}, "ranges": {"cost_to": 60.0}}, {"fair"}),
    ],
)
def test_filters_on_cost_date_btu_seed_and_testbed(
    url: str, asked: dict[str, object], runs: set[str]
) -> None:
    assert names(url, **asked) == runs


def test_nobody_has_said_anything_of_a_run_until_somebody_does(url: str) -> None:
    (row,) = find_runs(url, Query(equal={"seed": 1})).runs
    assert (row["tags"], row["note"], bool(row["archived"])) == ("", "", False)
    assert find_runs(url, Query(tag="paper")).total == 0
    assert find_runs(url, Query(shown="archived")).total == 0


def test_what_is_said_of_a_run_is_found_again_and_changes_no_other(url: str) -> None:
    labels = Change(tags=["paper", "draft_2"], note="It was cold.\nVery.")
    assert change_labels(url, [("one", "cheap"), ("one", "none")], labels, "ada") == 1
    assert change_labels(url, [("one", "cheap"), ("two", "dear")], Change(add_tags=["x"]), "a") == 2
    (tables,) = read_runs(url, [("one", "cheap")])
    assert tables is not None
    (row,) = tables["runs"]
    assert row["tags"].split() == ["paper", "draft_2", "x"]
    assert (row["note"], row["changed_by"]) == ("It was cold.\nVery.", "a")
    assert names(url, tag="paper") == {"cheap"}
    assert names(url, tag="x") == {"cheap", "dear"}
    assert names(url, tag="draft%2") == set(), "a tag is no pattern"
    assert names(url, tag="pape") == set(), "and no part of one"
    assert find_runs(url, Query()).tags == ["draft_2", "paper", "x"]


def test_an_archived_run_is_left_out_until_it_is_asked_for(url: str) -> None:
    change_labels(url, [("one", "fair")], Change(archived=True), "ada")
    assert names(url) == {"cheap", "dear"}
    assert names(url, shown="archived") == {"fair"}
    assert names(url, shown="all") == set(RUNS)
    assert read_runs(url, [("one", "fair")]) != [None], "its page is there all the same"
    change_labels(url, [("one", "fair")], Change(archived=False), "ada")
    assert names(url) == set(RUNS)


def test_publishing_again_leaves_labels_and_removing_a_run_removes_them(
    url: str, tmp_path: Path
) -> None:
    change_labels(url, [("two", "dear")], Change(tags=["keep"]), "ada")
    tables = tables_of("dear")
    del tables["input_checks"]
    with sent_rows(url, Publication(experiment="two", edition="2", checks=1), tables):
        pass
    assert names(url, tag="keep") == {"dear"}
    with removed_rows(url, "two", ["dear"]):
        pass
    with sqlite3.connect(tmp_path / "results.db") as database:
        assert database.execute("SELECT count(*) FROM labels").fetchone() == (0,)


def test_where_nothing_is_published_nothing_is_kept(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    assert change_labels(url, [("one", "cheap")], Change(archived=True), "ada") == 0


def test_tags_are_words_and_every_problem_is_told_at_once(url: str) -> None:
    assert tags_in("Paper, #draft  paper") == ["paper", "draft"]
    with pytest.raises(SpecError) as refused:
        tags_in("a' -b <c> " + " ".join(f"t{k}" for k in range(12)))
    assert len(refused.value.problems) == 4
    change_labels(url, [("one", "cheap")], Change(tags=[f"t{k}" for k in range(12)]), "ada")
    with pytest.raises(SpecError, match="at most 12 tags"):
        change_labels(url, [("one", "cheap")], Change(add_tags=["one-more"]), "ada")
    with pytest.raises(SpecError, match="at most 2000 letters"):
        change_labels(url, [("one", "cheap")], Change(note="x" * 2001), "ada")
