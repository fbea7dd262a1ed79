"""What a run was billed, taken apart: by hand, in general, and of a run that was measured."""

from __future__ import annotations

from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from include.experiment.prices import PRICE_BOOKS
from include.experiment.run import Run, resolve
from include.results.bounds.cover import Cover, cover_of, first_fit_hosts
from include.results.bounds.demand import demand_of
from include.results.bounds.parts import HostUse, leased_for, parts_of
from include.results.tables.covers import read_covers, read_parts
from include.results.tables.measured import measured_rows
from include.runs.measurements.rows import CostPartRow
from include.runs.measurements.store import RunStore
from tests.builders import run_spec
from tests.command_line import refused, said

BOOK = PRICE_BOOKS["btu10"]
READINGS = 20


@pytest.fixture(scope="module")
def run() -> Run:
    spec = run_spec(experiment="parts", pattern="random_walk_1")
    return resolve(spec)


def use(run: Run, each: int, hosts: int, leased: float) -> HostUse:
    return HostUse(
        times_s=np.linspace(0, run.spec.duration_s, READINGS),
        instances=np.full((len(run.topology.operator_names), READINGS), each),
        hosts=np.full(READINGS, hosts),
        leased_s=leased * run.spec.duration_s,
    )


def cover(run: Run) -> Cover:
    return cover_of(demand_of(run), run.flavor)


def parts(run: Run, use: HostUse, billed: float) -> CostPartRow:
    return parts_of(leased_for(demand_of(run), cover(run), run.flavor, use), BOOK, billed)


def test_parts_are_the_steps_from_the_work_to_the_bill(run: Run) -> None:
    """Two instances of each of nine operators take three hosts; five have one, and six are leased
    for 20 minutes, two BTUs each, of which the bill has one more."""
    found = parts(run, use(run, 2, 5, 6.0), 13.0)

    foresight = found.work + found.whole_instances + found.whole_hosts
    assert foresight == pytest.approx(2 * float(np.mean(cover(run).high)))
    assert foresight + found.headroom == pytest.approx(2 * 3.0)
    assert found.spread == pytest.approx(2 * 2.0)
    assert found.empty == pytest.approx(2 * 1.0)
    assert found.unused == pytest.approx(1.0)
    assert sum(astuple(found)[1:]) == pytest.approx(13.0)


def test_who_has_fewer_instances_than_the_work_takes_has_no_headroom(run: Run) -> None:
    found = parts(run, use(run, 1, 2, 2.0), 4.0)

    assert found.headroom <= 0
    assert sum(astuple(found)[1:]) == pytest.approx(4.0)


def test_hosts_that_hold_more_than_first_fit_finds_have_no_spread(run: Run) -> None:
    assert parts(run, use(run, 2, 2, 2.0), 4.0).spread == 0


def test_first_fit_places_the_largest_first_each_on_the_first_host_with_room() -> None:
    """Sizes 6, 5, 5, 4, 4, 3, 3 in hosts of 10: 6 + 4, 5 + 5, 4 + 3 + 3."""
    sizes = np.array([[3.0, 4.0, 5.0, 6.0]])
    assert first_fit_hosts(np.array([2, 2, 2, 1]), np.array([10.0]), sizes) == 3
    assert first_fit_hosts(np.array([3, 2, 2, 1]), np.array([10.0]), sizes) == 4
    assert first_fit_hosts(np.array([0, 0, 0, 0]), np.array([10.0]), sizes) == 0
    assert first_fit_hosts(np.array([2]), np.array([10.0]), np.array([[12.0]])) == 2


def test_where_cpu_is_shared_the_work_takes_hosts_that_memory_does_not(run: Run) -> None:
    """Without memory to speak of, one host holds every instance, and the work takes more."""
    small = replace(run.flavor, vcpus=1.0, memory_mb=10**6, cpu_shared=True)
    shared = replace(run, spec=replace(run.spec, testbed="flow"), flavor=small)
    busy = demand_of(shared).peak_busy.sum(axis=0) / 0.97
    assert busy.min() > 1

    found = parts(shared, use(shared, 2, 20, 20.0), 40.0)

    assert found.work == pytest.approx(2 * busy.mean())
    assert found.whole_instances == 0
    assert found.work + found.whole_hosts == pytest.approx(2 * np.ceil(busy).mean())
    assert sum(astuple(found)[1:]) == pytest.approx(40.0)
    few = parts(shared, use(shared, 2, 1, 1.0), 2.0)
    assert few.headroom < 0
    assert few.spread == few.empty == 0


def measured(root: Path, **changes: str) -> None:
    """The experiment small, measured in this folder."""
    spec = {"name": "small", "controllers": "btu", "patterns": "random_walk_1", "btus_min": "10",
            "duration_min": "10", **changes}  # fmt: skip
    (root / "small.yaml").write_text("".join(f"{name}: {spec[name]}\n" for name in spec))
    said("run", str(root / "small.yaml"), "--root", str(root))


def test_the_command_takes_every_measured_run_apart(tmp_path: Path) -> None:
    measured(tmp_path, controllers="[btu, fixed]", price_books="[btu10, btu60]", duration_min="20")
    done = said("bound", str(tmp_path / "small"), "--no-floor", "--parts")
    rows = read_parts(tmp_path / "small").to_pylist()
    assert [row["price_book"] for row in rows] == ["btu10", "btu60"] * 2
    covers = {(row["run"], row["price_book"]): row["cover_cost"] for row in
              read_covers(tmp_path / "small").to_pylist()}  # fmt: skip
    for row in rows:
        found = CostPartRow(**{name: row[name] for name in CostPartRow.__slots__})
        foresight = found.work, found.whole_instances, found.whole_hosts
        assert min(foresight) >= 0
        assert sum(foresight) <= covers[row["run"], row["price_book"]] + 1e-9
        assert min(found.spread, found.empty, found.unused) >= -1e-9
        if row["run"].startswith("fixed-"):  # it is always enough, so it pays the cover at least
            assert sum(astuple(found)[1:]) >= covers[row["run"], row["price_book"]]
        (line,) = (
            one for one in done.splitlines() if one.split()[:2] == [row["run"], row["price_book"]]
        )
        costs = astuple(found)[1:]
        assert line.split()[2:] == [f"{one:.2f}" for one in (*costs, sum(costs))]


def test_a_reading_that_says_nothing_of_hosts_leaves_none_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As right after a start of a job on Flink."""
    measured(tmp_path, price_books="[btu10]")

    def bound() -> float:
        said("bound", str(tmp_path / "small"), "--no-floor", "--parts")
        return float(read_parts(tmp_path / "small").to_pylist()[0]["empty"])

    def without_some(store: RunStore, table: str) -> pa.Table:
        rows = measured_rows(store, table)
        if table != "host_utilisation":
            return rows
        return rows.filter(pc.invert(pc.is_in(rows["time_s"], pa.array([150.0, 300.0, 450.0]))))

    whole = bound()
    monkeypatch.setattr("include.results.tables.regret.measured_rows", without_some)
    assert bound() == pytest.approx(whole, abs=0.05)


def test_parts_of_a_run_that_was_measured_anew_are_not_those_of_before(tmp_path: Path) -> None:
    measured(tmp_path)
    said("bound", str(tmp_path / "small"), "--no-floor")
    assert read_parts(tmp_path / "small").num_rows == 3
    (manifest,) = (tmp_path / "small").glob("runs/*/manifest.json")
    manifest.write_text(manifest.read_text() + " ")

    assert read_parts(tmp_path / "small").num_rows == 0
    assert read_covers(tmp_path / "small").num_rows == 3


def test_parts_are_of_what_was_run(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: a\n")

    done = refused("bound", str(tmp_path / "a.yaml"), "--parts")
    assert "give the folder of an experiment" in done


def test_a_table_that_is_missing_is_told_and_never_a_bill_of_nothing(tmp_path: Path) -> None:
    measured(tmp_path)
    for path in (tmp_path / "small" / "measurements" / "lease").rglob("*.parquet"):
        path.unlink()

    done = refused("bound", str(tmp_path / "small"), "--no-floor", "--parts")
    assert "has no file" in done
    assert not (tmp_path / "small" / "bounds.json").exists()
