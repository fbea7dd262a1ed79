"""How many claims hold, with those apart that say little about the model.

A claim that a calibration was fitted to tests the fit. A claim that the source's own figures
contradict tests nobody: whoever reproduces the one figure fails the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CONTRADICTED, FITTED = "contradicted", "fitted"
APART = {CONTRADICTED: "the source itself contradicts", FITTED: "something was fitted to"}
"""Keys of claims.yaml that set a claim apart, in words; the value says why."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Claims of one kind, and how many of them hold."""

    claims: int
    hold: int

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Tally:
        """Count rows of ``claims``."""
        return cls(len(rows), sum(row["holds"] == "yes" for row in rows))


def why_apart(claim: Mapping[str, Any], pattern: str | None) -> tuple[str, str]:
    """What sets an entry of claims.yaml apart on a pattern, and why; two empty texts for most."""
    for kind in APART:
        if because := on_pattern(claim.get(kind, ""), pattern):
            return kind, because
    return "", ""


def on_pattern(text: str | Mapping[str, str], pattern: str | None) -> str:
    """What is the same for every pattern, or stands by pattern; empty where nothing is said."""
    return text if isinstance(text, str) else text.get(pattern or "", "")


def tally(rows: Sequence[Mapping[str, Any]]) -> dict[str, Tally]:
    """By what sets claims apart; "" are the others, which count."""
    return {kind: Tally.of([row for row in rows if row["apart"] == kind]) for kind in ("", *APART)}


def in_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """One sentence, without its full stop."""
    counted = tally(rows)
    parts = [f"{counted[''].hold} of {counted[''].claims} claims hold"]
    for kind, words in APART.items():
        if (apart := counted[kind]).claims:
            parts.append(f"of {apart.claims} that {words} {apart.hold} hold")
    return "; ".join(parts)
