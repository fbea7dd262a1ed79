"""A failed check is held against the runs of its rows, and against nobody where there are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from include.model.errors import GateFailed
from include.results.quality.expectations import CHECKED, suite_of
from include.results.quality.gates import ROWS_KEPT, by_run, can_go_on_without
from include.results.tables.catalogue import is_by_run
from include.results.tables.quarantine import Check, require_none_left_out, write_quarantine

RUNS = ["bad", "good"]


def a_check(table: str, *rows: dict[str, Any], columns: tuple[str, ...] = ("run",)) -> Check:
    return Check(
        table=table, columns=columns, expectation="made_up", sentence="So it is.",
        passed=not rows, rows=rows,
    )  # fmt: skip


@pytest.mark.parametrize("table", [table for table in CHECKED if is_by_run(table)])
def test_in_every_table_by_run_a_row_and_a_lack_of_rows_are_that_runs(table: str) -> None:
    wrong = a_check(table, {"value": -1, "run": "bad"}, columns=("value",))
    missing = a_check(table, {"missing": "bad"})
    fine = a_check(table)
    assert by_run([wrong, missing, fine]) == {"bad": (wrong, missing)}
    assert can_go_on_without(by_run([wrong, missing]), RUNS, [wrong, missing, fine])


@pytest.mark.parametrize("table", [table for table in CHECKED if not is_by_run(table)])
def test_tables_over_several_runs_blame_nobody_and_wait_for_the_rest(table: str) -> None:
    of_means = a_check(table, {"mean": -1}, columns=("mean",))
    assert by_run([of_means]) == {}
    assert not can_go_on_without({}, RUNS, [of_means])
    of_run = a_check("cost", {"run": "bad"})
    assert can_go_on_without(by_run([of_run]), RUNS, [of_run, of_means])


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ({"observed": ["run", "other"]}, ("run", "scope")),  # columns that are not the schema's
        ({"error": "no such column"}, ("run",)),
        ({"run": None, "scope": "O1"}, ("run",)),
        ({"missing": "x"}, ("scope",)),
    ],
)
def test_what_is_no_runs_fails_the_gate(rows: dict[str, Any], columns: tuple[str, ...]) -> None:
    nobodys = a_check("cost", rows, columns=columns)
    of_run = a_check("cost", {"run": "bad"})
    assert by_run([nobodys]) == {}
    assert not can_go_on_without(by_run([of_run]), RUNS, [of_run, nobodys])


def test_without_a_good_run_the_gate_fails() -> None:
    every = a_check("cost", {"run": "bad"}, {"run": "good"})
    assert set(by_run([every])) == set(RUNS)
    assert not can_go_on_without(by_run([every]), RUNS, [every])


def test_a_warning_is_held_against_no_run_and_fails_no_gate() -> None:
    warning = replace(a_check("cost", {"run": "bad"}), severity="warn")
    observed = replace(a_check("cost", {"observed": 1}), severity="warn")
    assert by_run([warning]) == {}
    of_run = a_check("cost", {"run": "bad"})
    assert can_go_on_without(by_run([of_run]), RUNS, [of_run, observed])


def test_of_each_run_only_its_own_rows_are_kept_and_not_too_many() -> None:
    rows = [{"run": run, "n": n} for n in range(ROWS_KEPT + 5) for run in RUNS]
    failed = by_run([a_check("timeline", *rows)])
    assert {row["run"] for row in failed["bad"][0].rows} == {"bad"}
    assert len(failed["bad"][0].rows) == ROWS_KEPT


@pytest.mark.spark
def test_that_a_table_is_not_empty_is_asked_of_runs_where_it_is_by_run() -> None:
    for table in CHECKED:
        kinds = {type(expectation).__name__ for expectation in suite_of(table, RUNS)}
        assert not (is_by_run(table) and "ExpectTableRowCountToBeBetween" in kinds), table
    every_run = suite_of("cost", RUNS)[4]
    assert every_run.configuration.kwargs["value_set"] == RUNS


def test_whoever_asks_for_every_run_hears_which_were_left_out(tmp_path: Path) -> None:
    require_none_left_out(tmp_path)  # nothing was built, nothing is left out
    (tmp_path / "staged").mkdir()
    write_quarantine(tmp_path / "staged", {})
    require_none_left_out(tmp_path)
    wrong = a_check("cost", {"run": "bad"})
    write_quarantine(tmp_path / "staged", {"worse": (wrong,), "bad": (wrong,)})
    with pytest.raises(GateFailed, match="published without 2 runs that did not pass: bad, worse"):
        require_none_left_out(tmp_path)
