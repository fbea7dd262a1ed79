"""The fluid testbed's hosts: shared CPU, moves, pauses, limits and faults."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.testbeds import TESTBEDS
from include.testbeds.flow import sharing
from include.testing.builders import decision
from include.workloads.pattern import Levels
from tests.builders import apply_at, measured_at, seen_at
from tests.kernel.flows import SHARED, a_chain, a_config, rows_of, started

TWO_CORES = replace(SHARED, vcpus=2)


def served(testbed, until_s=60):
    """Items that each operator completes until then."""
    samples = seen_at(testbed, until_s).operators
    return {name: sample.completed_items for name, sample in samples.items()}


def waits_ms(testbed, operator="O1"):
    """When items were done, and how long they waited."""
    measured = testbed.take_measurements()["processing_duration"]
    mine = rows_of(measured, operator)
    return measured["time_s"][mine], measured["wait_ms"][mine]


def test_who_wants_little_gets_it_on_a_crowded_host():
    # O1 wants 0.2 cores of two; three instances of O2 would like one core each.
    topology = a_chain("O1", "O2")
    edge = replace(topology.edges[1], items_out=100)
    config = a_config(replace(topology, edges=(topology.edges[0], edge)), 2.0, flavor=TWO_CORES)
    testbed = TESTBEDS["flow"].build(config)
    starts = [StartInstance("O1", "h"), *[StartInstance("O2", "h")] * 3]
    testbed.deploy(decision(LeaseHost("shared", "h"), *starts))
    observation = seen_at(testbed, 60)
    assert observation.operators["O1"].completed_items == 120
    assert observation.operators["O2"].completed_items == pytest.approx(1.8 * 10 * 60, rel=0.001)
    shares = [instance.cpu_share for instance in observation.instances.values()]
    assert shares == pytest.approx([0.2, 0.6, 0.6, 0.6], abs=1e-3)
    # A core's share is 0.6, so O1 is busy for 0.2 / 0.6 of the time: eq. 3 of Henge.
    assert observation.operators["O1"].capacity == pytest.approx(1 / 3, abs=1e-3)
    assert observation.operators["O2"].capacity == 1.0
    (host,) = observation.hosts.values()
    assert host.cpu_share == pytest.approx(1.0)
    assert host.runnable == pytest.approx(3 + 1 / 3, abs=0.01)


def test_an_instance_elsewhere_helps_out():
    config = a_config(a_chain("O1"), 1000.0, flavor=replace(SHARED, vcpus=1))
    testbed = started(config, hosts=2, instances=3)  # two on host-1, one on host-2
    assert served(testbed) == {"O1": 2 * 10 * 60}
    light = started(
        replace(config, levels_of={"S1": Levels((0.0,), (16.0,))}), hosts=2, instances=3
    )
    assert served(light) == {"O1": 16 * 60}
    assert light.observe().operators["O1"].waiting_items == 0


def test_a_busier_host_is_slower_long_before_it_is_full():
    durations = []
    for level in (5.0, 17.0, 19.0):
        testbed = started(a_config(a_chain("O1"), level, flavor=TWO_CORES), instances=8)
        measured = measured_at(testbed, 60)["processing_duration"]
        durations.append(measured["duration_ms"].mean())
    assert durations == sorted(durations)
    assert durations[0] == pytest.approx(100, rel=0.1)
    assert 200 < durations[2] <= 400, "never slower than if all eight ran at once"


def slowdown(threads, busy, cores, background=0.0):
    """How much slower threads are that would each be busy for this share of the time."""
    layout = SimpleNamespace(host_cores=[cores], host_weight=[float(threads)])
    scratch = SimpleNamespace(
        load=[threads * busy],
        spread=[threads * busy],
        squares=[threads * busy**2],
        highest=[busy],
    )
    return 1 / sharing._meeting_speed.py_func(0, background, layout, scratch)


def shared_at_random(threads, busy, cores, events=60_000):
    """The same, from a simulation: random items, and cores shared by threads that have any."""
    draws = np.random.default_rng(1)
    items, spent, total = np.zeros(threads, dtype=int), 0.0, 0.0
    for _ in range(events):
        active = np.count_nonzero(items)
        arriving, leaving = threads * busy, min(active, cores)
        length = draws.exponential(1 / (arriving + leaving))
        spent, total = spent + active * length, total + length
        if draws.random() * (arriving + leaving) < arriving:
            items[draws.integers(threads)] += 1
        else:
            items[draws.choice(np.flatnonzero(items))] -= 1
    return spent / total / (threads * busy)


@pytest.mark.parametrize(
    ("threads", "busy", "cores"), [(6, 0.5, 4), (8, 0.22, 2), (20, 0.19, 4), (100, 0.03, 4)]
)
def test_threads_meet_as_if_cores_were_shared_at_random(threads, busy, cores):
    expected = shared_at_random(threads, busy, cores)
    assert slowdown(threads, busy, cores) == pytest.approx(expected, rel=0.15)


def test_many_threads_on_a_core_are_an_mm_1_queue_and_few_never_meet():
    assert slowdown(10_000, 0.5 / 10_000, 1) == pytest.approx(1 / (1 - 0.5), rel=0.1)
    assert slowdown(4, 0.9, 4) == 1.0
    assert slowdown(50, 0.999 * 4 / 50, 4) <= 50 / (0.999 * 4), "it still does what it has to"
    assert slowdown(4, 0.4, 4, background=2.0) > slowdown(4, 0.4, 4, background=0.5) > 1


def test_background_and_overhead_take_their_part():
    calibration = {"background_cores": 1.0, "overhead_cores": 0.1}
    config = a_config(a_chain("O1"), 1000.0, flavor=TWO_CORES, calibration=calibration)
    testbed = started(config, instances=4)
    # 2 - 4 x 0.1 cores for four instances and one core's worth of others: 0.32 each.
    assert served(testbed)["O1"] == pytest.approx(4 * 0.32 * 10 * 60, abs=1)
    (host,) = testbed.observe().hosts.values()
    assert host.runnable == pytest.approx(4 + 1 + 0.4)


def test_a_stateless_instance_moves_without_a_gap():
    testbed = started(a_config(a_chain("O1")), hosts=2)
    (old,) = seen_at(testbed, 30).instances
    (moved,) = testbed.apply(decision(MigrateInstance(old, "host-2")))
    assert seen_at(testbed, 33).instances[old].stopping, "it serves until the new one is ready"
    observation = seen_at(testbed, 90)
    assert list(observation.instances) == [moved.subject]
    assert observation.operators["O1"].completed_items == 5 * 60, (
        "since 30 s, when it was last seen"
    )
    assert waits_ms(testbed)[1].max() < 1


def test_a_stateful_operator_pauses_while_its_state_moves_and_loses_nothing():
    calibration = {"migration_pause_s": 0.5, "state_mb_per_s": 100}
    topology = a_chain("O1", "O2", stateful=True, state_mb=250.0)
    testbed = started(a_config(topology, calibration=calibration), hosts=2)
    testbed.advance_to(30)
    old = next(
        n for n, instance in testbed.observe().instances.items() if instance.operator == "O2"
    )
    testbed.apply(decision(MigrateInstance(old, "host-2")))
    assert seen_at(testbed, 120).operators["O2"].completed_items == 5 * 90
    done_s, waited_ms = waits_ms(testbed, "O2")
    # The new instance is ready at 35 s, and then the operator pauses for 3 s. Up to 15 items
    # gather, and it takes another 3 s until ten a second have caught up with five.
    assert waited_ms[done_s < 35].max() < 1
    assert 2000 < waited_ms.max() <= 4000
    assert waited_ms.sum() / 1000 == pytest.approx(15 * (3 + 3) / 2, rel=0.05)
    assert waited_ms[done_s > 45].max() < 1
    observation = testbed.observe()
    assert observation.operator_pauses == {"O2": (1, 3.0)}


def test_who_looks_on_between_two_steps_shortens_no_pause():
    """The operator pauses from 35 to 37.3 s, and the step ends at 38."""
    waited_ms, seen = [], []
    for looks_s in ((), (36.0, 37.5)):
        config = a_config(a_chain("O1", "O2"), calibration={"rescale_pause_s": 2.3, "step_s": 1.0})
        testbed = started(config, hosts=2)
        testbed.advance_to(30)
        testbed.apply(decision(StartInstance("O2", "host-2")))
        for at_s in looks_s:
            testbed.advance_to(at_s)
            seen.append(testbed.look("another").operator_pauses)
        testbed.advance_to(120)
        assert testbed.look().operator_pauses == {"O2": (1, 2.3)}
        waited_ms.append(waits_ms(testbed, "O2")[1].sum())
    assert seen == [{}, {"O2": (1, 2.3)}]
    assert waited_ms[0] == waited_ms[1] > 10_000


def test_a_pause_was_one_though_its_host_is_lost_after_it():
    calibration = {"rescale_pause_s": 3, "instance_start_s": [5, 5], "drain_s": 20}
    testbed = started(a_config(a_chain("O1", "O2"), calibration=calibration), hosts=2)
    testbed.advance_to(30)
    testbed.apply(decision(StartInstance("O2", "host-2")))
    testbed.advance_to(40)
    *_, new = testbed.observe().instances
    testbed.apply(decision(StopInstance(new)))  # pauses its operator from now to 43
    testbed.advance_to(44)
    testbed.fail(testbed.fleet.hosts[2])
    testbed.advance_to(90)
    observation = testbed.look()
    assert observation.operator_pauses == {"O2": (2, 6.0)}


def test_executors_that_come_and_go_pause_a_stateful_operator():
    config = a_config(a_chain("O1", stateful=True, state_mb=400.0), calibration={"drain_s": 1})
    testbed = started(config)
    (outcome,) = apply_at(testbed, 30, StartInstance("O1", "host-1"))
    apply_at(testbed, 60, StopInstance(outcome.subject))
    testbed.advance_to(120)
    done_s, waited_ms = waits_ms(testbed)
    late = np.unique(done_s[waited_ms > 1000] // 30 * 30)
    assert late.tolist() == [30, 60]


def test_there_are_only_so_many_hosts():
    testbed = started(a_config(a_chain("O1"), max_hosts=2))
    second, third, start = testbed.apply(
        decision(LeaseHost("shared", "b"), LeaseHost("shared", "c"), StartInstance("O1", "c"))
    )
    assert (second.accepted, third.accepted, start.accepted) == (True, False, False)
    assert third.detail == "all 2 hosts are leased"
    testbed.apply(decision(ReleaseHost(second.subject)))
    (again,) = testbed.apply(decision(LeaseHost("shared", "c")))
    assert again.accepted, "a host that was given back can be leased again"


def test_nothing_is_seen_during_an_outage_but_items_flow_on():
    testbed = started(a_config(a_chain("O1"), faults={"outages": [[60, 120]]}))
    observations = {}
    for t_s in range(15, 151, 15):
        observations[t_s] = seen_at(testbed, t_s)
    dark = [t_s for t_s, observation in observations.items() if not observation.operators]
    assert dark == [75, 90, 105, 120]
    (host,) = observations[90].hosts.values()
    (instance,) = observations[90].instances.values()
    assert (host.cpu_share, host.runnable, instance.cpu_share) == (None, None, None)
    assert observations[135].operators["O1"].completed_items == 5 * 75
    events = testbed.take_measurements()["event"]
    assert (events["time_s"], events["event"]) == ([75.0], ["monitoring_gap"])


def test_a_cpu_spike_slows_every_host_while_it_lasts():
    config = a_config(a_chain("O1"), 15.0, faults={"cpu_spikes": [[60, 120, 10]]})
    testbed = started(config, instances=2)
    loads = {}
    for t_s in range(15, 301, 15):
        (host,) = seen_at(testbed, t_s).hosts.values()
        loads[t_s] = host.runnable
    assert loads[60] == pytest.approx(1.5)
    assert all(loads[t_s] == pytest.approx(12) for t_s in (75, 90, 105, 120))
    assert loads[300] == pytest.approx(1.5)
    # 4 cores for 12 threads: a third of the speed, 6.7 of 15 items a second.
    done_s, waited_ms = waits_ms(testbed)
    assert waited_ms[(done_s > 110) & (done_s < 120)].mean() > 20_000
    assert waited_ms[done_s < 60].max() < 1
