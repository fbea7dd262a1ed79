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

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from include.experiment.run import Run
from include.studies.peerj141.trial import calibrated
from include.studies.preprint.metrics import figures_of_run
from include.studies.preprint.published import printed
from include.studies.preprint.readings import READINGS
from include.studies.preprint.study import STUDY
from include.studies.scripts import script_parser, tables_in_memory, write_as_measured

PREFETCHED_ITEMS = (0, 1, 5)
SUPPORTED = ("btu-runtime-final", "threshold-runtime-60s")
"""The readings that the counts support."""
OUT = Path(__file__).with_name("prefetch.csv")
COLUMNS = ("reading", "prefetch_items", "metric", "mean", "printed")


def figures(run: Run) -> dict[str, float]:
    """The figures of Table 3 of one run in memory."""
    of = tables_in_memory(run)
    slo_ms = {op.name: op.slo_ms for op in run.topology.operators}
    return figures_of_run(of["processing_duration"], of["scaling_activity"], of["lease"], slo_ms)


def rows(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Every figure of stepwise, a mean over seeds, by reading and items held ahead."""
    for reading in (one for one in READINGS if one.name in SUPPORTED):
        specs = [
            run for run in STUDY.runs(seeds) if run.pattern == "stepwise" and reading.is_of(run)
        ]
        for items in PREFETCHED_ITEMS:
            measured = [figures(calibrated(spec, {"prefetch": items})) for spec in specs]
            for (pattern, about, metric), value in printed().items():
                # A run in which nothing was ever late has no time to adapt.
                values = [each[metric] for each in measured if metric in each]
                if (pattern, about) == ("stepwise", reading.approach) and values:
                    cells = (reading.name, items, metric, f"{fmean(values):.2f}", f"{value:g}")
                    yield dict(zip(COLUMNS, cells, strict=True))


if __name__ == "__main__":
    given = script_parser(__doc__, OUT, "25-28").parse_args()
    write_as_measured(given.out, COLUMNS, rows(given.seeds))
