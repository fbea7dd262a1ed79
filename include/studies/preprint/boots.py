"""What changes when a boot holds up the reasoner, as in the authors' runtime.

``python -m include.studies.preprint.boots --seeds 25-28`` writes boots.csv: every figure of the
preprint's stepwise, and the mean absolute errors of PeerJ CS 141 on its fitted patterns by BTU,
each without and with ``boot_blocks`` and with 95 % intervals over the seeds. Nothing is fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.results.reports.statistics import mean_of
from include.results.tables.staged import gathered
from include.studies.peerj141.calibration import (
    CONTROLLERS,
    FITTED,
    Cell,
    error_of,
    published_cells_of,
    specs,
)
from include.studies.peerj141.draws import interval
from include.studies.peerj141.published import kind_of
from include.studies.peerj141.trial import attempt
from include.studies.preprint.prefetch import beside_printed, runtime_runs
from include.studies.scripts import script_parser, write_as_measured

BLOCKS: Mapping[str, Any] = {"boot_blocks": True, "interval_s": 3.0}
"""The runtime asks for the status of a host every 3 s, and its Docker daemon every second."""
OUT = Path(__file__).with_name("boots.csv")
COLUMNS = (
    "study", "controller", "btu_min", "figure", "printed", "boot_blocks", "mean", "low", "high",
)  # fmt: skip


def blocked(spec: RunSpec) -> RunSpec:
    """The same run with a controller that a boot holds up."""
    return replace(spec, controller_options={**spec.controller_options, **BLOCKS})


def preprint_rows(seeds: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """The figures of stepwise, of the readings that are the authors' runtime."""
    for reading, runs in runtime_runs(seeds):
        for name, changed in (("no", runs), ("yes", map(blocked, runs))):
            for metric, value, values in beside_printed(reading, map(resolve, changed)):
                about = ("preprint", reading.controller, "", metric, f"{value:g}", name)
                yield (*about, *mean_interval(values))


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and its 95 % interval from t, as of four runs no drawing shows how far they scatter.

    NaN of no value, and no interval of a single one.
    """
    if not values:
        return float("nan"), float("nan"), float("nan")
    mean = mean_of(values)
    half = float("nan") if mean.half is None else mean.half
    return mean.mean, mean.mean - half, mean.mean + half


def peerj_rows(seeds: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Mean absolute errors on the fitted patterns, by BTU and of all together ("all")."""
    for controller in CONTROLLERS:
        for name in ("no", "yes"):
            errors = peerj_errors(controller, seeds, blocks=name == "yes")
            groups = gathered(
                ((group, kind_of(metric)), by_seed)
                for (_, _, btu_min, metric), by_seed in errors.items()
                for group in (f"{btu_min:g}", "all")
            )
            for group, own in sorted(groups.items()):
                mean = float(np.mean([abs(np.mean(list(of.values()))) for of in own]))
                low, high = interval(own) or (float("nan"), float("nan"))
                yield ("peerj141", controller, *group, "0", name, mean, low, high)


def peerj_errors(
    controller: str, seeds: Sequence[int], *, blocks: bool
) -> dict[Cell, dict[int, float]]:
    """By cell: the error of every seed."""
    errors: dict[Cell, dict[int, float]] = {}
    for spec in specs(FITTED, [controller], seeds):
        run = attempt(blocked(spec) if blocks else spec, {})
        for cell, value in published_cells_of(spec, run):
            errors.setdefault(cell, {})[spec.seed] = error_of(cell, value)
    return errors


def rows(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The figures of both papers."""
    for *about, mean, low, high in chain(preprint_rows(seeds), peerj_rows(seeds)):
        cells = (*about, f"{mean:.2f}", f"{low:.2f}", f"{high:.2f}")
        yield dict(zip(COLUMNS, cells, strict=True))


if __name__ == "__main__":
    given = script_parser(__doc__, OUT, "25-28").parse_args()
    write_as_measured(given.out, COLUMNS, rows(given.seeds))
