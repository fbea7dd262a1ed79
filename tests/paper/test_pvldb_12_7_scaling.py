"""PVLDB 12(7), section 3.3: the scaling rule behind a filter, and how it is carried out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from pydantic import TypeAdapter

from include.controllers.pvldb127.filtered import FILTERS, Filtered, measure
from include.controllers.pvldb127.rules import Utilisation
from include.model.decision import Decision, LeaseHost, ReleaseHost, StartInstance, StopInstance
from include.model.host import HostFlavor
from include.model.observation import Observation
from include.testing.builders import (
    a_host,
    a_sample,
    a_setting,
    a_topology,
    an_instance,
    an_observation,
    an_operator,
)

VM = HostFlavor(name="vm", vcpus=1, memory_mb=4000)
IMAGES = an_operator("O1", cpu_cores=1.0, memory_mb=3000.0)
SETTING = a_setting(a_topology(IMAGES), flavor=VM, monitor_every_s=0.5, max_hosts=12)
RULE = Utilisation(aim_between=1.0)


def cluster(now_s: float, *loads: float | None, starting: int = 0, arrived: int = 0, **changes):
    """Instances i1, i2, ... on hosts of their own, with a CPU share each, then starting ones."""
    running = [
        an_instance(f"i{n}", "O1", f"h{n}", cpu_share=cpu, memory_share=0.3, started_s=float(n))
        for n, cpu in enumerate(loads, start=1)
    ]
    first = len(loads) + 1
    running += [
        an_instance(f"i{n}", "O1", f"h{n}", ready=False, started_s=float(n))
        for n in range(first, first + starting)
    ]
    return an_observation(
        now_s=now_s,
        operators=[structs.replace(a_sample("O1"), arrived_items=arrived)],
        hosts=[a_host(instance.host, flavor="vm") for instance in running],
        running=[
            structs.replace(instance, **changes.get(instance.instance, {})) for instance in running
        ],
    )


def decide(controller: Filtered, *observations: Observation) -> Decision:
    memory = controller.initial_memory()
    for observation in observations:
        memory, decision = controller.decide(memory, observation)
    return decision


def kinds(decision: Decision) -> list[type]:
    return [type(action) for action in decision.actions]


@pytest.mark.parametrize(
    ("total", "change"),
    [((1.61, 0.2), 1), ((0.2, 1.61), 1), ((1.6, 0.2), 0), ((0.89, 0.91), 0), ((0.89, 0.89), -1)],
)
def test_up_if_any_metric_is_above_down_if_all_are_below(total, change) -> None:
    assert RULE.judge(total, 2, counts=False).count == change


def test_a_counting_filter_says_how_many() -> None:
    """13.2 cores of load want 17 instances at 80 %, 1.7 want 3."""
    assert RULE.judge((13.2,), 8, counts=True).count == 9
    assert RULE.judge((1.7,), 8, counts=True).count == -5
    assert RULE.judge((0.0,), 8, counts=True).count == -7


def test_a_filter_without_a_count_takes_one_step() -> None:
    assert RULE.judge((13.2,), 8, counts=False).count == 1
    assert RULE.judge((0.0,), 8, counts=False).count == -1
    assert RULE.judge((0.0,), 1, counts=False).count == 0


def test_what_is_enough_already_is_not_scaled_down() -> None:
    """On the way down 0.44 of 2 still needs two at 40 %."""
    careful = Utilisation(scale_down_below=0.45, aim_between=0.03)
    assert careful.judge((0.88,), 2, counts=True).count == 0


def test_pure_leases_a_machine_for_one_more_instance() -> None:
    decision = decide(Filtered(setting=SETTING), cluster(10.0, 0.9, 0.95))
    assert kinds(decision) == [LeaseHost, StartInstance]
    assert "CPU 0.93 on average of 2 is above 0.8" in decision.steps[0].because


@pytest.mark.parametrize("name", ["pure", "weierstrass"])
def test_nothing_need_be_stopped_because_instances_that_start_idle(name: str) -> None:
    """Of three 0.6 + 0.6 is 40 % on average; of the two that work it is 60 %."""
    busy = cluster(10.0, 0.6, 0.6, starting=1)
    idle = cluster(10.0, 0.2, 0.2, starting=1)
    eager = Filtered(setting=SETTING, filter=name)
    assert decide(eager, busy).actions == (StopInstance("i2"),)
    careful = replace(eager, stops_by_ready=True)
    assert decide(careful, busy).actions == ()
    assert decide(careful, idle).actions == (StopInstance("i2"),)


def test_instances_that_start_need_not_count() -> None:
    """Section 4.1: as they are spun up the average of the others, 0.93, "remains exceeded"."""
    alone = Filtered(setting=SETTING, starting_counts=False)
    observation = cluster(10.0, 0.9, 0.95, starting=1)
    assert kinds(decide(alone, observation)) == [LeaseHost, StartInstance]
    # Those that work are at 60 %: nothing is stopped because a third one is not there yet.
    assert decide(alone, cluster(10.0, 0.6, 0.6, starting=1)).actions == ()


def test_a_filter_with_a_count_asks_for_no_more_than_it_has_started() -> None:
    """Of 5 that are started 7 - 2 were needed."""
    ekf = Filtered(
        setting=SETTING, filter="ekf", aim_between=1.0, cpu_per_rate_change=0.125,
        starting_counts=False,
    )  # fmt: skip
    quiet = [cluster(i * 0.5, 0.5, 0.5, arrived=2) for i in range(60)]
    for starting, more in ((0, 5), (2, 3), (5, 0)):
        decision = decide(ekf, *quiet, cluster(30.0, 0.5, 0.5, arrived=10, starting=starting))
        assert kinds(decision).count(StartInstance) == more


@pytest.mark.parametrize(("now_s", "starts"), [(10.0, 1), (10.5, 0), (11.5, 0), (12.0, 1)])
def test_an_operator_may_be_scaled_more_seldom_than_it_is_measured(now_s, starts) -> None:
    decision = decide(Filtered(setting=SETTING, scales_every_s=2.0), cluster(now_s, 0.9, 0.95))
    assert kinds(decision).count(StartInstance) == starts


def test_nothing_is_scaled_while_an_instance_hands_over_its_state() -> None:
    busy = cluster(10.0, 0.9, 0.95, 0.9, i3={"stopping": True})
    assert decide(Filtered(setting=SETTING), busy).actions == ()
    eager = Filtered(setting=SETTING, waits_for_handover=False)
    assert kinds(decide(eager, busy)) == [LeaseHost, StartInstance]


def test_an_empty_machine_is_given_back() -> None:
    observation = cluster(10.0, 0.6, 0.6)
    hosts = {**observation.hosts, "h9": a_host("h9", flavor="vm")}
    assert decide(Filtered(setting=SETTING), replace(observation, hosts=hosts)).actions == (
        ReleaseHost("h9"),
    )


def test_what_was_not_read_is_left_alone() -> None:
    assert decide(Filtered(setting=SETTING), cluster(10.0, None, None)).actions == ()


def test_an_instance_that_was_not_read_is_named() -> None:
    of = measure(cluster(10.0, 0.9, None), 0.5)
    assert (of.instances, of.unread) == (("i1",), {"i2"})


def test_no_memory_metric_leaves_the_cpu() -> None:
    bare = {f"i{n}": {"memory_share": None} for n in (1, 2)}
    decision = decide(Filtered(setting=SETTING), cluster(10.0, 0.9, 0.95, **bare))
    assert kinds(decision) == [LeaseHost, StartInstance]


def test_the_ekf_orders_all_machines_at_once_when_the_rate_jumps() -> None:
    """Arrivals rise from 4 to 20 images a second; with b = 0.125 the load of 0.5 becomes 2.5."""
    ekf = Filtered(setting=SETTING, filter="ekf", aim_between=1.0, cpu_per_rate_change=0.125)
    quiet = [cluster(i * 0.5, 0.5, 0.5, arrived=2) for i in range(60)]
    decision = decide(ekf, *quiet, cluster(30.0, 0.5, 0.5, arrived=10))
    assert kinds(decision).count(StartInstance) == 5  # 5.0 cores at 80 % are 7 instances
    assert decide(ekf, *quiet, cluster(30.0, 0.5, 0.5, arrived=2)).actions == ()


def test_items_that_came_while_nobody_read_are_no_jump_of_the_rate() -> None:
    """Four images a second all the time; what is counted after a gap came in all of it."""
    ekf = Filtered(setting=SETTING, filter="ekf", aim_between=1.0, cpu_per_rate_change=0.125)
    quiet = [cluster(i * 0.5, 0.5, 0.5, arrived=2) for i in range(60)]
    silent = [replace(cluster(30 + i * 0.5, 0.5, 0.5), operators={}) for i in range(10)]
    assert decide(ekf, *quiet, *silent, cluster(35.0, 0.5, 0.5, arrived=22)).actions == ()


def test_no_decision_before_the_ease_in_is_over() -> None:
    ekf = Filtered(setting=SETTING, filter="ekf", aim_between=1.0, cpu_per_rate_change=0.25)
    loaded = [cluster(i * 0.5, 1.0, 1.0) for i in range(41)]
    assert decide(ekf, *loaded[:40]).actions == ()
    assert kinds(decide(ekf, *loaded)) == [LeaseHost, StartInstance]


def test_a_cold_start_has_one_instance_a_warm_one_what_was_needed() -> None:
    assert Filtered(setting=SETTING).initial_instances() == {"O1": 1}
    assert Filtered(setting=SETTING, warm_instances=11).initial_instances() == {"O1": 11}


@pytest.mark.parametrize("filter_name", FILTERS)
def test_memory_goes_through_json_and_on(filter_name: str) -> None:
    controller = Filtered(setting=SETTING, filter=filter_name)
    memory = controller.initial_memory()
    adapter = TypeAdapter(type(memory))
    for i in range(50):
        observation = cluster(i * 0.5, 0.5, 0.6 + 0.01 * (i % 3), arrived=i % 4)
        revived = adapter.validate_json(adapter.dump_json(memory))
        assert revived == memory
        assert type(revived.filtered) is type(memory.filtered)
        assert controller.decide(revived, observation) == controller.decide(memory, observation)
        memory, _ = controller.decide(memory, observation)
