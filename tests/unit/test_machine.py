"""What is watched of the machine, and that only testbeds that want it have rows of it."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from include.runs.machine import MachineWatch
from include.runs.measurements.window import read_window
from include.runs.stages import control_windows
from include.testbeds import TESTBEDS
from tests.builders import begun, run_spec


def test_a_timer_that_waits_for_the_processor_is_late(monkeypatch):
    """Sleeps that take 5 ms more than asked for, and one that takes 60 ms more."""
    clock_s = [0.0]
    extra_s = iter([0.005] * 99 + [0.06] + [0.005] * 100)

    def sleep(length_s):
        clock_s[0] += length_s + next(extra_s)
        if clock_s[0] > 5.0:  # 198 timers of 25 ms and the late one
            watch._stop.set()

    loads = iter([1.5, 0.5, 4.0, 2.0])  # at first, and after every 50 of the 199 timers
    monkeypatch.setattr("include.runs.machine.LOAD_EVERY", 50)
    monkeypatch.setattr("include.runs.machine.os.getloadavg", lambda: (next(loads), 0.0, 0.0))
    monkeypatch.setattr("include.runs.machine.time.perf_counter", lambda: clock_s[0])
    monkeypatch.setattr("include.runs.machine.time.sleep", sleep)
    watch = MachineWatch()
    watch._watch()
    row = watch.columns(120.0)
    assert row["time_s"] == [120.0]
    assert row["timer_lag_p99_ms"] == pytest.approx([5.0])
    assert row["timer_lag_max_ms"] == pytest.approx([60.0])
    assert row["load"] == [4.0]


def test_it_watches_in_a_thread_while_it_is_entered():
    with MachineWatch() as watch:
        time.sleep(0.1)
    (lag_ms,) = watch.columns(1.0)["timer_lag_max_ms"]
    assert lag_ms > 0
    assert not watch._thread.is_alive()


@pytest.mark.parametrize("measures", [(), ("machine", "rescale")])
def test_only_testbeds_that_name_them_have_the_tables(measures, tmp_path, monkeypatch):
    monkeypatch.setitem(TESTBEDS, "simulated", replace(TESTBEDS["simulated"], measures=measures))
    spec = run_spec(
        experiment="e", controller="threshold", pattern="constant", btu_min=1, duration_min=2
    )
    tables = read_window(begun(spec, tmp_path, 1).rows(0))
    assert {"machine", "rescale"} & set(tables) == set(measures)
    if measures:
        assert tables["machine"]["time_s"].to_pylist() == [60.0]
        assert tables["rescale"].num_rows == 0
    control_windows(spec, tmp_path, 1, 1)
    stored = {path.parents[2].name for path in tmp_path.rglob("part-all.parquet")}
    assert {"machine", "rescale"} & stored == set(measures)
