"""`python -m tests.bench.page`: how fast the page "Experiments" answers with 1,000 runs.

A real API server with its log-in, a real results database, requests one after the other. CPU is
that of all processes of the server.
`--runs 120 --repeats 1` asks the same of fewer runs, once.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from include.controllers import CONTROLLERS
from include.results.reports.database import Publication, sent_rows
from include.results.reports.labels import Change, change_labels
from include.runs.measurements.origin import DagRun
from infra.airflow.processes import processes_of
from tests.builders_staged import tables_of
from tests.e2e.airflow_services import Airflow, airflow_services, migrated

EXPERIMENTS, PER_PAGE = 20, 50
PATTERNS = ("random_walk_1", "stepwise", "two_level", "constant")


def addresses(runs: int) -> Mapping[str, str]:
    """What is asked for: pages in the middle, searches, a comparison."""
    page = max(1, runs // PER_PAGE // 2)
    twenty = "&".join(f"run=e{k:02d}/r{k}" for k in range(EXPERIMENTS))
    return {
        "all, newest first": "/tidebench/",
        f"sorted by cost, page {page}": f"/tidebench/?sort=cost&page={page}",
        "filtered by controller and text": "/tidebench/?controller=btu&text=manufacturing",
        "six runs side by side": "/tidebench/compare?"
        + "&".join(f"run=e0{k}/r{k}" for k in range(6)),
        "twenty runs side by side": f"/tidebench/compare?{twenty}",
        "their curves": f"/tidebench/curves?{twenty}",
        "filtered by cost, date and tag": "/tidebench/?cost_from=1&date_from=2020-01-01&tag=some",
        "what is under way": "/tidebench/under-way",
    }


def many_runs(root: Path, runs: int) -> None:
    """Publish runs of 20 experiments into the database of a data root, in random order."""
    draw = random.Random(1)
    names = list(CONTROLLERS)
    for experiment in range(EXPERIMENTS):
        tables: dict[str, list[dict[str, object]]] = {}
        for number in range(experiment, runs, EXPERIMENTS):
            run_tables = tables_of(
                f"r{number}",
                controller=names[number % len(names)],
                pattern=PATTERNS[number % len(PATTERNS)],
                seed=number,
            )
            run_tables["outcomes"][0]["total_cost"] = 100 * draw.random()
            for table, rows in run_tables.items():
                tables.setdefault(table, []).extend(rows)
        del tables["input_checks"]
        for table in ("means", "cells", "comparison", "tournament"):
            tables[table] = tables[table][:1]  # about the experiment, not about a run
        publication = Publication(
            experiment=f"e{experiment:02d}", edition="1", checks=302, by=DagRun("experiment", "m1")
        )
        with sent_rows(f"sqlite:///{root / 'results.db'}", publication, tables):
            pass
    some = [(f"e{number % EXPERIMENTS:02d}", f"r{number}") for number in range(0, runs, 4)]
    change_labels(f"sqlite:///{root / 'results.db'}", some, Change(tags=["some"], note="Said."), "")


def answer_ms(airflow: Airflow, path: str) -> tuple[float, bytes]:
    """One request of somebody who is logged in."""
    request = urllib.request.Request(f"{airflow.url}{path}")
    request.add_header("Authorization", f"Bearer {airflow.token}")
    start_s = time.perf_counter()
    with urllib.request.urlopen(request, timeout=30) as answer:
        content = answer.read()
    return (time.perf_counter() - start_s) * 1000, content


def cpu_ms(airflow: Airflow) -> float:
    """What the server has used so far."""
    ticks = 0
    for pid in processes_of(airflow.processes["api-server"].pid):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return 1000 * ticks / os.sysconf("SC_CLK_TCK")


def timed(
    airflow: Airflow, runs: int, repeats: int
) -> Iterator[tuple[str, list[float], float, int]]:
    """Each address, how long the first answer and the others took (ms), the mean CPU of the others
    (ms), and bytes of the first."""
    for name, path in addresses(runs).items():
        first_ms, content = answer_ms(airflow, path)
        begun_ms = cpu_ms(airflow)
        others_ms = [answer_ms(airflow, path)[0] for _ in range(repeats)]
        used_ms = (cpu_ms(airflow) - begun_ms) / repeats
        yield name, [first_ms, *others_ms], used_ms, len(content)


def main(arguments: Sequence[str]) -> None:
    """Median, fastest and slowest answer of each address, and its CPU."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.page", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help=f"at least {EXPERIMENTS}")
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        many_runs(root, options.runs)
        home, logs = root / "airflow", root / "logs"
        logs.mkdir()
        environment = migrated(home) | {"TIDEBENCH_DATA_ROOT": str(root)}
        with airflow_services(environment, logs, [], ["api-server"]) as airflow:
            for name, (first_ms, *took_ms), used_ms, size in timed(
                airflow, options.runs, options.repeats
            ):
                print(
                    f"{name:<34} {statistics.median(took_ms):6.0f} ms  [{min(took_ms):.0f}, "
                    f"{max(took_ms):.0f}], CPU {used_ms:.0f} ms, first {first_ms:.0f} ms, "
                    f"{size / 1000:.0f} kB",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:])
