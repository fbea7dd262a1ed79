"""The page of the reproduction, also of a part of its matrix and of more than it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from include.files.whole import write_json
from include.model.errors import GateFailed
from include.studies import study_named
from include.studies.publish import evaluate
from tests.builders_staged import restage, tables_of


def test_a_part_without_a_stored_figure_is_not_reproduced(tmp_path: Path) -> None:
    """No table of two_level is stored; ``hpa`` is none of its controllers."""
    study, folder = study_named("peerj141"), tmp_path / "reproduction"
    own = [
        tables_of(run.run_id, controller=run.controller, pattern="two_level", seed=25)
        for run in (replace(run, experiment=folder.name) for run in study.runs([25]))
        if run.pattern == "two_level" and run.btu_min == 10
    ]
    own.append(tables_of("hpa-two_level", controller="hpa", pattern="two_level", seed=25))
    for table in own[0]:
        restage(folder, table, [row for tables in own for row in tables[table]])
    elasticity = [row | {"scope": "overall"} for tables in own for row in tables["elasticity"]]
    restage(folder, "elasticity", elasticity)
    for tables in own:
        run = tables["runs"][0]["run"]
        write_json(folder / "runs" / run / "manifest.json", {"spec_hash": "", "parts": []})

    results = evaluate(study, folder)
    text = {section.name: section.text for section in results.sections}["judgement"]
    assert text[0].startswith("The paper is not reproduced")
    assert "btu-runtime: no stored figure of the paper was measured" in text
    with pytest.raises(GateFailed, match="0 of 0 published cells"):
        study.require_reproduced(results)
