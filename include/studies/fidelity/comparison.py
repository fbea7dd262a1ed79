"""Predictions beside what was measured: a row for every run and figure, and the order of
controllers on every load."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from include.experiment.spec import Choice, RunSpec, load_spec
from include.studies.base import SPECS
from include.studies.fidelity.figures import FIGURES

Figures = Mapping[str, float]
Case = tuple[str, str, int]
"""Load, controller and seed."""
RANKED_BY = (
    "strict_total_cost",
    "end_to_end_total_cost",
    "resource_cost",
    "strict_relaxed_percent",
    "end_to_end_percent",
)
"""What controllers are put in order by: first what a tournament ranks by."""


def case_of(run: RunSpec) -> Case:
    """What a run has in common with its prediction, and with the same run measured again."""
    return (
        Choice(run.pattern, dict(run.pattern_options)).label,
        Choice(run.controller, dict(run.controller_options)).label,
        run.seed,
    )


def asked_runs(experiment: str, measured: Mapping[Case, Figures]) -> list[str]:
    """The load of every run that there will be: those of the spec of that name, where one comes
    with the project, else those that were measured."""
    path = SPECS / f"{experiment}.yaml"
    if path.is_file():
        return [case_of(run)[0] for run in load_spec(path).points()]
    return [load for load, _, _ in measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One figure of a run. ``by`` is the calibration, or says that it was measured again;
    ``error`` and ``holds`` are those of its :class:`~.figures.Figure`."""

    by: str
    load: str
    controller: str
    seed: int
    role: str
    figure: str
    measured: float
    predicted: float
    error: float
    holds: bool | None


FITTED, HELD_OUT = "fitted on", "held out"
AGAIN = "measured again"
LEAST_TAU = 0.8


def predictions(
    by: str,
    measured: Mapping[Case, Figures],
    predicted: Mapping[Case, Figures],
    fitted: Collection[Case],
) -> Iterator[Prediction]:
    """Every figure of every run that both have; a calibration is ``fitted`` to some of them."""
    for case in sorted(measured.keys() & predicted.keys()):
        load, controller, seed = case
        for name, figure in FIGURES.items():
            error = figure.error(predicted[case][name], measured[case][name])
            yield Prediction(
                by=by,
                load=load,
                controller=controller,
                seed=seed,
                role=FITTED if case in fitted else HELD_OUT,
                figure=name,
                measured=measured[case][name],
                predicted=predicted[case][name],
                error=error,
                holds=figure.holds(error),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How alike the order of controllers is on one load: Kendall's tau b; None for fewer than
    three controllers, or where one of the two has no order."""

    by: str
    load: str
    role: str
    figure: str
    controllers: int
    tau: float | None


def orders(rows: Sequence[Prediction]) -> Iterator[Order]:
    """For every load and role, of the means over its seeds."""
    groups: dict[tuple[str, str, str, str], dict[str, list[Prediction]]] = {}
    for row in rows:
        if row.figure in RANKED_BY:
            group = groups.setdefault((row.by, row.load, row.role, row.figure), {})
            group.setdefault(row.controller, []).append(row)
    for (by, load, role, figure), controllers in groups.items():
        measured = [fmean(row.measured for row in own) for own in controllers.values()]
        predicted = [fmean(row.predicted for row in own) for own in controllers.values()]
        yield Order(
            by=by,
            load=load,
            role=role,
            figure=figure,
            controllers=len(controllers),
            tau=_tau(measured, predicted),
        )


def _tau(measured: Sequence[float], predicted: Sequence[float]) -> float | None:
    from scipy.stats import kendalltau  # takes seconds to import

    if len(measured) < 3:
        return None
    tau = float(kendalltau(measured, predicted).statistic)
    return None if tau != tau else tau
