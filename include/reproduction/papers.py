"""The other papers whose evaluations can be repeated, each as one call.

To add one: write a module that measures and answers, and add the line. PeerJ CS 141 has more to
say than a table of claims and is in ``matrix`` and ``findings``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from include.experiment.spec import RunSpec
from include.reproduction import fugu, henge, kalman

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Tables by name, ``claims`` first, and what the paper itself cannot mean."""

    tables: Mapping[str, Rows]
    errata: Sequence[str] = ()

    @property
    def claims(self) -> Rows:
        """Every claim with what was measured; ``holds`` is yes or no."""
        return self.tables["claims"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper: what it is called, its runs for some seeds, and how it is held against them."""

    title: str
    runs: Callable[[Sequence[int] | None], Sequence[RunSpec]]
    reproduce: Callable[..., Found]
    """Takes the data root, then by name seeds, processes and report."""


def _fugu(root: Path, **options: Any) -> Found:
    found = fugu.reproduce(root, **options)
    return Found(tables={"claims": found.claims, "results": found.results})


def _kalman(root: Path, **options: Any) -> Found:
    tables = asdict(kalman.reproduce(root, **options))
    errata = tables.pop("errata")
    return Found(tables={"claims": tables.pop("claims"), **tables}, errata=errata)


def _henge(root: Path, **options: Any) -> Found:
    return Found(tables={"claims": henge.reproduce(root, **options)})


PAPERS: Mapping[str, Paper] = {
    "fugu": Paper(
        title="Auto-scaling Techniques for Elastic Data Stream Processing (FUGU)",
        runs=fugu.points,
        reproduce=_fugu,
    ),
    "kalman": Paper(
        title="Minimizing Cost by Reducing Scaling Operations (PVLDB 12, 7)",
        runs=kalman.points,
        reproduce=_kalman,
    ),
    "henge": Paper(
        title="Henge: Intent-driven Multi-Tenant Stream Processing",
        runs=henge.points,
        reproduce=_henge,
    ),
}
