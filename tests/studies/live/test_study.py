"""The run on real containers beside its simulations: what is compared, and what fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from include.experiment.run import resolve
from include.runs.stages import run_all, store_of
from include.studies.base import StudyData
from include.studies.live.metrics import COMPLIANCE, LiveMetrics, figures_of
from include.studies.live.study import STUDY
from tests.builders import run_spec

NEAR = {
    **dict(zip(COMPLIANCE.values(), (80.0, 85.0, 90.0), strict=True)),
    "real_time compliance of O1 (percent)": 40.0,
    "instances": 10.0,
    "instances in minute 2": 10.0,
    "upscaling": 3.0,
}


def off_by(points: float = 0.0, instances: float = 0.0) -> LiveMetrics:
    far = NEAR | {name: NEAR[name] + points for name in COMPLIANCE.values()}
    far |= {"instances": 10.0 + instances, "instances in minute 2": 10.0 + 2 * instances}
    return LiveMetrics([NEAR], [far, far])


def test_every_figure_stands_beside_its_simulations() -> None:
    rows = {row["what"]: row for row in off_by(instances=1.0).rows()}
    assert rows["instances in minute 2"] == {
        "what": "instances in minute 2", "live": 10.0, "mean": 12.0, "low": 12.0, "high": 12.0,
    }  # fmt: skip
    assert rows["upscaling"]["live"] == 3.0
    assert rows["real_time compliance of O1 (percent)"]["mean"] == 40.0


def test_the_live_run_comes_first_and_is_simulated_with_every_seed() -> None:
    live, *simulated = STUDY.runs([3, 4])
    assert (live.testbed, live.seed) == ("docker", 3)
    assert [(one.testbed, one.seed) for one in simulated] == [("simulated", 3), ("simulated", 4)]
    assert all(replace(one, testbed=live.testbed, seed=live.seed) == live for one in simulated)


def test_figures_are_those_of_the_measured_rows(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("compared")
    spec = run_spec(experiment="compared", btu_min=1, duration_min=2)
    run_all(spec, root)
    figures = figures_of(resolve(spec), store_of(spec, root))
    assert {"instances in minute 2", "hosts in minute 2"} < set(figures)
    assert "hosts in minute 3" not in figures
    assert figures["instances in minute 1"] >= 9
    assert figures[COMPLIANCE["real_time"]] < figures[COMPLIANCE["relaxed"]]
    alone = STUDY.evaluate(StudyData(root / "compared", [spec]))
    assert {row["holds"] for row in alone.claims} == {""}, "they need the run on containers"
    assert alone.tables["side_by_side"] == []
