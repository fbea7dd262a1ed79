"""Claims that say little about the model count apart."""

from __future__ import annotations

import pytest

from include.studies.page import CONTRADICTED, FITTED, Tally, in_words, tally, why_apart


def row(holds, apart=""):
    return {"id": "C", "holds": holds, "apart": apart}


ROWS = [row("yes"), row("no"), row(""), row("yes", FITTED), row("no", FITTED),
        row("yes", CONTRADICTED)]  # fmt: skip


def test_what_was_fitted_or_contradicted_counts_apart():
    assert tally(ROWS) == {"": Tally(3, 1), FITTED: Tally(2, 1), CONTRADICTED: Tally(1, 1)}


def test_in_words():
    assert in_words(ROWS) == (
        "1 of 3 claims hold; of 1 that the source itself contradicts 1 hold; "
        "of 2 that something was fitted to 1 hold"
    )
    assert in_words([row("yes")]) == "1 of 1 claims hold"


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
