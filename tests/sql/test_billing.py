"""What SQL bills for leases is what the price books of the model bill for them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from include.experiment.prices import PRICE_BOOKS
from include.model.billing import CloudPriceBook
from tests.builders_prices import cloud_book
from tests.sql.test_cases import built, view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RUN_BTU_MIN = 10.0
CLOUD = [
    cloud_book(name="by_second", btu_s=1.0, minimum_s=60.0),
    cloud_book(name="by_minute", btu_s=60.0, minimum_s=3600.0),
    cloud_book(name="capped", btu_s=3600.0, minimum_s=3600.0, cap_per_month=0.15),
    cloud_book(name="like_btu10", btu_s=600.0, minimum_s=600.0, cap_per_month=0.07),
]
"""The price of an hour is 0.1, so both caps are reached within the longest leases."""


def leases(seed: int, count: int) -> list[dict[str, Any]]:
    """Some end with a BTU, some a moment beside it, some anywhere; some were prolonged."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        ordered_s = draw.choice([0.0, 0.1, draw.uniform(0, 7200)])
        whole_s = 600.0 * draw.randint(0, 7)
        length_s = whole_s + draw.choice([0.0, 1e-7, 0.001, -0.001, draw.uniform(0, 600)])
        rows.append(
            {
                "run": f"r{number % 7}", "host": f"h{number}", "ordered_s": ordered_s,
                "ended_s": ordered_s + max(0.0, length_s),
                "paid_until_s": ordered_s + 600.0 * draw.randint(0, 8),
            }
        )  # fmt: skip
    return rows


def test_sql_bills_random_leases_as_the_model_does(spark: SparkSession) -> None:
    rows = leases(seed=1, count=700)
    books = [*PRICE_BOOKS.values(), *CLOUD]
    view(spark, "lease", rows)
    view(spark, "run", [{"run": f"r{n}", "btu_min": RUN_BTU_MIN} for n in range(7)])
    prices = [
        {"run": f"r{n}", "price_book": book.name, "btu_s": book.btu_s,
         "price_per_btu": book.price_per_btu}
        for n in range(7) for book in books
    ]  # fmt: skip
    view(spark, "price", prices)
    billing = [
        {"run": f"r{n}", "price_book": book.name, "minimum_s": book.minimum_s,
         "cap_per_month": book.cap_per_month or 0.0}
        for n in range(7) for book in books if isinstance(book, CloudPriceBook)
    ]  # fmt: skip
    view(spark, "billing", billing)
    for name in ("operator", "duration_count", "queue", "arrival", "source_demand", "cover"):
        view(spark, name, [])
    billed = {
        (row["run"], row["price_book"]): (row["resource_cost"], row["begun_cost"])
        for row in built(spark, "cost").collect()
    }
    assert len(billed) == 7 * len(books)
    for (run, name), cost in billed.items():
        book = next(one for one in books if one.name == name)
        own = [row for row in rows if row["run"] == run]
        planned = book.btu_s == RUN_BTU_MIN * 60
        expected = [
            sum(
                book.resource_cost(
                    row["ended_s"] - row["ordered_s"],
                    row["paid_until_s"] - row["ordered_s"] if booked else 0.0,
                )
                for row in own
            )
            for booked in (planned, False)
        ]
        assert cost == pytest.approx(expected, rel=1e-12), (run, name)
