"""What we demand of every registered controller, on random clusters."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import given, settings

from include.controllers import CONTROLLERS
from include.controllers.base import Group
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
from include.testing.contract import any_cluster


class TestEveryController(ControllerContract):
    controllers: ClassVar = {name: registration.build for name, registration in CONTROLLERS.items()}
    # The original runtime moves what it can off a host although the host stays, and so on with
    # every BTU; where nothing may stop it leases a host for what was to leave, and later gives one
    # back (docs/deviations.md, BTU-RUNTIME-RELEASE).
    restless: ClassVar = {"btu-runtime": {MigrateInstance, LeaseHost, ReleaseHost}}


def test_the_random_clusters_reach_every_kind_of_step() -> None:
    """Guards the contract: an invariant that is never tried proves nothing."""
    reached: dict[str, set[type]] = {name: set() for name in CONTROLLERS}

    @settings(any_cluster, max_examples=300)  # the contract tries 100 in each of its tests
    @given(observations())
    def search(observation: Observation) -> None:
        for name, registered in CONTROLLERS.items():
            controller = registered.build(setting=SETTING)
            _, decision = controller.decide(controller.initial_memory(), observation)
            reached[name] |= {type(action) for action in decision.actions}
            if any("in the place of" in step.because for step in decision.steps):
                reached[name].add(InstanceSample)

    search()
    for name, kinds in reached.items():
        assert kinds | RARE.get(name, set()) == _expected(name), name


RARE: dict[str, set[type]] = {
    "btu-runtime": {MigrateInstance}
}  # as test_peerj_141_variants.py has it
SCALING = {StartInstance, StopInstance, LeaseHost, ProlongLease, ReleaseHost}
KEEPING = {StartInstance, LeaseHost, ProlongLease}
LESS: dict[str, set[type]] = {
    "fixed": KEEPING,
    "default-storm": KEEPING,
    "manual": KEEPING,
    "henge": KEEPING | {ReleaseHost},  # stops are tried in test_henge_state_machine.py
    "tide": KEEPING | {StopInstance},  # lease ends are tried in test_controllers_tide.py
    "kalman-ekf": SCALING - {StopInstance},  # one measurement is no estimate
    "btu-runtime": SCALING | {MigrateInstance},
}


def _expected(name: str) -> set[type]:
    """The kinds of steps of a controller; InstanceSample stands for a place that was reclaimed."""
    if name in LESS:
        return LESS[name]
    if CONTROLLERS[name].group is Group.IN_USE_TODAY:
        # One look gives no rate; stops are tried in the tests of each.
        return KEEPING | {ReleaseHost}
    if name.startswith("fugu"):  # moves are tried in test_controllers_fugu.py
        return KEEPING
    if name.startswith(("threshold", "kalman")):
        return SCALING
    return SCALING | {MigrateInstance, InstanceSample}
