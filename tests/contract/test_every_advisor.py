"""Every controller can advise: on a short run, beside another, and go on from any window."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from include.controllers import CONTROLLERS
from include.experiment.spec import parse_spec
from include.model.decision import Reason
from include.runs import stages
from tests.builders import begun

WORLDS = {"henge": ("tenants_diurnal", "diurnal"), "fugu": ("trading_queries", "trading_day_1")}
"""Where controllers act that cannot on every topology."""


def world_of(name: str) -> tuple[str, str]:
    family = name.partition("-")[0]
    return WORLDS.get(family, ("manufacturing", "stepwise"))


@pytest.mark.parametrize("name", CONTROLLERS)
def test_every_controller_advises(name: str, tmp_path: Path) -> None:
    topology, pattern = world_of(name)
    raw = {
        "name": "beside", "controllers": "fixed", "advisors": name, "topology": topology,
        "patterns": pattern, "btus_min": 2, "duration_min": 6, "faults": {},
    }  # fmt: skip
    (spec,) = parse_spec(raw, source="a test").points()
    begun(spec, tmp_path)
    summaries = [
        stages.control_windows(spec, tmp_path, window, window)[0] for window in range(spec.windows)
    ]
    assert not any("advisors_failed" in summary for summary in summaries), summaries
    (file,) = (tmp_path / "beside" / "measurements" / "advice").rglob("*.parquet")
    advice = pq.ParquetFile(file).read().to_pylist()
    operators = stages.load_run(spec, tmp_path).topology.operator_names
    assert {row["operator"] for row in advice} == set(operators)
    assert {row["advisor"] for row in advice} == {name}
    assert {row["reason"] for row in advice} <= {"", *(row.value for row in Reason)}
    assert min(row["advised_instances"] for row in advice) >= 0
    times = sorted({row["time_s"] for row in advice})
    assert times[0] == 0
    assert times[-1] >= 240, "also in the last window"
