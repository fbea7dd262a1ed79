"""The page of a study: which claims hold, its sections, what each value has seen, and errata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import floor, inf, log10
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from include.results.tables.staged import Rows
from include.results.templates import templates_in

SHOWN_DIGITS = 4
LEAST_DIGITS = 2
"""Of the smallest number of a column, as long as `MOST_DECIMALS` have room for them."""
MOST_DECIMALS = 3
TINY = 1e-4
LARGE = 1000
MOST_OPEN = 60
"""Rows of a table that is not folded away, where a study has no sections of its own."""
_OF_A_CLAIM = ("id", "section", "claim", "apart", "because")
"""What the page says of a claim once, or beside whether it holds."""
_BY_THE_SOURCE = "counted apart: the source's own figures say otherwise"
_HERE = Path(__file__).parent


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

    ``claims_text`` says how claims and their answers are to be read, ``sections`` are those of the
    page behind the claims, ``tiles`` its figures beside theirs. A study that has no sections of its
    own shows every table. ``drift_sentences`` say what became of each baseline.
    """

    tables: Mapping[str, Rows]
    errata: Sequence[str] = ()
    claims_text: Sequence[str] = ()
    sections: Sequence[PageSection] = ()
    tiles: Sequence[Tile] = ()
    drift_sentences: Sequence[str] = ()

    @property
    def claims(self) -> Rows:
        return self.tables["claims"]


def render_page(
    results: StudyResults,
    origin: Mapping[str, Any],
    checks: Mapping[str, Any],
    files: Sequence[str],
) -> str:
    """One self-contained page; equal arguments give equal text.

    ``origin`` says title, seeds, what was seen and what measured; ``checks`` what was checked.
    ``files`` lie beside it.
    """
    templates = templates_in(_HERE, _HERE.parent / "results" / "reports")
    templates.filters |= {"columns": filled_columns, "decimals": decimals_of}
    templates.filters |= {"shown": shown, "ranges": ranges}
    claims = results.claims
    return templates.get_template("page.html.j2").render(
        origin=origin,
        checks=checks,
        quarantined=checks["quarantined"],
        files=files,
        tiles=list(_tiles(results)),
        in_words=in_words(claims),
        claims_text=results.claims_text,
        claims=[list(rows) for _, rows in groupby(claims, itemgetter("id"))],
        claim_columns=[name for name in filled_columns(claims) if name not in _OF_A_CLAIM],
        sections=list(_sections(results, origin["seen"])),
        errata=results.errata,
    )


def _tiles(results: StudyResults) -> Iterator[Tile]:
    counted = tally(results.claims)
    yield Tile("claims that hold", counted[""].hold, counted[""].claims, "each with its numbers")
    for label, kind, note in (
        ("fitted claims that hold", FITTED, "counted apart: they test the fit"),
        ("contradicted claims that hold", CONTRADICTED, _BY_THE_SOURCE),
    ):
        if (apart := counted[kind]).claims:
            yield Tile(label, apart.hold, apart.claims, note)
    yield from results.tiles


def _sections(results: StudyResults, provenance: Rows) -> Iterator[PageSection]:
    yield from results.sections or (
        PageSection(
            name=name,
            title=name.replace("_", " ").capitalize(),
            rows=rows,
            folded=len(rows) > MOST_OPEN,
        )
        for name, rows in results.tables.items()
        if name != "claims" and rows
    )
    if provenance:
        yield PageSection(
            name="seen",
            title="What each value and choice has seen",
            text=["A figure tests the model only where nothing was fitted to it."],
            rows=[{**row, "seeds": ranges(row.get("seeds", ""))} for row in provenance],
        )


def summary(results: StudyResults) -> str:
    """For a terminal: how many claims hold, and each that does not or cannot be said."""
    lines = [f"{in_words(results.claims)}."]
    lines += [
        f"  {'not' if row['holds'] == 'no' else 'unknown'}: {_named(row)}: {row['claim']}"
        f" ({row['measured'] or 'not measured'})"
        + (f" [{row['apart']}: {row['because']}]" if row["apart"] else "")
        for row in results.claims
        if row["holds"] != "yes"
    ]
    return "\n".join(lines)


def _named(row: Mapping[str, Any]) -> str:
    return ", ".join(row[name] for name in ("id", "pattern", "controller") if name in row)


def filled_columns(rows: Rows) -> list[str]:
    """The columns in which any row says something."""
    return [name for name in rows[0] if any(row[name] not in (None, "") for row in rows)]


def ranges(seeds: str) -> str:
    """Seeds with commas between them, three and more that follow each other as ``1-3``."""
    numbers = seeds.split(", ")
    if not all(map(str.isdecimal, numbers)):
        return seeds
    by_gap = groupby(enumerate(map(int, numbers)), lambda placed: placed[1] - placed[0])
    parts = list[str]()
    for _, placed in by_gap:
        run = [str(seed) for _, seed in placed]
        parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else run
    return ", ".join(parts)


def decimals_of(rows: Rows) -> dict[str, int]:
    """The decimals that all fractions of a column are shown with, by column: four digits of the
    largest count, two of the smallest where few decimals do. None are zeros in every row.

    A column whose largest is a thousand or more has none of its own: it mixes quantities.
    """
    decimals = {}
    for name in rows[0]:
        values = [abs(row[name]) for row in rows if isinstance(row[name], float)]
        values = [value for value in values if TINY <= value < inf]
        if values and max(values) < LARGE:
            least = min(LEAST_DIGITS - _digits(min(values)), MOST_DECIMALS)
            most = max(SHOWN_DIGITS - _digits(max(values)), least)
            decimals[name] = max(len(_decimals(f"{value:.{most}f}")) for value in values)
    return decimals


def _decimals(text: str) -> str:
    return text.rstrip("0").partition(".")[2]


def _digits(value: float) -> int:
    """How many digits are before the point; of 0.05 it is -1."""
    return floor(log10(value)) + 1


def shown(value: Any, decimals: int | None = None) -> str:
    """One cell for readers: so many decimals, or four digits that count, two of what is tiny, an
    empty cell for what is not known."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if 0 < abs(value) < TINY:
            return f"{value:.1e}"
        if decimals is not None:
            return f"{value:z.{decimals}f}"
        return f"{value:.{SHOWN_DIGITS}g}" if abs(value) < LARGE else f"{value:,.0f}"
    return str(value)


CONTRADICTED, FITTED = "contradicted", "fitted"
APART = {CONTRADICTED: "the source itself contradicts", FITTED: "something was fitted to"}
"""Keys of claims.yaml that set a claim apart, in words; the value says why.

A claim that a calibration was fitted to tests the fit. One that the source's own figures contradict
tests nobody: whoever reproduces the one figure fails the other.
"""


class Tally(NamedTuple):
    """Claims of one kind, and how many of them hold."""

    claims: int
    hold: int


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
    holds = {kind: [row["holds"] for row in rows if row["apart"] == kind] for kind in ("", *APART)}
    return {kind: Tally(len(own), own.count("yes")) for kind, own in holds.items()}


def in_words(rows: Sequence[Mapping[str, Any]]) -> str:
    """One sentence, without its full stop."""
    counted = tally(rows)
    parts = [f"{counted[''].hold} of {counted[''].claims} claims hold"]
    for kind, words in APART.items():
        if (apart := counted[kind]).claims:
            parts.append(f"of {apart.claims} that {words} {apart.hold} hold")
    return "; ".join(parts)
