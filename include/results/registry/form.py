"""The file in which published rows travel: its fields, and what a good one is.

``schema()`` is its JSON schema. Version 1; a file of another version is refused, not guessed at.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from include.model.errors import SpecError
from include.workloads.topologies import validation_problems

STRICT = (
    "strict_real_time_compliance", "strict_near_real_time_compliance", "strict_relaxed_compliance",
    "strict_real_time_total_cost", "strict_near_real_time_total_cost", "strict_relaxed_total_cost",
    "resource_cost", "unprocessed_items", "age_p50_ms", "age_p95_ms", "age_p99_ms",
)  # fmt: skip
"""Metrics that travel: none of them gets better by leaving items undone."""

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Finite = Annotated[float, Field(allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_UNSEEN = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
Line = Annotated[str, Field(max_length=200, pattern=rf"^[^{_UNSEEN}]*$")]
"""Text of others is shown in terminals, so there is no control character in it, no end of a line
and no mark that turns the direction around."""
Name = Annotated[Line, Field(min_length=1)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SharedFigure(_Closed):
    """One metric: its mean over the runs and their standard deviation, None of one run."""

    mean: NotNegative
    sigma: NotNegative | None
    runs: Annotated[int, Field(ge=1)]


class SharedRun(_Closed):
    """One run behind a row. Equal seeds with equal arrivals are the same load."""

    seed: Annotated[int, Field(ge=0)]
    arrivals_sha256: Sha256
    spec_hash: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


class SharedSetting(_Closed):
    """What the runs were measured under, beside topology, load and prices."""

    testbed: Name
    flavor: Name
    duration_min: NotNegative
    monitor_every_s: NotNegative
    hosts: Annotated[int, Field(ge=0)]
    max_hosts: Annotated[int, Field(ge=0)]
    calibration_sha256: Sha256
    faults_sha256: Sha256


class SharedRow(_Closed):
    """What a controller came to in one cell, and all that decides whether it can be compared."""

    controller: Name
    variant: Line
    topology: Name
    topology_sha256: Sha256
    pattern: Name
    conditions: Line
    btu_min: NotNegative
    prices_sha256: Sha256
    setting: SharedSetting
    runs: Annotated[list[SharedRun], Field(min_length=1)]
    code_sha256: Sha256
    figures: dict[str, SharedFigure]

    @property
    def cell(self) -> tuple[Any, ...]:
        """What no two rows of one file have in common."""
        names = (self.controller, self.variant, self.topology, self.pattern, self.conditions)
        return (*names, self.btu_min)


class SharedResults(_Closed):
    """The whole file. ``rows_sha256`` is that of the rows, so that a changed digit is noticed."""

    format: Literal["tidebench-results"] = "tidebench-results"
    version: Literal[1] = 1
    experiment: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,63}$")]
    edition: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    by: Line = ""
    metrics_sha256: Sha256
    rows: Annotated[list[SharedRow], Field(min_length=1)]
    rows_sha256: Sha256

    @property
    def name(self) -> str:
        """What it is kept as: whatever differs, rows, who measured or definitions, is another."""
        return f"{self.experiment}-{digest_of(self.model_dump(mode='json'))[:12]}"

    def to_json(self) -> str:
        """Readable, and the same text for the same results."""
        return json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True) + "\n"


def schema() -> dict[str, Any]:
    """The JSON schema of the file."""
    return SharedResults.model_json_schema()


def digest_of(value: Any) -> str:
    """SHA-256 of plain values, whatever the order of their keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def digest_of_rows(rows: list[SharedRow]) -> str:
    """What ``rows_sha256`` has to be."""
    return digest_of([row.model_dump(mode="json") for row in rows])


def parse_results(text: str, source: str) -> SharedResults:
    """The file that somebody sent. Raises SpecError with everything that is wrong with it."""
    try:
        found = SharedResults.model_validate_json(text)
    except ValidationError as error:
        raise SpecError(source, validation_problems(error)) from error
    if problems := list(_problems(found)):
        raise SpecError(source, problems)
    return found


def _problems(found: SharedResults) -> Iterator[str]:
    """What the form alone does not show."""
    if found.rows_sha256 != digest_of_rows(found.rows):
        yield "rows_sha256: the rows are not those that were exported; ask for the file again"
    for cell, times in Counter(row.cell for row in found.rows).items():
        if times > 1:
            yield f"rows: {' '.join(map(str, cell))} is there {times} times; keep one"
    for place, row in enumerate(found.rows):
        where = f"rows[{place}].figures"
        if unknown := sorted(row.figures.keys() - set(STRICT)):
            yield f"{where}: {', '.join(unknown)} is not exchanged; the metrics are {_LISTED}"
        if not row.figures.keys() & set(STRICT):
            yield f"{where}: there is none; a row has at least one of {_LISTED}"
        for name, figure in row.figures.items():
            if figure.runs > len(row.runs):
                yield f"{where}.{name}: a mean of {figure.runs} runs, but {len(row.runs)} are named"
            if name.endswith("_compliance") and figure.mean > 100:
                yield f"{where}.{name}: {figure.mean:g} is above 100 percent"


_LISTED = ", ".join(STRICT)
