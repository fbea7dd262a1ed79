"""How the preprint may have run: its text, and the authors' runtime with what the text says of it.

Its stated tick of 20 s contradicts its own counts: the readings differ in the tick, in whether
the runtime or the text decides, and in the formula of Algorithm 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from include.experiment.spec import RunSpec

COUNTED = (
    "paid_btus_count",
    "operator_instance_up_count",
    "operator_instance_down_count",
    "operator_instance_migration_count",
)
"""What a reading is chosen by: no figure that the calibration was fitted to is like them."""
NEAR_PERCENT = 25.0
"""How far a count of the chosen reading may be off."""


@dataclass(frozen=True, slots=True)
class PreprintReading:
    """What it is called, the approach that it stands for, and how our controller is set."""

    name: str
    approach: str
    controller: str
    options: Mapping[str, object]
    says: str

    def is_of(self, run: RunSpec) -> bool:
        """Whether a run was made with this reading."""
        return run.controller == self.controller and dict(run.controller_options) == self.options


READINGS = (
    PreprintReading("btu-text", "btu_based", "btu-preprint", {}, "as the text says, every 20 s"),
    PreprintReading(
        "btu-text-60s", "btu_based", "btu-preprint", {"interval_s": 60.0}, "the text, every 60 s"
    ),
    PreprintReading(
        "btu-runtime-20s",
        "btu_based",
        "btu-runtime",
        {"formula": "preprint", "interval_s": 20.0},
        "the runtime with the preprint's Algorithm 3, every 20 s",
    ),
    PreprintReading(
        "btu-runtime-60s",
        "btu_based",
        "btu-runtime",
        {"formula": "preprint"},
        "the runtime with the preprint's Algorithm 3, every 60 s",
    ),
    PreprintReading(
        "btu-runtime-final",
        "btu_based",
        "btu-runtime",
        {"formula": "final"},
        "the runtime with the final Algorithm 3, every 60 s",
    ),
    PreprintReading(
        "threshold-text", "threshold_based", "threshold-preprint", {}, "the text, every 20 s"
    ),
    PreprintReading(
        "threshold-text-60s",
        "threshold_based",
        "threshold-preprint",
        {"interval_s": 60.0},
        "the text, every 60 s",
    ),
    PreprintReading(
        "threshold-runtime-60s",
        "threshold_based",
        "threshold",
        {"scale_up_twice_above_items": 1000},
        "the runtime with the preprint's upper thresholds, every 60 s",
    ),
)


def reading_of(run: RunSpec) -> PreprintReading:
    """The reading that a run of the study was made with."""
    return next(one for one in READINGS if one.is_of(run))


def count_error_percent(means: Mapping[str, float], printed: Mapping[str, float]) -> float:
    """How far the counts are off in the mean; a printed 0 is held against a count of 1."""
    return fmean(
        100 * abs(means[name] - printed[name]) / max(1.0, printed[name]) for name in COUNTED
    )
