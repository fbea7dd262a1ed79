"""The page of a reproduction: which policy, at what cost, how sure, and where it fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from include.results.reports.comparison import PublishedFigure
from include.results.reports.figures import curves, tradeoff
from include.studies.page import environment
from include.studies.peerj141.calibration import JUDGING_SEEDS
from include.studies.peerj141.findings import Findings
from include.studies.peerj141.published import (
    METRICS,
    CellKey,
    approach_of,
    published_cells,
)
from include.studies.peerj141.specs import BTUS_MIN, controllers, patterns
from include.studies.results import Rows

_LENGTH_MIN = 120
_COMPARED = ("near_real_time_compliance", "resource_cost", "near_real_time_total_cost")
_MOST_DRIFT = 20

_PAGE = environment(Path(__file__).parent)


def render_page(
    findings: Findings, origin: Mapping[str, Any], checks: Mapping[str, Any], files: Sequence[str]
) -> str:
    """The page as HTML text; equal arguments give equal text. ``files`` lie beside it."""
    moved = [row for row in findings.drift if row["state"] != "same"]
    every = (curve for own in findings.curves.values() for curve in own.values())
    scale = curves.scale_of(every, _LENGTH_MIN)
    return _PAGE.get_template("page.html.j2").render(
        findings=findings,
        origin=origin,
        files=files,
        checks=checks,
        quarantined=checks["quarantined"],
        best=best_controller(findings.errors),
        tradeoff=Markup(tradeoff.draw(findings.cells, list(_published_rows()), patterns())),
        curves={
            pattern: Markup(curves.draw(pattern, own, scale))
            for pattern, own in findings.curves.items()
        },
        policies=list(_policies(findings.cells)),
        compared=[row for row in findings.tables["comparison"] if _is_shown(row)],
        tables=_by(findings.verdict, ("pattern", "controller")),
        claims=_claims(findings.claims),
        elasticity=_mean_elasticity(findings.tables["elasticity"]),
        errata=findings.cell_errata,
        seen=origin["seen"],
        items=_by(findings.items, ("pattern", "controller", "btu_min")),
        moved=moved[:_MOST_DRIFT],
        more_moved=max(0, len(moved) - _MOST_DRIFT),
        btus_min=BTUS_MIN,
        judging_seeds=JUDGING_SEEDS,
        metrics=METRICS,
    )


def best_controller(errors: Rows) -> str:
    """The BTU-based controller that is closest to the paper, by the mean of its mean errors."""

    def distance(controller: str) -> float:
        own = [row["mean_absolute_error"] for row in errors if row["controller"] == controller]
        return sum(own) / len(own) if own else float("inf")

    return min((name for name in controllers() if approach_of(name) == "btu"), key=distance)


def _published_rows() -> Iterator[dict[str, Any]]:
    """Published cells as rows; those of the BTU-based approach stand with the main controller."""
    names = {approach_of(name): name for name in reversed(controllers())}
    cells: Mapping[CellKey, PublishedFigure] = published_cells()
    for (pattern, approach, btu_min, metric), figure in cells.items():
        values = {"mean": figure.mean, "sigma": figure.sigma}
        place = {"pattern": pattern, "controller": names[approach], "btu_min": btu_min}
        yield {**place, "metric": metric, **values}


def _policies(cells: Rows) -> Iterator[dict[str, Any]]:
    """One row per pattern, controller and BTU with every metric."""
    for key, own in _by(cells, ("pattern", "controller", "btu_min")).items():
        yield {
            "pattern": key[0],
            "controller": key[1],
            "btu_min": key[2],
            **{row["metric"]: row for row in own},
        }


def _is_shown(row: Mapping[str, Any]) -> bool:
    """The page shows BTU-based against threshold; comparison.csv has every pair."""
    pair = {row["controller"], row["other_controller"]}
    return pair == {controllers()[0], "threshold"} and row["metric"] in _COMPARED


def _claims(rows: Rows) -> list[dict[str, Any]]:
    """One entry per claim and pattern with the answer for each controller."""
    return [
        {**own[0], "answers": own, "controllers": [row["controller"] for row in own]}
        for own in _by(rows, ("id", "pattern")).values()
    ]


def _mean_elasticity(rows: Rows) -> list[dict[str, Any]]:
    """The overall rows, means over seeds."""
    overall = [row for row in rows if row["scope"] == "overall"]
    key = ("pattern", "controller", "btu_min")
    order = {name: i for i, name in enumerate((*patterns(), *controllers()))}
    overall.sort(key=lambda row: (order[row["pattern"]], order[row["controller"]], row["btu_min"]))
    numbers = [name for name, value in overall[0].items() if isinstance(value, float)][1:]
    return [
        {
            **dict(zip(key, group, strict=True)),
            **{name: sum(row[name] for row in own) / len(own) for name in numbers},
        }
        for group, own in _by(overall, key).items()
    ]


def _by(rows: Rows, names: Sequence[str]) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    """Neighbouring rows with equal values of ``names``, in the order of the rows."""

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in names)

    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for group, own in groupby(rows, key):
        found.setdefault(group, []).extend(own)
    return found
