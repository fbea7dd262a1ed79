"""The page of a study: which claims hold, then every table, then what the source cannot mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from include.studies.claim_counts import in_words, tally

if TYPE_CHECKING:
    from include.studies.results import StudyResults

SHOWN_DIGITS = 4
_HERE = Path(__file__).parent


def environment(folder: Path) -> Environment:
    """Templates of a study's folder, which may include what every study's page shares."""
    return Environment(
        loader=FileSystemLoader([folder, _HERE, _HERE.parent / "results" / "reports"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_page(
    results: StudyResults,
    origin: Mapping[str, Any],
    checks: Mapping[str, Any],
    files: Sequence[str],
) -> str:
    """One self-contained page; ``origin`` says title and seeds, ``checks`` what was checked.

    ``origin`` may have rows of what was seen, too. ``files`` lie beside it.
    """
    templates = environment(_HERE)
    templates.filters["shown"] = shown
    return templates.get_template("page.html.j2").render(
        origin=origin,
        checks=checks,
        quarantined=checks["quarantined"],
        files=files,
        counted=tally(results.claims),
        in_words=in_words(results.claims),
        seen=origin.get("seen", ()),
        claims=results.claims,
        tables={name: rows for name, rows in results.tables.items() if name != "claims" and rows},
        errata=results.errata,
    )


def summary(results: StudyResults) -> str:
    """For a terminal: how many claims hold, and each that does not or cannot be said."""
    lines = [f"{in_words(results.claims)}."]
    lines += [
        f"  {'not' if row['holds'] == 'no' else 'unknown'}: {row['id']}: {row['claim']}"
        f" ({row.get('measured') or row.get('numbers') or 'not measured'})"
        + (f" [{row['apart']}: {row['because']}]" if row.get("apart") else "")
        for row in results.claims
        if row["holds"] != "yes"
    ]
    return "\n".join(lines)


def shown(value: Any) -> str:
    """One cell for readers: four digits that count, an empty cell for what is not known."""
    if value is None or value == "":
        return ""
    if isinstance(value, float):
        return f"{value:.{SHOWN_DIGITS}g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)
