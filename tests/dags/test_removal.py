"""The tasks of the DAG `remove_runs`, on runs that are stored and published here."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.results.reports.publish import publish
from include.results.reports.results import runs_of
from include.runs.measurements.store import RunStore
from tests.builders_staged import RUN, let_pass, stage
from tests.dags.ends import execute, fails_for_good, is_skipped


@pytest.fixture
def folder(data_root: Path) -> Path:
    """A published run, and one that is stored only."""
    folder = let_pass(stage(data_root / "demo"))
    publish(folder, url(folder))
    for run in (RUN, "other"):
        manifest = RunStore(folder, run).manifest
        manifest.parent.mkdir(parents=True)
        manifest.write_text("{}")
    return folder


def url(folder: Path) -> str:
    return f"sqlite:///{folder.parent / 'results.db'}"


def resolve(*runs: str, experiment: str = "demo") -> list[str]:
    from tidebench.removal import ResolveRuns

    params = {"experiment": experiment, "runs": list(runs)}
    return execute(ResolveRuns(task_id="resolve_runs", experiment=experiment), params=params)


def remove(*runs: str) -> None:
    from tidebench.removal import RemoveRuns

    execute(RemoveRuns(task_id="remove_runs", experiment="demo", run_ids=list(runs)))


def test_a_name_that_is_not_there_is_told_before_anything_is_waited_for(folder: Path) -> None:
    with fails_for_good(match=r"unknown run 'othr'. Did you mean 'other'"):
        resolve(RUN, "othr")
    assert resolve(RUN, "other", RUN) == [RUN, "other"]


@pytest.mark.parametrize("name", ["../demo", "demo/../demo", ".", "", "/demo", "Demo", "demo\n"])
def test_what_no_experiment_is_called_is_refused_in_words(folder: Path, name: str) -> None:
    with fails_for_good(match="use up to 64 small letters, digits, - and _"):
        resolve(RUN, experiment=name)


def test_the_form_as_it_opens_is_refused_with_both_names_that_it_lacks(data_root: Path) -> None:
    from dags.remove_runs import PARAMS
    from tidebench.removal import ResolveRuns

    params = {name: field["default"] for name, field in PARAMS.items()}
    resolve_runs = ResolveRuns(task_id="resolve_runs", experiment=str(params["experiment"]))
    with fails_for_good(match=r"digits, - and _.*, got ''\n(.|\n)*no run is named"):
        execute(resolve_runs, params=params)
    assert not list(data_root.iterdir())


def test_without_a_name_of_a_run_nothing_is_asked_for(folder: Path) -> None:
    with fails_for_good(match="no run is named"):
        resolve()


def test_runs_are_removed_and_a_repetition_finds_nothing_to_do(folder: Path) -> None:
    remove(RUN)
    remove(RUN)
    assert [path.name for path in (folder / "runs").iterdir()] == ["other"]
    assert runs_of(url(folder), "demo") == []


def test_without_a_run_there_is_no_report_to_build(folder: Path) -> None:
    from tidebench.spark import BuildTables

    remove(RUN, "other")
    assert not (folder / "published").exists()
    with is_skipped(match="no complete run is left"):
        execute(BuildTables(task_id="build_tables", experiment="demo"))
