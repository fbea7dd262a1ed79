"""One bad run among ten: nine are published, the tenth is left out with reason and evidence.

Every run is measured for real. The bad one ends with the first look of the monitor, so nothing is
known of how it went on from there.
"""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from include.cli import app
from include.experiment import problems
from include.experiment.spec import RunSpec
from include.model.errors import GateFailed
from include.results.quality.gates import check_tables
from include.results.reports.summary import summary
from include.results.tables.build import build_tables
from include.results.tables.catalogue import PUBLISHED, is_by_run
from include.results.tables.quarantine import read_quarantine
from include.results.tables.staged import read_staged
from include.runs.stages import run_all
from tests.builders import run_spec
from tests.command_line import said

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.usefixtures("spark")]


def spec(seed: int, *, minutes: float) -> RunSpec:
    return run_spec(
        experiment="ten", controller="fixed", btu_min=2, seed=seed, duration_min=minutes
    )


GOOD = [spec(seed, minutes=2) for seed in range(1, 10)]
BAD = spec(10, minutes=0.25)
NAMES = {run.run_id for run in GOOD}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the ten, measured, with bounds; the short one as specs once allowed it."""
    root = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problems, "LEAST_READINGS", 1)
        for run in (*GOOD, BAD):
            run_all(run, root)
    said("bound", str(root / "ten"), "--no-floor")
    return root / "ten"


@pytest.fixture(scope="module")
def reported(measured: Path) -> Result:
    """What the command line says when it reports on the ten."""
    return CliRunner().invoke(app, ["report", str(measured), "--master", "local[1]"])


@pytest.fixture(scope="module")
def ten(measured: Path, reported: Result) -> Path:
    """The folder of the ten, reported."""
    return measured


def test_the_command_line_publishes_the_nine_and_fails_for_the_tenth(
    ten: Path, reported: Result
) -> None:
    assert reported.exit_code == 1
    assert isinstance(reported.exception, GateFailed), reported.output
    assert f"published without 1 run that did not pass: {BAD.run_id}." in str(reported.exception)
    assert (ten / "published" / "report.html").is_file()


def test_nine_are_published_in_every_table(ten: Path) -> None:
    for table in filter(is_by_run, PUBLISHED):
        runs = {row["run"] for row in read_staged(ten, table)}
        may_lack = ("time_to_adapt", "rescales", "advisors", "advisors_timeline")
        assert runs == NAMES or (table in may_lack and runs <= NAMES), table
    for table in ("cells", "cost_parts_means"):
        assert {row["runs"] for row in read_staged(ten, table)} == {9}, table
    manifest = json.loads((ten / "published" / "manifest.json").read_text())
    assert {row["run"] for row in manifest["runs"]} == NAMES
    assert manifest["left_out"] == [BAD.run_id]
    with sqlite3.connect(ten.parent / "results.db") as database:
        assert {run for (run,) in database.execute("SELECT run FROM runs")} == NAMES


def test_a_reader_is_told_on_the_page_in_a_file_and_on_the_terminal(ten: Path) -> None:
    page = (ten / "published" / "report.html").read_text()
    assert f"left out: run {BAD.run_id} because" in page
    assert "<code>elasticity.run</code> Every measured run is in the table." in page
    with (ten / "published" / "quarantine.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["run"] for row in rows} == {BAD.run_id}
    assert ("elasticity", "run") in {(row["table"], row["columns"]) for row in rows}
    assert f"left out: run {BAD.run_id} because\n" in summary(ten)


def test_the_nine_are_published_as_if_the_tenth_had_never_been(ten: Path, tmp_path: Path) -> None:
    alone = shutil.copytree(ten, tmp_path / "ten")
    said("remove", str(alone), BAD.run_id)
    build_tables(alone, master="local[1]")
    assert read_quarantine(alone) == {}
    for table in PUBLISHED:
        file = f"staged/{table}.parquet"
        assert (alone / file).read_bytes() == (ten / file).read_bytes(), table


def test_a_check_repeated_says_the_same(ten: Path) -> None:
    before = json.loads((ten / "data_docs" / "verdict.json").read_text())
    assert json.loads(json.dumps(check_tables(ten))) == before
