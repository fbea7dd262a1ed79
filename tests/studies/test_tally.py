"""Claims that say little about the model count apart."""

from __future__ import annotations

from include.studies.claim_counts import CONTRADICTED, FITTED, Tally, in_words, tally


def row(holds, apart=""):
    return {"id": "C", "holds": holds, "apart": apart}


ROWS = [row("yes"), row("no"), row(""), row("yes", FITTED), row("no", FITTED),
        row("yes", CONTRADICTED)]  # fmt: skip


def test_what_was_fitted_or_contradicted_counts_apart():
    assert tally(ROWS) == {"": Tally(3, 1), FITTED: Tally(2, 1), CONTRADICTED: Tally(1, 1)}


def test_in_words():
    assert in_words(ROWS) == (
        "1 of 3 claims hold; 1 is contradicted by the source itself; "
        "of 2 that something was fitted to 1 hold"
    )
    assert in_words([row("yes")]) == "1 of 1 claims hold"
    assert in_words([{"holds": "yes"}]) == "1 of 1 claims hold", "studies without the column"
