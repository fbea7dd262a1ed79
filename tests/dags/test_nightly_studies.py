"""Nightly studies: they measure anew, and hear of every bit that drifted."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from include.experiment.spec import RunSpec
from include.files.whole import write_json
from include.model.errors import GateFailed
from include.runs.stages import store_of
from include.studies import study_named, study_of
from include.studies.base import Study
from include.studies.drift import CELL_COLUMNS, baselines, drift
from include.studies.nightly import (
    begin_night,
    drift_sentences,
    keep_night,
    require_no_drift,
    runs_of_night,
)
from include.studies.page import StudyResults
from tests.dags.ends import execute, fails_for_good

CELL = {
    "pattern": "stepwise", "controller": "btu", "btu_min": 10.0, "metric": "resource_cost",
    "mean": 100.0, "sigma": 0.0, "runs": 3,
}  # fmt: skip
Cells = list[Mapping[str, Any]]


@pytest.fixture
def folder(data_root: Path) -> Path:
    """The folder of a nightly study."""
    return data_root / "nightly_peerj141"


@pytest.fixture
def study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """Three runs of PeerJ CS 141 with committed cells that a test may write."""
    study = copy(study_named("peerj141"))
    few = study.runs()[:3]
    monkeypatch.setattr(study, "runs", lambda _: few)
    monkeypatch.setattr(study, "baseline", folder.parent / "committed.csv")
    return study


def measure(study: Study, folder: Path, bits: str) -> None:
    """Every run of the night, complete; the first one with these bits."""
    for index, run in enumerate(runs_of_night(study)):
        parts = [{"path": "part-000.parquet", "sha256": "same" if index else bits}]
        manifest = {"spec_hash": "same", "parts": parts}
        write_json(folder / "runs" / run.run_id / "manifest.json", manifest)


def judge(study: Study, folder: Path, cells: Cells, night: str) -> str:
    """What a night that measured these cells fails for, after keeping it; empty when nothing."""
    held = baselines(folder, study.baseline)
    rows = [row for baseline in held for row in drift(baseline, cells)]
    results = StudyResults(tables={"claims": [], "cells": cells, "drift": rows})
    keep_night(study, results, folder, night)
    assert len(drift_sentences(study, results, folder)) == len(held)
    try:
        require_no_drift(study, results, folder)
    except GateFailed as error:
        return str(error)
    return ""


def spend(
    study: Study, folder: Path, night: str, *, bits: str = "same", cells: Cells | None = None
) -> str:
    begin_night(folder, night)
    measure(study, folder, bits)
    return judge(study, folder, cells or [CELL], night)


def resolve(*chosen: str, **more: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """Experiments and cells of a night with these studies."""
    from tidebench.studies import ChooseStudies, ResolveStudies

    context: Any = {"run_id": "tonight", "params": {"studies": list(chosen), **more}}
    experiments = execute(ChooseStudies(task_id="choose_studies"), **context)
    task = ResolveStudies(task_id="resolve_matrix", experiments=experiments)
    return experiments, execute(task, **context)


def test_everything_is_measured_anew_in_one_cell_per_workload_and_controller(
    study: Study, folder: Path
) -> None:
    measure(study, folder, "same")
    experiments, cells = resolve("peerj141")

    runs = runs_of_night(study_named("peerj141"))
    assert experiments == ["nightly_peerj141"]
    assert [text for cell in cells for text in cell["runs"]] == [run.to_json() for run in runs]
    assert len({cell["name"] for cell in cells}) == len(cells) == 16
    assert {run.experiment for run in runs} == {"nightly_peerj141"}
    assert [run for run in runs if store_of(run, folder.parent).manifest.is_file()] == []


def test_a_night_may_have_several_studies(data_root: Path) -> None:
    experiments, cells = resolve("kalman", "fugu", "pvldb127")
    assert experiments == ["nightly_pvldb127", "nightly_fugu"]
    runs = [RunSpec.from_json(text) for cell in cells for text in cell["runs"]]
    assert {run.experiment for run in runs} == set(experiments)
    assert len({cell["name"] for cell in cells}) == len(cells)


def test_a_night_may_be_a_part_of_a_study_apart_from_the_whole(data_root: Path) -> None:
    experiments, cells = resolve("peerj141", seeds="25-26", patterns=["stepwise"])
    runs = [RunSpec.from_json(text) for cell in cells for text in cell["runs"]]
    assert experiments == ["nightly_peerj141_part"]
    assert {run.experiment for run in runs} == set(experiments)
    assert {(run.pattern, run.seed) for run in runs} == {("stepwise", 25), ("stepwise", 26)}
    assert study_of("nightly_peerj141_part") is study_named("peerj141")


@pytest.mark.parametrize(
    ("params", "message"),
    [({"seeds": "3-1"}, "3-1 goes down"), ({"patterns": ["stepwse"]}, "Did you mean 'stepwise'")],
)
def test_a_part_that_cannot_be_is_told_at_once(params: dict[str, Any], message: str) -> None:
    with fails_for_good(match=message):
        resolve("peerj141", **params)


def test_a_night_without_a_study_or_with_an_unknown_one_fails_for_good() -> None:
    with fails_for_good(match="no study is chosen"):
        resolve()
    with fails_for_good(match="fuguu"):
        resolve("fuguu")


def test_a_study_without_cells_is_held_against_the_bits_of_last_night(
    data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_named("fugu")
    few = study.runs()[:3]
    monkeypatch.setattr(study, "runs", lambda _: few)
    folder, results = data_root / "nightly_fugu", StudyResults(tables={"claims": []})
    for night, bits in (("first", "same"), ("second", "same"), ("third", "other")):
        begin_night(folder, night)
        measure(study, folder, bits)
        keep_night(study, results, folder, night)
        sentences = drift_sentences(study, results, folder)
        assert [("Bit-identical" in sentence) for sentence in sentences] == {
            "first": [], "second": [True], "third": [False],
        }[night]  # fmt: skip
    with pytest.raises(GateFailed, match="runs differ; no cell moved"):
        require_no_drift(study, results, folder)


def test_a_cell_that_moved_is_named_with_what_to_do(study: Study, folder: Path) -> None:
    spend(study, folder, "first")
    cells = [CELL | {"mean": 101.0}, CELL | {"btu_min": 30.0, "mean": 7.0}]
    reason = spend(study, folder, "second", bits="other", cells=cells)
    assert "1 runs differ; 2 of 2 cells moved" in reason
    assert "accept_drift" in reason
    assert "stepwise, btu, BTU 10, resource_cost: 100.0000, now 101.0000" in reason
    assert "stepwise, btu, BTU 30, resource_cost: absent, now 7.0000" in reason


def test_a_night_is_held_against_the_one_before_it_however_often_it_is_judged(
    study: Study, folder: Path
) -> None:
    spend(study, folder, "first")
    drifted = spend(study, folder, "second", bits="other")
    assert judge(study, folder, [CELL], "second") == drifted
    assert spend(study, folder, "second", bits="other") == drifted, "begun again"
    assert spend(study, folder, "third", bits="other") == ""


def test_a_night_that_came_to_no_verdict_is_not_last_night(study: Study, folder: Path) -> None:
    spend(study, folder, "first")
    begin_night(folder, "broken")
    measure(study, folder, "other")
    assert spend(study, folder, "third") == ""
    assert "1 runs differ" in spend(study, folder, "fourth", bits="other")


def test_a_night_does_not_begin_with_runs_of_another(
    study: Study, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spend(study, folder, "first")

    def denied(*_: Any, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError("runs")

    monkeypatch.setattr("shutil.rmtree", denied)
    with pytest.raises(PermissionError):
        begin_night(folder, "second")


def test_a_cell_that_is_not_the_committed_one_fails_every_night(study: Study, folder: Path) -> None:
    committed = ",".join(str(CELL[name]) for name in CELL_COLUMNS)
    assert study.baseline is not None
    study.baseline.parent.mkdir(parents=True, exist_ok=True)
    study.baseline.write_text(f"{','.join(CELL_COLUMNS)}\n{committed}\n")
    assert spend(study, folder, "first") == ""
    moved = [CELL | {"mean": 100.1}]
    for night in ("second", "third"):
        reason = spend(study, folder, night, cells=moved)
        assert "Against the committed baseline: 1 of 1 cells moved, at most by 0.10 %." in reason
    assert "stored" not in reason


def test_many_cells_that_moved_are_counted(study: Study, folder: Path) -> None:
    cells = [CELL | {"btu_min": float(btu_min)} for btu_min in range(30)]
    spend(study, folder, "first", cells=cells)
    moved = [cell | {"mean": 2.0} for cell in cells]
    reason = spend(study, folder, "second", bits="other", cells=moved)
    assert reason.count("BTU ") == 20
    assert "and 10 more, see drift.csv" in reason
