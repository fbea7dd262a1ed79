"""What a user asks `advise`: the request as it was typed, and its objective."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from include.model.errors import SpecError
from include.workloads.recordings.recording import FloatArray

_LIMIT = r"(\d{1,9}(?:\.\d+)?)\s*(ms|s|min)"
_PERCENTILE = re.compile(r"(?:latency\s+)?p(\d+(?:\.\d+)?)\s*<=?\s*" + _LIMIT)
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%\s*within\s+" + _LIMIT)
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0}
MOST_S = 86_400.0


@dataclass(frozen=True, slots=True)
class LatencyObjective:
    """At least ``share`` of the records have a latency of at most ``limit_s``."""

    share: float
    limit_s: float

    def __str__(self) -> str:
        return f"{self.share * 100:g} % within {self.limit_s:g} s"

    def within(self, load_per_s: FloatArray, latency_s: FloatArray) -> float:
        """The share of the records that came while the latency was within the limit.

        Where latency is absent nothing is known, and nothing counts; where no record comes, none
        is late.
        """
        known = ~np.isnan(latency_s)
        met = known & (latency_s <= self.limit_s)
        came = float(load_per_s[known].sum())
        return float(load_per_s[met].sum()) / came if came else 1.0


def parse_objective(text: str) -> LatencyObjective:
    """``latency p95 < 2 s`` or ``95 % within 2 s``. Raises SpecError for anything else."""
    for form in (_PERCENTILE, _SHARE):
        found = form.fullmatch(text.strip().lower())
        if found is None:
            continue
        percent, limit, unit = float(found[1]), float(found[2]), found[3]
        limit_s = limit * _SECONDS[unit]
        if 0 < percent < 100 and 0 < limit_s <= MOST_S:
            return LatencyObjective(percent / 100, limit_s)
    told = f"cannot read {text!r}; write 'latency p95 < 2 s' or '95 % within 2 s'"
    raise SpecError("--objective", [told])


FIXED = "fixed"
SUITABLE: tuple[str, ...] = (
    "hpa", "keda", "target-tracking", "flink-autoscaler", "ds2", "drs", "dhalion", "daedalus",
    "btu", "btu-runtime", "threshold", "fugu-local", "fugu-global", "fugu-sarsa",
    "kalman-pure", "kalman-ekf", "henge", "tide", FIXED,
)  # fmt: skip
"""Controllers that can be asked for. Left out are readings of the same rule by other papers, and
what needs instances by operator."""


PLATFORMS = ("kubernetes", "flink", "ecs")
"""What a configuration can be written for; ``flink`` is a job of the Flink Kubernetes operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceRequest:
    """What a user gives. ``max_instances`` 0 means the most that were recorded;
    ``controllers`` empty means all that are suitable; ``start_up_s`` and ``restart_s`` None what
    the recording tells. ``recorded`` names the policy that scaled the job (empty: known only where
    it never scaled), ``platform`` what the job runs on (empty: by recording and prices)."""

    recording: str
    objective: str
    prices: str = "per_second"
    columns: str = ""
    max_instances: int = 0
    per_host: int = 1
    seeds: int = 3
    controllers: tuple[str, ...] = ()
    start_up_s: float | None = None
    restart_s: float | None = None
    sort: bool = False
    recorded: str = ""
    platform: str = ""
