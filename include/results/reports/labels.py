"""Labels of published runs: tags, a note, and whether a run is archived.

Kept beside the results, in a table of their own: publishing again, or another edition, leaves them
as they are; removing a run removes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from include.model.errors import SpecError
from include.results.reports.database import labels_table, transaction, upsert

MOST_TAGS, MOST_LETTERS = 12, 2000
TAG = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of the labels of runs; None leaves a field as it is."""

    tags: Sequence[str] | None = None
    add_tags: Sequence[str] = ()
    note: str | None = None
    archived: bool | None = None
    seen: str | None = None
    """When the labels that this change replaces had been changed last, "" if never; None for a
    change of whatever there is."""


def tags_in(text: str) -> list[str]:
    """The tags that were typed, each once, in small letters.

    Raises SpecError with every problem: a tag that is none, or too many.
    """
    tags = list(dict.fromkeys(text.lower().replace(",", " ").replace("#", " ").split()))
    problems = [
        f"{tag!r} is no tag: use up to 32 letters, digits, - _ and ., a letter or digit first"
        for tag in tags
        if TAG.fullmatch(tag) is None
    ]
    if len(tags) > MOST_TAGS:
        problems.append(f"a run has at most {MOST_TAGS} tags, got {len(tags)}")
    if problems:
        raise SpecError("tags", problems)
    return tags


def change_labels(
    database_url: str, runs: Iterable[tuple[str, str]], change: Change, by: str
) -> int:
    """Change the labels of published runs, each given by experiment and run; how many there were.

    Runs that are not published are passed over. Raises PublishError when the database cannot be
    written, SpecError for a note that is too long, for a run that would have too many tags, and for
    labels that are no more those that were seen.
    """
    if change.note is not None and len(change.note) > MOST_LETTERS:
        raise SpecError("note", [f"at most {MOST_LETTERS} letters, got {len(change.note)}"])
    at = datetime.now(UTC).isoformat(timespec="seconds")
    with transaction(database_url) as connection:
        if not sa.inspect(connection).has_table("labels"):
            return 0
        table = labels_table()
        rows = [
            {**_changed(_labels(connection, table, *key), change), "changed_at": at}
            | {"experiment": key[0], "run": key[1], "changed_by": by}
            for key in sorted(set(runs))  # in one order, so that no two wait for each other
            if _is_taken(connection, *key)
        ]
        upsert(connection, table, rows)
        return len(rows)


def _is_taken(connection: Connection, experiment: str, run: str) -> bool:
    """Whether the run is published. If so, who else changes its labels waits for the end of this
    transaction: in SQLite, too, an update that changes nothing locks."""
    runs = sa.table("runs", sa.column("experiment"), sa.column("run"))
    own = sa.update(runs).where(runs.c.experiment == experiment, runs.c.run == run)
    return connection.execute(own.values(run=run)).rowcount > 0


def _labels(connection: Connection, table: Table, experiment: str, run: str) -> Mapping[str, Any]:
    result = connection.execute(sa.select(table).filter_by(experiment=experiment, run=run))
    row = result.mappings().first()
    never = {"tags": "", "note": "", "archived": False, "changed_at": "", "changed_by": "somebody"}
    return dict(row) if row else never


def _changed(labels: Mapping[str, Any], change: Change) -> dict[str, Any]:
    tags = (labels["tags"] or "").split() if change.tags is None else change.tags
    tags = tags_in(" ".join([*tags, *change.add_tags]))
    changed = {
        # A space on either side, so that LIKE finds whole ones.
        "tags": f" {' '.join(tags)} " if tags else "",
        "note": labels["note"] if change.note is None else change.note.strip(),
        "archived": labels["archived"] if change.archived is None else change.archived,
    }
    is_other = any(labels[name] != value for name, value in changed.items())
    if change.seen is not None and change.seen != labels["changed_at"] and is_other:
        problem = (
            f"{labels['changed_by']} has changed them since you opened the page; go back, copy "
            "what you have typed, and load the page again"
        )
        raise SpecError("labels", [problem])
    return changed
