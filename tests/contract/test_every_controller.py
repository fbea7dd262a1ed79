"""What we demand of every registered controller, on random clusters."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import given, settings

from include.controllers import CONTROLLERS
from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.observation import InstanceSample, Observation
from include.testing import ControllerContract
from include.testing.clusters import SETTING, observations


class TestEveryController(ControllerContract):
    controllers: ClassVar = {name: one.build for name, one in CONTROLLERS.items()}
    # The original runtime moves what it can off a host before it finds that the host must stay
    # (docs/deviations.md, BTU-RUNTIME-RELEASE), and so on with every BTU.
    restless = ("btu-runtime",)


def test_the_random_clusters_reach_every_kind_of_step() -> None:
    """Guards the contract: an invariant that is never tried proves nothing."""
    reached: dict[str, set[type]] = {name: set() for name in CONTROLLERS}

    @settings(max_examples=400, derandomize=True, deadline=None, database=None)
    @given(observations())
    def search(seen: Observation) -> None:
        for name, registered in CONTROLLERS.items():
            one = registered.build(setting=SETTING)
            _, decision = one.decide(one.initial_memory(), seen)
            reached[name] |= {type(action) for action in decision.actions}
            if any("in the place of" in step.because for step in decision.steps):
                reached[name].add(InstanceSample)

    search()
    scaling = {StartInstance, StopInstance, LeaseHost, ProlongLease, ReleaseHost}
    for name, kinds in reached.items():
        if name in ("fixed", "default-storm", "manual"):
            assert kinds == {StartInstance, LeaseHost, ProlongLease}
        elif name == "henge":  # stops are tried in test_henge_state_machine.py
            assert kinds == {StartInstance, LeaseHost, ProlongLease, ReleaseHost}
        elif name.startswith("fugu"):  # moves are tried in test_controllers_fugu.py
            assert kinds == {StartInstance, LeaseHost, ProlongLease}
        elif name == "tide":  # lease ends are tried in test_controllers_tide.py
            assert kinds == {StartInstance, StopInstance, LeaseHost, ProlongLease}
        elif name == "kalman-ekf":  # one measurement is no estimate; test_pvldb_12_7_scaling.py
            assert kinds == scaling - {StopInstance}
        elif name.startswith(("threshold", "kalman")):
            assert kinds == scaling
        else:
            reclaimed = set() if name == "btu-runtime" else {InstanceSample}
            assert kinds == scaling | {MigrateInstance} | reclaimed, name
