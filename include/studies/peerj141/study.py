"""PeerJ CS 141 as a study: verdict, claims, statistics and drift beside its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from include.model.errors import GateFailed
from include.results.reports.statistics import STATISTICS_COLUMNS, with_intervals
from include.results.tables.staged import Rows
from include.studies.base import ClaimCase, Predicate, Study, StudyData, ask
from include.studies.drift import (
    CELL_COLUMNS,
    DIGITS,
    DRIFT_COLUMNS,
    baselines,
    drift,
    moved_runs,
    run_digests,
    verdict_of,
)
from include.studies.page import StudyResults, in_words
from include.studies.peerj141.errata import find_errata
from include.studies.peerj141.judgement import JUDGEMENT_COLUMNS, judge, shortfalls
from include.studies.peerj141.metrics import PeerjMetrics, metrics_of_paper, metrics_of_runs
from include.studies.peerj141.page import CLAIMS, policy, sections, tiles
from include.studies.peerj141.published import METRICS, approach_of, printed, published_cells
from include.studies.peerj141.specs import NAMES, controllers, patterns
from include.studies.peerj141.verdict import VERDICT_COLUMNS, verdict
from include.studies.peerj141.verdict import summary as errors_of

COLUMNS: Mapping[str, Sequence[str]] = {
    "cells": CELL_COLUMNS,
    "verdict": VERDICT_COLUMNS,
    "judgement": JUDGEMENT_COLUMNS,
    "comparison": STATISTICS_COLUMNS,
    "drift": DRIFT_COLUMNS,
}
ANSWERS = {True: "reproduced", False: "not reproduced"}


class Peerj141Study(Study):
    """Judges what a reproduction has measured; claims are asked of every BTU-based controller."""

    name = "peerj141"
    title = "Cost-efficient enactment of stream processing topologies (PeerJ CS 141)"
    experiment = "reproduction"
    specs = NAMES
    columns = COLUMNS
    baseline = Path(__file__).with_name("baseline.csv")
    printed = staticmethod(printed)

    def evaluate(self, measured: StudyData) -> StudyResults:
        staged, folder = measured.tables, measured.folder
        published = published_cells()
        cells = sorted(staged["cells"], key=_reading_order)
        judged = verdict(cells, published, staged["metrics"])
        digests = run_digests(folder, (row["run"] for row in staged["runs"]))
        drifts = [
            (baseline, drift(baseline, cells)) for baseline in baselines(folder, self.baseline)
        ]
        drift_sentences = [
            verdict_of(baseline, rows, moved_runs(baseline, digests)) for baseline, rows in drifts
        ]
        of_btu = [name for name in controllers() if approach_of(name) == "btu"]
        tables: dict[str, Rows] = {
            "claims": self.claims_of({name: metrics_of_runs(staged, name) for name in of_btu}),
            "cells": cells,
            "verdict": judged,
            "judgement": judge(judged),
            "comparison": sorted(with_intervals(staged["comparison"]), key=_reading_order),
            "elasticity": _with_run(staged["elasticity"], staged["runs"]),
            "drift": [row for _, rows in drifts for row in rows],
        }
        return StudyResults(
            tables=tables,
            errata=[
                f"{pattern}, {policy(approach, btu_min)}, {metric}: {sentence}"
                for (pattern, approach, btu_min, metric), sentence in find_errata(published).items()
            ],
            claims_text=[CLAIMS],
            sections=sections(tables, staged, drift_sentences),
            tiles=tiles(judged),
            drift_sentences=drift_sentences,
        )

    def cases(
        self, metrics: Mapping[str, PeerjMetrics], claim: Mapping[str, Any]
    ) -> Iterator[ClaimCase]:
        """Every pattern and BTU-based controller."""
        for pattern in claim.get("patterns", patterns()):
            for controller, own in metrics.items():
                yield ClaimCase((own, pattern), {"pattern": pattern, "controller": controller})

    def beside(self, predicate: Predicate, case: ClaimCase) -> Mapping[str, Any]:
        """The paper's own numbers, from its tables."""
        return {"published": ask(predicate, metrics_of_paper(), case.about["pattern"])[1]}

    def cell(self, column: str, value: Any) -> str:
        """Absent values are empty, BTUs are whole minutes."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, float):
            if column == "btu_min":
                return f"{value:g}"
            return f"{value:.4g}" if column.endswith("_p") else f"{value:.{DIGITS}f}"
        return super().cell(column, value)

    def summary(self, results: StudyResults) -> str:
        """What a terminal shows: errors per pattern and controller, claims, drift."""
        lines = [f"{'mean absolute error':<44}{'error':>10}  {'inside':>9}"]
        for row in errors_of(results.tables["verdict"]):
            name = f"  {row['pattern']}, {row['controller']}, {row['kind']}"
            unit = "points" if row["unit"] == "points" else "%"
            error = f"{row['mean_absolute_error']:.1f} {unit}"
            lines.append(f"{name:<44}{error:>10}  {row['inside']:>3} of {row['cells']:>2}")
        lines += ["", *verdict_sentences(results.tables["judgement"])]
        lines += ["", f"{in_words(results.claims)}.", *results.drift_sentences, ""]
        return "\n".join(lines)

    def require_reproduced(self, results: StudyResults) -> None:
        """Raise GateFailed when the paper is not reproduced, with why and every cell outside."""
        missed, cells = shortfalls(results.tables["judgement"]), results.tables["verdict"]
        if not missed:
            return
        outside = [row for row in cells if not row["inside"]]
        reasons = "\n".join(f"  - {sentence}" for sentence in missed)
        listed = "\n".join(
            f"  - {row['pattern']}, {row['controller']}, BTU {row['btu_min'] or '-'}, "
            f"{row['metric']}: published {row['published_mean']:g}, measured "
            f"{row['measured_mean']:.2f} ({row['error']:+.1f} {row['error_unit']}, tolerance "
            f"{row['tolerance']:.1f})"
            for row in outside
        )
        raise GateFailed(
            f"The paper is not reproduced.\n{reasons}\n{len(outside)} of "
            f"{len(cells)} published cells differ by more than chance.\n{listed}"
        )


def _reading_order(row: Mapping[str, Any]) -> tuple[int, ...]:
    """Patterns as in Fig. 7, controllers as in the matrix, metrics as in the tables."""
    places = ((patterns(), "pattern"), (controllers(), "controller"), (METRICS, "metric"))
    pattern, controller, metric = (
        list(names).index(row[name]) if row[name] in names else len(names) for names, name in places
    )
    other = row.get("other_controller")
    place = list(controllers()).index(other) if other in controllers() else 0
    return pattern, controller, place, int(row["btu_min"]), metric


def _with_run(rows: Rows, runs: Rows) -> list[dict[str, Any]]:
    about = {row["run"]: row for row in runs}
    names = ("pattern", "controller", "btu_min", "seed")
    return [{**{name: about[row["run"]][name] for name in names}, **row} for row in rows]


def verdict_sentences(judgement: Rows) -> list[str]:
    """The mean error of every judged group with its interval, limit and answer."""
    return [
        f"{row['controller']}, {row['kind']}, {row['patterns']} patterns: "
        f"{row['mean_absolute_error']:.2f} [{row['interval_low']:.2f}, {row['interval_high']:.2f}] "
        f"{'points' if row['unit'] == 'points' else '%'}, allowed {row['limit']:g}: "
        f"{ANSWERS.get(row['holds'], row['why'])}"
        for row in judgement
        if row["judged"] and row["interval_low"] is not None
    ]


STUDY = Peerj141Study()
