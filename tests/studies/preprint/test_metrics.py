"""The figures of the preprint's Table 3, of rows made up for the purpose."""

from __future__ import annotations

import pytest

from include.studies.preprint.metrics import (
    compliance,
    figures_of_run,
    lease_figures,
    most_at_once,
    times_to_adapt,
)

SLO_MS = {"O1": 1000.0, "O2": 500.0}


def durations(*rows):
    """Columns of processing_duration, of (time, operator, duration)."""
    names = ("time_s", "operator", "duration_ms")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def leases(*rows):
    names = ("ordered_s", "ended_s", "paid_until_s", "released")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def test_a_migration_is_no_start_and_no_stop():
    activities = {"activity": ["upscaling", "migration", "migration", "downscaling", "upscaling"]}
    found = figures_of_run(
        durations((1.0, "O1", 10.0)), activities, leases((0.0, 600.0, 600.0, False)), SLO_MS
    )
    names = ("up", "down", "migration")
    assert [found[f"operator_instance_{name}_count"] for name in names] == [2, 1, 2]


@pytest.mark.parametrize(
    ("row", "paid", "late", "early"),
    [
        ((0.0, 600.0, 600.0, True), 1, 1, 0),
        ((0.0, 540.0, 600.0, True), 1, 1, 0),  # at the last tick of its BTU
        ((0.0, 480.0, 600.0, True), 1, 0, 1),
        ((0.0, 601.0, 600.0, True), 2, 0, 1),
        ((0.0, 900.0, 1200.0, False), 2, 0, 0),  # leased to the end of the run
        ((0.0, 600.0, 1200.0, False), 2, 0, 0),  # prolonged and not used
    ],
)
def test_a_release_is_early_when_its_btu_goes_on(row, paid, late, early):
    found = lease_figures(leases(row), {"host_leased": 1})
    assert found["paid_btus_count"] == paid
    assert found["vm_prolonging_count"] == paid - 1
    assert found["vm_downscaling_count"] == late
    assert found["vm_early_downscaling_count"] == early


def test_a_constant_lease_pays_for_the_most_hosts_at_once():
    spans = [(0.0, 600.0), (600.0, 1200.0), (700.0, 900.0)]
    assert most_at_once(spans) == 2  # one ends as another begins
    found = lease_figures(leases(*((a, b, b, True) for a, b in spans)), {"host_leased": 3})
    assert found["fixed_paid_btus_count"] == 24


def test_compliance_is_of_all_operators_and_of_those_without_high_volume():
    rows = durations((0, "O1", 1000.0), (1, "O1", 2000.0), (2, "O2", 501.0), (3, "O2", 2501.0))
    found = compliance(rows, SLO_MS)
    assert found["real_time_compliance_percent"] == 25
    assert found["near_real_time_compliance_percent"] == 75
    assert found["relaxed_compliance_percent"] == 75
    assert found["real_time_compliance_without_o2_o6_percent"] == 50
    assert found["real_time_gain_without_o2_o6_points"] == 25


def test_the_time_to_adapt_goes_from_the_last_late_sample_to_the_first_in_time():
    late = [(0, "O1", 5000.0), (10, "O1", 6000.0), (12, "O1", 1500.0), (15, "O1", 900.0)]
    again = [(20, "O1", 900.0), (30, "O1", 5000.0), (31, "O1", 1000.0), (40, "O1", 9000.0)]
    found = times_to_adapt(durations(*late, *again), SLO_MS)
    assert found == {"time_to_adapt_mean_s": 3.0, "time_to_adapt_sigma_s": 2.0}
    assert times_to_adapt(durations((0, "O1", 900.0)), SLO_MS) == {}
