"""What PeerJ CS 141 claims in its evaluation, held against measured and beside printed figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from include.studies.base import ClaimCase, Predicate, ask, check_claims, read_claims
from include.studies.peerj141.metrics import PeerjMetrics
from include.studies.peerj141.predicates import PREDICATES
from include.studies.results import Rows

CLAIMS = read_claims(Path(__file__).parent)


def claims_of(
    measured: Mapping[str, PeerjMetrics], paper: PeerjMetrics, patterns: Sequence[str]
) -> Rows:
    """One row per claim, pattern and BTU-based controller of ``measured``."""

    def cases(claim: Mapping[str, Any]) -> Iterator[ClaimCase]:
        for pattern in claim.get("patterns", patterns):
            for controller, metrics in measured.items():
                about = {"pattern": pattern, "controller": controller}
                yield ClaimCase((metrics, pattern), about)

    def in_paper(predicate: Predicate, case: ClaimCase) -> Mapping[str, Any]:
        return {"published": ask(predicate, paper, case.about["pattern"])[1]}

    return check_claims(CLAIMS, PREDICATES, cases, beside=in_paper)
