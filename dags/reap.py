"""
List what runs hold on testbeds that lease, and give back what dead ones have left.

A run is dead when nobody has looked after it for `after_min` minutes: a task that was killed for
good, a scheduler that is gone, a machine that lost its power. Its hosts go on costing money.

- `check_leases`: one line in the log for every run that holds a host, a server, a port, an address,
  a queue, a process or a folder, and whether it is dead
- `release_dead`: gives all of it back; skipped unless `remove` is set

Runs when it is triggered, and every hour if `TIDEBENCH_SCHEDULES` in the environment of Airflow
names it. By default it only lists; `TIDEBENCH_REAP=remove` there makes `remove` the default. The
same as `tidebench reap`.
"""

from __future__ import annotations

import os
from datetime import timedelta

from airflow.sdk import dag

from include.experiment.form import WITHIN_64_BITS
from tidebench import reap as tasks
from tidebench.stage import described, schedule_of

PARAMS = {
    "remove": {
        "default": os.environ.get("TIDEBENCH_REAP") == "remove",
        "type": "boolean",
        "title": "Give back",
        "description": "What dead runs hold is given back instead of listed.",
    },
    "after_min": {
        "default": 10,
        "type": "number",
        "title": "Dead after [min]",
        "description": "A run that nobody has looked after for so long is dead; at least 1.",
        "allOf": [WITHIN_64_BITS],
    },
}

SHORT = {"execution_timeout": timedelta(minutes=20)}


@dag(
    **described(__doc__, PARAMS),
    schedule=schedule_of("reap"),
    max_active_runs=1,
    dagrun_timeout=timedelta(minutes=50),
    tags=["testbeds"],
)
def reap() -> None:
    check = tasks.CheckLeases(task_id="check_leases", **SHORT)
    check >> tasks.ReleaseDead(task_id="release_dead", **SHORT)


reap()
