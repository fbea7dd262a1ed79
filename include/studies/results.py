"""What becomes of a study: its tables, the claims among them, and its errata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class StudyResults:
    """Tables by name, ``claims`` first, and what the source itself cannot mean."""

    tables: Mapping[str, Rows]
    errata: Sequence[str] = ()

    @property
    def claims(self) -> Rows:
        """Every claim with what was measured."""
        return self.tables["claims"]
