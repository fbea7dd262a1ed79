"""How far a DAG run has come and what it is called, from what Airflow knows of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tidebench.naming import name_of
from tidebench.page.advance import TAIL, TasksInState, advance_of

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TOOK_S = dict.fromkeys(TAIL, 20.0)
REPORT = ("build_tables", "check_tables", "publish_report")
UNBEGUN = [TasksInState(task_id=task, state=None, count=1) for task in REPORT]


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def windows(
    state: str | None,
    count: int,
    *,
    began: float | None = None,
    ended: float | None = None,
    highest: int = 11,
    task: str = "control_window",
    fresh: bool = True,
) -> TasksInState:
    return TasksInState(
        task_id=task, state=state, count=count, highest=highest, fresh=fresh,
        began=None if began is None else ago(began), ended=None if ended is None else ago(ended),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("wait_for_turn", "waits for its turn"),
        ("provision_testbed", "provisions the testbed"),
        ("publish_report", "publishes the report"),
    ],
)
def test_what_is_at_work_beside_the_windows_is_said(task: str, words: str) -> None:
    tasks = [TasksInState(task_id=task, state="running", count=1), windows(None, 1, highest=-1)]
    assert advance_of(tasks, NOW, {}).text == words


def test_the_window_under_way_is_counted_and_the_rest_takes_as_long_as_those_before() -> None:
    tasks = [
        windows("success", 3, began=31, ended=1, highest=2),
        windows("running", 1, began=1, highest=3),
        windows(None, 8),
        *UNBEGUN,
    ]
    advance = advance_of(tasks, NOW, TOOK_S)
    assert (advance.text, advance.done, advance.total) == ("window 4 of 12", 3, 12)
    assert advance.to_go_s == 9 * 600 - 60 + 3 * 20
    assert advance.to_go == "about 1.5 h"


def test_what_was_never_seen_makes_it_at_least() -> None:
    tasks = [windows("success", 11, began=22, ended=0), windows("running", 1, began=0), *UNBEGUN]
    assert advance_of(tasks, NOW, {}).to_go == "at least 2 min"
    assert advance_of(tasks, NOW, TOOK_S).to_go == "about 3 min"


def test_before_the_first_window_has_ended_only_real_time_says_how_long() -> None:
    tasks = [windows("running", 1, began=4, highest=0), windows(None, 11), *UNBEGUN]
    assert advance_of(tasks, NOW, TOOK_S).to_go_s is None
    assert advance_of(tasks, NOW, TOOK_S, part_s=600).to_go_s == 12 * 600 - 240 + 60


def test_after_a_clear_only_what_is_measured_anew_says_how_long() -> None:
    kept = windows("success", 3, began=500, ended=490, highest=2, fresh=False)
    cleared = windows(None, 9, began=480, ended=470, fresh=False)
    assert advance_of([kept, cleared, *UNBEGUN], NOW, TOOK_S).to_go == ""
    again = windows("success", 1, began=10, ended=0, highest=3)
    left = windows(None, 8, began=470, ended=470, fresh=False)
    assert advance_of([kept, again, left, *UNBEGUN], NOW, TOOK_S).to_go_s == 8 * 600 + 60


@pytest.mark.parametrize(
    ("states", "text", "to_go_s"),
    [
        (("success", "running", None), "checks the tables", 40),
        (("success", "success", None), "publishes the report", 20),
    ],
)
def test_behind_the_last_window_only_the_tables_are_left(
    states: tuple[str | None, ...], text: str, to_go_s: float
) -> None:
    """Between two of these tasks the next one is said."""
    behind = [
        TasksInState(task_id=task, state=state, count=1)
        for task, state in zip(REPORT, states, strict=True)
    ]
    advance = advance_of([windows("success", 12, began=60, ended=1), *behind], NOW, TOOK_S)
    assert (advance.text, advance.to_go_s) == (text, to_go_s)
    assert advance.done == advance.total == 12


def test_of_a_matrix_the_way_counts_that_was_chosen() -> None:
    tasks = [
        windows("success", 2, began=4, ended=0, highest=1, task="measure_cell"),
        windows("running", 2, began=1, highest=3, task="measure_cell"),
        windows("skipped", 1, highest=-1, task="cell_run.wait_for_run"),
    ]
    assert advance_of(tasks, NOW, TOOK_S).text == "cell 3 of 4"


def test_an_overdue_estimate_is_not_negative() -> None:
    tasks = [windows("success", 11, began=23, ended=12), windows("running", 1, began=12)]
    assert advance_of(tasks, NOW, TOOK_S).to_go == "less than a minute"


def test_nothing_is_said_of_nothing() -> None:
    advance = advance_of([], NOW, {})
    assert (advance.text, advance.to_go, advance.total) == ("", "", 0)


@pytest.mark.parametrize(
    ("dag_id", "params", "name"),
    [
        (
            "experiment",
            {"experiment": "try-one", "controller": "threshold", "pattern": "stepwise", "seed": 1},
            "try-one · threshold · stepwise · seed 1",
        ),
        (
            "experiment_batch",
            {"experiment": "many", "controllers": ["a", "b", "c", "d"], "patterns": ["stepwise"],
             "seeds": ["1-5"]},
            "many · a, b, c and 1 more · stepwise · seeds 1-5",
        ),
        ("experiment_batch", {"spec": "/x/tournament.yaml"}, "matrix of tournament"),
        ("sweep", {"spec": "specs/fine.yaml"}, "sweep of fine"),
        ("remove_runs", {"experiment": "one", "runs": ["r1"]}, "one · remove r1"),
        ("advise", {"name": "ads", "recording": "/x/ads.csv"}, "ads · advice on ads.csv"),
        ("shadow_report", {"shadow": "s", "day": "2026-01-01"}, "s · day 2026-01-01"),
        (
            "nightly_reproducibility", {"studies": ["peerj", "henge"]},
            "reproducibility · peerj, henge",
        ),
        ("reap", {}, ""),
    ],
)  # fmt: skip
def test_a_dag_run_is_called_after_what_it_measures(
    dag_id: str, params: dict[str, object], name: str
) -> None:
    assert name_of(dag_id, params) == name


def test_whatever_is_typed_gives_one_short_line() -> None:
    typed = {"experiment": "a\nb" * 99, "controller": None, "pattern": {"x": 1}, "seed": [[]]}
    name = name_of("experiment", typed)
    assert "\n" not in name
    assert len(name) < 250
