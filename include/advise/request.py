"""What a user asks `advise`, as it was typed: nothing is read or checked yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FIXED = "fixed"
SUITABLE: tuple[str, ...] = (
    "hpa", "keda", "target-tracking", "flink-autoscaler", "ds2", "drs", "dhalion", "daedalus",
    "btu", "btu-runtime", "threshold", "fugu-local", "fugu-global", "fugu-sarsa",
    "kalman-pure", "kalman-ekf", "henge", "tide", FIXED,
)  # fmt: skip
"""Controllers that can be asked for. Left out are readings of the same rule by other papers, and
what needs instances by operator."""
BY_JOB = ("hpa", "keda", "target-tracking", FIXED)
"""What they are configured for scales a job as a whole, also where its operators were recorded."""
BY_BUSY_TIME = ("flink-autoscaler", "ds2")
"""They decide by the time that operators are busy. Backtests with CPU in its place are far off."""
BY_CPU = (
    "hpa", "target-tracking", "fugu-local", "fugu-global", "fugu-sarsa", "kalman-pure",
    "kalman-ekf",
)  # fmt: skip
"""They decide by CPU, in whose place a recording may have busy time."""
PER_SECOND = "per_second"
"""The price book where nobody says what hosts cost."""
WHOLE_WAY, END_TO_END = "end_to_end", "end to end"
"""The option by which an item that is late counts at every operator after it, too, and what a
policy with it is called."""

PLATFORMS = ("kubernetes", "flink", "ecs")
"""What a configuration can be written for; ``flink`` is a job of the Flink Kubernetes operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceRequest:
    """What a user gives. ``edges`` say how records flow between the operators that the recording
    has columns of (empty: what a folder of `record` says); ``max_instances`` 0 means the most that
    were recorded; ``controllers`` empty means all that are suitable; ``start_up_s`` and
    ``restart_s`` None what the recording tells, as does ``per_host`` None, or 1. ``recorded`` is
    what scaled the job, a policy of the ranking or a controller with options (empty: known only
    where it never scaled), ``platform`` what the
    job runs on (empty: by recording and prices), ``errors`` a table of backtest errors (empty: that
    of the project)."""

    recording: str
    objective: str
    prices: str = PER_SECOND
    columns: str = ""
    edges: str = ""
    max_instances: int = 0
    per_host: int | None = None
    seeds: int = 3
    controllers: tuple[str, ...] = ()
    start_up_s: float | None = None
    restart_s: float | None = None
    sort: bool = False
    errors: str = ""
    recorded: str = ""
    platform: str = ""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of controllers that are tried once, with these options in place of the settings that are
    tried by default."""
