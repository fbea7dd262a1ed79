"""Recordings as users have them: what is read, converted and said, equal steps and bridged gaps."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.model.errors import SpecError
from include.workloads.recordings import (
    SIGNALS,
    Recording,
    evenly,
    filled,
    parse_mapping,
    read_recording,
)
from tests.recorded import REAL

AT = 1_600_000_000.0


def read(tmp_path: Path, content: bytes | str, mapping: str = "", file: str = "a.csv") -> Recording:
    path = tmp_path / file
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_recording(str(path), parse_mapping(mapping))


def values(recording: Recording) -> dict[str, list[float | None]]:
    return {
        name: [None if np.isnan(one) else one for one in of.tolist()]
        for name, of in recording.readings.items()
    }


def test_every_signal_is_recognised_by_its_name(tmp_path: Path) -> None:
    names = "time_s,requests_per_s,throughput_records_per_s,consumer_lag_records,latency_ms"
    found = read(
        tmp_path,
        f"{names},cpu_share,task_managers,desired_replicas\n"
        "0,1,2,3,4,0.5,6,6\n15,1,2,3,4,0.5,6,6\n",
    )
    assert list(found.readings) == list(SIGNALS)
    assert [one.tolist()[0] for one in found.readings.values()] == [1, 2, 3, 0.004, 0.5, 6, 6]
    assert found.name == "a.csv"
    assert found.began_at is None


SHUFFLED = "time_s,rate_per_s,cpu_share,host\n30,3,,a\n0,1,0.5,a\n15,2,0.5,a\n15,2,0.5,b\n"


def test_rows_are_sorted_on_request_and_equal_ones_made_one(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"goes backwards; sort .*--sort"):
        read(tmp_path, SHUFFLED)
    found = read_recording(str(tmp_path / "a.csv"), sort=True)
    assert found.times_s.tolist() == [0, 15, 30]
    assert values(found) == {"rate_per_s": [1, 2, 3], "cpu_share": [0.5, 0.5, None]}
    assert "rows were sorted by time; 1 equal ones were left out" in found.notes


def test_rows_of_one_time_that_contradict_each_other_are_refused_with_their_lines(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_text(SHUFFLED + "15,7,0.5,c\n")
    with pytest.raises(SpecError, match=r"line 6: time_s is that .*; only of rows equal in all"):
        read_recording(str(tmp_path / "a.csv"), sort=True)
    (tmp_path / "a.csv").write_text(SHUFFLED + "soon,7,0.5,c\n")
    with pytest.raises(SpecError, match="line 6: time_s is no number"):
        read_recording(str(tmp_path / "a.csv"), sort=True)


def test_units_are_those_of_the_mapping_or_of_names(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "t,a,b_per_min,c_s,d\n0,120,60,2,50\n1000,60,30,4,100\n",
        "time=t@ms,rate=a@per_min,arrivals=b_per_min,latency=c_s,cpu=d@percent",
    )
    assert found.times_s.tolist() == [0, 1]
    assert values(found) == {
        "rate_per_s": [2, 1],
        "arrivals_per_s": [1, 0.5],
        "latency_s": [2, 4],
        "cpu_share": [0.5, 1],
    }
    assert "rate_per_s is a, divided by 60: it is in per_min" in found.notes


def test_a_column_that_is_called_as_what_it_is_needs_no_note(tmp_path: Path) -> None:
    found = read(tmp_path, "time_s,rate_per_s,lag\n0,1,2\n15,2,3\n")
    assert found.notes[1:] == ("lag_items is lag",)


@pytest.mark.parametrize(
    ("first", "second", "mapping"),
    [
        ("1600000000", "1600000015", {}),
        ("1600000000000", "1600000015000", {}),
        ("1600000000000", "1600000015000", {"time": "time@ms"}),
        ("2020-09-13T12:26:40Z", "2020-09-13T14:26:55+02:00", {}),
        ("2020-09-13 12:26:40", "2020-09-13 12:26:55", {}),
    ],
)
def test_absolute_times_begin_at_zero(
    first: str, second: str, mapping: Mapping[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"time,rate\n{first},1\n{second},2\n")
    found = read_recording(str(path), mapping)
    assert found.times_s.tolist() == [0, 15]
    assert found.began_at == AT


def test_relative_times_may_be_long_and_begin_later(tmp_path: Path) -> None:
    found = read(tmp_path, "time_ms,rate\n200000000,1\n200001000,2\n")
    assert found.times_s.tolist() == [0, 1]
    assert found.began_at is None
    assert any("shifted by -200000 s" in note for note in found.notes)


HEAD = "time_s,rate_per_s,task_manager_slots,busy_share\n"


@pytest.mark.parametrize("about", ["[]", '{"slots_each": null}'])
def test_a_folder_of_record_that_does_not_say_its_slots_is_read(about: str, tmp_path: Path) -> None:
    (tmp_path / "recording.json").write_text(about)
    (tmp_path / "job.csv").write_text(HEAD + "0,1,4,0.5\n5,2,4,0.5\n")
    found = read_recording(str(tmp_path))
    assert found.instances_per_host is None
    assert (found.name, found.readings["rate_per_s"].tolist()) == (tmp_path.name, [1, 2])


def test_absent_is_not_zero(tmp_path: Path) -> None:
    found = read(tmp_path, "\ufefftime_s,rate,lag,heat\n0,1,NaN,8\n\n15,,null,9\n30,0,7,9\n")
    assert values(found) == {"rate_per_s": [1, None, 0], "lag_items": [None, None, 7]}
    assert {
        "rate_per_s: 1 of 3 readings are absent",
        "lag_items: 2 of 3 readings are absent",
        "1 blank lines were left out",
        "a byte order mark at the beginning was left out",
        "not read: heat",
    } <= set(found.notes)


def test_a_count_becomes_a_rate(tmp_path: Path) -> None:
    """It begins again at 30 s; at 60 s it is not read, and has grown evenly until 75 s."""
    rows = "0,100\n15,130\n30,5\n45,35\n60,\n75,95\n"
    found = read(tmp_path, f"time_s,n\n{rows}", "rate=n@total")
    assert values(found) == {"rate_per_s": [None, 2, None, 2, 2, 2]}


def test_a_count_may_be_large_and_what_it_grows_by_may_not(tmp_path: Path) -> None:
    rows = "0,3e12\n15,3.000000000003e12\n"
    assert values(read(tmp_path, f"time_s,n\n{rows}", "rate=n@total")) == {
        "rate_per_s": [None, 0.2]
    }
    with pytest.raises(SpecError, match=r"line 4: n grows a second by 2e\+12, more than any job"):
        read(tmp_path, f"time_s,n\n{rows}16,5.000000000003e12\n", "rate=n@total")


def test_parquet_is_read_with_its_types(tmp_path: Path) -> None:
    out = io.BytesIO()
    table = {
        "timestamp": pa.array([AT * 1e9, (AT + 15) * 1e9]).cast(pa.int64()).cast("timestamp[ns]"),
        "rate": pa.array([1, None]),
        "cpu": pa.array([0.5, 0.25], pa.float32()),
        "job": pa.array([["a"], ["b"]]),
    }
    pa.parquet.write_table(pa.table(table), out)
    found = read(tmp_path, out.getvalue(), file="a.parquet")
    assert (found.began_at, found.times_s.tolist()) == (AT, [0, 15])
    assert values(found) == {"rate_per_s": [1, None], "cpu_share": [0.5, 0.25]}
    assert any(note.startswith("job is list<") for note in found.notes)


OPENMETRICS = """\
\ufeff# TYPE flink_records counter
flink_records_total{job="x\u2028"} 100 1600000000
flink_records_total{job="x\u2028"} 130 1600000015
flink_records_total{job="y"} 7 1600000000
# TYPE lag gauge
lag 5 1600000000
lag NaN 1600000015
# EOF
"""


def test_openmetrics_is_read_by_metric_and_labels(tmp_path: Path) -> None:
    asked = 'rate=flink_records_total{job="x\u2028"},lag=lag'
    found = read(tmp_path, OPENMETRICS.replace("\n", "\r\n"), asked, "a.om")
    assert (found.began_at, found.times_s.tolist()) == (AT, [0, 15])
    assert values(found) == {"rate_per_s": [None, 2], "lag_items": [5, None]}


def test_the_answer_to_a_range_query_is_read(tmp_path: Path) -> None:
    """Series with other times: what one lacks is absent."""
    result = [
        {"metric": {"__name__": "latency_ms", "p": "95"}, "values": [[AT, "20"], [AT + 15, "30"]]},
        {"metric": {"__name__": "latency_ms", "p": "50"}, "values": [[AT, "1"]]},
        {"metric": {"__name__": "lag"}, "values": [[AT + 15, "3"], [AT + 30, "NaN"]]},
    ]
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})
    found = read(tmp_path, f"\ufeff{text}", 'latency=latency_ms{p="95"},lag=lag', "a.json")
    assert found.times_s.tolist() == [0, 15, 30]
    assert values(found) == {"latency_s": [0.02, 0.03, None], "lag_items": [None, 3, None]}


def test_the_index_of_a_table_may_be_mapped(tmp_path: Path) -> None:
    found = read(tmp_path, ",rate\n0,1\n15,2\n", "time=index@s")
    assert found.times_s.tolist() == [0, 15]
    assert "the first column has no name and was called index" in found.notes


def test_what_prometheus_divided_by_nothing_is_absent(tmp_path: Path) -> None:
    series = {"metric": {"__name__": "lag"}, "values": [[0, "+Inf"], [15, "NaN"], [30, "2"]]}
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [series]}})
    assert values(read(tmp_path, text, "lag=lag", "a.json")) == {"lag_items": [None, None, 2]}


def test_a_mapping_may_hold_queries() -> None:
    text = 'rate=sum by (a, b) (rate(x{l="1,2"}[1m])), lag = lag{a=\'}\',b="c"}@items,cpu=c'
    assert parse_mapping(text) == {
        "rate": 'sum by (a, b) (rate(x{l="1,2"}[1m]))',
        "lag": "lag{a='}',b=\"c\"}@items",
        "cpu": "c",
    }


@given(text=st.text(alphabet='0123456789.,;:-+eEnainf"\n\r\t time_srate{}[]#@\ufeffTZ'))
def test_any_text_is_read_or_refused(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(b"time_s,rate\n" + text.encode())
    with suppress(SpecError):
        found = read_recording(str(path))
        assert (np.diff(found.times_s) > 0).all()
        assert np.nanmin(found.readings["rate_per_s"]) >= 0


@pytest.mark.recorded
def test_recordings_of_real_jobs_are_read() -> None:
    files = sorted(REAL.glob("recordings/*.csv"))
    assert files
    for file in files:
        found = read_recording(str(file))
        assert found.times_s.size == 4321
        assert set(found.readings) == set(SIGNALS) - {"arrivals_per_s", "desired_instances"}
    for file in sorted(REAL.glob("traces/*.csv")):
        assert set(read_recording(str(file)).readings) == {"arrivals_per_s"}


NAN = float("nan")


def recorded(times_s: list[float], **readings: list[float]) -> Recording:
    arrays = {name: np.array(values) for name, values in readings.items()}
    return Recording(
        name="a.csv", times_s=np.array(times_s), readings=arrays, began_at=None, notes=("read",)
    )


def test_a_step_is_the_mean_of_what_was_read_in_it() -> None:
    given = recorded(
        [0, 5, 14.9, 15, 45], lag_items=[1, 3, 8, 7, 9], cpu_share=[NAN, 1, NAN, NAN, 0]
    )
    found = evenly(given, 15)
    assert found.times_s.tolist() == [0, 15, 30, 45]
    np.testing.assert_equal(found.readings["lag_items"], [4, 7, NAN, 9])
    np.testing.assert_equal(found.readings["cpu_share"], [1, NAN, NAN, 0])
    assert found.notes == ("read", "in steps of 15 s, each the plain mean of its readings")


def test_steps_that_no_float_meets_stay_in_their_place() -> None:
    times_s = [i * 0.1 for i in range(100)]
    found = evenly(recorded(times_s, lag_items=list(range(100))), 0.1)
    assert found.readings["lag_items"].tolist() == list(range(100))


@pytest.mark.parametrize("step_s", [0, -1, NAN, float("inf"), 1e-9])
def test_a_step_that_cannot_be_is_refused(step_s: float) -> None:
    with pytest.raises(SpecError, match="step_s must be"):
        evenly(recorded([0, 60], lag_items=[1, 2]), step_s)


def test_short_gaps_are_bridged_and_counted() -> None:
    given = recorded(
        [0, 10, 20, 30, 40, 50, 60, 70],
        lag_items=[NAN, 1, NAN, 3, NAN, NAN, 9, NAN],
        instances=[4, NAN, 2, NAN, NAN, 6, 6, 6],
        cpu_share=[1, 1, 1, 1, 1, 1, 1, 1],
    )
    found = filled(given, 20)
    np.testing.assert_equal(found.readings["lag_items"], [NAN, 1, 2, 3, NAN, NAN, 9, NAN])
    np.testing.assert_equal(found.readings["instances"], [4, 4, 2, NAN, NAN, 6, 6, 6])
    by_line, by_count = found.notes[1:]
    assert by_line.endswith(
        "1 absent readings bridged by a line (gaps of at most 20 s), 4 stay absent"
    )
    assert "1 absent readings bridged by the last count" in by_count
    assert by_count.endswith("2 stay absent")
    longer = filled(given, 30)
    np.testing.assert_equal(longer.readings["lag_items"], [NAN, 1, 2, 3, 5, 7, 9, NAN])
    np.testing.assert_equal(given.readings["lag_items"], [NAN, 1, NAN, 3, NAN, NAN, 9, NAN])
