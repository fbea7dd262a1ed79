"""How records flow between the operators of a job, as it is typed or written in a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from include.files.plain_yaml import input_yaml
from include.model.errors import SpecError
from include.workloads.topologies import validation_problems

MOST_IN = 1000


def plain_name(operator: str) -> str:
    """A name that topologies take: small letters, digits and _."""
    return re.sub(r"[^a-z0-9]+", "_", operator.lower()).strip("_") or "operator"


def in_whole_records(factor: float) -> Fraction:
    """Records over an edge per record in, as topologies take it: so many of so many."""
    few = Fraction(factor).limit_denominator(MOST_IN)
    return few or Fraction(1, round(1 / factor))  # fewer than one of two thousand


def parse_edges(text: str) -> tuple[tuple[str, str], ...]:
    """``source>map>sink,map>other`` as pairs of plain names; no text has none. Raises SpecError."""
    pairs, problems = dict[tuple[str, str], None](), []
    for chain in text.split(",") if text else ():
        names = [plain_name(one) if one.strip() else "" for one in chain.split(">")]
        if len(names) < 2 or not all(names):
            problems.append(f"{chain.strip()!r} is no chain; write SOURCE>MAP>SINK, MAP>OTHER")
        pairs |= dict.fromkeys(pairwise(names))
    if problems:
        raise SpecError("--edges", problems)
    return tuple(pairs)


class _Edge(BaseModel):
    model_config = ConfigDict(extra="forbid")
    origin: Annotated[str, Field(alias="from", min_length=1)]
    target: Annotated[str, Field(alias="to", min_length=1)]


class _Edges(BaseModel):
    model_config = ConfigDict(extra="ignore")
    edges: list[_Edge]


def edges_of(text: str) -> tuple[tuple[str, str], ...]:
    """The edges as they were typed, or of a YAML file: ``edges: [{from: map, to: sink}]``.
    Raises SpecError with all problems at once."""
    if not text.strip().endswith((".yaml", ".yml")):
        return parse_edges(text)
    name = Path(text.strip()).name
    try:
        raw = input_yaml(text.strip(), "edges")
        document = _Edges.model_validate(raw if isinstance(raw, Mapping) else {"edges": raw})
    except ValidationError as error:
        how = "write edges: [{from: SOURCE, to: MAP}, {from: MAP, to: SINK}]"
        raise SpecError(name, [*validation_problems(error), how]) from None
    pairs = ((plain_name(one.origin), plain_name(one.target)) for one in document.edges)
    return tuple(dict.fromkeys(pairs))
