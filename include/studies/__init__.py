"""Evaluations, each a folder here: its runs, its claims, what was measured.

The platform knows none of them. To add one: write its folder, with a ``STUDY`` in ``study.py``,
and the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from include.model.errors import SpecError, unknown_name

if TYPE_CHECKING:
    from include.results.reports.comparison import PublishedFigure
    from include.studies.base import Study

STUDIES = (
    "peerj141",
    "preprint",
    "fugu",
    "pvldb127",
    "henge",
    "live",
)
NIGHT = "nightly_"
"""What the experiment of a study's night begins with; the name of the study follows."""
PART = "_part"
"""What it ends with when a night measures some seeds or patterns only."""
ALIASES: Mapping[str, str] = {"kalman": "pvldb127"}
"""What a study is called on the command line, too."""


def study_named(name: str) -> Study:
    """A study by its name or alias, imported now: DAG files only need the names.

    Raises SpecError for a name that is neither.
    """
    if name not in (*STUDIES, *ALIASES):
        raise SpecError("study", [unknown_name("study", name, (*STUDIES, *ALIASES))])
    study: Study = import_module(f"{__name__}.{ALIASES.get(name, name)}.study").STUDY
    return study


def study_of(experiment: str) -> Study | None:
    """The study whose runs or whose night an experiment is, by its name."""
    return next(
        (
            study
            for study in map(study_named, STUDIES)
            if experiment.removesuffix(PART) in (study.experiment, f"{NIGHT}{study.name}")
        ),
        None,
    )


def printed(run: Mapping[str, Any], metric: str, btu_min: float) -> PublishedFigure | None:
    """What any source prints about a run (a row of ``runs``); a Reference."""
    figures = (study_named(name).printed(run, metric, btu_min) for name in STUDIES)
    return next((figure for figure in figures if figure is not None), None)
