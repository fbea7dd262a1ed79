"""Without single samples every table says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.experiment.spec import RunSpec
from include.results.tables.build import build_tables
from include.results.tables.catalogue import INPUT_CHECKS, PUBLISHED
from include.results.tables.staged import read_staged
from include.runs.stages import run_all

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

OF_THE_SPEC = ("run", "spec_hash")


@pytest.mark.usefixtures("spark")
def test_every_table_is_the_same_without_samples(tmp_path: Path) -> None:
    for kept, only in (("samples", False), ("summaries", True)):
        spec = RunSpec(
            experiment=kept, controller="btu", pattern="stepwise", btu_min=10, seed=1,
            duration_min=20, summaries_only=only, calibration="manufacturing_paused",
            faults={"host_losses_per_hour": 6, "monitoring_gaps_per_hour": 6},
        )  # fmt: skip
        run_all(spec, tmp_path)
        build_tables(tmp_path / kept)
    for table in (*PUBLISHED, INPUT_CHECKS):
        with_samples, without = (
            [
                {name: value for name, value in row.items() if name not in OF_THE_SPEC}
                for row in read_staged(tmp_path / kept, table)
            ]
            for kept in ("samples", "summaries")
        )
        assert with_samples == without, table
    (total,) = read_staged(tmp_path / "samples", "scaling_total")
    assert total["items_in_pauses"] > 0
