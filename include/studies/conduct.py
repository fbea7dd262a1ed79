"""A study from its first run to its page, as the command line starts it; DAGs do it in tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from include.results.quality.gates import check_tables
from include.results.tables.build import build_tables
from include.runs.batch import RunResult, require_complete, run_batch
from include.studies.base import Study
from include.studies.publish import publish_study
from include.studies.results import StudyResults

Say = Callable[[str], None]


def measure(
    study: Study,
    root: Path,
    *,
    seeds: Sequence[int] | None = None,
    processes: int | None = None,
    report: Callable[[RunResult], None] = lambda _: None,
) -> list[str]:
    """Measure what this code has not measured yet, below ``root/<experiment of the study>``.

    ``seeds`` are those of its specs unless given; ``report`` hears of every finished run.
    Returns the ids of all runs. Raises TestbedError with every failed run; the others are kept.
    """
    runs = study.runs(seeds)
    require_complete(run_batch(runs, root, processes=processes, report=report))
    return [run.run_id for run in runs]


def conclude(
    study: Study, root: Path, runs: Sequence[str], database_url: str = "", say: Say = lambda _: None
) -> StudyResults:
    """Build the tables of these runs, check them, judge and publish.

    ``database_url`` is the results database, SQLite in ``root`` by default; ``say`` hears of
    every stage. Raises what the stages raise.
    """
    folder = root / study.experiment
    say("building tables ...")
    build_tables(folder, folder.name, runs)
    say("validating ...")
    check_tables(folder, folder.name)
    say("publishing ...")
    return publish_study(study, folder, database_url or f"sqlite:///{root / 'results.db'}")
