"""Evaluations of published systems, each a folder here: its runs, its claims, what was measured.

The platform knows none of them. To add one: write its folder and the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.model.errors import SpecError, unknown_name
from include.reports.comparison import PublishedFigure
from include.studies.base import Study
from include.studies.fugu.study import FUGU
from include.studies.henge.study import HENGE
from include.studies.peerj141.study import PEERJ_141
from include.studies.pvldb127.study import PVLDB_12_7

STUDIES: Mapping[str, Study] = {
    "peerj141": PEERJ_141,
    "fugu": FUGU,
    "pvldb127": PVLDB_12_7,
    "henge": HENGE,
}
ALIASES: Mapping[str, str] = {"kalman": "pvldb127"}
"""What a study is called on the command line, too."""


def printed(run: Mapping[str, Any], metric: str, btu_min: float) -> PublishedFigure | None:
    """What any source prints about a run (a row of ``runs``); a Reference."""
    found = (study.printed(run, metric, btu_min) for study in STUDIES.values())
    return next((figure for figure in found if figure is not None), None)


def study_named(name: str) -> Study:
    """A study by its name or alias. Raises SpecError for a name that is neither."""
    known = {**STUDIES, **{alias: STUDIES[own] for alias, own in ALIASES.items()}}
    if name not in known:
        raise SpecError("paper", [unknown_name("paper", name, known)])
    return known[name]
