"""One CSV row per published run: what it cost, what it got, how often its engine stopped.

    python -m infra.flink.results var/flink_tournament var/flink_word_count \\
        > docs/results/flink_tournament.csv
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from include.results.tables.staged import read_table

RUN = ("topology", "pattern", "controller", "seed")
METRICS = {
    "resource_cost": "resource_cost",
    "strict_real_time_compliance": "real_time_compliance_percent",
    "strict_near_real_time_compliance": "near_real_time_compliance_percent",
    "strict_relaxed_compliance": "relaxed_compliance_percent",
    "strict_near_real_time_total_cost": "total_cost",
    "end_to_end_near_real_time_compliance": "end_to_end_near_real_time_percent",
    "end_to_end_relaxed_compliance": "end_to_end_relaxed_percent",
    "end_to_end_near_real_time_total_cost": "end_to_end_total_cost",
    "age_p50_ms": "age_p50_ms",
    "age_p95_ms": "age_p95_ms",
    "rescales": "rescales",
    "rescale_gap_p50_s": "rescale_gap_p50_s",
    "unprocessed_items": "unprocessed_items",
    "machine_load": "machine_load",
    "timer_lag_p99_ms": "timer_lag_p99_ms",
}
"""Metrics by what their column is called; compliance and cost are strict, near real-time if nothing
else is said."""
DECIMALS = 2


def results(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row per run from rows of `metrics`, sorted; a metric without a row is left empty.

    Only the BTU that a run was billed by is meant: rows of a run under several are one KeyError.
    """
    runs: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        run = runs.setdefault(
            (*(row[name] for name in RUN), row["run"]), {name: row[name] for name in RUN}
        )
        if (column := METRICS.get(row["metric"])) is not None:
            if column in run:
                raise KeyError(f"{row['run']} has {row['metric']} under several BTUs")
            run[column] = round(row["value"], DECIMALS)
    return [runs[key] for key in sorted(runs)]


def main() -> None:
    """Print the CSV file; the folders are those of experiments with a report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="+", type=Path)
    folders = parser.parse_args().folder
    rows = [row for folder in folders for row in read_table(folder / "published/metrics.parquet")]
    writer = csv.DictWriter(sys.stdout, [*RUN, *METRICS.values()], lineterminator="\n")
    writer.writeheader()
    writer.writerows(results(rows))


if __name__ == "__main__":
    main()
