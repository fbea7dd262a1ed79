"""Parse every DAG file as Airflow does and print, as JSON, what the policy tests look at.

Runs as a process of its own, because Airflow reads its configuration when it is imported.
"""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Any

HEAVY = ("great_expectations", "matplotlib", "numba", "openstack", "pandas", "pyspark", "scipy")

TOO_LARGE = 10**30


def main(folder: str) -> None:
    """Print imports, errors and DAGs of ``folder``."""
    from airflow.dag_processing.dagbag import DagBag

    imported_before, begin_s = set(sys.modules), time.perf_counter()
    bag = DagBag(folder)
    parsed = {
        "parse_s": time.perf_counter() - begin_s,
        "heavy": sorted(set(HEAVY) & (set(sys.modules) - imported_before)),
        "import_errors": bag.import_errors,
        "dags": {dag_id: dag_facts(dag) for dag_id, dag in bag.dags.items()},
    }
    sys.stdout.write("\n" + json.dumps(parsed))


def dag_facts(dag: Any) -> dict[str, Any]:
    """What is promised of a DAG."""
    return {
        "file": dag.fileloc,
        "doc": dag.doc_md or "",
        "tags": sorted(dag.tags),
        "description": dag.description,
        "timeout_s": dag.dagrun_timeout.total_seconds() if dag.dagrun_timeout else None,
        "schedule": dag.schedule,
        "paused": dag.is_paused_upon_creation,
        "catchup": dag.catchup,
        "max_active_runs": dag.max_active_runs,
        "max_active_tasks": dag.max_active_tasks,
        "params": {name: dag.params.get_param(name).dump() for name in dag.params},
        "takes_too_large": sorted(params_that_take_too_large(dag)),
        "tasks": {task.task_id: task_facts(task) for task in dag.tasks},
    }


def params_that_take_too_large(dag: Any) -> set[str]:
    """Params with which Airflow accepts a trigger although their number fits into no message."""
    from airflow.serialization.serialized_objects import DagSerialization
    from jsonschema import ValidationError

    params = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).params
    taken = set()
    for name in params:
        for value in (TOO_LARGE, -TOO_LARGE, [TOO_LARGE], [{"seeds": [TOO_LARGE]}]):
            try:
                params.deep_merge({name: value}).get_param(name).resolve(raises=True)
            except ValidationError:
                continue
            taken.add(name)
    return taken


def task_facts(task: Any) -> dict[str, Any]:
    """What is promised of a task, mapped or not."""
    from tidebench.waiting import PollingSensor

    keywords = getattr(task, "partial_kwargs", {})
    return {
        "retries": task.retries,
        "retry_delay_s": task.retry_delay.total_seconds(),
        "timeout_s": task.execution_timeout.total_seconds() if task.execution_timeout else None,
        "setup": task.is_setup,
        "teardown": task.is_teardown,
        "fails_the_run": bool(getattr(task, "on_failure_fail_dagrun", False)),
        "trigger_rule": task.trigger_rule.value,
        "mapped": task.is_mapped,
        "upstream": sorted(task.get_flat_relative_ids(upstream=True)),
        "name_of_copy": keywords.get(
            "map_index_template", getattr(task, "map_index_template", None)
        ),
        "measured": [name for name in ("run_ids", "cells") if getattr(task, name, ()) != ()],
        "pulls": sorted(pulled_tasks(task)),
        "outlets": [[asset.name, asset.uri] for asset in task.outlets],
        "places": getattr(task, "places", None),
        "at_once": keywords.get("max_active_tis_per_dagrun"),
        "sensor": {
            "timeout": keywords.get("timeout", getattr(task, "timeout", None)),
            "in_triggerer": issubclass(getattr(task, "operator_class", type(task)), PollingSensor),
        }
        if getattr(task, "_is_sensor", False)
        else None,
    }


def pulled_tasks(task: Any) -> set[str]:
    """The tasks whose XComs the templates of a task read."""
    texts = [getattr(task, name, None) for name in task.template_fields]
    if task.is_mapped:
        texts += [*task.partial_kwargs.values(), *task._get_specified_expand_input().value.values()]
    return set(re.findall(r"xcom_pull\(task_ids=['\"]([^'\"]+)", repr(texts)))


if __name__ == "__main__":
    main(sys.argv[1])
