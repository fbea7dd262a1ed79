"""The tasks of the DAG `advise` where a controller fails: as the command, and no success."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from include.controllers.fixed import Fixed
from tests.advise.synthetic import write_small_recording
from tests.dags.ends import fails_for_good

FOLDER, FAILED = {"experiment": "advice-mine"}, "Hopeless failed at 60 s: ValueError: no idea"


@dataclass(frozen=True, kw_only=True)
class Hopeless(Fixed):
    """Can be built, and never decides."""

    def decide(self, memory: Any, observation: Any) -> Any:
        raise ValueError("no idea")


def replayed(root: Path, *controllers: str) -> Any:
    """The context of the tasks behind the replays of a DAG run."""
    from airflow.sdk.execution_time.context import OutletEventAccessors

    from tidebench.advice import MeasurePolicy, ResolveAdvice

    write_small_recording(root / "job.csv")
    asked = {"recording": str(root / "job.csv"), "objective": "90 % within 1 s", "seeds": 1}
    params = {"name": "mine", "controllers": [*controllers], **asked}
    ti = SimpleNamespace(xcom_push=lambda key, value: None)
    context: Any = {"params": params, "ti": ti, "outlet_events": OutletEventAccessors()}
    for policy in ResolveAdvice(task_id="resolve_advice").execute(context):
        MeasurePolicy(task_id="replay_policy", policy=policy, **FOLDER).execute(context)
    return context


def test_where_a_controller_fails_the_others_are_published_and_then_the_dag_run_fails(
    data_root: Path,
) -> None:
    from tidebench.advice import BuildRanking, PublishAdvice

    context = replayed(data_root, f"{__name__}:Hopeless", "hpa")
    BuildRanking(task_id="build_ranking", **FOLDER).execute(context)
    with fails_for_good(match=FAILED):
        PublishAdvice(task_id="publish_advice", **FOLDER).execute(context)

    published = data_root / "advice-mine" / "published"
    assert f"Not ranked: {__name__}:{FAILED}" in (published / "advice.html").read_text()
    ranking = (published / "advice_ranking.csv").read_text()
    assert "hpa, CPU 50 %" in ranking
    assert "Hopeless" not in ranking
    assert len(context["outlet_events"]) == 0


def test_where_every_controller_fails_nothing_is_ranked(data_root: Path) -> None:
    from tidebench.advice import BuildRanking

    context = replayed(data_root, f"{__name__}:Hopeless")
    with fails_for_good(match=FAILED):
        BuildRanking(task_id="build_ranking", **FOLDER).execute(context)
