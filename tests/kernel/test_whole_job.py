"""A rescale of the whole job: who joins and leaves when, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.runs.measurements.store import to_arrow
from include.testbeds.simulated import kernel
from include.testbeds.simulated.testbed import SimulatedTestbed
from include.testing.builders import SMALL, a_topology, an_operator, decision
from tests.builders import a_config, apply_at, measured_at, resumed, seen_at
from tests.kernel.flows import QUIET

GAP_S = 3.0
HOT = {"gap_s": [GAP_S], "hot_s": [9, 9], "hot_factor": [2, 2]}


def a_job(
    level: float = 0.9,
    *,
    room: float = 0,
    behind: bool = False,
    behind_ms: float = 1.0,
    **changes: Any,
) -> SimulatedTestbed:
    """One instance of O1, of a second an item, on host-1; ``level`` items a second, evenly. With
    ``behind`` one of O2 gets what it does. ``room`` items are in a buffer."""
    calibration = QUIET | {
        "host_boot_s": (10, 10), "instance_start_s": (0, 0), "rescale": {"gap_s": [GAP_S]}
    }  # fmt: skip
    operators = [an_operator("O1", service_ms=1000.0)]
    operators += [an_operator("O2", service_ms=behind_ms)] if behind else []
    if room:
        calibration["buffer_items"] = {op.name: room for op in operators}
    config = a_config(
        a_topology(*operators),
        level,
        duration_s=600.0,
        seed=1,
        monitor_every_s=5.0,
        calibration=calibration | changes,
    )
    testbed = SimulatedTestbed(config)
    starts = [StartInstance(op.name, "first") for op in operators]
    testbed.deploy(decision(LeaseHost(SMALL.name, "first"), *starts))
    return testbed


def restarts(testbed: SimulatedTestbed) -> list[tuple[float, float]]:
    """When the job was stopped, and for how many seconds."""
    return restarts_of(testbed.take_measurements().get("event", {}))


def restarts_of(events: Mapping[str, Any]) -> list[tuple[float, float]]:
    rows = zip(*(events.get(name, []) for name in ("time_s", "event", "detail")), strict=True)
    down = [(at_s, detail) for at_s, event, detail in rows if event == "job_restart"]
    return [(at_s, float(detail.split("down for ")[1].split()[0])) for at_s, detail in down]


def restarts_s(testbed: SimulatedTestbed) -> list[float]:
    return [at_s for at_s, _ in restarts(testbed)]


def done_s(testbed: SimulatedTestbed) -> np.ndarray:
    return np.sort(testbed.take_measurements()["processing_duration"]["time_s"])


def test_nothing_is_done_in_a_rescale_but_what_was_begun() -> None:
    testbed = a_job(level=2.0)
    apply_at(testbed, 50.5, StartInstance("O1", "host-1"))
    assert [one.ready for one in seen_at(testbed, 52).instances.values()] == [True, False]
    assert all(one.ready for one in seen_at(testbed, 54).instances.values())
    testbed.advance_to(100)
    times_s = done_s(testbed)
    # The item that was in service ends at 51 s; then nothing begins until the job is up.
    around = times_s[(times_s > 49.5) & (times_s < 55)]
    assert around.tolist() == pytest.approx([50, 51, 50.5 + GAP_S + 1, 50.5 + GAP_S + 1])


@pytest.mark.parametrize("room", [0, 0.25])
@pytest.mark.parametrize("packs", [False, True])
def test_items_that_begin_in_the_hot_phase_take_longer(room: float, packs: bool) -> None:
    """Up at 43 s and hot until 52 s: of a second each, they take two until 53 s, and one again."""
    testbed = a_job(level=5.0, room=room, rescale=HOT | {"packs": packs})
    apply_at(testbed, 40, StartInstance("O1", "host-1"))
    testbed.advance_to(60)
    times_s = done_s(testbed)
    expected = np.repeat([45, 47, 49, 51, 53, 54, 55, 56], 2)
    assert times_s[(times_s > 41) & (times_s < 57)] == pytest.approx(expected, abs=1e-3)


def test_an_instance_with_a_buffer_gets_its_turn_once_it_is_ready() -> None:
    """Ready at 90.5 s, it gets every second item from then on, and none to make up for others."""
    testbed = a_job(level=1.0, room=1, rescale=None, instance_start_s=(50, 50))
    apply_at(testbed, 40.5, StartInstance("O1", "host-1"))
    items = measured_at(resumed(testbed), 111)["processing_duration"]
    codes, names = items["instance"]
    new = np.array(names)[codes] == "O1-2"
    assert items["time_s"][new] == pytest.approx(np.arange(93, 111, 2))


def test_what_is_deployed_has_the_buffers_of_its_senders() -> None:
    config = a_job(behind=True, room=4).config
    rooms = []
    for instances in (1, 4):
        testbed = SimulatedTestbed(config)
        starts = [StartInstance(name, "a") for name in ("O1", "O2") for _ in range(instances)]
        testbed.deploy(decision(LeaseHost(SMALL.name, "a"), *starts))
        rooms.append(testbed.network.state.room.tolist())
        assert resumed(testbed).network.state.room.tolist() == rooms[-1]
    # By a source, four buffers for one receiver and 3.25 for each of four; by four senders, ten.
    assert rooms == [[16, 16], [13, 4 * 10]]


def test_what_stays_on_a_host_that_was_crowded_has_it_alone() -> None:
    """Those that are stopped at 50 s want their share of the cores until their item is done."""
    testbed = a_job(level=50.0, rescale=None)
    apply_at(testbed, 20, *[StartInstance("O1", "host-1") for _ in range(15)])
    speed_permille = testbed.network.state.servers[0, :1, kernel.SPEED_PERMILLE]
    apply_at(testbed, 49.5, *[StopInstance(f"O1-{number}") for number in range(2, 17)])
    assert speed_permille == [500]
    testbed.advance_to(60)
    assert testbed.network.state.servers[0, :1, kernel.SPEED_PERMILLE] == [1000]


def test_a_hot_phase_slows_what_shares_a_cpu_once_more() -> None:
    """Sixteen of half a core on four cores run at half speed: two seconds, and four while hot."""
    testbed = a_job(level=50.0, rescale=HOT)
    testbed.apply(decision(*[StartInstance("O1", "host-1") for _ in range(15)]))
    testbed.advance_to(6)
    speeds = testbed.network.state.servers[0, :16, kernel.SPEED_PERMILLE]
    assert set(speeds.tolist()) == {250}
    testbed.advance_to(20)
    assert set(speeds.tolist()) == {500}
    assert testbed.observe().hosts["host-1"].cpu_share == 1.0  # of four cores, though eight are due


def test_the_hot_phase_ends_with_the_next_rescale() -> None:
    """The second job is up at 48 s, and hot until 57 s rather than longer or more."""
    testbed = a_job(level=5.0, rescale=HOT)
    for at_s in (40, 45):
        apply_at(testbed, at_s, StartInstance("O1", "host-1"))
    testbed.advance_to(65)
    times_s = np.unique(done_s(testbed).round(3))
    assert times_s[(times_s > 45) & (times_s < 60)].tolist() == [50, 52, 54, 56, 58, 59]


def test_controllers_see_when_the_job_was_started_and_nothing_before_the_first_reading() -> None:
    testbed = a_job()
    assert testbed.observe().operators == {}
    assert seen_at(testbed, 5).operators["O1"].arrived_items == pytest.approx(5, abs=1)
    apply_at(testbed, 40, StartInstance("O1", "host-1"))
    seen = [seen_at(testbed, at_s) for at_s in (40, 42, 43, 60)]
    assert [one.job_started_s for one in seen] == [0.0, 0.0, 40 + GAP_S, 40 + GAP_S]
    assert [(one.job_starts, one.job_changes) for one in seen] == [(0, 0), (0, 0), (1, 1), (1, 1)]
    assert [one.job_paused_in_all_s for one in seen] == [0.0, 0.0, GAP_S, GAP_S]


def test_a_decision_is_one_rescale_however_many_actions_it_has() -> None:
    testbed = a_job()
    testbed.apply(decision(*[StartInstance("O1", "host-1") for _ in range(3)]))
    taken = measured_at(testbed, 60)
    assert restarts_of(taken["event"]) == [(0.0, GAP_S)]
    assert taken["pause"] == {"operator": [""], "from_s": [0.0], "until_s": [GAP_S]}


def test_what_needs_a_host_comes_once_that_has_booted() -> None:
    """Two on a host that is up and one on a new one are two rescales, ten seconds apart."""
    testbed = a_job()
    testbed.advance_to(40)
    starts = [StartInstance("O1", "host-1"), StartInstance("O1", "new")]
    testbed.apply(decision(LeaseHost(SMALL.name, "new"), *starts))
    testbed.advance_to(100)
    assert restarts_s(testbed) == [40.0, 50.0]


def test_what_is_decided_in_a_rescale_waits_for_the_next() -> None:
    testbed = a_job()
    apply_at(testbed, 40, StartInstance("O1", "host-1"))
    apply_at(testbed, 41, StartInstance("O1", "host-1"))
    testbed.advance_to(100)
    assert restarts_s(testbed) == [40.0, 40.0 + GAP_S]


def test_one_that_stops_serves_until_the_rescale_and_its_host_ends_then() -> None:
    testbed = a_job()
    lease = decision(LeaseHost(SMALL.name, "new"), StartInstance("O1", "new"))
    testbed.apply(lease)
    apply_at(testbed, 59, StartInstance("O1", "host-1"))  # the job is up again at 62 s
    apply_at(testbed, 60, StopInstance("O1-2"), ReleaseHost("host-2"))
    assert "O1-2" in seen_at(testbed, 61).instances
    assert "O1-2" not in seen_at(testbed, 64).instances
    assert testbed.leases()["ended_s"][1] == pytest.approx(62, abs=1.01)


def test_one_that_is_stopped_before_it_joined_costs_no_rescale() -> None:
    testbed = a_job()
    apply_at(testbed, 40, LeaseHost(SMALL.name, "new"), StartInstance("O1", "new"))
    apply_at(testbed, 45, StopInstance("O1-2"), ReleaseHost("host-2"))
    testbed.advance_to(100)
    assert restarts_s(testbed) == []
    assert list(testbed.observe().instances) == ["O1-1"]


def test_a_moved_instance_and_its_copy_change_places_in_one_rescale() -> None:
    testbed = a_job()
    apply_at(testbed, 40, LeaseHost(SMALL.name, "new"), MigrateInstance("O1-1", "new"))
    assert seen_at(testbed, 49).instances["O1-1"].ready
    testbed.advance_to(70)
    assert restarts_s(testbed) == [50.0]
    assert list(testbed.observe().instances) == ["O1-2"]


def test_an_engine_that_packs_fills_one_host_after_another() -> None:
    """Four fit a host. Of six on two hosts that were asked for evenly it puts four on the first."""
    testbed = a_job(rescale={"gap_s": [GAP_S], "packs": True})
    starts = [StartInstance("O1", host) for host in ("host-1", "host-1", "new", "new", "new")]
    testbed.apply(decision(LeaseHost(SMALL.name, "new"), *starts))
    hosts = [one.host for one in seen_at(testbed, 60).instances.values()]
    assert (hosts.count("host-1"), hosts.count("host-2")) == (4, 2)
    testbed.apply(decision(StopInstance("O1-1"), StopInstance("O1-2"), ReleaseHost("host-2")))
    assert {one.host for one in seen_at(testbed, 70).instances.values()} == {"host-1"}
    assert testbed.leases()["ended_s"][1] == pytest.approx(60, abs=1.01)


def test_every_instance_that_runs_after_it_makes_a_rescale_longer() -> None:
    """Two run after the first, three after the second; one that waits for its host not yet."""
    testbed = a_job(rescale={"gap_s": [1.0], "per_instance_s": 0.5})
    apply_at(testbed, 40, StartInstance("O1", "host-1"), LeaseHost(SMALL.name, "new"))
    testbed.apply(decision(StartInstance("O1", "host-2")))
    paused_s = [seen_at(testbed, until_s).job_paused_in_all_s for until_s in (45, 70)]
    assert paused_s == [2.0, 4.5]


def test_no_rescale_while_more_is_restored_than_a_buffer_holds() -> None:
    """A buffer holds five items and an instance has four: twenty of a second are restored at 44 s,
    all with the first instance. The next rescale is asked for at once, and its checkpoint begins
    when five are left, as soon as it is looked for. It takes as long as they do, and the one in
    service."""
    testbed = a_job(level=5.0, room=5)
    apply_at(testbed, 40.5, StartInstance("O1", "host-1"))
    apply_at(testbed, 41, StartInstance("O1", "host-1"))
    testbed.advance_to(100)
    (first, first_s), (second, second_s) = restarts(testbed)
    assert (first, first_s) == (40.5, 0.5 + GAP_S), "the item in service ends at 41 s"
    assert 58 <= second <= 58.5
    assert second + second_s == pytest.approx(59 + 5 + GAP_S, abs=0.01)


def test_operators_behind_one_that_goes_on_are_sent_what_it_does_and_wait_for_the_start() -> None:
    """O1 has five items of a second left when the second checkpoint begins. What it does until
    then counts, and is in O2's buffers until the job is up: it waits that long there."""
    testbed = a_job(level=5.0, room=5, behind=True)
    apply_at(testbed, 40.5, StartInstance("O1", "host-1"))
    apply_at(testbed, 41, StartInstance("O1", "host-1"))
    testbed.advance_to(100)
    taken = testbed.take_measurements()
    (_, _), (begins_s, takes_s) = restarts_of(taken["event"])
    rows = to_arrow("processing_duration", taken["processing_duration"]).to_pylist()
    behind = [row for row in rows if row["operator"] == "O2"]
    sent_s = {row["time_s"]: row["time_s"] - row["duration_ms"] / 1000 for row in behind}
    up_s = begins_s + takes_s
    inside = [done for done, sent in sent_s.items() if begins_s + 0.1 < sent < up_s - GAP_S]
    assert len(inside) >= 4
    assert min(inside) >= up_s


def test_a_checkpoint_waits_for_an_instance_that_waits_for_room() -> None:
    """O2 takes two seconds an item and holds O1 up, which gets room once O2 has gone through a
    buffer of each of its senders: five items."""
    testbed = a_job(level=5.0, room=5, behind=True, behind_ms=2000.0)
    apply_at(testbed, 200.5, StartInstance("O1", "host-1"))
    testbed.advance_to(260)
    ((_, takes_s),) = restarts(testbed)
    assert takes_s == pytest.approx(5 * 2 + GAP_S, abs=0.01)


@pytest.mark.parametrize(("level", "room"), [(0.5, 0), (5.0, 5)])
def test_a_lost_host_starts_the_job_again_at_once(level: float, room: float) -> None:
    """Nobody goes on: what waits in buffers waits for the start."""
    testbed = a_job(level=level, room=room)
    testbed.apply(decision(LeaseHost(SMALL.name, "new"), StartInstance("O1", "new")))
    testbed.advance_to(60)
    restarts_s(testbed)
    testbed.fleet.hosts[2].fails_us = 70_000_000
    testbed.cloud.faults = testbed.cloud.faults.model_copy(update={"host_losses_per_hour": 1.0})
    taken = measured_at(testbed, 90)
    assert restarts_of(taken["event"]) == [(70.0, GAP_S)]
    assert "pause" not in taken, "nobody changed anything"
    seen = testbed.observe()
    assert list(seen.instances) == ["O1-1"]
    assert (seen.job_starts, seen.job_changes, seen.job_paused_in_all_s) == (2, 1, GAP_S)


def test_a_lost_host_whose_instances_had_left_starts_nothing_again() -> None:
    """One left with the rescale and is at its last item; one was stopped before it joined."""
    testbed = a_job(level=2.0, drain_s=20)
    testbed.apply(decision(LeaseHost(SMALL.name, "new"), StartInstance("O1", "new")))
    apply_at(testbed, 40, StopInstance("O1-2"))
    testbed.advance_to(44)
    testbed.apply(decision(StartInstance("O1", "host-2")))
    testbed.apply(decision(StopInstance("O1-3")))
    assert len(restarts_s(testbed)) == 2
    testbed.fail(testbed.fleet.hosts[2])
    assert restarts_s(testbed) == []
    assert list(testbed.observe().instances) == ["O1-1"]


def test_a_rescale_that_a_loss_interrupts_is_that_of_the_loss() -> None:
    testbed = a_job()
    apply_at(testbed, 40, StartInstance("O1", "host-1"))
    testbed.advance_to(41)
    testbed.fail(testbed.fleet.instances[1])
    looked = seen_at(testbed, 43.5), seen_at(testbed, 50)
    assert [(one.job_starts, one.job_started_s) for one in looked] == [(0, 0.0), (1, 41 + GAP_S)]
    assert [one.job_changes for one in looked] == [0, 0]


@pytest.mark.parametrize("rescale", [{"gap_s": [GAP_S]}, HOT])
def test_items_are_done_once_each_whatever_is_rescaled(rescale: dict[str, Any]) -> None:
    testbed = a_job(level=2.5, room=4, rescale=rescale)
    for at_s in (20, 30, 40, 55):
        apply_at(testbed, at_s, StartInstance("O1", "host-1"))
    rows = measured_at(testbed, 300)["processing_duration"]
    state = testbed.network.state
    assert len(rows["time_s"]) == state.nodes[0, kernel.COMPLETED]
    servers = state.nodes[0, kernel.SERVERS]
    busy = int(state.servers[0, :servers, kernel.BUSY].sum())
    held = int(state.holding[0, :servers, kernel.HELD].sum())
    waiting = held + int(state.edges[0, 1] - state.edges[0, 0])
    assert state.nodes[0, kernel.COMPLETED] + busy + waiting == round(2.5 * 300)
