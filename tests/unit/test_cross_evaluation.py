"""Controllers on workloads they were not made for: include/controllers/deviations.md."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from msgspec import structs

from include.controllers import CONTROLLERS
from include.controllers.deployment import first_deployment
from include.controllers.henge.jobs import jobs_of
from include.controllers.peerj141.btu import Btu
from include.controllers.peerj141.btu_runtime import BtuRuntime
from include.controllers.peerj141.threshold import Threshold
from include.controllers.pvldb127.filtered import FILTERS, Filtered
from include.controllers.pvldb127.filters.ekf import Ekf
from include.model.decision import LeaseHost, StartInstance, StopInstance
from include.testing.builders import (
    SMALL,
    a_sample,
    a_setting,
    cluster_of,
    late,
)
from include.workloads.topologies import load_topology
from tests.builders import free_capacities

CELLS = a_setting(load_topology("cell_images"))
FULL = a_setting(max_hosts=2)


@pytest.mark.parametrize("controller", [Btu, BtuRuntime])
def test_room_on_a_cluster_with_all_its_hosts_leased_is_used(controller: type[Btu]) -> None:
    observation = cluster_of({"h1": "O1 O1 O1 O1", "h2": "O1"}, late("O1"))
    made = controller(setting=FULL)
    decided = made.decide(made.initial_memory(), observation)[1]
    assert decided.actions == (StartInstance("O1", "h2"),)


@pytest.mark.parametrize("controller", [Btu, BtuRuntime])
def test_a_cluster_that_is_full_neither_leases_nor_stops_anything_in_vain(
    controller: type[Btu],
) -> None:
    observation = cluster_of({"h1": "O1 O1 O1 O1", "h2": "O1 O1 O1 O2"}, late("O1"), a_sample("O2"))
    made = controller(setting=FULL)
    actions = made.decide(made.initial_memory(), observation)[1].actions
    assert not any(isinstance(action, LeaseHost | StopInstance) for action in actions)


def test_the_first_deployment_fills_the_last_host_that_there_is() -> None:
    decided = first_deployment(a_setting(max_hosts=1), {"O1": 2, "O2": 1, "O3": 1})
    kinds = Counter(type(action) for action in decided.actions)
    assert kinds == {LeaseHost: 1, StartInstance: 4}


@pytest.mark.parametrize("name", sorted(CONTROLLERS))
def test_an_operator_that_runs_in_another_has_no_instances(name: str) -> None:
    made = CONTROLLERS[name].build(setting=CELLS)
    assert set(made.initial_instances()) == {"images"}


def test_henge_looks_at_operators_that_the_monitor_can_read() -> None:
    (job,) = jobs_of(CELLS.topology)
    assert set(job.slo_ms) == {"images"}


def started_on(cpu_shared: bool) -> list[str]:
    setting = a_setting(flavor=replace(SMALL, cpu_shared=cpu_shared))
    made = Threshold(setting=setting)
    observation = cluster_of(
        {"h1": "O1 O1", "h2": "O2"}, structs.replace(a_sample("O1"), waiting_items=5000)
    )
    decided = made.decide(made.initial_memory(), observation)[1]
    return [action.host for action in decided.actions if isinstance(action, StartInstance)]


def test_first_fit_goes_by_what_is_promised_where_cpu_is_shared() -> None:
    assert started_on(cpu_shared=False) == ["h1", "h1"]
    assert started_on(cpu_shared=True) == ["h2", "h1"]


def test_the_emptiest_of_no_hosts_is_none() -> None:
    operator = a_setting().topology.operators[0]
    assert free_capacities([]).emptiest(operator) is None


@pytest.mark.parametrize(("monitor_every_s", "fits"), [(0.5, True), (0.6, False), (15.0, False)])
def test_a_slow_monitor_gives_no_model_to_the_extended_filter(
    monitor_every_s: float, fits: bool
) -> None:
    options = Filtered(setting=a_setting(monitor_every_s=monitor_every_s), filter="ekf")
    ekf = FILTERS["ekf"](options)
    assert isinstance(ekf, Ekf)
    assert (ekf.a == ()) is fits
    assert fits or not any((*ekf.a, *ekf.b))
