"""Names that would lead out of the copy of a remote experiment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow.fs
import pytest
from pyarrow.fs import LocalFileSystem

from include.model.errors import StoreError
from include.runs.measurements.remote_store import local_copy


def filled(*names: str) -> Any:
    """A store in memory to which ``..`` is a name as any other, as to an object store."""
    store = pyarrow.fs._MockFileSystem()
    for name in names:
        store.create_dir(name.rpartition("/")[0])
        store.open_output_stream(name).close()
    return store


@pytest.mark.parametrize("strange", ["../out.txt", "runs/../../../out.txt", "runs/r/.."])
def test_a_remote_folder_with_names_that_lead_out_of_it_is_refused_unfetched(
    strange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled("bucket/mine/runs/r/manifest.json", f"bucket/mine/{strange}")
    fetched: list[Any] = []
    reached = SimpleNamespace(from_uri=lambda where: (store, "bucket/mine"))
    monkeypatch.setattr("pyarrow.fs.FileSystem", reached)
    monkeypatch.setattr("pyarrow.fs.copy_files", lambda *names: fetched.append(names))
    with (
        pytest.raises(StoreError, match=r"s3://bucket/mine has names that no experiment has"),
        local_copy("s3://bucket/mine"),
    ):
        raise AssertionError("it is opened")
    assert fetched == []


def test_two_dots_within_a_name_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled("bucket/mine/runs/r/manifest.json", "bucket/mine/runs/r/a..b")
    fetched: list[str] = []
    reached = SimpleNamespace(from_uri=lambda where: (store, "bucket/mine"))
    monkeypatch.setattr("pyarrow.fs.FileSystem", reached)

    def fetch(name: str, _: str, source: object, here: LocalFileSystem) -> None:
        fetched.append(name)
        here.open_output_stream(name).close()

    monkeypatch.setattr("pyarrow.fs.copy_files", fetch)
    with local_copy("s3://bucket/mine"):
        assert sorted(fetched) == ["runs/r/a..b", "runs/r/manifest.json"]
