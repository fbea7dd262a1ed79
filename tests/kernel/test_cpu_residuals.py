"""Readings of CPU that are away from the model as recorded ones were."""

from __future__ import annotations

import numpy as np
import pytest

from include.testbeds.virtual.calibration import VirtualCalibration
from include.testbeds.virtual.draws import Draws
from include.testbeds.virtual.monitor import Noise
from tests.kernel.flows import a_chain, a_config, started

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
