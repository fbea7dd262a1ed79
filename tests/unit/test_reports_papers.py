"""The page of a paper: claims first, what does not hold is said, values are escaped."""

from __future__ import annotations

import csv
import re

from include.reports.papers import publish_paper, shown, summary
from include.reproduction.papers import PAPERS, Found

FOUND = Found(
    tables={
        "claims": [
            {"id": "C1", "claim": "it is <fast>", "holds": "yes", "measured": "3 s"},
            {"id": "C2", "claim": "it is cheap", "holds": "no", "measured": "9 > 5"},
        ],
        "results": [{"pattern": "pyramid", "mean": 8.123456789012}],
        "empty": [],
    },
    errata=["the unit cannot be thousand hours"],
)


def test_tables_and_page_are_written(tmp_path):
    page = publish_paper(PAPERS["kalman"], FOUND, tmp_path, "1, 2")
    text = page.read_text(encoding="utf-8")
    assert "it is &lt;fast&gt;" in text
    assert "1<i> of 2</i>" in text
    assert "cannot be thousand hours" in text
    assert "8.123" in text
    text = (tmp_path / "published" / "results.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert rows == [{"pattern": "pyramid", "mean": "8.12345678901"}]
    assert not (tmp_path / "published" / "empty.csv").exists()
    links = re.findall(r'href="([^#"]+)"', page.read_text(encoding="utf-8"))
    assert links == ["claims.csv", "results.csv"]
    assert all((page.parent / link).is_file() for link in links)


def test_the_summary_names_what_does_not_hold(tmp_path):
    text = summary(PAPERS["henge"], FOUND, tmp_path / "report.html")
    assert "1 of 2 claims hold." in text
    assert "not: C2: it is cheap (9 > 5)" in text
    assert "C1" not in text


def test_cells_for_readers():
    assert [shown(value) for value in (None, "", 0.123456, 53800.4, 3, "x")] == [
        "", "", "0.1235", "53,800", "3", "x",
    ]  # fmt: skip


def test_every_paper_has_runs_that_can_be_resolved_by_name():
    for name, paper in PAPERS.items():
        runs = paper.runs([1])
        assert runs, name
        assert {run.seed for run in runs} == {1}
        assert len({(run.experiment, run.run_id) for run in runs}) == len(runs)
