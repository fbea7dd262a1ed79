"""The DAG `shadow_report` for real: a day of a shadow becomes the verdict of the command."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from include.results.tables.staged import read_staged
from tests.command_line import said
from tests.e2e.dag_process import started
from tests.service.flink_world import World
from tests.service.test_shadow import Beside

pytestmark = pytest.mark.airflow

DAY = "2027-01-15"


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
    published = {path.name: path.read_bytes() for path in (folder / "published").iterdir()}
    assert b",hpa,map," in published["decisions.csv"]
    assert b",begun," in published["events.csv"]

    said("verdict", data_root / "shadow", "--day", DAY, "--seeds", "2", "--out", alone)
    assert published == {path.name: path.read_bytes() for path in (alone / "published").iterdir()}
