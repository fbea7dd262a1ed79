"""A study published: judged by what is staged, and only when that has passed its checks.

Beside the figures of a source stand strict ones: what a starved operator would hide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from include.experiment.spec import RunSpec
from include.results.tables.staged import read_staged
from include.runs.batch import run_batch
from include.studies import STUDIES, study_named, study_of
from include.studies.base import Study, StudyData, known
from include.studies.publish import conclude, evaluate, publish_experiment, publish_study
from tests.builders_staged import change, let_pass, restage, stage, tables_of

CLAIMS = [
    {
        "id": "cheap",
        "section": "1",
        "claim": "It costs < 100.",
        "published": "70",
        "predicate": "a",
    },
    {"id": "fast", "section": "2", "claim": "It is fast.", "published": "", "predicate": "b"},
]
PREDICATES = {
    "a": lambda cost: (max(cost.values()) < 100, f"{len(cost)} runs, {max(cost.values()):g}"),
    "b": lambda cost: (known(cost, "a run that nobody measured") < 1, "fast"),
}


class Tiny(Study):
    name = experiment = "tiny"
    title = "A tiny study"
    workload = "pattern"
    claims, predicates = CLAIMS, PREDICATES

    def runs(self, seeds=None):
        return [
            RunSpec(experiment="tiny", controller=controller, pattern="random_walk_1", btu_min=10,
                    seed=seed, duration_min=2)
            for controller in ("btu", "threshold")
            for seed in seeds or (1, 2, 3)
        ]  # fmt: skip

    def read(self, measured: StudyData) -> dict[int, float]:
        cost = {row["run"]: row["resource_cost"] for row in measured.tables["cost"]}
        return {run.seed: cost[run.run_id] for run in measured.runs}

    def tables(self, metrics):
        return {"order": [{"seed": seed} for seed in metrics]}

    def cell_values(self, _):
        return [("random_walk_1", "btu", "own_count", 1.0)]

    def cell_of(self, run):
        return (run.pattern, run.controller) if run.controller == "btu" else None


STUDY = Tiny()


def staged(folder: Path, runs: Sequence[RunSpec]) -> Path:
    """The staged tables of these runs, not yet passed."""
    own = [
        tables_of(run.run_id, controller=run.controller, seed=run.seed)
        for run in (replace(run, experiment=folder.name) for run in runs)
    ]
    for table in own[0]:
        restage(folder, table, [row for tables in own for row in tables[table]])
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Seeds 3 and 1 of the study under one controller, in a folder of another name."""
    runs = [run for run in STUDY.runs([3, 1]) if run.controller == "btu"]
    return staged(tmp_path / "nightly_tiny", runs)


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """Seeds 1 and 2 under both controllers."""
    return staged(tmp_path / "tiny", STUDY.runs([1, 2]))


def test_a_study_is_judged_by_its_staged_runs_in_its_own_order(folder: Path) -> None:
    results = evaluate(STUDY, folder)
    assert results.tables["order"] == [{"seed": 1}, {"seed": 3}]
    assert [row["holds"] for row in results.claims] == ["yes", ""]
    assert results.claims[0]["measured"].startswith("2 runs, ")


def test_tables_page_and_database_are_published_together(folder: Path, tmp_path: Path) -> None:
    from include.results.reports.results import Query, find_runs

    url = f"sqlite:///{tmp_path / 'results.db'}"
    publish_study(STUDY, let_pass(folder), url)
    published = {path.name for path in (folder / "published").iterdir()}
    assert {"claims.csv", "order.csv", "report.html", "manifest.json", "runs.parquet"} <= published
    assert (folder / "published" / "order.csv").read_text() == "seed\n1\n3\n"
    page = (folder / "published" / "report.html").read_text()
    assert "A tiny study" in page
    assert "It costs &lt; 100." in page
    assert "with seeds 1, 3" in page
    assert find_runs(url, Query(equal={"experiment": "nightly_tiny"})).total == 2


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_study_goes_from_its_runs_through_tables_and_gates_to_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("include.studies.publish.study_of", {"tiny": STUDY}.get)
    told: list[str] = []
    runs = STUDY.runs([5])
    run_batch(runs, tmp_path, processes=1)
    results = conclude(tmp_path / "tiny", [run.run_id for run in runs], say=told.append)
    assert results is not None
    assert told == ["building tables ...", "validating ...", "publishing ..."]
    assert results.tables["order"] == [{"seed": 5}]
    folder = tmp_path / "tiny"
    assert (folder / "data_docs" / "verdict.json").is_file()
    assert (folder / "published" / "order.csv").is_file()
    page = (folder / "published" / "report.html").read_text()
    assert "with seed 5, and" in page
    assert "✓ holds" in page
    assert (tmp_path / "results.db").is_file()


def test_a_mistake_in_a_predicate_publishes_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PREDICATES, "a", lambda cost: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        publish_study(STUDY, let_pass(folder), f"sqlite:///{tmp_path / 'r.db'}")
    assert not (folder / "published").exists()


def test_what_is_left_of_a_study_is_published_as_the_study(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_as = {folder.name: STUDY}
    monkeypatch.setattr("include.studies.publish.study_of", known_as.get)
    publish_experiment(let_pass(folder), f"sqlite:///{tmp_path / 'results.db'}")
    assert (folder / "published" / "claims.csv").is_file()
    assert "A tiny study" in (folder / "published" / "report.html").read_text()


@pytest.mark.parametrize("name", ["demo", "nightly_demo", "henge"])
def test_what_has_no_run_of_a_study_has_the_report_of_any(name: str, tmp_path: Path) -> None:
    folder = let_pass(stage(tmp_path / name))
    publish_experiment(folder, f"sqlite:///{tmp_path / 'results.db'}")
    assert (folder / "published" / "report.html").is_file()
    assert not (folder / "published" / "claims.csv").exists()


def test_every_study_is_known_by_its_experiment_and_by_its_nights() -> None:
    for name in STUDIES:
        study = study_named(name)
        assert study_of(study.experiment) is study
        assert study_of(f"nightly_{name}") is study
    assert study_of("demo") is None


def test_cells_get_the_strict_figures_of_their_runs(both: Path) -> None:
    change(both, "outcomes", strict_relaxed_compliance_percent=50.0, unprocessed_items=38_799)
    of = {row["metric"]: row for row in evaluate(STUDY, both).tables["cells"]}
    assert list(of["own_count"]) == ["pattern", "controller", "metric", "mean", "sigma", "runs"]
    assert all(list(row) == list(of["own_count"]) for row in of.values())
    assert {"strict_near_real_time_compliance_percent", "age_p95_ms"} <= set(of)
    strict, left = of["strict_relaxed_compliance_percent"], of["unprocessed_items"]
    assert (strict["pattern"], strict["controller"], strict["runs"]) == ("random_walk_1", "btu", 2)
    assert strict["mean"] < 75.0
    assert left["mean"] >= 38_799 / 2


def test_what_does_not_apply_to_a_run_is_left_out(both: Path) -> None:
    absent = [
        row | {"age_p95_ms": None, "strict_total_cost": None}
        for row in read_staged(both, "outcomes")
    ]
    restage(both, "outcomes", absent)
    metrics = {row["metric"] for row in evaluate(STUDY, both).tables["cells"]}
    assert "age_p95_ms" not in metrics
    assert "strict_relaxed_compliance_percent" in metrics


@pytest.mark.parametrize("name", sorted(set(STUDIES) - {"peerj141"}))
def test_every_study_names_the_cell_of_its_runs(name: str) -> None:
    study = study_named(name)
    assert all(all(study.cell_of(run) or [""]) for run in study.runs([1]))
