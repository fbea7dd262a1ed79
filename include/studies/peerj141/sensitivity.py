"""Every constant of the simulated evaluation, where it is from, and what the errors owe to it.

``python -m include.studies.peerj141.sensitivity --seeds 1,2`` changes one constant at a time and
measures the fitted patterns again; it writes sensitivity.csv beside this file, a row per
constant and controller, and begins anew where one is incomplete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.studies.peerj141.calibration import (
    CONNECTION_MS,
    CONNECTIONS,
    CONTROLLERS,
    FITTED,
    OWN_MS,
    START,
    changes,
    errors_of,
    means_of,
    specs,
    trial,
)
from include.studies.scripts import script_parser, write_as_measured

OUT = Path(__file__).with_name("sensitivity.csv")
COLUMNS = (
    "constant", "value", "changed_to", "origin", "source", "controller",
    "compliance_points", "resource_cost_percent", "total_cost_percent",
)  # fmt: skip
Changes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A number, where it is from (paper, runtime, fitted or chosen), and how it is changed."""

    name: str
    value: str
    origin: str
    source: str
    changed_to: str = ""
    changed: Callable[[], Changes] | None = None
    """Fields of a calibration; None for what the source states, which is not changed."""


def _services(connection: float = 1.0, own: float = 1.0, connections: float = 1.0) -> Changes:
    scale = START["service_scale"]
    return {
        "service_ms": {
            name: scale
            * (own * own_ms + connections * CONNECTIONS[name] * connection * CONNECTION_MS)
            for name, own_ms in OWN_MS.items()
        }
    }


def _fitted(name: str, unit: str, source: str) -> LedgerEntry:
    value = START[name]
    return LedgerEntry(
        name, f"{value:g}{unit}", "fitted", source, f"{1.1 * value:g}{unit}",
        lambda: changes({**START, name: 1.1 * value}),
    )  # fmt: skip


CONSTANTS = (
    LedgerEntry("nothing", "", "", "the values as they are"),
    _fitted("service_scale", "", "stepwise and random walk 1"),
    _fitted(
        "memory_factor", "",
        "stepwise and random walk 1. The runtime's operatorConfiguration.sample.json reserves "
        "417 to 629 MB and 0.14 to 0.9 cores instead: not used",
    ),
    _fitted("stalls_per_hour", "/h", "stepwise and random walk 1"),
    _fitted("stall_max_s", " s", "stepwise and random walk 1"),
    _fitted("latency_ms", " ms", "stepwise and random walk 1"),
    LedgerEntry(
        "CONNECTION_MS", "51 ms", "chosen",
        "an estimate: Sender connects anew for every item it sends", "61.2 ms",
        lambda: _services(connection=1.2),
    ),
    LedgerEntry(
        "OWN_MS", "1 to 1190 ms", "chosen",
        "nine estimates from o_slo of Table 2 and what each operator's class does", "10 % more",
        lambda: _services(own=1.1),
    ),
    LedgerEntry(
        "CONNECTIONS", "0.1 to 1.1", "chosen",
        "nine: items sent per item, and 0.1 for DurationHandler, which every tenth item calls; O7 "
        "a third of it, its three queues are served beside each other", "10 % more",
        lambda: _services(connections=1.1),
    ),
    LedgerEntry(
        "service_cv", "0.5", "chosen", "gamma; no source", "1", lambda: {"service_cv": 1.0}
    ),
    LedgerEntry(
        "stall minimum", "2 s", "chosen", "shorter ones change nothing that is sampled", "1 s",
        lambda: {"stall_s": (1.0, START["stall_max_s"])},
    ),
    LedgerEntry(
        "image_pull_s", "5 to 15 s", "chosen", "images of 68 to 89 MB (Table 2); no duration",
        "0 s", lambda: {"image_pull_s": (0.0, 0.0)},
    ),
    LedgerEntry(
        "cpu_noise", "0.02", "chosen", "no controller of this paper reads a CPU", "0",
        lambda: {"cpu_noise": 0.0},
    ),
    LedgerEntry("host_boot_s", "30 to 60 s", "paper", '"leasing a new VM takes about 30-60 s"'),
    LedgerEntry("instance_start_s", "5 to 10 s", "paper", '"spawning ... takes 5-10 s"'),
    LedgerEntry("drain_s", "20 s", "runtime", "Configurationprovider, shutdowngrace"),
    LedgerEntry("timestamp_resolution_s", "1 s", "runtime", "time stamps of AMQP"),
    LedgerEntry("sample_every_items", "10", "paper", '"every 10th data item"'),
)  # fmt: skip


def rows(seeds: Sequence[int], pool: Executor) -> Iterator[dict[str, str]]:
    """One row per constant and controller; the errors of what the source states stay empty."""
    points = specs(FITTED, CONTROLLERS, seeds)
    for one in CONSTANTS:
        row = {
            "constant": one.name, "value": one.value, "changed_to": one.changed_to,
            "origin": one.origin, "source": one.source,
        }  # fmt: skip
        if one.changed is None and one.origin:
            yield row | dict.fromkeys(COLUMNS[5:], "")
            continue
        changed = {**changes(START), **(one.changed() if one.changed else {})}
        trials = zip(points, pool.map(trial, points, [changed] * len(points)), strict=True)
        measured = list(trials)
        for controller in CONTROLLERS:
            own = [(spec, run) for spec, run in measured if spec.controller == controller]
            errors = errors_of(means_of(own))
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
