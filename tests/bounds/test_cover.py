"""The cover: worked examples, brute force on small ones, and runs that were measured."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from include.experiment.prices import PRICE_BOOKS
from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.results.bounds.cover import (
    PACKING_NODES,
    cheapest_cost,
    cover_of,
    fewest_btus,
    fewest_hosts,
    first_fit_hosts,
)
from include.results.bounds.demand import demand_of


def spec(pattern: str, **changes: object) -> RunSpec:
    given = {"duration_min": 120, "btu_min": 10, "seed": 1, **changes}
    return RunSpec(experiment="bounds", controller="btu", pattern=pattern, **given)


def by_solver(hosts: list[int], steps_per_btu: int) -> int:
    steps = len(hosts)
    begins, at = np.meshgrid(np.arange(steps), np.arange(steps))
    covers = (begins <= at) & (at < begins + steps_per_btu)
    found = milp(
        np.ones(steps), integrality=np.ones(steps), bounds=Bounds(0, np.inf),
        constraints=LinearConstraint(covers.astype(float), lb=hosts),
    )  # fmt: skip
    return round(found.fun)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_leasing_only_when_short_is_what_a_solver_finds(hosts: list[int], per_btu: int) -> None:
    assert fewest_btus(hosts, per_btu) == by_solver(hosts, per_btu)


def test_leases_by_hand() -> None:
    assert fewest_btus([1, 1, 1, 1], 2) == 2
    assert fewest_btus([1, 2, 1, 0], 2) == 2  # the second begins in step 1 and covers step 2
    assert fewest_btus([1, 0, 0, 1], 3) == 2
    assert cheapest_cost([2] * 60, PRICE_BOOKS["btu30"], 60.0) == 12
    assert cheapest_cost([1, 0, 2], PRICE_BOOKS["per_second"], 60.0) == pytest.approx(0.3)
    with pytest.raises(ValueError, match="no multiple"):
        cheapest_cost([1], replace(PRICE_BOOKS["per_second"], btu_s=45), 60.0)


def by_force(counts: list[int], offered: list[float], needs: list[list[float]]) -> int:
    """Put one instance after the other on every host that has room, or on a new one."""
    kinds = [op for op, count in enumerate(counts) for _ in range(count)]
    best = len(kinds)
    for places in product(range(len(kinds)), repeat=len(kinds)):
        used = [[0.0] * len(offered) for _ in kinds]
        for op, place in zip(kinds, places, strict=True):
            for resource, need in enumerate(needs):
                used[place][resource] += need[op]
        if all(u <= o + 1e-9 for one in used for u, o in zip(one, offered, strict=True)):
            best = min(best, len(set(places)))
    return best


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_packings_are_those_of_brute_force(data: st.DataObject) -> None:
    size = st.integers(1, 10)
    needs = [data.draw(st.lists(size, min_size=2, max_size=2)) for _ in range(2)]
    counts = data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=2).filter(any))
    least = by_force(counts, [10.0, 10.0], [[float(n) for n in need] for need in needs])
    low, high = fewest_hosts(np.array(counts), np.array([10.0, 10.0]), np.array(needs, dtype=float))
    assert low == high == least


def test_a_packing_that_first_fit_decreasing_misses() -> None:
    """Sizes 5, 4, 4, 3, 2, 2 in hosts of 10: first fit decreasing takes three, two suffice."""
    counts, sizes = np.array([1, 2, 1, 2]), np.array([[5.0, 4.0, 3.0, 2.0]])
    assert first_fit_hosts(counts, np.array([10.0]), sizes) == 3
    assert fewest_hosts(counts, np.array([10.0]), sizes) == (2, 2)


def test_a_packing_that_is_too_hard_ends_after_so_many_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock would end it elsewhere on another machine."""
    solved = []

    def seen(*arguments: Any, **named: Any) -> Any:
        solved.append(milp(*arguments, **named))
        return solved[-1]

    monkeypatch.setattr("scipy.optimize.milp", seen)
    random = np.random.default_rng(5)
    needs, counts = random.uniform(0.15, 0.45, (2, 7)), random.integers(4, 16, 7)
    low, high = fewest_hosts(counts, np.ones(2), needs)
    assert low < high
    assert [one.mip_node_count for one in solved] == [PACKING_NODES]


@pytest.mark.parametrize(
    ("pattern", "cost"),
    [
        ("stepwise", [51, 60, 60]),
        ("two_level", [50, 60, 60]),
        ("random_walk_1", [52, 54, 60]),
        ("random_walk_2", [58, 63, 66]),
    ],
)
def test_covers_of_the_patterns_of_the_evaluation(pattern: str, cost: list[int]) -> None:
    run = resolve(spec(pattern))
    cover = cover_of(demand_of(run), run.flavor)
    assert [cover.cost(book) for book in run.price_books] == [(one, one) for one in cost]


def test_an_engine_that_places_by_slots_needs_no_more_hosts_than_slots_do() -> None:
    """37 instances at level 8; by what they reserve no host holds seven, as its slots do."""
    run = resolve(spec("constant", calibration="manufacturing_flink", duration_min=10,
                       pattern_options={"level": 8}))  # fmt: skip
    demand = demand_of(run)
    assert demand.slots == 7
    assert list(cover_of(demand, run.flavor).low) == [6] * 10
    assert min(cover_of(replace(demand, slots=0), run.flavor).low) > 6
    flow = resolve(replace(run.spec, testbed="flow"))
    assert demand_of(flow).slots == 0, "it places by what instances reserve"
    flink = {"testbed": "flink", "calibration": "manufacturing_fast"}
    assert demand_of(resolve(replace(run.spec, **flink))).slots == 7


@pytest.mark.parametrize(("work", "slower"), [("own", 1.0), ("burn", 1 / 0.35)])
def test_a_host_with_less_than_a_core_works_slower(work: str, slower: float) -> None:
    live = {"topology": "manufacturing_live", "testbed": "docker", "flavor": "live-third-cpu-1gb"}
    run = resolve(spec("constant", duration_min=10, calibration="manufacturing_burnt", **live))
    run = replace(run, calibration={**run.calibration, "work": work})
    demand = demand_of(run)
    seconds = demand.work_s.sum(axis=0) * 1000 / slower
    nodes = run.topology.flow_order
    assert seconds.tolist() == pytest.approx([run.calibration["service_ms"][n] for n in nodes])


def test_demand_is_what_the_edges_say() -> None:
    run = resolve(spec("constant", pattern_options={"level": 4}, duration_min=10))
    demand = demand_of(run)
    expected = run.topology.items_per_period(dict.fromkeys(run.topology.source, 4.0))
    per_step = [items * 60 / 0.48 for items in expected.values()]
    assert demand.arriving == pytest.approx(np.tile(np.array(per_step)[:, None], 10))
    busy = {name: share * 4 for name, share in run.instances_per_level.items()}
    assert demand.peak_busy[:, 0] == pytest.approx([busy[op.name] for op in demand.operators])


def test_a_level_that_changes_within_a_step_counts_for_its_share() -> None:
    levels = {"levels": [2, 6], "hold_s": 90}
    run = resolve(spec("stepwise", pattern_options=levels, duration_min=3))
    demand = demand_of(run)
    level = demand.arriving[0] / demand.arriving[0, 0] * 2
    assert level == pytest.approx([2, 4, 6])
    assert demand.peak_per_s[0] / demand.peak_per_s[0, 0] == pytest.approx([1, 3, 3])
