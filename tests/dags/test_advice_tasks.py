"""The tasks of the DAG `advise` where a controller fails: as the command, and no success."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.controllers.fixed import Fixed
from tests.advise.synthetic import write_small_recording
from tests.dags.ends import execute, fails_for_good

FOLDER, FAILED = {"experiment": "advice-mine"}, "Hopeless failed at 60 s: ValueError: no idea"


@dataclass(frozen=True, kw_only=True)
class Hopeless(Fixed):
    """Can be built, and never decides."""

    def decide(self, memory: Any, observation: Any) -> Any:
        raise ValueError("no idea")


def replay(root: Path, *controllers: str) -> None:
    """What the tasks of a DAG run do before they rank these controllers."""
    from tidebench.advice import MeasurePolicy, ResolveAdvice

    write_small_recording(root / "job.csv")
    asked = {"recording": str(root / "job.csv"), "objective": "90 % within 1 s", "seeds": 1}
    params = {"name": "mine", "controllers": [*controllers], **asked}
    for policy in execute(ResolveAdvice(task_id="resolve_advice"), params=params):
        execute(MeasurePolicy(task_id="replay_policy", policy=policy, **FOLDER))


def test_where_a_controller_fails_the_others_are_published_and_then_the_dag_run_fails(
    data_root: Path,
) -> None:
    from airflow.sdk.execution_time.context import OutletEventAccessors

    from tidebench.advice import BuildRanking, PublishAdvice

    replay(data_root, f"{__name__}:Hopeless", "hpa")
    execute(BuildRanking(task_id="build_ranking", **FOLDER))
    events = OutletEventAccessors()
    with fails_for_good(match=FAILED):
        execute(PublishAdvice(task_id="publish_advice", **FOLDER), outlet_events=events)

    published = data_root / "advice-mine" / "published"
    assert f"Not ranked: {__name__}:{FAILED}" in (published / "advice.html").read_text()
    ranking = (published / "advice_ranking.csv").read_text()
    assert "hpa, CPU 50 %" in ranking
    assert "Hopeless" not in ranking
    assert len(events) == 0


def test_a_wrong_name_hides_nothing_else_that_is_wrong(data_root: Path) -> None:
    from tidebench.advice import ResolveAdvice

    wrong = {"name": "../mine", "recording": str(data_root / "none.csv"), "prices": "gold"}
    with fails_for_good(match="advise: 4 problems") as refused:
        execute(ResolveAdvice(task_id="resolve_advice"), params=wrong | {"objectiv": "soon"})
    for words in (
        "unknown param 'objectiv'",
        "got '../mine'",
        "none.csv; check the path",
        "book 'gold'",
    ):
        assert words in str(refused.value)
    assert not list(data_root.iterdir())


def test_where_every_controller_fails_nothing_is_ranked(data_root: Path) -> None:
    from tidebench.advice import BuildRanking

    replay(data_root, f"{__name__}:Hopeless")
    with fails_for_good(match=FAILED):
        execute(BuildRanking(task_id="build_ranking", **FOLDER))
