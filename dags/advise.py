"""
Say which policy would have run a recorded job at the lowest cost while its objective held.

- `resolve_advice`: reads the recording and the prices, and tells every problem at once
- `replay_policy`: one task per policy replays it over the recorded load with every seed
- `build_ranking`: ranks them, and a gate checks the ranking
- `publish_advice`: the page with the answer, what to paste, and the model as an experiment; fails
  then if a controller failed in its replay

The same as `tidebench advise`, byte for byte. `docs/advise.md` has what a recording
needs and what the answer cannot know. What was read is kept: cleared tasks behind `resolve_advice`
work on the same recording. A newer DAG run of the same name takes its place.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag

from include.advise.form import advice_params
from tidebench import advice
from tidebench.stage import described

OF = {"experiment": "{{ ti.xcom_pull(task_ids='resolve_advice', key='experiment') }}"}


@dag(
    **described(__doc__, advice_params()),
    dag_id="advise",
    max_active_runs=1,
    max_active_tasks=2,  # a replay keeps one core busy; a slot of three stays for other DAGs
    dagrun_timeout=timedelta(days=1),
    tags=["advice"],
)
def advise() -> None:
    resolve = advice.ResolveAdvice(task_id="resolve_advice")
    replay = advice.MeasurePolicy.partial(task_id="replay_policy", **OF, **advice.NAMED).expand(
        policy=resolve.output
    )
    build = advice.BuildRanking(task_id="build_ranking", **OF)
    publish = advice.PublishAdvice(task_id="publish_advice", **OF)

    replay >> build >> publish


advise()
