"""What cannot be read is said: what to do, where, and everything at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from include.model.errors import SpecError
from include.workloads.recordings import parse_mapping, read_recording
from include.workloads.recordings.files import MOST_BYTES
from include.workloads.recordings.tables import MOST_ROWS
from tests.recordings.malformed import MALFORMED, Malformed


@pytest.mark.parametrize("case", MALFORMED, ids=[case.name for case in MALFORMED])
def test_a_malformed_recording_is_refused_with_what_to_do(case: Malformed, tmp_path: Path) -> None:
    file = tmp_path / case.file
    file.write_bytes(case.content)
    with pytest.raises(SpecError) as error:
        read_recording(str(file), case.mapping)
    message = str(error.value)
    assert message.startswith(f"{case.file}: ")
    for words in case.says:
        assert words in message
    assert str(tmp_path) not in message


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    rows = ["0,1,x,0.5,3", "15,-2,5,7,3", '15,3,"1,5",0.5,-3', "10,inf,5,0.5,3"]
    file.write_text("\n".join(["time_s,rate,lag,cpu,instances", *rows]))
    with pytest.raises(SpecError) as error:
        read_recording(str(file))
    assert [problem.split(":")[0] for problem in error.value.problems] == [
        "line 5", "line 4", "line 5", "line 2", "line 4", "line 3", "line 4",
    ]  # fmt: skip


def test_ten_problems_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    signals = ["arrivals", "rate", "lag", "latency_s", "cpu", "instances"]
    rows = [",".join([str(i)] + [cell] * 6) for i, cell in enumerate(("x", "inf", '"1,5"') * 9)]
    file.write_text("\n".join([",".join(["time_s", *signals]), *rows]))
    with pytest.raises(SpecError) as error:
        read_recording(str(file))
    assert len(error.value.problems) == 11
    assert error.value.problems[0].startswith(
        "line 2, line 5, line 8, line 11, line 14 and 4 more:"
    )
    assert error.value.problems[-1] == "and 8 more problems like these"


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    with file.open("wb") as out:
        out.truncate(MOST_BYTES + 1)
    with pytest.raises(SpecError, match="has 100 MB, more than 100"):
        read_recording(str(file))


def test_rows_that_were_packed_into_a_small_file_are_counted_first(tmp_path: Path) -> None:
    many = pa.DictionaryArray.from_arrays(np.zeros(MOST_ROWS + 1, np.int8), pa.array([1.0])).cast(
        pa.float64()
    )
    file = tmp_path / "a.parquet"
    pa.parquet.write_table(pa.table({"time_s": many, "rate": many}), file)
    assert file.stat().st_size < MOST_BYTES / 100
    with pytest.raises(SpecError, match="has 5000001 rows, more than 5000000"):
        read_recording(str(file))


def test_a_folder_and_what_is_not_there_are_no_recordings(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.csv", Path("a\0b")):
        with pytest.raises(SpecError, match=r"is a folder|no file|cannot be the path"):
            read_recording(str(path))


def test_inputs_bound_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.csv"
    file.write_text("time_s,rate\n0,1\n15,2\n")
    (tmp_path / "inputs").mkdir()
    monkeypatch.setenv("TIDEBENCH_INPUTS", str(tmp_path / "inputs"))
    with pytest.raises(SpecError, match="is not below"):
        read_recording(str(file))
    with pytest.raises(SpecError, match="limits inputs to files"):
        read_recording("prometheus+http://localhost:9090?last_s=60", {"rate": "up"})


def test_a_mapping_on_the_command_line_says_what_is_wrong() -> None:
    with pytest.raises(SpecError) as error:
        parse_mapping("rate,time=,lag=a,lag=b")
    assert [problem.split(";")[0] for problem in error.value.problems] == [
        "'rate' maps nothing", "'time=' maps nothing", "lag is mapped twice",
    ]  # fmt: skip
