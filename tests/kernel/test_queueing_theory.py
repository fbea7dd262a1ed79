"""The kernel against closed formulas: M/M/c (Erlang C), M/D/1, Little's law."""

from __future__ import annotations

import math

import numpy as np
import pytest

from include.testbeds.simulated import kernel
from tests.kernel.worlds import a_network, column, poisson_us

ITEMS = 1_000_000
"""So many that the standard error of a mean wait stays below the 2 % asked for."""
LONG_US = 10**13


def erlang_c_wait_s(servers: int, rate_per_s: float, service_s: float) -> float:
    """Mean wait in M/M/c."""
    load = rate_per_s * service_s
    busy = load**servers / math.factorial(servers) / (1 - load / servers)
    idle = sum(load**k / math.factorial(k) for k in range(servers))
    return busy / (busy + idle) * service_s / (servers - load)


@pytest.mark.parametrize(("servers", "utilisation"), [(1, 0.5), (1, 0.8), (3, 0.8), (8, 0.8)])
def test_mm_c_waits_as_erlang_c_says(servers, utilisation):
    rate_per_s = utilisation * servers
    network = a_network(poisson_us(rate_per_s, ITEMS), servers=servers, service_cv=1.0)
    network.advance(LONG_US)
    wait_s = network.take_records()[:, kernel.R_WAIT_US].mean() / 1e6
    assert wait_s == pytest.approx(erlang_c_wait_s(servers, rate_per_s, 1.0), rel=0.02)


@pytest.mark.parametrize("utilisation", [0.5, 0.8])
def test_md_1_waits_as_pollaczek_and_khinchine_say(utilisation):
    network = a_network(poisson_us(utilisation, ITEMS), service_cv=0.0)
    network.advance(LONG_US)
    wait_s = network.take_records()[:, kernel.R_WAIT_US].mean() / 1e6
    assert wait_s == pytest.approx(utilisation / (2 * (1 - utilisation)), rel=0.02)


def test_littles_law_holds_exactly_on_an_emptied_queue():
    arrivals_us = poisson_us(1.8, 20_000)
    network = a_network(arrivals_us, servers=2, service_cv=0.5)
    network.advance(LONG_US)
    records = network.take_records()
    arrived = np.sort(arrivals_us)
    started = np.sort(arrived + column(records, kernel.R_WAIT_US))
    # Integrate the queue length over time, event by event.
    times = np.concatenate([arrived, started])
    steps = np.concatenate([np.ones_like(arrived), -np.ones_like(started)])
    order = np.lexsort((-steps, times))
    length = np.cumsum(steps[order])
    area = (length[:-1] * np.diff(times[order])).sum()
    assert area == records[:, kernel.R_WAIT_US].sum()
    assert length.min() == 0


def test_service_times_have_the_asked_mean_and_variation():
    network = a_network(np.arange(1, 400_001) * 10_000_000, service_cv=0.5)
    network.advance(LONG_US)
    service_s = network.take_records()[:, kernel.R_AGE_US] / 1e6
    assert service_s.mean() == pytest.approx(1.0, rel=0.01)
    assert service_s.std() / service_s.mean() == pytest.approx(0.5, rel=0.01)
