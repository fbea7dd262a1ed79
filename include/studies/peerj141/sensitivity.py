"""Every constant of the simulated evaluation, where it is from, and what the errors owe to it.

``python -m include.studies.peerj141.sensitivity --seeds 1,2`` changes one constant at a time and
measures the fitted patterns again; of the constants in constants.csv it writes sensitivity.csv
beside it, a row per constant and controller, and begins anew where one is incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

from include.files.whole import csv_rows
from include.studies.peerj141.calibration import (
    CONTROLLERS,
    FITTED,
    START,
    changes,
    errors_of,
    published_means,
    service_ms,
    specs,
)
from include.studies.scripts import script_parser, write_as_measured

OUT = Path(__file__).with_name("sensitivity.csv")
COLUMNS = (
    "constant", "value", "changed_to", "origin", "source", "controller",
    "compliance_points", "resource_cost_percent", "total_cost_percent",
)  # fmt: skip
_SCALE = START["service_scale"]
CONSTANTS = csv_rows(Path(__file__).with_name("constants.csv"))
"""Every number, where it is from (paper, runtime, fitted or chosen), and how it is changed."""
CHANGED: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    **{name: changes({**START, name: 1.1 * value}) for name, value in START.items()},
    "CONNECTION_MS": {"service_ms": service_ms(_SCALE, connections=1.2)},
    "OWN_MS": {"service_ms": service_ms(_SCALE, own=1.1)},
    "CONNECTIONS": {"service_ms": service_ms(_SCALE, connections=1.1)},
    "service_cv": {"service_cv": 1.0},
    "stall minimum": {"stall_s": (1.0, START["stall_max_s"])},
    "image_pull_s": {"image_pull_s": (0.0, 0.0)},
    "cpu_noise": {"cpu_noise": 0.0},
}
"""Fields of a calibration; what the source states is not changed."""


def rows(seeds: Sequence[int], pool: Executor) -> Iterator[dict[str, str]]:
    """One row per constant and controller; the errors of what the source states stay empty."""
    points = specs(FITTED, CONTROLLERS, seeds)
    for row in CONSTANTS:
        if row["constant"] not in CHANGED:
            yield row | dict.fromkeys(COLUMNS[5:], "")
            continue
        means = published_means(START, points, pool, CHANGED[row["constant"]])
        for controller in CONTROLLERS:
            errors = errors_of(means, controller)
            yield row | {
                "controller": controller,
                "compliance_points": f"{errors.compliance_points:.2f}",
                "resource_cost_percent": f"{errors.resource_cost_percent:.1f}",
                "total_cost_percent": f"{errors.total_cost_percent:.1f}",
            }


if __name__ == "__main__":
    parser = script_parser(__doc__, OUT, "1,2")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    with ProcessPoolExecutor(given.processes) as pool:
        write_as_measured(given.out, COLUMNS, rows(given.seeds, pool))
