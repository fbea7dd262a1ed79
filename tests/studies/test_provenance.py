"""What every study says its values have seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from include.studies import STUDIES, study_named
from include.studies.provenance import FOLDER, read_seen, seen_rows

ROOT = FOLDER.parents[1]
ENTRY = """
  - {what: a, where: b, how: fitted, patterns: [p], seeds: [1], figures: Table 1}
"""


@pytest.mark.parametrize("study", STUDIES)
def test_every_study_says_what_its_values_have_seen(study):
    found = read_seen(study)
    missing = [one.where for one in found.entries if not (ROOT / one.where).is_file()]
    assert missing == []
    workloads = {run.pattern for run in study_named(study).runs([1])}
    workloads |= {run.topology for run in study_named(study).runs([1])}
    assert found.patterns | set(found.withheld) <= workloads | {"not recorded", "constant"}


def test_square_is_not_called_unseen_where_a_choice_has_seen_it():
    assert "square" in read_seen("pvldb127").patterns


def test_rows_for_the_page_name_what_is_withheld():
    rows = seen_rows("peerj141")
    assert rows[-1]["how"] == "withheld"
    assert rows[-1]["patterns"] == "two_level, random_walk_2"
    assert rows[0]["seeds"].startswith("1, 2, 3")
    assert {tuple(row) for row in rows} == {tuple(rows[0])}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("entries: []", "at least 1 item"),
        (f"entries:{ENTRY}withheld: [p]", "withheld, and yet an entry has seen it"),
        (f"entries:{ENTRY.replace('fitted', 'guessed')}", "'fitted' or 'chosen'"),
        (f"entries:{ENTRY.replace('seeds: [1], ', '')}", "Field required"),
    ],
)
def test_what_is_wrong_with_the_file_is_said(tmp_path: Path, text, problem):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "seen.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ValidationError, match=problem):
        read_seen("x", tmp_path)
