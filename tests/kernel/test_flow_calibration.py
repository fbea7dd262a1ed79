"""What a calibration adds to the fluid testbed: rest, bounds, own queues and readings of CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from include.model.decision import StartInstance
from include.testbeds.flow.arrays import ARRIVED, COMPLETED, MICRO
from include.testbeds.virtual.calibration import VirtualCalibration
from include.testbeds.virtual.draws import Draws
from include.testbeds.virtual.monitor import Noise
from include.testing.builders import a_topology, an_operator
from include.workloads.pattern import Levels
from tests.builders import apply_at, measured_at, resumed, seen_at, tables_of
from tests.kernel.flows import SHARED, a_chain, a_config, rows_of, started


def measured(level: float = 20.0, **calibration):
    config = a_config(a_chain("O1", "O2", service_ms=10.0), level, calibration=calibration)
    testbed = started(config)
    return testbed, measured_at(testbed, 120)


def test_by_littles_law_rate_times_rest_waits():
    testbed, _ = measured(rest_s={"O1": 1.5})
    waiting = {name: sample.waiting_items for name, sample in testbed.observe().operators.items()}
    assert waiting == {"O1": 30, "O2": 0}


def test_age_and_duration_are_longer_by_the_rest_and_nothing_else_is():
    plain, rested = measured()[1], measured(rest_s={"O1": 1.5, "O2": 0.25})[1]
    before, after = plain["processing_duration"], rested["processing_duration"]
    for name, later_s, older_s in (("O1", 1.5, 1.5), ("O2", 0.25, 1.75)):
        rows = rows_of(before, name)
        more_ms = (after["duration_ms"] - before["duration_ms"])[rows]
        older_ms = (after["age_ms"] - before["age_ms"])[rows]
        assert more_ms == pytest.approx(1000 * later_s)
        assert older_ms == pytest.approx(1000 * older_s)
    cpu = (tables["instance_utilisation"]["cpu_share"] for tables in (plain, rested))
    assert np.array_equal(*cpu)
    assert np.array_equal(before["time_s"], after["time_s"])


def test_what_is_in_an_operator_is_in_its_age_and_does_not_wait():
    testbed, passing = measured(pass_s={"O1": 1.5})
    assert testbed.observe().operators["O1"].waiting_items == 0
    plain = measured()[1]["processing_duration"]
    for name in ("O1", "O2"):
        rows = rows_of(plain, name)
        older_ms = (passing["processing_duration"]["age_ms"] - plain["age_ms"])[rows]
        assert older_ms == pytest.approx(1500)


HALF_BUSY = a_chain("O1", service_ms=10.0)
"""At 50 items a second."""


def shown(testbed) -> dict[str, float | None]:
    return {name: one.cpu_share for name, one in testbed.observe().instances.items()}


def test_shown_is_a_line_from_idle_to_busy():
    config = a_config(HALF_BUSY, 50.0, calibration={"cpu_at_rest": 0.1, "cpu_when_busy": 0.7})
    testbed = started(config)
    testbed.advance_to(60)
    assert shown(testbed) == {"O1-1": pytest.approx(0.1 + 0.5 * 0.6, abs=0.01)}


def a_step(cpu_window_s: float):
    """Idle for 100 s, then half busy."""
    levels = Levels((0.0, 100.0), (0.0, 50.0))
    return a_config(HALF_BUSY, levels, calibration={"cpu_window_s": cpu_window_s})


def test_a_window_is_shown_until_the_next_one_ends():
    testbed = started(a_step(60))
    seen = []
    for t_s in (60, 105, 120, 165, 180):
        testbed.advance_to(t_s)
        seen.append(shown(testbed)["O1-1"])
    assert seen == pytest.approx([0, 0, 20 / 60 * 0.5, 20 / 60 * 0.5, 0.5], abs=0.01)


def test_an_instance_is_read_once_it_was_there_for_a_whole_window():
    testbed = started(a_step(60))
    apply_at(testbed, 65, StartInstance("O1", "host-1"))
    testbed.advance_to(120)
    assert shown(testbed)["O1-2"] is None
    testbed.advance_to(180)
    assert shown(testbed)["O1-2"] == pytest.approx(0.25, abs=0.01)


def test_rows_have_every_reading_and_a_snapshot_keeps_half_a_window():
    config = a_step(60)
    testbed = started(config)
    rows = measured_at(testbed, 150)["instance_utilisation"]["cpu_share"]
    assert np.asarray(rows) == pytest.approx([0] * 6 + [1 / 6, 0.5, 0.5, 0.5], abs=0.01)
    other = resumed(testbed)
    for one in (testbed, other):
        one.advance_to(180)
    assert shown(other) == shown(testbed) == {"O1-1": pytest.approx(0.5, abs=0.01)}


SLOW = a_topology(an_operator("O1", service_ms=100.0), an_operator("O2", service_ms=200.0))
"""Of 8 items a second O1 could do ten and O2 does five."""


def run(input_items: int, level: float = 8.0, until_s: float = 600.0):
    testbed = started(a_config(SLOW, level, calibration={"input_items": input_items}))
    testbed.advance_to(until_s)
    return testbed


def waiting(testbed) -> list[float]:
    counts = testbed.queues.state.counts
    return ((counts[:, ARRIVED] - counts[:, COMPLETED]) / MICRO).tolist()


def test_without_a_bound_the_slow_operator_has_all_that_is_late():
    first, second = waiting(run(0))
    assert first == pytest.approx(0, abs=1)
    assert second == pytest.approx(3 * 600, rel=0.02)


def test_with_a_bound_both_inputs_fill_and_the_source_waits():
    testbed = run(20)
    assert all(value <= 20 for value in waiting(testbed))
    assert waiting(testbed)[0] > 10
    counts = testbed.queues.state.counts / MICRO
    assert counts[1, COMPLETED] == pytest.approx(5 * 600, rel=0.03), "the slow one is never idle"
    assert testbed.queues.published_items()[0] - counts[0, ARRIVED] > 1500


def test_nothing_is_lost_or_made_on_the_way():
    counts = run(20).queues.state.counts
    assert counts[0, COMPLETED] == counts[1, ARRIVED]


def test_age_counts_from_where_an_item_was_taken_in():
    """At most two full inputs and the items in service: 40 items of 0.2 s each."""
    testbed = run(20)
    age_s = testbed.take_measurements()["processing_duration"]["age_ms"] / 1000
    assert float(np.max(age_s)) < 9
    late_s = run(0).take_measurements()["processing_duration"]["age_ms"] / 1000
    assert float(np.max(late_s)) > 100


def test_a_bound_that_is_never_reached_changes_nothing():
    free, bounded = (tables_of(run(items, level=3.0)) for items in (0, 10_000))
    for table in ("processing_duration", "queue"):
        assert free[table] == bounded[table]


def mean_wait_s(instances: int, level: float, **calibration: object) -> float:
    config = a_config(a_chain("O1"), level, calibration={"arrival_cv": 1.0, **calibration})
    testbed = started(config, hosts=2, instances=instances)
    wait_ms = measured_at(testbed, 3600)["processing_duration"]["wait_ms"]
    return float(wait_ms.mean()) / 1000


@pytest.mark.parametrize(("instances", "utilisation"), [(1, 0.5), (4, 0.5), (8, 0.7)])
def test_each_is_a_queue_of_its_own_as_pollaczek_and_khinchine_say(instances, utilisation):
    """Poisson arrivals dealt out at random are Poisson at each of the queues."""
    level = 10 * instances * utilisation
    cv = 0.8
    wait_s = mean_wait_s(instances, level, own_queues=True, service_cv=cv)
    expected_s = 0.1 * utilisation / (1 - utilisation) * (1 + cv**2) / 2
    assert wait_s == pytest.approx(expected_s, rel=0.1)


@pytest.mark.parametrize("behind", [1, 3])
def test_a_host_with_a_backlog_uses_all_of_its_cores(behind):
    heavy = an_operator("heavy", service_ms=90.0)
    light = [an_operator(f"light{n}", service_ms=10.0 / behind) for n in range(behind)]
    config = a_config(a_topology(heavy, *light), 1000.0, flavor=replace(SHARED, vcpus=2))
    testbed = started(config, instances=4)
    observation = seen_at(testbed, 300)
    (host,) = observation.hosts.values()
    assert host.cpu_share == pytest.approx(1.0, abs=0.01)
    # An item takes 90 ms and 10 ms: two cores finish 20 of them a second.
    done = observation.operators[light[-1].name].completed_items
    assert done == pytest.approx(20 * 300, rel=0.01)


RECORDED = tuple((0.05 * np.sin(np.arange(200) / 4)).round(4).tolist())


def series(block: int, seed: int = 3, readings: int = 4000) -> np.ndarray:
    calibration = VirtualCalibration(cpu_residuals=RECORDED, cpu_residual_block=block)
    noise = Noise(Draws(seed), calibration, width=1)
    return np.array([noise.residual(i) for i in range(readings)])


def alike(values: np.ndarray) -> float:
    """The correlation of a reading with the next."""
    return float(np.corrcoef(values[:-1], values[1:])[0, 1])


def test_blocks_keep_the_distribution_and_how_alike_neighbours_are():
    """Within a block neighbours are as alike as recorded, across its edge not at all: 1 - 1 / b."""
    drawn = series(50)
    assert set(drawn.tolist()) <= set(RECORDED)
    assert drawn.std() == pytest.approx(np.std(RECORDED), rel=0.05)
    assert alike(drawn) == pytest.approx(alike(np.array(RECORDED)) * (1 - 1 / 50), abs=0.02)
    assert alike(series(1)) == pytest.approx(0, abs=0.05)


def test_every_reading_is_a_function_of_the_seed():
    assert (series(20) == series(20)).all()
    assert (series(20) != series(20, seed=4)).any()


@pytest.mark.parametrize(("testbed", "of_a_host"), [("flow", 1.0), ("simulated", 4 * 0.5 / 4)])
def test_readings_of_hosts_and_instances_move_together_and_work_does_not(testbed, of_a_host):
    """On ``simulated`` a host shows what its instances do: four of half a core on four cores."""

    def measured(**calibration):
        config = a_config(a_chain("O1", service_ms=10.0), 50.0, calibration=calibration)
        made = started(config, instances=4, testbed=testbed)
        made.advance_to(3000)
        return made.take_measurements()

    plain, moved = measured(), measured(cpu_residuals=RECORDED)
    away = moved["instance_utilisation"]["cpu_share"] - plain["instance_utilisation"]["cpu_share"]
    of_host = moved["host_utilisation"]["cpu_share"] - plain["host_utilisation"]["cpu_share"]
    expected = np.repeat(of_host[:, None] / of_a_host, 4, axis=1)
    assert away.reshape(-1, 4) == pytest.approx(expected, abs=4e-4)
    assert away.std() == pytest.approx(np.std(RECORDED), rel=0.2)
    assert np.array_equal(*(tables["processing_duration"]["time_s"] for tables in (plain, moved)))
