"""The page of a study: claims first, what does not hold is said, values are escaped."""

from __future__ import annotations

import re

from include.studies.page import render_page, shown, summary
from include.studies.results import StudyResults

RESULTS = StudyResults(
    tables={
        "claims": [
            {"id": "C1", "claim": "it is <fast>", "holds": "yes", "measured": "3 s"},
            {"id": "C2", "claim": "it is cheap", "holds": "no", "measured": "9 > 5"},
            {"id": "C3", "claim": "it is small", "holds": "", "measured": ""},
        ],
        "results": [{"pattern": "pyramid", "mean": 8.123456789012}],
        "empty": [],
    },
    errata=["the unit cannot be thousand hours"],
)


def test_the_page_shows_claims_tables_and_errata():
    text = render_page(RESULTS, {"title": "A & B", "seeds": "1, 2"}, {"quarantined": {}}, [])
    assert "A &amp; B" in text
    assert "with seeds 1, 2" in text
    assert "it is &lt;fast&gt;" in text
    assert "1<i> of 3</i>" in text
    assert text.count("✓ holds") == text.count("✗ fails") == text.count(">unknown<") == 1
    assert "cannot be thousand hours" in text
    assert "8.123" in text


def test_every_table_and_file_is_linked():
    files = ["claims.csv", "manifest.json", "results.csv"]
    text = render_page(RESULTS, {"title": "A", "seeds": "1"}, {"quarantined": {}}, files)
    links = re.findall(r'href="([^#"]+)"', text)
    assert links == ["claims.csv", "results.csv", *files]


def test_the_summary_names_what_does_not_hold_and_what_nobody_knows():
    text = summary(RESULTS)
    assert "1 of 3 claims hold." in text
    assert "not: C2: it is cheap (9 > 5)" in text
    assert "unknown: C3: it is small (not measured)" in text
    assert "C1" not in text


def test_cells_for_readers():
    assert [shown(value) for value in (None, "", 0.123456, 53800.4, 3, "x")] == [
        "", "", "0.1235", "53,800", "3", "x",
    ]  # fmt: skip


def test_claims_that_count_apart_and_what_was_seen_are_on_the_page():
    fitted = {"id": "C1", "claim": "x", "holds": "yes", "apart": "fitted", "because": "to Table 3"}
    seen = [{"what": "image_ms", "patterns": "pyramid"}]
    origin = {"title": "A", "seeds": "1", "seen": seen}
    results = StudyResults(tables={"claims": [fitted]})
    text = render_page(results, origin, {"quarantined": {}}, [])
    assert "0<i> of 0</i>" in text
    assert "1<i> of 1</i>" in text
    assert "image_ms" in text
    assert 'href="seen.csv"' in text
    assert "fitted to 1 hold." in summary(results)
