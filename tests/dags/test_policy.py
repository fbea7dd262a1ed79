"""What every DAG of this repository promises: documented, bounded, retried, cleaned up, light."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from include.results.tables.catalogue import PUBLISHED
from infra.airflow import local
from infra.airflow.settings import service_settings

HERE = Path(__file__).parent
DAG_FILES = sorted((HERE.parents[1] / "dags").glob("*.py"))


@pytest.fixture(scope="module")
def parsed(airflow_environment: dict[str, str]) -> dict[str, Any]:
    return dump(airflow_environment)


def dump(environment: dict[str, str]) -> dict[str, Any]:
    """What every DAG promises in an environment."""
    done = subprocess.run(
        [sys.executable, HERE / "dump_dags.py", HERE.parents[1] / "dags"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


@pytest.fixture(scope="module")
def dags(parsed: dict[str, Any]) -> dict[str, Any]:
    dags: dict[str, Any] = parsed["dags"]
    return dags


@pytest.fixture(scope="module")
def tasks(dags: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{dag_id}.{task_id}": task
        for dag_id, dag in dags.items()
        for task_id, task in dag["tasks"].items()
    }


def test_every_dag_file_gives_a_dag(parsed: dict[str, Any]) -> None:
    assert parsed["import_errors"] == {}
    assert sorted({dag["file"] for dag in parsed["dags"].values()}) == [str(f) for f in DAG_FILES]


def test_up_waits_for_every_dag(dags: dict[str, Any]) -> None:
    assert set(dags) == local.DAGS


def test_parsing_imports_nothing_heavy(parsed: dict[str, Any]) -> None:
    print(f"{len(DAG_FILES)} DAG files parsed in {parsed['parse_s']:.2f} s")
    assert parsed["heavy"] == []


def test_every_dag_is_documented_tagged_and_bounded(dags: dict[str, Any]) -> None:
    for dag_id, dag in dags.items():
        for fact in ("doc", "description", "tags", "timeout_s"):
            assert dag[fact], (dag_id, fact)


def test_every_parameter_explains_itself_in_the_form(dags: dict[str, Any]) -> None:
    for dag_id, dag in dags.items():
        for name, param in dag["params"].items():
            assert param["schema"].get("title"), (dag_id, name)
            assert param["description"] or param["schema"].get("description_md"), (dag_id, name)


def test_the_form_neither_clamps_nor_answers_with_a_regular_expression(
    dags: dict[str, Any],
) -> None:
    """It would change what was typed without a word; tasks say what is wrong instead."""
    limits = {
        "exclusiveMaximum", "exclusiveMinimum", "maximum", "maxItems", "maxLength",
        "minimum", "minItems", "minLength", "multipleOf", "pattern",
    }  # fmt: skip
    limited = {
        (dag_id, name): sorted(
            limits & {*param["schema"]} | {*param["schema"].get("items", ())} - {"type"}
        )
        for dag_id, dag in dags.items()
        for name, param in dag["params"].items()
    }
    # A night without a study is none, and nothing is changed by refusing it.
    assert {where: by for where, by in limited.items() if by} == {
        ("nightly_reproducibility", "studies"): ["minItems"]
    }


def test_a_number_that_no_task_can_be_handed_is_refused_at_the_trigger(
    dags: dict[str, Any],
) -> None:
    assert sum(len(dag["params"]) for dag in dags.values()) > 50
    taken = {dag_id: dag["takes_too_large"] for dag_id, dag in dags.items()}
    assert {dag_id: names for dag_id, names in taken.items() if names} == {}


def test_every_task_is_retried_after_a_while_and_ends(tasks: dict[str, Any]) -> None:
    for task_id, task in tasks.items():
        assert task["retries"] >= 1, task_id
        assert task["retry_delay_s"] >= 5, task_id
        assert task["timeout_s"], task_id


def test_what_waits_ends_in_the_triggerer_and_gives_up(tasks: dict[str, Any]) -> None:
    """apache/airflow issue 71172: an executor that reports late fails what is queued again."""
    sensors = {task_id: task["sensor"] for task_id, task in tasks.items() if task["sensor"]}
    assert sensors
    for task_id, sensor in sensors.items():
        assert sensor["in_triggerer"], task_id
        assert 0 < sensor["timeout"] < 7 * 86400, task_id


def test_who_changes_an_experiment_has_its_turn_first(dags: dict[str, Any]) -> None:
    """Also before a night forgets what the last one measured, and before runs are removed."""
    changes = {
        f"{dag_id}.{name}": task["upstream"]
        for dag_id, dag in dags.items()
        for name, task in dag["tasks"].items()
        if name in {"provision_testbed", "measure_cell", "measure_points", "remove_runs"}
        or (dag_id, name) == ("nightly_reproducibility", "resolve_matrix")
    }
    assert len(changes) == 6
    assert [name for name, upstream in changes.items() if "wait_for_turn" not in upstream] == []


def test_a_task_follows_those_whose_xcoms_its_templates_read(tasks: dict[str, Any]) -> None:
    """Airflow draws no edge for a text with a template in it; too early it reads None."""
    pulls = {name: task["pulls"] for name, task in tasks.items() if task["pulls"]}
    assert pulls["experiment_batch.wait_for_turn"] == ["resolve_matrix"]
    assert pulls["advise.replay_policy"] == ["resolve_advice"]
    early = {name: set(read) - {*tasks[name]["upstream"]} for name, read in pulls.items()}
    assert {name: missing for name, missing in early.items() if missing} == {}


def test_more_may_wait_than_measure(dags: dict[str, Any]) -> None:
    """Else those that wait for a matrix keep its own DAG runs queued."""
    wait = dags["experiment"]["tasks"]["wait_for_turn"]
    assert 0 < wait["places"] < dags["experiment"]["max_active_runs"]
    assert wait["sensor"]["timeout"] < dags["experiment"]["timeout_s"]


def test_what_is_provisioned_is_released_or_the_run_fails(dags: dict[str, Any]) -> None:
    for dag_id, dag in dags.items():
        setups = {name for name, task in dag["tasks"].items() if task["setup"]}
        teardowns = {name: task for name, task in dag["tasks"].items() if task["teardown"]}
        assert bool(setups) == bool(teardowns), dag_id
        for name, teardown in teardowns.items():
            assert teardown["fails_the_run"], (dag_id, name)
            assert setups <= set(teardown["upstream"]), (dag_id, name)


def test_windows_follow_each_other_and_the_testbed_outlives_them(dags: dict[str, Any]) -> None:
    tasks = dags["experiment"]["tasks"]
    assert tasks["control_window"]["at_once"] == 1
    assert "control_window" in tasks["release_testbed"]["upstream"]
    assert "provision_testbed" in tasks["control_window"]["upstream"]


def test_nothing_is_published_unchecked(dags: dict[str, Any]) -> None:
    publishing = {dag_id: dag for dag_id, dag in dags.items() if "publish_report" in dag["tasks"]}
    assert len(publishing) >= 4
    for dag_id, dag in publishing.items():
        tasks = dag["tasks"]
        assert {"build_tables", "check_tables"} <= set(tasks["publish_report"]["upstream"]), dag_id
        assert "build_tables" in tasks["check_tables"]["upstream"], dag_id


def test_what_publishes_tells_who_is_scheduled_on_its_tables(tasks: dict[str, Any]) -> None:
    """By names and URIs that others have written into their DAGs: they never change."""
    outlets = {task_id: dict(task["outlets"]) for task_id, task in tasks.items() if task["outlets"]}
    report = {f"tidebench.{table}": f"x-tidebench://published/{table}" for table in PUBLISHED}
    for task_id in ("advise.publish_advice", "shadow_report.publish_day"):
        assert outlets.pop(task_id) == {
            "tidebench.advice_ranking": "x-tidebench://published/advice_ranking"
        }
    assert set(outlets) == {task_id for task_id in tasks if task_id.endswith(".publish_report")}
    assert [task_id for task_id, assets in outlets.items() if assets != report] == []


def test_who_measures_fails_when_its_own_runs_are_left_out(dags: dict[str, Any]) -> None:
    measured = {
        dag_id: dag["tasks"]["publish_report"]["measured"]
        for dag_id, dag in dags.items()
        if "publish_report" in dag["tasks"]
    }
    assert measured == {
        "experiment": ["run_ids"],
        "experiment_batch": ["cells"],
        "nightly_reproducibility": ["cells"],
        "sweep": ["run_ids"],
        "remove_runs": [],  # it measures nothing
    }


def test_copies_of_a_task_are_told_apart_by_name(tasks: dict[str, Any]) -> None:
    mapped = {task_id: task["name_of_copy"] for task_id, task in tasks.items() if task["mapped"]}
    assert mapped
    assert [task_id for task_id, name in mapped.items() if not name] == []


def test_a_matrix_reports_what_is_complete_and_fails_for_what_is_not(dags: dict[str, Any]) -> None:
    matrices = {dag_id: dag["tasks"] for dag_id, dag in dags.items() if "measure_cell" in str(dag)}
    assert set(matrices) >= {"experiment_batch", "nightly_reproducibility"}
    for dag_id, tasks in matrices.items():
        despite = {name for name, task in tasks.items() if task["trigger_rule"] != "all_success"}
        assert despite == {"build_tables", "check_cells"}, dag_id
        assert "measure_cell" in tasks["check_cells"]["upstream"], dag_id
        assert "check_cells" not in tasks["publish_report"]["upstream"], dag_id
    ways = {"measure_cell", "cell_run.wait_for_run"}
    for follows in ("build_tables", "check_cells"):
        assert ways <= set(matrices["experiment_batch"][follows]["upstream"])
    assert "choose_way" in matrices["experiment_batch"]["cell_run.trigger_run"]["upstream"]


def test_a_failed_task_fails_the_dag_run(dags: dict[str, Any]) -> None:
    """Airflow looks at the last tasks only: each must have failed, or be behind what failed."""
    for dag_id, dag in dags.items():
        tasks = dag["tasks"]
        followed = {name for task in tasks.values() for name in task["upstream"]}
        for name in tasks.keys() - followed:
            last = tasks[name]
            assert (
                last["trigger_rule"] == "all_success"
                or name == "check_cells"
                or (last["teardown"] and last["fails_the_run"])
            ), (dag_id, name)


def test_what_is_triggered_begins_and_nothing_runs_by_itself(dags: dict[str, Any]) -> None:
    """Airflow queues what is triggered in a paused DAG for ever."""
    assert {dag_id for dag_id, dag in dags.items() if dag["paused"] is not False} == set()
    assert {dag_id: dag["schedule"] for dag_id, dag in dags.items() if dag["schedule"]} == {}


def test_what_runs_by_itself_on_request_runs_once_at_a_time_and_not_for_the_past(
    airflow_environment: dict[str, str],
) -> None:
    asked = {"TIDEBENCH_SCHEDULES": "reap, nightly_reproducibility"}
    dags = dump(airflow_environment | asked)["dags"]
    scheduled = {dag_id: dag for dag_id, dag in dags.items() if dag["schedule"]}
    assert {dag_id: dag["schedule"] for dag_id, dag in scheduled.items()} == {
        "nightly_reproducibility": "0 2 * * *",
        "reap": "17 * * * *",
    }
    for dag in scheduled.values():
        assert dag["catchup"] is False
        assert dag["max_active_runs"] == 1
        assert dag["timeout_s"] < 86400


def test_a_schedule_for_what_has_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidebench.stage import SCHEDULES, schedule_of

    assert tuple(SCHEDULES) == local.SCHEDULED  # refused before Airflow starts
    monkeypatch.setenv("TIDEBENCH_SCHEDULES", "nightly")
    with pytest.raises(ValueError, match="names nightly; it may name nightly_reproducibility"):
        schedule_of("reap")


def test_advice_leaves_a_slot_to_the_parameters_of_others(dags: dict[str, Any]) -> None:
    slots = int(service_settings(8080)["AIRFLOW__CORE__PARALLELISM"])
    advise = dags["advise"]
    assert advise["max_active_runs"] * advise["max_active_tasks"] < slots
