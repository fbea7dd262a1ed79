"""What cannot be read is said: what to do, where, and everything at once."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from include.model.errors import SpecError
from include.workloads.recordings import parse_mapping, read_recording
from include.workloads.recordings.files import MOST_BYTES
from include.workloads.recordings.tables import MOST_ROWS
from tests.problems import problems_told


class Malformed(NamedTuple):
    name: str
    content: bytes
    says: tuple[str, ...]
    mapping: Mapping[str, str] = {}
    file: str = "a.csv"


def parquet(**columns: Any) -> bytes:
    out = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), out)
    return out.getvalue()


def parquet_of(names: list[str]) -> bytes:
    out = io.BytesIO()
    columns = [pa.array([0.0, 1.0]) for _ in names]
    pa.parquet.write_table(pa.Table.from_arrays(columns, names=names), out)
    return out.getvalue()


def answer(result: Any, kind: str = "matrix") -> bytes:
    data = {"resultType": kind, "result": result}
    return json.dumps({"status": "success", "data": data}).encode()


def series(*values: Any, **labels: str) -> dict[str, Any]:
    return {"metric": labels, "values": [[15 * i, value] for i, value in enumerate(values)]}


def csv(*rows: str) -> bytes:
    return "\n".join(rows).encode() + b"\n"


RATE = "time_s,rate_per_s"
OPENMETRICS = b"# TYPE records gauge\nrecords 5 1600000000\nrecords 6 1600000015\n"
MALFORMED = [
    Malformed("Parquet with two columns of one name", parquet_of(["time_s", "rate", "rate"]),
        ("columns are there twice: rate",), file="a.parquet"),
    Malformed("an answer without a result", b'{"status":"success","data":{"resultType":"matrix"}}',
        ("the answer has no list of series",), file="a.json"),
    Malformed("an answer of text", answer("none"), ("has no list of series",), file="a.json"),
    Malformed("a page of words", b"# Tidebench\n\nWhich policy, at which cost, holds?\n",
        ("is no table", "a line of column names"), file="README.md"),
    Malformed("a line that is too short, of words beside its time",
        csv("time,state,rate_per_s", "2026-01-01T00:00:00Z,up", "2026-01-01T00:00:15Z,up,5"),
        ("line 2", "2 cells, but 3 columns")),
    Malformed("a web page", b"<html><body>not found</body></html>", ("is no table",)),
    Malformed("a column of another name", csv("time_s,rate,load", "0,5,40", "15,6,41"),
        ("no column 'cpu' for cpu", "cpu=COLUMN@percent", "the columns are: time_s, rate, load"),
        {"cpu": "cpu"}),
    Malformed("white space only", b" \n\n", ("the file is empty", "column names")),
    Malformed("one row", csv(RATE, "0,5"), ("has 1 rows", "at least 2")),
    Malformed("no header", csv("0,5", "15,6"), ("line of column names",)),
    Malformed("no time column", csv("zeit,rate_per_s", "0,5", "1,6"),
        ("write time=COLUMN", "the columns are: zeit, rate_per_s")),
    Malformed("two that could be the time", csv("time_s,timestamp,rate_per_s", "0,0,5", "1,1,6"),
        ("time_s and timestamp", "write time=time_s or time=timestamp")),
    Malformed("two that could be the rate",
        csv("time_s,throughput,records_per_s", "0,0,5", "1,1,6"),
        ("throughput and records_per_s", "write rate=throughput or rate=records_per_s")),
    Malformed("nothing that is read", csv("time_s,heat", "0,0", "1,1"),
        ("write one of arrivals=COLUMN, rate=COLUMN", "the columns are: time_s, heat")),
    Malformed("a column twice", csv("time_s,rate_per_s,rate_per_s", "0,0,5"),
        ("columns are there twice: rate_per_s",)),
    Malformed("a column unnamed", csv("time_s,,x", "0,0,5"), ("column 2 has no name",)),
    Malformed("text in numbers", csv(RATE, "0,5", "15,many", "30,7", "45,1_000"),
        ("line 3, line 5", "is no number ('many')")),
    Malformed("negative rates", csv(RATE, "0,5", "15,-6"), ("line 3", "negative (-6)")),
    Malformed("infinite", csv(RATE, "0,inf", "15,6"), ("line 2", "infinite")),
    Malformed("only NaN", csv(RATE, "0,NaN", "15,nan"), ("no column has any value",)),
    Malformed("no time", csv(RATE, "0,5", ",6", "30,7"), ("line 3", "needs a time")),
    Malformed("times going backwards", csv(RATE, "0,5", "30,6", "15,6"),
        ("line 4", "goes backwards", "sort the rows")),
    Malformed("times twice", csv(RATE, "0,5", "15,6", "15,7"), ("line 4", "one row of each")),
    Malformed("some times with a zone",
        csv("timestamp,rate_per_s", "2026-01-01T00:00:00Z,1", "2026-01-01T00:00:15,2"),
        ("line 3", "no zone", "in every row")),
    Malformed("a day that is none",
        csv("timestamp,rate_per_s", "2026-02-28T00:00:00Z,1", "2026-02-30T00:00:00Z,2"),
        ("line 3", "no ISO 8601 time", "2026-02-30")),
    Malformed("epochs in two units",
        csv("timestamp,rate_per_s", "1600000000,1", "1600000015000,2", "1600000030000,2"),
        ("line 3, line 4", "mixes epochs in ms and epochs in s")),
    Malformed("milliseconds called seconds", csv(RATE, "1600000000000,1", "1600000015000,2"),
        ("time_s says s", "epoch in ms", "write time=time_s@ms")),
    Malformed("CPU in percent", csv("time_s,cpu", "0,12.5", "15,99"),
        ("line 2, line 3", "write cpu=cpu@percent")),
    Malformed("CPU above 100 percent", csv("time_s,cpu_percent", "0,12.5", "15,250"),
        ("line 3", "above 100 %", "divide it by the cores")),
    Malformed("latency without a unit", csv("time_s,latency", "0,1", "15,2"),
        ("does not say its unit", "latency=latency", "@s, @ms")),
    Malformed("another encoding", "time_s,durée\n0,1\n".encode("latin-1"), ("line 1",)),
    Malformed("semicolons", csv("time_s;rate", "0;1"), ("semicolons", "by commas")),
    Malformed("decimal commas", csv(RATE, '0,"5,5"', '15,"1.234,5"'),
        ("line 2, line 3", "has a comma ('5,5')", "1234.5")),
    Malformed("decimal commas without quotes", csv(RATE, "0,5,5", "15,6,5"),
        ("line 2, line 3", "3 cells, but 2 columns")),
    Malformed("a comment above", csv("# mine", RATE, "0,5"), ("line is a comment",)),
    Malformed("a quote left open", csv(RATE, '0,"5', "15,6"), ("cannot be read as CSV",)),
    Malformed("binary file", b"\x7fELF\0\0\1", ("is no text", "as CSV in UTF-8")),
    Malformed("truncated Parquet", parquet(time_s=[0.0], rate=[1.0])[:-9], ("as Parquet",),
        file="a.parquet"),
    Malformed("Parquet with other types",
        parquet(time_s=[0.0, 1.0], rate=[[1.0], [2.0]], lag=[True, False]),
        ("no column is known", "the columns are: time_s"), file="a.parquet"),
    Malformed("Parquet with text", parquet(time_s=[0.0, 1.0], rate=["1", "x"]),
        ("row 2", "is no number ('x')"), file="a.parquet"),
    Malformed("Parquet with a year that no calendar has",
        parquet(time=pa.array([2**31 - 2, 0], pa.int32()).cast(pa.date32()), rate=[1.0, 2.0]),
        ("time cannot be read (year 5881580 is out of range); write it as text",),
        file="a.parquet"),
    Malformed("Parquet with a zone that is nowhere",
        parquet(time=pa.array([0, 10**9], pa.timestamp("us", "No/Where")), rate=[1.0, 2.0]),
        ("time cannot be read", "No/Where"), file="a.parquet"),
    Malformed("an error of Prometheus",
        b'{"status":"error","errorType":"bad_data","error":"parse error at char 4"}',
        ("answered with an error (bad_data: parse error at char 4)",), {"rate": "up"},
        file="a.json"),
    Malformed("several series", answer([series("1", "2", __name__="up", job=job) for job in "ab"]),
        ('rate=up: 2 series are called so (up{job="a"}, up{job="b"})', "add labels"),
        {"rate": "up"}, file="a.json"),
    Malformed("another series", answer([series("1", "2", __name__="up")]),
        ("rate=down: there is no such series", "the series are: up"), {"rate": "down"},
        file="a.json"),
    Malformed("empty result", answer([]), ("empty; check the query",), {"rate": "up"},
        file="a.json"),
    Malformed("a vector", answer([], "vector"), ("is vector and no matrix", "query_range"),
        {"rate": "up"}, file="a.json"),
    Malformed("other JSON", b'{"rate": [1, 2]}', ("no response of Prometheus",), file="a.json"),
    Malformed("half a character", b'{"status":"error","error":"\\ud800"}', ("(error: \\ud800)",),
        file="a.json"),
    Malformed("a time beyond all numbers", answer([{"metric": {}, "values": [[10**400, "1"]]}]),
        ("not as Prometheus writes it",), {"rate": "{}"}, file="a.json"),
    Malformed("JSON cut off", answer([])[:-5], ("cannot be read as JSON",), file="a.json"),
    Malformed("values that are none", answer([{"metric": {"__name__": "up"}, "values": [[0]]}]),
        ("not as Prometheus writes it",), {"rate": "up"}, file="a.json"),
    Malformed("two samples of one time",
        answer([{"metric": {"__name__": "up"}, "values": [[0, "1"], [0, "2"]]}]),
        ("two values at 0",), {"rate": "up"}, file="a.json"),
    Malformed("no EOF", OPENMETRICS, ("# EOF", "cut off"), {"rate": "records"}, file="a.om"),
    Malformed("no timestamps", b"# TYPE records gauge\nrecords 5\n# EOF\n",
        ("1 samples have no timestamp",), {"rate": "records"}, file="a.om"),
    Malformed("no OpenMetrics", b"# TYPE records gauge\nrecords five 1600000000\n# EOF\n",
        ("line 2 is no OpenMetrics",), {"rate": "records"}, file="a.om"),
    Malformed("the time of samples mapped", OPENMETRICS + b"# EOF\n", ("leave time out",),
        {"time": "records", "rate": "records"}, file="a.om"),
    Malformed("latency of no unit", OPENMETRICS + b"# EOF\n", ("does not say its unit", "@ms"),
        {"latency": "records"}, file="a.om"),
    Malformed("no instance ever", csv("time_s,instances", "0,0", "15,0"), ("0 throughout",)),
    Malformed("a mapped column without a value", csv("time_s,x,rate", "0,,1", "15,,2"),
        ("x has no value at all",), {"lag": "x"}),
    Malformed("a column that is not there", csv(RATE, "0,1", "15,2"),
        ("no column 'lags' for lag", "the columns are: time_s, rate_per_s"), {"lag": "lags"}),
    Malformed("an unknown signal", csv(RATE, "0,1", "15,2"),
        ("unknown signal 'latenz'. Did you mean 'latency'?",), {"latenz": "x"}),
    Malformed("an unknown unit", csv(RATE, "0,1", "15,2"),
        ("unknown unit @per_day", "@per_s, @per_min"), {"rate": "rate_per_s@per_day"}),
    Malformed("a signal twice", csv(RATE, "0,1", "15,2"), ("rate is mapped twice",),
        {"rate": "rate_per_s", "rate_per_s": "rate_per_s"}),
]  # fmt: skip


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
    assert [problem.split(":")[0] for problem in problems_told(read_recording, str(file))] == [
        "line 5", "line 4", "line 5", "line 2", "line 4", "line 3", "line 4",
    ]  # fmt: skip


def test_what_columns_there_are_is_told_and_is_no_problem_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("\n".join([RATE, "0,1", "15,2"]))
    assert problems_told(read_recording, str(file), {"lag": "lags", "latency": "x@s"}) == [
        "there is no column 'lags' for lag",
        "there is no column 'x' for latency (the columns are: time_s, rate_per_s)",
    ]
    up = tmp_path / "a.json"
    up.write_bytes(answer([series("1", "2", __name__="up")]))
    assert problems_told(read_recording, str(up), {"rate": "down", "lag": "off"}) == [
        "rate=down: there is no such series",
        "lag=off: there is no such series (the series are: up)",
    ]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3)])
def test_rows_of_operators_are_known_by_their_times(order: tuple[int, ...], tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    rows = ["0,a,1", "0,b,1", "15,a,2", "15,b,2"]
    file.write_text("\n".join(["time_s,task,rate", *(rows[row] for row in order)]))
    assert "the command operators" in problems_told(read_recording, str(file))[-1]
    file.write_text("\n".join([RATE, "0,1", "15,2", "15,3"]))
    assert "operators reads" not in problems_told(read_recording, str(file))[-1]


def test_ten_problems_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    signals = ["arrivals", "rate", "lag", "latency_s", "cpu", "instances"]
    rows = [",".join([str(i)] + [cell] * 6) for i, cell in enumerate(("x", "inf", '"1,5"') * 9)]
    file.write_text("\n".join([",".join(["time_s", *signals]), *rows]))
    first, *others, last = problems_told(read_recording, str(file))
    assert len(others) == 9
    assert first.startswith("line 2, line 5, line 8, line 11, line 14 and 4 more:")
    assert last == "and 8 more problems like these"


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
    problems = problems_told(parse_mapping, "rate,time=,lag=a,lag=b")
    assert [problem.split(";")[0] for problem in problems] == [
        "'rate' maps nothing", "'time=' maps nothing", "lag is mapped twice",
    ]  # fmt: skip
