"""Heinze et al., section II: subset sum and first fit decreasing, on hand-made clusters."""

from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.controllers.fugu.bins import largest_subset
from include.controllers.fugu.cluster import Cluster, Placed
from include.controllers.plan import Plan
from include.model.decision import LeaseHost, MigrateInstance, ReleaseHost
from include.model.host import HostFlavor
from include.testing.builders import (
    a_host,
    a_sample,
    a_setting,
    a_topology,
    an_instance,
    an_observation,
    why,
)
from include.testing.builders import an_operator as operator

SHARED = HostFlavor(name="small", vcpus=4, memory_mb=4000, cpu_shared=True)
NAMES = ("A", "B", "C", "D", "E", "F")
TOPOLOGY = a_topology(*(operator(name, memory_mb=500.0) for name in NAMES))
"""A feeds B, B feeds C, and so on."""


def a_cluster(on, limit=0.6, hosts=None, **changes):
    """``{"h1": {"A": 0.3}}``: an instance of A uses 0.3 of h1's CPU; None: it was not measured."""
    running = [
        an_instance(f"{name.lower()}1", name, host, cpu_share=load and load * SHARED.vcpus)
        for host, loads in on.items()
        for name, load in loads.items()
    ]
    given_hosts = hosts or [
        a_host(name, ordered_s=float(number), cpu_share=sum(on[name].values()))
        for number, name in enumerate(on)
    ]
    observation = an_observation(
        operators=[a_sample(name) for name in NAMES], hosts=given_hosts, running=running
    )
    setting = a_setting(changes.pop("topology", TOPOLOGY), flavor=SHARED, **changes)
    plan = Plan(setting, observation)
    return Cluster(setting, observation, plan, expected={}, limit=limit), plan


def moves(plan):
    return {
        action.instance: action.host
        for action in plan.decision(why()).actions
        if isinstance(action, MigrateInstance)
    }


@given(st.lists(st.integers(0, 60), max_size=9), st.integers(-5, 200))
def test_the_subset_is_as_good_as_the_best_of_all(weights, capacity):
    chosen = largest_subset(weights, capacity)
    assert len(set(chosen)) == len(chosen)
    total = sum(weights[position] for position in chosen)
    subsets = chain.from_iterable(combinations(weights, n) for n in range(len(weights) + 1))
    best = max((sum(subset) for subset in subsets if sum(subset) <= capacity), default=0)
    assert total == best


def test_an_overloaded_host_gets_down_to_the_target_and_not_further_than_it_must():
    # 0.95; without C and D it is at 0.60, without A at 0.50, without B at 0.65.
    cluster, plan = a_cluster({"h1": {"A": 0.45, "B": 0.15, "C": 0.20, "D": 0.15}, "h2": {}})
    assert cluster.scale_out({"h1": why("h1 is full")}, target=0.6) == {"h1": Placed.MOVED}
    assert moves(plan) == {"c1": "h2", "d1": "h2"}


def test_first_fit_takes_the_heaviest_first_and_the_host_leased_first():
    cluster, plan = a_cluster({"h1": {"A": 0.5, "C": 0.3, "E": 0.2}, "h2": {}, "h3": {}})
    cluster.scale_out({"h1": why("h1 is full")}, target=0.0)
    # A (0.5) to h2; C (0.3) does not fit there any more, so h3; E (0.2) fits neither first: h3.
    assert list(moves(plan).items()) == [("a1", "h2"), ("c1", "h3"), ("e1", "h3")]


def test_hosts_of_neighbouring_operators_come_first():
    cluster, plan = a_cluster({"h1": {"B": 0.5, "E": 0.4}, "h2": {"F": 0.1}, "h3": {"C": 0.1}})
    cluster.scale_out({"h1": why("h1 is full")}, target=0.4)
    assert moves(plan) == {"b1": "h3"}, "C receives from B"


def test_memory_is_a_side_constraint():
    big = a_topology(operator("A", memory_mb=2500.0), operator("B", memory_mb=2500.0))
    cluster, plan = a_cluster({"h1": {"A": 0.9}, "h2": {"B": 0.1}, "h3": {}}, topology=big, limit=1)
    cluster.scale_out({"h1": why("h1 is full")}, target=0.6)
    assert moves(plan) == {"a1": "h3"}


def test_what_fits_no_host_makes_a_new_one_and_waits_for_it():
    cluster, plan = a_cluster({"h1": {"A": 0.5, "B": 0.4}, "h2": {"C": 0.5}})
    assert cluster.scale_out({"h1": why("h1 is full")}, target=0.6) == {"h1": Placed.WAITS}
    (step,) = plan.decision(why()).steps
    assert isinstance(step.action, LeaseHost)
    assert "b1 (0.40) fits no host" in step.because


BOOTS = [a_host("h1", cpu_share=0.9), a_host("h2", ordered_s=3590.0, up=False)]


@pytest.mark.parametrize(
    ("on", "changes", "placed"),
    [
        ({"h1": {"A": 0.5, "B": 0.4}}, {"hosts": BOOTS}, Placed.WAITS),
        ({"h1": {"A": 0.5, "B": 0.4}, "h2": {"C": 0.5}}, {"max_hosts": 2}, Placed.ALL_LEASED),
        ({"h1": {"A": 0.95}, "h2": {}}, {}, Placed.REFUSED),
    ],
    ids=["one boots and is not ordered twice", "all are leased", "no host could take it"],
)
def test_nothing_moves_where_no_host_has_room(on, changes, placed):
    cluster, plan = a_cluster(on, **changes)
    assert cluster.scale_out({"h1": why("h1 is full")}, target=0.6) == {"h1": placed}
    assert plan.decision(why()).steps == ()


def test_an_underloaded_host_is_emptied_and_released():
    cluster, plan = a_cluster({"h1": {"A": 0.1, "B": 0.1}, "h2": {"C": 0.5}, "h3": {"D": 0.45}})
    assert cluster.scale_in("h1", why("h1 is idle"))
    assert moves(plan) == {"a1": "h2", "b1": "h3"}
    assert plan.decision(why()).actions[-1] == ReleaseHost("h1")


def test_when_not_everything_fits_nothing_moves_and_the_room_is_kept_for_others():
    on = {"h1": {"A": 0.15, "E": 0.1}, "h2": {"C": 0.4}, "h3": {"D": 0.58}, "h4": {"F": 0.2}}
    cluster, plan = a_cluster(on, limit=0.6)
    cluster.scale_out({"h4": why("h4 gives nothing, and takes nothing")}, target=0.6)
    assert not cluster.scale_in("h1", why("h1 is idle"))
    assert plan.decision(why()).steps == ()
    assert cluster.scale_in("h4", why("h4 is idle"))
    assert moves(plan) == {"f1": "h1"}


def test_the_last_host_stays():
    cluster, _ = a_cluster({"h1": {}})
    assert not cluster.scale_in("h1", why("h1 is idle"))


def test_loads_of_instances_never_exceed_that_of_their_host():
    hosts = [a_host("h1", cpu_share=0.45)]
    cluster, _ = a_cluster({"h1": {"A": 0.6, "B": 0.3}}, hosts=hosts)
    assert [round(item.load, 6) for item in cluster.movable("h1")] == [0.3, 0.15]


def test_what_was_not_measured_does_not_move():
    hosts = [a_host("h1", cpu_share=0.9), a_host("h2", cpu_share=0.0)]
    cluster, plan = a_cluster({"h1": {"A": 0.4, "B": None}, "h2": {}}, hosts=hosts)
    cluster.scale_out({"h1": why("h1 is full")}, target=0.6)
    assert set(moves(plan)) == {"a1"}
    assert not cluster.scale_in("h1", why("b1 was not measured"))
