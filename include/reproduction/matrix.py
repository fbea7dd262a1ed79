"""The evaluation of PeerJ CS 141 as runs: four patterns, three BTUs, three seeds, one spec each.

The BTU-based controllers run once per BTU. The threshold baseline and the fixed provisioning
never look at the BTU, so they run once and the same leases are priced at three, as in the
paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from include.experiment.spec import ExperimentSpec, RunSpec, load_spec

EXPERIMENT = "reproduction"
BTUS_MIN = (10, 30, 60)
SEEDS = (1, 2, 3)

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
    return tuple(choice.name for choice in _specs()[0].patterns or ())


def _specs() -> list[ExperimentSpec]:
    return [load_spec(path) for path in _SPECS]
