"""The page of a study: claims first, what does not hold is said, values are escaped."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from include.studies.page import (
    CONTRADICTED,
    FITTED,
    PageSection,
    StudyResults,
    Tile,
    decimals_of,
    in_words,
    ranges,
    render_page,
    shown,
    summary,
    why_apart,
)

ORIGIN = {
    "study": "x", "title": "A & B", "seeds": "1, 2", "seen": [], "edition": "e",
    "git_commit": "abc", "versions": {"numpy": "2"},
}  # fmt: skip
CHECKS = {"quarantined": {}, "checks": [{}, {}]}


def claim(name, sentence, holds, measured, **apart):
    row = {"id": name, "section": "4", "claim": sentence, "holds": holds, "measured": measured}
    return {**row, "apart": "", "because": "", **apart}


def page(results, files=(), **origin):
    return render_page(results, {**ORIGIN, **origin}, CHECKS, files)


RESULTS = StudyResults(
    tables={
        "claims": [
            claim("C1", "it is <fast>", "yes", "3 s"),
            claim("C2", "it is cheap", "no", "9 > 5"),
            claim("C3", "it is small", "", ""),
        ],
        "results": [{"pattern": "pyramid", "mean": 8.123456789012}],
        "empty": [],
    },
    errata=["the unit cannot be thousand hours"],
)


def test_the_page_shows_claims_tables_and_errata():
    text = page(RESULTS)
    assert "A &amp; B" in text
    assert "with seeds 1, 2" in text
    assert "it is &lt;fast&gt;" in text
    assert "1<i> of 3</i>" in text
    assert text.count("✓ holds") == text.count("✗ fails") == text.count(">unknown<") == 1
    assert "cannot be thousand hours" in text
    assert "8.123" in text


def test_a_long_table_is_folded_away():
    tables = {"claims": RESULTS.claims, "cells": [{"mean": float(k)} for k in range(61)]}
    assert "<summary>61 rows</summary>" in page(StudyResults(tables=tables))
    assert "<summary>" not in page(RESULTS)


def test_every_table_and_file_is_linked():
    files = ["claims.csv", "manifest.json", "results.csv"]
    links = re.findall(r'href="([^#"]+)"', page(RESULTS, files))
    assert links == ["claims.csv", "results.csv", "../data_docs/index.html", *files]


def test_the_summary_names_what_does_not_hold_and_what_nobody_knows():
    text = summary(RESULTS)
    assert "1 of 3 claims hold." in text
    assert "not: C2: it is cheap (9 > 5)" in text
    assert "unknown: C3: it is small (not measured)" in text
    assert "C1" not in text


def test_cells_for_readers():
    assert [shown(value) for value in (None, "", 0.123456, 53800.4, 3, "x", -1.234e-42)] == [
        "", "", "0.1235", "53,800", "3", "x", "-1.2e-42",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ([8.123456, 12.3, 100.0], ["8.1", "12.3", "100.0"]),
        ([0.98123, 53800.4], ["0.9812", "53,800"]),
        ([3.0, 40.0, None], ["3", "40", ""]),
        ([-0.0, 0.00123456, 0.5, 1e-42], ["0.0000", "0.0012", "0.5000", "1.0e-42"]),
        ([0.000123456], ["0.0001235"]),
        ([0.0123, 45.6789], ["0.012", "45.679"]),
        ([float("inf"), 2.5, 7], ["inf", "2.5", "7"]),
        (["x", True], ["x", "yes"]),
    ],
)
def test_fractions_of_a_column_have_the_same_decimals(values, cells):
    rows = [{"mean": value} for value in values]
    decimals = decimals_of(rows).get("mean")
    assert [shown(value, decimals) for value in values] == cells
    table = page(StudyResults(tables={"claims": RESULTS.claims, "cells": rows}))
    assert all(f">{cell}</td>" in table for cell in cells)


def test_seeds_that_follow_each_other_are_a_range():
    assert ranges("1, 2, 3, 7, 9, 10, 25, 26, 27") == "1-3, 7, 9, 10, 25-27"
    assert [ranges(seeds) for seeds in ("5", "not recorded", "")] == ["5", "not recorded", ""]
    text = page(RESULTS, seeds="25, 26, 27")
    assert "with seeds 25-27, and" in text
    assert "tidebench paper x --seeds 25-27<" in text


def test_the_page_says_how_its_claims_are_read():
    assert "<p>two &lt; three</p>" in page(replace(RESULTS, claims_text=["two < three"]))


def test_claims_that_count_apart_and_what_was_seen_are_on_the_page():
    fitted = claim("C1", "x", "yes", "3", apart="fitted", because="to Table 3")
    seen = [{"what": "image_ms", "patterns": "pyramid"}]
    results = StudyResults(tables={"claims": [fitted]})
    text = page(results, ["seen.csv"], seen=seen)
    assert "0<i> of 0</i>" in text
    assert "1<i> of 1</i>" in text
    assert "image_ms" in text
    assert text.count('href="seen.csv"') == 2
    assert "fitted to 1 hold." in summary(results)


def test_a_study_may_say_draw_and_tabulate_what_it_likes():
    rows = [{"cell": "a", "inside": True, "empty": ""}, {"cell": "b", "inside": False, "empty": ""}]
    own = PageSection(
        name="cells", title="Cells", text=["a < b"], figures={"over time": "<svg></svg>"},
        rows=rows, folded=True,
    )  # fmt: skip
    tile = Tile("cells inside", 1, 2)
    text = page(replace(RESULTS, sections=[own], tiles=[tile]))
    assert "a &lt; b" in text
    assert "<svg></svg>" in text
    assert "<details><summary>2 rows</summary>" in text
    assert text.count('class="off"') == 1
    assert "<th>empty</th>" not in text, "a column in which no row says anything"
    assert "1<i> of 2</i>" in text
    assert "pyramid" not in text, "its own sections stand in the place of all tables"


def test_claims_that_say_little_about_the_model_are_counted_apart():
    holds = [("yes", ""), ("no", ""), ("", ""), ("yes", FITTED), ("no", FITTED)]
    rows = [
        claim("C", "x", answer, "", apart=kind) for answer, kind in [*holds, ("yes", CONTRADICTED)]
    ]
    assert in_words(rows) == (
        "1 of 3 claims hold; of 1 that the source itself contradicts 1 hold; "
        "of 2 that something was fitted to 1 hold"
    )
    assert in_words(rows[:1]) == "1 of 1 claims hold"


@pytest.mark.parametrize(
    ("claim", "pattern", "apart"),
    [
        ({}, "spike", ("", "")),
        ({FITTED: "Table 3"}, None, (FITTED, "Table 3")),
        ({CONTRADICTED: {"spike": "Table 4"}}, "spike", (CONTRADICTED, "Table 4")),
        ({CONTRADICTED: {"spike": "Table 4"}}, "diurnal", ("", "")),
        ({CONTRADICTED: {"spike": "Table 4"}, FITTED: "Table 3"}, "diurnal", (FITTED, "Table 3")),
    ],
)
def test_a_claim_is_apart_on_every_pattern_or_on_those_named(claim, pattern, apart):
    assert why_apart(claim, pattern) == apart
