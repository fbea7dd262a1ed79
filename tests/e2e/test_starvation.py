"""Too few hosts: what is completed looks good, what was left undone does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from include.results.tables.staged import read_table
from tests.command_line import said

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

TOPOLOGY = """
name: tiles
level_unit: cameras
emission_period_s: 1.0
sources:
  S1: {label: Pictures, items_per_level: 8}
operators:
  cut: {label: Cut, slo_ms: 1500, cpu_shares: 1024, memory_mb: 5000, service_ms: 400}
  read: {label: Read, slo_ms: 1500, cpu_shares: 512, memory_mb: 500, service_ms: 10}
edges:
  - {from: S1, to: cut}
  - {from: cut, to: read, out: 10/1}
"""
SPEC = """
name: starved
topology: tiles.yaml
patterns: stepwise
controllers: fixed
btus_min: 10
seeds: 1
duration_min: 10
max_hosts: 1
"""
LEVELS = {"real_time": 1, "near_real_time": 2, "relaxed": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One host has room for one instance that cuts; the peak needs a dozen."""
    root = tmp_path_factory.mktemp("starved")
    (root / "tiles.yaml").write_text(TOPOLOGY)
    (root / "starved.yaml").write_text(SPEC)
    said("run", root / "starved.yaml", "--root", root)
    (root / "said.txt").write_text(said("report", root / "starved", "--master", "local[1]"))
    return root / "starved"


def overall(folder: Path) -> dict[str, Any]:
    rows = read_table(folder / "published" / "compliance.parquet")
    return next(row for row in rows if row["scope"] == "overall")


def columns(folder: Path, table: str) -> dict[str, np.ndarray]:
    part = next((folder / "measurements" / table).glob("*/*"))
    rows = pq.ParquetFile(next(part.glob("*.parquet"))).read()
    return {name: rows[name].to_numpy(zero_copy_only=False) for name in rows.column_names}


def test_the_tables_say_what_another_calculation_does(folder: Path) -> None:
    queue, done = columns(folder, "queue"), columns(folder, "processing_duration")
    row = overall(folder)
    assert row["unprocessed_items"] == (queue["arrived_items"] - queue["completed_items"]).sum()
    middle = np.percentile(done["age_ms"], [50, 95, 99])
    ages = [row[f"age_p{percent}_ms"] for percent in (50, 95, 99)]
    assert ages == pytest.approx(middle, rel=0.02)
    for level, factor in LEVELS.items():
        limit_s = factor * 1.5
        overdue = 0
        for operator in ("cut", "read"):
            of_operator = queue["operator"] == operator
            times_s = np.concatenate([[0.0], queue["time_s"][of_operator]])
            arrived = np.concatenate([[0], queue["arrived_items"][of_operator].cumsum()])
            due = int(np.interp(times_s[-1] - limit_s, times_s, arrived) + 1e-6)
            overdue += max(0, due - queue["completed_items"][of_operator].sum())
        within = (done["duration_ms"] <= 1000 * limit_s).sum()
        expected = 100 * within / (len(done["duration_ms"]) + overdue / 10)
        assert row[f"strict_{level}_compliance_percent"] == pytest.approx(expected, rel=1e-12)


def test_terminal_and_page_begin_with_it(folder: Path) -> None:
    output = (folder.parent / "said.txt").read_text()
    assert output.index("Strict: late, or overdue and left undone") < output.index(
        "Compliance, percent"
    )
    assert max(map(len, output.split("Page: ")[0].splitlines())) <= 100
    page = (folder / "published" / "report.html").read_text()
    assert page.index("Strict near real-time compliance") < page.index("SLA compliance")
