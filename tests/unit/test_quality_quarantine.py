"""One bad run among ten: nine are published, the tenth is left out with reason and evidence.

Every run is measured for real. The bad one ends with the first look of the monitor, so nothing is
known of how it went on from there.
"""

from __future__ import annotations

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
from include.results.reports.summary import summary
from include.results.tables.build import build_tables
from include.results.tables.catalogue import PUBLISHED
from include.results.tables.quarantine import read_quarantine
from include.runs.stages import run_all
from tests.builders import run_spec
from tests.command_line import said

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.usefixtures("spark")]


def spec(seed: int, *, minutes: float, btu_min: float = 2) -> RunSpec:
    return run_spec(
        experiment="ten", controller="fixed", btu_min=btu_min, seed=seed, duration_min=minutes
    )


GOOD = [spec(seed, minutes=2) for seed in range(1, 10)]
BAD = spec(10, minutes=0.25, btu_min=1)
"""Its BTU is the shortest, so while it is there, it stands for those of the price books."""
NAMES = {run.run_id for run in GOOD}


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """The folder of the ten, measured, with bounds, and what the command line says of it.

    The short one as specs once allowed it.
    """
    root = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problems, "LEAST_READINGS", 1)
        for run in (*GOOD, BAD):
            run_all(run, root)
    said("bound", str(root / "ten"), "--no-floor")
    asked = ["report", str(root / "ten"), "--master", "local[1]"]
    return root / "ten", CliRunner().invoke(app, asked)


def test_a_reader_is_told_of_the_tenth_wherever_the_nine_are(reported: tuple[Path, Result]) -> None:
    ten, result = reported
    assert result.exit_code == 1
    assert isinstance(result.exception, GateFailed), result.output
    assert f"published without 1 run that did not pass: {BAD.run_id}." in str(result.exception)
    page = (ten / "published" / "report.html").read_text()
    assert f"left out: run {BAD.run_id} because" in page
    assert "<code>elasticity.run</code> Every measured run is in the table." in page
    assert f"left out: run {BAD.run_id} because\n" in summary(ten)
    manifest = json.loads((ten / "published" / "manifest.json").read_text())
    assert manifest["left_out"] == [BAD.run_id]
    assert {f"runs/{run}/run.json" for run in NAMES} < manifest["made_of"].keys()
    with sqlite3.connect(ten.parent / "results.db") as database:
        assert {run for (run,) in database.execute("SELECT run FROM runs")} == NAMES


def test_the_nine_are_published_as_if_the_tenth_had_never_been(
    reported: tuple[Path, Result], tmp_path: Path
) -> None:
    ten, _ = reported
    alone = shutil.copytree(ten, tmp_path / "ten")
    said("remove", str(alone), BAD.run_id)
    build_tables(alone, master="local[1]")
    assert read_quarantine(alone) == {}
    for table in PUBLISHED:
        file = f"staged/{table}.parquet"
        assert (alone / file).read_bytes() == (ten / file).read_bytes(), table
