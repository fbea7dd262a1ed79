"""A study published: judged by what is staged, and only when that has passed its checks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from include.experiment.spec import RunSpec
from include.model.errors import GateFailed, StoreError
from include.studies import STUDIES, study_named, study_of
from include.studies.base import Study, StudyData, known
from include.studies.publish import evaluate, publish_experiment, publish_study
from tests.builders_staged import let_pass, restage, stage, tables_of

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
    claims, predicates = CLAIMS, PREDICATES

    def runs(self, seeds=None):
        return [
            RunSpec(experiment="tiny", controller="btu", pattern="random_walk_1", btu_min=10,
                    seed=seed, duration_min=2)
            for seed in seeds or (1, 2, 3)
        ]  # fmt: skip

    def read(self, measured: StudyData) -> dict[int, float]:
        cost = {row["run"]: row["resource_cost"] for row in measured.tables["cost"]}
        return {run.seed: cost[run.run_id] for run in measured.runs}

    def tables(self, metrics):
        return {"order": [{"seed": seed} for seed in metrics]}


STUDY = Tiny()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Staged tables of seeds 3 and 1 of the study, in a folder of another name, not yet passed."""
    folder = tmp_path / "nightly_tiny"
    first, other = ({**_dims(run)} for run in _named(STUDY.runs([1, 3]), folder.name))
    both = [tables_of(one["run"], seed=one["seed"]) for one in (other, first)]
    stage(folder)
    for table in both[0]:
        restage(folder, table, [row for tables in both for row in tables[table]])
    return folder


def _named(specs: list[RunSpec], experiment: str) -> list[RunSpec]:
    return [replace(spec, experiment=experiment) for spec in specs]


def _dims(run: RunSpec) -> dict[str, object]:
    return {"run": run.run_id, "seed": run.seed}


def test_a_study_is_judged_by_its_staged_runs_in_its_own_order(folder: Path) -> None:
    results = evaluate(STUDY, folder)
    assert results.tables["order"] == [{"seed": 1}, {"seed": 3}]
    assert [row["holds"] for row in results.claims] == ["yes", ""]
    assert results.claims[0]["measured"].startswith("2 runs, ")


def test_nothing_is_published_of_tables_that_were_not_checked(folder: Path, tmp_path: Path) -> None:
    with pytest.raises((GateFailed, StoreError)):
        publish_study(STUDY, folder, f"sqlite:///{tmp_path / 'results.db'}")
    assert not (folder / "published").exists()
    assert not (tmp_path / "results.db").exists()


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
