"""Two workloads, two controllers: from the spec to the page and the image."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.results.tables.staged import read_table
from tests.command_line import said

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark"), pytest.mark.nightly]

SPEC = """
name: cup
topology: [manufacturing, tenants_linear_70]
controllers: [threshold, default-storm]
duration_min: 10
btus_min: 10
seeds: [1, 2]
"""


def test_a_small_tournament_is_on_the_page_and_in_the_image(tmp_path: Path) -> None:
    spec, image = tmp_path / "cup.yaml", tmp_path / "cup.svg"
    spec.write_text(SPEC)
    said("run", spec, "--root", tmp_path)
    assert "published/report.html" in said("report", tmp_path / "cup", "--master", "local[2]")
    said("figure", tmp_path / "cup", "--out", image)
    published = tmp_path / "cup" / "published"
    outcomes = {
        (row["topology"], row["controller"], row["seed"]): row
        for row in read_table(published / "outcomes.parquet")
    }
    assert len(outcomes) == 8
    for (topology, controller, _), row in outcomes.items():
        assert row["host_hours"] > 0
        assert row["latency_p95_ms"] >= row["latency_p50_ms"] > 0
        assert (row["utility_percent"] is None) == (topology == "manufacturing")
        assert controller == "threshold" or row["scaling_events"] == 0
        # Of the two workloads Storm's pauses.
        pauses = topology != "manufacturing" and controller == "threshold"
        assert (row["items_in_pauses"] > 0) == pauses
    assert outcomes["manufacturing", "threshold", 1]["scaling_events"] > 0
    tournament = read_table(published / "tournament.parquet")
    assert {row["runs"] for row in tournament} == {2}
    page = (published / "report.html").read_text()
    assert '<section id="tournament">' in page
    assert "tenants linear 70 · constant" in page
    assert page.count("<svg") == 1 + 3 * len(outcomes)
    assert image.read_text().count("default-storm") == 1
