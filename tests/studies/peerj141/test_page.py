"""The page of the reproduction, also of a part of its matrix and of more than it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from include.files.whole import write_json
from include.model.errors import GateFailed
from include.runs import batch
from include.studies import publish, study_named
from include.studies.base import Study
from include.studies.drift import baselines
from include.studies.publish import evaluate
from tests.builders_staged import restage, tables_of
from tests.command_line import said


def stage_part(study: Study, folder: Path, pattern: str, *others: Mapping[str, Any]) -> list[str]:
    """Stage made-up tables of the runs on a pattern at a BTU of 10, with those of other runs;
    returns the ids of all of them."""
    own = [
        tables_of(run.run_id, controller=run.controller, pattern=pattern, seed=25)
        for run in (replace(run, experiment=folder.name) for run in study.runs([25]))
        if run.pattern == pattern and run.btu_min == 10
    ]
    own += others
    for table in own[0]:
        restage(folder, table, [row for tables in own for row in tables[table]])
    elasticity = [row | {"scope": "overall"} for tables in own for row in tables["elasticity"]]
    restage(folder, "elasticity", elasticity)
    runs = [tables["runs"][0]["run"] for tables in own]
    keep_manifests(folder, runs)
    return runs


def keep_manifests(folder: Path, runs: Iterable[str]) -> None:
    """As of complete runs without rows."""
    for run in runs:
        write_json(folder / "runs" / run / "manifest.json", {"spec_hash": "", "parts": []})


def test_a_part_without_a_stored_figure_is_not_reproduced(tmp_path: Path) -> None:
    """No table of two_level is stored; ``hpa`` is none of its controllers."""
    study, folder = study_named("peerj141"), tmp_path / "reproduction"
    hpa = tables_of("hpa-two_level", controller="hpa", pattern="two_level", seed=25)
    stage_part(study, folder, "two_level", hpa)
    results = evaluate(study, folder)
    text = {section.name: section.text for section in results.sections}["judgement"]
    assert text[0].startswith("The paper is not reproduced")
    assert "btu-runtime, compliance on fitted patterns: no stored figure was measured" in text
    with pytest.raises(GateFailed, match="0 of 0 published cells"):
        study.require_reproduced(results)


def test_a_baseline_is_of_the_runs_that_the_checks_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that they left out are no part of what the next reproduction is held against it by."""
    study, folder = study_named("peerj141"), tmp_path / "reproduction"
    counting = stage_part(study, folder, "two_level")
    keep_manifests(folder, (run.run_id for run in study.runs([25])))
    monkeypatch.setattr(batch, "run_batch", lambda *_, **__: [])
    monkeypatch.setattr(publish, "conclude", lambda *_, **__: evaluate(study, folder))

    said("reproduce", "--root", tmp_path, "--seeds", "25", "--set-baseline")

    stored, _ = baselines(folder, study.baseline)
    assert sorted(stored.runs) == sorted(counting)
    assert f"Bit-identical to the stored baseline: all {len(counting)} runs." in said(
        "reproduce", "--root", tmp_path, "--seeds", "25"
    )
