"""A report on an experiment in a real object store: OpenStack Swift, which speaks S3."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow.fs import FileSelector, FileSystem

from include.runs.stages import run_all
from tests.builders import run_spec
from tests.command_line import said

pytestmark = [pytest.mark.live, pytest.mark.nightly]

SWIFT = Path(__file__).parents[2] / "infra" / "objects" / "swift.sh"


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """URI of a bucket, with ``{}`` for a folder in it."""
    monkeypatch.setenv("TIDEBENCH_SWIFT_STATE", str(tmp_path / "swift"))
    monkeypatch.setenv("TIDEBENCH_SWIFT_PORT", "16180")
    try:
        up = subprocess.run([SWIFT, "up"], capture_output=True, text=True, check=False)
        if "cannot be installed" in up.stderr:
            pytest.skip(up.stderr.strip().splitlines()[-1])
        assert up.returncode == 0, up.stderr
        settings = dict(line.split("=", 1) for line in up.stdout.splitlines() if "=" in line)
        address = settings.pop("TIDEBENCH_SWIFT")
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        options = f"endpoint_override={address}&scheme=http&allow_bucket_creation=true"
        yield f"s3://lab/{{}}?{options}"
    finally:
        subprocess.run([SWIFT, "down"], check=True)


def test_tables_and_pages_are_those_of_the_local_folder(tmp_path: Path, bucket: str) -> None:
    spec = run_spec(experiment="small", duration_min=10, summaries_only=True)
    run_all(spec, tmp_path)
    there = bucket.format("a/small")
    output = said("copy", str(tmp_path / "small"), there)
    assert output.endswith("files: s3://lab/a/small\n")
    database = f"sqlite:///{tmp_path}/results.db"
    output = said("report", there, "--database", database, "--master", "local[1]")
    assert "Page:      s3://lab/a/small/published/report.html" in output
    assert "/tmp/" not in output
    said("report", str(tmp_path / "small"), "--database", database, "--master", "local[1]")
    store, path = FileSystem.from_uri(there)
    for table in (tmp_path / "small" / "published").glob("*.parquet"):
        with store.open_input_file(f"{path}/published/{table.name}") as content:
            assert content.read() == table.read_bytes(), table.name
    names = {file.path for file in store.get_file_info(FileSelector(path, recursive=True))}
    assert {f"{path}/published/report.html", f"{path}/data_docs/index.html"} <= names
