"""The evaluation of PeerJ CS 141 as runs: four patterns, three BTUs, 24 seeds.

The BTU-based controllers run once per BTU. The threshold baseline and the fixed provisioning
never look at the BTU, so they run once and the same leases are priced at three, as in the
paper. With no seed of the specs was a value searched (calibration.py). The preprint is a study of
its own (include/studies/preprint).
"""

from __future__ import annotations

from functools import cache

from include.experiment.spec import SPECS, ExperimentSpec, load_spec

BTUS_MIN = (10, 30, 60)
NAMES = ("reproduction_btu", "reproduction_baselines")


@cache
def controllers() -> tuple[str, ...]:
    """The controllers of the matrix, the one that stands for the paper first."""
    return tuple(choice.name for spec in _specs() for choice in spec.controllers)


@cache
def patterns() -> tuple[str, ...]:
    """The arrival patterns of the matrix, in the order of Fig. 7."""
    return tuple(choice.name for choice in _specs()[0].patterns or ())


def _specs() -> list[ExperimentSpec]:
    return [load_spec(SPECS / f"{name}.yaml") for name in NAMES]
