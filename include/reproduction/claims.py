"""What PeerJ CS 141 claims in its evaluation, held against measured and against printed figures.

The same question is asked of what was measured and of what the paper prints, because not
everything that the text says follows from its own tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from include.reproduction.facts import Facts, NotKnown
from include.reproduction.questions import QUESTIONS

CLAIM_COLUMNS = (
    "id", "section", "claim", "pattern", "controller",
    "holds", "numbers", "holds_in_paper", "numbers_in_paper",
)  # fmt: skip


def check_claims(
    measured: Mapping[str, Facts], paper: Facts, patterns: Sequence[str]
) -> list[dict[str, Any]]:
    """One row per claim, pattern and BTU-based controller of ``measured``.

    ``holds`` and ``holds_in_paper`` are yes, no, or empty where the figures are not known.
    """
    rows = []
    for claim in claims():
        for pattern in claim.get("patterns", patterns):
            of_paper = _asked(claim["question"], paper, pattern)
            for controller, facts in measured.items():
                answer = _asked(claim["question"], facts, pattern)
                about = (claim["id"], claim["section"], claim["claim"], pattern, controller)
                rows.append(dict(zip(CLAIM_COLUMNS, (*about, *answer, *of_paper), strict=True)))
    return rows


@cache
def claims() -> tuple[Mapping[str, Any], ...]:
    """The claims, as claims.yaml lists them."""
    text = Path(__file__).with_name("claims.yaml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load(text))


def _asked(question: str, facts: Facts, pattern: str) -> tuple[str, str]:
    try:
        holds, numbers = QUESTIONS[question](facts, pattern)
    except NotKnown:
        return "", ""
    return "yes" if holds else "no", numbers
