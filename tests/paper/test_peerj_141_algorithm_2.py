"""PeerJ CS 141, Algorithm 2 (Host Selection Algorithm), line by line."""

from __future__ import annotations

import pytest

from include.controllers.host_selection import CACHE_FACTOR
from include.controllers.placement import FreeCapacity
from include.model.host import Capacity
from include.testing.builders import an_operator
from tests.builders import free_capacities

HOST = Capacity(4.0, 8000.0)  # h_cpu, h_memory
OPERATOR = an_operator(cpu_cores=1.0, memory_mb=1000.0)


def room(host: str, cpu_cores: float, memory_mb: float, *images: str) -> FreeCapacity:
    return FreeCapacity(host, HOST, Capacity(cpu_cores, memory_mb), frozenset(images), up=True)


def suitability(
    cpu_cores: float, memory_mb: float, *images: str, cache_factor: float = CACHE_FACTOR
) -> float | None:
    """Of a host with so much left; None where the instance does not fit (-1 in the paper)."""
    only = free_capacities([room("h1", cpu_cores, memory_mb, *images)])
    choice = only.best(OPERATOR, cache_factor)
    return choice.suitability if choice else None


@pytest.mark.parametrize(
    ("cpu_cores", "memory_mb", "fits"),
    [
        (1.0, 1000.0, True),
        (0.99, 8000.0, False),
        (4.0, 999.0, False),
        (0.0, 0.0, False),
        (-1.0, 8000.0, False),
    ],
)
def test_lines_2_to_5_refuse_a_host_without_room(
    cpu_cores: float, memory_mb: float, fits: bool
) -> None:
    assert (suitability(cpu_cores, memory_mb) is not None) is fits


def test_lines_6_to_9_with_the_numbers_of_a_worked_example() -> None:
    # feasibilityThreshold = min(3 / 1, 4000 / 1000) = 3
    # difference = |(3 - 1) / 4 - (4000 - 1000) / 8000| = |0.5 - 0.375| = 0.125
    assert suitability(3.0, 4000.0) == pytest.approx(0.125 / 3)


def test_lines_10_to_12_multiply_by_cf_when_the_image_is_cached() -> None:
    without = suitability(3.0, 4000.0)
    assert suitability(3.0, 4000.0, "O1") == pytest.approx(without * 0.01)
    assert suitability(3.0, 4000.0, "O1", cache_factor=0.5) == pytest.approx(without / 2)
