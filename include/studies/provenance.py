"""What each calibrated value and each choice of a study has seen: ``seen.yaml`` in its folder.

A figure is a test of the model only where nothing was fitted to it. docs/reproduction.md has
the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

FOLDER = Path(__file__).parent
Text = Annotated[str, Field(min_length=1)]


class SeenBy(BaseModel):
    """Some values or one choice, and what was looked at for them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: Text
    where: Text
    """The file that holds it."""
    how: Literal["fitted", "chosen"]
    """By a search or by a person. What a source states needs no entry."""
    patterns: tuple[Text, ...]
    """Workloads that were run or whose figures were read for it."""
    seeds: tuple[int, ...] | Literal["not recorded"]
    figures: Text
    """Which figures of the source, or that none was looked at."""


class SeenFile(BaseModel):
    """The whole of a seen.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    entries: tuple[SeenBy, ...] = Field(min_length=1)
    withheld: tuple[Text, ...] = ()
    """Workloads of which nothing was used for any value or choice."""

    @model_validator(mode="after")
    def _withheld_is_unseen(self) -> SeenFile:
        if both := sorted(set(self.withheld) & self.patterns):
            raise ValueError(f"{', '.join(both)}: withheld, and yet an entry has seen it")
        return self

    @property
    def patterns(self) -> set[str]:
        """What any entry has seen."""
        return {pattern for entry in self.entries for pattern in entry.patterns}


@cache
def read_seen(study: str, folder: Path = FOLDER) -> SeenFile:
    """What a study's values have seen."""
    text = (folder / study / "seen.yaml").read_text(encoding="utf-8")
    return SeenFile.model_validate(yaml.safe_load(text))


def seen_rows(study: str) -> list[Mapping[str, Any]]:
    """One row per entry, then one for what is withheld."""
    training = read_seen(study)
    rows = [
        {**entry.model_dump(), "patterns": ", ".join(entry.patterns), "seeds": _listed(entry.seeds)}
        for entry in training.entries
    ]
    if training.withheld:
        of = {"what": "nothing", "where": "", "how": "withheld", "seeds": "", "figures": "none"}
        rows.append({**of, "patterns": ", ".join(training.withheld)})
    columns = ("what", "how", "patterns", "seeds", "figures", "where")
    return [{name: row[name] for name in columns} for row in rows]


def _listed(seeds: Iterable[int] | str) -> str:
    return seeds if isinstance(seeds, str) else ", ".join(map(str, seeds))
