"""Prove that a refactoring changes no measured byte: run the same specs with two checkouts.

    python infra/compare/checkouts.py ../before . --seeds 1 --minutes 20

Every spec in include/experiment/specs of the first is measured on its virtual testbeds with the
code of either checkout, each with a PYTHONPATH and a data root of its own, and the Parquet files
of every run are held against each other. Exit code 0: all identical; 1: not; 2: nothing compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

MEASURE = Path(__file__).with_name("measure.py")
SPECS = Path("include") / "experiment" / "specs"


@dataclass(frozen=True, slots=True)
class ComparedSpec:
    """A spec in the table: numbers of runs and files, and the differences."""

    spec: str
    runs: int
    files: int
    differences: tuple[str, ...]

    def __str__(self) -> str:
        verdict = f"DIFFERENT ({len(self.differences)})" if self.differences else "identical"
        return f"{self.spec:<32} {self.runs:>5} {self.files:>6}  {verdict}"


def measured(checkout: Path, specs: Iterable[Path], work: Path, cut: dict[str, Any]) -> Any:
    """Measure with the code of a checkout below ``work``; returns the outcome of `measure.py`.

    Nothing is written into the checkout. Raises CalledProcessError.
    """
    work.mkdir(parents=True, exist_ok=True)
    order = {"cut": cut, "specs": [str(spec.resolve()) for spec in specs]}
    (work / "order.json").write_text(json.dumps(order))
    environment = {
        "NUMBA_CACHE_DIR": str(work / "numba"),
        **os.environ,
        "PYTHONPATH": str(checkout.resolve()),
        "PYTHONPYCACHEPREFIX": str(work / "pycache"),
    }
    command = [sys.executable, str(MEASURE), str(work)]
    subprocess.run(command, cwd=checkout, env=environment, check=True)
    return json.loads((work / "outcome.json").read_text())


def files_of(data: Path, run: str) -> dict[str, Path]:
    """The measured files of ``<experiment>/<run>``, by table and name."""
    experiment, run_id = run.split("/")
    paths = (data / experiment / "measurements").glob(f"*/*/run={run_id}/*.parquet")
    return {f"{path.parts[-4]}/{path.name}": path for path in paths}


def differences(
    before: dict[str, Path], after: dict[str, Path], new_columns: Collection[str]
) -> list[str]:
    """Sentence for every difference between the files of a run, except ``new_columns``."""
    differing = [
        f"{name}: only in the first checkout" for name in sorted(before.keys() - after.keys())
    ]
    differing += [f"{name}: only in the second checkout" for name in sorted(after.keys() - before)]
    for name in sorted(before.keys() & after.keys()):
        if _sha256(before[name]) != _sha256(after[name]) and (
            problem := _difference(before[name], after[name], new_columns)
        ):
            differing.append(f"{name}: {problem}")
    return differing


def _difference(before: Path, after: Path, new_columns: Collection[str]) -> str:
    old, new = pq.ParquetFile(before).read(), pq.ParquetFile(after).read()
    added = [name for name in new.column_names if name not in old.column_names]
    if any(name not in new_columns for name in added):
        return f"new columns {', '.join(added)}"
    kept = new.drop_columns(added)
    if kept.schema != old.schema:
        return f"columns {', '.join(old.column_names)} became {', '.join(kept.column_names)}"
    changed = [name for name in old.column_names if kept[name] != old[name]]
    if changed:
        return f"other values of {', '.join(changed)}"
    return "" if added else "other bytes, though the same rows"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def table(before: Path, after: Path, new_columns: Collection[str]) -> list[ComparedSpec]:
    """A row per spec that both have measured; ``before`` and ``after`` are their work folders."""
    sides = [json.loads((work / "outcome.json").read_text()) for work in (before, after)]
    failed = {run: error for side in sides for run, error in side["failed"].items()}
    rows = []
    for spec, runs in sides[0]["runs"].items():
        problems, files = [], 0
        if runs != (others := sides[1]["runs"][spec]):
            problems.append(f"other runs: {sorted(set(runs) ^ set(others))[:4]} ...")
        for run in runs:
            ours, theirs = files_of(before / "data", run), files_of(after / "data", run)
            files += len(ours)
            differing = [failed[run]] if run in failed else differences(ours, theirs, new_columns)
            problems += [f"{run}: {difference}" for difference in differing]
            if not ours and run not in failed:
                problems.append(f"{run}: nothing was measured")
        rows.append(ComparedSpec(spec, len(runs), files, tuple(problems)))
    return rows


def chosen(checkout: Path, extra: Collection[Path], only: Collection[str]) -> dict[str, Path]:
    """Specs by name: those in ``only`` (or all) of a checkout, and the files in ``extra``."""
    specs = {path.stem: path for path in sorted((checkout / SPECS).glob("*.yaml"))}
    named = {name: path for name, path in specs.items() if only == {"all"} or name in only}
    return named | {path.stem: path for path in extra}


def main(arguments: list[str]) -> int:
    """Measure, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, help="a checkout of the state before")
    parser.add_argument("after", type=Path, help="a checkout of the state after")
    parser.add_argument("--seeds", type=int, default=0, help="of each spec the first so many")
    parser.add_argument("--minutes", type=float, default=0, help="cut runs to so many")
    parser.add_argument("--runs", type=int, default=0, help="of each spec so many, spread evenly")
    parser.add_argument("--only", default="all", help="names of specs, with commas, or none")
    parser.add_argument("--spec", type=Path, action="append", default=[], help="one more, a file")
    parser.add_argument("--allow-new-columns", default="", help="separated by commas")
    parser.add_argument(
        "--keep",
        type=Path,
        help="a folder for what is measured; next time unchanged code measures nothing again",
    )
    options = parser.parse_args(arguments)
    only = set(options.only.split(","))
    sides = {"before": options.before, "after": options.after}
    # The same spec files for both, because a run's id has the path of the trace beside its spec.
    specs = chosen(options.before, options.spec, only)
    for name in sorted(chosen(options.after, options.spec, only).keys() - specs.keys()):
        print(f"not compared, because the first checkout does not have it: {name}")
    with tempfile.TemporaryDirectory() as temporary:
        work = options.keep or Path(temporary)
        for side, path in sides.items():
            print(f"measuring with {path} ...", flush=True)
            cut = {"seeds": options.seeds, "minutes": options.minutes, "runs": options.runs}
            measured(path, specs.values(), work / side, cut)
        rows = table(work / "before", work / "after", options.allow_new_columns.split(","))
    return report(rows)


def report(rows: list[ComparedSpec]) -> int:
    """Print the table and the differences; returns the exit code."""
    print(f"{'spec':<32} {'runs':>5} {'files':>6}")
    for row in rows:
        print(row)
    total = ComparedSpec(
        "all",
        sum(row.runs for row in rows),
        sum(row.files for row in rows),
        tuple(difference for row in rows for difference in row.differences),
    )
    print(total)
    for difference in total.differences[:50]:
        print(f"  {difference}")
    if not total.runs:
        return 2
    return 1 if total.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
