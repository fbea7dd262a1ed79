"""What a window counts of its samples is what a reader of the samples would count."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from include.model.compliance import LEVELS
from include.runs.measurements.rows import DURATION_COUNT, DURATION_SUM, DurationCount
from include.runs.measurements.store import to_arrow
from include.runs.measurements.summaries import (
    BINS_PER_E,
    KEYS,
    LONGEST_MS,
    WINDOWS_AT_ONCE,
    Total,
    summarised,
)
from include.testbeds.columns import Coded

SLO_MS = {"O1": 1500.0, "O2": 600.0}
NAMES = ("O1", "O2", "stranger")
DURATION_S, EVERY_S = 120.0, 15.0

times_ms = st.one_of(
    st.floats(-10, 1e5), st.sampled_from([0.0, 600.0, 1200.0, 3000.0, math.nan, math.inf])
)
samples = st.lists(
    st.tuples(st.integers(0, 2), st.floats(-1, 130), times_ms, st.floats(-1, 1e4), times_ms),
    min_size=1,
    max_size=60,
)


def columns_of(rows: list[Any]) -> dict[str, Any]:
    codes, time_s, duration_ms, wait_ms, age_ms = map(np.array, zip(*rows, strict=True))
    return {
        "operator": Coded(codes, NAMES),
        "time_s": time_s,
        "duration_ms": duration_ms,
        "wait_ms": wait_ms,
        "age_ms": age_ms,
    }


def counted(rows: list[Any]) -> dict[str, list[dict[str, Any]]]:
    return {table: rows.to_pylist() for table, rows in tables_of(rows).items()}


def tables_of(rows: list[Any]) -> dict[str, pa.Table]:
    tables = summarised(columns_of(rows), SLO_MS, duration_s=DURATION_S, monitor_every_s=EVERY_S)
    return {table: to_arrow(table, columns) for table, columns in tables.items()}


def added_up(table: str, windows: Iterable[pa.Table]) -> pa.Table:
    total = Total(table, io.BytesIO())
    for rows in windows:
        total.add(rows)
    return pa.concat_tables(
        [to_arrow(table, {}), *(to_arrow(table, columns) for columns in total.columns())]
    )


def bin_of(time_ms: float) -> int:
    bounded = LONGEST_MS if math.isnan(time_ms) else min(max(time_ms, 0.0), LONGEST_MS)
    return int(math.log(1 + bounded) * BINS_PER_E)


@given(samples)
def test_every_sample_is_counted_once_by_its_duration_and_once_by_its_age(rows: list[Any]) -> None:
    counts = counted(rows)[DURATION_COUNT]
    by = {(row["operator"], row["bin"]): row for row in counts}
    durations = Counter((NAMES[row[0]], bin_of(row[2])) for row in rows)
    ages = Counter((NAMES[row[0]], bin_of(row[4])) for row in rows)
    assert {key: row["samples"] for key, row in by.items() if row["samples"]} == durations
    assert {key: row["ages"] for key, row in by.items() if row["ages"]} == ages


@given(samples)
def test_late_impossible_and_outside_are_counted_of_operators_that_the_run_has(
    rows: list[Any],
) -> None:
    counts = counted(rows)[DURATION_COUNT]
    for name in NAMES:
        operator_rows = [row for row in rows if NAMES[row[0]] == name]
        expected = {
            key: sum(row[key] for row in counts if row["operator"] == name)
            for key in ("bad", "outside", *(f"{level}_late" for level, _ in LEVELS))
        }
        for level, factor in LEVELS:
            late = sum(row[2] > factor * SLO_MS.get(name, math.inf) for row in operator_rows)
            assert expected[f"{level}_late"] == late
        outside = sum(not 0 <= row[1] <= DURATION_S for row in operator_rows)
        assert expected["outside"] == (outside if name in SLO_MS else 0)
        assert expected["bad"] == sum(
            not (row[2] >= 0 and row[3] >= 0 and row[4] >= 0) for row in operator_rows
        )


@given(samples)
def test_periods_hold_whole_microseconds(rows: list[Any]) -> None:
    sums = {(row["operator"], row["period"]): row for row in counted(rows)[DURATION_SUM]}
    total_us: Counter[tuple[str, int]] = Counter()
    taken: Counter[tuple[str, int]] = Counter()
    for code, time_s, duration_ms, _, _ in rows:
        key = NAMES[code], math.floor(time_s / EVERY_S)
        bounded = LONGEST_MS if math.isnan(duration_ms) else min(max(duration_ms, 0.0), LONGEST_MS)
        total_us[key] += int(bounded * 1000 + 0.5)
        taken[key] += 1
    assert {key: row["samples"] for key, row in sums.items()} == taken
    assert {key: row["total_us"] for key, row in sums.items()} == total_us


@given(samples, samples)
def test_two_windows_together_count_what_one_would(first: list[Any], then: list[Any]) -> None:
    parts, whole = [tables_of(first), tables_of(then)], tables_of([*first, *then])
    for table, expected in whole.items():
        together = added_up(table, [part[table] for part in parts])
        key = KEYS[table][1]
        rows = sorted(expected.to_pylist(), key=lambda row: (row["operator"], row[key]))
        assert together.to_pylist() == rows
        assert together.schema == expected.schema


def test_many_windows_are_added_up_a_few_at_a_time() -> None:
    part = tables_of([(0, 1.0, 700.0, 5.0, 900.0), (1, 20.0, 30.0, 0.0, 40.0)])
    for table, rows in part.items():
        for windows in (WINDOWS_AT_ONCE, 2 * WINDOWS_AT_ONCE + 3):
            together = added_up(table, [rows] * windows)
            assert together["samples"].to_pylist() == [
                windows * count for count in added_up(table, [rows])["samples"].to_pylist()
            ]


def test_windows_without_a_sample_add_up_to_nothing() -> None:
    for table in KEYS:
        empty = to_arrow(table, {})
        as_read = pa.Table.from_batches([], empty.schema)
        for rows in (empty, as_read):
            assert added_up(table, [rows] * WINDOWS_AT_ONCE).num_rows == 0


def test_a_window_without_a_sample_counts_nothing() -> None:
    assert summarised({}, SLO_MS, duration_s=DURATION_S, monitor_every_s=EVERY_S) == {}
    empty = {name: values[:0] for name, values in columns_of([(0, 1, 1, 1, 1)]).items()}
    empty["operator"] = Coded(np.array([], dtype=np.int32), NAMES)
    tables = summarised(empty, SLO_MS, duration_s=DURATION_S, monitor_every_s=EVERY_S)
    assert all(to_arrow(table, columns).num_rows == 0 for table, columns in tables.items())


def test_every_level_has_its_column() -> None:
    columns = [f"{level}_late" for level, _ in LEVELS]
    assert [name for name in DurationCount.__annotations__ if name.endswith("_late")] == columns
