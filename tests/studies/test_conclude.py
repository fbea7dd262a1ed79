"""A study from its runs to its page: measured, built by Spark, checked, judged, published."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.experiment.spec import RunSpec
from include.runs.batch import run_batch
from include.studies.base import Study, StudyData
from include.studies.publish import conclude

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


CLAIM = {"id": "both", "section": "1", "claim": "Both run", "predicate": "both_run"}
PREDICATES = {"both_run": lambda of: (len(of) == 2, ", ".join(sorted(of)))}


class Tiny(Study):
    name = experiment = "tiny"
    title = "A tiny study"
    claims, predicates = [CLAIM], PREDICATES

    def runs(self, seeds=None):
        return [
            RunSpec(experiment="tiny", controller="fixed", pattern="constant", btu_min=1, seed=seed,
                    duration_min=2, topology=topology)
            for seed in seeds or (1,)
            for topology in ("manufacturing", "cell_images")
        ]  # fmt: skip

    def read(self, measured: StudyData) -> dict[str, int]:
        return {
            run.topology: int(measured.columns(run, "queue", "instances")["instances"].max())
            for run in measured.runs
        }

    def tables(self, metrics):
        return {"instances": [metrics]}


STUDY = Tiny()


def test_every_study_goes_through_tables_and_gates_to_its_page(tmp_path: Path) -> None:
    said: list[str] = []
    points = STUDY.runs([5])
    run_batch(points, tmp_path, processes=1)
    results = conclude(STUDY, tmp_path, [run.run_id for run in points], say=said.append)
    assert said == ["building tables ...", "validating ...", "publishing ..."]
    assert set(results.tables["instances"][0]) == {"manufacturing", "cell_images"}
    assert all(number >= 1 for number in results.tables["instances"][0].values())
    folder = tmp_path / "tiny"
    assert (folder / "data_docs" / "verdict.json").is_file()
    assert (folder / "published" / "instances.csv").is_file()
    page = (folder / "published" / "report.html").read_text()
    assert "with seeds 5" in page
    assert "✓ holds" in page
    assert (tmp_path / "results.db").is_file()
