"""How many claims hold, with those apart that say little about the model.

A claim that a calibration was fitted to tests the fit. A claim that the source's own figures
contradict tests nobody: whoever reproduces the one figure fails the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FITTED, CONTRADICTED = "fitted", "contradicted"
APART = (FITTED, CONTRADICTED)
"""Keys of claims.yaml that set a claim apart; the value says why."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Claims of one kind, and how many of them hold."""

    claims: int
    hold: int

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Tally:
        """Count rows of ``claims``."""
        return cls(len(rows), sum(row["holds"] == "yes" for row in rows))


def tally(rows: Sequence[Mapping[str, Any]]) -> dict[str, Tally]:
    """By what sets claims apart; "" are the others, which count."""
    return {
        kind: Tally.of([row for row in rows if row.get("apart", "") == kind])
        for kind in ("", *APART)
    }


def in_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """One sentence, without its full stop."""
    counted = tally(rows)
    said = [f"{counted[''].hold} of {counted[''].claims} claims hold"]
    if (apart := counted[CONTRADICTED]).claims:
        verb = "is" if apart.claims == 1 else "are"
        said.append(f"{apart.claims} {verb} contradicted by the source itself")
    if (apart := counted[FITTED]).claims:
        said.append(f"of {apart.claims} that something was fitted to {apart.hold} hold")
    return "; ".join(said)
