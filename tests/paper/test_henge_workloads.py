"""The workloads of Henge's evaluation: section 7."""

from __future__ import annotations

from fractions import Fraction

import pytest

from include.workloads import PATTERNS
from include.workloads.tenants.load_patterns import SHAPES, Diurnal, Spike, share_of_peak
from include.workloads.topologies import load_topology, topology_names

HENGE = [name for name in topology_names() if name.startswith("tenants_")]


def test_a_spike_doubles_the_rate_from_3600_to_7200_s() -> None:
    """Fig. 15."""
    levels = Spike().unfold(14_400, seed=1)
    assert [levels.at(t_s) for t_s in (0, 3599, 3600, 7199, 7200)] == [1, 1, 2, 2, 1]


def test_a_step_lasts_to_the_end() -> None:
    """Fig. 10: three times the rate at 4000 s."""
    levels = PATTERNS["step"](factor=3.0, from_s=4000.0).unfold(7200, seed=1)
    assert [levels.at(t_s) for t_s in (3999, 4000, 7200)] == [1, 3, 3]


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"from_s": 0}, "from_s"), ({"from_s": 10, "to_s": 5}, "to_s"), ({"level": -1}, "negative")],
)
def test_a_spike_that_cannot_be_is_refused(options: dict[str, float], problem: str) -> None:
    assert any(problem in message for message in Spike(**options).problems())


@pytest.mark.parametrize("trace", SHAPES)
def test_days_rise_from_hour_7_to_a_peak_at_13_1_3_and_fall(trace: str) -> None:
    """ "Workloads increase from hour 7 of the day, reach their peak by hour 13 1/3"."""
    hours = [float(Fraction(n, 12)) for n in range(24 * 12)]
    peak = max(hours, key=lambda hour: share_of_peak(trace, hour))
    assert peak == pytest.approx(13 + 1 / 3)
    assert share_of_peak(trace, peak) == pytest.approx(1.0)
    rising = [share_of_peak(trace, hour) for hour in hours if 7 <= hour <= peak]
    assert rising == sorted(rising)
    falling = [share_of_peak(trace, hour) for hour in hours if hour >= peak]
    assert falling == sorted(falling, reverse=True)
    assert share_of_peak(trace, 24.0) == share_of_peak(trace, 0.0)


def test_an_hour_of_the_trace_takes_ten_minutes_and_days_repeat() -> None:
    quiet = Diurnal(trace="epa", noise_cv=0.0, floor=0.25)
    levels = quiet.unfold(48 * 600, seed=1)
    assert levels.at(13.35 * 600) == pytest.approx(1.0, abs=0.01)
    assert levels.at(5 * 600) == pytest.approx(levels.at(29 * 600))
    assert min(levels.levels) == pytest.approx(0.25 + 0.75 * 0.18, abs=0.01)


def test_noise_has_a_mean_of_1_and_differs_by_day_and_seed() -> None:
    noisy, quiet = Diurnal(noise_cv=0.1), Diurnal(noise_cv=0.0)
    days = 100 * 24 * 600
    ratio = [
        a / b
        for a, b in zip(noisy.unfold(days, 1).levels, quiet.unfold(days, 1).levels, strict=True)
    ]
    assert sum(ratio) / len(ratio) == pytest.approx(1.0, abs=0.003)
    assert ratio[:240] != ratio[240:480]
    assert noisy.unfold(600, 1) != noisy.unfold(600, 2)


def test_page_load_filters_twice_and_aggregates() -> None:
    """Fig. 8, as far as it is known: 0.8 * 0.8 of the tuples reach the aggregation."""
    per_level = load_topology("page_load").items_per_level()
    assert per_level["bolt_aggregate"] / per_level["bolt_transform"] == pytest.approx(0.64)


def test_the_micro_topologies_have_their_shapes() -> None:
    """Fig. 7: a line, a diamond, a star."""
    line, diamond, star = (load_topology(name) for name in ("linear", "diamond", "star"))
    assert [len(line.operators), len(line.edges)] == [3, 3]
    assert sum(edge.target == "bolt_output" for edge in diamond.edges) == 4
    assert sum(edge.target == "center" for edge in star.edges) == 4
    assert len(star.sinks("")) == 4


@pytest.mark.parametrize("name", HENGE)
def test_every_cluster_is_a_workload_of_jobs_with_intents(name: str) -> None:
    topology = load_topology(name)
    assert list(topology.problems()) == []
    assert all(tenant.intent and tenant.intent.max_utility > 0 for tenant in topology.tenants)


@pytest.mark.parametrize(
    ("name", "jobs", "max_utility"),
    [
        ("tenants_priorities", 9, 450),  # 10 to 90 in steps of 10
        ("tenants_hybrid", 10, 350),
        ("tenants_spikes", 2, 70),  # "max possible is 35 x 2 = 70"
        ("tenants_diurnal", 10, 350),  # "max achievable cluster utility = 350"
        ("tenants_production", 5, 175),
        ("tenants_cpu_spike", 8, 280),
        ("tenants_growing", 85, 85 * 35),
        ("tenants_40_on_10", 40, 20 * 35 + 20 * 5),
        ("tenants_outage", 9, 315),
    ],
)
def test_as_many_jobs_worth_as_much_as_in_the_paper(
    name: str, jobs: int, max_utility: float
) -> None:
    intents = [tenant.intent for tenant in load_topology(name).tenants]
    assert len(intents) == jobs
    assert sum(intent.max_utility for intent in intents if intent) == max_utility
