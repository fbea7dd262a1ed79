"""What changes when instances hold messages ahead, as the authors' processing nodes do.

``python -m include.studies.preprint.prefetch --seeds 25-28`` measures stepwise and writes
prefetch.csv.

visp-streaming/processingNodes, ``Receiver``: from commit 15a9d4e (28 March 2017) on,
``basicQos(5)`` and an acknowledgement once a message is processed. Before, from commit 5981583
(17 February 2017) on, ``basicConsume`` acknowledged everything on delivery, so a queue was empty
whatever its operator had to do; before that, a listener of Spring AMQP, whose version 1 takes
one message unless told otherwise. The source has no date of the preprint's runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from include.experiment.run import Run
from include.experiment.spec import RunSpec
from include.studies.peerj141.trial import calibrated
from include.studies.preprint.metrics import figures_of_run
from include.studies.preprint.published import printed_of
from include.studies.preprint.readings import READINGS, PreprintReading
from include.studies.preprint.study import STUDY
from include.studies.scripts import script_parser, tables_in_memory, write_as_measured

PREFETCHED_ITEMS = (0, 1, 5)
RUNTIME = ("btu-runtime-60s", "threshold-runtime-60s")
"""The readings that are the authors' runtime, to whose source the changes belong."""
OUT = Path(__file__).with_name("prefetch.csv")
COLUMNS = ("reading", "prefetch_items", "metric", "mean", "printed")


def figures(run: Run) -> dict[str, float]:
    """The figures of Table 3 of one run in memory."""
    of = tables_in_memory(run)
    slo_ms = {op.name: op.slo_ms for op in run.topology.operators}
    return figures_of_run(of["processing_duration"], of["scaling_activity"], of["lease"], slo_ms)


def runtime_runs(seeds: Sequence[int]) -> Iterator[tuple[PreprintReading, list[RunSpec]]]:
    """The readings that are the authors' runtime, each with its runs of stepwise."""
    runs = [run for run in STUDY.runs(seeds) if run.pattern == "stepwise"]
    for reading in READINGS:
        if reading.name in RUNTIME:
            yield reading, [run for run in runs if reading.is_of(run)]


def beside_printed(
    reading: PreprintReading, runs: Iterable[Run]
) -> Iterator[tuple[str, float, list[float]]]:
    """Every metric that is printed of stepwise, the printed value, and those of the runs.

    A run in which nothing was ever late has no time to adapt.
    """
    measured = [figures(run) for run in runs]
    for metric, value in printed_of("stepwise", reading.approach).items():
        yield metric, value, [own[metric] for own in measured if metric in own]


def rows(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Every figure of stepwise, a mean over seeds, by reading and items held ahead."""
    for reading, specs in runtime_runs(seeds):
        for items in PREFETCHED_ITEMS:
            runs = [calibrated(spec, {"prefetch": items}) for spec in specs]
            for metric, printed, values in beside_printed(reading, runs):
                if values:
                    cells = (reading.name, items, metric, f"{fmean(values):.2f}", f"{printed:g}")
                    yield dict(zip(COLUMNS, cells, strict=True))


if __name__ == "__main__":
    given = script_parser(__doc__, OUT, "25-28").parse_args()
    write_as_measured(given.out, COLUMNS, rows(given.seeds))
