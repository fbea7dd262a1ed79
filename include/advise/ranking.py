"""The ranking of policies: a Spark application over their replays, and the gate behind it.

Also the entry point of spark-submit: ``ranking.py --folder F``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# spark-submit puts the folder of this file on the path, not the root of the repository.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from include.advise.outcomes import read_outcomes
from include.model.errors import StoreError, TidebenchError
from include.results.quality.gates import require_sound
from include.results.tables.catalogue import ADVICE_RANKING, schema_of
from include.results.tables.queries import run_query
from include.results.tables.staged import staged_path, write_table
from include.runs.measurements.rows import ADVICE_OUTCOME
from include.runs.spark.session import spark_session


def build_ranking(folder: Path, *, master: str | None = "local[*]") -> int:
    """Write ``folder/staged/advice_ranking.parquet`` and return its rows.

    ``master`` is a Spark master, None the one that spark-submit has chosen. Raises StoreError
    without replays, SetupError without Java 17.
    """
    from pyspark.errors import PySparkException

    rows = read_outcomes(folder)
    with spark_session(master, small=True) as spark:
        spark.createDataFrame(rows).createOrReplaceTempView(ADVICE_OUTCOME)
        try:
            ranked = run_query(spark, ADVICE_RANKING).toArrow()
        except PySparkException as error:
            raise StoreError(f"table {ADVICE_RANKING} could not be built: {error}") from error
    return write_table(staged_path(folder, ADVICE_RANKING), ranked, schema_of(ADVICE_RANKING))


def check_ranking(folder: Path) -> None:
    """Gate: raises GateFailed unless Great Expectations accepts the ranking."""
    require_sound(folder, (ADVICE_RANKING,))


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the ranking and say how many rows it has; 1 with a message when that fails."""
    parser = argparse.ArgumentParser(description="Rank the policies of an advice with Spark.")
    parser.add_argument("--folder", type=Path, required=True, help="folder of the advice")
    given = parser.parse_args(arguments)
    master = None if "PYSPARK_GATEWAY_PORT" in os.environ else "local[*]"
    try:
        rows = build_ranking(given.folder, master=master)
    except TidebenchError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    sys.stdout.write(f"{ADVICE_RANKING}: {rows} rows\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
