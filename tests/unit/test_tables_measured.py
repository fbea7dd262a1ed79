"""What stands in the way of building tables is said before Spark starts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from include.files.whole import digest
from include.model.errors import SetupError, StoreError
from include.results.tables.measured import check_files, complete_runs
from include.runs.spark.session import require_java
from include.runs.stages import run_all, store_of
from tests.builders import run_spec

SPEC = run_spec(experiment="demo", btu_min=1, duration_min=1)
RUN = SPEC.run_id


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose manifest lists no file."""
    root = tmp_path_factory.mktemp("data")
    run_all(SPEC, root)
    store_of(SPEC, root).manifest.write_text('{"parts": []}')
    return root / "demo"


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    return shutil.copytree(measured, tmp_path / "demo")


def test_every_complete_run_is_taken_when_none_is_named(folder: Path) -> None:
    (folder / "runs" / "stopped").mkdir()
    assert complete_runs(folder) == (RUN,)


def test_nothing_to_read_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Run the experiment to its end first"):
        complete_runs(tmp_path)


def test_a_stopped_run_that_is_named_is_refused(folder: Path) -> None:
    (folder / "runs" / "stopped").mkdir()
    with pytest.raises(StoreError, match=r"'stopped'.*no manifest\.json.*Start it again"):
        complete_runs(folder, ["stopped"])


def test_an_unknown_run_comes_with_a_suggestion(folder: Path) -> None:
    with pytest.raises(StoreError, match=f"Did you mean '{RUN}'"):
        complete_runs(folder, [RUN[:-1] + "2"])


def _part(folder: Path, table: str) -> Path:
    parts = folder / "measurements" / table / "experiment=demo" / f"run={RUN}"
    return next(iter(sorted(parts.iterdir())))


def torn(part: Path) -> None:
    part.write_bytes(part.read_bytes()[:-20])


def of_another_version(part: Path) -> None:
    pq.write_table(pa.table({"host": ["h"]}), part)


def without_its_first_row(part: Path) -> None:
    pq.write_table(pq.ParquetFile(part).read().slice(1), part)


@pytest.mark.parametrize(
    ("table", "damage", "said"),
    [
        ("queue", torn, "{part}.*cannot be read"),
        ("lease", of_another_version, "{part} has the columns host; this version writes"),
        ("run", without_its_first_row, "{part} has 0 rows instead of one"),
        ("operator", Path.unlink, "holds no file"),
    ],
)
def test_a_file_that_is_not_as_a_run_writes_it_is_named(
    folder: Path, table: str, damage: Callable[[Path], None], said: str
) -> None:
    part = _part(folder, table)
    damage(part)
    with pytest.raises(StoreError, match=said.format(part=part)):
        check_files(folder, RUN)


def test_a_file_that_is_not_what_the_run_has_written_is_named(folder: Path) -> None:
    part = _part(folder, "queue")
    listed = [{"path": str(part.relative_to(folder)), "rows": 9, "sha256": digest(part)}]
    (folder / "runs" / RUN / "manifest.json").write_text(json.dumps({"parts": listed}))
    check_files(folder, RUN)
    without_its_first_row(part)
    with pytest.raises(StoreError, match=f"{part} is not what was measured"):
        check_files(folder, RUN)
    part.unlink()
    with pytest.raises(StoreError, match=f"{part} is missing"):
        check_files(folder, RUN)


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"parts": [3]}', '{"parts": [{}]}'])
def test_a_run_whose_manifest_is_damaged_is_named(folder: Path, content: str) -> None:
    (folder / "runs" / RUN / "manifest.json").write_text(content)
    with pytest.raises(StoreError, match=r"manifest\.json is (damaged|not what was written)"):
        check_files(folder, RUN)


def test_a_table_in_which_nothing_happened_may_be_missing(folder: Path) -> None:
    _part(folder, "scaling_activity").unlink()
    assert check_files(folder, RUN)["scaling_activity"] == []


def test_missing_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"there is no java.*openjdk-17-jre-headless"):
        require_java()


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=f"JAVA_HOME is {tmp_path}"):
        require_java()


@pytest.mark.parametrize(
    ("content", "version"),
    [
        ("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n", "11"),
        ("#!/bin/sh\necho 'java version \"1.8.0_392\"' >&2\n", "8"),
        ("a program of another machine", "of unknown version"),
    ],
)
def test_an_old_java_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, version: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(content)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=f"is Java {version}"):
        require_java()
