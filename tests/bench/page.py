"""`python -m tests.bench.page`: how fast the page "Experiments" answers with 1,000 and 10,000 runs.

A real API server with its log-in, a real results database, requests one after the other. CPU is
that of all processes of the server. With `--gate` it ends with 1 when the list takes too much more
with ten times the runs. `--runs 120 --repeats 1` asks the same of fewer runs, once.
"""

from __future__ import annotations

import argparse
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
from tests.bench.gates import exit_code
from tests.builders_staged import tables_of
from tests.e2e.airflow_services import Airflow, airflow_services, migrated

EXPERIMENTS, PER_PAGE = 20, 50
LIST, TIMES, LIST_AT_MOST = "all, newest first", 10, 3
"""CPU of the list with so many times the runs, relative to that with the fewer.

At loads of 1 to 8 it took 1.6 to 2.0 times.
"""
PATTERNS = ("random_walk_1", "stepwise", "two_level", "constant")


def addresses(runs: int) -> Mapping[str, str]:
    """What is asked for: pages in the middle, searches, a comparison."""
    page = max(1, runs // PER_PAGE // 2)
    twenty = "&".join(f"run=e{k:02d}/r{k}" for k in range(EXPERIMENTS))
    return {
        LIST: "/tidebench/",
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
    """CPU of all processes of the server so far."""
    pids = processes_of(airflow.processes["api-server"].pid)
    return 1000 * sum(time.clock_gettime(cpu_clock(pid)) for pid in pids)


def cpu_clock(pid: int) -> int:
    """Clock of a process: clock_getcpuclockid(3), which Python has for threads only."""
    return (~pid << 3) | 2


def timed(
    airflow: Airflow, runs: int, repeats: int
) -> Iterator[tuple[str, list[float], float, int]]:
    """Each address, how long the first answer and the others took (ms), the median CPU of the
    others (ms), and bytes of the first."""
    for name, path in addresses(runs).items():
        first_ms, content = answer_ms(airflow, path)
        others_ms, used_ms = [], []
        for _ in range(repeats):
            begun_ms = cpu_ms(airflow)
            others_ms.append(answer_ms(airflow, path)[0])
            used_ms.append(cpu_ms(airflow) - begun_ms)
        yield name, [first_ms, *others_ms], statistics.median(used_ms), len(content)


def list_ms(airflow: Airflow, runs: int, repeats: int) -> float:
    """Print median, fastest and slowest answer of each address; the CPU of the list."""
    print(f"{runs:,} runs")
    by_name = {}
    for name, (first_ms, *took_ms), used_ms, size in timed(airflow, runs, repeats):
        by_name[name] = used_ms
        print(
            f"{name:<34} {statistics.median(took_ms):6.0f} ms  [{min(took_ms):.0f}, "
            f"{max(took_ms):.0f}], CPU {used_ms:.0f} ms, first {first_ms:.0f} ms, "
            f"{size / 1000:.0f} kB",
            flush=True,
        )
    return by_name[LIST]


def main(arguments: Sequence[str]) -> int:
    """Every address with so many runs and ten times as many, and the ratio of the list."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.page", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help=f"{EXPERIMENTS} or more")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--gate", action="store_true", help="end with 1 when the list is too slow")
    options = parser.parse_args(arguments)
    took_ms = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        home, logs = root / "airflow", root / "logs"
        logs.mkdir()
        environment = migrated(home) | {"TIDEBENCH_DATA_ROOT": str(root)}
        with airflow_services(environment, logs, [], ["api-server"]) as airflow:
            for runs in (options.runs, TIMES * options.runs):
                many_runs(root, runs)
                took_ms.append(list_ms(airflow, runs, options.repeats))
    ratio = took_ms[1] / took_ms[0]
    print(f"{f'{LIST}, ratio':<34} {ratio:6.1f} of CPU")
    name = f"CPU of the list with {TIMES} times the runs"
    return exit_code([(name, ratio, LIST_AT_MOST)], gate=options.gate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
