"""Recordings that cannot be read: what is in the file, how it is mapped, what the message says."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet


class Malformed(NamedTuple):
    name: str
    file: str
    content: bytes
    says: tuple[str, ...]
    mapping: Mapping[str, str] = {}


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
    Malformed(
        "Parquet with two columns of one name",
        "a.parquet",
        parquet_of(["time_s", "rate", "rate"]),
        ("columns are there twice: rate",),
    ),
    Malformed(
        "an answer without a result",
        "a.json",
        b'{"status":"success","data":{"resultType":"matrix"}}',
        ("the answer has no list of series",),
    ),
    Malformed("an answer of nothing", "a.json", answer(None), ("has no list of series",)),
    Malformed("an answer of text", "a.json", answer("none"), ("has no list of series",)),
    Malformed("empty file", "a.csv", b"", ("the file is empty", "column names")),
    Malformed("white space only", "a.csv", b" \n\n", ("the file is empty",)),
    Malformed("header only", "a.csv", csv(RATE), ("has 0 rows", "at least 2")),
    Malformed("one row", "a.csv", csv(RATE, "0,5"), ("has 1 rows", "at least 2")),
    Malformed("no header", "a.csv", csv("0,5", "15,6"), ("line of column names",)),
    Malformed(
        "no time column",
        "a.csv",
        csv("zeit,rate_per_s", "0,5", "1,6"),
        ("write time=COLUMN", "the columns are: zeit, rate_per_s"),
    ),
    Malformed(
        "two that could be the time",
        "a.csv",
        csv("time_s,timestamp,rate_per_s", "0,0,5", "1,1,6"),
        ("time_s and timestamp", "write time=time_s or time=timestamp"),
    ),
    Malformed(
        "two that could be the rate",
        "a.csv",
        csv("time_s,throughput,records_per_s", "0,0,5", "1,1,6"),
        ("throughput and records_per_s", "write rate=throughput or rate=records_per_s"),
    ),
    Malformed(
        "nothing that is read",
        "a.csv",
        csv("time_s,heat", "0,0", "1,1"),
        ("write one of arrivals=COLUMN, rate=COLUMN", "the columns are: time_s, heat"),
    ),
    Malformed(
        "a column twice",
        "a.csv",
        csv("time_s,rate_per_s,rate_per_s", "0,0,5"),
        ("columns are there twice: rate_per_s",),
    ),
    Malformed("a column unnamed", "a.csv", csv("time_s,,x", "0,0,5"), ("column 2 has no name",)),
    Malformed(
        "text in numbers",
        "a.csv",
        csv(RATE, "0,5", "15,many", "30,7", "45,1_000"),
        ("line 3, line 5", "is no number ('many')"),
    ),
    Malformed("negative rates", "a.csv", csv(RATE, "0,5", "15,-6"), ("line 3", "negative (-6)")),
    Malformed("infinite", "a.csv", csv(RATE, "0,inf", "15,6"), ("line 2", "infinite")),
    Malformed("only NaN", "a.csv", csv(RATE, "0,NaN", "15,nan"), ("no column has any value",)),
    Malformed("NaN as a time", "a.csv", csv(RATE, "0,5", "NaN,6"), ("line 3", "needs a time")),
    Malformed("no time", "a.csv", csv(RATE, "0,5", ",6", "30,7"), ("line 3", "needs a time")),
    Malformed(
        "times going backwards",
        "a.csv",
        csv(RATE, "0,5", "30,6", "15,6"),
        ("line 4", "goes backwards", "sort the rows"),
    ),
    Malformed(
        "times twice", "a.csv", csv(RATE, "0,5", "15,6", "15,7"), ("line 4", "one row of each")
    ),
    Malformed(
        "some times with a zone",
        "a.csv",
        csv("timestamp,rate_per_s", "2026-01-01T00:00:00Z,1", "2026-01-01T00:00:15,2"),
        ("line 3", "no zone", "in every row"),
    ),
    Malformed(
        "a day that is none",
        "a.csv",
        csv("timestamp,rate_per_s", "2026-02-28T00:00:00Z,1", "2026-02-30T00:00:00Z,2"),
        ("line 3", "no ISO 8601 time", "2026-02-30"),
    ),
    Malformed(
        "epochs in two units",
        "a.csv",
        csv("timestamp,rate_per_s", "1600000000,1", "1600000015000,2", "1600000030000,2"),
        ("line 3, line 4", "mixes epochs in ms and epochs in s"),
    ),
    Malformed(
        "milliseconds called seconds",
        "a.csv",
        csv(RATE, "1600000000000,1", "1600000015000,2"),
        ("time_s says s", "epoch in ms", "write time=time_s@ms"),
    ),
    Malformed(
        "CPU in percent",
        "a.csv",
        csv("time_s,cpu", "0,12.5", "15,99"),
        ("line 2, line 3", "write cpu=cpu@percent"),
    ),
    Malformed(
        "CPU above 100 percent",
        "a.csv",
        csv("time_s,cpu_percent", "0,12.5", "15,250"),
        ("line 3", "above 100 %", "divide it by the cores"),
    ),
    Malformed(
        "latency without a unit",
        "a.csv",
        csv("time_s,latency", "0,1", "15,2"),
        ("does not say its unit", "latency=latency", "@s, @ms"),
    ),
    Malformed("UTF-16 with a mark", "a.csv", "time_s\n0\n1".encode("utf-16"), ("UTF-8",)),
    Malformed("another encoding", "a.csv", "time_s,durée\n0,1\n".encode("latin-1"), ("line 1",)),
    Malformed("semicolons", "a.csv", csv("time_s;rate", "0;1"), ("semicolons", "by commas")),
    Malformed(
        "decimal commas",
        "a.csv",
        csv(RATE, '0,"5,5"', '15,"1.234,5"'),
        ("line 2, line 3", "has a comma ('5,5')", "1234.5"),
    ),
    Malformed(
        "decimal commas without quotes",
        "a.csv",
        csv(RATE, "0,5,5", "15,6,5"),
        ("line 2, line 3", "3 cells, but 2 columns"),
    ),
    Malformed("a comment above", "a.csv", csv("# mine", RATE, "0,5"), ("line is a comment",)),
    Malformed("a quote left open", "a.csv", csv(RATE, '0,"5', "15,6"), ("cannot be read as CSV",)),
    Malformed("a line cut off", "a.csv", csv(RATE, "0,5", "15"), ("line 3: 1 cells",)),
    Malformed("binary file", "a.csv", b"\x7fELF\0\0\1", ("is no text", "as CSV in UTF-8")),
    Malformed(
        "truncated Parquet", "a.parquet", parquet(time_s=[0.0], rate=[1.0])[:-9], ("as Parquet",)
    ),
    Malformed("CSV called Parquet", "a.parquet", csv(RATE, "0,5"), ("as Parquet",)),
    Malformed(
        "Parquet with other types",
        "a.parquet",
        parquet(time_s=[0.0, 1.0], rate=[[1.0], [2.0]], lag=[True, False]),
        ("no column is known", "the columns are: time_s"),
    ),
    Malformed(
        "Parquet with text",
        "a.parquet",
        parquet(time_s=[0.0, 1.0], rate=["1", "x"]),
        ("row 2", "is no number ('x')"),
    ),
    Malformed(
        "an error of Prometheus",
        "a.json",
        b'{"status":"error","errorType":"bad_data","error":"parse error at char 4"}',
        ("answered with an error (bad_data: parse error at char 4)",),
        {"rate": "up"},
    ),
    Malformed(
        "several series",
        "a.json",
        answer([series("1", "2", __name__="up", job=job) for job in "ab"]),
        ('rate=up: 2 series are called so (up{job="a"}, up{job="b"})', "add labels"),
        {"rate": "up"},
    ),
    Malformed(
        "another series", "a.json", answer([series("1", "2", __name__="up")]),
        ("rate=down: there is no such series", "the series are: up"), {"rate": "down"},
    ),
    Malformed("empty result", "a.json", answer([]), ("empty; check the query",), {"rate": "up"}),
    Malformed(
        "a vector", "a.json", answer([], "vector"), ("is vector and no matrix", "query_range"),
        {"rate": "up"},
    ),
    Malformed("other JSON", "a.json", b'{"rate": [1, 2]}', ("no response of Prometheus",)),
    Malformed(
        "half a character", "a.json", b'{"status":"error","error":"\\ud800"}',
        ("(error: \\ud800)",),
    ),
    Malformed(
        "a time beyond all numbers", "a.json",
        answer([{"metric": {}, "values": [[10**400, "1"]]}]),
        ("not as Prometheus writes it",), {"rate": "{}"},
    ),
    Malformed("JSON cut off", "a.json", answer([])[:-5], ("cannot be read as JSON",)),
    Malformed(
        "values that are none", "a.json", answer([{"metric": {"__name__": "up"}, "values": [[0]]}]),
        ("not as Prometheus writes it",), {"rate": "up"},
    ),
    Malformed(
        "two samples of one time", "a.json",
        answer([{"metric": {"__name__": "up"}, "values": [[0, "1"], [0, "2"]]}]),
        ("two values at 0",), {"rate": "up"},
    ),
    Malformed("no EOF", "a.om", OPENMETRICS, ("# EOF", "cut off"), {"rate": "records"}),
    Malformed(
        "no timestamps", "a.om", b"# TYPE records gauge\nrecords 5\n# EOF\n",
        ("1 samples have no timestamp",), {"rate": "records"},
    ),
    Malformed(
        "no OpenMetrics", "a.om", b"# TYPE records gauge\nrecords five 1600000000\n# EOF\n",
        ("line 2 is no OpenMetrics",), {"rate": "records"},
    ),
    Malformed(
        "the time of samples mapped", "a.om", OPENMETRICS + b"# EOF\n",
        ("leave time out",), {"time": "records", "rate": "records"},
    ),
    Malformed(
        "latency of no unit", "a.om", OPENMETRICS + b"# EOF\n",
        ("does not say its unit", "@ms"), {"latency": "records"},
    ),
    Malformed(
        "no instance ever", "a.csv", csv("time_s,instances", "0,0", "15,0"), ("0 throughout",)
    ),
    Malformed(
        "a mapped column without a value", "a.csv", csv("time_s,x,rate", "0,,1", "15,,2"),
        ("x has no value at all",), {"lag": "x"},
    ),
    Malformed(
        "a column that is not there", "a.csv", csv(RATE, "0,1", "15,2"),
        ("no column 'lags' for lag", "the columns are: time_s, rate_per_s"), {"lag": "lags"},
    ),
    Malformed(
        "an unknown signal", "a.csv", csv(RATE, "0,1", "15,2"),
        ("unknown signal 'latenz'. Did you mean 'latency'?",), {"latenz": "x"},
    ),
    Malformed(
        "an unknown unit", "a.csv", csv(RATE, "0,1", "15,2"),
        ("unknown unit @per_day", "@per_s, @per_min"), {"rate": "rate_per_s@per_day"},
    ),
    Malformed(
        "a signal twice", "a.csv", csv(RATE, "0,1", "15,2"), ("rate is mapped twice",),
        {"rate": "rate_per_s", "rate_per_s": "rate_per_s"},
    ),
]  # fmt: skip
