"""What is told of a run without a Flink: how late its timers were, and its starts of the job."""

from __future__ import annotations

import math
import os
from contextlib import nullcontext
from typing import Any

import pytest

from include.model.errors import TestbedError
from include.testbeds.flink.calibration import FlinkCalibration
from include.testbeds.flink.instances import LAG_MS
from include.testbeds.flink.monitor import FlinkMonitor
from include.testbeds.flink.state import FlinkState, PendingRescale
from include.testbeds.live.reading import not_before
from tests.flink.flink_run import configured
from tests.flink.world import subtask_of, write_counts, write_rows


@pytest.fixture
def state(monkeypatch, tmp_path):
    """Of a run at whose end somebody was there for the last reading."""
    monkeypatch.setenv("TIDEBENCH_FLINK_STATE", str(tmp_path))
    state = FlinkState(configured(), FlinkCalibration(lag_limit_ms=100))
    state.begin(0)
    state.graph = "g1"
    state.reading.time_s = state.config.duration_s
    return state


def finished(state: FlinkState, table: str) -> dict[str, list[Any]]:
    FlinkMonitor(state).finish()
    return state.journal.read(0)[0][table]


@pytest.mark.parametrize(
    ("late", "bound_ms", "within_ms"),
    [(1, 1000, 1), (2, 50, 50), (50, 100, 100), (2, 200, 200), (50, 500, 500), (2, 1000, 1000)],
)
def test_a_run_counts_where_99_of_100_timers_are_within_its_limit(state, late, bound_ms, within_ms):
    """Of a subtask 99 timers were less than 1 ms late, and of another some were later."""
    later = [late * (bound == bound_ms) for bound in (*LAG_MS, 2 * LAG_MS[-1])]
    state.reading.lags = {"g1 front 0": [99, *(0,) * len(LAG_MS)], "g1 back 0": later}
    refused = pytest.raises(TestbedError, match=f"{state.run} does not count: .*limit_ms is 100;")
    with refused if within_ms > 100 else nullcontext():
        FlinkMonitor(state).finish()
    events = state.journal.read(0)[0]["event"]
    assert events["event"] == ["timer_lag"]
    assert f"within {within_ms} ms" in events["detail"][0]


def test_before_its_end_nothing_is_said_of_the_timers_of_a_run(state):
    state.reading.time_s = state.config.duration_s - 5
    state.reading.lags = {"g1 front 0": [*(0,) * len(LAG_MS), 99]}
    FlinkMonitor(state).finish()
    assert state.journal.read(0)[0] == {}


def restarted(state: FlinkState, restored: int = 0) -> None:
    """The job begins at second 1, and is started again at 6."""
    for graph, second, checkpoint in (("g1", 1, 0), ("g2", 6, restored)):
        begun_us = state.clock.started_us + second * 1_000_000
        for name in state.operators:
            subtask_of(state.folder, name, graph=graph, begun_us=begun_us, restored=checkpoint)
    state.restarts = [
        PendingRescale(
            asked_s=-1.0, cause="crash", before=3, after=3, graph="g2", previous="g1",
            checkpoint_s=0.0, checkpoint_bytes=0, up_s=6.0,
        )
    ]  # fmt: skip


def test_a_gap_is_from_the_last_item_that_counts_to_the_first_after_the_start(state):
    restarted(state, restored=1)
    second_us = [state.clock.started_us + second * 1_000_000 for second in range(10)]
    for subtask in state.starts.look()[0].subtasks:
        write_counts(subtask.path, second_us[5])
    write_rows(state.folder, "end", 0, [(0, 0, *second_us[:3], second_us[3])])
    undone = [(0, number, *second_us[:3], second_us[4]) for number in (1, 2)]
    write_rows(state.folder, "end", 1, undone)
    for name, done in (("front", 7), ("end", 8)):
        write_rows(state.folder, name, 1, [(0, 1, *second_us[:3], second_us[done])], graph="g2")
    row = finished(state, "rescale")
    assert (row["asked_s"], row["down_s"], row["up_s"]) == ([5.0], [5.0], [6.0])
    assert (row["gap_s"], row["reprocessed_items"]) == ([5.0], [2])
    assert (state.job_starts, state.job_changes) == (1, 0)


def test_a_start_that_could_write_nothing_was_down_as_it_opened(state):
    """As on a disk that is full: names are there, and nothing in them."""
    restarted(state)
    row = finished(state, "rescale")
    assert (row["down_s"], row["up_s"]) == ([1.0], [6.0])
    assert math.isnan(row["gap_s"][0])
    assert state.job_starts == 0


def test_an_item_whose_row_comes_late_is_told_once(state, monkeypatch):
    """Its row is written after a reading that came after its end."""
    restarted(state)
    monitor, second_us = FlinkMonitor(state), state.clock.started_us + 1_000_000
    rows = [(0, number, *(second_us,) * 3, second_us + 1000 * number) for number in range(1, 4)]
    told = []
    for whole, now_us in ((1, second_us + 2500), (2, second_us + 2600), (3, second_us + 5000)):
        monkeypatch.setattr("include.testbeds.live.reading.now_us", lambda now_us=now_us: now_us)
        path = write_rows(state.folder, "front", 1, rows[:whole])
        os.utime(path, (now_us / 1e6, now_us / 1e6))
        monitor.read(5.0)
        told.append(state.reading.recorded["front"])
    assert told == [1, 2, 3]
    FlinkMonitor(state).read(10.0)
    assert state.reading.recorded["front"] == 3, "nor by the next process"


@pytest.mark.parametrize(("ms", "kept"), [(12.5, 12.5), (-0.2, 0.0), (-50.0, 0.0), (-51.0, -51.0)])
def test_a_time_far_below_0_is_left_for_the_gate(ms, kept):
    """It is of two clocks, one of which is set wrong."""
    assert not_before(ms) == kept
