"""The DAGs `advise` and `shadow_report` for real: the gate, and the bytes of their commands."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from include.results.tables.staged import read_staged
from tests.advise.synthetic import write_small_recording
from tests.command_line import said
from tests.e2e.dag_process import started
from tests.service.flink_world import World
from tests.service.test_shadow import Beside

pytestmark = pytest.mark.airflow

NAME, DAY = "advice-mine", "2027-01-15"


def published(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "published").iterdir())}


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


def test_the_dag_publishes_what_the_command_says_of_the_day(
    airflow_environment: dict[str, str], data_root: Path, tmp_path: Path
) -> None:
    world = World(load=lambda t: 300 + 200 * math.sin(t * 2 * math.pi / 5400))
    world.counts["map"] = world.most["map"] = 4
    beside = Beside(data_root / "shadow", world, ("ds2", "hpa"))
    beside.turns(400)
    beside.end()

    environment = airflow_environment | {"TIDEBENCH_DATA_ROOT": str(data_root)}
    params = {"day": DAY, "seeds": 2}
    with started(environment, params, tmp_path / "log", "shadow_report") as dag:
        assert dag.finish() == 0, dag.tail()

    folder, alone = data_root / f"advice-shadow-{DAY}", tmp_path / "alone"
    rows = read_staged(folder, "advice_ranking")
    assert {row["policy"] for row in rows} == {"as it was run", "ds2", "hpa"}
    files = published(folder)
    assert b",hpa,map," in files["decisions.csv"]
    assert b",begun," in files["events.csv"]

    said("verdict", data_root / "shadow", "--day", DAY, "--seeds", "2", "--out", alone)
    assert files == published(alone)
