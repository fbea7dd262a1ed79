"""Two checkouts held against each other: what differs in measured files is found and named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from infra.compare import checkouts

REPOSITORY = Path(__file__).parents[2]
SPEC = """
name: two_minutes
controllers: fixed
patterns: {name: trace, path: trace.csv}
duration_min: 60
seeds: [1, 2, 3]
"""


def written(path: Path, compression: str = "zstd", **columns: list[float]) -> dict[str, Path]:
    pq.write_table(pa.table(columns), path, compression=compression)
    return {"queue/part-all.parquet": path}


@pytest.mark.parametrize(
    ("after", "allowed", "differences"),
    [
        ({"a": [1.0, 2.0]}, (), ""),
        ({"a": [1.0, 2.5]}, (), "other values of a"),
        ({"a": [1.0]}, (), "other values of a"),
        ({"a": [1, 2]}, (), "columns a became a"),
        ({"b": [1.0, 2.0]}, (), "new columns b"),
        ({"a": [1.0, 2.0], "b": [0.0, 0.0]}, (), "new columns b"),
        ({"a": [1.0, 2.0], "b": [0.0, 0.0]}, ("b",), ""),
        ({"a": [1.0, 2.5], "b": [0.0, 0.0]}, ("b",), "other values of a"),
        ({"a": [1.0, 2.0], "compression": "none"}, (), "other bytes, though the same rows"),
    ],
)
def test_every_difference_of_a_file_is_named(tmp_path, after, allowed, differences):
    before = written(tmp_path / "before.parquet", a=[1.0, 2.0])
    problems = checkouts.differences(before, written(tmp_path / "after.parquet", **after), allowed)
    assert problems == ([f"queue/part-all.parquet: {differences}"] if differences else [])


def test_a_file_that_only_one_has_is_a_difference(tmp_path):
    path = written(tmp_path / "one.parquet", a=[1.0])
    assert "only in the first" in checkouts.differences(path, {}, ())[0]
    assert "only in the second" in checkouts.differences({}, path, ())[0]


@pytest.mark.long
def test_code_that_measures_something_else_is_found_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # two minutes are done before it has compiled
    same, changed = tmp_path / "same", tmp_path / "changed"
    for checkout in (same, changed):
        shutil.copytree(REPOSITORY / "include", checkout / "include")
        (checkout / checkouts.SPECS / "two_minutes.yaml").write_text(SPEC)
        (checkout / checkouts.SPECS / "trace.csv").write_text("time_s,level\n0,1\n")
    cut = ["--only", "two_minutes", "--seeds", "1", "--minutes", "2"]
    cut += ["--keep", str(tmp_path / "kept")]
    assert checkouts.main([str(same), str(changed), *cut]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if "two_minutes" in line)
    assert row.split()[1::2] == ["1", "identical"], row
    code = changed / "include" / "testbeds" / "virtual" / "tables.py"
    code.write_text(code.read_text().replace('"wait_ms": wait_ms', '"wait_ms": wait_ms + 1'))
    assert checkouts.main([str(same), str(changed), *cut]) == 1
    assert (
        "processing_duration/part-all.parquet: other values of wait_ms" in capsys.readouterr().out
    )
