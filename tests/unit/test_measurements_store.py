"""Rows of a run on disk: one file per window, one per table once it has ended, nothing twice."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from include.files.whole import write_json
from include.model.errors import StoreError
from include.runs.measurements import parquet
from include.runs.measurements.store import COMMITTED, RunStore, schema, to_arrow
from include.runs.measurements.window import read_window, window_content

WINDOWS = 3


def an_event(window):
    return {"time_s": [60.0 * window], "event": ["lost"], "subject": ["h"], "detail": [""]}


@pytest.fixture
def store(tmp_path):
    store = RunStore(tmp_path, "e", "r")
    for window in range(WINDOWS):
        store.write_window(window, {"event": an_event(window), "tenant": {}})
    return store


def gather(store, first=0):
    """As if the windows from ``first`` on had been committed."""
    contents = (
        window_content(
            {"event": to_arrow("event", an_event(first + window)), "tenant": to_arrow("tenant", {})}
        )
        for window in range(WINDOWS)
    )
    commits = [
        {
            **dict.fromkeys(COMMITTED),
            "parts": [{"sha256": hashlib.sha256(content).hexdigest()}],
            "summary": {"window": window},
        }
        for window, content in enumerate(contents)
    ]
    for window, commit in enumerate(commits):
        write_json(store.commit(window), commit)
    return store.gather(["event", "tenant"], commits[-1])


def files(store):
    tables = (store.part(table, 0).parent for table in ("event", "tenant"))
    folders = [store.rows(0).parent, *tables]
    paths = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(store.folder): path.read_bytes() for path in paths}


def test_what_is_gathered_has_every_row_in_order_and_replaces_the_parts(store):
    described = gather(store)
    assert [path.name for path in files(store)] == ["part-all.parquet"] * 2
    whole = store.folder / described[0]["path"]
    assert pq.ParquetFile(whole).read()["time_s"].to_pylist() == [0.0, 60.0, 120.0]
    assert [part["rows"] for part in described] == [WINDOWS, 0]


def test_gathering_again_changes_nothing(store):
    first, once = gather(store), files(store)
    assert (gather(store), files(store)) == (first, once)


@pytest.mark.parametrize("removed", range(WINDOWS + 1))
def test_killed_while_parts_are_removed_it_ends_the_same(store, removed):
    rows = [store.rows(window) for window in range(WINDOWS)]
    parts = {path: path.read_bytes() for path in rows}
    described, once = gather(store), files(store)
    for path in sorted(parts)[removed:]:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(parts[path])
    assert (gather(store), files(store)) == (described, once)


def test_what_a_run_that_was_removed_left_behind_is_replaced(store):
    gather(store)
    for window in range(WINDOWS):
        store.write_window(window, {"event": an_event(window + 7), "tenant": {}})
    gather(store, first=7)
    assert pq.ParquetFile(store.whole("event")).read()["time_s"][0].as_py() == 420.0


def test_a_window_measured_again_after_the_end_stores_nothing_twice(store):
    before = store.write_window(1, {"event": an_event(1), "tenant": {}})
    gather(store)
    write_json(store.manifest, {})
    once = files(store)
    assert store.write_window(1, {"event": an_event(1), "tenant": {}}) == before
    assert files(store) == once


def test_a_window_with_one_byte_changed_is_not_gathered(store):
    content = bytearray(store.rows(1).read_bytes())
    content[-60] ^= 1
    store.rows(1).write_bytes(content)
    with pytest.raises(StoreError, match="are not those that were committed; remove"):
        gather(store)


@pytest.mark.parametrize("content", [None, b"", b"torn"])
def test_a_window_that_is_missing_or_damaged_says_what_to_do(store, content):
    store.rows(1).unlink()
    if content is not None:
        store.rows(1).write_bytes(content)
    with pytest.raises(StoreError, match=r"rows .*; remove .* and run again"):
        gather(store)
    left = [0, 2] if content is None else [0, 1, 2]
    assert [path.name for path in files(store)] == [f"{window:03d}.arrow" for window in left]


def test_a_window_reads_as_it_was_written(store):
    tables = read_window(store.rows(2))
    assert tables["event"] == to_arrow("event", an_event(2))
    assert tables["tenant"] == to_arrow("tenant", {})


def test_a_column_without_a_value_takes_the_default_of_its_field(tmp_path):
    store = RunStore(tmp_path, "e", "r")
    row = {
        "controller": ["btu"], "pattern": ["p"], "btu_min": [10.0], "seed": [1],
        "duration_s": [60.0], "topology": ["t"], "testbed": ["simulated"], "flavor": ["f"],
        "vcpus": [1.0], "memory_mb": [1.0], "sample_every_items": [10], "spec_hash": ["cafe"],
        "monitor_every_s": [15.0], "pays_by_btu": [True],
    }  # fmt: skip
    store.write_rows("run", 0, row)
    stored = pq.ParquetFile(store.part("run", 0)).read()
    assert stored["variant"].to_pylist() == [""]
    with pytest.raises(KeyError, match="seed"):
        store.write_rows("run", 0, {name: row[name] for name in row if name != "seed"})


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
