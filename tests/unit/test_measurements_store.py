"""Rows of a run on disk: one file per window, one per table once it has ended, nothing twice."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from include.files.whole import write_json
from include.model.errors import StoreError
from include.runs.measurements import parquet
from include.runs.measurements.store import RunStore, schema, to_arrow

WINDOWS = 3


def an_event(window):
    return {"time_s": [60.0 * window], "event": ["lost"], "subject": ["h"], "detail": [""]}


def of_window(window):
    return {"event": an_event(window), "tenant": {}}


@pytest.fixture
def store(tmp_path):
    store = RunStore(tmp_path, "r")
    for window in range(WINDOWS):
        store.write_window(window, of_window(window))
    return store


def wholes(store, stored=WINDOWS):
    """The files of all windows, of which so many were stored before."""
    return store.write_wholes(["event", "tenant"], stored, map(of_window, range(stored, WINDOWS)))


def files(store):
    paths = [path for path in sorted(store.folder.rglob("*")) if path.is_file()]
    return {path.relative_to(store.folder): path.read_bytes() for path in paths}


def test_the_files_of_all_windows_have_every_row_in_order(store):
    described = wholes(store)
    assert [path.name for path in files(store)][:2] == ["part-all.parquet"] * 2
    whole = store.folder / described[0]["path"]
    assert pq.ParquetFile(whole).read()["time_s"].to_pylist() == [0.0, 60.0, 120.0]
    assert [part["rows"] for part in described] == [WINDOWS, 0]
    store.remove_windows(commits=False)
    assert [path.name for path in files(store)] == ["part-all.parquet"] * 2


def test_a_window_measured_again_after_the_end_stores_nothing_twice(store):
    described = wholes(store)
    write_json(store.manifest, {})
    once = store.whole("event").read_bytes()
    store.write_window(1, of_window(7))
    assert wholes(store, stored=1) == described
    assert store.whole("event").read_bytes() == once


@pytest.mark.parametrize("suffix", [".arrow", ".sha256"])
def test_a_window_with_one_byte_changed_is_not_read(store, suffix):
    path = store.rows(1).with_suffix(suffix)
    content = bytearray(path.read_bytes())
    content[-60] ^= 0x80
    path.write_bytes(content)
    with pytest.raises(StoreError, match="are not those that were stored; remove"):
        wholes(store)


@pytest.mark.parametrize("content", [None, b"", b"torn"])
def test_a_window_that_is_missing_or_damaged_says_what_to_do(store, content):
    store.rows(1).unlink()
    if content is not None:
        store.rows(1).write_bytes(content)
    with pytest.raises(StoreError, match=r"rows .*; remove .* and run again"):
        wholes(store)
    assert not [path for path in files(store) if path.suffix == ".parquet"]


def test_a_column_that_is_missing_is_not_made_up(tmp_path):
    with pytest.raises(KeyError):
        RunStore(tmp_path, "r").write_rows("price", 0, {"price_book": ["b"]})
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("sizes", [[0], [0, 3, 0], [700, 700], [1000], [2500, 1]])
def test_rows_that_come_bit_by_bit_give_the_bytes_of_those_that_come_at_once(
    sizes, tmp_path, monkeypatch
):
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 1000)
    names = [f"h{i}" for i in range(7)]
    tables = [
        to_arrow("event", {"time_s": range(n), "event": ["lost"] * n, "detail": [""] * n,
                           "subject": [names[i % 7] for i in range(n)]})
        for n in sizes
    ]  # fmt: skip
    with parquet.ParquetFile(tmp_path / "bit by bit", schema("event")) as file:
        for table in tables:
            file.append(table)
    text = [field.name for field in schema("event") if field.type == "string"]
    pq.write_table(
        pa.concat_tables(tables), tmp_path / "at once", row_group_size=1000,
        compression="zstd", use_dictionary=text, store_schema=False,
    )  # fmt: skip
    assert (tmp_path / "bit by bit").read_bytes() == (tmp_path / "at once").read_bytes()
