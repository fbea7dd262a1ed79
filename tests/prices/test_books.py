"""Price books of users, and those that are written of list prices."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from include.cli.prices import MOST_SHOWN
from include.experiment.prices.books import RULES, book_of, load_book
from include.experiment.prices.listed import load_price_list, parse_size
from include.experiment.problems import problems_of
from include.experiment.run import Run, resolve
from include.experiment.spec import RunSpec, load_spec
from include.model.billing import CloudPriceBook
from include.model.errors import SpecError
from include.results.bounds.report import unbounded
from tests.builders import run_spec
from tests.builders_prices import BOOK
from tests.command_line import refused, said


def without(*names: str, **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in (BOOK | changes).items() if name not in names}


@pytest.mark.parametrize("books", [("btu10", "cheap.yaml"), ("cheap.yaml", "btu10")])
def test_a_run_is_planned_with_the_book_that_bills_it(
    books: tuple[str, str], tmp_path: Path
) -> None:
    """Two books of its BTU: that of the paper first, as in sql/tables/outcomes."""
    ten_minutes = {"billed_every_s": 600, "minimum_s": 600, "penalty_per_item": 0}
    cheap = without("rule", "cap_per_month", name="cheap", **ten_minutes)
    (tmp_path / "cheap.yaml").write_text(yaml.safe_dump(cheap))
    names = [str(tmp_path / book) if book.endswith(".yaml") else book for book in books]
    setting = resolve(run_spec(price_books=names)).setting
    assert (setting.price_per_btu, setting.penalty_per_item) == (1.0, 0.0001)


def test_a_stored_run_is_planned_with_the_price_that_it_was_provisioned_with(
    tmp_path: Path,
) -> None:
    """Every window reads the run, whatever has become of the file by then."""
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(BOOK | {"penalty_per_item": 0.25}))
    stored = resolve(run_spec(price_books=(str(file),))).to_json()
    file.unlink()
    setting = Run.from_json(stored).setting
    assert setting.price_per_btu == pytest.approx(0.06)
    assert setting.penalty_per_item == 0.25


def problems_with(raw: Any, tmp_path: Path) -> list[str]:
    file = tmp_path / "mine.yaml"
    file.write_text(raw if isinstance(raw, str) else yaml.safe_dump(raw))
    with pytest.raises(SpecError) as error:
        load_book(file)
    assert error.value.source == "mine.yaml"
    return list(error.value.problems)


def test_a_book_bills_by_its_rule_unless_it_says_otherwise() -> None:
    book = book_of(BOOK, "mine")
    assert (book.btu_s, book.minimum_s, book.cap_per_month) == (3600, 3600, 20)
    assert book.price_per_btu == 0.36
    other = book_of(without(minimum_s=7200, billed_from="active"), "mine")
    assert (other.minimum_s, other.billed_from) == (7200, "active")
    own = book_of(without("rule", billed_every_s=60, minimum_s=60), "mine")
    assert own.price_per_btu == pytest.approx(0.006)
    spot = book_of(without(rule="aws-spot", reserved={"hosts": 2, "per_hour": 0.1}), "mine")
    assert (spot.interrupted_free_s, spot.reserved, spot.reserved_per_hour) == (3600, 2, 0.1)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ("name: [", "not readable as YAML"),
        ("- a", "a price book is a mapping"),
        (without(per_hour=0), "per_hour is 0: a price that is missing"),
        (without(per_hour=-1), "per_hour: input should be greater than 0, got -1"),
        (without(per_hour=float("inf")), "per_hour: input should be"),
        (without("source"), "source: missing; add it"),
        (without(rule="hetznr"), "unknown rule 'hetznr'. Did you mean 'hetzner'?"),
        (without(rule=["aws"]), "rule: input should be a valid string"),
        (without("rule"), "billed_every_s: missing; give it, or a rule (aws,"),
        (without("cap_per_month"), "cap_per_month: missing; hetzner bills hours begun"),
        (without(minimum_s=5000), "minimum_s must be a multiple of billed_every_s (3600)"),
        (without(minimum_s=60), "minimum_s must be a multiple of billed_every_s (3600)"),
        (
            without(billed_every_s=1e-320),
            "billed_every_s: input should be greater than or equal to 1",
        ),
        (without(billed_from="boot"), "billed_from: input should be 'order' or 'active'"),
        (without(name="../x"), "name: string should match"),
        (without(instance_type='=HYPERLINK("x")'), "instance_type: string should match"),
        *((without(source=f"{sign}1"), "source: string should match") for sign in "+-@\t\r"),
        (without(price=3), "price: unknown field"),
        (without(reserved={"hosts": 0}), "reserved.hosts: input should be greater"),
        (
            without(reserved={"hosts": 2, "per_hour": 0}),
            "reserved.per_hour: input should be greater than 0",
        ),
        *(
            (without(as_of=day), "write the day of the price as 2026-01-31")
            for day in ("last spring", "31.1.2026", "2026-13-01")
        ),
    ],
)
def test_a_wrong_book_says_what_to_do(raw: Any, says: str, tmp_path: Path) -> None:
    assert any(says in problem for problem in problems_with(raw, tmp_path))


def test_everything_wrong_with_a_book_is_said_at_once(tmp_path: Path) -> None:
    found = problems_with(without("region", "as_of", per_hour=0, rule="none", x=1), tmp_path)
    assert sorted(problem.split(":")[0].split("'")[0] for problem in found) == [
        "as_of", "per_hour is 0", "region", "unknown rule ", "x",
    ]  # fmt: skip


def test_list_prices_are_shown_and_written(tmp_path: Path) -> None:
    out = tmp_path / "book.yaml"
    given = ("aws", "--region", "us-east-1", "--like", "2cpu-8gb")
    lines = said("prices", *given, "--out", out).splitlines()
    rows = [line.split() for line in lines[1 : 1 + MOST_SHOWN]]
    assert [float(row[3]) for row in rows] == sorted(float(row[3]) for row in rows)
    assert all(float(row[1]) >= 2 and float(row[2]) >= 8 for row in rows)
    assert any(line.startswith("As of:      20") and "libcloud" in line for line in lines)
    book = load_book(out)
    assert (book.provider, book.region, book.instance_type) == ("aws", "us-east-1", rows[0][0])
    assert (book.btu_s, book.minimum_s, book.currency) == (1, 60, "USD")
    assert book.bill(3600) == pytest.approx(float(rows[0][3]), abs=5e-5)
    one = ("aws", "--region", "us-east-1", "--type", "m5.large", "--out", str(out))
    said("prices", *one)
    assert load_book(out).bill(3600) == pytest.approx(0.096)
    larger = ("azure", "--region", "westeurope", "--type", "standardd2", "--out", str(out))
    assert f"{out} (standardd2, 2 vCPU and 7 GB)" in said("prices", *larger)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("awss", "--region", "x"), "unknown provider 'awss'. Did you mean 'aws'?"),
        (("aws", "--region", "eu-centrl-1"), "Did you mean 'eu-central-1'?"),
        (("aws", "--region", "us-east-1", "--like", "big"), "such as 4cpu-16gb, got 'big'"),
        (("aws", "--region", "us-east-1", "--type", "m5.larg"), "Did you mean 'm5.large'?"),
        (("aws",), "--region: name one; aws has af-south-1, ap-east-1, "),
        (("aws", "--region", "ap-south-1", "--type", "m5.large"), "has no price in ap-south-1"),
        (("gce", "--region", "us-central1", "--like", "0cpu-0gb"), "write a size above 0"),
        (("aws", "--region", "us-east-1", "--like", "9999cpu-1gb", "--out", "x"), "no type of"),
        (
            ("azure", "--region", "westeurope", "--like", "1cpu-4gb", "--out", "x"),
            "have no known size and were left out. The cheapest that is known has 2 vCPU and 7 GB",
        ),
        (
            ("azure", "--region", "westeurope", "--type", "standardd2sv3", "--out", "x"),
            "the size of standardd2sv3 is not known",
        ),
    ],
)
def test_what_is_not_listed_is_said(
    arguments: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refused("prices", *arguments)
    assert not Path("x").exists()


def test_of_hundreds_of_types_the_nearest_are_told() -> None:
    told = refused("prices", "aws", "--region", "us-east-1", "--type", "m5.lrge")
    known = told.partition(" Known: ")[2]
    assert re.fullmatch(r"m5\.large, (m5\w*\.\w+, ){3}m5\w*\.\w+ and \d{3} more\.", known), told


def test_a_wrong_region_and_a_wrong_size_are_told_at_once() -> None:
    told = refused("prices", "aws", "--region", "eu-centrl-1", "--like", "big")
    assert told.startswith("prices: 2 problems\n")
    assert "--like: write CPUs" in told
    assert "--region: unknown region of aws 'eu-centrl-1'" in told


@pytest.mark.parametrize(
    ("provider", "region"),
    [("aws", "eu-central-1"), ("azure", "westeurope"), ("gce", "us-central1")],
)
def test_a_price_of_nothing_is_missing(provider: str, region: str) -> None:
    found = load_price_list(provider, region, parse_size("4cpu-16gb"))
    assert found.at_least(4, 16)
    assert all(one.per_hour > 0 for one in found.offers)
    assert not {one.instance_type for one in found.offers} & set(found.unpriced)
    assert found.as_of >= "2025-01-01"
    assert provider in RULES


def test_a_price_is_added_up_of_cores_and_memory() -> None:
    """n2 in us-central1: 0.031611 a core and 0.004237 a GB, as libcloud has them."""
    prices = load_price_list("gce", "us-central1", (4, 16))
    found = {offer.instance_type: offer for offer in prices.offers}
    assert found["n2-4cpu-16gb"].per_hour == pytest.approx(4 * 0.031611 + 16 * 0.004237)
    assert "n2-4cpu-16gb" in load_price_list("gce", "europe-west6", (4, 16)).unpriced


def a_point(*books: str) -> RunSpec:
    return run_spec(pattern="constant", price_books=books)


def test_a_spec_names_a_book_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(BOOK))
    (tmp_path / "spec.yaml").write_text(
        "{name: own, controllers: btu, patterns: constant, duration_min: 10, "
        "price_books: [btu10, mine.yaml]}"
    )
    (point,) = load_spec(tmp_path / "spec.yaml").points()
    run = resolve(point)
    assert [book.name for book in run.price_books] == ["btu10", "mine"]
    again = Run.from_json(run.to_json())
    assert again == run
    assert isinstance(again.price_books[1], CloudPriceBook)
    assert not isinstance(again.price_books[0], CloudPriceBook)


def test_bounds_are_of_whole_btus_only(tmp_path: Path) -> None:
    hours, capped = tmp_path / "hours.yaml", tmp_path / "capped.yaml"
    hours.write_text(yaml.safe_dump(without("cap_per_month", name="hours", rule="ovh")))
    capped.write_text(yaml.safe_dump(without(name="capped")))
    (told,) = unbounded(resolve(a_point("btu10", str(hours), str(capped))))
    assert "nothing else, not capped;" in told


def test_books_that_a_run_cannot_be_billed_by_are_refused(tmp_path: Path) -> None:
    changes = {"name": "btu10", "rule": "aws-spot", "billed_from": "active", "minimum_s": 60.5}
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(BOOK | changes | {"reserved": {"hosts": 1, "per_hour": 1}}))
    of_itself, *told = problems_of(a_point(str(file)))
    assert "must be a multiple of" in of_itself
    assert [problem.partition("; ")[2] for problem in told] == [
        "choose one",
        "write billed_from: order",
        "write interrupted_free_s: 0",
        "leave reserved out",
    ]
    file.write_text(yaml.safe_dump(BOOK))
    assert problems_of(a_point(str(file), str(file))) == [
        "two price books are called mine; each needs a name of its own"
    ]
    assert problems_of(a_point(str(tmp_path / "no.yaml")))[0].startswith("price book no.yaml: ")
    assert "unknown price book 'btu11'" in problems_of(a_point("btu11"))[0]


def test_yes_is_no_number_of_a_book(tmp_path: Path) -> None:
    wrong = {"per_hour": True, "penalty_per_item": True, "reserved": {"hosts": True, "per_hour": 1}}
    fields = [problem.partition(":")[0] for problem in problems_with(BOOK | wrong, tmp_path)]
    assert fields == ["per_hour", "penalty_per_item", "reserved.hosts"]
