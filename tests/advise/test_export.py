from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from include.advise.export import write_experiment
from include.advise.job import fit
from include.advise.readings import readings_of
from include.advise.replay import ReplayConditions
from include.advise.restarts import PLANNED_SHARE
from include.experiment.matrix import runs_in_file
from include.experiment.run import resolve
from include.runs.stages import run_all
from include.workloads.recordings import read_recording
from tests.advise.synthetic import write_small_recording

CONDITIONS = ReplayConditions(instances_at_start=4, max_instances=8)


def test_the_files_are_an_experiment_that_runs(tmp_path: Path) -> None:
    write_small_recording(tmp_path / "job.csv")
    recording = read_recording(str(tmp_path / "job.csv"))
    job = fit(recording)

    spec = write_experiment(job, readings_of(recording), CONDITIONS, tmp_path / "out")
    points = runs_in_file(spec)

    assert [point.controller for point in points] == ["hpa", "target-tracking"]
    topology = resolve(points[0]).topology
    assert topology.operator["job"].service_ms == pytest.approx(1000 / job.most_per_s, abs=1e-6)
    calibration = yaml.safe_load((tmp_path / "out" / "job_calibration.yaml").read_text())
    assert calibration["cpu_at_rest"] == pytest.approx(0.1, abs=0.02)
    slope = (calibration["cpu_when_busy"] - calibration["cpu_at_rest"]) / job.most_per_s
    assert slope == pytest.approx(job.demand_ms.value / 1000, rel=0.01), "CPU of a record"
    down_s = calibration["restart"]["down_s"][0]
    assert points[0].faults["restarts"][0] == [
        job.incidents_s[0],
        pytest.approx(down_s / PLANNED_SHARE**0.5, abs=0.02),
    ]
    assert np.std(calibration["cpu_residuals"]) == pytest.approx(job.cpu_noise, rel=0.01)
    assert run_all(points[0], tmp_path / "var")
    files = list((tmp_path / "var").rglob("*.parquet"))
    assert any("lease" in str(one) for one in files)
    assert any("processing_duration" in str(one) for one in files)
