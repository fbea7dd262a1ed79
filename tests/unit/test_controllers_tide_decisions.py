"""tide's decisions: who gets a place and who gives one, when a host goes, what options do."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import include
from include.controllers.base import Delays
from include.controllers.tide.changes import Pauses, pauses_of
from include.controllers.tide.controller import LONG_BTU_S, Tide
from include.experiment.run import resolve
from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.runs.session import Session
from include.testing.builders import (
    SMALL,
    a_host,
    a_setting,
    a_topology,
    an_observation,
    an_operator,
    instances,
)
from tests.builders import run_spec
from tests.tide_world import (
    FLOW,
    SETTING,
    a_load,
    a_loss,
    actions_of,
    decide,
    long_known,
    remembered,
    steady,
)

ONE_EACH = instances({"h1": "O1 O2 O3"})
ON_TWO_HOSTS = instances({"h1": "O1 O2", "h2": "O1 O2 O3"})
O3_APART = instances({"h1": "O3", "h2": "O1 O2"})


class TestWhatAChangeCosts:
    """A change lasts 200 s, in each of which one item arrives."""

    def test_an_instance_that_saves_less_than_its_start_costs_is_not_started(self) -> None:
        """A second one would save the 28 that are late in 200 s with one."""
        host = a_host()
        assert actions_of(decide(remembered(), [host], ONE_EACH), StartInstance)
        paused = decide(remembered(), [host], ONE_EACH, paused_s=60.0)
        assert not actions_of(paused, StartInstance)
        apart = decide(remembered(), [host], ONE_EACH, paused_s=60.0, unpaused=["O2"])
        assert actions_of(apart, StartInstance) == [StartInstance("O2", "h1")]

    def test_an_operator_that_never_paused_has_none_and_the_others_the_mean(self) -> None:
        seen = {"O1": (2, 30.0), "O2": (0, 0.0), "O3": (1, 33.0)}
        assert pauses_of(["O1", "O2", "O3", "O4"], seen).tolist() == [21, 0, 21, 21]
        assert pauses_of(["O1", "O2"], {"O2": (0, 0.0)}).tolist() == [0, 0]

    @pytest.mark.parametrize(("waiting", "starts"), [(90, False), (300, True)])
    def test_one_that_saves_more_is(self, waiting: int, starts: bool) -> None:
        """Of 90, one instance works off 1/s: 90 late. Two do 3/s after the pause: 60 + 150 / 3."""
        decided = decide(remembered(), [a_host()], ONE_EACH, {"O2": waiting}, paused_s=60.0)
        assert actions_of(decided, StartInstance) == [StartInstance("O2", "h1")] * starts

    def test_what_goes_with_its_host_is_replaced_first(self) -> None:
        """O1 keeps 0.95 instances busy: two are enough, and one of them is on a host that goes."""
        hosts = [a_host("h1", paid_until_s=3640.0), a_host("h2")]
        running = instances({"h1": "O1", "h2": "O1 O2 O3"})
        known = steady(1.9, work_s={"O1": 5e5, "O2": 5e4, "O3": 5e4})
        setting = replace(SETTING, delays=Delays(drain_s=20.0))
        decided = decide(known, hosts, running, arrived=28, setting=setting, paused_s=5.0)
        assert actions_of(decided, StartInstance) == [StartInstance("O1", "h2")]

    @pytest.mark.parametrize(("waiting", "swaps"), [(150, False), (400, True)])
    def test_a_place_is_given_only_if_that_saves_more_than_both_pauses(
        self, waiting: int, swaps: bool
    ) -> None:
        """Of 150, O3 saves 150 - (60 + 210 / 3) = 20, and O1 loses at least 60 + 60."""
        full = [a_host()], instances({"h1": "O1 O1 O2 O3"}), {"O3": waiting}
        assert actions_of(decide(long_known(), *full), StopInstance)
        paused = decide(long_known(), *full, paused_s=60.0)
        assert bool(actions_of(paused, StopInstance)) == swaps

    @pytest.mark.parametrize(("pause_s", "more"), [(0.0, 5.0), (60.0, (750 - 60) * 2 / 600)])
    def test_where_it_pauses_hosts_work_off_what_waits_in_a_btu(
        self, pause_s: float, more: float
    ) -> None:
        """Items of O1 take 2 s, too long for a host for each peak: 1/s and what waits, for as long
        that each counts ten times. Without a pause the root of 750 * 2 * 10 / 600 work on it."""
        slow = long_known()
        slow = replace(slow, work_s={**slow.work_s, "O1": 2e6})
        running = instances({"h1": "O1 O2 O3 O3"})
        decided = decide(slow, [a_host()], running, {"O1": 750}, paused_s=pause_s)
        places = round(2 + more) + 2  # O2 and O3 need one each
        assert len(actions_of(decided, LeaseHost)) == ceil(places / 4) - 1

    def test_a_host_goes_only_if_what_it_costs_is_more_than_to_move_what_is_there(self) -> None:
        """It costs 13.3 late items/s. Of 20/s pauses of O1, one for a start and one for a stop,
        make 20 pauses / 200 n / (n - busy) late, with n 2 and busy 0.1: 10.5 or 14.7.
        With all of O1 on the host n is 1: 11.1 or 15.6; then O1 starts elsewhere first."""
        hosts = [a_host(), a_host("h2", paid_until_s=3630.0)]
        known = steady(20.0, work_s=dict.fromkeys(FLOW.names, 5e3))
        for elsewhere in ("O1 O2 O3", "O2 O3"):
            running = instances({"h1": elsewhere, "h2": "O1"})
            for pause_s, goes in ((50.0, True), (70.0, False)):
                decided = decide(known, hosts, running, arrived=300, paused_s=pause_s)
                assert bool(decided.actions) == goes

    LOAD = a_load(rate_per_s=[10.0], service_s=[0.2])
    CALM = a_loss(LOAD, disturbed=0.0, uneven=0.0)

    @pytest.mark.parametrize(
        ("change_s", "job_s", "after", "saved"),
        [
            (6.0, 0.0, 3.0, 0.0),
            (6.0, 0.0, 4.0, 200 - 60 - 160 / 10 * 10),
            (6.0, 0.0, 5.0, 200 - 60 - 160 / 15 * 10),
            (0.0, 0.0, 5.0, 200 - 100 / 15 * 10),
            (6.0, 0.0, 2.0, 200 - 60 - 1940 - 160),
            (0.0, 0.0, 2.0, 200 - 2000 - 100),
            (2.0, 6.0, 4.0, 200 - 60 - 160 / 10 * 10),
            (0.0, 6.0, 3.0, 200 - 60 - 160 / 5 * 10),
        ],
    )
    def test_instances_that_start_at_once_share_a_pause(
        self, change_s: float, job_s: float, after: float, saved: float
    ) -> None:
        """A fluid: 10 items/s, of which an instance works off 5. Of 100, 3 instances work off 5/s
        and 200 arrive meanwhile. What arrives in the pause of 6 s is late as well. With 2 all of
        the 200 s is late, and what waits is left."""
        pauses = Pauses(self.LOAD.rate_per_s, np.array([100.0]), change_s, job_s)
        made = pauses.saved(self.CALM, np.array([3.0]), np.array([after]))
        assert made == pytest.approx(saved)


class TestWhatAPauseOfTheJobCosts:
    @pytest.mark.parametrize(
        ("left_s", "job_paused_s", "starts", "goes"),
        [(40.0, 0.0, True, False), (40.0, 2.0, False, False), (30.0, 2.0, True, True)],
    )
    def test_the_last_instance_goes_with_its_host_in_one_change(
        self, left_s: float, job_paused_s: float, starts: bool, goes: bool
    ) -> None:
        """Elsewhere it starts a look before its host is cleared, so that it is ready by then."""
        hosts = [a_host("h1", paid_until_s=3600.0 + left_s), a_host("h2")]
        paused = {"job_paused_s": job_paused_s, "least_gain": 5.0}
        decided = decide(long_known(), hosts, O3_APART, **paused)
        assert (StartInstance("O3", "h2") in decided.actions) == starts
        assert len(actions_of(decided, StopInstance, ReleaseHost)) == 2 * goes

    def test_the_last_instance_stays_while_the_other_host_boots(self) -> None:
        """Hosts of two places: h2 is full, and what starts on h3 is not ready with the job."""
        setting = replace(SETTING, flavor=replace(SMALL, memory_mb=SMALL.memory_mb / 2))
        hosts = [a_host("h1", paid_until_s=3630.0), a_host("h2"), a_host("h3", up=False)]
        decided = decide(long_known(), hosts, O3_APART, setting=setting, job_paused_s=2.0)
        assert not actions_of(decided, StopInstance, ReleaseHost)

    def test_where_starts_take_longer_than_the_job_another_one_has_to_be_ready(self) -> None:
        setting = replace(SETTING, delays=Delays(instance_start_s=5.0))
        hosts = [a_host("h1", paid_until_s=3630.0), a_host("h2")]
        decided = decide(long_known(), hosts, O3_APART, setting=setting, job_paused_s=2.0)
        assert not actions_of(decided, StopInstance)

    def test_an_empty_host_goes_without_a_change(self) -> None:
        """A second O1 saves less than a pause of 50 s makes late."""
        hosts = [a_host("h1", paid_until_s=3670.0), a_host("h2")]
        running = instances({"h2": "O1 O2 O3"})
        decided = decide(long_known(), hosts, running, job_paused_s=50.0)
        assert decided.actions == (ReleaseHost("h1"),)

    @pytest.mark.parametrize(("paused_s", "changes"), [(0.0, True), (2.0, True), (90.0, False)])
    def test_what_saves_less_is_left(self, paused_s: float, changes: bool) -> None:
        """60 items of O2 wait; they are worked off sooner with a second instance."""
        decided = decide(remembered(), [a_host()], ONE_EACH, {"O2": 60}, job_paused_s=paused_s)
        assert bool(actions_of(decided, StartInstance)) == changes

    @pytest.mark.parametrize(
        ("job_changes", "job_started_s", "changes"),
        [(2, 3590.0, True), (120, 3590.0, False), (120, 3400.0, True)],
    )
    def test_a_change_lasts_as_long_as_others_or_as_the_last_one_has(
        self, job_changes: int, job_started_s: float, changes: bool
    ) -> None:
        """At second 3600, 120 changes lasted 30 s on average; the last has for 10 s or for 200."""
        decided = decide(
            remembered(),
            [a_host()],
            ONE_EACH,
            {"O2": 60},
            job_paused_s=9.0,
            job_changes=job_changes,
            job_started_s=job_started_s,
        )
        assert bool(actions_of(decided, StartInstance)) == changes


@pytest.mark.parametrize(
    ("seeds", "of", "pause", "counted"),
    [
        (
            [1, 2, 3, 4, 5, 6],
            "manufacturing",
            "pause_on_start_s: {0}\npause_on_stop_s: {0}",
            ("scaling_activity", "activity", ("upscaling", "downscaling")),
        ),
        pytest.param(
            [1, 2, 3],
            "manufacturing_flink",
            "rescale: {{packs: true, gap_s: [{0}]}}",
            ("event", "event", ("job_restart",)),
            marks=pytest.mark.long,
        ),
    ],
    ids=["of an operator", "of the job"],
)
def test_the_longer_the_pauses_the_fewer_changes(
    seeds: list[int], of: str, pause: str, counted: tuple[str, str, tuple[str, ...]], tmp_path: Path
) -> None:
    """They were the more, for what waited after a pause asked for the next change."""
    folder = Path(include.__file__).parent / "workloads/manufacturing/calibrations/virtual"
    usual = (folder / f"{of}.yaml").read_text().partition("\nrescale:")[0]
    made = []
    for pause_s in (0, 15, 60):
        paused = tmp_path / f"pause_{pause_s}.yaml"
        paused.write_text(f"{usual}\n{pause.format(pause_s)}\n")
        made.append(sum(changes_under(paused, seed, *counted) for seed in seeds))
    assert made == sorted(made, reverse=True)
    assert made[-1] < made[0] / 2


def an_hour_under_tide(**changes: Any) -> Any:
    """The testbed after an hour of the manufacturing topology."""
    usual: dict[str, Any] = {"experiment": "e", "controller": "tide", "duration_min": 60}
    session = Session.open(resolve(run_spec(**(usual | changes))))
    session.deploy()
    session.run(0.0, 3600.0)
    return session.loop.testbed


def changes_under(
    calibration: Path, seed: int, table: str, column: str, kinds: tuple[str, ...]
) -> int:
    """Rows of these kinds in an hour of stepwise."""
    testbed = an_hour_under_tide(pattern="stepwise", seed=seed, calibration=str(calibration))
    return sum(each in kinds for each in testbed.take_measurements()[table][column])


class TestHostsWhoseCoresAreShared:
    SHARED = replace(SETTING, flavor=replace(SMALL, cpu_shared=True, memory_mb=400_000))

    def test_they_are_leased_for_work_where_memory_would_do(self) -> None:
        decided = decide(steady(10.0), [a_host()], ONE_EACH, arrived=150, setting=self.SHARED)
        assert (
            len(actions_of(decided, LeaseHost)) == 4
        )  # 15 instances' work and its root, one host is up

    def test_an_instance_starts_where_the_least_is_promised(self) -> None:
        hosts = [a_host(), a_host("h2")]
        running = instances({"h1": "O1 O2", "h2": "O3"})
        decided = decide(long_known(), hosts, running, {"O2": 90}, setting=self.SHARED)
        assert actions_of(decided, StartInstance)[0] == StartInstance("O2", "h2")


class TestLeases:
    @pytest.mark.parametrize(
        ("delays", "leased"),
        [
            (Delays(), 0),
            (Delays(host_boot_s=45.0, instance_start_s=7.5, image_pull_s=10.0), 0),
            (Delays(host_boot_s=75.0, instance_start_s=7.5, image_pull_s=10.0), 4),
        ],
    )
    def test_hosts_are_leased_for_a_peak_that_comes_before_the_next_ones_could_be_ready(
        self, delays: Delays, leased: int
    ) -> None:
        """The peak comes in 105 s: what the next decision orders is ready in 15, 77.5, 107.5 s."""
        quiet, peak = (1.0,), (9.0,)
        rounds = ((*[quiet] * 26, *[peak] * 6) * 4)[:-13]
        known = steady(1.0, recent=rounds, round_steps=32)
        setting = replace(SETTING, delays=delays)
        decided = decide(known, [a_host()], ONE_EACH, setting=setting)
        assert len(actions_of(decided, LeaseHost)) == leased

    def test_what_waits_for_a_host_that_boots_asks_for_no_other(self) -> None:
        hosts = [a_host(), a_host("h2", up=False)]
        running = instances({"h1": "O1 O2 O3 O3", "h2": "O1 O2 O2 O3"})
        decided = decide(remembered(), hosts, running, {"O1": 3000})
        assert not actions_of(decided, LeaseHost)

    def test_a_host_that_the_others_replace_goes_when_its_btu_ends(self) -> None:
        hosts = [a_host(paid_until_s=3640.0), a_host("h2")]
        decided = decide(remembered(), hosts, ON_TWO_HOSTS)
        assert not actions_of(decided, ReleaseHost)
        later = [a_host(paid_until_s=3625.0), a_host("h2")]
        decided = decide(remembered(), later, ON_TWO_HOSTS)
        assert actions_of(decided, StopInstance, ReleaseHost) == [
            StopInstance("i1"),
            StopInstance("i2"),
            ReleaseHost("h1"),
        ]

    @pytest.mark.parametrize(("limit", "leases"), [(3, 0), (4, 1)])
    def test_hosts_that_drain_leave_no_room_for_others(self, limit: int, leases: int) -> None:
        hosts = [a_host(), a_host("h2", releasing=True), a_host("h3", releasing=True)]
        running = instances({"h1": "O1 O2 O3 O3", "h2": "O1"})
        decided = decide(
            steady(4.0), hosts, running, arrived=60, setting=a_setting(max_hosts=limit)
        )
        assert len(actions_of(decided, LeaseHost)) == leases

    @pytest.mark.parametrize("up", [True, False])
    def test_a_host_that_boots_replaces_none(self, up: bool) -> None:
        """Two are needed; the one whose BTU ends goes if there are two others that are up."""
        hosts = [a_host(paid_until_s=3625.0), a_host("h2"), a_host("h3", up=up)]
        running = instances({"h1": "O1", "h2": "O1 O2 O3 O3", "h3": "O1 O2 O3 O3"})
        decided = decide(steady(2.0), hosts, running, arrived=30)
        assert bool(actions_of(decided, ReleaseHost)) == up

    @pytest.mark.parametrize(
        ("interval_s", "drain_s", "paused_s", "btu_s", "left_s", "goes"),
        [
            (15.0, 20.0, 0.0, 600.0, 30.0, True),
            (15.0, 20.0, 0.0, 600.0, 20.0, True),
            (15.0, 20.0, 0.0, 600.0, 19.0, False),
            (15.0, None, 0.0, 600.0, 15.0, True),
            (15.0, None, 0.0, 600.0, 14.0, False),
            (5.0, 20.0, 0.0, 600.0, 25.0, True),
            (5.0, 20.0, 0.0, 600.0, 26.0, False),
            (15.0, 60.0, 0.0, 600.0, 70.0, True),
            # The job pauses.
            (5.0, 0.0, 0.0, 600.0, 0.0, True),
            (5.0, 0.0, 3.0, 600.0, 3.0, True),
            (5.0, 0.0, 3.0, 600.0, 2.0, False),
            (5.0, 0.0, 8.0, 600.0, 13.0, True),
            # The next BTU is billed in any case.
            (15.0, 20.0, 0.0, 30.0, 15.0, True),
            (15.0, 20.0, 0.0, 600.0, 15.0, False),
            (60.0, 20.0, 0.0, 30.0, -30.0, True),
        ],
    )
    def test_a_host_that_cannot_drain_in_time_stays_for_its_next_btu(
        self,
        interval_s: float,
        drain_s: float | None,
        paused_s: float,
        btu_s: float,
        left_s: float,
        goes: bool,
    ) -> None:
        setting = replace(SETTING, btu_s=btu_s, delays=Delays(drain_s=drain_s))
        hosts = [a_host(paid_until_s=3600.0 + left_s), a_host("h2")]
        decided = decide(
            remembered(),
            hosts,
            ON_TWO_HOSTS,
            setting=setting,
            interval_s=interval_s,
            job_paused_s=paused_s,
        )
        assert bool(actions_of(decided, ReleaseHost)) == goes

    @pytest.mark.parametrize(
        ("ordered_s", "up", "goes"),
        [(0.0, True, True), (0.0, False, False), (3460.0, True, True), (3461.0, True, False)],
    )
    def test_a_host_stays_while_it_boots_and_works_off_what_it_was_ordered_for(
        self, ordered_s: float, up: bool, goes: bool
    ) -> None:
        """It boots for 40 s, and stays for 100."""
        setting = replace(SETTING, delays=Delays(host_boot_s=40.0))
        hosts = [a_host(), a_host("h2", paid_until_s=3630.0, ordered_s=ordered_s, up=up)]
        decided = decide(remembered(), hosts, ONE_EACH, setting=setting)
        assert actions_of(decided, ReleaseHost) == [ReleaseHost("h2")] * goes

    @pytest.mark.parametrize(
        ("delays", "images", "overlaps"),
        [
            (Delays(instance_start_s=5.0, drain_s=20.0), (), True),
            (Delays(instance_start_s=6.0, drain_s=20.0), (), False),
            (Delays(instance_start_s=5.0, drain_s=20.0, image_pull_s=10.0), ("O1",), True),
            (Delays(instance_start_s=5.0, drain_s=20.0, image_pull_s=10.0), (), False),
        ],
    )
    def test_the_last_instance_moves_and_serves_until_its_copy_is_ready_within_the_btu(
        self, delays: Delays, images: tuple[str, ...], overlaps: bool
    ) -> None:
        """Where nothing arrives."""
        quiet = remembered(rate_per_s={}, source_per_s={"S1": 0.0})
        hosts = [a_host(paid_until_s=3625.0), a_host("h2", images=frozenset(images))]
        running = instances({"h1": "O1", "h2": "O2 O3"})
        setting = replace(SETTING, delays=delays)
        decided = decide(quiet, hosts, running, arrived=0, setting=setting)
        assert actions_of(decided, MigrateInstance, ReleaseHost) == [
            MigrateInstance("i1", "h2", overlaps=overlaps),
            ReleaseHost("h1"),
        ]

    def test_a_host_that_is_needed_is_billed_when_its_next_btu_begins(self) -> None:
        decided = decide(remembered(), [a_host(paid_until_s=3601.0)], ONE_EACH)
        assert not actions_of(decided, ProlongLease, ReleaseHost)
        decided = decide(remembered(), [a_host(paid_until_s=3600.0)], ONE_EACH)
        assert actions_of(decided, ProlongLease) == [ProlongLease("h1")]

    def test_a_host_stays_if_it_is_needed_again_before_it_is_cleared(self) -> None:
        hosts = [a_host(paid_until_s=3625.0), a_host("h2")]
        decided = decide(long_known(), hosts, ON_TWO_HOSTS, arrived=75)
        assert not actions_of(decided, ReleaseHost, StopInstance)

    def test_without_readings_leases_are_kept_and_nothing_else(self) -> None:
        observation = an_observation(hosts=[a_host(paid_until_s=3600.0), a_host("h2")])
        memory, decided = Tide(setting=SETTING).decide(remembered(), observation)
        assert decided.actions == (ProlongLease("h1"),)
        assert memory == remembered()


def test_a_place_costs_its_share_of_a_host() -> None:
    """A host of 4 places costs 1 for 600 s; a late item costs 0.0001, at this BTU 1.25 times, and
    with twice the care twice as much."""
    price = Tide(setting=SETTING, care=2.0)._place_per_s
    assert price == pytest.approx(1 / 600 / 4 / 0.0002 / (1 + 600 / LONG_BTU_S))


def test_where_late_items_cost_nothing_tide_decides_as_where_they_cost_next_to_nothing() -> None:
    """Of 6/s, which keep 9 instances busy, and of 1/s, where the other host goes."""
    free, cheap = (replace(SETTING, penalty_per_item=penalty) for penalty in (0.0, 1e-12))
    hosts, running = [a_host(), a_host("h2", paid_until_s=3630.0)], {"h1": "O1 O2 O3", "h2": "O1"}
    for per_s, kind in (6, LeaseHost), (1, ReleaseHost):
        actions, expected = (
            decide(
                steady(per_s), hosts, instances(running), arrived=15 * per_s,
                setting=setting, paused_s=20.0,
            ).actions
            for setting in (free, cheap)
        )  # fmt: skip
        assert actions == expected
        assert any(isinstance(action, kind) for action in actions)


@pytest.mark.parametrize("btu_s", [600.0, 36_000.0])
@pytest.mark.parametrize(("end_to_end", "for_its_peak"), [(0.0, False), (1.0, True)])
def test_end_to_end_an_operator_before_others_gets_instances_for_its_peak(
    end_to_end: float, for_its_peak: bool, btu_s: float
) -> None:
    """Items of O1 take 5 s; 2/s come on average, 6/s now, which keep 10 and 30 instances busy.

    An instance is worth 0.2 late items/s where one that is late at O1 counts once, 0.6 where it
    is late at O2 and O3, too; its place costs 0.375, however long a BTU is.
    """
    work_s = {**long_known().work_s, "O1": 5e6}
    slow = steady(6.0, mean_per_s=dict.fromkeys(FLOW.names, 2.0), work_s=work_s)
    running = instances({"h1": "O1 O2 O3 O3"})
    setting = replace(SETTING, btu_s=btu_s, price_per_btu=0.09 * btu_s / 600)
    decided = decide(slow, [a_host()], running, arrived=90, setting=setting, end_to_end=end_to_end)
    places = 4 * (1 + len(actions_of(decided, LeaseHost)))
    assert (places >= 30) == for_its_peak


@pytest.mark.parametrize("pattern", ["stepwise", "random_walk_1"])
def test_no_host_is_billed_for_a_btu_in_which_it_only_drains(pattern: str) -> None:
    """It was: hosts that were left too late ended 5 s after their BTU and cost another one."""
    leases = an_hour_under_tide(pattern=pattern).leases()
    times = zip(leases["ended_s"], leases["paid_until_s"], leases["released"], strict=True)
    ended = [(ended_s, paid_s) for ended_s, paid_s, released in times if released]
    assert ended
    assert all(ended_s <= paid_s for ended_s, paid_s in ended)


@pytest.mark.parametrize(("interval_s", "pattern"), [(5.0, "stepwise"), (10.0, "random_walk_1")])
def test_hosts_are_not_ordered_and_left_in_turn(interval_s: float, pattern: str) -> None:
    """They were, with a BTU hardly longer than a boot: 338 orders in the hour, and 346."""
    options = {"interval_s": interval_s}
    testbed = an_hour_under_tide(pattern=pattern, btu_min=1, controller_options=options)
    assert len(testbed.leases()["host"]) < 40


@pytest.mark.parametrize(("least_gain", "starts"), [(2.0, True), (20.0, False)])
def test_an_instance_starts_only_if_it_saves_the_least_gain(
    least_gain: float, starts: bool
) -> None:
    """Of O2 a second one saves 14.5 late items per second; O3 has none."""
    running = instances({"h1": "O1 O2"})
    decided = decide(remembered(), [a_host()], running, {"O2": 90}, least_gain=least_gain)
    started = actions_of(decided, StartInstance)
    assert StartInstance("O3", "h1") in started
    assert (StartInstance("O2", "h1") in started) == starts


@pytest.mark.parametrize(
    ("memory_mb", "on", "gives"),
    [
        ((1000, 1000), {"h1": "O1 O1 O1 O2", "h2": "O3 O3"}, ["i3", "i2"]),
        ((1000, 1000), {"h1": "O1 O1 O2 O2", "h2": "O3 O3"}, ["i2", "i4"]),
        ((1000, 1000), {"h1": "O1 O2 O3", "h2": "O3 O3"}, []),
        ((500, 1000), {"h1": "O1 O1 O2 O2 O2", "h2": "O3 O3"}, ["i5", "i4"]),
        ((1000, 2000), {"h1": "O1 O1 O1 O1", "h2": "O2 O3"}, ["i4", "i3"]),
        (
            (1000, 1000),
            {"h1": "O2 O2 O2 O2", "h2": "O1 O1 O1 O1", "h3": "O3 O3"},
            ["i8", "i7"],
        ),
    ],
    ids=["of one operator", "of two", "no last ones", "no needless ones",
         "though a last one has such a place", "where they are missed least"],
)  # fmt: skip
def test_several_on_a_host_give_their_places_to_a_large_one(
    memory_mb: tuple[float, float], on: dict[str, str], gives: list[str]
) -> None:
    """Items of O3, of 2,000 MB, keep all of its instances busy for ``work_off_s``, and an
    eighth of another."""
    sizes = {"O1": memory_mb[0], "O2": memory_mb[1], "O3": 2000.0}
    topology = a_topology(*[an_operator(name, memory_mb=mb) for name, mb in sizes.items()])
    waiting = {"O2": 10, "O3": 80 * " ".join(on.values()).count("O3") - 30}
    decided = decide(
        long_known(), map(a_host, on), instances(on), waiting, setting=a_setting(topology)
    )
    to = "h2" if "i8" in gives else "h1"
    assert actions_of(decided, StopInstance, StartInstance) == [
        *map(StopInstance, gives),
        *[StartInstance("O3", to)] * bool(gives),
    ]
