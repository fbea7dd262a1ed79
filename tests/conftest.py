"""Fixtures that tests of several folders share."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).resolve().parents[1]

# Where nohup began the tests a hangup is ignored, and processes that they start would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No test fails because the machine has other work.
settings.register_profile("tidebench", deadline=None)
settings.load_profile("tidebench")

# Airflow writes its configuration where this says when it is imported; never into ~/airflow.
os.environ.setdefault("AIRFLOW_HOME", str(REPOSITORY / "var" / "airflow"))


def _leave_others_alone(worker: str) -> None:
    """Give one of several processes that run tests a home and a database of its own."""
    shared = Path(os.environ["AIRFLOW_HOME"])
    own = shared.with_name(f"{shared.name}-{worker}")
    own.mkdir(parents=True, exist_ok=True)
    if (shared / "airflow.db").is_file():
        shutil.copyfile(shared / "airflow.db", own / "airflow.db")
    os.environ["AIRFLOW_HOME"] = str(own)


if "PYTEST_XDIST_WORKER" in os.environ:
    _leave_others_alone(os.environ["PYTEST_XDIST_WORKER"])


LONGEST_FIRST = ("test_experiment_dag.py", "test_disturbed_run.py", "e2e", "unit")
"""Files and folders. What takes long and came last would run while another core is idle."""


COLLECTED = pytest.StashKey[dict[str, set[str]]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is in a folder, and put what takes longest first; the order within it stays."""
    for item in items:
        if item.path.parent.name == "e2e":
            item.add_marker(pytest.mark.long)
        if item.path.parent.name == "dags":
            item.add_marker(pytest.mark.airflow)
            # Airflow warns about its own dependencies.
            item.add_marker(pytest.mark.filterwarnings("default"))
    config.stash[COLLECTED] = {
        item.nodeid: {mark.name for mark in item.iter_markers()} for item in items
    }
    items.sort(key=lambda item: [part not in item.path.parts for part in LONGEST_FIRST])


@pytest.fixture(scope="session")
def collected(pytestconfig: pytest.Config) -> dict[str, set[str]]:
    """The marks of every test that was found, also of those that are not chosen, by its id."""
    return pytestconfig.stash[COLLECTED]


@pytest.fixture
def data_root(tmp_path: Path) -> Path:
    """An empty data root."""
    root = tmp_path / "data"
    root.mkdir()
    return root


@pytest.fixture(scope="session")
def airflow_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of an Airflow of its own: this repository's DAGs, a fresh database."""
    from tests.e2e.airflow_services import migrated

    return migrated(tmp_path_factory.mktemp("airflow"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark application for every test of this process: a warm one answers in a tenth."""
    from include.runs.spark.session import spark_session

    with spark_session("local[2]", small=True) as session:
        yield session
