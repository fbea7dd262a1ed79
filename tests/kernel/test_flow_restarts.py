"""A job that is taken down as a whole: pause, and slow items afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from include.model.decision import StartInstance, StopInstance
from include.testbeds.flow.arrays import COMPLETED, MICRO
from include.testbeds.flow.calibration import FlowCalibration, FlowFaults
from include.testbeds.virtual.calibration import VirtualCalibration, WholeRescale
from include.testing.builders import decision
from tests.builders import apply_at, measured_at
from tests.kernel.flows import a_chain, a_config, started

CHAIN = a_chain("O1", "O2", service_ms=50.0)
"""An instance of each does 20 items a second."""


def scaled(
    restart: Any, level: float = 10.0, *, faults: Any = None, seed: int = 7, by: str = "restart"
):
    """One more instance of the first operator is asked for at 95 s and ready at 100 s."""
    calibration = {} if restart is None else {by: restart}
    config = a_config(CHAIN, level, calibration=calibration, faults=faults or {}, seed=seed)
    testbed = started(config, hosts=2)
    apply_at(testbed, 95, StartInstance("O1", "host-2"))
    return testbed


def completed(testbed, until_s: float) -> np.ndarray:
    testbed.advance_to(until_s)
    return testbed.queues.state.counts[:, COMPLETED] / MICRO


def work_s(testbed) -> float:
    """CPU seconds of all instances from 90 to 195 s, of readings every 15 s."""
    taken = testbed.take_measurements()["instance_utilisation"]
    return float(taken["cpu_share"][taken["time_s"] > 90].sum() * 15)


def test_all_operators_are_down_and_make_up_for_it_at_their_capacity():
    """300 items wait after 30 s, and 20 - 10 a second of them go: 30 s more until none does."""
    testbed = scaled({"down_s": [30, 30]})
    before = completed(testbed, 100)
    assert completed(testbed, 130) == pytest.approx(before, abs=1e-6)
    assert completed(testbed, 150)[1] - before[1] == pytest.approx(20 * 20, abs=1)
    assert completed(testbed, 161)[1] == pytest.approx(1610, abs=11)
    age_s = testbed.take_measurements()["processing_duration"]["age_ms"].max() / 1000
    assert age_s == pytest.approx(30, abs=1.5), "the first that came while it was down"


@pytest.mark.parametrize(
    ("by", "down"), [("restart", {"down_s": [0, 0]}), ("rescale", {"gap_s": [0]})]
)
def test_items_take_longer_for_a_while_afterwards(by, down):
    testbed = scaled({**down, "hot_s": [30, 30], "hot_factor": [1.5, 1.5]}, by=by)
    completed(testbed, 195)
    plain = scaled(None)
    completed(plain, 195)
    assert work_s(testbed) - work_s(plain) == pytest.approx(0.5 * 30 * 2 * 10 * 0.05, abs=0.1)


def test_slow_items_take_capacity():
    testbed = scaled({"hot_s": [40, 40], "hot_factor": [4, 4]}, level=15.0)
    before = completed(testbed, 100)
    assert completed(testbed, 140)[1] - before[1] == pytest.approx(40 * 5, abs=1)


def test_one_decision_is_one_restart():
    testbed = started(a_config(CHAIN, calibration={"restart": {"down_s": [2, 6]}}), hosts=2)
    testbed.advance_to(60)
    change = decision(StartInstance("O1", "host-2"), StartInstance("O2", "host-2"))
    testbed.apply(change)
    apply_at(testbed, 120, StopInstance("O1-3"), StopInstance("O2-4"))
    events = measured_at(testbed, 180)["event"]
    assert [event for event in events["event"] if event == "job_restart"] == ["job_restart"] * 2
    assert events["time_s"] == [60, 120]


def test_stopping_what_has_not_started_restarts_nothing():
    testbed = started(a_config(CHAIN, calibration={"restart": {"down_s": [2, 2]}}), hosts=2)
    apply_at(testbed, 60, StartInstance("O1", "host-2"))
    apply_at(testbed, 62, StopInstance("O1-3"))
    events = measured_at(testbed, 120)["event"]
    assert events["event"] == ["job_restart"]


@pytest.mark.parametrize(
    ("calibration", "until_100_s"), [({"restart": {"down_s": [2, 2]}}, 1000), ({}, 950)]
)
def test_with_a_restart_what_a_decision_stops_works_until_what_it_starts_is_ready(
    calibration, until_100_s
):
    testbed = started(a_config(CHAIN, 10.0, calibration=calibration), hosts=2)
    apply_at(testbed, 95, StartInstance("O1", "host-2"), StopInstance("O1-1"))
    assert completed(testbed, 100)[0] == pytest.approx(until_100_s, abs=1)
    assert completed(testbed, 150)[0] == pytest.approx(1500, abs=1)


def test_how_long_it_takes_is_drawn_by_the_seed():
    def downs_s(seed: int) -> list[float]:
        config = a_config(CHAIN, calibration={"restart": {"down_s": [2, 6]}}, seed=seed)
        testbed, at = started(config, hosts=2), []
        for t_s in range(60, 660, 60):
            apply_at(testbed, t_s, StartInstance("O1", "host-2"))
            at.append((testbed.cloud.pauses_us[-1][2] - testbed.cloud.pauses_us[-1][1]) / 1e6)
        return at

    drawn = downs_s(1)
    assert all(2 <= pause_s <= 6 for pause_s in drawn)
    assert len(set(drawn)) == 10
    assert drawn == downs_s(1)
    assert drawn != downs_s(2)


def test_gaps_that_were_measured_take_the_place_of_bounds():
    """Nothing is done for one of the gaps, and a second more for each of three instances."""
    config = a_config(
        CHAIN, 10.0, calibration={"rescale": {"gap_s": [1.0], "per_instance_s": 1.0}}, seed=7
    )
    testbed = started(config, hosts=2)
    apply_at(testbed, 95, StartInstance("O1", "host-2"))
    before = completed(testbed, 100)
    assert completed(testbed, 104) == pytest.approx(before, abs=1e-6)
    assert completed(testbed, 105)[0] > before[0] + 5
    events = testbed.take_measurements()["event"]
    assert events["event"] == ["job_restart"]


def test_a_restart_is_seen_once_it_is_over_and_none_that_is_to_come():
    config = a_config(CHAIN, 10.0, faults={"restarts": [[60, 12], [200, 30]]})
    testbed = started(config, hosts=1)
    for until_s, seen in ((59, (0, 0)), (71, (0, 0)), (73, (1, 72)), (231, (2, 230))):
        testbed.advance_to(until_s)
        looked = testbed.look()
        assert (looked.job_starts, looked.job_started_s) == seen


def test_what_a_failure_takes_is_no_price_of_a_change():
    faults = {"restarts": [[60, 30]]}
    testbed = started(a_config(CHAIN, calibration={"restart": {"down_s": [2, 2]}}, faults=faults))
    apply_at(testbed, 100, StartInstance("O1", "host-1"))
    testbed.advance_to(130)
    testbed.fail(next(iter(testbed.fleet.instances.values())))
    testbed.advance_to(150)
    looked = testbed.look()
    assert (looked.job_starts, looked.job_changes, looked.job_paused_in_all_s) == (3, 1, 2.0)
    pauses = testbed.take_measurements()["pause"]
    assert pauses == {"operator": [""], "from_s": [105.0], "until_s": [107.0]}


def test_the_loss_of_an_instance_that_had_stopped_starts_nothing_again():
    settings = {"restart": {"down_s": [2, 2]}, "drain_s": 20}
    testbed = started(a_config(CHAIN, calibration=settings), instances=2)
    apply_at(testbed, 100, StopInstance("O1-1"))
    testbed.advance_to(110)
    testbed.fail(testbed.fleet.instances[1])
    events = testbed.take_measurements()["event"]
    assert events["event"] == ["job_restart", "instance_crash"]


def test_a_job_restarts_by_itself_when_it_is_told():
    config = a_config(CHAIN, 10.0, faults={"restarts": [[60, 12]]})
    testbed = started(config)
    before = completed(testbed, 60)
    assert completed(testbed, 72) == pytest.approx(before, abs=1e-6)
    assert completed(testbed, 90)[1] == pytest.approx(900, abs=1)
    events = testbed.take_measurements()["event"]
    assert (events["time_s"], events["event"]) == ([60], ["job_restart"])


def test_a_setting_that_is_off_is_not_in_what_a_run_is_stored_as():
    offs = (FlowCalibration(), VirtualCalibration(), WholeRescale(gap_s=(1,)), FlowFaults())
    for off in offs:
        assert not type(off).LATER & off.model_dump().keys()
    for given in (
        FlowCalibration(restart={"down_s": (1, 2)}),
        VirtualCalibration(rescale={"gap_s": (1,)}),
        WholeRescale(gap_s=(1,), hot_s=(5, 9)),
        FlowFaults(restarts=((5, 1),)),
    ):
        assert type(given).LATER & given.model_dump().keys()
        assert type(given).model_validate(given.model_dump(mode="json")) == given
