"""The entry point of spark-submit: ``job.py --folder F [--runs a,b]``.

Started by spark-submit, the job runs on the submitted master; started by Python, in this
process. The folder must be the same path for the driver and the executors.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# spark-submit puts the folder of this file on the path, not the root of the repository.
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from include.model.errors import TidebenchError
from include.results.tables.build import build_tables
from include.results.tables.quarantine import read_quarantine, sentences
from include.runs.measurements.locks import REPORT, alone


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the tables and say how many rows each has; 1 with a message when that fails."""
    parser = argparse.ArgumentParser(description="Build the tables of an experiment with Spark.")
    parser.add_argument("--folder", type=Path, required=True, help="folder of the experiment")
    parser.add_argument("--runs", default="", help="run ids, separated by commas; default: all")
    options = parser.parse_args(arguments)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    try:
        folder = options.folder.absolute()
        with alone(folder, REPORT):
            rows = build_tables(
                folder,
                [run for run in options.runs.split(",") if run],
                master=None if submitted else "local[*]",
            )
    except TidebenchError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    for table, count in rows.items():
        sys.stdout.write(f"{table}: {count} rows\n")
    for sentence in sentences(read_quarantine(options.folder)):
        sys.stdout.write(f"{sentence}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
