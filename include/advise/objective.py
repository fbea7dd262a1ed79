"""What a user asks of a job: a share of the records within a latency."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from include.model.errors import SpecError
from include.recordings.recording import FloatArray

_PERCENTILE = re.compile(r"latency\s+p(\d+(?:\.\d+)?)\s*<=?\s*(\d+(?:\.\d+)?)\s*(ms|s)")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%\s*within\s+(\d+(?:\.\d+)?)\s*(ms|s)")


@dataclass(frozen=True, slots=True)
class LatencyObjective:
    """At least ``share`` of the records have a latency of at most ``limit_s``."""

    share: float
    limit_s: float

    def __str__(self) -> str:
        """As a sentence has it."""
        return f"{self.share * 100:g} % within {self.limit_s:g} s"

    def within(self, load_per_s: FloatArray, latency_s: FloatArray) -> float:
        """The share of the records that came while the latency was within the limit.

        Where latency is absent nothing is known, and nothing counts.
        """
        known = ~np.isnan(latency_s)
        met = known & (latency_s <= self.limit_s)
        return float(load_per_s[met].sum() / load_per_s[known].sum())


def parse_objective(text: str) -> LatencyObjective:
    """``latency p95 < 2 s`` or ``95 % within 2 s``. Raises SpecError for anything else."""
    for form in (_PERCENTILE, _SHARE):
        found = form.fullmatch(text.strip())
        if found is None:
            continue
        percent, limit, unit = float(found[1]), float(found[2]), found[3]
        limit_s = limit / 1000 if unit == "ms" else limit
        if 0 < percent < 100 and limit_s > 0:
            return LatencyObjective(percent / 100, limit_s)
    told = f"cannot read {text!r}; write 'latency p95 < 2 s' or '95 % within 2 s'"
    raise SpecError("--objective", [told])
