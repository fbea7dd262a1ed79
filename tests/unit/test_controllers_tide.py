"""tide, part by part: what it knows, what a place is worth, how many are wanted, what repeats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from include.controllers.tide.changes import Pauses
from include.controllers.tide.estimates import Flow, TideMemory, expected, learned, load_of
from include.controllers.tide.leases import (
    hosts_for,
    instances_worth_leasing,
    places_of,
    worth_working_off,
)
from include.controllers.tide.loss import LOOKAHEAD, Gains
from include.controllers.tide.repeats import remembered, round_of
from include.controllers.tide.reserve import compared, reserve_of
from include.model.host import HostFlavor
from include.model.topology import Edge
from include.testing.builders import (
    a_sample,
    a_setting,
    a_topology,
    an_instance,
    an_observation,
    an_operator,
)
from include.workloads.manufacturing.load_patterns import RandomWalk
from include.workloads.topologies import load_topology, topology_names
from tests.builders import fed_by
from tests.tide_world import FLOW, SEEN_BEFORE, a_load, a_loss, alike, read


class TestWhatItKnows:
    def test_ratios_of_edges_count(self) -> None:
        two_for_five = Edge(origin="O1", target="O2", items_out=2, items_in=5)
        flow = Flow(a_setting(fed_by(a_topology("O1", "O2"), {"S1": "O1"}, two_for_five)))
        assert flow.downstream.tolist() == [0.4, 0.0]
        observation = read({"O1": 150, "O2": 0}, {"O1": 1, "O2": 1})
        assert learned(SEEN_BEFORE, observation, flow, 15.0).rate_per_s == {
            "O1": 10.0,
            "O2": 4.0,
        }

    def test_a_source_that_was_not_read_yet_is_not_silent(self) -> None:
        """What O2 got itself counts until both of its sources were read."""
        edges = [Edge(origin=origin, target="O2") for origin in ("O1", "O3")]
        topology = fed_by(a_topology("O1", "O2", "O3"), {"S1": "O1", "S2": "O3"}, *edges)
        flow = Flow(a_setting(topology))
        observation = read({"O1": 150, "O2": 75}, {"O1": 1, "O2": 1})
        assert learned(SEEN_BEFORE, observation, flow, 15.0).rate_per_s["O2"] == 5.0

    @pytest.mark.parametrize("name", topology_names())
    def test_what_follows_an_execution_is_what_its_source_leads_to(self, name: str) -> None:
        """On every topology; one with guests, which have no instances, is only read."""
        topology = load_topology(name)
        flow = Flow(a_setting(topology))
        assert np.isfinite(flow.downstream).all()
        if len(flow.names) < len(topology.flow_order):
            return
        for column, source in enumerate(topology.sources):
            following = sum(
                edge.items_out / edge.items_in * (1 + flow.downstream[flow.row[edge.target]])
                for edge in topology.edges
                if edge.origin == source.name
            )
            assert following == pytest.approx(flow.per_item[:, column].sum())

    def test_before_cpu_is_read_items_took_what_the_fastest_one_took(self) -> None:
        """Instances are read twice before their CPU is known; o_slo would say far too much."""
        observation = read({"O1": 75}, {"O1": 75})
        sample = structs.replace(observation.operators["O1"], durations_ms=(900.0, 40.0, 60.0))
        unread = {
            name: structs.replace(instance, cpu_share=None)
            for name, instance in observation.instances.items()
        }
        first = replace(observation, operators={"O1": sample}, instances=unread)
        memory = learned(SEEN_BEFORE, first, FLOW, 15.0)
        assert load_of(memory, FLOW).service_s[FLOW.row["O1"]] == pytest.approx(0.04)
        later = learned(memory, replace(first, now_s=30.0), FLOW, 15.0)
        assert later.work_s["O1"] < memory.work_s["O1"]

    def test_the_service_time_is_busy_time_by_completed_items(self) -> None:
        observation = read({"O1": 30, "O2": 30, "O3": 0}, {"O1": 30, "O2": 15, "O3": 0}, busy=0.5)
        load = load_of(learned(SEEN_BEFORE, observation, FLOW, 15.0), FLOW)
        o_slo_s = 1.0  # of an operator that has completed nothing
        assert load.service_s.tolist() == [0.25, 0.5, o_slo_s]

    def test_a_night_without_items_makes_none_of_them_longer(self) -> None:
        """A meter shows a little work also of who has nothing to do."""
        memory = learned(SEEN_BEFORE, read({"O1": 30}, {"O1": 30}, busy=0.5), FLOW, 15.0)
        before_s = load_of(memory, FLOW).service_s[FLOW.row["O1"]]
        for hour in range(1, 200):
            quiet = replace(read({"O1": 0}, {"O1": 0}, busy=0.008), now_s=hour * 3600.0)
            memory = learned(memory, quiet, FLOW, 15.0)
        assert load_of(memory, FLOW).service_s[FLOW.row["O1"]] == before_s

    def test_what_was_not_read_stays_as_it_was(self) -> None:
        first = learned(
            SEEN_BEFORE,
            read(dict.fromkeys(FLOW.names, 150), dict.fromkeys(FLOW.names, 150)),
            FLOW,
            15.0,
        )
        blind = replace(an_observation(), now_s=30.0)
        assert learned(first, blind, FLOW, 15.0) == first
        partly = replace(read({"O2": 0}, {"O2": 0}), now_s=30.0)
        then = learned(first, partly, FLOW, 15.0)
        assert then.rate_per_s["O1"] == then.rate_per_s["O3"] == 10.0
        assert load_of(then, FLOW).service_s[0] == load_of(first, FLOW).service_s[0]

    def test_who_is_read_again_got_its_items_in_all_the_time_since(self) -> None:
        """One that was not read for a minute did not get four times as many a second."""
        memory = TideMemory()
        for now_s in (15.0, 30.0, 45.0, 90.0):
            of_all = {"arrived_in_all": 10 * int(now_s), "completed_in_all": 10 * int(now_s)}
            observation = alike(now_s, 0.5, **of_all)
            seen = dict(observation.operators)
            if now_s == 45.0:
                del seen["O2"]
            memory = learned(memory, replace(observation, operators=seen), FLOW, 15.0)
        assert memory.rate_per_s["O2"] == 10.0
        assert load_of(memory, FLOW).service_s[FLOW.row["O2"]] == pytest.approx(0.05)

    def test_a_look_between_two_readings_counts_what_was_read(self) -> None:
        """Read every 10 s and looked at every 15 s: 10 items/s are 10 items/s every time."""
        flow, memory = Flow(a_setting(monitor_every_s=10.0)), TideMemory()
        for now_s, read_s in ((15.0, 10), (30.0, 30), (45.0, 40), (60.0, 60)):
            of_all = {"arrived_in_all": 10 * read_s, "completed_in_all": 10 * read_s}
            memory = learned(memory, alike(now_s, **of_all), flow, 15.0)
            assert set(memory.rate_per_s.values()) <= {10.0}
        assert memory.rate_per_s

    def test_a_start_of_the_job_leaves_service_times_what_they_are(self) -> None:
        """No instance is read anew before the next reading; the operator's busy time is. Items of
        50 ms that wait for seconds at first are items of 50 ms."""
        memory, looks = TideMemory(), ((0.0, 0, 0), (15.0, 0, 1), (30.0, 0, 1), (45.0, 1, 1))
        for now_s, starts, waiting in looks:
            of_all = {"arrived_in_all": 20 * int(now_s), "completed_in_all": 10 * int(now_s)}
            busy = {"busy_in_all_s": now_s / 2, "durations_ms": (9e3,), "waiting_items": waiting}
            cpu = None if starts or now_s < 20 else 0.5
            observation = replace(alike(now_s, cpu, **of_all, **busy), job_starts=starts)
            memory = learned(memory, observation, FLOW, 15.0)
            if now_s:
                assert load_of(memory, FLOW).service_s == pytest.approx([0.05] * len(FLOW.names))

    @pytest.mark.parametrize(
        ("every_s", "shared", "before", "service_s"),
        [
            (15.0, False, {"O1": 20.0}, 1.0),
            (15.0, True, {"O1": 20.0}, 4 / 3),
            (60.0, False, {"O1": 20.0}, 4 / 3),
            (15.0, False, {}, 4 / 3),  # not there at the last look
            (15.0, False, {"O1": 300.0}, 4 / 3),  # begun anew since then
        ],
    )
    def test_one_reading_of_several_does_not_speak_for_all(
        self, every_s: float, shared: bool, before: dict[str, float], service_s: float
    ) -> None:
        """One instance worked for 20 s and four for 40: 180 items of a second each. Where a host
        shares its CPU, the counter has the wait for a core, too."""
        setting = a_setting(monitor_every_s=every_s)
        flow = Flow(replace(setting, flavor=replace(setting.flavor, cpu_shared=shared)))
        sample = structs.replace(
            a_sample("O1"), arrived_items=180, completed_items=180, busy_in_all_s=200.0
        )
        running = [an_instance(f"i-{n}", "O1", cpu_share=1.0) for n in range(4)]
        observation = an_observation(operators=[sample], running=running, now_s=60.0)
        memory = learned(replace(SEEN_BEFORE, worked_s=before), observation, flow, 60.0)
        assert load_of(memory, flow).service_s[0] == pytest.approx(service_s)

    def test_who_did_nothing_so_far_has_no_load(self) -> None:
        """o_slo says how long its items may take, and may be a hundred times what they do."""
        observation = read({"O1": 150, "O2": 0}, {"O1": 150, "O2": 0}, busy=0.5)
        load = load_of(learned(SEEN_BEFORE, observation, FLOW, 15.0), FLOW)
        assert load.rate_per_s.tolist() == load.mean_per_s.tolist() == [10.0, 0.0, 0.0]

    def test_a_meter_that_shows_nothing_of_what_was_done_is_not_believed(self) -> None:
        """The operator's own counter is, or what its fastest item took."""
        observation = read({"O1": 30}, {"O1": 30}, busy=0.0)
        for fields, service_s in (
            ({"busy_in_all_s": 0.9}, 0.03),
            ({"durations_ms": (20.0,)}, 0.02),
        ):
            sample = structs.replace(observation.operators["O1"], **fields)
            memory = learned(
                SEEN_BEFORE, replace(observation, operators={"O1": sample}), FLOW, 15.0
            )
            assert load_of(memory, FLOW).service_s[FLOW.row["O1"]] == pytest.approx(service_s)

    def test_the_first_look_gives_no_rates(self) -> None:
        """Nobody knows since when its items were counted."""
        memory = learned(TideMemory(), read({"O1": 150}, {"O1": 1}), FLOW, 15.0)
        assert (memory.seen_s, memory.rate_per_s, memory.waiting) == (15.0, {}, {"O1": 0.0})


class TestWhatATestbedNeedsToSpare:
    """Of 10 items/s of 0.2 s each, with three instances: 150 items in 15 s, of which the loss
    expects 150 x 0.09 / 1 to be late."""

    LOSS = a_loss(a_load(rate_per_s=[10.0] * 3, service_s=[0.2] * 3, waiting=[0.0] * 3))

    def compared_with(
        self,
        share: float | None,
        before: int = 3,
        instances: int = 3,
        since_s: float = 15.0,
        started_s: float = 0.0,
    ) -> float:
        running = [an_instance(f"i-{n}", "O1") for n in range(instances)]
        sample = structs.replace(a_sample("O1"), late_share=share)
        observation = an_observation(operators=[sample], running=running, now_s=since_s)
        observation = replace(observation, job_started_s=started_s)
        known = replace(SEEN_BEFORE, serving={"O1": before})
        memory = compared(known, observation, FLOW, self.LOSS, since_s)
        return float(reserve_of(memory, FLOW)[0])

    @pytest.mark.parametrize("share", [0.0, 0.09, 1.0])
    def test_late_items_are_held_against_the_expected_ones(self, share: float) -> None:
        expected_items = 150 * 0.09
        late = (1000 + 150 * share) / (1000 + expected_items)
        assert self.compared_with(share) == pytest.approx(late)

    @pytest.mark.parametrize(
        ("share", "before", "instances"), [(None, 3, 3), (1.0, 2, 3), (1.0, 2, 2)]
    )
    def test_a_change_and_an_overload_say_nothing(
        self, share: float | None, before: int, instances: int
    ) -> None:
        assert self.compared_with(share, before, instances) == 1

    @pytest.mark.parametrize(("started_s", "counts"), [(0.0, True), (40.0, False)])
    def test_a_minute_in_which_the_job_started_says_nothing(
        self, started_s: float, counts: bool
    ) -> None:
        assert (self.compared_with(1.0, since_s=60.0, started_s=started_s) > 1) == counts

    def test_more_late_items_are_worth_more_spare_instances(self) -> None:
        few, many = (
            instances_worth_leasing(
                a_loss(a_load(rate_per_s=[50.0], reserve=[factor])), 1.0, 1.0, np.array([10.0])
            )[0]
            for factor in (0.5, 4.0)
        )
        assert few < many

    def test_what_waits_while_nothing_works_asks_for_nothing(self) -> None:
        idle = structs.replace(a_sample("O1", waiting_items=50), busy_share=0.1)
        memory = learned(TideMemory(), an_observation(operators=[idle]), FLOW, 15.0)
        assert memory.waiting["O1"] == pytest.approx(5.0)


class TestWhatAPlaceIsWorth:
    @pytest.mark.parametrize(
        ("count", "late_per_s"),
        [
            (4.0, 10 * (4 * 0.01 + 0.06) / 2),  # two of four to spare
            (5.0, 10 * (5 * 0.01 + 0.06) / 3),
            (2.01, 10.0),  # nearly saturated: all are late, and no more than all
            (1.0, 10 + 4 * (2 - 1) / 0.2),  # one instance of work piles up, five items a second
        ],
    )
    def test_late_items_follow_the_spare_instances(self, count: float, late_per_s: float) -> None:
        assert a_loss().late_per_s(np.array([count])) == pytest.approx([late_per_s])

    def test_waiting_items_are_to_be_worked_off(self) -> None:
        """400 items within 40 s are 10 more per second, 2 more instances of work."""
        assert a_loss(a_load(waiting=[400.0])).busy.tolist() == [4.0]

    @pytest.mark.parametrize(("waiting", "weight"), [(0.0, 1.0), (100.0, 1.5), (1e6, 10.0)])
    def test_old_items_count_more(self, waiting: float, weight: float) -> None:
        """100 items at 10 per second wait for 10 s, half of age_s."""
        assert a_loss(a_load(waiting=[waiting])).weight.tolist() == [weight]

    def test_what_comes_late_after_it_counts_in_all_that_is_late(self) -> None:
        """In calm and overload, in a time and a pause; how many instances are busy stays."""
        calm = a_load(rate_per_s=[10.0, 10.0], service_s=[0.2, 0.2], waiting=[0.0, 100.0])
        once, thrice = a_loss(calm), a_loss(replace(calm, counts=np.array([3.0, 3.0])))
        for count in (1.0, 3.0, 6.0):
            instances, waiting = np.array([count, count]), np.array([50.0, 0.0])
            late = 3 * once.late_per_s(instances)
            assert thrice.late_per_s(instances) == pytest.approx(late)
            late = 3 * once.late_in(200.0, instances, waiting)
            assert thrice.late_in(200.0, instances, waiting) == pytest.approx(late)
        assert thrice.busy.tolist() == once.busy.tolist()
        pauses = Pauses(calm.rate_per_s, calm.waiting, change_s=6.0)
        before, after = np.array([2.0, 3.0]), np.array([3.0, 4.0])
        late = 3 * pauses.saved(once, before, after)
        assert pauses.saved(thrice, before, after) == pytest.approx(late)

    def test_a_gain_looks_beyond_an_instance_that_does_not_help_alone(self) -> None:
        """Of 2 instances of work one more than 1 is not enough, two are."""
        alone = a_loss(overload=1.0)
        at_two, two = (alone.late_per_s(np.array([count])) for count in (2.0, 3.0))
        assert alone.gain(np.array([1.0]))[0] > (alone.late_per_s(np.array([1.0])) - at_two)[0]
        assert two[0] < at_two[0]

    @given(st.lists(st.tuples(*[st.floats(0, 40)] * 3), min_size=1, max_size=3), st.integers(1, 80))
    def test_gains_of_one_instance_after_the_other_are_those_of_their_counts(
        self, operators: list[tuple[float, float, float]], count: int
    ) -> None:
        """The same to the last digit, however many are computed together."""
        rate, service_s, waiting = zip(*operators, strict=True)
        service_s = tuple(0.05 + extra_s for extra_s in service_s)
        loss = a_loss(a_load(rate_per_s=rate, service_s=service_s, waiting=waiting))
        instances = np.zeros(len(operators))
        each = [loss.gain(instances + more).tolist() for more in range(count)]
        assert loss.gains(instances, count).tolist() == each

    @given(
        st.lists(st.tuples(*[st.floats(0, 40)] * 3), min_size=1, max_size=4), st.floats(0.01, 5.0)
    )
    def test_who_has_its_turn_is_who_saves_most_then(
        self, operators: list[tuple[float, float, float]], above: float
    ) -> None:
        """Thousands at a time as one by one, to the last digit."""
        rate, service_s, waiting = zip(*operators, strict=True)
        service_s = tuple(0.05 + extra_s for extra_s in service_s)
        loss = a_loss(a_load(rate_per_s=rate, service_s=service_s, waiting=waiting))
        counts, given_out, expected = np.zeros(len(rate)), [], []
        each, given = loss.gains(counts, 301), np.zeros(len(rate), dtype=int)
        while (now := each[given, np.arange(len(rate))]).max() > above and given.sum() < 300:
            expected.append((row := int(now.argmax()), now[row]))
            given[row] += 1
        for rows, turns, saved in Gains(loss, counts, counts > 0).in_turn(above):
            assert turns.tolist() == [list(rows[:i]).count(row) for i, row in enumerate(rows)]
            given_out += zip(rows.tolist(), saved.tolist(), strict=True)
            counts += np.bincount(rows, minlength=len(rate))
            if len(given_out) >= len(expected):
                break
        assert given_out[: len(expected)] == expected

    def test_whoever_gets_no_place_has_no_turn_any_more(self) -> None:
        loss = a_loss(a_load(rate_per_s=[20.0, 10.0], service_s=[0.5, 0.5], waiting=[0.0, 0.0]))
        counts = np.zeros(2)
        gains = Gains(loss, counts, counts > 0)
        rows, _, _ = next(turns := gains.in_turn(0.1))
        assert {0, 1} <= set(rows.tolist())
        counts += np.bincount(rows, minlength=2)
        gains.now[0] = -np.inf
        assert {row for rows, _, _ in turns for row in rows.tolist()} <= {1}


class TestHowManyAreWanted:
    def test_long_items_get_them_for_the_mean_load_and_what_waits(self) -> None:
        """2 s per item: half an item a second is not worth a place that costs 2."""
        loss, mean_busy = a_loss(a_load(rate_per_s=[9.0], service_s=[2.0])), np.array([4.2])
        assert instances_worth_leasing(loss, 0.5, 2.0, mean_busy).tolist() == [4.0]
        assert instances_worth_leasing(loss, 0.5, 0.5, mean_busy)[0] > 18

    @given(st.floats(1.0, 5000.0), st.floats(0.01, 5.0), st.floats(0.1, 20.0), st.floats(0.01, 5.0))
    def test_no_other_number_works_off_what_waits_at_less_cost(
        self, waiting: float, service_s: float, rate: float, price: float
    ) -> None:
        """What arrives meanwhile, older items counting more, and the places for their leases."""
        load = a_load(rate_per_s=[rate], service_s=[service_s], waiting=[waiting])
        (best,) = worth_working_off(load, price, 600.0)
        weight = min(10.0, 1 + waiting / rate / 60)
        least = waiting * service_s / 600  # works it off in a lease
        tried = np.append(least * np.geomspace(1.0, 1000.0, 400), best)
        cost = weight * rate * waiting * service_s / tried + price * 600 * tried
        assert best >= least
        assert cost[-1] == pytest.approx(cost.min())

    @pytest.mark.parametrize("price", [1e-5, 1e-3, 0.02])
    def test_hundreds_are_those_that_are_found_one_by_one(self, price: float) -> None:
        """The first count from 50 on of which another one saves no more than a place costs."""
        loss = a_loss(a_load(rate_per_s=[250.0], service_s=[0.2]))
        (instances,) = instances_worth_leasing(loss, price, price, np.array([50.0]))
        assert instances > 50 + 64
        gains = loss.gain(np.arange(50.0, instances + 1)[:, None])[:, 0]
        assert gains[-1] <= price < gains[:-1].min()

    @settings(deadline=None)
    @given(st.floats(0.0, 200.0), st.floats(0.001, 5.0), st.floats(0.01, 20.0))
    def test_what_is_wanted_is_as_good_as_trying_every_number(
        self, rate: float, service_s: float, price: float
    ) -> None:
        """Lateness and places together cost no more than with any number from what is busy on."""
        loss = a_loss(a_load(rate_per_s=[rate], service_s=[service_s]))
        (instances,) = instances_worth_leasing(loss, price, price, np.array([rate * service_s]))
        if service_s * price > 1:
            assert instances == max(1, round(rate * service_s))
            return
        busy = max(1.0, np.ceil(rate * service_s))
        counts = np.arange(busy, 3 * busy + 100)
        cost = loss.late_per_s(counts[:, None])[:, 0] + price * counts
        assert cost[int(instances - busy)] <= cost.min() + LOOKAHEAD * price


class TestLoadsThatRepeat:
    STEPS = (*[2.0] * 16, *[4.0] * 16, *[6.0] * 16, *[4.0] * 16)
    """Four minutes each, a reading every 15 s."""

    def test_a_round_is_found_once_it_has_come_back(self) -> None:
        rounds = [(rate,) for rate in self.STEPS * 3]
        assert round_of(rounds[: len(self.STEPS) * 2 - 8], 15.0) == 0
        assert round_of(rounds[: len(self.STEPS) * 2], 15.0) == len(self.STEPS)
        assert round_of(rounds, 15.0) == len(self.STEPS)

    def test_a_load_that_stays_or_walks_has_no_round(self) -> None:
        assert round_of([(3.0,)] * 480, 15.0) == 0
        assert round_of([(float(step),) for step in range(480)], 15.0) == 0
        rounds = [_round_of_a_walk(seed) for seed in range(20)]
        assert rounds.count(0) >= 15

    def test_a_round_of_several_sources_is_one_of_their_sum(self) -> None:
        one_less = [(rate, 9.0 - rate) for rate in self.STEPS * 2]
        assert round_of(one_less, 15.0) == 0  # the sum never changes
        assert round_of([(rate, 1.0) for rate in self.STEPS * 2], 15.0) == len(self.STEPS)

    def test_readings_that_were_missed_take_their_time(self) -> None:
        recent = remembered((), [1.0], 1, 15.0)
        recent = remembered(recent, [2.0], 3, 15.0)
        assert recent == ((1.0,), (2.0,), (2.0,), (2.0,))
        assert len(remembered(recent, [3.0], 6000, 15.0)) == 480

    @pytest.mark.parametrize(("interval_s", "every_s"), [(15.0, 10.0), (10.0, 15.0), (5.0, 15.0)])
    def test_a_row_is_as_long_as_an_interval(self, interval_s: float, every_s: float) -> None:
        flow, memory = Flow(a_setting(monitor_every_s=every_s)), TideMemory()
        for now_s in np.arange(0.0, 601.0, interval_s).tolist():
            items = int(flow.read_s(now_s))
            of_all = {"arrived_in_all": items, "completed_in_all": items}
            memory = learned(memory, alike(now_s, **of_all), flow, interval_s)
        assert len(memory.recent) == pytest.approx(600 / interval_s, abs=1)

    def test_the_load_to_expect_is_the_highest_until_then(self) -> None:
        rounds = tuple((rate,) for rate in self.STEPS * 2)
        memory = TideMemory(
            recent=rounds, round_steps=len(self.STEPS), done={"O1": 1.0}, work_s={"O2": 1.0}
        )
        now = a_load(  # O3 did nothing so far
            rate_per_s=[3.0, 5.0, 0.0], service_s=[0.2] * 3, waiting=[0.0] * 3, mean_per_s=[3.0] * 3
        )
        assert expected(now, memory, FLOW, 4).rate_per_s.tolist() == [3.0, 5.0, 0.0]
        assert expected(now, memory, FLOW, 17).rate_per_s.tolist() == [4.0, 5.0, 0.0]
        assert expected(now, TideMemory(recent=rounds), FLOW, 17) is now


def _round_of_a_walk(seed: int) -> int:
    levels = RandomWalk().unfold(7200.0, seed)
    return round_of([(levels.at(15.0 * step),) for step in range(480)], 15.0)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 9),
            st.sampled_from([500.0, 700.0, 1100.0, 2000.0]),
            st.sampled_from([0.25, 0.5, 1.5]),
        ),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
def test_hosts_are_counted_by_first_fit_decreasing(
    wanted: list[tuple[int, float, float]], shared: bool
) -> None:
    flavor = HostFlavor(name="x", vcpus=4, memory_mb=4000, cpu_shared=shared)
    operators = [
        an_operator(f"O{row}", memory_mb=memory, cpu_cores=cores)
        for row, (_, memory, cores) in enumerate(wanted)
    ]
    counts = np.array([count for count, _, _ in wanted], dtype=float)
    assert hosts_for(counts, operators, flavor) == _one_by_one(wanted, flavor)


@pytest.mark.parametrize(("shared", "places"), [(False, 2), (True, 8)])
def test_a_place_takes_memory_and_cores(shared: bool, places: int) -> None:
    operators = [an_operator(name, memory_mb=1000, cpu_cores=1.5) for name in ("O1", "O2")]
    guest = an_operator("guest", memory_mb=8000, cpu_cores=4.0, runs_in="O1")  # takes none
    flavor = HostFlavor(name="x", vcpus=4, memory_mb=8000, cpu_shared=shared)
    assert places_of(flavor, a_topology(*operators, guest)) == places


def _one_by_one(wanted: list[tuple[int, float, float]], flavor: HostFlavor) -> int:
    room = flavor.capacity
    left: list[list[float]] = []
    for count, memory, cores in sorted(wanted, key=lambda size: (-size[1], -size[2])):
        needs = [memory, 0.0 if flavor.cpu_shared else cores]
        for _ in range(count):
            fits = (room for room in left if room[0] >= needs[0] and room[1] >= needs[1])
            host = next(fits, None)
            if host is None:
                left.append(host := [room.memory_mb, room.cpu_cores])
            host[:] = [host[0] - needs[0], host[1] - needs[1]]
    return len(left)
