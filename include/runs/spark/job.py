"""The entry point of spark-submit: ``job.py SPEC.yaml --root R``; exit code 1 if a point failed.

Started by spark-submit, the job runs on the submitted master; started by Python, in this
process. The data root must be the same path for the driver and the executors.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# spark-submit puts the folder of this file on the path, not the root of the repository.
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from include.experiment.matrix import runs_in_file
from include.model.errors import TidebenchError
from include.runs.measurements.origin import DagRun
from include.runs.spark.sweep import sweep


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep; 1 with a message when the spec is wrong, Spark does not start or a point failed."""
    parser = argparse.ArgumentParser(description="Measure every point of a spec with Spark.")
    parser.add_argument("spec", type=Path, help="the experiment, a YAML file")
    parser.add_argument("--root", type=Path, required=True, help="the data root")
    parser.add_argument("--dag-id", default="", help="of the DAG run that measures, if one does")
    parser.add_argument("--dag-run", default="", help="its id")
    options = parser.parse_args(arguments)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    try:
        results = sweep(
            runs_in_file(options.spec),
            options.root,
            master=None if submitted else "local[*]",
            say=_say,
            by=DagRun(options.dag_id, options.dag_run),
        )
    except TidebenchError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return int(any(result.outcome == "failed" for result in results))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
