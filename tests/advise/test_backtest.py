"""A model held against another recording: what it made itself it predicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from include.advise.backtest import (
    Backtest,
    PredictedFigure,
    Scaler,
    backtest,
    doubts,
    replays_of,
)
from include.advise.candidates import policy
from include.advise.job import drawn, fit
from include.advise.readings import averaged
from include.advise.replay import ReplayConditions, replay
from include.cli import app
from include.cli.advise import backtest_table
from include.experiment.options import parsed_options
from include.experiment.prices import PRICE_BOOKS
from include.model.errors import SpecError
from include.workloads.recordings import Recording, read_recording
from tests.advise.synthetic import (
    RESTARTS,
    Truth,
    as_recording,
    csv,
    daily,
    of_readings,
    recording,
    without,
)
from tests.command_line import refused, said
from tests.problems import problems_told
from tests.recorded import REAL

HPA = {"target_cpu": 0.35, "max_instances": 24}


@pytest.fixture(scope="module")
def fitted() -> Recording:
    return recording(Truth(restarts=RESTARTS), daily(), name="fixed.csv")


@pytest.fixture(scope="module")
def seen(fitted: Recording) -> Recording:
    """What the model of the other recording itself does under the HPA, as a recording."""
    load = daily(mean=40_000)
    start = ReplayConditions(instances_at_start=12, max_instances=24, seed=7)
    run = replay(drawn(fit(fitted), 7), load, start, policy("hpa", HPA, start).build)
    assert np.ptp(run.instances) > 5  # it has scaled
    return as_recording(run, load)


def rows(result: Backtest) -> dict[str, PredictedFigure]:
    return {row.name: row for row in result.rows}


def test_with_its_seed_a_model_predicts_itself_to_the_digit(
    fitted: Recording, seen: Recording
) -> None:
    result = backtest(fit(fitted), seen, Scaler("hpa", HPA), seeds=(7,))
    assert result.correlation == pytest.approx((1.0,))
    assert len(result.rows) == 6
    for row in result.rows:
        assert row.recorded > 0
        assert row.predicted == pytest.approx(row.recorded, rel=1e-12)
        assert row.error == pytest.approx(0, abs=1e-12)


def test_with_other_seeds_it_is_near(fitted: Recording, seen: Recording) -> None:
    result = backtest(fit(fitted), seen, Scaler("hpa", HPA), seeds=(1, 2, 3))
    assert len(result.correlation) == 3
    assert min(result.correlation) > 0.94
    for row in result.rows:
        assert row.low <= row.predicted <= row.high
    assert abs(rows(result)["mean instances"].error) < 0.05
    assert abs(rows(result)["mean CPU"].error) < 0.03
    assert abs(rows(result)["median latency"].error) < 0.02
    lag = rows(result)["time with lag above 10000"]
    assert lag.low <= lag.recorded <= lag.high


def seldom(given_: Recording, every: int) -> Recording:
    """The recording of a monitor that keeps one mean in place of so many readings on end."""
    readings = {name: averaged(values, every) for name, values in given_.readings.items()}
    return replace(given_, times_s=given_.times_s[::every], readings=readings)


@pytest.mark.parametrize("every", [2, 4])
def test_a_replay_is_held_against_a_recording_at_its_own_interval(
    fitted: Recording, seen: Recording, every: int
) -> None:
    """A model that made the recording predicts it, however seldom readings are kept."""
    result = rows(backtest(fit(fitted), seldom(seen, every), Scaler("hpa", HPA), seeds=(7,)))
    for name in ("mean instances", "mean CPU", "median latency"):
        assert abs(result[name].error) < 0.02
    scalings = result["scalings a day"]
    assert scalings.recorded > 10
    assert abs(scalings.error) < 0.15
    within = result["records within 2 s"]
    assert abs(within.predicted - within.recorded) < 0.01


def test_another_policy_than_the_one_that_ran_is_seen_to_be_wrong(
    fitted: Recording, seen: Recording
) -> None:
    result = backtest(fit(fitted), seen, Scaler("hpa", HPA | {"target_cpu": 0.7}), seeds=(7,))
    assert rows(result)["mean instances"].error < -0.3


def test_who_weighs_hosts_is_replayed_with_their_prices_and_their_size(fitted: Recording) -> None:
    """Hosts by the hour are kept in the valley; hosts of four cannot be given back one by one."""
    model, valley = fit(fitted), fitted.at(slice(960, 1440))
    test = replace(valley, times_s=np.arange(480) * 15.0)

    def fewest(per_host: int, book: str) -> float:
        scaler = Scaler("tide", {}, PRICE_BOOKS[book])
        (run,), _ = replays_of(model, replace(test, instances_per_host=per_host), scaler, (1,))
        return float(run.instances.min())

    assert fewest(1, "per_minute") < fewest(1, "btu60")
    assert fewest(1, "per_minute") < fewest(4, "per_minute")


def test_errors_are_of_what_was_recorded_and_nan_where_nothing_was(
    fitted: Recording, seen: Recording
) -> None:
    silent = without(seen, "latency_s", "lag_items")
    result = backtest(fit(fitted), silent, Scaler("hpa", HPA), seeds=(7,), behind_items=5)
    assert np.isnan(rows(result)["median latency"].recorded)
    assert np.isnan(rows(result)["median latency"].error)
    assert np.isnan(rows(result)["time with lag above 5"].recorded)
    assert rows(result)["mean instances"].error == pytest.approx(0, abs=1e-12)
    one = PredictedFigure(name="a", unit="", predicted=3, low=3, high=3, recorded=2)
    assert one.error == 0.5


def test_nothing_is_printed_as_nan(fitted: Recording, seen: Recording) -> None:
    silent = without(seen, "latency_s")
    never = of_readings(dict(silent.readings) | {"instances": np.full(seen.times_s.size, 12.0)})
    table = backtest_table(backtest(fit(fitted), never, Scaler("hpa", HPA)))
    lines = {line[:32].strip(): line[32:].split() for line in table.splitlines()}
    assert "nan" not in table.lower()
    predicted, *_, recorded, error = lines["scalings a day"]
    assert float(predicted) > 0
    assert recorded == "0"
    assert float(error) == pytest.approx(float(predicted), rel=0.01)
    assert "+" in error
    assert lines["median latency, s"] == ["not", "recorded"]
    assert lines["correlation of the instances"][0] == "none:"


def test_a_recording_of_another_job_is_doubted_by_its_load_and_its_cpu(
    fitted: Recording, seen: Recording
) -> None:
    job = fit(fitted)
    assert doubts(job, fitted, seen) == []
    heavier = recording(Truth(demand_ms=0.15), daily(), name="heavier.csv")
    (told,) = doubts(job, fitted, heavier)
    assert "CPU in heavier.csv is" in told
    busier = recording(Truth(), daily(mean=200_000), 80.0, name="busier.csv")
    (told,) = doubts(job, fitted, busier)
    assert "the loads overlap by 0%" in told
    assert "busier.csv" in told


def test_the_start_and_the_most_are_those_that_were_recorded(fitted: Recording) -> None:
    load = daily(hours=2, mean=300_000)
    instances = np.linspace(9, 14, load.size).round()
    instances[0] = np.nan
    shown = recording(Truth(), load, instances, "busy.csv")
    result = backtest(fit(fitted), shown, Scaler("hpa", {"target_cpu": 0.2}), seeds=(1,))
    assert 9 < rows(result)["mean instances"].predicted <= 14
    given_ = backtest(
        fit(fitted), shown, Scaler("hpa", {"target_cpu": 0.2, "max_instances": 30}), seeds=(1,)
    )
    assert rows(given_)["mean instances"].predicted > 14
    kept = backtest(fit(fitted), shown, Scaler("fixed", {"instances_each": 9}), seeds=(1,))
    assert rows(kept)["mean instances"].predicted == 9
    assert np.isnan(kept.correlation[0])


def test_nothing_to_hold_it_against_is_refused(fitted: Recording, seen: Recording) -> None:
    empty = of_readings(dict(seen.readings) | {"instances": np.full(seen.times_s.size, np.nan)})
    with pytest.raises(SpecError, match="no readings of instances to hold the replay against"):
        backtest(fit(fitted), empty, Scaler("hpa", HPA))


@pytest.mark.parametrize(
    ("controller", "options", "said"),
    [
        ("hpaa", {}, ["unknown controller 'hpaa'. Did you mean 'hpa'?"]),
        (
            "hpa",
            {"targetcpu": 1, "tolerance": "much"},
            ["unknown option 'targetcpu'. Did you mean 'target_cpu'?", "hpa.tolerance"],
        ),
        ("nowhere:Mine", {}, ["No module named 'nowhere'"]),
        (
            "hpa",
            {"target_cpu": 2, "stabilise_s": -1},
            ["target_cpu must be a share of at most 1", "stabilise_s must not be negative"],
        ),
    ],
)
def test_a_policy_that_cannot_be_says_everything_at_once(
    controller: str, options: dict[str, object], said: list[str]
) -> None:
    conditions = ReplayConditions(instances_at_start=1, max_instances=5)
    problems = problems_told(policy, controller, options, conditions)
    assert len(problems) == len(said)
    assert all(any(one in told for told in problems) for one in said)


def test_a_policy_with_a_limit_keeps_to_that_of_the_job_unless_it_has_its_own() -> None:
    given_ = ReplayConditions(instances_at_start=1, max_instances=5)
    assert policy("hpa", {}, given_).options == {"max_instances": 5}
    assert policy("hpa", {"max_instances": 3}, given_).options == {"max_instances": 3}
    assert policy("hpa", {"min_instances": 7}).options["min_instances"] == 7, "of any job"
    assert "max_instances" not in policy("fixed", {}, given_).options


def test_the_most_may_be_written_with_a_point(fitted: Recording, seen: Recording) -> None:
    found = [
        backtest(fit(fitted), seen, Scaler("target-tracking", {"max_instances": most}), seeds=(1,))
        for most in (13, 13.0)
    ]
    assert found[0].rows == found[1].rows


def files(tmp_path: Path, *given_: Recording) -> list[str]:
    for one in given_:
        (tmp_path / one.name).write_text(csv(one))
    first, second = (str(tmp_path / one.name) for one in given_)
    return ["backtest", first, "--against", second]


def test_the_command_shows_the_model_and_the_comparison(
    tmp_path: Path, fitted: Recording, seen: Recording
) -> None:
    options = ["--set", "target_cpu=0.35", "--set", "max_instances=24", "--seeds=2"]
    done = said(*files(tmp_path, fitted, seen), *options)
    assert "Model of fixed.csv, in steps of 15 s:" in done
    assert "restarts seen    6" in done
    assert "note: what a restart does is the mean of 6 that were recorded" in done
    lines = {line[:32].strip(): line[32:].split() for line in done.splitlines()}
    predicted, *_, recorded, error = lines["mean instances"]
    assert float(predicted) == pytest.approx(float(recorded), rel=0.02)
    assert abs(float(error.rstrip("%"))) < 2
    assert "median latency, s" in lines
    assert "time with lag above 10000" in lines
    assert float(lines["correlation of the instances"][0]) > 0.94


def test_the_command_warns_of_another_job_and_goes_on(tmp_path: Path, fitted: Recording) -> None:
    heavier = recording(Truth(demand_ms=0.15), daily(), name="heavier.csv")
    done = CliRunner().invoke(app, [*files(tmp_path, fitted, heavier), "--seeds=1"])
    assert done.exit_code == 0, done.exception
    assert "warning: CPU in heavier.csv is" in done.stderr
    assert "mean instances" in done.stdout


def test_the_command_sorts_rows_where_it_is_asked_to(
    tmp_path: Path, fitted: Recording, seen: Recording
) -> None:
    asked = [*files(tmp_path, fitted, seen), "--seeds=1"]
    sorted_ = said(*asked)
    head, *rows = (tmp_path / seen.name).read_text().splitlines()
    (tmp_path / seen.name).write_text("\n".join([head, *rows[900:], *rows[:905], ""]))
    assert "--sort" in refused(*asked)
    done = said(*asked, "--sort")
    figures = sorted_.partition("predicted")[2]
    assert figures
    assert figures == done.partition("predicted")[2]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--set", "target_cpu", "--set", "=3", "--set", "a="], ["'target_cpu'", "'=3'", "'a='"]),
        (["--set", "b=[0.3", "--set", "a={", "--set", "c"], ["'b=[0.3'", "'a={'", "'c'"]),
        (["--map", "rates=x,lagg=y"], ["'rates'", "'lagg'"]),
        (["--map", "rate=nowhere"], ["nowhere"]),
        (["--start-up-s", "-5", "--restart-s", "nan"], ["--start-up-s: write", "--restart-s: wr"]),
        (["--start-up-s", "inf", "--restart-s", "3601"], ["got inf", "got 3601"]),
        (["--set", "max_instances=1000000000"], ["has at most 2000 instances"]),
        (["--controller", "fixed", "--set", "instances_each=900000000"], ["at most 2000"]),
        (["--set", "target_cpu=nan"], ["hpa.target_cpu: must be a finite number, got 'nan'"]),
        (["--controller", "tide", "--set", "interval_s=nan"], ["interval_s: must be a finite"]),
    ],
)
def test_what_the_command_cannot_do_is_said(
    more: list[str], said: list[str], tmp_path: Path, fitted: Recording, seen: Recording
) -> None:
    done = refused(*files(tmp_path, fitted, seen), *more)
    assert all(one in done for one in said), done


def test_options_are_read_as_yaml_reads_them() -> None:
    assert parsed_options([" a = 0.35", "b=24", "c=when_empty", "d=x=1", "e=2026-13-45"]) == {
        "a": 0.35, "b": 24, "c": "when_empty", "d": "x=1", "e": "2026-13-45",
    }  # fmt: skip


OPERATOR = {
    "target_share": 0.35, "boundary": 0.15, "stabilise_s": 120, "window_s": 60, "restart_s": 60,
    "catch_up_s": 300, "scale_down_after_s": 0, "up_grace_s": 3600, "key_groups": 24,
    "max_instances": 24,
}  # fmt: skip
"""The settings of the recording, and the defaults of the operator's version 1.6."""


def real(*names: str) -> list[Recording]:
    return [read_recording(str(REAL / "recordings" / name)) for name in names]


@pytest.mark.recorded
def test_a_real_job_under_the_hpa_is_predicted_from_a_recording_of_24_instances() -> None:
    fixed, reactive = real("ads_fixed24.csv", "ads_reactive35.csv")
    result = backtest(fit(fixed), reactive, Scaler("hpa", HPA))
    assert abs(rows(result)["mean instances"].error) <= 0.10
    assert min(result.correlation) >= 0.9
    assert abs(rows(result)["median latency"].error) <= 0.10
    lag = rows(result)["time with lag above 10000"]
    assert abs(lag.predicted - lag.recorded) <= 0.05


@pytest.mark.recorded
def test_a_real_job_under_the_flink_operator_has_as_many_task_managers_as_predicted() -> None:
    fixed, operated = real("ads_fixed24.csv", "ads_operator35.csv")
    result = backtest(fit(fixed), operated, Scaler("flink-autoscaler", OPERATOR))
    assert abs(rows(result)["mean instances"].error) <= 0.10
