"""The kernel against closed formulas: M/M/c (Erlang C), M/D/1."""

from __future__ import annotations

import math

import pytest

from include.testbeds.simulated import kernel
from tests.kernel.worlds import a_network, poisson_us

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
