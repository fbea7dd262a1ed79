"""Where the tasks of these tests keep everything."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def data_root(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data root, which tasks take for theirs."""
    monkeypatch.setenv("TIDEBENCH_DATA_ROOT", str(data_root))
    return data_root


@pytest.fixture
def dag_runs(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """States of DAG runs by their ids, as Airflow is asked for them."""
    from tidebench import locks, runs

    states: dict[str, str] = {}

    def count(dag_id: str, run_id: str, *wanted: str) -> int:
        assert dag_id == "experiment"
        return int(states.get(run_id) in wanted)

    for module in (locks, runs):
        monkeypatch.setattr(module, "count_dag_runs", count)
    return states
