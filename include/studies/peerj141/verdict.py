"""Every published cell beside the measured one: inside its tolerance or not, and why maybe not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from include.model.errors import GateFailed
from include.results.reports.comparison import PublishedFigure
from include.results.tables.staged import Row, Rows, gathered
from include.studies.peerj141.draws import interval
from include.studies.peerj141.errata import HALF_CENT, HALF_POINT, RUNS, find_errata
from include.studies.peerj141.published import (
    CellKey,
    approach_of,
    error_of,
    is_compliance,
    kind_of,
    pays_by_own_btu,
)

VERDICT_COLUMNS = (
    "table", "pattern", "controller", "btu_min", "metric", "kind", "unit",
    "published_mean", "published_sigma", "measured_mean", "measured_sigma", "runs",
    "error", "error_unit", "error_low", "error_high", "tolerance", "inside", "erratum",
)  # fmt: skip


def verdict(
    cells: Sequence[Mapping[str, Any]],
    published: Mapping[CellKey, PublishedFigure],
    metrics: Rows = (),
) -> list[Row]:
    """One row per measured controller and published cell that it stands for.

    ``cells`` are rows of the table cells, ``metrics`` the figures of every run, of which those with
    other options are none of a cell. ``error`` is measured minus published, in points for
    a compliance and in percent of the published cost for a cost; ``tolerance`` has the same
    unit and is one for all cells of a controller and kind. ``error_low`` and ``error_high`` are
    the 95 % interval of its size over its ``errors`` by seed, None with fewer than four. A cell
    is ``inside`` where that interval ends below the tolerance; without one, the error does.
    Published cells that were not measured have no row.
    """
    errata = find_errata(published)
    measured = {_place(row): row for row in cells}
    by_place = gathered(
        (_place(row), (row["seed"], row["value"])) for row in metrics if not row["variant"]
    )
    controllers = dict.fromkeys(row["controller"] for row in cells)
    # Compliance without a BTU was measured once and repeated for each: any of them will do.
    lowest_btu_min = min((float(row["btu_min"]) for row in cells), default=0.0)
    rows = []
    for controller in controllers:
        for key, figure in published.items():
            pattern, approach, btu_min, metric = key
            if approach != approach_of(controller):
                continue
            place = (pattern, controller, btu_min or lowest_btu_min, metric)
            if place in measured:
                row = _compared(controller, key, figure, measured[place])
                row["errors"] = {
                    seed: error_of(metric, figure.mean, value)
                    for seed, value in sorted(by_place.get(place, ()))
                }
                rows.append(row | {"erratum": errata.get(key)})
    return _judged(rows)


def _place(row: Mapping[str, Any]) -> tuple[str, str, float, str]:
    return row["pattern"], row["controller"], row["btu_min"], row["metric"]


def summary(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Mean absolute error per pattern, controller and kind of metric, and the cells inside."""
    groups = gathered(((row["pattern"], row["controller"], row["kind"]), row) for row in rows)
    return [
        {"pattern": pattern, **about(own), "inside": sum(row["inside"] for row in own)}
        for (pattern, _, _), own in groups.items()
    ]


def about(rows: Rows) -> Row:
    """Cells of one controller and kind: how many, and how far they are off in the mean."""
    return {
        "controller": rows[0]["controller"],
        "kind": rows[0]["kind"],
        "unit": rows[0]["error_unit"],
        "mean_absolute_error": fmean(abs(row["error"]) for row in rows),
        "cells": len(rows),
    }


def _judged(rows: list[Row]) -> list[Row]:
    """The rows with interval, tolerance of their controller and kind, and whether inside."""
    groups = gathered(((row["controller"], row["kind"]), row) for row in rows)
    limits = {key: tolerance(own) for key, own in groups.items()}
    for row in rows:
        sure = interval([row["errors"]])
        row["error_low"], row["error_high"] = sure or (None, None)
        row["tolerance"] = limits[row["controller"], row["kind"]]
        row["inside"] = (sure.high if sure else abs(row["error"])) <= row["tolerance"]
    return rows


def _compared(
    controller: str, key: CellKey, figure: PublishedFigure, measured: Mapping[str, Any]
) -> Row:
    pattern, _, btu_min, metric = key
    return {
        "table": figure.table,
        "pattern": pattern,
        "controller": controller,
        "btu_min": btu_min,
        "metric": metric,
        "kind": kind_of(metric),
        "unit": figure.unit,
        "published_mean": figure.mean,
        "published_sigma": figure.sigma,
        "measured_mean": measured["mean"],
        "measured_sigma": measured["sigma"],
        "runs": measured["runs"],
        "error": error_of(metric, figure.mean, measured["mean"]),
        "error_unit": "points" if is_compliance(metric) else "percent",
    }


CONFIDENCE = 0.95
"""Of a single cell: some lie outside although nothing is wrong, in groups of the same runs."""


def tolerance(rows: Rows) -> float:
    """The largest error that chance explains, for verdict rows of one controller and kind.

    A printed figure is the mean of three runs, so the system behind it may lie off by what a t
    distribution with the printed sigmas says, and by what rounding hides. A sigma of three runs
    says little by itself (0 is printed four times), so they are pooled over the cells of one
    controller and kind of metric. What our simulator scatters by has no part: a noisier one would
    be allowed to be further off. Its own noise is in the interval of the mean errors (draws.py).

    In the rows' ``error_unit``: points of compliance, percent of the published cost. Sigmas are
    taken from the cells that have one. Raises GateFailed when none has.
    """
    from scipy.stats import t

    printed = [row for row in rows if row["published_sigma"] is not None]
    if not printed:
        raise GateFailed(
            f"no published cell of {rows[0]['controller']}, {rows[0]['kind']}, can be judged: none "
            f"has a standard deviation. Add the printed ones to a peerj_cs_141_*.csv file."
        )
    variance = fmean((row["published_sigma"] * _scale(row)) ** 2 for row in printed)
    # Cells of the same runs count once: those of one pattern and BTU, or, where the paper priced
    # the same runs at every BTU, those of one pattern.
    columns = {
        (row["pattern"], pays_by_own_btu(row["controller"]) and row["btu_min"]) for row in printed
    }
    freedom = len(columns) * (RUNS - 1)
    half = float(t.ppf(0.5 + CONFIDENCE / 2, freedom)) * math.sqrt(variance / RUNS)
    return half + _rounding(rows)


def _scale(row: Mapping[str, Any]) -> float:
    return 1.0 if row["error_unit"] == "points" else 100 / float(row["published_mean"])


def _rounding(rows: Rows) -> float:
    if rows[0]["error_unit"] == "points":
        return HALF_POINT
    return max(HALF_CENT * _scale(row) for row in rows)
