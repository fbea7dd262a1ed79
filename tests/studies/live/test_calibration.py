"""What live runs recorded becomes a calibration that the simulator reads."""

from __future__ import annotations

import pytest

from include.studies.live.__main__ import main
from include.studies.live.calibration import as_yaml, boots, bounds_of, services, starts
from include.testbeds.virtual.calibration import PARAMETERS


def recorded(operator, *services_ms, wait_ms=2.0):
    return [
        {"operator": operator, "duration_ms": wait_ms + one, "wait_ms": wait_ms}
        for one in services_ms
    ]


def activity(time_s, activity, instance="", host="host-3"):
    return {"time_s": time_s, "activity": activity, "instance": instance, "host": host}


def event(time_s, event, subject, detail=""):
    return {"time_s": time_s, "event": event, "subject": subject, "detail": detail}


ACTIVITIES = [
    activity(10, "host_leased"),
    activity(10, "upscaling", "O1-7"),
    activity(30, "upscaling", "O1-8"),
    activity(40, "downscaling", "O1-1", host="host-1"),
]
EVENTS = [
    event(12.5, "host_up", "host-3", "answers 2.40 s after its order"),
    event(
        20,
        "instance_started",
        "O1-7",
        "ready 7.50 s after the decision, of which pulling its image took 4.00 s; "
        "first item 7.80 s after it",
    ),
    event(32, "instance_started", "O1-8", "ready 0.75 s after the decision; first item 0.9 s"),
    event(33, "instance_crash", "O1-8", "exit code 137"),
]


def test_a_service_is_the_duration_without_the_wait():
    found = services([*recorded("O1", 200, 300), *recorded("O2", 5, 5, wait_ms=40)])
    assert (found["O1"].samples, found["O1"].mean_ms) == (2, 250)
    assert found["O1"].cv == pytest.approx(0.2)
    assert (found["O2"].mean_ms, found["O2"].cv) == (5, 0)


def test_a_start_counts_from_the_time_its_host_was_up():
    assert boots(EVENTS, ACTIVITIES) == [2.5]
    cold, cached = starts(EVENTS, ACTIVITIES)
    assert cold == pytest.approx((4.0, 1.0))
    assert cached == (0.0, 0.75)


@pytest.mark.parametrize(
    ("seconds", "bounds"), [((2.0, 2.0), (2, 2)), ((1.0, 3.0), (0.27, 3.73)), ((0, 0, 9), (0, 6))]
)
def test_bounds_keep_the_mean(seconds, bounds):
    assert bounds_of(seconds) == bounds


def test_the_file_is_one_the_simulator_reads(tmp_path):
    path = tmp_path / "mine.yaml"
    rows = [*recorded("O1", 200, 300), *recorded("O2", 5)]
    path.write_text(as_yaml(rows, EVENTS, ACTIVITIES, sample_every_items=5))
    calibration = PARAMETERS.load_calibration(str(path))
    assert calibration.service_ms == {"O1": 250, "O2": 5}
    assert calibration.host_boot_s == (2.5, 2.5)
    assert calibration.latency_ms == 2
    assert calibration.sample_every_items == 5


def test_a_file_that_cannot_be_written_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("include.studies.live.__main__.calibrate", lambda _: "service_ms: {}")
    (tmp_path / "taken").touch()
    assert main(["--root", str(tmp_path), "--out", str(tmp_path / "taken" / "mine.yaml")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_without_a_start_the_defaults_stay(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(as_yaml(recorded("O1", 200), [], [], sample_every_items=5))
    assert PARAMETERS.load_calibration(str(path)).instance_start_s == (5, 10)
