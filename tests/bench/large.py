"""`make bench-large [ROWS=100000000]`: what Spark makes of many durations, beside others.

    python -m tests.bench.large [--rows N] [--windows 12] [--folder DIR]

The rows are made up (large_data.py) in the layout, the types and the compression of the store: as
many runs of two hours as it takes, each with one file per table, or with one part per window, as
before the end of a run, to see what small files cost. Every run counts its own durations while it
is measured, which is timed alone; Spark runs the queries of sql/tables on these counts, with our
session settings: the four tables that are about durations (compliance, cost, time to adapt, checks
of the input), from its start on. DuckDB says the same in its own SQL on the durations themselves,
and pandas gets as many runs as fit. Spark and DuckDB must agree; pandas is timed only, on
compliance and cost.

Seconds of a machine that others use say little, so the CPU seconds of each engine stand beside.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from include.results.tables.covers import read_covers
from include.results.tables.measured import (
    MOST_INTERPRETED_ROWS,
    MOST_ROWS_READ_HERE,
    check_files,
    complete_runs,
    register,
    rows_read,
)
from include.results.tables.queries import SHARED, run_query, share
from include.runs.measurements.rows import COVER
from include.runs.spark.session import spark_session
from tests.bench.large_data import (
    DISTINCT,
    EXPERIMENT,
    SAMPLE_EVERY,
    SAMPLES_PER_RUN,
    counted,
    durations_of,
    generate,
)

PANDAS_ROWS = 10_000_000
EXCLUDED = ("O2", "O6")
LARGE = ("compliance", "cost", "time_to_adapt", "input_checks")
"""Tables that are about durations."""

Answer = dict[str, list[dict[str, Any]]]

JOINED = "FROM processing_duration d JOIN operator o ON o.run = d.run AND o.operator = d.operator"
DUCKDB = {
    "compliance": f"""
WITH late AS (
  SELECT d.run, d.operator, duration_ms, duration_ms / slo_ms AS factor {JOINED}
),
scoped AS (
  SELECT *, 'overall' AS scope FROM late
  UNION ALL SELECT *, operator FROM late
  UNION ALL SELECT *, 'without_{"_".join(EXCLUDED).lower()}' FROM late
    WHERE operator NOT IN {EXCLUDED}
)
SELECT run, scope, COUNT(*) AS sampled_items,
  100.0 * COUNT_IF(factor <= 1) / COUNT(*) AS real_time_compliance_percent,
  100.0 * COUNT_IF(factor <= 2) / COUNT(*) AS near_real_time_compliance_percent,
  100.0 * COUNT_IF(factor <= 5) / COUNT(*) AS relaxed_compliance_percent,
  quantile_cont(duration_ms, [0.5, 0.95]) AS percentiles_ms
FROM scoped GROUP BY run, scope""",
    "cost": f"""
SELECT d.run, COUNT_IF(duration_ms > slo_ms) AS late, COUNT_IF(duration_ms > 2 * slo_ms) AS later,
  COUNT_IF(duration_ms > 5 * slo_ms) AS latest {JOINED} GROUP BY d.run""",
    "time_to_adapt": f"""
WITH periods AS (
  SELECT d.run, d.operator, CAST(floor(time_s / 15) AS INT) AS period,
    SUM(CAST(round(duration_ms * 1000) AS BIGINT)) > COUNT(*) * any_value(slo_ms) * 1000 AS late
  {JOINED} GROUP BY ALL
),
turns AS (
  SELECT *, late IS DISTINCT FROM LAG(late, 1, NOT late)
    OVER (PARTITION BY run, operator ORDER BY period) AS turns FROM periods
),
stretches AS (
  SELECT *, LEAD(period) OVER (PARTITION BY run, operator ORDER BY period) AS next
  FROM turns WHERE turns
)
SELECT s.run, COUNT(*) AS delayed_stretches,
  AVG(COALESCE(next * 15, duration_s) - period * 15) AS time_to_adapt_mean_s
FROM stretches s JOIN run USING (run) WHERE late GROUP BY s.run""",
    "input_checks": """
SELECT d.run, COUNT(*) AS sampled_rows,
  COUNT_IF(NOT COALESCE(duration_ms >= 0 AND wait_ms >= 0 AND NOT isnan(duration_ms), FALSE)),
  COUNT_IF(time_s < 0 OR time_s > duration_s)
FROM processing_duration d JOIN run r ON r.run = d.run GROUP BY d.run""",
}


def counting(rows: int) -> dict[str, float]:
    """What runs with so many durations take to count them; in memory, as a run does."""
    runs = [durations_of(seed) for seed in range(max(1, min(DISTINCT, rows // SAMPLES_PER_RUN)))]
    begun_s, cpu_s = time.perf_counter(), time.process_time()
    for durations in runs:
        counted(durations)
    share = rows / sum(len(durations["time_s"]) for durations in runs)
    return {
        "took_s": (time.perf_counter() - begun_s) * share,
        "cpu_s": (time.process_time() - cpu_s) * share,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def spark(folder: Path, master: str) -> Answer:
    """Every large table with the queries of this project; prints how long each step took."""
    begun_s, runs = time.perf_counter(), complete_runs(folder)
    with took("  Spark: footers of every file"):
        paths = check_files(folder, EXPERIMENT, runs)
    rows = rows_read(paths)
    few, here = rows <= MOST_INTERPRETED_ROWS, rows <= MOST_ROWS_READ_HERE
    with spark_session(master, many=not here, small=few) as session:
        jvm = session.sparkContext._jvm
        assert jvm is not None
        pid = jvm.java.lang.ProcessHandle.current().pid()
        with took("  Spark: list files", pid):
            register(session, folder, paths, here=here)
            session.createDataFrame(read_covers(folder)).createOrReplaceTempView(COVER)
        answer: Answer = {}
        for step in (*SHARED, *LARGE):
            with took(f"  Spark: {step}", pid):
                if step in SHARED:
                    share(session, step)
                else:
                    answer[step] = run_query(session, step).toArrow().to_pylist()
            if step == "cost":
                costs = {"two": cost_of(begun_s, pid)}
        costs["all"] = cost_of(begun_s, pid)
    return answer | {"_": [costs["two"], costs["all"]]}


def cost_of(begun_s: float, pid: int) -> dict[str, float]:
    """Seconds since, CPU seconds and the peak memory of Spark's process."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak_mb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    taken_s = time.perf_counter() - begun_s
    return {"took_s": taken_s, "cpu_s": java_cpu_s(pid), "peak_mb": peak_mb}


def java_cpu_s(pid: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def duckdb(folder: Path, threads: int) -> Answer:
    """The same with DuckDB, in a process of its own."""
    import duckdb as engine

    begun_s = time.perf_counter()
    answer: Answer = {}
    with engine.connect(config={"threads": threads, "memory_limit": "4GB"}) as db:
        for table in ("run", "processing_duration", "operator"):
            files = folder / "measurements" / table / "*" / "*" / "*.parquet"
            db.execute(
                f"CREATE VIEW {table} AS FROM read_parquet('{files}', hive_partitioning = true)"
            )
        for table in LARGE:
            answer[table] = db.sql(DUCKDB[table]).to_arrow_table().to_pylist()
            if table == "cost":
                two = own_cost(begun_s)
    return answer | {"_": [two, own_cost(begun_s)]}


def pandas(folder: Path, runs: int) -> Answer:
    """Compliance and cost with pandas for the first ``runs`` runs, in a process of its own."""
    import pandas as pd

    begun_s = time.perf_counter()

    def read(table: str, columns: list[str]) -> pd.DataFrame:
        base = folder / "measurements" / table / f"experiment={EXPERIMENT}"
        frames = []
        for one in sorted(base.iterdir())[:runs]:
            parts = [pq.ParquetFile(file).read(columns) for file in sorted(one.glob("*.parquet"))]
            frames.append(pa.concat_tables(parts).to_pandas().assign(run=one.name[4:]))
        frame = pd.concat(frames, ignore_index=True)
        return frame.astype({"run": "category", "operator": "category"})

    late = read("processing_duration", ["operator", "duration_ms"]).merge(
        read("operator", ["operator", "slo_ms"]), on=["run", "operator"]
    )
    for factor in (1, 2, 5):
        late[f"within_{factor}"] = late["duration_ms"] <= factor * late["slo_ms"]
    kept = late[~late["operator"].isin(EXCLUDED)]
    scopes = (late.assign(operator="overall"), late, kept.assign(operator="without"))
    rows: list[dict[str, Any]] = []
    for scope in scopes:
        groups = scope.groupby(["run", "operator"], observed=True)
        shares = groups[["within_1", "within_2", "within_5"]].mean()
        ranks = groups["duration_ms"].quantile([0.5, 0.95]).unstack()
        shares[["p50", "p95"]] = ranks
        rows += shares.reset_index().to_dict("records")
    return {"compliance": rows, "_": [own_cost(begun_s) | {"rows": len(late)}]}


def own_cost(begun_s: float) -> dict[str, float]:
    """Seconds since, CPU seconds and peak memory of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "took_s": time.perf_counter() - begun_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss / 1024,
    }


def alone(work: Callable[..., Answer], *given: Any) -> Answer:
    """Call in a new process, whose peak memory is its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


@contextmanager
def took(what: str, pid: int | None = None) -> Iterator[None]:
    """Print how long the block took, and the CPU seconds of a process meanwhile."""
    begun_s, cpu_s = time.perf_counter(), java_cpu_s(pid) if pid else 0.0
    yield
    cpu = f" {java_cpu_s(pid) - cpu_s:8.1f} s of CPU" if pid else ""
    print(f"{what:<38} {time.perf_counter() - begun_s:8.1f} s{cpu}", flush=True)


def line(name: str, rows: int, cost: dict[str, Any]) -> None:
    """Print what an engine needed for everything."""
    rate, busy = rows / cost["took_s"] / 1e6, rows / cost["cpu_s"] / 1e6
    print(
        f"{name:<28} {rows / 1e6:6.1f} M rows {cost['took_s']:7.1f} s {rate:6.2f} M rows/s "
        f"{cost['cpu_s']:7.1f} s of CPU {busy:6.2f} M rows per CPU second "
        f"{cost['peak_mb']:6.0f} MB at most",
        flush=True,
    )


def agree(ours: Answer, theirs: Answer) -> None:
    """Fail unless counts and shares are the same and percentiles as close as promised."""
    other = {(row["run"], row["scope"]): row for row in theirs["compliance"]}
    assert len(ours["compliance"]) == len(other)
    for row in ours["compliance"]:
        their = other[row["run"], row["scope"]]
        assert row["sampled_items"] == their["sampled_items"], (row, their)
        for level in ("real_time", "near_real_time", "relaxed"):
            share = f"{level}_compliance_percent"
            assert abs(row[share] - their[share]) < 1e-9, (row, their)
        given = (row["duration_p50_ms"], row["duration_p95_ms"])
        for mine, exact in zip(given, their["percentiles_ms"], strict=True):
            assert abs(mine - exact) <= 0.0203 * (exact + 1), (row, their)
    late = {row["run"]: row for row in theirs["cost"]}
    for row in ours["cost"]:
        for level, count in (("real_time", "late"), ("near_real_time", "later")):
            penalty = int(late[row["run"]][count]) * SAMPLE_EVERY * 0.0001
            assert abs(row[f"{level}_penalty_cost"] - penalty) < 1e-6, (row, penalty)
    adapted = {row["run"]: row for row in theirs["time_to_adapt"]}
    for row in ours["time_to_adapt"]:
        if row["scope"] == "overall":
            their = adapted[row["run"]]
            assert row["delayed_stretches"] == their["delayed_stretches"], (row, their)
            assert abs(row["time_to_adapt_mean_s"] - their["time_to_adapt_mean_s"]) < 1e-6
    sampled = {row["run"]: row["sampled_rows"] for row in theirs["input_checks"]}
    for row in ours["input_checks"]:
        if row["check"] == "sampled rows":
            assert row["measured"] == sampled[row["run"]], row


def main() -> None:
    """Generate, measure, compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    rows = int(os.environ.get("ROWS", "100_000_000"))
    parser.add_argument("--rows", type=int, default=rows, help="or ROWS in the environment")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="for the files; default: a temporary one")
    parser.add_argument("--windows", type=int, default=1, help="parts per run instead of one file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as root:
        with took("generate"):
            folder, rows = generate(Path(root), given.rows, given.windows)
        files = list((folder / "measurements" / "processing_duration").rglob("*.parquet"))
        size_mb = sum(file.stat().st_size for file in files) / 1e6
        print(f"{rows / 1e6:.1f} million durations in {len(files)} files, {size_mb:.0f} MB")
        print(f"load of this machine: {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores")
        line("counted by the runs, one core", rows, counting(rows))
        spark_says = spark(folder, f"local[{given.cores}]")
        duckdb_says = alone(duckdb, folder, given.cores)
        fitting = max(1, int(len(complete_runs(folder)) * min(1.0, PANDAS_ROWS / rows)))
        cost = alone(pandas, folder, fitting)["_"][0]
    for index, what in enumerate(("compliance and cost", "all four tables")):
        print(what)
        line("  Spark", rows, spark_says["_"][index])
        line("  DuckDB", rows, duckdb_says["_"][index])
        if index == 0:
            line("  pandas", cost["rows"], cost)
    agree(spark_says, duckdb_says)
    print("Spark and DuckDB agree")


if __name__ == "__main__":
    main()
