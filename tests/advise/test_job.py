"""A model has to find again what made the readings, and says so where it cannot."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.advise.job import JobModel, drawn, fit
from include.advise.objective import LatencyObjective
from include.advise.outcomes import scalings_of
from include.advise.readings import Readings, lasting_changes, readings_of
from include.advise.restarts import PLANNED_RANGE, PLANNED_SHARE
from include.model.errors import SpecError
from include.workloads.recordings import Recording
from include.workloads.recordings.recording import FloatArray
from tests.advise.synthetic import (
    CPU_EXCESS,
    LAG_S,
    LATENCY_EXCESS_S,
    QUIET_LAG_S,
    QUIET_LATENCY_S,
    RESTARTS,
    STEP_S,
    Truth,
    daily,
    of_readings,
    recording,
    without,
)


@pytest.fixture(scope="module")
def known() -> JobModel:
    return fit(recording(Truth(restarts=RESTARTS), daily()))


def test_overhead_and_demand_are_found_again(known: JobModel) -> None:
    truth = Truth()
    assert known.overhead.value == pytest.approx(truth.overhead, abs=0.005)
    assert known.overhead.low <= truth.overhead <= known.overhead.high
    assert known.demand_ms.value == pytest.approx(truth.demand_ms, rel=0.03)
    assert known.demand_ms.low <= truth.demand_ms <= known.demand_ms.high
    assert known.cpu_noise == pytest.approx(truth.noise, rel=0.2)
    assert known.quiet_latency_s == QUIET_LATENCY_S
    assert known.quiet_lag_s == pytest.approx(QUIET_LAG_S, rel=0.02)


def test_restarts_are_found_where_they_were_with_what_they_did(known: JobModel) -> None:
    assert known.incidents_s == tuple(start * STEP_S for start in RESTARTS)
    restart = known.restart
    assert restart.seen == len(RESTARTS)
    during = len(LAG_S)
    assert restart.cpu_excess[:during] == pytest.approx(CPU_EXCESS, abs=0.02)
    assert restart.lag_s[:during] == pytest.approx(LAG_S, rel=0.02)
    assert restart.latency_excess_s[:during] == pytest.approx(LATENCY_EXCESS_S)
    assert restart.cpu_excess[during:] == pytest.approx([0] * 6, abs=0.02)
    assert restart.lag_s[during:] == pytest.approx([QUIET_LAG_S] * 6, rel=0.02)
    assert restart.latency_excess_s[during:] == pytest.approx([0] * 6)


def test_a_job_of_few_records_has_the_same_model_as_one_of_many(known: JobModel) -> None:
    many = recording(Truth(restarts=RESTARTS), daily())
    fewer = dict.fromkeys(("rate_per_s", "lag_items"), 1e-5)  # half a record a second
    readings = {name: fewer.get(name, 1.0) * of for name, of in many.readings.items()}
    found = fit(of_readings(readings))
    assert found.quiet_lag_s == pytest.approx(known.quiet_lag_s)
    assert found.restart.lag_s == pytest.approx(known.restart.lag_s)
    assert found.restart.latency_excess_s == pytest.approx(known.restart.latency_excess_s)
    assert found.most_per_s == pytest.approx(1e-5 * known.most_per_s)


@pytest.mark.parametrize("apart_s", [30, 60, 120])
def test_a_late_reading_is_late_for_as_long_as_it_stands_for(apart_s: int) -> None:
    steps = np.arange(480)
    late = np.where(steps % 12 == 6, 9.0, 1.0)
    readings = {"rate_per_s": 100.0, "cpu_share": 0.5, "instances": 4.0}
    given_ = of_readings({name: np.full(480, of) for name, of in readings.items()})
    given_ = replace(given_, readings={**given_.readings, "latency_s": late})
    read = readings_of(replace(given_, times_s=steps * float(apart_s)))
    within = LatencyObjective(0.95, 2.0).within(read.load_per_s, read.latency_s)
    assert within == pytest.approx(11 / 12, abs=0.002)
    np.testing.assert_array_equal(read.latency_s[:: apart_s // 15], late)


def test_signals_that_are_read_in_turns_are_read_as_seldom_as_each_is() -> None:
    """A minute apart each, and 20 s from one to the other."""
    names, every = ("rate_per_s", "cpu_share", "instances"), np.arange(360)
    readings = {name: np.where(every % 3 == turn, 4.0, np.nan) for turn, name in enumerate(names)}
    given_ = replace(of_readings(readings), times_s=every * 20.0)
    assert readings_of(given_).interval_s == 60


def test_the_load_goes_on_through_a_restart() -> None:
    load = daily()
    found = readings_of(recording(Truth(restarts=RESTARTS), load)).load_per_s
    np.testing.assert_allclose(found, load, rtol=0.03)


@settings(max_examples=10, deadline=None)
@given(overhead=st.floats(0, 0.2), demand_ms=st.floats(0.02, 0.15), seed=st.integers(0, 1000))
def test_any_job_is_found_again(overhead: float, demand_ms: float, seed: int) -> None:
    truth = Truth(overhead=overhead, demand_ms=demand_ms, noise=0.005, seed=seed)
    found = fit(recording(truth, daily()))
    assert found.overhead.value == pytest.approx(overhead, abs=0.008)
    assert found.demand_ms.value == pytest.approx(demand_ms, abs=0.004)
    for one in (found.overhead, found.demand_ms):
        assert one.low <= one.value <= one.high
    rates = np.linspace(0, 20_000, 200)
    shares = found.cpu_share(rates)
    assert (np.diff(shares) >= -1e-12).all()  # more records never take less CPU
    assert ((shares >= 0) & (shares <= 1)).all()


def test_an_hour_more_or_less_still_gives_an_interval() -> None:
    found = fit(recording(Truth(), daily(hours=1)))
    for one in (found.overhead, found.demand_ms):
        assert one.low < one.value < one.high


def test_a_scaling_is_no_incident_and_its_restart_is_not_learned() -> None:
    instances = np.full(daily().size, 20.0)
    instances[900:] = 30.0
    found = fit(recording(Truth(restarts=(400, 900, 2000)), daily(), instances))
    assert found.incidents_s == (400 * STEP_S, 2000 * STEP_S)
    assert found.restart.seen == 2
    assert found.overhead.value == pytest.approx(Truth().overhead, abs=0.005)
    assert not any("instances were recorded" in note for note in found.notes)


@pytest.mark.parametrize("steps", [1, 3, 6])
def test_a_dip_of_instances_is_no_scaling(steps: int) -> None:
    instances = np.full(daily().size, 20.0)
    instances[400 : 400 + steps] = 19.0  # one is not counted while the job restarts
    found = fit(recording(Truth(restarts=(400, 2000)), daily(), instances))
    assert found.incidents_s == (400 * STEP_S, 2000 * STEP_S)


def test_all_that_a_job_lacks_is_said_at_once() -> None:
    bare = without(recording(Truth(), daily()), "instances", "cpu_share", "rate_per_s")
    with pytest.raises(SpecError) as error:
        fit(bare)
    assert error.value.source == "known.csv"
    said = "\n".join(error.value.problems)
    assert len(error.value.problems) == 3
    for told in ("--map instances=COLUMN", "--map cpu=COLUMN", "--map rate=COLUMN"):
        assert told in said


def test_without_a_restart_nothing_is_learned_of_one_and_that_is_noted() -> None:
    found = fit(recording(Truth(), daily()))
    assert found.incidents_s == ()
    assert found.restart.seen == 0
    assert found.restart.cpu_excess == found.restart.lag_s == found.restart.latency_excess_s == ()
    notes = "\n".join(found.notes)
    assert "only 20 instances were recorded" in notes
    assert "no restart was recorded, so scaling costs nothing in the model; record one" in notes


@pytest.mark.parametrize("absent", ["lag_items", "latency_s"])
def test_one_of_lag_and_latency_shows_restarts(absent: str) -> None:
    found = fit(without(recording(Truth(restarts=RESTARTS), daily()), absent))
    assert found.restart.seen == len(RESTARTS)
    assert np.isfinite(found.restart.lag_s).all()
    assert np.isfinite(found.restart.latency_excess_s).all()


def test_without_lag_and_latency_there_is_a_model_of_the_cpu() -> None:
    found = fit(without(recording(Truth(), daily()), "lag_items", "latency_s"))
    assert found.demand_ms.value == pytest.approx(Truth().demand_ms, rel=0.03)
    assert found.restart.seen == 0
    assert np.isnan(found.quiet_latency_s)


def one_peak(signal: str) -> Readings:
    values = np.full(400, 100.0)
    values[200] = 9000.0
    constant = np.full(400, 0.5)
    return readings_of(of_readings({signal: values, "instances": constant, "cpu_share": constant}))


def test_the_load_is_what_arrived_where_that_was_recorded_and_else_a_median() -> None:
    assert one_peak("arrivals_per_s").load_per_s[200] == 9000
    assert one_peak("arrivals_per_s").notes[-1] == "the load is what arrived, as recorded"
    assert set(one_peak("rate_per_s").load_per_s.tolist()) == {100.0}
    assert "the median of what was processed within 300 s" in one_peak("rate_per_s").notes[-1]


@given(values=st.lists(st.floats(0, 1e6), min_size=30, max_size=80))
def test_the_load_is_the_median_of_300_s_around(values: list[float]) -> None:
    rate = np.array(values)
    other = np.ones(rate.size)
    found = readings_of(of_readings({"rate_per_s": rate, "instances": other, "cpu_share": other}))
    for step in range(10, rate.size - 10):
        assert found.load_per_s[step] == np.median(rate[step - 10 : step + 11])


def test_short_gaps_are_bridged_long_ones_stay_but_load_is_everywhere() -> None:
    given_ = recording(Truth(noise=0), daily())
    short, long = slice(500, 510), slice(1000, 1100)
    for values in given_.readings.values():
        values[short] = values[long] = np.nan
    found = readings_of(given_)
    for of in (found.instances, found.cpu_share, found.lag_items, found.latency_s):
        assert not np.isnan(of[short]).any()
        assert np.isnan(of[long]).all()
    assert not np.isnan(found.load_per_s).any()
    assert np.flatnonzero(~found.load_was_read).tolist() == [*range(1000, 1100)]
    assert any(re.search("cpu_share: 10 absent readings bridged", note) for note in found.notes)
    assert fit(given_).demand_ms.value == pytest.approx(Truth().demand_ms, rel=0.03)


def test_a_load_that_nobody_read_is_told_and_not_fitted_to() -> None:
    """Another exporter was off for six hours; what stands there has nothing to do with the CPU."""
    given_ = recording(Truth(noise=0), daily(12))
    given_.readings["rate_per_s"][1000:2400] = np.nan
    job = fit(given_)
    assert any("the load was not read in 350 min" in note for note in job.notes)
    assert job.demand_ms.value == pytest.approx(Truth().demand_ms, rel=0.03)


def test_one_reading_far_off_is_no_capacity() -> None:
    load = daily(6)
    sound = recording(Truth(), load)
    rate = sound.readings["rate_per_s"].copy()
    rate[700] = 1e9
    spoiled = of_readings({**sound.readings, "rate_per_s": rate})

    model = fit(spoiled)

    assert model.most_per_s == pytest.approx(fit(sound).most_per_s, rel=0.02)
    assert model.most_per_s < 1.1 * load.max() / 20
    assert any("capacity is what 1 % of the readings exceed" in note for note in model.notes)


def test_capacity_is_what_restarts_reach_and_not_the_highest_reading() -> None:
    load = daily(swing=0.2)
    sound = recording(Truth(restarts=RESTARTS), load)
    rate = sound.readings["rate_per_s"].copy()
    rate[RESTARTS[0] + 3] *= 3
    spoiled = fit(of_readings({**sound.readings, "rate_per_s": rate}))

    peaks = sorted(1.6 * load[start + 2 : start + 4].max() / 20 for start in RESTARTS)
    assert peaks[0] * 0.98 <= fit(sound).most_per_s <= peaks[-1] * 1.02
    assert spoiled.most_per_s <= peaks[-1] * 1.02
    assert spoiled.known_to_per_s == pytest.approx(load.max() / 20, rel=0.02)


def test_replays_are_spread_over_what_a_scaling_may_do() -> None:
    known = fit(with_scalings(1.4, RESTARTS, SCALED[:3]))
    shares = [drawn(known, seed).restart.planned_share for seed in range(1, 20)]
    assert shares[:3] == [PLANNED_SHARE, PLANNED_RANGE[1], PLANNED_RANGE[0]]
    assert min(shares[3:]) >= PLANNED_RANGE[0]
    assert max(shares[3:]) <= PLANNED_RANGE[1]
    assert len(set(shares)) == len(shares)
    told = fit(with_scalings(1.4, tuple(one + 50 for one in SCALED[::4]), SCALED))
    low, high = (drawn(told, seed).restart.planned_share for seed in (3, 2))
    assert low <= told.restart.planned_share <= high
    assert high - low < 0.2


@pytest.mark.parametrize(
    ("load", "same", "said"),
    [
        (daily(swing=0.0), {}, "CPU per record cannot be told from overhead: record a day"),
        (daily(0.5), {}, "25 of its 30 min are 5 min after the last .*; record at least an hour"),
        (daily(6), {"rate_per_s": np.nan}, "rate_per_s has no readings"),
        (daily(6), {"rate_per_s": 0.0}, "cannot be told from overhead"),
        (daily(6), {"cpu_share": 0.3}, "CPU does not rise with the load"),
        (daily(6), {"instances": 0.3}, "below 1 throughout"),
    ],
    ids=["constant", "short", "never read", "no load", "no more CPU", "less than an instance"],
)
def test_what_gives_no_model_is_refused_with_what_to_record(
    load: FloatArray, same: dict[str, float], said: str
) -> None:
    readings = recording(Truth(), load).readings
    constant = {name: np.full(load.size, value) for name, value in same.items()}
    with pytest.raises(SpecError, match=said):
        fit(of_readings({**readings, **constant}))


def test_readings_that_come_seldom_are_told() -> None:
    seldom = recording(Truth(), daily(24)).at(slice(None, None, 4))
    assert any("readings come every 60 s" in note for note in fit(seldom).notes)


SCALED = tuple(range(300, 2800, 100))


def with_scalings(share: float, restarts: tuple[int, ...], scaled: tuple[int, ...]) -> Recording:
    """A recording in which every scaling does so much of what a restart does."""
    load = daily()
    steps = np.arange(load.size)
    counts = 20.0 + np.searchsorted(scaled, steps, side="right") % 2
    made = recording(Truth(restarts=restarts), load, counts)
    latency = made.readings["latency_s"].copy()
    for start in scaled:
        latency[start : start + len(LATENCY_EXCESS_S)] += share * np.array(LATENCY_EXCESS_S)
    return of_readings({**made.readings, "latency_s": latency})


def test_where_only_scalings_restart_the_job_they_are_what_a_restart_is() -> None:
    model = fit(with_scalings(1.0, (), SCALED))

    assert model.restart.planned_share == 1.0
    assert max(model.restart.latency_excess_s) == pytest.approx(max(LATENCY_EXCESS_S), rel=0.05)
    assert model.incidents_s == ()


def with_gaps(recorded: Recording, gaps: tuple[int, ...], steps: int = 60) -> Recording:
    """The recording with so many steps cut out at each of these, as a recorder leaves it."""
    gone = np.zeros(recorded.times_s.size, dtype=bool)
    for start in gaps:
        gone[start : start + steps] = True
    return recorded.at(~gone)


GAPS = (300, 700, 1100, 1500, 1900)


def test_gaps_of_a_recorder_are_no_scalings() -> None:
    recorded = recording(Truth(restarts=RESTARTS), daily())
    whole, cut = fit(recorded), fit(with_gaps(recorded, GAPS))

    assert scalings_of(readings_of(with_gaps(recorded, GAPS)).instances, STEP_S) == 0
    assert cut.times.by_scaling.value is whole.times.by_scaling.value is None
    assert "0 scalings" in cut.times.by_scaling.said
    assert cut.restart.planned_share == whole.restart.planned_share


def test_a_change_across_a_gap_is_of_unknown_time_and_fits_nothing() -> None:
    counts = np.array([24.0] * 40 + [np.nan] * 60 + [20.0] * 40)

    assert not lasting_changes(counts, 6).any()
    assert scalings_of(counts, STEP_S) == 1, "that there was one is known"
    counts[40:100] = 24.0
    assert np.flatnonzero(lasting_changes(counts, 6)).tolist() == [100]


def test_nothing_read_at_the_beginning_is_no_change() -> None:
    assert not lasting_changes(np.array([np.nan] * 30 + [24.0] * 40), 6).any()
    assert not lasting_changes(np.full(30, np.nan), 6).any()
