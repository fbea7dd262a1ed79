"""The matrix of the paper, and why the baselines run once per seed."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.runs.stages import run_all, store_of
from include.studies.peerj141 import specs as matrix
from include.studies.peerj141.calibration import FITTING_SEEDS
from include.studies.peerj141.study import STUDY

BILLED = ["ordered_s", "ended_s", "released", "host"]


def test_the_matrix_is_that_of_the_evaluation():
    specs = STUDY.runs()
    by_controller = {
        name: sorted({spec.btu_min for spec in specs if spec.controller == name})
        for name in matrix.controllers()
    }
    assert by_controller == {
        "btu-runtime": [10, 30, 60], "btu": [10, 30, 60], "threshold": [10], "fixed": [10],
    }  # fmt: skip
    assert matrix.patterns() == ("stepwise", "two_level", "random_walk_1", "random_walk_2")
    assert len(specs) == len({spec.run_id for spec in specs}) == 4 * 24 * (3 + 3 + 1 + 1)
    assert {spec.experiment for spec in specs} == {STUDY.experiment}
    assert {spec.duration_min for spec in specs} == {120}
    for spec in specs:
        resolve(spec)


def test_the_judging_seeds_took_no_part_in_fitting():
    seeds = {spec.seed for spec in STUDY.runs()}
    assert len(seeds) >= 12
    assert seeds.isdisjoint(FITTING_SEEDS)


@pytest.mark.parametrize("controller", ["threshold", "fixed"])
def test_a_baseline_leases_the_same_hosts_whatever_the_btu(controller, tmp_path):
    logs, durations = [], []
    for btu_min in matrix.BTUS_MIN:
        spec = RunSpec(
            experiment="e", controller=controller, pattern="two_level", btu_min=btu_min,
            seed=1, duration_min=24,
        )  # fmt: skip
        run_all(spec, tmp_path)
        parts = sorted(store_of(spec, tmp_path).part("processing_duration", 0).parent.iterdir())
        leases = pq.read_table(store_of(spec, tmp_path).part("lease", 0), partitioning=None)
        logs.append(leases.select(BILLED).to_pylist())
        durations.append(
            [row for part in parts for row in pq.read_table(part, partitioning=None).to_pylist()]
        )
    assert len(logs[0]) > 1
    assert logs[0] == logs[1] == logs[2]
    assert durations[0] == durations[1] == durations[2]
