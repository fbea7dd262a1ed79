"""tide, part by part: what it knows, what a place is worth, what a BTU is expected to save."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.controllers.tide.estimates import Flow, TideMemory, learned, load_of
from include.controllers.tide.leases import Expected, hosts_for, hosts_worth, share_of_now
from include.model.host import HostFlavor
from include.model.topology import Edge, Source, Topology
from include.testing.builders import (
    SMALL,
    a_sample,
    a_setting,
    an_instance,
    an_observation,
    an_operator,
)
from tests.tide_world import FLOW, NOTHING, SEEN_BEFORE, a_load, a_loss, read


class TestWhatItKnows:
    def test_the_rate_of_a_source_is_propagated_to_operators_that_lag_behind(self) -> None:
        """O1 gets 150 items in 15 s; O2 and O3 have seen nothing of them yet."""
        seen = read({"O1": 150, "O2": 0, "O3": 0}, {"O1": 1, "O2": 1, "O3": 1})
        memory = learned(SEEN_BEFORE, seen, FLOW, 600.0)
        assert memory.source_per_s == {"S1": 10.0}
        assert memory.rate_per_s == {"O1": 10.0, "O2": 10.0, "O3": 10.0}

    def test_ratios_of_edges_count(self) -> None:
        topology = Topology(
            name="ratio",
            level_unit="machines",
            emission_period_s=1.0,
            operators=(an_operator("O1"), an_operator("O2")),
            sources=(Source(name="S1", label="S1", items_per_level=3, size_bytes=1),),
            edges=(
                Edge(origin="S1", target="O1"),
                Edge(origin="O1", target="O2", items_out=2, items_in=5),
            ),
        )
        flow = Flow(a_setting(topology))
        seen = read({"O1": 150, "O2": 0}, {"O1": 1, "O2": 1})
        assert learned(SEEN_BEFORE, seen, flow, 600.0).rate_per_s == {"O1": 10.0, "O2": 4.0}

    def test_the_service_time_is_busy_time_by_completed_items(self) -> None:
        seen = read({"O1": 30, "O2": 30, "O3": 0}, {"O1": 30, "O2": 15, "O3": 0}, busy=0.5)
        load = load_of(learned(SEEN_BEFORE, seen, FLOW, 600.0), FLOW)
        o_slo_s = 1.0  # of an operator that has completed nothing
        assert load.service_s.tolist() == [0.25, 0.5, o_slo_s]

    def test_what_was_not_read_stays_as_it_was(self) -> None:
        first = learned(
            SEEN_BEFORE,
            read(dict.fromkeys(FLOW.names, 150), dict.fromkeys(FLOW.names, 150)),
            FLOW,
            600.0,
        )
        blind = replace(an_observation(), now_s=30.0)
        assert learned(first, blind, FLOW, 600.0) == first
        partly = replace(read({"O2": 0}, {"O2": 0}), now_s=30.0)
        then = learned(first, partly, FLOW, 600.0)
        assert then.rate_per_s["O1"] == then.rate_per_s["O3"] == 10.0
        assert load_of(then, FLOW).service_s[0] == load_of(first, FLOW).service_s[0]

    def test_what_somebody_else_has_looked_at_still_counts(self) -> None:
        """Whoever sums up a window looks, and then nothing has come since the last look."""
        names, memory = FLOW.names, TideMemory()
        for now_s, in_all in ((0.0, 0), (15.0, 150)):
            samples = [
                replace(
                    a_sample(name, 0),
                    arrived_items=0,
                    completed_items=0,
                    arrived_in_all=in_all,
                    completed_in_all=in_all,
                )
                for name in names
            ]
            running = [an_instance(f"i-{name}", name, cpu_share=0.5) for name in names]
            seen = an_observation(operators=samples, running=running, now_s=now_s)
            memory = learned(memory, seen, FLOW, 600.0)
        assert memory.rate_per_s == dict.fromkeys(names, 10.0)
        assert load_of(memory, FLOW).service_s.tolist() == [0.05] * len(names)

    def test_the_first_look_gives_no_rates(self) -> None:
        """Nobody knows since when its items were counted."""
        memory = learned(TideMemory(), read({"O1": 150}, {"O1": 1}), FLOW, 600.0)
        assert (memory.seen_s, memory.rate_per_s, memory.waiting) == (15.0, {}, {"O1": 0.0})


class TestWhatAPlaceIsWorth:
    @pytest.mark.parametrize(
        ("count", "late_per_s"),
        [
            (4.0, 10 * 0.03 / 0.5),  # half of the time free
            (5.0, 10 * 0.03 / 0.6),
            (2.01, 10.0),  # nearly saturated: all are late, and no more than all
            (1.0, 10 + 4 * (2 - 1) / 0.2),  # one instance of work piles up, five items a second
        ],
    )
    def test_late_items_follow_the_spare_time(self, count: float, late_per_s: float) -> None:
        assert a_loss().late_per_s(np.array([count])) == pytest.approx([late_per_s])

    def test_waiting_items_are_to_be_worked_off(self) -> None:
        """400 items within 40 s are 10 more per second, 2 more instances of work."""
        assert a_loss(a_load(waiting=[400.0])).busy.tolist() == [4.0]

    @pytest.mark.parametrize(("waiting", "weight"), [(0.0, 1.0), (100.0, 1.5), (1e6, 10.0)])
    def test_old_items_count_more(self, waiting: float, weight: float) -> None:
        """100 items at 10 per second wait for 10 s, half of age_s."""
        assert a_loss(a_load(waiting=[waiting])).weight.tolist() == [weight]

    def test_a_gain_looks_beyond_an_instance_that_does_not_help_alone(self) -> None:
        """Of 2 instances of work one more than 1 is not enough, two are."""
        alone = a_loss(overload=1.0)
        one, two = (alone.late_per_s(np.array([count])) for count in (2.0, 3.0))
        assert alone.gain(np.array([1.0]))[0] > (alone.late_per_s(np.array([1.0])) - one)[0]
        assert two[0] < one[0]


class TestWhatABtuIsExpectedToSave:
    @pytest.mark.parametrize(
        ("btu_s", "share"), [(600.0, 0.632), (3600.0, 0.166), (1.0, 0.999), (36000.0, 0.0167)]
    )
    def test_the_longer_the_btu_the_less_of_it_is_like_now(
        self, btu_s: float, share: float
    ) -> None:
        """A load that holds for 600 s on average: (1 - exp(-x)) / x of a BTU of 600 x seconds."""
        assert share_of_now(btu_s, 600.0) == pytest.approx(share, rel=2e-3)

    @settings(deadline=None)
    @given(
        st.floats(0.0, 200.0),
        st.floats(0.001, 5.0),
        st.floats(0.0, 2000.0),
        st.floats(0.01, 20.0),
        st.lists(st.floats(0.0, 200.0), max_size=4),
    )
    def test_what_is_wanted_is_nearly_as_good_as_trying_every_number(
        self, rate: float, service_s: float, waiting: float, price: float, past: list[float]
    ) -> None:
        """Lateness and places together cost at most 15 % more than for the best number, and a
        place for every time that is looked at."""
        loss = a_loss(a_load(rate_per_s=[rate], service_s=[service_s], waiting=[waiting]))
        expected = Expected(loss, np.array(past).reshape(-1, 1), 0.5)
        found = expected.wanted(price)[0]
        most = max(float(loss.busy[0]), *(then * service_s for then in past), 1.0)
        counts = np.arange(1.0, 3 * most + 300)
        late = expected.late_per_s(counts[:, None])[:, 0]
        assert found in counts
        cost = expected.late_per_s(np.array([found]))[0] + price * found
        assert cost <= 1.15 * (late + price * counts).min() + price * (1 + len(past))

    def test_a_surge_that_is_rare_is_not_worth_an_hour(self) -> None:
        """2 s per item, so an instance saves half an item a second while it is short, at least."""
        surge = a_loss(a_load(rate_per_s=[9.0], service_s=[2.0]), overload=1.0)
        calm = np.full((9, 1), 1.0)
        assert Expected(surge, calm, share_of_now(36000.0, 600.0)).wanted(0.3) < 5
        assert Expected(surge, calm, share_of_now(60.0, 600.0)).wanted(0.3) > 18

    def test_a_peak_that_comes_back_keeps_its_instances_while_it_is_away(self) -> None:
        calm = a_loss(a_load(rate_per_s=[1.0], service_s=[0.5]))
        half_of_the_time = np.array([[1.0], [20.0]] * 5)
        assert Expected(calm, NOTHING, 0.2).wanted(0.3) < 3
        assert Expected(calm, half_of_the_time, 0.2).wanted(0.3) > 10

    def test_a_host_goes_when_its_instances_save_less_than_it_costs(self) -> None:
        """Five operators with an instance each, four to a host: the fifth needs a host alone."""
        ops = [an_operator(f"O{row}") for row in range(5)]
        many = {"service_s": [0.2] * 5, "waiting": [0.0] * 5}
        expected = Expected(a_loss(a_load(rate_per_s=[0.5] * 5, **many)), np.zeros((0, 5)), 1.0)
        assert hosts_worth(expected, 1.0, ops, SMALL) == 2  # nobody gives its last one
        more = Expected(a_loss(a_load(rate_per_s=[2.0] * 5, **many)), np.zeros((0, 5)), 1.0)
        wanted = more.wanted(0.02)
        assert (wanted.sum(), hosts_for(wanted, ops, SMALL)) == (10.0, 3)
        assert hosts_worth(more, 0.02, ops, SMALL) == 2  # 2 of 10 save little, 8 fit on two


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


def _one_by_one(wanted: list[tuple[int, float, float]], flavor: HostFlavor) -> int:
    room = flavor.capacity
    left: list[list[float]] = []
    for count, memory, cores in sorted(wanted, key=lambda one: (-one[1], -one[2])):
        needs = [memory, 0.0 if flavor.cpu_shared else cores]
        for _ in range(count):
            fits = (one for one in left if one[0] >= needs[0] and one[1] >= needs[1])
            host = next(fits, None)
            if host is None:
                left.append(host := [room.memory_mb, room.cpu_cores])
            host[:] = [host[0] - needs[0], host[1] - needs[1]]
    return len(left)
