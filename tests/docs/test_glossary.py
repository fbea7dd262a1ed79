"""docs/glossary.md explains every term that a public name uses.

The public names, and the term that each one uses:

- a field of a specification or of a controller's registration, a table of ``sql/tables``: the name
  in words and without its unit, ``duration_min`` as duration;
- a column of a table: the same without statistics, and its noun is enough. So ``paid_btus`` uses
  BTU, and ``time_to_adapt_max_s`` time to adapt.

Plural and singular are one term.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields

import pytest

from include.controllers.base import Registration
from include.experiment.spec import ExperimentSpec
from include.results.tables.catalogue import SQL_ROOT, schema_of
from tests.docs.pages import REPOSITORY

UNITS = {"s", "ms", "min", "mb", "percent"}
STATISTICS = {"per", "mean", "max", "p50", "p95", "p99"}


def rows() -> list[list[str]]:
    """The cells of every row of the glossary's tables, without their heads."""
    text = (REPOSITORY / "docs" / "glossary.md").read_text()
    lines = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    return [row for row in cells if row[0] != "word" and not row[0].startswith("---")]


def explained() -> list[str]:
    """The words of all rows; one row may explain several."""
    words = (word.strip(" *`") for row in rows() for word in row[0].split(","))
    return [in_words(without(UNITS, word)) for word in words]


def in_words(name: str) -> str:
    """``price_books`` as price book."""
    spaced = name.replace("_", " ").lower()
    return re.sub(r"((?<=ch)es|(?<=[a-z]{2})(?<!s)s)$", "", spaced)


def without(endings: set[str], name: str) -> str:
    """The name up to what only measures it; its first word always stays."""
    words = name.split("_")
    while len(words) > 1 and words[-1] in endings:
        words.pop()
    return "_".join(words)


def nouns(term: str) -> Iterator[str]:
    """The term, and it again with fewer words before its last one."""
    words = term.split()
    return (" ".join(words[first:]) for first in range(len(words)))


def spec_and_registration() -> Iterable[str]:
    return [*ExperimentSpec.model_fields, *(one.name for one in fields(Registration))]


def tables() -> list[str]:
    return sorted(file.parent.name for file in SQL_ROOT.glob("tables/*/schema.yaml"))


def columns() -> set[str]:
    return {name for table in tables() for name in schema_of(table).column_names}


@pytest.mark.parametrize("names", [spec_and_registration, tables])
def test_the_glossary_has_every_name(names: Callable[[], Iterable[str]]) -> None:
    terms = {in_words(without(UNITS, name)) for name in names()}
    assert len(terms) > 10
    missing = sorted(terms - set(explained()))
    assert not missing, f"docs/glossary.md does not explain: {', '.join(missing)}"


def test_the_glossary_has_the_noun_of_every_column() -> None:
    known = set(explained())
    terms = {in_words(without(UNITS | STATISTICS, name)) for name in columns()}
    assert len(terms) > 50
    missing = sorted(term for term in terms if known.isdisjoint(nouns(term)))
    assert not missing, f"docs/glossary.md does not explain: {', '.join(missing)}"


def test_a_word_has_one_row_and_a_meaning() -> None:
    assert [word for word, count in Counter(explained()).items() if count > 1] == []
    assert [row[0] for row in rows() if not row[1]] == []
