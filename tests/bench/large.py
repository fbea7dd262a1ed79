"""`make bench-large`: compliance and cost from many durations, by Spark, DuckDB and pandas.

    python -m tests.bench.large [--rows 100_000_000] [--folder DIR] [--one-part]

The rows are those of a few simulated runs, copied under new run ids: the layout of the store, the
file sizes and the spread of durations are what a sweep of that size leaves behind. ``--one-part``
writes a run's windows as one file, to see what many small files cost. Spark runs the queries of
sql/tables with our session settings, DuckDB says the same in its own SQL on the same files, and
pandas gets as many runs as fit. Spark and DuckDB must agree; pandas is timed only.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
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

from include.control.stages import run_all
from include.experiment.spec import RunSpec
from include.measurements.store import RunStore
from include.tables.build import MANY_RUNS
from include.tables.measured import check_files, complete_runs, register
from include.tables.queries import SHARED, VALUES, run_query
from include.tables.session import spark_session

EXPERIMENT = "large"
SIMULATED = tuple(
    RunSpec(
        experiment="simulated", controller=controller, pattern=pattern, btu_min=10, seed=1,
        duration_min=120,
    )
    for controller in ("btu", "threshold")
    for pattern in ("stepwise", "random_walk_1")
)  # fmt: skip
NEEDED = ("run", "operator", "price", "lease", "processing_duration")
PANDAS_ROWS = 10_000_000
EXCLUDED = tuple(VALUES["excluded_operators"])

Answer = dict[str, list[dict[str, Any]]]

DUCKDB_COMPLIANCE = f"""
WITH late AS (
  SELECT d.run, d.operator, duration_ms, duration_ms / slo_ms AS factor
  FROM processing_duration d JOIN operator o ON o.run = d.run AND o.operator = d.operator
),
scoped AS (
  SELECT *, 'overall' AS scope FROM late
  UNION ALL SELECT *, operator FROM late
  UNION ALL SELECT *, 'without_{"_".join(EXCLUDED).lower()}' FROM late
    WHERE operator NOT IN {EXCLUDED}
)
SELECT run, scope, COUNT(*) AS sampled_items,
  100.0 * COUNT_IF(factor <= 1) / COUNT(*) AS real_time_compliance_percent,
  quantile_cont(CAST(round(duration_ms) AS BIGINT), [0.5, 0.95]) AS percentiles_ms
FROM scoped GROUP BY run, scope
"""
DUCKDB_LATE = """
SELECT d.run, COUNT_IF(duration_ms > slo_ms) AS late
FROM processing_duration d JOIN operator o ON o.run = d.run AND o.operator = d.operator
GROUP BY d.run
"""


def generate(root: Path, rows: int, *, one_part: bool) -> tuple[Path, int]:
    """The folder of an experiment with at least ``rows`` durations, and how many there are."""
    for spec in SIMULATED:
        run_all(spec, root)
    folder, written, number = root / EXPERIMENT, 0, 0
    while written < rows:
        spec = SIMULATED[number % len(SIMULATED)]
        source = RunStore(root / spec.experiment, spec.experiment, spec.run_id)
        target = RunStore(folder, EXPERIMENT, f"{spec.controller}-{number:05}")
        for table in NEEDED:
            _copy(source.part(table, 0).parent, target.part(table, 0).parent, one_part=one_part)
        target.home.mkdir(parents=True)
        shutil.copy(source.manifest, target.manifest)
        parts = json.loads(source.manifest.read_text())["parts"]
        written += sum(p["rows"] for p in parts if "/processing_duration/" in p["path"])
        number += 1
    return folder, written


def _copy(source: Path, target: Path, *, one_part: bool) -> None:
    if not one_part:
        shutil.copytree(source, target)
        return
    target.mkdir(parents=True)
    tables = [pq.ParquetFile(file).read() for file in sorted(source.glob("*.parquet"))]
    pq.write_table(pa.concat_tables(tables), target / "part-000.parquet", compression="zstd")


def spark(folder: Path, master: str) -> Answer:
    """Both tables with the queries of this project; prints how long each step took."""
    runs = complete_runs(folder)
    with took("  Spark: footers of every file"):
        paths = check_files(folder, EXPERIMENT, runs)
    with spark_session(master, many=len(runs) >= MANY_RUNS) as session:
        jvm = session.sparkContext._jvm
        assert jvm is not None
        pid = jvm.java.lang.ProcessHandle.current().pid()
        begun_s = time.perf_counter()
        with took("  Spark: list files"):
            register(session, folder, paths)
        for step in SHARED:
            with took(f"  Spark: {step}, cached"):
                frame = run_query(session, step).cache()
                counted = frame.count()
                frame.createOrReplaceTempView(step)
            print(f"    {counted / 1e6:.1f} million rows")
        answer: Answer = {}
        for table in ("compliance", "cost"):
            with took(f"  Spark: {table}"):
                answer[table] = run_query(session, table).toArrow().to_pylist()
        taken_s = time.perf_counter() - begun_s
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        peak_mb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    return answer | {"_": [{"took_s": taken_s, "peak_mb": peak_mb}]}


def duckdb(folder: Path, threads: int) -> Answer:
    """The same with DuckDB, in a process of its own."""
    import duckdb as engine

    begun_s = time.perf_counter()
    with engine.connect(config={"threads": threads, "memory_limit": "4GB"}) as db:
        for table in ("processing_duration", "operator"):
            files = folder / "measurements" / table / "*" / "*" / "*.parquet"
            db.execute(
                f"CREATE VIEW {table} AS FROM read_parquet('{files}', hive_partitioning = true)"
            )
        answer = {
            "compliance": db.sql(DUCKDB_COMPLIANCE).to_arrow_table().to_pylist(),
            "late": db.sql(DUCKDB_LATE).to_arrow_table().to_pylist(),
        }
    return answer | {"_": [own_cost(begun_s)]}


def pandas(folder: Path, runs: int) -> Answer:
    """The same with pandas for the first ``runs`` runs, in a process of its own."""
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
    late["real_time"] = late["duration_ms"] <= late["slo_ms"]
    late["duration_ms"] = late["duration_ms"].round()
    kept = late[~late["operator"].isin(EXCLUDED)]
    scopes = (late.assign(operator="overall"), late, kept.assign(operator="without"))
    rows: list[dict[str, Any]] = []
    for scope in scopes:
        groups = scope.groupby(["run", "operator"], observed=True)
        shares = pd.DataFrame({
            "sampled_items": groups.size(),
            "real_time_compliance_percent": 100 * groups["real_time"].mean(),
            "p50": groups["duration_ms"].quantile(0.5),
            "p95": groups["duration_ms"].quantile(0.95),
        }).reset_index()  # fmt: skip
        rows += shares.to_dict("records")
    return {"compliance": rows, "_": [own_cost(begun_s) | {"rows": len(late)}]}


def own_cost(begun_s: float) -> dict[str, float]:
    """Seconds since, and the peak memory of this process."""
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"took_s": time.perf_counter() - begun_s, "peak_mb": peak_mb}


def alone(work: Callable[..., Answer], *given: Any) -> Answer:
    """Call in a new process, whose peak memory is its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


@contextmanager
def took(what: str) -> Iterator[None]:
    """Print how long the block took."""
    begun_s = time.perf_counter()
    yield
    print(f"{what:<44} {time.perf_counter() - begun_s:8.1f} s", flush=True)


def line(name: str, rows: int, cost: dict[str, Any]) -> None:
    """Print what an engine needed for everything."""
    rate = rows / cost["took_s"] / 1e6
    print(
        f"{name:<14} {rows / 1e6:7.1f} M rows {cost['took_s']:8.1f} s {rate:7.2f} M rows/s "
        f"{cost['peak_mb']:7.0f} MB at most",
        flush=True,
    )


def agree(spark_says: Answer, duckdb_says: Answer) -> None:
    """Fail unless shares, percentiles and late samples are the same."""
    theirs = {(row["run"], row["scope"]): row for row in duckdb_says["compliance"]}
    ours = {(row["run"], row["scope"]): row for row in spark_says["compliance"]}
    assert ours.keys() == theirs.keys()
    for key, row in ours.items():
        other = theirs[key]
        assert row["sampled_items"] == other["sampled_items"], key
        share = "real_time_compliance_percent"
        assert abs(row[share] - other[share]) < 1e-9, (key, row, other)
        given = (row["duration_p50_ms"], row["duration_p95_ms"])
        off = [abs(a - b) for a, b in zip(given, other["percentiles_ms"], strict=True)]
        assert max(off) <= 1, (key, row, other)
    late = {row["run"]: row["late"] for row in duckdb_says["late"]}
    for row in spark_says["cost"]:
        penalty = int(late[row["run"]]) * 10 * 0.0001
        assert abs(row["real_time_penalty_cost"] - penalty) < 1e-6, (row, penalty)


def main() -> None:
    """Generate, measure, compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="for the files; default: a temporary one")
    parser.add_argument("--one-part", action="store_true", help="one file per run")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as root:
        with took("generate"):
            folder, rows = generate(Path(root), given.rows, one_part=given.one_part)
        files = list((folder / "measurements" / "processing_duration").rglob("*.parquet"))
        size_mb = sum(file.stat().st_size for file in files) / 1e6
        print(f"{rows / 1e6:.1f} million durations in {len(files)} files, {size_mb:.0f} MB")
        spark_says = spark(folder, f"local[{given.cores}]")
        line("Spark", rows, spark_says["_"][0])
        duckdb_says = alone(duckdb, folder, given.cores)
        line("DuckDB", rows, duckdb_says["_"][0])
        fitting = max(1, int(len(complete_runs(folder)) * min(1.0, PANDAS_ROWS / rows)))
        cost = alone(pandas, folder, fitting)["_"][0]
        line("pandas", cost["rows"], cost)
        agree(spark_says, duckdb_says)
        print("all agree")


if __name__ == "__main__":
    main()
