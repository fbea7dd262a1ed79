"""What changes when instances that start are no part of the average: kalman_starting.yaml.

``python -m include.studies.pvldb127.starting`` writes starting.csv. The study itself keeps them in
it: how often an operator is scaled is not in the paper (deviations.md, KALMAN-STARTING).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from include.experiment.run import resolve
from include.results.tables.staged import gathered
from include.studies.base import runs_of
from include.studies.pvldb127.metrics import figures_of
from include.studies.pvldb127.published import FILTERS, METRICS, published
from include.studies.scripts import script_parser, tables_in_memory, write_as_measured

OUT = Path(__file__).with_name("starting.csv")
B = "cpu_per_rate_change"
COLUMNS = ("scenario", "filter", "b", "metric", "mean", "lowest", "highest", "runs", "printed")


def rows(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The figures of every scenario and filter, over seeds; b is that of eq. 5, of EKF alone."""
    cases = gathered(
        ((run.pattern, FILTERS[run.controller], run.controller_options.get(B, "")), resolve(run))
        for run in runs_of("kalman_starting", ["kalman_starting"], seeds)
    )
    for (pattern, name, b), runs in cases.items():
        measured = [
            figures_of(tables_in_memory(run), run.calibration["sample_every_items"]).figures
            for run in runs
        ]
        for metric in METRICS:
            values = [figures[metric] for figures in measured]
            figure = published().get((pattern, name, metric))
            shown = (f"{value:.2f}" for value in (fmean(values), min(values), max(values)))
            printed = f"{figure.mean:g}" if figure else ""
            cells = (pattern, name, b, metric, *shown, len(values), printed)
            yield dict(zip(COLUMNS, cells, strict=True))


if __name__ == "__main__":
    given = script_parser(__doc__, OUT, "21-22").parse_args()
    write_as_measured(given.out, COLUMNS, rows(given.seeds))
