"""Staged tables made up for tests of gate and publication, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from include.results.quality.verdict import Verdict, staged_digests, verdict_path, write_verdict
from include.results.tables.catalogue import INPUT_CHECKS, PUBLISHED, schema_of
from include.results.tables.quarantine import Check
from include.results.tables.staged import read_staged, staged_path, staged_schema, write_table

Rows = list[dict[str, Any]]
RUN = "btu-random_walk_1-btu10-s1"
ORIGIN = {"experiment": "demo", "edition": "0", "git_commit": None, "versions": {"python": "3.11"}}
CHECK = {"table": "cost", "sentence": "Fine.", "passed": True}
VERDICT = {"passed": True, "checks": [CHECK], "quarantined": {}}


def stage(
    folder: Path, run: str = RUN, *, controller: str = "btu", pattern: str = "random_walk_1"
) -> Path:
    """Write every staged table of one run of two minutes and return ``folder``."""
    for table, rows in tables_of(run, controller=controller, pattern=pattern).items():
        restage(folder, table, rows)
    return folder


def tables_of(
    run: str, *, controller: str = "btu", pattern: str = "random_walk_1", seed: int = 1
) -> dict[str, Rows]:
    """Every table of one run of two minutes."""
    dims = {"run": run, "controller": controller, "pattern": pattern, "btu_min": 10.0, "seed": seed}
    total = dims | {"metric": "strict_total_cost"}
    made_up = {
        **_results(dims),
        **_activity(run),
        "tournament": [_any_row("tournament", total)],
    }
    tables = (*PUBLISHED, INPUT_CHECKS)
    return {table: made_up.get(table, [_any_row(table, dims)]) for table in tables}


def restage(folder: Path, table: str, rows: Rows) -> None:
    """Replace one staged table."""
    whole = pa.Table.from_pylist(rows, schema=staged_schema(table))
    write_table(staged_path(folder, table), table, whole)


def change(folder: Path, table: str, **values: Any) -> None:
    """Set columns of the first row of one staged table."""
    rows = read_staged(folder, table)
    rows[0].update(values)
    restage(folder, table, rows)


def as_published(folder: Path) -> Path:
    """The staged tables where published ones lie, for what reads nothing else."""
    (folder / "staged").rename(folder / "published")
    (folder / "published" / "manifest.json").write_text("{}")
    return folder


def let_pass(folder: Path, *left_out: str) -> Path:
    """Write the verdict that a gate gives to tables that pass, and return ``folder``.

    ``left_out`` are runs that it took out of them.
    """
    check = Check(
        table="cost", columns=("leases",), expectation="made_up", sentence="Fine.", passed=True
    )
    failed = Check(
        table="cost", columns=("leases",), expectation="made_up", sentence="It has leases.",
        passed=False, rows=({"leases": -1},),
    )  # fmt: skip
    verdict = Verdict(
        experiment=folder.name,
        staged=staged_digests(folder),
        checks=(check,),
        quarantined=dict.fromkeys(left_out, (failed,)),
    )
    write_verdict(verdict_path(folder), verdict)
    return folder


def _results(dims: dict[str, Any]) -> dict[str, Rows]:
    shares = {"real_time": 49.0, "near_real_time": 85.0, "relaxed": 89.0}
    compliance = {
        **dims,
        "sampled_items": 100,
        **{f"{level}_compliance_percent": share for level, share in shares.items()},
        "duration_p50_ms": 700.0,
        "duration_p95_ms": 2000.0,
        "unprocessed_items": 40,
        **{f"strict_{level}_compliance_percent": share - 4 for level, share in shares.items()},
        **{f"end_to_end_{level}_compliance_percent": share - 5 for level, share in shares.items()},
        "age_p50_ms": 3000.0,
        "age_p95_ms": 9000.0,
        "age_p99_ms": 12000.0,
    }
    penalties = {"real_time": 90.0, "near_real_time": 25.0, "relaxed": 20.0}
    cost = [
        {
            **dims,
            "price_book": f"btu{btu_min:g}",
            "price_book_btu_min": btu_min,
            "leases": 2,
            "paid_btus": 3,
            "resource_cost": 70.0,
            "begun_cost": 69.0,
            "cover_cost": None,
            "floor_cost": None,
            "floor_found_cost": None,
            "regret": None,
            "total_regret": None,
            **{f"{level}_penalty_cost": value for level, value in penalties.items()},
            **{f"{level}_total_cost": 70.0 + value for level, value in penalties.items()},
            **{f"strict_{level}_penalty_cost": value + 2 for level, value in penalties.items()},
            **{f"strict_{level}_total_cost": 72.0 + value for level, value in penalties.items()},
            **{
                f"end_to_end_{level}_total_cost": 73.0 + value for level, value in penalties.items()
            },
        }
        for btu_min in (10.0, 30.0)
    ]
    run = {
        **dims, "variant": "", "conditions": "", "duration_min": 2.0,
        "topology": "manufacturing", "testbed": "simulated", "flavor": "m2.medium",
        "vcpus": 4.0, "memory_mb": 7168.0, "sample_every_items": 10,
        "spec_hash": "0123456789abcdef",
    }  # fmt: skip
    return {
        "runs": [run],
        "compliance": [{**compliance, "scope": scope} for scope in ("overall", "O1", "O2")],
        "cost": cost,
        "cost_parts": parts_of("cost_parts", dims),
        "cost_parts_means": [],
    }


def parts_of(table: str, dims: dict[str, Any]) -> Rows:
    """The row of a table of parts, of a bill of 70 and a cover of 50."""
    parts = {"work": 25, "whole_instances": 10, "whole_hosts": 5, "headroom": 18, "spread": 6,
             "empty": 2, "unused": 4}  # fmt: skip
    costs = {f"{name}_cost": float(cost) for name, cost in parts.items()}
    bill = {"resource_cost": 70.0, "unexplained_cost": 0.0, "cover_cost": 50.0, "regret": 1.4}
    return [_any_row(table, {**dims, "variant": "", "conditions": "", **costs, **bill})]


def _activity(run: str) -> dict[str, Rows]:
    counts = {
        "upscaling": 2, "downscaling": 1, "migrations": 0,
        "hosts_leased": 1, "hosts_prolonged": 0, "hosts_released": 0,
    }  # fmt: skip
    calm = dict.fromkeys(counts, 0)
    timeline = [
        {"run": run, "time_s": 15.0 * k, "level_machines": 4.0, "hosts": 2, "instances": 9,
         "ready_instances": 9, "waiting_items": 5 * k}
        for k in range(1, 9)
    ]  # fmt: skip
    return {
        "scaling": [{"run": run, "minute": 0, **counts}, {"run": run, "minute": 1, **calm}],
        "scaling_total": [{"run": run, **counts, "items_in_pauses": 12.5}],
        "time_to_adapt": [
            {"run": run, "scope": "O1", "delayed_stretches": 2, "unfinished_stretches": 1,
             "time_to_adapt_mean_s": 30.0, "time_to_adapt_max_s": 45.0}
        ],
        "timeline": timeline,
        "utilisation": [
            {"run": run, "observations": 16, "host_cpu_mean_percent": 40.0,
             "host_cpu_max_percent": 90.0, "host_memory_mean_percent": 80.0,
             "host_memory_max_percent": 95.0}
        ],
        "decisions": [{"run": run, "action": "wait", "reason": "nothing_to_do",
                       "accepted": True, "decisions": 2}],
        "rescales": [],
        "advisors": [
            {"run": run, "advisor": "keda", "scope": scope, "decisions": 2, "failed_decisions": 0,
             "actual_instances": 9.0, "advised_instances": 11.5, "differing_percent": 50.0,
             "actual_hosts": 2.0, "advised_hosts": 2.5}
            for scope in ("overall", "O1", "O2")
        ],
        "advisors_timeline": [
            {"run": run, "advisor": "keda", "time_s": time_s, "actual_instances": 9,
             "advised_instances": would, "actual_hosts": 2, "advised_hosts": 2}
            for time_s, would in ((0.0, 9), (60.0, 14))
        ],
        INPUT_CHECKS: [
            {"run": run, "input": "lease", "check": "hosts leased twice", "measured": 0.0,
             "lowest": 0.0, "highest": 0.0},
            {"run": run, "input": "price", "check": "price books", "measured": 2.0,
             "lowest": 1.0, "highest": None},
        ],
    }  # fmt: skip


def _any_row(table: str, dims: dict[str, Any]) -> dict[str, Any]:
    """A row of a table that no test here looks into."""
    value = {"string": "any", "double": 1.0, "bigint": 1, "boolean": True}
    return {c.name: dims.get(c.name, value[c.type]) for c in schema_of(table).columns}
