"""
Say what the controllers of a shadow would have cost and left late on one day, beside the bound.

- `resolve_day`: cuts the day out of what the shadow has recorded, and tells every problem at once
- `replay_policy`: one task per controller replays it over the day with every seed
- `build_ranking`: ranks them, and a gate checks the ranking
- `publish_day`: the page with the verdict, the ranking, and the day's decisions and events

The same as `tidebench verdict STATE --day DAY`. `docs/service.md` says how a shadow begins. This
runs when triggered and, if `TIDEBENCH_SCHEDULES` in Airflow's environment names it, at half past
midnight (UTC) for the day before. Results: `advice-<shadow>-<day>`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import dag

from include.advise.form import shadow_params
from tidebench import advice
from tidebench.stage import described, schedule_of

OF = {"experiment": "{{ ti.xcom_pull(task_ids='resolve_day', key='experiment') }}"}


@dag(
    **described(__doc__, shadow_params()),
    dag_id="shadow_report",
    schedule=schedule_of("shadow_report"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    max_active_runs=1,
    max_active_tasks=2,  # a replay keeps one core busy; a slot of three stays for other DAGs
    dagrun_timeout=timedelta(days=1),
    tags=["advice"],
)
def shadow_report() -> None:
    resolve = advice.ResolveShadowDay(task_id="resolve_day")
    replay = advice.MeasurePolicy.partial(task_id="replay_policy", **OF, **advice.NAMED).expand(
        policy=resolve.output
    )
    build = advice.BuildRanking(task_id="build_ranking", **OF)
    publish = advice.PublishAdvice(task_id="publish_day", **OF)

    replay >> build >> publish


shadow_report()
