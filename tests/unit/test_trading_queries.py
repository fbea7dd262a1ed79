"""The workload of Heinze et al.: 35 queries and three trading days."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean, pstdev

import numpy as np
import pytest

from include.model.errors import SpecError
from include.workloads import PATTERNS
from include.workloads.topologies import PATHS, load_topology, parse_topology
from include.workloads.trading.trading_day import SHAPES
from include.workloads.trading.trading_queries import lines

DAYS = ("trading_day_1", "trading_day_2", "trading_day_3")
QUERIES = load_topology("trading_queries")


def test_the_file_is_what_its_script_writes():
    written = PATHS["trading_queries"].read_text(encoding="utf-8")
    assert written == "\n".join(lines()) + "\n"


def test_queries_differ_and_larger_windows_hold_more_state():
    aggregates = [op for op in QUERIES.operators if op.name.endswith(".aggregate")]
    assert len({op.label for op in aggregates}) > 20
    by_sector = {}
    for op in aggregates:
        sector, window_s, _ = op.label.rsplit(" ", 2)
        by_sector.setdefault(sector, []).append((int(window_s), op.state_mb, op.service_ms))
    for queries in by_sector.values():
        for (small_s, less_mb, a_ms), (large_s, more_mb, b_ms) in pairwise(sorted(queries)):
            assert small_s == large_s or less_mb <= more_mb
            assert a_ms == b_ms, "work depends on the sector alone"


def test_no_operator_needs_more_than_a_core_for_long():
    """Operators have one instance, so one that needs more falls behind."""
    minutes = [
        np.array(PATTERNS[day]().unfold(3600, seed).levels).reshape(-1, 60).mean(axis=1)
        for day in DAYS
        for seed in range(1, 6)
    ]
    busiest_minute = float(np.max(minutes))
    per_level = QUERIES.items_per_level()
    for op in QUERIES.operators:
        items_per_s = per_level[op.name] / QUERIES.emission_period_s * busiest_minute
        assert items_per_s * op.service_ms < 1000


def test_ten_hosts_can_carry_the_days():
    cores = sum(
        rate / QUERIES.emission_period_s * QUERIES.operator[name].service_ms / 1000
        for name, rate in QUERIES.items_per_level().items()
    )
    for day in DAYS:
        levels = np.array(PATTERNS[day]().unfold(3600, 1).levels)
        five_minutes = levels.reshape(-1, 300).mean(axis=1)
        assert five_minutes.max() * cores < 10 * 4 * 0.7


@pytest.mark.parametrize("day", DAYS)
def test_a_day_has_a_level_every_second(day):
    levels = PATTERNS[day]().unfold(3600, seed=1)
    assert levels.starts_s == tuple(float(second) for second in range(3600))


@pytest.mark.parametrize("day", DAYS)
def test_days_differ_with_the_seed_and_scale_with_their_level(day):
    first, second = (PATTERNS[day]().unfold(3600, seed) for seed in (1, 2))
    assert first != second
    doubled = PATTERNS[day](level=2.0).unfold(3600, seed=1)
    assert doubled.levels == pytest.approx([2 * level for level in first.levels])


@pytest.mark.parametrize("number", SHAPES)
def test_without_chance_the_mean_of_a_day_is_its_level(number):
    calm = [fmean(PATTERNS[f"trading_day_{number}"]().unfold(3600, s).levels) for s in range(20)]
    assert fmean(calm) == pytest.approx(1.0, abs=0.15), "bursts come on top"


def volatility(day: str) -> float:
    """Deviation of the logarithm of a minute's level from that of the minute before."""
    deviations = []
    for seed in range(5):
        minutes = np.array(PATTERNS[day]().unfold(3600, seed).levels).reshape(-1, 60).mean(axis=1)
        deviations.append(pstdev(np.diff(np.log(minutes)).tolist()))
    return fmean(deviations)


def test_day_2_is_the_most_nervous():
    assert volatility("trading_day_2") > 1.3 * max(
        volatility("trading_day_1"), volatility("trading_day_3")
    )


def test_day_3_trends_upwards_and_noon_is_quiet_on_day_1():
    thirds = {
        day: np.mean(
            [np.reshape(PATTERNS[day]().unfold(3600, s).levels, (3, -1)).mean(1) for s in range(9)],
            axis=0,
        )
        for day in DAYS
    }
    assert thirds["trading_day_3"][2] > 1.5 * thirds["trading_day_3"][0]
    open_, noon, close = thirds["trading_day_1"]
    assert noon < min(open_, close)


def test_a_day_begins_anew_when_the_run_is_longer():
    levels = PATTERNS["trading_day_3"](day_s=600.0).unfold(1200, seed=1).levels
    assert fmean(levels[600:700]) < fmean(levels[500:600])


def test_a_tenant_may_change_fields_of_single_operators():
    text = """
name: two
tenants:
  - {name: a, topology: trading_query}
  - {name: b, topology: trading_query, operators: {aggregate: {state_mb: 99, service_ms: 3}}}
"""
    topology = parse_topology(text, source="two.yaml")
    changed, kept = topology.operator["b.aggregate"], topology.operator["a.aggregate"]
    assert (changed.state_mb, changed.service_ms, changed.memory_mb) == (99, 3, kept.memory_mb)
    assert topology.operator["b.filter"].service_ms == topology.operator["a.filter"].service_ms
    with pytest.raises(SpecError, match=r"operators\.agregate"):
        parse_topology(text.replace("{aggregate:", "{agregate:"), source="two.yaml")
