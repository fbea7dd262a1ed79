"""What a run was billed, taken apart: by hand, in general, and of a run that was measured."""

from __future__ import annotations

import csv
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from include.bounds.cover import cover_of
from include.bounds.parts import CostParts, HostUse, parts_of
from include.cli import app
from include.experiment.prices import PRICE_BOOKS
from include.experiment.run import Run, resolve
from include.experiment.spec import RunSpec
from include.tables.regret import has_parts

BOOK = PRICE_BOOKS["btu10"]
READINGS = 20


@pytest.fixture(scope="module")
def run() -> Run:
    spec = RunSpec(
        experiment="parts", controller="btu", pattern="random_walk_1", btu_min=10, seed=1,
        duration_min=20,
    )  # fmt: skip
    return resolve(spec)


def use(run: Run, each: int, hosts: int, leased: float, billed: float) -> HostUse:
    return HostUse(
        instances=np.full((len(run.topology.operator_names), READINGS), each),
        hosts=np.full(READINGS, hosts),
        leased_s=leased * run.spec.duration_s,
        billed=billed,
    )


def test_parts_are_the_steps_from_the_work_to_the_bill(run: Run) -> None:
    """Two instances of each of nine operators take three hosts; five have one, and six are leased
    for 20 minutes, two BTUs each, of which the bill has one more."""
    parts = parts_of(run, BOOK, use(run, 2, 5, 6.0, 13.0))

    foresight = parts.work + parts.whole_instances + parts.whole_hosts
    assert foresight == pytest.approx(2 * float(np.mean(cover_of(run).high)))
    assert foresight + parts.headroom == pytest.approx(2 * 3.0)
    assert parts.spread == pytest.approx(2 * 2.0)
    assert parts.empty == pytest.approx(2 * 1.0)
    assert parts.unused == pytest.approx(1.0)
    assert parts.total == pytest.approx(13.0)


def test_who_has_fewer_instances_than_the_work_takes_has_no_headroom(run: Run) -> None:
    parts = parts_of(run, BOOK, use(run, 1, 2, 2.0, 4.0))

    assert parts.headroom <= 0
    assert parts.total == pytest.approx(4.0)


def test_hosts_that_hold_more_than_first_fit_finds_have_no_spread(run: Run) -> None:
    parts = parts_of(run, BOOK, use(run, 2, 2, 2.0, 4.0))

    assert parts.spread == 0


def test_the_command_takes_every_measured_run_apart(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(
        "name: small\ncontrollers: [btu, fixed]\npatterns: random_walk_1\nbtus_min: 10\n"
        "price_books: [btu10, btu60]\nduration_min: 20\n"
    )
    root = ["--root", str(tmp_path)]
    assert CliRunner().invoke(app, ["run", str(tmp_path / "small.yaml"), *root]).exit_code == 0

    done = CliRunner().invoke(app, ["bound", str(tmp_path / "small"), "--no-floor", "--parts"])

    assert done.exit_code == 0, done.output
    with (tmp_path / "small" / "regret.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    assert len({row["run"] for row in rows}) == 2
    for row in rows:
        parts = CostParts(**{name: float(row[name]) for name in CostParts.__slots__})
        assert sum(astuple(parts)) == pytest.approx(float(row["billed"]))
        assert min(parts.work, parts.whole_instances, parts.whole_hosts) >= 0
        assert min(parts.spread, parts.empty, parts.unused) >= -1e-9
        assert row["run"] in done.output


def test_parts_are_of_what_was_run(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: a\n")

    done = CliRunner().invoke(app, ["bound", str(tmp_path / "a.yaml"), "--parts"])

    assert done.exit_code != 0
    assert "give the folder of an experiment" in str(done.exception)


def test_a_table_that_is_missing_is_told_and_never_a_bill_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(
        "name: small\ncontrollers: btu\npatterns: random_walk_1\nbtus_min: 10\nduration_min: 10\n"
    )
    root = ["--root", str(tmp_path)]
    assert CliRunner().invoke(app, ["run", str(tmp_path / "small.yaml"), *root]).exit_code == 0
    for path in (tmp_path / "small" / "measurements" / "lease").rglob("*.parquet"):
        path.unlink()

    done = CliRunner().invoke(app, ["bound", str(tmp_path / "small"), "--no-floor", "--parts"])

    assert done.exit_code != 0
    assert "has no rows" in str(done.exception)
    assert not (tmp_path / "small" / "regret.csv").exists()


def test_hosts_that_share_their_cpu_have_no_parts(run: Run) -> None:
    assert has_parts(run)
    assert not has_parts(replace(run, flavor=replace(run.flavor, cpu_shared=True)))
