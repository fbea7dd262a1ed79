"""What the tests of tide share: a setting, loads, losses, readings and decisions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs

from include.controllers.base import Setting
from include.controllers.tide.controller import Tide
from include.controllers.tide.estimates import Flow, Load, TideMemory
from include.controllers.tide.loss import Loss
from include.model.decision import Action, Decision
from include.model.observation import HostSample, InstanceSample, Observation
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
    usual["counts"] = usual["reserve"]
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
        structs.replace(a_sample(name, 0), arrived_items=count, completed_items=completed[name])
        for name, count in arrived.items()
    ]
    running = [an_instance(f"i-{name}", name, cpu_share=busy) for name in arrived]
    return an_observation(operators=samples, running=running, hosts=[a_host()], now_s=15.0)


def alike(now_s: float, cpu: float | None = None, **sample: Any) -> Observation:
    """Every operator with these fields of its sample, and one instance that is so busy."""
    samples = [structs.replace(a_sample(name, 0), **sample) for name in FLOW.names]
    running = [an_instance(f"i-{name}", name, cpu_share=cpu) for name in FLOW.names]
    return an_observation(operators=samples, running=running, now_s=now_s)


SEEN_BEFORE = TideMemory(seen_s=0.0)


def remembered(**changes: Any) -> TideMemory:
    """Every operator gets 1 item/s of 0.5 s on average, read 15 s ago."""
    of_all = dict.fromkeys(FLOW.names, 1.0)
    half = dict.fromkeys(FLOW.names, 0.5)
    usual = TideMemory(
        seen_s=3585.0, source_per_s={"S1": 1.0}, rate_per_s=of_all, work_s=half, done=of_all
    )
    return replace(usual, **changes)


def long_known() -> TideMemory:
    """So many items of 0.5 s that a few others make no difference."""
    return remembered(work_s=dict.fromkeys(FLOW.names, 5e5), done=dict.fromkeys(FLOW.names, 1e6))


def steady(per_s: float, **changes: Any) -> TideMemory:
    """Long known, and every operator gets so many items a second, now and on average."""
    of_all = dict.fromkeys(FLOW.names, per_s)
    now = {"rate_per_s": of_all, "mean_per_s": of_all, "source_per_s": {"S1": per_s}}
    return replace(long_known(), **(now | changes))


def decide(
    memory: TideMemory,
    hosts: Iterable[HostSample],
    running: Iterable[InstanceSample],
    waiting: dict[str, int] | None = None,
    arrived: int = 15,
    setting: Setting = SETTING,
    paused_s: float = 0.0,
    job_paused_s: float = 0.0,
    job_changes: int = 2,
    job_started_s: float = 0.0,
    unpaused: Collection[str] = (),
    **options: float,
) -> Decision:
    """``paused_s``: how long a change of each operator but the ``unpaused`` stopped it;
    ``job_paused_s``: what each of ``job_changes`` starts of the job took, the last at
    ``job_started_s``, if it starts as a whole."""
    samples = [
        structs.replace(
            a_sample(name, (waiting or {}).get(name, 0)),
            arrived_items=arrived,
            completed_items=arrived,
        )
        for name in FLOW.names
    ]
    given_share = [structs.replace(instance, cpu_share=0.5) for instance in running]
    observation = replace(
        an_observation(operators=samples, hosts=hosts, running=given_share),
        job_started_s=job_started_s,
        job_starts=job_changes + 1,
        job_changes=job_changes,
        job_paused_in_all_s=job_changes * job_paused_s,
        operator_pauses={
            name: (0, 0.0) if name in unpaused else (1, paused_s) for name in FLOW.names
        },
    )
    return Tide(setting=setting, **options).decide(memory, observation)[1]


def actions_of(decision: Decision, *kinds: type) -> list[Action]:
    return [action for action in decision.actions if isinstance(action, kinds)]
