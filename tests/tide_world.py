"""What the tests of tide share: a setting, loads, losses and readings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from include.controllers.tide.estimates import Flow, Load, TideMemory
from include.controllers.tide.loss import Loss
from include.model.observation import Observation
from include.testing.builders import (
    a_host,
    a_sample,
    a_setting,
    an_instance,
    an_observation,
)

SETTING = a_setting()
FLOW = Flow(SETTING)


def a_load(**values: Sequence[float]) -> Load:
    """One operator unless more values say otherwise: 10 items/s of 0.2 s, nothing waits."""
    usual: dict[str, Any] = {
        "rate_per_s": [10.0],
        "service_s": [0.2],
        "waiting": [0.0],
    }
    rate_per_s = values.get("rate_per_s", [10.0])
    usual |= {"mean_per_s": rate_per_s, "reserve": np.ones(np.shape(rate_per_s)[-1:])}
    given = usual | values
    return Load(**{name: np.array(value, dtype=float) for name, value in given.items()})


def a_loss(load: Load | None = None, **options: float) -> Loss:
    usual = {
        "work_off_s": 40.0,
        "disturbed": 0.01,
        "uneven": 0.06,
        "overload": 4.0,
        "age_s": 20.0,
    }
    return Loss(load or a_load(), **(usual | options))


def read(arrived: dict[str, int], completed: dict[str, int], busy: float = 1.0) -> Observation:
    """Operators with these items in 15 s, each with one instance that is so busy."""
    samples = [
        replace(a_sample(name, 0), arrived_items=count, completed_items=completed[name])
        for name, count in arrived.items()
    ]
    running = [an_instance(f"i-{name}", name, cpu_share=busy) for name in arrived]
    return an_observation(operators=samples, running=running, hosts=[a_host()], now_s=15.0)


SEEN_BEFORE = TideMemory(seen_s=0.0)
