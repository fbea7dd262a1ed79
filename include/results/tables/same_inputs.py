"""Runs that tables average or compare have to be of the same files, not of the same file names, and
each of them has to be there once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from include.files.whole import read_json
from include.model.errors import StoreError, command

CASE = ("topology", "pattern", "conditions")
"""Columns that tables know a load by; files are named in them without their folders."""
WHO = ("controller", "variant", "btu_min")
"""Columns that runs have in common, too, of which tables have one mean."""
SAME_NAME = "under the same name"


def require_each_once(folder: Path, runs: Iterable[Mapping[str, Any]]) -> None:
    """Raise StoreError when two runs measure the same: a seed that counts twice makes intervals
    narrower than they are. They differ in what changes no measurement (advisors, price books,
    ``summaries_only``). ``runs`` are rows of the table ``runs``.
    """
    first: dict[tuple[Any, ...], str] = {}
    problems = []
    for row in sorted(runs, key=lambda row: str(row["run"])):
        key = tuple(value for name, value in row.items() if name not in ("run", "spec_hash"))
        earlier = first.setdefault(key, row["run"])
        if earlier != row["run"]:
            problems.append(f"- {earlier} and {row['run']} measure the same")
    if problems:
        how = f"remove one of each: {command('remove', folder, 'RUN')}"
        raise StoreError("\n".join([f"{folder}: seeds would count twice; {how}", *problems]))


def require_same_files(folder: Path, runs: Iterable[Mapping[str, Any]]) -> None:
    """Raise StoreError when runs of one case were given other topologies, calibrations, traces or
    price books of one name, or runs that differ in the seed were priced by other books.

    ``runs`` are rows of the table ``runs``. Runs whose inputs are not kept are taken as they are.
    """
    problems: dict[str, None] = {}
    first_inputs: dict[tuple[Any, ...], tuple[str, str]] = {}
    for row in sorted(runs, key=lambda row: str(row["run"])):
        path = folder / "runs" / row["run"] / "run.json"
        if not path.is_file():
            continue
        try:
            inputs = list(_inputs(read_json(path), row))
        except (KeyError, TypeError) as error:
            raise StoreError(f"{path} is damaged ({error!r}); remove it and run again") from error
        for name, extra, digest in inputs:
            key = (*(row[column] for column in CASE), name, extra)
            first, first_digest = first_inputs.setdefault(key, (row["run"], digest))
            if first_digest != digest:
                why = f"- {first} and {row['run']} have another {name}"
                problems[why] = None
    if problems:
        how = f"remove the runs of one of them: {command('remove', folder, 'RUN')}"
        why = "runs of other files would be averaged"
        raise StoreError("\n".join([f"{folder}: {why}; {how}", *problems]))


def _inputs(run: Any, row: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """What a run was given: its name, what else it depends on, and a digest.

    Files of ours are known by their names, whichever version had which content.
    """
    spec, options, books = run["spec"], run["spec"]["pattern_options"], run["price_books"]
    for name in ("topology", "calibration"):
        is_own = str(spec[name]).endswith((".yaml", ".yml"))
        yield f"{name} {SAME_NAME}", "", _digest(run[name]) if is_own else "ours"
    for book in books:
        digest = _digest(book) if "source" in book else "ours"
        yield f"price book {SAME_NAME}", book["name"], digest
    names = sorted(book["name"] for book in books)
    yield "list of price books", tuple(row[column] for column in WHO), _digest(names)
    levels = [run["levels"], run["level_of"]]
    if "path" in options and not options.get("days_as_seeds") and len(levels[0]) == 1:
        yield f"trace {SAME_NAME}", "", _digest(levels)
    yield f"load {SAME_NAME}", row["seed"], _digest(levels)


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
