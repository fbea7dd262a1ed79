"""Equal steps and bridged gaps."""

from __future__ import annotations

import numpy as np
import pytest

from include.model.errors import SpecError
from include.workloads.recordings import Recording, evenly, filled

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
