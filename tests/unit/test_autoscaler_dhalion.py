"""Dhalion as Heron runs it: apache/incubator-heron, heron/healthmgr.

``ScaleUpResolverTest.testScaleUpFactorComputation`` (343724c6) has the numbers, and
``DynamicResourceAllocationPolicy``, ``BackPressureDetector`` and ``ScaleUpResolver`` the rest.
"""

from __future__ import annotations

import pytest

from include.controllers.autoscalers.dhalion import Dhalion, scaled_up
from include.testing.builders import a_setting
from tests.autoscaler_world import asked_for, flowing, looked

DHALION = Dhalion(setting=a_setting())


@pytest.mark.parametrize(
    ("current", "held_ms", "wanted"),
    [
        pytest.param(2, 500, 4, id="testScaleUpFactorComputation, 500 + 0"),
        pytest.param(2, 750, 8, id="testScaleUpFactorComputation, 750 + 0"),
        pytest.param(3, 500, 6, id="testScaleUpFactorComputation, 400 + 100 + 0"),
        pytest.param(2, 1500, 10, id="at most 999 ms, and 4 times more"),
        pytest.param(1, 21, 2, id="rounded up"),
    ],
)
def test_the_factor_of_the_resolver(current, held_ms, wanted):
    assert scaled_up(current, held_ms) == wanted


def looks(*rows):
    """Every minute O1 and O2 with items (arrived, completed) of that minute; the targets."""
    each = zip(("O1", "O2"), zip(*rows, strict=True), strict=True)
    looks = [flowing(name, [(*items, None) for items in minutes], 2) for name, minutes in each]
    observations = [looked(60.0 * n, *both) for n, both in enumerate(zip(*looks, strict=True))]
    return asked_for(DHALION, *observations)[1:]


@pytest.mark.parametrize(
    ("rows", "targets"),
    [
        pytest.param([((600, 300), (600, 400))], [{"O1": 4}], id="who holds up others most grows"),
        pytest.param([((1000, 980), (0, 0))], [{}], id="noise of 20 ms is no symptom"),
        pytest.param([((1000, 979), (0, 0))], [{"O1": 3}], id="21 ms are one"),
        pytest.param(
            [((600, 300), (600, 600))] * 5, [{"O1": 4}, {}, {}, {"O1": 4}, {}],
            id="nothing for 180 s after a change",
        ),
        pytest.param([((0, 0), (0, 0))] * 60, [{}] * 60, id="it never scales down"),
        pytest.param([((100, 300), (0, 0))], [{}], id="working off a backlog holds up nobody"),
    ],
)  # fmt: skip
def test_one_operator_grows_at_a_time(rows, targets):
    """Of 600 that arrive 300 leave: its senders would have to stop half of the time."""
    assert looks(*rows) == targets
