"""Whether a run counts, by how late its timers were, without a Flink."""

from __future__ import annotations

import pytest

from include.model.errors import TestbedError
from include.testbeds.flink.calibration import FlinkCalibration
from include.testbeds.flink.instances import LAG_MS
from include.testbeds.flink.monitor import FlinkMonitor
from include.testbeds.flink.state import FlinkState
from tests.flink.flink_run import configured

LIMIT_MS = 100.0


@pytest.fixture
def state(monkeypatch, tmp_path):
    """Of a run at whose end somebody was there for the last reading."""
    monkeypatch.setenv("TIDEBENCH_FLINK_STATE", str(tmp_path))
    state = FlinkState(configured(), FlinkCalibration(lag_limit_ms=LIMIT_MS))
    state.begin(0)
    state.graph = "g1"
    state.reading.time_s = state.config.duration_s
    return state


def lags_of(**late: int) -> dict[str, list[int]]:
    """99 timers of a subtask that were less than 1 ms late, and of another some that were later.

    ``late`` has them by bound: ``ms_50=2`` are two that were 20 to 50 ms late.
    """
    counts = {int(bound.removeprefix("ms_")): count for bound, count in late.items()}
    slow = [counts.pop(bound, 0) for bound in (*LAG_MS, 2 * LAG_MS[-1])]
    assert not counts
    return {"g1 front 0": [99, *(0,) * len(LAG_MS)], "g1 back 0": slow}


def told(state: FlinkState) -> list[tuple[str, str]]:
    events = state.journal.read(0)[0].get("event", {"event": [], "detail": []})
    return list(zip(events["event"], events["detail"], strict=True))


@pytest.mark.parametrize(
    ("late", "within_ms"), [({"ms_200": 2}, 200), ({"ms_500": 50}, 500), ({"ms_1000": 2}, 1000)]
)
def test_a_run_whose_timers_were_too_late_does_not_count(state, late, within_ms):
    state.reading.lags = lags_of(**late)
    with pytest.raises(TestbedError, match=f"{state.run} does not count: .* lag_limit_ms is 100;"):
        FlinkMonitor(state).finish()
    ((event, detail),) = told(state)
    assert event == "timer_lag"
    assert f"within {within_ms} ms" in detail


@pytest.mark.parametrize(
    ("late", "within_ms"), [({"ms_1000": 1}, 1), ({"ms_50": 2}, 50), ({"ms_100": 50}, 100)]
)
def test_a_run_whose_timers_were_in_time_counts(state, late, within_ms):
    """Also where they were as late as the limit, and one of a hundred was later."""
    state.reading.lags = lags_of(**late)
    FlinkMonitor(state).finish()
    ((event, detail),) = told(state)
    assert event == "timer_lag"
    assert f"within {within_ms} ms" in detail


def test_before_its_end_nothing_is_said_of_the_timers_of_a_run(state):
    state.reading.time_s = state.config.duration_s - 5
    state.reading.lags = lags_of(ms_1000=99)
    FlinkMonitor(state).finish()
    assert told(state) == []
