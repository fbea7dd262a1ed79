"""Fit the simulator's free parameters to published figures, on two patterns only.

Five numbers have no source that says them exactly. They are searched within bounds that have
one, on stepwise and random walk 1; two-level and random walk 2 are held out. One set of values
serves every pattern, controller and BTU.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from include.experiment.prices import PRICE_BOOKS
from include.experiment.spec import RunSpec
from include.reproduction.published import is_compliance, pays_by_own_btu, published_figure
from include.reproduction.trial import BOOKS, Trial, attempt, calibrated

FITTED = ("stepwise", "random_walk_1")
HELD_OUT = ("two_level", "random_walk_2")
CONTROLLERS = ("btu-runtime", "threshold")
BTU_MIN = {name: PRICE_BOOKS[name].btu_s / 60 for name in BOOKS}

CONNECTION_MS = 51.0
"""A connection to the broker per published item: the common part of all service times."""
OWN_MS = {
    "O1": 1190.0, "O2": 20.0, "O3": 55.0, "O4": 55.0, "O5": 55.0,
    "O6": 20.0, "O7": 2.0, "O8": 1.0, "O9": 2.0,
}  # fmt: skip
CONNECTIONS = {
    "O1": 1.1, "O2": 1.08, "O3": 1.1, "O4": 1.1, "O5": 1.1,
    "O6": 0.11, "O7": 0.433 / 3, "O8": 0.1, "O9": 0.1,
}  # fmt: skip
"""Per item: what an operator does itself, and how often it connects."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A free parameter: where the search begins, how far it may go, and what says so."""

    name: str
    start: float
    low: float
    high: float
    source: str


PARAMETERS = (
    Parameter(
        "service_scale", 0.85, 0.7, 1.1,
        "Table 2 gives o_slo, which also holds messaging and time stamps cut to the second: "
        "service itself takes less",
    ),
    Parameter(
        "memory_factor", 2.1, 1.5, 3.0,
        "Table 2 gives mean memory; hosts of 7 GB and the costs of Tables 3 and 5 say how many "
        "instances one takes",
    ),
    Parameter(
        "stalls_per_hour", 20.0, 0.0, 40.0,
        "\"minor external events, e.g., short network delays due to other applications running "
        "on the same physical hardware\" (two-level, BTU60)",
    ),
    Parameter("stall_max_s", 8.0, 3.0, 20.0, "\"short\": below the tick of 60 s"),
    Parameter("latency_ms", 13.0, 3.0, 40.0, "a broker on a virtual machine of the same cloud"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Errors:
    """Mean absolute errors of one controller: compliance in points, costs in percent.

    Means over every published cell of the patterns; all 0 where nothing was published.
    """

    cells: int

    compliance_points: float
    resource_cost_percent: float
    total_cost_percent: float

    def __str__(self) -> str:
        """As a person reads it."""
        return (
            f"compliance {self.compliance_points:.2f} points, resource cost "
            f"{self.resource_cost_percent:.1f} %, total cost {self.total_cost_percent:.1f} %"
        )

    def loss(self, limits: tuple[float, float, float]) -> float:
        """How far beyond 60 % of the limits, summed: what is good enough need not get better."""
        errors = (self.compliance_points, self.resource_cost_percent, self.total_cost_percent)
        return sum(max(0.0, e / limit - 0.6) for e, limit in zip(errors, limits, strict=True))


LIMITS = {"btu-runtime": (1.2, 4.0, 4.0), "btu": (1.2, 4.0, 4.0), "threshold": (1.5, 8.0, 6.0)}
"""What a good fit keeps below: points, percent, percent."""


def changes(values: Mapping[str, float]) -> dict[str, Any]:
    """Parameter values as fields of a calibration."""
    scale = values["service_scale"]
    return {
        "service_ms": {
            name: round(scale * (own + CONNECTIONS[name] * CONNECTION_MS), 3)
            for name, own in OWN_MS.items()
        },
        "memory_factor": values["memory_factor"],
        "stalls_per_hour": values["stalls_per_hour"],
        "stall_s": (2.0, values["stall_max_s"]),
        "latency_ms": values["latency_ms"],
    }


def specs(
    patterns: Iterable[str], controllers: Iterable[str], seeds: Sequence[int]
) -> list[RunSpec]:
    """The runs behind the figures: a BTU-based controller once per BTU, the others once."""
    return [
        RunSpec(
            experiment="calibration",
            controller=controller,
            pattern=pattern,
            btu_min=btu_min,
            seed=seed,
            duration_min=120,
        )
        for pattern in patterns
        for controller in controllers
        for btu_min in (BTU_MIN.values() if pays_by_own_btu(controller) else (10,))
        for seed in seeds
    ]


def trial(spec: RunSpec, changed: Mapping[str, Any]) -> Trial:
    """One run with a changed calibration (in a worker process)."""
    return attempt(calibrated(spec, changed))


def evaluate(
    values: Mapping[str, float], points: Sequence[RunSpec], pool: Executor
) -> dict[str, Errors]:
    """Errors of every controller against the published figures of the points' patterns."""
    trials = list(pool.map(trial, points, [changes(values)] * len(points)))
    return {
        controller: errors_of(
            [(s, t) for s, t in zip(points, trials, strict=True) if s.controller == controller]
        )
        for controller in dict.fromkeys(spec.controller for spec in points)
    }


def errors_of(runs: Sequence[tuple[RunSpec, Trial]]) -> Errors:
    """Mean absolute errors of the means over seeds, over every published cell."""
    cells: dict[tuple[str, str, str], list[float]] = {}
    for spec, run in runs:
        for book in BOOKS:
            if pays_by_own_btu(spec.controller) and BTU_MIN[book] != spec.btu_min:
                continue
            for metric, value in run.figures(PRICE_BOOKS[book]).items():
                cells.setdefault((spec.pattern, book, metric), []).append(value)
    by_kind: dict[str, list[float]] = {"compliance": [], "resource": [], "total": []}
    controller = runs[0][0].controller
    for (pattern, book, metric), values in cells.items():
        figure = published_figure(controller, pattern, BTU_MIN[book], metric)
        if figure is None:
            continue
        if is_compliance(metric):
            by_kind["compliance"].append(abs(fmean(values) - figure.mean))
        else:
            kind = "resource" if metric == "resource_cost" else "total"
            by_kind[kind].append(100 * abs(fmean(values) / figure.mean - 1))
    points, resource, total = (fmean(errors or [0.0]) for errors in by_kind.values())
    return Errors(sum(map(len, by_kind.values())), points, resource, total)


def as_yaml(values: Mapping[str, float], fitted: Mapping[str, Errors], seeds: int) -> str:
    """A calibration file with these values: each with what it rests on, and how well it fits."""
    changed = changes(values)
    lines = [
        "# The simulator's parameters for the manufacturing topology.",
        "# Written by `python -m include.cli calibrate`: fitted on stepwise and random walk 1 of",
        f"# PeerJ CS 141 with {seeds} seeds. Mean absolute errors there:",
        *(f"#   {name}: {found}" for name, found in fitted.items()),
        "",
        f"# service_scale {values['service_scale']:g} of what an operator does itself plus its",
        f"# connections to the broker, {CONNECTION_MS:g} ms each (include/reproduction)",
        "service_ms:",
        *(f"  {name}: {value:g}" for name, value in changed["service_ms"].items()),
        "service_cv: 0.5              # gamma",
        f"latency_ms: {values['latency_ms']:g}",
        f"stalls_per_hour: {values['stalls_per_hour']:g}     # of an operator's queue",
        f"stall_s: [2, {values['stall_max_s']:g}]",
        f"memory_factor: {values['memory_factor']:g}         # relative to Table 2",
        'host_boot_s: [30, 60]        # "leasing a new VM takes about 30-60 s"',
        'instance_start_s: [5, 10]    # "spawning a new operator instance takes 5-10 s"',
        "image_pull_s: [5, 15]        # more, the first time on a host",
        "drain_s: 20                  # grace period of the original runtime",
        "timestamp_resolution_s: 1    # AMQP time stamps of the original; 0 measures honestly",
        'sample_every_items: 10       # "we only measure ... every 10th data item"',
        "cpu_noise: 0.02              # standard deviation of measured utilisation",
    ]
    return "\n".join(lines) + "\n"


def search(
    *,
    evaluations: int,
    seeds: int,
    pool: Executor,
    report: Callable[[int, Mapping[str, float], Mapping[str, Errors], float], None],
) -> dict[str, float]:
    """The best values found. The search itself is seeded: the same call finds the same values.

    A step changes every parameter by up to a tenth of its range, from the best so far.
    """
    draw = random.Random("calibration")
    points = specs(FITTED, CONTROLLERS, range(1, seeds + 1))
    best = {p.name: p.start for p in PARAMETERS}
    best_loss = float("inf")
    for turn in range(evaluations):
        reach = 0.0 if turn == 0 else 0.1
        values = {
            p.name: round(
                min(
                    p.high,
                    max(p.low, best[p.name] + draw.uniform(-reach, reach) * (p.high - p.low)),
                ),
                3,
            )
            for p in PARAMETERS
        }
        errors = evaluate(values, points, pool)
        loss = sum(found.loss(LIMITS[controller]) for controller, found in errors.items())
        report(turn, values, errors, loss)
        if loss < best_loss:
            best, best_loss = values, loss
    return best
