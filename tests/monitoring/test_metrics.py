"""What the endpoint says of a run is what the run has stored, window after window."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from prometheus_client import CollectorRegistry

from include.experiment.spec import Choice, RunSpec
from include.runs import stages
from include.runs.measurements.parquet import read_parquet
from include.runs.measurements.window import read_window
from include.runs.monitoring.collector import METRICS, OF_ALL, RunsCollector
from include.runs.monitoring.progress import RunProgress
from include.runs.stored import stored_run
from tests.builders import begun, run_spec

LEVEL = "near_real_time"


def a_spec(**changes: object) -> RunSpec:
    return run_spec(**({"experiment": "watched", "btu_min": 5, "seed": 3} | changes))


class Endpoint:
    """What a scrape finds."""

    def __init__(self, root: Path, most: int = 20, within_s: float = 3600) -> None:
        self.collector = RunsCollector(root, within_s, most)
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self.collector)

    def scrape(self) -> dict[str, dict[tuple[str, ...], float]]:
        """Values by name and labels, without those of every run."""
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for family in self.registry.collect():
            for sample in family.samples:
                own = {k: v for k, v in sample.labels.items() if k not in ("experiment", "run")}
                found.setdefault(sample.name.removeprefix("tidebench_"), {})[
                    tuple(own.values())
                ] = sample.value
        return found


def test_what_nothing_was_committed_of_is_absent(data_root: Path) -> None:
    begun(a_spec(), data_root, 0)
    seen = Endpoint(data_root).scrape()
    assert seen["windows_committed"] == {(): 0}
    assert seen["run_complete"] == {(): 0}
    assert seen["windows"] == {(): 4}
    known = {
        "run_info", "run_complete", "windows", "windows_committed", "run_duration_seconds",
    }  # fmt: skip
    assert set(seen) == known | set(OF_ALL)


def test_queues_and_instances_are_those_of_the_last_reading(data_root: Path) -> None:
    store = begun(a_spec(), data_root, 2)
    rows = read_window(store.rows(1))["queue"].to_pylist()
    last_s = max(row["time_s"] for row in rows)
    last = {(row["operator"],): row for row in rows if row["time_s"] == last_s}
    seen = Endpoint(data_root).scrape()
    assert last
    for name in ("waiting_items", "instances", "ready_instances"):
        assert seen[name] == {operator: row[name] for operator, row in last.items()}
    assert seen["run_time_seconds"] == {(): 600}


def test_recommended_is_what_was_seen_with_all_of_the_last_decision(data_root: Path) -> None:
    """Also what was refused: that is what the two differ by."""
    checked = changed = 0
    for windows in range(1, 8):
        root = data_root / str(windows)
        store = begun(a_spec(btu_min=2.5), root, windows)
        read = {
            table: [
                row
                for window in range(windows)
                for row in read_window(store.rows(window))[table].to_pylist()
            ]
            for table in ("decision", "queue")
        }
        at_s = max(row["time_s"] for row in read["decision"])
        expected = {}
        for row in read["queue"]:
            if row["time_s"] <= at_s:
                expected[row["operator"],] = row["instances"]
        before = dict(expected)
        for row in read["decision"]:
            if row["time_s"] == at_s and row["action"] == "start_instance":
                expected[row["operator"],] += 1
            if row["time_s"] == at_s and row["action"] == "stop_instance":
                expected[row["operator"],] -= 1
        assert Endpoint(root).scrape()["recommended_instances"] == expected
        checked += 1
        changed += before != expected
    assert checked == 7
    assert changed, "in no window did the last decision change anything"


def test_what_advisors_would_have_is_that_of_their_last_advice(data_root: Path) -> None:
    advisors = (Choice("keda", {}), Choice("tide", {"care": 2}))
    spec, endpoint = a_spec(advisors=advisors), Endpoint(data_root)
    for windows in (1, spec.windows):
        store = begun(spec, data_root, windows)
        is_whole = windows == spec.windows
        read = (
            read_parquet(store.whole("advice"))
            if is_whole
            else read_window(store.rows(0))["advice"]
        )
        rows = read.to_pylist()
        last = {(row["advisor"], row["operator"]): row for row in rows}
        seen = endpoint.scrape()
        assert {advisor for advisor, _ in last} == {"keda", "tide care=2"}
        assert seen["advised_instances"] == {
            key: row["advised_instances"] for key, row in last.items()
        }
        assert seen["advised_hosts"] == {
            (advisor,): row["hosts"] + row["would_lease"] - row["would_release"]
            for (advisor, _), row in last.items()
        }
        assert seen["advice_failed_total"] == {("keda",): 0, ("tide care=2",): 0}
        assert Endpoint(data_root).scrape() == seen


def test_counts_of_a_run_under_way_go_on_to_those_of_the_complete_one(data_root: Path) -> None:
    """Read window after window or all at once, before its rows are gathered and after."""
    spec, endpoint = a_spec(), Endpoint(data_root)
    store = begun(spec, data_root, 1)
    first = endpoint.scrape()
    for window in range(1, spec.windows):
        stages.control_windows(spec, data_root, window, window)
        now = endpoint.scrape()
        assert now["windows_committed"] == {(): window + 1}
        assert now["samples_total"][()] > first["samples_total"][()]
    stages.release(spec, data_root)
    assert endpoint.scrape() == Endpoint(data_root).scrape()  # that one reads whole files

    seen = endpoint.scrape()
    assert seen["run_complete"] == {(): 1}
    rows = pq.ParquetFile(store.whole("decision")).read().to_pylist()
    assert sum(seen["decisions_total"].values()) == len(rows)
    refused = sum(not row["accepted"] for row in rows)
    told = sum(v for (_, _, accepted), v in seen["decisions_total"].items() if accepted == "false")
    assert told == refused
    samples = pq.ParquetFile(store.whole("processing_duration")).read().num_rows
    assert seen["samples_total"] == {(): samples}
    share = seen["samples_within_total"][LEVEL,] / samples
    assert seen["compliance_ratio"][LEVEL,] == share


def test_leases_and_costs_are_those_of_the_lease_log(data_root: Path) -> None:
    """At the end of the run; before, of what every window has committed."""
    spec = a_spec(btu_min=2.5)
    store = begun(spec, data_root, 0)
    endpoint, costs = Endpoint(data_root), []
    for window in range(spec.windows):
        stages.control_windows(spec, data_root, window, window)
        costs.append(endpoint.scrape()["resource_cost"])
    seen = endpoint.scrape()
    log = pq.ParquetFile(store.part("lease", 0)).read().to_pylist()
    ended = sum(row["released"] for row in log)
    assert ended, "no lease ended before the run"
    assert seen["leases"] == {("open",): len(log) - ended, ("ended",): ended}
    run = stages.load_run(spec, data_root)
    for book in run.price_books:
        own = book.btu_s == spec.btu_min * 60
        assert seen["resource_cost"][book.name,] == sum(
            book.resource_cost(
                row["ended_s"] - row["ordered_s"],
                row["paid_until_s"] - row["ordered_s"] if own else 0.0,
            )
            for row in log
        )
        late = seen["samples_total"][()] - seen["samples_within_total"][LEVEL,]
        items = late * run.calibration["sample_every_items"]
        assert seen["penalty_cost"][book.name, LEVEL] == items * book.penalty_per_item
        so_far = [cost[book.name,] for cost in costs]
        assert so_far == sorted(so_far), "what is paid stays paid"


def test_the_newest_runs_are_shown_and_the_others_counted(data_root: Path) -> None:
    stores = [begun(a_spec(seed=seed), data_root, 0) for seed in (1, 2, 3)]
    for age_s, store in enumerate(reversed(stores)):
        touched_s = store.run_json.stat().st_mtime - 100 * age_s
        os.utime(store.run_json, (touched_s, touched_s))
    seen = Endpoint(data_root, most=2).scrape()
    assert sorted(seed for *_, seed in seen["run_info"]) == ["2", "3"]
    assert seen["recent_runs"] == {(): 3}
    assert seen["runs_not_shown"] == {(): 1}
    assert Endpoint(data_root, within_s=50).scrape()["recent_runs"] == {(): 1}


def without_sampling(run: dict[str, Any]) -> str:
    """Costs are made of it."""
    del run["calibration"]["sample_every_items"]
    return json.dumps(run)


@pytest.mark.parametrize("damage", [lambda run: "{", without_sampling])
def test_a_damaged_run_is_counted_and_the_others_are_shown(
    data_root: Path, damage: Callable[[dict[str, Any]], str]
) -> None:
    begun(a_spec(), data_root, 1)
    hurt = begun(a_spec(seed=4), data_root, 1)
    hurt.run_json.write_text(damage(json.loads(hurt.run_json.read_text())))
    seen = Endpoint(data_root).scrape()
    assert seen["runs_unreadable"] == {(): 1}
    assert [seed for *_, seed in seen["run_info"]] == ["3"]


def damaged(commit: dict[str, Any], **values: Any) -> str:
    return json.dumps({**commit, "summary": {**commit["summary"], **values}})


@pytest.mark.parametrize(
    "damage",
    [
        lambda commit: "[]",
        lambda commit: "null",
        lambda commit: json.dumps({**commit, "summary": None}),
        lambda commit: damaged(commit, hosts="three"),
        lambda commit: damaged(commit, hosts={}),
        lambda commit: damaged(commit, samples=True),
        lambda commit: damaged(commit, samples_within=["relaxed"]),
        lambda commit: damaged(commit, scalings={"upscaling": "many"}),
        lambda commit: json.dumps({**commit, "leases": [1]}),
        lambda commit: json.dumps({**commit, "ended_leases": {"released": 3}}),
    ],
)
def test_a_damaged_commit_is_counted_and_what_came_before_stays(
    data_root: Path, damage: Callable[[dict[str, Any]], str]
) -> None:
    """However often it is asked for, nothing is counted twice."""
    begun(a_spec(), data_root, 1)
    hurt = begun(a_spec(seed=4), data_root, 2)
    endpoint = Endpoint(data_root)
    whole = hurt.commit(1).read_bytes()
    hurt.commit(1).write_text(damage(json.loads(whole)))
    for _ in range(2):
        seen = endpoint.scrape()
        assert seen["runs_unreadable"] == {(): 1}
        assert sorted(seed for *_, seed in seen["run_info"]) == ["3", "4"]
        assert seen["windows_committed"] == {(): 1}
    hurt.commit(1).write_bytes(whole)
    assert endpoint.scrape() == Endpoint(data_root).scrape()


def test_a_run_that_is_measured_anew_begins_at_nothing(data_root: Path) -> None:
    spec, endpoint = a_spec(), Endpoint(data_root)
    begun(spec, data_root, 3)
    assert endpoint.scrape()["windows_committed"] == {(): 3}
    stages.forget(spec, data_root)
    assert endpoint.scrape()["recent_runs"] == {(): 0}
    begun(spec, data_root, 1)
    assert endpoint.scrape()["windows_committed"] == {(): 1}


def test_looking_writes_nothing(data_root: Path) -> None:
    store = begun(a_spec(), data_root, 2)
    before = {path: path.stat().st_mtime_ns for path in data_root.rglob("*")}
    RunProgress(stored_run(store)).catch_up(store)
    Endpoint(data_root).scrape()
    assert {path: path.stat().st_mtime_ns for path in data_root.rglob("*")} == before


@pytest.mark.parametrize(
    ("controller", "testbed"),
    [
        ("threshold", "simulated"), ("fixed", "simulated"), ("hpa", "simulated"), ("btu", "flow")
    ],
)  # fmt: skip
def test_every_metric_that_is_named_is_there_of_any_run(
    data_root: Path, controller: str, testbed: str
) -> None:
    beside = (Choice("keda", {}),)
    begun(a_spec(controller=controller, testbed=testbed, advisors=beside), data_root, 4)
    seen = Endpoint(data_root).scrape()
    assert seen["runs_unreadable"] == {(): 0}
    missing = set(METRICS) - set(seen)
    assert missing <= {"scalings_total"}  # of what never scales
