"""The DAG `advise` for real: mapped replays, the gate, and the bytes of the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.results.tables.staged import read_staged
from tests.advise.synthetic import write_small_recording
from tests.command_line import said
from tests.e2e.dag_process import started

pytestmark = pytest.mark.airflow

NAME = "advice-mine"


def test_the_dag_gives_what_the_command_gives(
    airflow_environment: dict[str, str], data_root: Path, tmp_path: Path
) -> None:
    recording = tmp_path / "job.csv"
    write_small_recording(recording)
    asked = {"objective": "90 % within 1 s", "max_instances": 8, "seeds": 1}
    params = {"name": "mine", "recording": str(recording), "controllers": ["hpa", "fixed"], **asked}

    environment = airflow_environment | {"TIDEBENCH_DATA_ROOT": str(data_root)}
    with started(environment, params, tmp_path / "log", "advise") as dag:
        assert dag.finish() == 0, dag.tail()
    folder, alone = data_root / NAME, tmp_path / NAME
    policies = [row["policy"] for row in read_staged(folder, "advice_ranking") if row["rank"]]
    assert len(dag.done("replay_policy")) == len(policies) >= 5

    command = ["advise", str(recording), "--objective", asked["objective"], "--out", str(alone)]
    command += ["--max-instances", "8", "--seeds", "1", "--controllers", "hpa,fixed"]
    said(*command)
    assert published(folder) == published(alone)


def published(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "published").iterdir())}
