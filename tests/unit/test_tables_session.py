"""What keeps Spark from starting is a message."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.spark

ALONE = """
from include.model.errors import SetupError
from include.tables.session import spark_session

try:
    with spark_session("nonsense"):
        pass
except SetupError as error:
    print(error)
"""


def test_a_master_that_is_none_is_told() -> None:
    """In a process of its own: every other test shares a session that runs already."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Spark does not start with the master 'nonsense'" in done.stdout
    assert "choose another --master" in done.stdout
