"""How long scalings take is found again, or what to record is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from include.advise.backtest import Scaler, replays_of
from include.advise.job import TAKES_S, fit, with_times
from include.advise.times import start_up_in
from include.workloads.recordings import Recording
from tests.advise.synthetic import (
    LATENCY_EXCESS_S,
    Truth,
    case_of,
    csv,
    daily,
    of_readings,
    recording,
    small_request,
)
from tests.advise.test_job import SCALED, with_scalings
from tests.command_line import refused, said

PEAK_S = max(LATENCY_EXCESS_S)


def ordered(start_s: float, rises: int, hours: float = 12) -> Recording:
    """Scale-ups at odd seconds whose instances come ``start_s`` after they were asked for."""
    load = daily(hours)
    times_s = np.arange(load.size) * 15.0
    at_s = 1000.0 + 1003.7 * np.arange(rises)
    wanted = 20.0 + np.searchsorted(at_s, times_s, side="right").astype(np.float64)
    count = 20.0 + np.searchsorted(at_s + start_s, times_s, side="right")
    made = recording(Truth(), load, count)
    return of_readings({**made.readings, "desired_instances": wanted})


@pytest.mark.parametrize("start_s", [4.0, 40.0, 130.0])
def test_the_start_of_an_instance_is_found_again_and_its_interval_covers_it(start_s: float) -> None:
    job = fit(ordered(start_s, 30))
    found = job.times.start_up
    assert found.value is not None
    assert found.value.low <= start_s <= found.value.high
    assert found.value.high - found.value.low < 12
    assert "fitted on 30 scale-ups" in found.said
    assert job.takes_s == found.value.value


def test_the_replay_takes_the_start_that_it_is_given() -> None:
    """The first new instance comes later by as much as its start takes longer."""
    known = ordered(2.0, 30)
    job = fit(known)
    scaler = Scaler("hpa", {"target_cpu": 0.35, "max_instances": 50})
    came_s = []
    for start_s in (15.0, 315.0):
        (run,), _ = replays_of(with_times(job, start_s, None), known, scaler, (1,))
        assert run.instances.max() > run.instances[0]
        came_s.append(job.step_s * int((run.instances > run.instances[0]).argmax()))
    assert came_s[0] > 0
    assert came_s[1] - came_s[0] == 300


def test_without_what_was_asked_for_it_says_what_to_record_and_what_is_assumed() -> None:
    job = fit(recording(Truth(), daily()))
    assert job.times.start_up.value is None
    assert "--map desired=COLUMN" in job.times.start_up.said
    assert "15 s are assumed" in job.times.start_up.said
    assert job.takes_s == TAKES_S


def test_few_scale_ups_and_those_that_were_given_up_tell_nothing() -> None:
    assert "4 scale-ups were recorded" in start_up_in(ordered(30.0, 4), 15.0).said
    made = ordered(30.0, 8)
    never = of_readings({**made.readings, "instances": np.full(made.times_s.size, 20.0)})
    assert "0 scale-ups were recorded" in start_up_in(never, 15.0).said


@pytest.mark.parametrize("share", [0.3, 1.4])
def test_the_restart_by_a_scaling_is_found_again_and_its_interval_covers_it(share: float) -> None:
    own = tuple(one + 50 for one in SCALED[::4])
    model = fit(with_scalings(share, own, SCALED))
    assert model.restart.planned_share == pytest.approx(share, abs=0.05)
    assert any("of what a restart does by itself" in note for note in model.notes)
    times = model.times
    for found, truth_s in ((times.by_scaling, share * PEAK_S), (times.by_itself, PEAK_S)):
        assert found.value is not None
        assert found.value.value == pytest.approx(truth_s, rel=0.05)
        assert found.value.low <= found.value.value <= found.value.high
    assert f"{len(SCALED)} scalings and {len(own)} restarts" in times.by_scaling.said


def test_restarts_that_a_recording_cannot_tell_are_said() -> None:
    times = fit(with_scalings(1.4, (), SCALED[:3])).times
    assert times.by_scaling.value is None
    assert times.by_itself.value is None
    assert "3 scalings and 0 restarts" in times.by_scaling.said
    assert "--restart-s" in times.by_scaling.said
    assert "0 restarts that no scaling explains" in times.by_itself.said


def test_what_a_user_knows_goes_before_what_was_fitted() -> None:
    own = tuple(one + 50 for one in SCALED[::4])
    job = with_times(fit(with_scalings(0.3, own, SCALED)), 90.0, 6.0)
    assert job.takes_s == 90
    assert job.restart.planned_share * max(job.restart.latency_excess_s) == pytest.approx(6)
    assert "--start-up-s" in job.times.start_up.said
    assert "--restart-s" in job.times.by_scaling.said


@pytest.mark.parametrize("restart_s", [0.0, 40.0, 600.0])
def test_a_restart_can_be_asked_for_where_none_was_recorded(restart_s: float) -> None:
    job = with_times(fit(recording(Truth(), daily())), None, restart_s)
    assert job.restart.latency_excess_s[0] == pytest.approx(restart_s)
    assert job.restart.latency_excess_s[-1] <= job.step_s, "until all is made up for"
    assert job.restart.planned_share == 1
    assert job.takes_s == TAKES_S


def test_both_options_reach_the_replay(tmp_path: Path) -> None:
    asked = small_request(tmp_path, objective="latency p95 < 2 s", start_up_s=70.0, restart_s=3.0)
    case = case_of(asked)
    assert case.question.conditions.takes_s == 70
    assert case.job.restart.planned_share * max(case.job.restart.latency_excess_s) == pytest.approx(
        3
    )


def test_the_command_shows_every_time_and_takes_the_options(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(csv(recording(Truth(), daily(4))))
    at = str(tmp_path / "a.csv")
    ran = said("backtest", at, "--against", at, "--start-up-s", "45")
    assert "start of an instance 45.0 s (45.0 to 45.0)" in ran
    assert "as asked for with --start-up-s" in ran
    assert "restart by a scaling unknown" in ran


def test_backtest_tells_wrong_options_with_all_else_that_is_wrong(tmp_path: Path) -> None:
    asked = ["backtest", str(tmp_path / "no.csv"), "--against", str(tmp_path / "none.csv")]
    why = refused(*asked, "--objective", "fast", "--set", "target_cqu=1")
    for told in ("target_cqu", "no.csv", "none.csv", "fast"):
        assert told in why
