"""What keeps Spark from starting is a message.

Java takes the archive of its classes where it can, and says nothing where it cannot.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from include.model.errors import SpecError
from include.runs.spark import session
from include.runs.spark.session import _kept_interrupt, require_master
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.spark

ALONE = """
from include.model.errors import SetupError
from include.runs.spark.session import spark_session

try:
    with spark_session("yarn"):
        pass
except SetupError as error:
    print(error)
"""

HEARD = """
import sys
from pyspark.sql import SparkSession
from include.runs.spark.session import spark_session

for turn in range(2):
    with spark_session("local[1]") as spark:
        print(spark.sql(f"SELECT {turn} AS number").toArrow().to_pylist())
        spark.sparkContext._jvm.java.lang.System.err.println(f"Java, {turn}")
        sys.stderr.write(f"Python, {turn}\\n")
        sys.stderr.flush()
    print(SparkSession.getActiveSession())
"""


def test_of_java_errors_are_heard_and_a_session_ends_before_another_begins() -> None:
    """That a module is in the making is not."""
    done = subprocess.run(
        [sys.executable, "-c", HEARD],
        cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    lines = [f"{who}, {turn}" for turn in range(2) for who in ("Java", "Python")]
    assert sorted(done.stderr.splitlines()) == sorted(lines)
    assert done.stdout.splitlines() == ["[{'number': 0}]", "None", "[{'number': 1}]", "None"]


def test_ctrl_c_while_the_handler_of_spark_is_in_place_reaches_the_chosen_one() -> None:
    answered: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: answered.append(number))
    try:
        with suppress(KeyboardInterrupt), _kept_interrupt():
            signal.signal(signal.SIGINT, signal.default_int_handler)  # raises, as Spark's does
            signal.raise_signal(signal.SIGINT)
        assert answered == [signal.SIGINT]
        signal.raise_signal(signal.SIGINT)
        assert answered == [signal.SIGINT] * 2
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_keeps_a_master_from_starting_is_told() -> None:
    """In a process of its own: every other test shares a session that runs already."""
    without = {name: value for name, value in os.environ.items() if "HADOOP" not in name}
    done = subprocess.run(
        [sys.executable, "-c", ALONE], env=without,
        cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Spark does not start with the master 'yarn' (" in done.stdout
    assert "choose another --master" in done.stdout


@pytest.mark.parametrize("master", ["nonsense", "local[", "local[x]", "spark:/host", "", "yarn "])
def test_a_master_that_is_none_is_told(master: str) -> None:
    with pytest.raises(SpecError, match="is no master of Spark; write local"):
        require_master(master)


@pytest.mark.parametrize(
    "master",
    [None, "local", "local[*]", "local[2]", "local[*,3]", "local[4, 2]", "local-cluster[2,1,1024]",
     "spark://host:7077", "spark://a:7077,b:7077", "k8s://https://host:443", "yarn"],
)  # fmt: skip
def test_masters_of_spark_are_taken(master: str | None) -> None:
    require_master(master)


def options() -> list[str]:
    return shlex.split(session.local_driver()[session.JVM])


def test_without_an_archive_java_is_told_of_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "ARCHIVE", tmp_path / "none.jsa")
    assert not any("SharedArchiveFile" in option for option in options())


def test_an_archive_that_java_cannot_use_is_no_word_worth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "of another java.jsa"
    archive.write_bytes(b"no archive at all" * 1000)
    monkeypatch.setattr(session, "ARCHIVE", archive)
    assert f"-XX:SharedArchiveFile={archive}" in options()
    done = subprocess.run(
        ["java", *options(), "-version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert "[cds]" not in done.stderr
    assert "rror" not in done.stderr
