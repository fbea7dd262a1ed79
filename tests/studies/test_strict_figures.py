"""Strict figures beside those of a source: what a starved operator would hide."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.experiment.spec import RunSpec
from include.studies import STUDIES, study_named
from include.studies.base import Study
from include.studies.publish import evaluate
from tests.builders_staged import change, restage, stage, tables_of


class Tiny(Study):
    name = experiment = "tiny"
    title = "A tiny study"
    claims = ()
    workload = "pattern"

    def runs(self, seeds=None):
        return [
            RunSpec(experiment="tiny", controller=controller, pattern="random_walk_1", btu_min=10,
                    seed=seed, duration_min=2)
            for controller in ("btu", "threshold")
            for seed in seeds or (1, 2)
        ]  # fmt: skip

    def read(self, measured):
        return None

    def cell_values(self, _):
        return [("random_walk_1", "btu", "own_count", [1.0])]

    def cell_of(self, run):
        return (run.pattern, run.controller) if run.controller == "btu" else None


STUDY = Tiny()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Staged tables of seeds 1 and 2 under both controllers."""
    folder = stage(tmp_path / "tiny")
    own = [tables_of(run.run_id, controller=run.controller, seed=run.seed) for run in STUDY.runs()]
    for table in own[0]:
        restage(folder, table, [row for tables in own for row in tables[table]])
    return folder


def test_cells_get_the_strict_figures_of_their_runs(folder: Path) -> None:
    change(folder, "outcomes", strict_relaxed_compliance_percent=50.0, unprocessed_items=38_799)
    of = {row["metric"]: row for row in evaluate(STUDY, folder).tables["cells"]}
    assert list(of["own_count"]) == ["pattern", "controller", "metric", "mean", "sigma", "runs"]
    assert all(list(row) == list(of["own_count"]) for row in of.values())
    assert {"strict_near_real_time_compliance_percent", "age_p95_ms"} <= set(of)
    strict, left = of["strict_relaxed_compliance_percent"], of["unprocessed_items"]
    assert (strict["pattern"], strict["controller"], strict["runs"]) == ("random_walk_1", "btu", 2)
    assert strict["mean"] < 75.0
    assert left["mean"] >= 38_799 / 2


def test_what_does_not_apply_to_a_run_is_left_out(folder: Path) -> None:
    for seed in (1, 2):
        rows = tables_of(STUDY.runs([seed])[0].run_id, seed=seed)["outcomes"]
        assert rows[0]["run"] in {run.run_id for run in STUDY.runs()}
    absent = [
        {**tables_of(run.run_id, controller=run.controller, seed=run.seed)["outcomes"][0],
         "age_p95_ms": None, "strict_total_cost": None}
        for run in STUDY.runs()
    ]  # fmt: skip
    restage(folder, "outcomes", absent)
    metrics = {row["metric"] for row in evaluate(STUDY, folder).tables["cells"]}
    assert "age_p95_ms" not in metrics
    assert "strict_relaxed_compliance_percent" in metrics


def test_a_study_that_names_no_cells_stays_as_it_is(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(STUDY, "cell_of", lambda _: None)
    own = evaluate(STUDY, folder).tables["cells"]
    assert [row["metric"] for row in own] == ["own_count"]


@pytest.mark.parametrize("name", sorted(set(STUDIES) - {"peerj141"}))
def test_every_study_names_the_cell_of_its_runs(name: str) -> None:
    study = study_named(name)
    cells = [study.cell_of(run) for run in study.runs([1])]
    assert any(cells)
    assert all(cell is None or all(cell) for cell in cells)
