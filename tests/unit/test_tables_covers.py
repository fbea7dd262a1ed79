"""The covers of an experiment: what `bound` stores is what the tables read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.model.errors import StoreError
from include.results.bounds.cover import cover_of
from include.results.bounds.demand import demand_of
from include.results.bounds.floor import Floor
from include.results.bounds.report import bounds_of, require_bounded
from include.results.tables.covers import NAME, read_covers, read_parts, stored_runs, write_covers
from include.runs.stages import run_all
from tests.builders import run_spec
from tests.builders_prices import write_book
from tests.command_line import said
from tests.problems import problems_told

SPEC = run_spec(experiment="mine", duration_min=10, price_books=("btu10", "btu30"))
UNEVEN = replace(SPEC, duration_min=2.5)


@pytest.fixture
def capped(tmp_path: Path) -> RunSpec:
    """With a price book that bills at most so much a month."""
    return replace(UNEVEN, price_books=("btu10", write_book(tmp_path / "mine.yaml")))


def bound(*arguments: str) -> str:
    return said("bound", *arguments)


def test_bound_of_a_folder_stores_what_the_tables_read(tmp_path: Path) -> None:
    run_all(SPEC, tmp_path)
    output = bound(str(tmp_path / "mine"), "--no-floor")
    run = resolve(SPEC)
    cover = cover_of(demand_of(run), run.flavor)
    costs = {book.name: cover.cost(book)[1] for book in run.price_books}
    assert read_covers(tmp_path / "mine").to_pylist() == [
        {"spec_hash": run.spec_hash, "price_book": book, "cover_cost": costs[book],
         "floor_cost": None, "floor_found_cost": None, "experiment": "mine", "run": SPEC.run_id}
        for book in ("btu10", "btu30")
    ]  # fmt: skip
    assert f"report {tmp_path / 'mine'}" in output
    assert [line.split()[-2:] for line in output.splitlines()[1:3]] == [
        ["-", f"{costs[book]:g}"] for book in ("btu10", "btu30")
    ]


def test_a_topology_of_ones_own_is_named_and_not_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "sensors.yaml").write_text("{name: sensors, based_on: manufacturing}")
    spec = tmp_path / "mine.yaml"
    spec.write_text(
        "{name: mine, topology: sensors.yaml, controllers: btu, patterns: stepwise, btus_min: 10, "
        "duration_min: 10, price_books: btu10, calibration: manufacturing}"
    )
    heading, load, line = bound(str(spec), "--no-floor").splitlines()
    assert load == "sensors stepwise seed 1, 10 min, calibration=manufacturing"
    assert line.index("btu10") == heading.index("price book")


def test_bound_of_a_folder_says_which_runs_it_has_no_bound_of(
    tmp_path: Path, capped: RunSpec
) -> None:
    for spec in (SPEC, capped):
        run_all(spec, tmp_path)
    output = bound(str(tmp_path / "mine"), "--no-floor")
    reason = f"no bound of run {capped.run_id}: "
    assert f"{reason}duration_min must be whole minutes, not 2.5" in output
    assert f"{reason}price books that bill whole minutes, or equal parts of one" in output
    assert "and nothing else, not mine; take others" in output
    for table in (read_covers(tmp_path / "mine"), read_parts(tmp_path / "mine")):
        assert set(table["run"].to_pylist()) == {SPEC.run_id}


def test_bound_of_a_spec_refuses_what_has_no_bound(capped: RunSpec) -> None:
    told = "\n".join(problems_told(require_bounded, [resolve(SPEC), resolve(capped)]))
    assert "2.5" in told
    assert "mine" in told


def test_by_the_second_the_cover_is_the_hosts_of_every_minute_and_there_is_no_floor() -> None:
    (row,) = bounds_of([resolve(replace(SPEC, price_books=("per_second",)))], 1)
    assert row.floor is None
    assert row.cover == pytest.approx(sum(row.load.cover.low) * 60 / 600)


def test_runs_share_a_load_unless_their_arrivals_differ() -> None:
    other = replace(SPEC, controller="threshold", btu_min=30)
    runs = [resolve(spec) for spec in (SPEC, other, replace(SPEC, seed=2))]
    rows = list(bounds_of(runs, None))
    seeds = [[run.spec.seed for run in row.load.runs] for row in rows]
    assert seeds == [[1, 1], [1, 1], [2], [2]]
    assert {row.floor for row in rows} == {None}


def test_without_the_file_there_is_no_row_and_every_column(tmp_path: Path) -> None:
    covers = read_covers(tmp_path)
    assert covers.num_rows == 0
    assert {"run", "spec_hash", "price_book", "cover_cost"} <= set(covers.column_names)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"r": {"spec_hash": "h"}}',
        '{"r": {"spec_hash": "h", "cover_cost": {"btu10": 0}}}',
        '{"r": {"spec_hash": "h", "cover_cost": {"btu10": NaN}}}',
        '{"r": {"spec_hash": "h", "cover_cost": {"btu10": 2}, "floor_cost": {"btu10": [-1, 2]}}}',
    ],
)
def test_a_damaged_file_says_what_to_do(content: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(content)
    with pytest.raises(StoreError, match=rf"{NAME} is damaged.*remove it"):
        read_covers(tmp_path)


def test_the_floor_is_stored_as_far_as_the_solver_came(tmp_path: Path) -> None:
    """Its interval, by price book; of a load whose floor nobody asked for there is none."""
    closed, stopped = bounds_of([resolve(SPEC)], 10)
    assert closed.floor
    assert closed.floor.low == closed.floor.high
    write_covers(tmp_path, [closed, replace(stopped, floor=Floor(1.0, 3.0))])
    rows = {row["price_book"]: row for row in read_covers(tmp_path).to_pylist()}
    assert rows["btu10"]["floor_cost"] == rows["btu10"]["floor_found_cost"] == closed.floor.low
    assert (rows["btu30"]["floor_cost"], rows["btu30"]["floor_found_cost"]) == (1.0, 3.0)
    write_covers(tmp_path, [replace(closed, floor=Floor(1.0, None)), replace(stopped, floor=None)])
    ends = [
        (row["floor_cost"], row["floor_found_cost"]) for row in read_covers(tmp_path).to_pylist()
    ]
    assert ends == [(1.0, None), (None, None)]


def test_a_run_of_another_version_is_named(tmp_path: Path) -> None:
    run_all(SPEC, tmp_path)
    (stored,) = tmp_path.glob("mine/runs/*/run.json")
    stored.write_text('{"spec": {}}')
    with pytest.raises(
        StoreError, match=r"run\.json cannot be read.*tidebench remove .*measure it again"
    ):
        stored_runs(tmp_path / "mine")
