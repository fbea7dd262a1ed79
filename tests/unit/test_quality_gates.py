"""The gate lets good tables pass and names what is wrong with bad ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from include.model.errors import GateFailed, SetupError, StoreError
from include.results.quality.expectations import CHECKED, suite_of
from include.results.quality.gates import check_tables
from include.results.quality.verdict import passed_verdict, verdict_path
from include.results.reports.publish import publish
from include.results.tables.catalogue import (
    INPUT_CHECKS,
    PUBLISHED,
    is_by_run,
    read_sql_yaml,
    schema_of,
)
from include.results.tables.staged import read_staged, staged_path
from tests.builders_staged import RUN, change, restage, stage, tables_of
from tidebench.page.checks import checks_of

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("table", CHECKED)
def test_checks_name_columns_of_their_table(table: str) -> None:
    suite = suite_of(table, [RUN])
    names = ("column", "column_A", "column_B")
    asked = {
        expectation.configuration.kwargs.get(name) for expectation in suite for name in names
    } - {None}
    assert asked <= set(schema_of(table).column_names)
    assert len(suite) > len(schema_of(table).key) + 2, "it is checked for more than its form"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"witin": ["leases"], "lowest": 0}, "within"),
        ({"within": ["leases"]}, "lowest"),
        ({"within": ["leases"], "lowest": 0, "severity": "note"}, "a severity fail or warn"),
    ],
)
def test_a_check_that_is_none_is_named_with_its_file(
    entry: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("include.results.quality.expectations.read_sql_yaml", lambda *_: [entry])
    with pytest.raises(SetupError, match=rf"sql/tables/cost/checks\.yaml: .*{message}"):
        suite_of("cost", [RUN])


def test_a_warning_leaves_no_run_out_and_stands_in_verdict_data_docs_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stage(tmp_path / "demo")
    entries = {"cost": [{"within": ["paid_btus"], "lowest": 4, "severity": "warn"}]}
    monkeypatch.setattr(
        "include.results.quality.expectations.read_sql_yaml",
        lambda table, name: entries.get(table) or read_sql_yaml(table, name),
    )
    verdict = check_tables(folder)
    assert verdict["passed"]
    assert not verdict["quarantined"]
    (warned,) = [check for check in verdict["checks"] if not check["passed"]]
    assert (warned["severity"], warned["sentence"]) == ("warn", "paid_btus is at least 4.")
    assert {row["paid_btus"] for row in warned["rows"]} == {3}
    shown = next((folder / "data_docs" / "validations" / "cost").rglob("*.html")).read_text()
    assert "Failed" in shown
    publish(folder, f"sqlite:///{tmp_path / 'results.db'}")
    page = (folder / "published" / "report.html").read_text()
    assert "1 with a warning" in page
    assert "<code>cost.paid_btus</code> paid_btus is at least 4." in page
    shown_by_airflow: Any = checks_of(tmp_path, "demo")
    (of_cost,) = [table for table in shown_by_airflow["tables"] if table["name"] == "cost"]
    assert (of_cost["failed"], of_cost["warned"]) == (0, 1)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Tables that were checked, and the verdict; a test that changes them takes a copy."""
    folder = stage(tmp_path_factory.mktemp("good") / "demo")
    return folder, check_tables(folder)


def test_good_tables_pass_and_leave_data_docs(good: tuple[Path, dict[str, Any]]) -> None:
    folder, verdict = good
    assert verdict["passed"]
    assert {check["table"] for check in verdict["checks"]} == {*PUBLISHED, INPUT_CHECKS}
    assert json.loads(verdict_path(folder).read_text()) == json.loads(json.dumps(verdict))
    assert passed_verdict(folder)["passed"]


def test_data_docs_are_read_without_a_network(good: tuple[Path, dict[str, Any]]) -> None:
    folder, verdict = good
    pages = list((folder / "data_docs").rglob("*.html"))
    for page in pages:
        text = page.read_text()
        assert not re.findall(r"<script|<link|<img|url\(", text), page
        assert "border-collapse: collapse" in text.split("</head>")[0]
        assert str(folder) not in text
    index = (folder / "data_docs" / "index.html").read_text()
    linked = [folder / "data_docs" / name for name in re.findall(r'href="([^"]+)"', index)]
    assert len(linked) == len({check["table"] for check in verdict["checks"]})
    assert set(linked) < set(pages)


def test_what_is_bad_or_missing_is_named_down_to_the_row(tmp_path: Path) -> None:
    folder = stage(tmp_path / "demo")
    change(folder, "compliance", relaxed_compliance_percent=120.0)
    change(folder, "cost", resource_cost=-1.0, regret=0.0)
    change(folder, "timeline", ready_instances=10)
    change(folder, "runs", spec_hash="")
    change(folder, INPUT_CHECKS, measured=3.0)
    change(folder, "outcomes", strict_total_cost=None)
    restage(folder, "scaling_total", read_staged(folder, "scaling_total") * 2)
    (run,) = read_staged(folder, "runs")
    restage(folder, "runs", [run, {**run, "run": "lost"}])
    restage(folder, "elasticity", [])
    staged_path(folder, "decisions").write_bytes(staged_path(folder, "utilisation").read_bytes())
    with pytest.raises(GateFailed) as caught:
        check_tables(folder)
    message = str(caught.value)
    assert "compliance.relaxed_compliance_percent: " in message
    assert f"relaxed_compliance_percent=120.0, run={RUN}, scope=O1" in message
    assert "cost.resource_cost: resource_cost is at least 0." in message
    assert f"resource_cost=-1.0, run={RUN}, price_book=btu10" in message
    assert "cost.regret: regret is above 0." in message
    assert "timeline.instances/ready_instances: " in message
    assert "runs.spec_hash: " in message
    assert "strict_total_cost: strict_total_cost is never missing." in message
    assert "check=hosts leased twice, measured=3.0" in message
    assert "scaling_total.run: One row per run." in message
    assert "compliance.run: Every measured run is in the table." in message
    assert "missing=lost" in message
    every = "elasticity.run: Every measured run is in the table."
    assert f"missing={RUN}" in message.split(every)[1]
    columns = "run/action/reason/accepted/decisions"
    assert f"decisions.{columns}: The columns are those of the schema." in message
    assert "nothing was published" in message
    assert "resource_cost is at least 0." in (folder / "data_docs" / "index.html").read_text()
    assert not json.loads(verdict_path(folder).read_text())["passed"]
    with pytest.raises(GateFailed, match="did not pass"):
        passed_verdict(folder)


def test_a_table_that_was_not_built_is_named(tmp_path: Path) -> None:
    folder = stage(tmp_path / "demo")
    staged_path(folder, "cost").unlink()
    with pytest.raises(StoreError, match=r"cost\.parquet is missing. Build the tables first"):
        check_tables(folder)


@pytest.mark.usefixtures("spark")
def test_each_run_that_fails_is_left_out_with_what_it_failed_and_the_good_one_passes(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "demo"
    names = ("value", "pair", "twice", "lacking", "counted", "good")
    each = {run: tables_of(run) for run in (*names, "unmeasured")}
    each["value"]["cost"][1]["resource_cost"] = -1.0
    each["pair"]["timeline"][3]["ready_instances"] = 10
    each["twice"]["scaling_total"] *= 2
    each["lacking"]["elasticity"] = []
    each["counted"][INPUT_CHECKS][0]["measured"] = 3.0
    for table in CHECKED:
        rows = [row for run in names for row in each[run][table]]
        if table == "decisions":
            rows += each["unmeasured"][table]
        restage(folder, table, rows if is_by_run(table) else each["good"][table])
    verdict = check_tables(folder)
    assert verdict["passed"]
    rows_by_check = {
        run: [(check["table"], check["columns"]) for check in checks]
        for run, checks in verdict["quarantined"].items()
    }
    assert rows_by_check == {
        "value": [("cost", ("resource_cost", "begun_cost")), ("cost", ("resource_cost",))],
        "pair": [("timeline", ("instances", "ready_instances"))],
        "twice": [("scaling_total", ("run",))],
        "lacking": [("elasticity", ("run",))],
        "counted": [(INPUT_CHECKS, ("highest", "measured"))],
        "unmeasured": [("decisions", ("run",))],
    }
    _, negative = verdict["quarantined"]["value"]
    assert negative["rows"] == ({"resource_cost": -1.0, "run": "value", "price_book": "btu30"},)
    for table in filter(is_by_run, CHECKED):
        left = {"good"} if each["good"][table] else set()
        assert {row["run"] for row in read_staged(folder, table)} == left, table
    assert {row["runs"] for row in read_staged(folder, "means")} == {1}
    assert passed_verdict(folder)["quarantined"].keys() == rows_by_check.keys()
