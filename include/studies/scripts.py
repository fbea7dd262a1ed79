"""What stands beside a study: ``python -m`` measures it and writes a CSV file."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from include.experiment.form_lines import seeds_of
from include.experiment.run import Run
from include.runs.session import Session
from include.testbeds.columns import as_text


def tables_in_memory(run: Run) -> dict[str, dict[str, Any]]:
    """The measured tables of a run of which nothing is stored, by their columns."""
    session = Session.open(run)
    session.deploy()
    session.run(0, run.spec.duration_s)
    testbed = session.loop.testbed
    tables = {**testbed.take_measurements(), "lease": testbed.leases()}
    return {name: as_text(columns) for name, columns in tables.items()}


def script_parser(doc: str | None, out: Path, seeds: str) -> argparse.ArgumentParser:
    """The options of such a module: its seeds as numbers, and the file that it writes."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument(
        "--seeds", type=_numbers, default=seeds, help="a range, or separated by commas"
    )
    parser.add_argument("--out", type=Path, default=out)
    return parser


def _numbers(seeds: str) -> list[int]:
    return [int(seed) for seed in seeds_of(seeds)]


def write_as_measured(out: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write every row as soon as it is measured."""
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            file.flush()
