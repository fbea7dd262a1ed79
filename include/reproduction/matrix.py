"""The evaluation of PeerJ CS 141 as runs: four patterns, three BTUs, three seeds, one spec each.

The BTU-based controllers run once per BTU. The threshold baseline and the fixed provisioning
never look at the BTU, so they run once and the same leases are priced at three, as in the
paper.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from include.experiment.spec import ExperimentSpec, RunSpec, load_spec

EXPERIMENT = "reproduction"
BTUS_MIN = (10, 30, 60)
SEEDS = (1, 2, 3)
CODE = (
    "model", "arrivals", "topologies", "controllers", "testbeds", "experiment", "measurements",
    "control",
)  # fmt: skip
"""Folders of include/ that decide what is measured; those after them only read it."""

_INCLUDE = Path(__file__).parents[1]
_SPECS = tuple(
    _INCLUDE / "experiment" / "specs" / f"reproduction_{name}.yaml" for name in ("btu", "baselines")
)


def matrix(seeds: Sequence[int] = SEEDS) -> list[RunSpec]:
    """Every run of the reproduction, in the order of the tables of the paper."""
    return [
        point
        for spec in _specs()
        for point in spec.model_copy(update={"seeds": list(seeds)}).points()
    ]


@cache
def controllers() -> tuple[str, ...]:
    """The controllers of the matrix, the one that stands for the paper first."""
    return tuple(choice.name for spec in _specs() for choice in spec.controllers)


@cache
def patterns() -> tuple[str, ...]:
    """The arrival patterns of the matrix, in the order of Fig. 7."""
    return tuple(choice.name for choice in _specs()[0].patterns)


def _specs() -> list[ExperimentSpec]:
    return [load_spec(path) for path in _SPECS]


def code_digest() -> str:
    """SHA-256 over every file that decides what is measured.

    A spec hash covers what a run was given, not the code that acted on it; runs of other code
    must not be taken for runs of this one.
    """
    files = sorted(
        path
        for folder in CODE
        for path in (_INCLUDE / folder).rglob("*")
        if path.suffix in (".py", ".yaml", ".csv")
    )
    total = hashlib.sha256()
    for path in files:
        total.update(path.relative_to(_INCLUDE).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
