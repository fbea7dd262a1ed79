"""What the results database gives back: found, sorted, paged, and nothing else."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from include.model.errors import PublishError
from include.results.reports.database import Publication, sent_rows
from include.results.reports.publish import publish
from include.results.reports.results import FILTERS, ORDERS, PAGE_RUNS, Query, find_runs, read_runs
from include.runs.measurements.origin import DagRun
from tests.builders_staged import RUN, let_pass, stage, tables_of


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two experiments of one run each."""
    root = tmp_path_factory.mktemp("results")
    url = f"sqlite:///{root / 'results.db'}"
    first = let_pass(stage(root / "first"))
    publish(first, url, DagRun(dag_id="experiment", dag_run="manual__1"))
    other = let_pass(stage(root / "50%_off", "threshold-x", controller="threshold"))
    publish(other, url)
    return url


def names(url: str, **asked: object) -> list[str]:
    return [row["experiment"] for row in find_runs(url, Query(**asked)).runs]


def test_a_run_comes_with_its_outcome_and_who_published_it(url: str) -> None:
    (row,) = find_runs(url, Query(equal={"experiment": "first"})).runs
    assert (row["run"], row["total_cost"], row["checks"]) == (RUN, 1.0, 1)
    assert (row["dag_id"], row["dag_run"]) == ("experiment", "manual__1")
    assert row["published_at"].endswith("+00:00")


def test_filters_and_words_narrow_down_and_offer_all_choices(url: str) -> None:
    runs_page = find_runs(url, Query(equal={"controller": "threshold"}))
    assert [row["experiment"] for row in runs_page.runs] == ["50%_off"]
    assert runs_page.choices["controller"] == ["btu", "threshold"]
    assert names(url, text="FIRST walk") == ["first"]
    assert names(url, text="first threshold") == []
    assert names(url, equal={"pattern": ""}, sort="experiment", descending=False) == [
        "50%_off",
        "first",
    ]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Runs of one matrix, named as they are: the BTU is in the name of every one."""
    url = f"sqlite:///{tmp_path_factory.mktemp('searched') / 'results.db'}"
    rows: dict[str, list[dict[str, object]]] = {"runs": [], "outcomes": []}
    for controller in ("btu", "btu-runtime", "threshold"):
        for pattern in ("stepwise", "random_walk_1"):
            run = f"{controller}-{pattern}-btu10-s1-1ba515"
            run_tables = tables_of(run, controller=controller, pattern=pattern)
            for table, tables in rows.items():
                tables += run_tables[table]
    with sent_rows(url, Publication(experiment="matrix", edition="1", checks=1), rows):
        pass
    return url


def controllers(url: str, text: str) -> list[str]:
    return sorted(row["controller"] for row in find_runs(url, Query(text=text)).runs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("btu stepwise", ["btu", "btu-runtime"]),
        ("stepwise BTU", ["btu", "btu-runtime"]),
        ("thresh step", ["threshold"]),
        ("stepwise btu10", ["btu", "btu-runtime", "threshold"]),
        ("walk threshold", ["threshold"]),
        ("walk_1 runtime", ["btu-runtime"]),
        ("threshold-random_walk_1-btu10-s1-1ba515", ["threshold"]),
        ("alk threshold", []),
        ("hold stepwise", []),
        ("btu threshold", []),
        ("-", []),
    ],
)
def test_every_word_is_a_begin_of_a_name_or_a_whole_word_in_it(
    searched: str, text: str, expected: list[str]
) -> None:
    assert controllers(searched, text) == expected


@pytest.mark.parametrize("text", ["%", "_", "!", "' OR 1=1 --", '"; DROP TABLE runs; --'])
def test_what_is_typed_means_itself(url: str, text: str) -> None:
    assert names(url, text=text) == []
    assert names(url, text="50%") == ["50%_off"]
    assert names(url, equal={"experiment": text}) == []
    assert len(names(url)) == 2


def test_every_order_is_one_and_an_unknown_one_is_the_newest_first(url: str) -> None:
    for order in ORDERS:
        assert len(names(url, sort=order)) == 2
    assert names(url, sort="r.run; DROP TABLE runs") == names(url)
    assert find_runs(url, Query(equal={"nonsense": "1"})).total == 2


def test_pages_follow_each_other(tmp_path: Path, url: str) -> None:
    copy = tmp_path / "many.db"
    copy.write_bytes(Path(url.removeprefix("sqlite:///")).read_bytes())
    with sqlite3.connect(copy) as database:
        for k in range(PAGE_RUNS):
            database.execute(
                "INSERT INTO runs SELECT experiment, run || ?, controller, variant, pattern, "
                "btu_min, seed + ?, duration_min, topology, conditions, testbed, flavor, vcpus, "
                "memory_mb, sample_every_items, spec_hash, edition FROM runs "
                "WHERE experiment = 'first' AND seed = 1 LIMIT 1",
                (f"-{k}", k + 1),
            )
    many = f"sqlite:///{copy}"
    pages = [find_runs(many, Query(sort="seed", page=page)) for page in (1, 2, 3)]
    assert [len(page.runs) for page in pages] == [PAGE_RUNS, 2, 0]
    assert {page.total for page in pages} == {PAGE_RUNS + 2}
    assert pages[0].pages == 2
    seeds = [row["seed"] for page in pages for row in page.runs]
    assert seeds == sorted(seeds, reverse=True)


def test_one_run_is_read_with_its_tables(url: str) -> None:
    (tables,) = read_runs(url, [("first", RUN)], ("cost", "compliance", "timeline"))
    assert tables is not None
    assert [row["price_book"] for row in tables["cost"]] == ["btu10", "btu30"]
    assert [row["scope"] for row in tables["compliance"]] == ["O1", "O2", "overall"]
    assert [row["time_s"] for row in tables["timeline"]] == [15.0 * k for k in range(1, 9)]
    assert read_runs(url, [("first", "nothing")]) == [None]


def test_where_nothing_was_published_nothing_is_found_and_nothing_made(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'none.db'}"
    assert find_runs(url, Query()).total == 0
    assert read_runs(url, [("a", "b")]) == [None]
    assert not (tmp_path / "none.db").exists()


def test_a_database_of_another_version_or_none_says_what_to_do(tmp_path: Path, url: str) -> None:
    old = tmp_path / "old.db"
    old.write_bytes(Path(url.removeprefix("sqlite:///")).read_bytes())
    with sqlite3.connect(old) as database:
        database.execute("DROP TABLE publications")
    with pytest.raises(PublishError, match=r"no publications(.|\n)*publish the experiments again"):
        find_runs(f"sqlite:///{old}", Query())
    old.write_text("no database at all, but longer than a header of one would have to be" * 9)
    with pytest.raises(PublishError, match="cannot be read"):
        find_runs(f"sqlite:///{old}", Query())
    with pytest.raises(PublishError, match="cannot be read") as caught:
        find_runs("postgresql+psycopg://user:s3cret@127.0.0.1:9/lab", Query())
    assert "s3cret" not in str(caught.value)


def test_filters_are_columns_of_runs(url: str) -> None:
    (row, *_) = find_runs(url, Query()).runs
    assert set(FILTERS) <= set(row)


def test_a_database_without_the_strict_columns_is_read_all_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'results.db'}"
    publish(let_pass(stage(tmp_path / "first")), url)
    with sqlite3.connect(tmp_path / "results.db") as database:
        for column in (
            "strict_total_cost", "strict_relaxed_compliance_percent", "age_p95_ms",
            "end_to_end_near_real_time_total_cost", "end_to_end_near_real_time_compliance_percent",
        ):  # fmt: skip
            database.execute(f"ALTER TABLE outcomes DROP COLUMN {column}")
    for sort in ("cost", "age", "near_real_time", "end_to_end", "end_to_end_cost", "when"):
        (row,) = find_runs(url, Query(sort=sort)).runs
        assert (row["strict_total_cost"], row["age_p95_ms"], row["total_cost"]) == (None, None, 1.0)
    (tables,) = read_runs(url, [("first", RUN)], ("outcomes",))
    assert tables is not None
    assert tables["outcomes"][0]["total_cost"] == 1.0
