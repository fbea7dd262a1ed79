"""What a lease costs: min(cap, p * max(m, q * ceil(L / q))), and the papers' BTUs as m = q."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.experiment.prices import PRICE_BOOKS
from include.experiment.prices.books import RULES
from include.model.billing import MONTH_S
from tests.builders_prices import PER_HOUR, cloud_book

HOUR_S = 3600.0
lengths_s = st.floats(0, 60 * 24 * HOUR_S, allow_subnormal=False)


@given(leased_s=lengths_s, paid_for_s=st.floats(0, 1e6))
@pytest.mark.parametrize("name", sorted(PRICE_BOOKS))
def test_the_books_of_the_papers_are_special_cases(
    name: str, leased_s: float, paid_for_s: float
) -> None:
    book = PRICE_BOOKS[name]
    general = cloud_book(btu_s=book.btu_s, minimum_s=book.btu_s, price_per_btu=book.price_per_btu)
    assert general.pays_whole_btus
    assert general.resource_cost(leased_s, paid_for_s) == book.resource_cost(leased_s, paid_for_s)
    assert general.bill(leased_s) == book.bill(leased_s) == book.resource_cost(leased_s)


@pytest.mark.parametrize(
    ("rule", "leased_s", "billed_s"),
    [
        ("aws", 0, 60),
        ("aws", 59, 60),
        ("aws", 60, 60),
        ("aws", 61.2, 62),
        ("gce", 3600, 3600),
        ("ovh", 1, 3600),
        ("ovh", 3601, 7200),
        ("scaleway", 90, 3600),
        ("scaleway", 3601, 3660),
        ("azure", 61, 120),
    ],
)
def test_a_rule_bills_what_it_says(rule: str, leased_s: float, billed_s: float) -> None:
    of = RULES[rule]
    book = cloud_book(btu_s=of.billed_every_s, minimum_s=of.minimum_s)
    assert book.bill(leased_s) == pytest.approx(PER_HOUR * billed_s / HOUR_S, rel=1e-12)


def test_a_cap_is_of_a_month() -> None:
    book = cloud_book(btu_s=HOUR_S, minimum_s=HOUR_S, cap_per_month=50.0)
    assert book.bill(499 * HOUR_S) == pytest.approx(49.9)
    assert book.bill(501 * HOUR_S) == book.bill(MONTH_S) == 50.0
    assert book.bill(MONTH_S + 1) == pytest.approx(50.1)
    assert book.bill(3 * MONTH_S) == 150.0
    assert not book.pays_whole_btus


def test_a_lease_may_be_billed_from_when_the_host_is_up() -> None:
    ordered, active = cloud_book(), cloud_book(billed_from="active")
    assert ordered.bill(400, 300) == pytest.approx(PER_HOUR * 400 / HOUR_S)
    assert active.bill(400, 300) == pytest.approx(PER_HOUR * 300 / HOUR_S)
    assert active.bill(400) == ordered.bill(400)
    assert active.bill(400, 0) == 0


def test_a_host_that_is_taken_back_early_may_be_free() -> None:
    spot = cloud_book(interrupted_free_s=HOUR_S)
    assert spot.bill(3599, lost=True) == 0
    assert spot.bill(3600, lost=True) == spot.bill(3600) > 0
    assert spot.bill(3599) > 0
    assert cloud_book().bill(3599, lost=True) > 0


@given(one_s=lengths_s, more_s=lengths_s)
def test_a_longer_lease_never_costs_less(one_s: float, more_s: float) -> None:
    for cap in (None, 20.0):
        book = cloud_book(btu_s=60.0, minimum_s=HOUR_S, cap_per_month=cap)
        assert book.bill(one_s + more_s) >= book.bill(one_s) - 1e-9


def test_reserved_hosts_are_paid_whether_used_or_not() -> None:
    """Two reserved hosts for an hour, one used less, two hosts beyond them for half an hour."""
    book = cloud_book(reserved=2, reserved_per_hour=0.04)
    assert book.fleet_cost([1, 4], 1800) == pytest.approx(2 * 0.04 + 2 * 0.5 * PER_HOUR)
    assert cloud_book().fleet_cost([1, 4], 1800) == pytest.approx(2.5 * PER_HOUR)
