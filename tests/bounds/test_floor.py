"""The floor: brute force on a small one, and no run that was measured costs less."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from include.experiment.run import resolve
from include.model.host import HostFlavor, PriceBook
from include.model.topology import Operator
from include.results.bounds.cover import cover_of
from include.results.bounds.demand import Demand, demand_of
from include.results.bounds.floor import floor_of
from include.results.bounds.report import bounds_of
from include.runs.stages import run_all, store_of
from tests.builders import run_spec

HOST = HostFlavor(name="small", vcpus=2, memory_mb=200)
BOOK = PriceBook(name="two_steps", btu_s=120, price_per_btu=3.0, penalty_per_item=0.0)


def demand(items: list[float], service_s: float) -> Demand:
    """One operator, two instances of which fill a host."""
    op = Operator(name="A", label="A", slo_ms=1, cpu_cores=1, memory_mb=100, storage_mb=0)
    outside = np.array([items])
    inside, cores = np.zeros((1, 1)), np.ones(1)
    return Demand([op], np.array([[service_s]]), outside, inside, outside / 60, 60.0, cores)


def by_force(items: list[float], service_s: float) -> float:
    """Every way to begin up to three BTUs in every step, with instances that take no time."""
    steps, best = len(items), float("inf")
    for begun in product(range(4), repeat=steps):
        hosts = [sum(begun[max(0, t - 1) : t + 1]) for t in range(steps)]
        left, well = 0.0, min(hosts) >= 1
        for count, arriving in zip(hosts, items, strict=True):
            left = max(0.0, left + arriving - count * 2 * 60 / service_s)
        if well and left <= 1e-9:
            best = min(best, sum(begun) * BOOK.price_per_btu)
    return best


@pytest.mark.parametrize(
    "items", [[60, 60, 60, 60], [500, 0, 0, 0], [0, 0, 0, 350], [130, 300, 20, 10], [0, 0, 0, 0]]
)
def test_floors_are_those_of_brute_force(items: list[float]) -> None:
    floor = floor_of(demand(items, 1.0), HOST, BOOK, boot_s=0.0, within_s=30)
    assert floor.low == floor.high == by_force(items, 1.0)


def test_a_host_gives_nothing_while_it_boots() -> None:
    """The last minute has work for two hosts, so the second comes a minute before it."""
    items = [0.0, 0.0, 0.0, 240.0]
    at_once = floor_of(demand(items, 1.0), HOST, BOOK, 0.0, 30)
    slowly = floor_of(demand(items, 1.0), HOST, BOOK, 60.0, 30)
    assert (at_once.low, slowly.low) == (9.0, 9.0)
    late = [*items[:3], 480.0]
    assert floor_of(demand(late, 1.0), HOST, BOOK, 60.0, 30).low == 15.0


def test_an_operator_gets_what_those_before_it_have_done() -> None:
    """Half of what A does goes to B, which cannot begin before A has."""
    one = demand([240.0, 0.0], 1.0)
    second = Operator(name="B", label="B", slo_ms=1, cpu_cores=1, memory_mb=100, storage_mb=0)
    both = Demand(
        [*one.operators, second],
        np.diag([1.0, 1.0]),
        np.array([[240.0, 0.0], [0.0, 0.0]]),
        np.array([[0.0, 0.0], [0.5, 0.0]]),
        np.array([[4.0, 0.0], [2.0, 0.0]]),
        60.0,
        np.ones(2),
    )
    assert both.arriving[1].sum() == 120
    floor = floor_of(both, HOST, BOOK, 0.0, 30)
    assert floor.low == floor.high == 2 * BOOK.price_per_btu


def test_where_cpu_is_shared_work_needs_it_and_reservations_do_not() -> None:
    shared = HostFlavor(name="shared", vcpus=2, memory_mb=10_000, cpu_shared=True)
    busy = demand([60 * 5.0, 60 * 5.0], 1.0)  # five cores, on hosts of two
    assert floor_of(busy, shared, BOOK, 0.0, 30).low == 3 * BOOK.price_per_btu
    assert cover_of(busy, shared).low == (3, 3)


def test_where_reservations_share_cpu_busy_instances_take_what_they_reserve(tmp_path: Path) -> None:
    """Twenty busy instances that reserve a tenth of a core each: one host of eight cores."""
    topology = tmp_path / "shared.yaml"
    topology.write_text(
        "{name: shared, emission_period_s: 1, sources: {s: {label: s, items_per_level: 16}},\n"
        "operators: {a: {label: a, slo_ms: 500, service_ms: 250, cpu_shares: 102, memory_mb: 24}}"
        ",\nedges: [{from: s, to: a}]}"
    )
    spec = run_spec(
        controller="fixed", topology=str(topology), pattern="constant",
        pattern_options={"level": 5}, duration_min=20, flavor="storm-8cpu-12gb",
    )  # fmt: skip
    on_cores = replace(resolve(spec), spec=replace(spec, testbed="flow"))
    for run, hosts, cost in ((resolve(spec), 1, 2), (on_cores, 3, 5)):
        demand, book = demand_of(run), run.price_books[0]
        assert set(cover_of(demand, run.flavor).high) == {hosts}
        assert floor_of(demand, run.flavor, book, 0.0, 30).high == cost


def test_live_testbeds_have_bounds_that_count_no_boot() -> None:
    changes = {"topology": "manufacturing_live", "testbed": "docker", "duration_min": 4}
    run = resolve(run_spec(**changes, btu_min=1, price_books=("per_minute",)))
    (row,) = bounds_of([run], 30.0)
    assert 0 < row.floor.low <= row.cover


def test_loads_that_differ_have_labels_that_differ() -> None:
    levels = [run_spec(pattern="constant", pattern_options={"level": level}) for level in (1, 2.5)]
    specs = [*levels, run_spec(pattern="constant", flavor="docker-3cpu-5gb")]
    labels = dict.fromkeys(str(row.load) for row in bounds_of(map(resolve, specs), None))
    beginning = "manufacturing constant seed 1, 20 min"
    ends = ("level=1", "level=2.5", "flavor=docker-3cpu-5gb")
    assert list(labels) == [f"{beginning}, {end}" for end in ends]


@pytest.mark.parametrize("controller", ["btu", "threshold", "fixed"])
def test_no_measured_run_costs_less(controller: str, tmp_path: Path) -> None:
    spec = run_spec(
        experiment="bounds", controller=controller, pattern="random_walk_1", seed=5, duration_min=30
    )
    run_all(spec, tmp_path)
    store = store_of(spec, tmp_path)
    leases = [
        row
        for part in sorted(store.part("lease", 0).parent.glob("part-*.parquet"))
        for row in pq.ParquetFile(part).read().to_pylist()
    ]
    for row in bounds_of([resolve(spec)], 60.0):
        lengths_s = [lease["ended_s"] - lease["ordered_s"] for lease in leases]
        assert row.floor.low <= sum(map(row.book.resource_cost, lengths_s))
