"""What the results database gives back: found, sorted, paged, and nothing else.

Tags, notes and the archive beside it are kept, found, and gone with their run.
"""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, permutations
from pathlib import Path

import pytest

from include.model.errors import PublishError, SpecError
from include.results.reports.database import Publication, removed_rows, sent_rows
from include.results.reports.labels import Change, change_labels, tags_in
from include.results.reports.publish import publish
from include.results.reports.results import ORDERS, PAGE_RUNS, Query, find_runs, read_runs
from include.runs.measurements.origin import DagRun, Origin
from tests.builders_staged import RUN, let_pass, stage, tables_of
from tests.problems import problems_told
from tidebench.page.listing import runs_csv


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


@pytest.mark.parametrize("text", ["%", "_", "!", "\0", "' OR 1=1 --", '"; DROP TABLE runs; --'])
def test_what_is_typed_means_itself(url: str, text: str) -> None:
    assert names(url, text=text) == []
    assert names(url, text="50%") == ["50%_off"]
    assert names(url, equal={"experiment": text}) == []
    assert len(names(url)) == 2


SORTED_RUNS = 5
FIGURES = {
    "when": ("", "measured_at"),
    "experiment": ("", "experiment"),
    "controller": ("runs", "controller"),
    "topology": ("runs", "topology"),
    "pattern": ("runs", "pattern"),
    "btu": ("runs", "btu_min"),
    "seed": ("runs", "seed"),
    "cost": ("outcomes", "strict_total_cost"),
    "compliance": ("outcomes", "strict_relaxed_compliance_percent"),
    "near_real_time": ("outcomes", "strict_near_real_time_compliance_percent"),
    "end_to_end": ("outcomes", "end_to_end_near_real_time_compliance_percent"),
    "end_to_end_cost": ("outcomes", "end_to_end_near_real_time_total_cost"),
    "age": ("outcomes", "age_p95_ms"),
}
"""What runs are sorted by: a table, or what a publication says, and a column of it."""
PLACES = dict(zip(FIGURES, islice(permutations(range(SORTED_RUNS)), 1, None), strict=False))
"""The place of every run in each order: no two orders are the same, nor the reverse of another."""


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Runs of which each column has another order; the number of a run is its name."""
    url = f"sqlite:///{tmp_path_factory.mktemp('ordered') / 'results.db'}"
    for number in range(SORTED_RUNS):
        rows = {name: tables_of(str(number))[name] for name in ("runs", "outcomes")}
        for order, (table, column) in FIGURES.items():
            for row in rows.get(table, ()):
                figure = PLACES[order][number]
                row[column] = f"of {figure}" if isinstance(row[column], str) else figure
        when, experiment = (PLACES[order][number] for order in ("when", "experiment"))
        publication = Publication(
            experiment=f"of {experiment}", edition="1", checks=1,
            origins=[Origin(run=str(number), measured_at=f"2026-01-0{1 + when}T00:00:00+00:00")],
        )  # fmt: skip
        with sent_rows(url, publication, rows):
            pass
    return url


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("descending", [False, True])
def test_runs_are_sorted_by_every_order_up_and_down(
    ordered: str, order: str, descending: bool
) -> None:
    runs = find_runs(ordered, Query(sort=order, descending=descending)).runs
    places = [PLACES[order][int(row["run"])] for row in runs]
    assert places == sorted(range(SORTED_RUNS), reverse=descending)


def test_an_unknown_order_is_the_newest_first_and_an_unknown_filter_none(ordered: str) -> None:
    runs = find_runs(ordered, Query(sort="r.run; DROP TABLE runs", equal={"nonsense": "1"})).runs
    assert [PLACES["when"][int(row["run"])] for row in runs] == [4, 3, 2, 1, 0]


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
    assert len(runs_csv(many, Query(page=2)).splitlines()) == 1 + PAGE_RUNS + 2


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
    assert change_labels(url, [("one", "cheap")], Change(archived=True), "ada") == 0


def test_a_database_that_is_none_says_what_to_do(tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    old.write_text("no database at all, but longer than a header of one would have to be" * 9)
    with pytest.raises(PublishError, match="cannot be read"):
        find_runs(f"sqlite:///{old}", Query())
    with pytest.raises(PublishError, match="cannot be read") as caught:
        find_runs("postgresql+psycopg://user:s3cret@127.0.0.1:9/lab", Query())
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "lack",
    [*(f"DROP TABLE {table}" for table in ("publications", "origins", "labels")),
     *(f"ALTER TABLE {column}" for column in ("outcomes DROP COLUMN age_p95_ms",
                                              "runs DROP COLUMN flavor"))],
)  # fmt: skip
def test_a_database_of_an_earlier_version_is_read_once_it_was_published_into(
    tmp_path: Path, lack: str
) -> None:
    url, folder = f"sqlite:///{tmp_path / 'results.db'}", let_pass(stage(tmp_path / "first"))
    publish(folder, url)
    with sqlite3.connect(tmp_path / "results.db") as database:
        database.execute(lack)
    with pytest.raises(PublishError, match="an earlier version of Tidebench, publish"):
        find_runs(url, Query())
    publish(folder, url)
    assert find_runs(url, Query()).total == 1


RUNS = {"cheap": 10.0, "fair": 50.0, "dear": 90.0}


@pytest.fixture
def three_runs(tmp_path: Path) -> str:
    """Of two experiments, which differ in cost, BTU, seed, testbed and date."""
    url = f"sqlite:///{tmp_path / 'results.db'}"
    for number, (name, cost) in enumerate(RUNS.items()):
        tables = tables_of(name, seed=number + 1)
        tables["outcomes"][0] |= {"strict_total_cost": cost}
        tables["runs"][0] |= {
            "btu_min": 10.0 * (number + 1), "testbed": "docker" if number else "simulated",
        }  # fmt: skip
        del tables["input_checks"]
        publication = Publication(
            experiment="one" if number < 2 else "two", edition=name, checks=1,
            by=DagRun("experiment", "m"), published_at=f"2026-01-0{number + 1}T12:00:00+00:00",
        )  # fmt: skip
        with sent_rows(url, publication, tables):
            pass
    return url


def runs_found(url: str, **asked: object) -> set[str]:
    return {str(row["run"]) for row in find_runs(url, Query(**asked)).runs}


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        ({"ranges": {"cost_from": 50.0}}, {"fair", "dear"}),
        ({"ranges": {"cost_to": 50.0}}, {"cheap", "fair"}),
        ({"ranges": {"cost_from": 20.0, "cost_to": 60.0}}, {"fair"}),
        ({"ranges": {"date_from": "2026-01-02"}}, {"fair", "dear"}),
        ({"ranges": {"date_from": "2026-01-02", "date_to": "2026-01-02"}}, {"fair"}),
        ({"equal": {"btu_min": 20.0}}, {"fair"}),
        ({"equal": {"seed": 3}}, {"dear"}),
        ({"equal": {"testbed": "docker"}, "ranges": {"cost_to": 60.0}}, {"fair"}),
    ],
)
def test_filters_on_cost_date_btu_seed_and_testbed(
    three_runs: str, asked: dict[str, object], runs: set[str]
) -> None:
    assert runs_found(three_runs, **asked) == runs


def test_nobody_has_said_anything_of_a_run_until_somebody_does(three_runs: str) -> None:
    (row,) = find_runs(three_runs, Query(equal={"seed": 1})).runs
    assert (row["tags"], row["note"], bool(row["archived"])) == ("", "", False)
    assert find_runs(three_runs, Query(tag="paper")).total == 0
    assert find_runs(three_runs, Query(shown="archived")).total == 0


def test_what_is_said_of_a_run_is_found_again_and_changes_no_other(three_runs: str) -> None:
    labels = Change(tags=["paper", "draft_2"], note="It was cold.\nVery.")
    assert change_labels(three_runs, [("one", "cheap"), ("one", "none")], labels, "ada") == 1
    both = [("one", "cheap"), ("two", "dear")]
    assert change_labels(three_runs, both, Change(add_tags=["x"]), "a") == 2
    (tables,) = read_runs(three_runs, [("one", "cheap")])
    assert tables is not None
    (row,) = tables["runs"]
    assert row["tags"].split() == ["paper", "draft_2", "x"]
    assert (row["note"], row["changed_by"]) == ("It was cold.\nVery.", "a")
    assert runs_found(three_runs, tag="paper") == {"cheap"}
    assert runs_found(three_runs, tag="x") == {"cheap", "dear"}
    assert runs_found(three_runs, tag="draft%2") == set(), "a tag is no pattern"
    assert runs_found(three_runs, tag="pape") == set(), "and no part of one"
    assert find_runs(three_runs, Query()).tags == ["draft_2", "paper", "x"]


def test_an_archived_run_is_left_out_until_it_is_asked_for(three_runs: str) -> None:
    change_labels(three_runs, [("one", "fair")], Change(archived=True), "ada")
    assert runs_found(three_runs) == {"cheap", "dear"}
    assert runs_found(three_runs, shown="archived") == {"fair"}
    assert runs_found(three_runs, shown="all") == set(RUNS)
    assert read_runs(three_runs, [("one", "fair")]) != [None], "its page is there all the same"
    change_labels(three_runs, [("one", "fair")], Change(archived=False), "ada")
    assert runs_found(three_runs) == set(RUNS)


def test_labels_that_somebody_else_has_changed_meanwhile_are_not_replaced(three_runs: str) -> None:
    run = [("one", "cheap")]
    change_labels(three_runs, run, Change(note="hers", seen=""), "ada")
    change_labels(three_runs, run, Change(note="hers", seen=""), "ada")  # a double click
    with pytest.raises(SpecError, match="ada has changed them since"):
        change_labels(three_runs, run, Change(note="his", seen=""), "bob")
    (tables,) = read_runs(three_runs, run)
    assert tables is not None
    seen = tables["runs"][0]["changed_at"]
    change_labels(three_runs, run, Change(note="ours", seen=seen), "bob")
    (row,) = find_runs(three_runs, Query(equal={"experiment": "one"}, text="cheap")).runs
    assert row["note"] == "ours"


def test_publishing_again_leaves_labels_and_removing_a_run_removes_them(
    three_runs: str, tmp_path: Path
) -> None:
    change_labels(three_runs, [("two", "dear")], Change(tags=["keep"]), "ada")
    tables = tables_of("dear")
    del tables["input_checks"]
    with sent_rows(three_runs, Publication(experiment="two", edition="2", checks=1), tables):
        pass
    assert runs_found(three_runs, tag="keep") == {"dear"}
    with removed_rows(three_runs, "two", ["dear"]):
        pass
    with sqlite3.connect(tmp_path / "results.db") as database:
        assert database.execute("SELECT count(*) FROM labels").fetchone() == (0,)


def test_tags_of_two_people_at_once_are_all_kept(three_runs: str) -> None:
    def add(tag: str) -> int:
        return change_labels(three_runs, [("one", "cheap")], Change(add_tags=[tag]), "ada")

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(add, (tags := [f"t{k}" for k in range(12)]))) == {1}
    (row,) = find_runs(three_runs, Query(text="cheap")).runs
    assert sorted(row["tags"].split()) == sorted(tags)


def test_tags_are_words_and_every_problem_is_told_at_once(three_runs: str) -> None:
    assert tags_in("Paper, #draft  paper") == ["paper", "draft"]
    too_many = " ".join(f"t{k}" for k in range(12))
    assert len(problems_told(tags_in, f"a' -b <c> {too_many}")) == 4
    change_labels(three_runs, [("one", "cheap")], Change(tags=[f"t{k}" for k in range(12)]), "ada")
    with pytest.raises(SpecError, match="at most 12 tags"):
        change_labels(three_runs, [("one", "cheap")], Change(add_tags=["one-more"]), "ada")
    with pytest.raises(SpecError, match="at most 2000 letters"):
        change_labels(three_runs, [("one", "cheap")], Change(note="x" * 2001), "ada")
