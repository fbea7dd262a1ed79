"""What becomes of a study: its tables, the claims among them, its page, and its errata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure at the head of a page: how many of how many, and what of."""

    label: str
    count: int
    of: int
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class PageSection:
    """A part of a page: what is said, then figures, then rows, which may be folded away.

    ``name`` is its address; where a CSV file of that name is published, the section links it.
    ``figures`` are SVG by caption. A row whose ``inside`` is false stands out.
    """

    name: str
    title: str
    text: Sequence[str] = ()
    figures: Mapping[str, str] = field(default_factory=dict)
    rows: Rows = ()
    folded: bool = False


@dataclass(frozen=True, kw_only=True)
class StudyResults:
    """Tables by name, ``claims`` first, and what the source itself cannot mean.

    ``sections`` are those of the page behind the claims, ``tiles`` its figures beside theirs. A
    study that has no sections of its own shows every table. ``drift_sentences`` say what became of
    each baseline.
    """

    tables: Mapping[str, Rows]
    errata: Sequence[str] = ()
    sections: Sequence[PageSection] = ()
    tiles: Sequence[Tile] = ()
    drift_sentences: Sequence[str] = ()

    @property
    def claims(self) -> Rows:
        return self.tables["claims"]
