"""Predictions beside what was measured: a row for every run and figure, the order of controllers
on every load, and what would have been recommended."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from include.experiment.spec import SPECS, Choice, RunSpec, load_spec
from include.results.tables.staged import gathered
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


@dataclass(frozen=True, slots=True)
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

    @property
    def case(self) -> Case:
        return self.load, self.controller, self.seed


def measured_in(rows: Iterable[Prediction]) -> dict[Case, dict[str, float]]:
    """What was measured, of every run that has rows."""
    measured: dict[Case, dict[str, float]] = {}
    for row in rows:
        measured.setdefault(row.case, {})[row.figure] = row.measured
    return measured


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
        role = FITTED if case in fitted else HELD_OUT
        for name, figure in FIGURES.items():
            if not (name in measured[case] and name in predicted[case]):
                continue  # nothing was completed, or it was measured before there was such a figure
            true, predicted_value = measured[case][name], predicted[case][name]
            error = figure.error(predicted_value, true)
            holds = figure.holds(error)
            yield Prediction(by, *case, role, name, true, predicted_value, error, holds)


ASKED_PERCENT = (75.0, 80.0, 85.0, 90.0, 95.0)
"""Shares within 2x that recommendations are asked for."""
SHARE, COST = "strict_near_real_time_percent", "resource_cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The controller that promises ``asked_percent`` within 2x on one load and seed for the lowest
    cost of hosts, by runs that nothing was fitted to; None where none promises it.

    It promises what is predicted less a margin, its largest error in the n runs under other seeds
    times (n + 1) / n, as `advise` has it; its cost may be off by the margin of that.
    ``measured_percent`` and ``measured_cost`` are what it did.
    """

    by: str
    load: str
    seed: int
    asked_percent: float
    controller: str | None
    promised_percent: float
    lowest_cost: float
    highest_cost: float
    measured_percent: float
    measured_cost: float

    @property
    def share_holds(self) -> bool:
        """Whether as much was measured as had been asked for."""
        return self.measured_percent >= self.asked_percent

    @property
    def cost_holds(self) -> bool:
        return self.lowest_cost <= self.measured_cost <= self.highest_cost


def recommendations(rows: Sequence[Prediction]) -> Iterator[Promise]:
    """One for every load and seed of which three controllers or more are held out and ran under
    other seeds, and every share that is asked for."""
    rows = [row for row in rows if row.figure in (SHARE, COST)]
    of_policy = gathered(((row.by, row.controller, row.figure), row) for row in rows)

    def margin(row: Prediction) -> float | None:
        others = of_policy[row.by, row.controller, row.figure]
        # Measured less predicted, of a cost as a share of the prediction: around that it reaches.
        errors = [
            abs(FIGURES[other.figure].error(other.measured, other.predicted))
            for other in others
            if other.seed != row.seed
        ]
        return (len(errors) + 1) / len(errors) * max(errors) if errors else None

    runs: dict[tuple[str, str, int], dict[str, dict[str, Prediction]]] = {}
    for row in rows:
        if row.role != FITTED:
            own = runs.setdefault((row.by, row.load, row.seed), {})
            own.setdefault(row.controller, {})[row.figure] = row
    for controllers in runs.values():
        known = [
            _promise(of[SHARE], of[COST], share_margin, cost_margin)
            for of in controllers.values()
            if {SHARE, COST} <= of.keys()
            and (share_margin := margin(of[SHARE])) is not None
            and (cost_margin := margin(of[COST])) is not None
        ]
        if len(known) < 3:
            continue
        for asked in ASKED_PERCENT:
            able = [one for one in known if one.promised_percent >= asked]
            best = min(able, key=lambda one: one.lowest_cost + one.highest_cost, default=None)
            nobody = replace(known[0], controller=None)
            yield replace(best or nobody, asked_percent=asked)


def _promise(
    share: Prediction, cost: Prediction, share_margin: float, cost_margin: float
) -> Promise:
    return Promise(
        by=share.by,
        load=share.load,
        seed=share.seed,
        asked_percent=0.0,
        controller=share.controller,
        promised_percent=share.predicted - share_margin,
        lowest_cost=cost.predicted * max(0.0, 1 - cost_margin),
        highest_cost=cost.predicted * (1 + cost_margin),
        measured_percent=share.measured,
        measured_cost=cost.measured,
    )


@dataclass(frozen=True, slots=True)
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
    """For every load and role, of the means over the seeds that have the most controllers."""
    groups: dict[tuple[str, str, str, str], dict[int, dict[str, Prediction]]] = {}
    for row in rows:
        if row.figure in RANKED_BY:
            group = groups.setdefault((row.by, row.load, row.role, row.figure), {})
            group.setdefault(row.seed, {})[row.controller] = row
    for (by, load, role, figure), seeds in groups.items():
        controllers = max(seeds.values(), key=len).keys()
        whole = [of for of in seeds.values() if of.keys() == controllers]
        measured = [fmean(of[name].measured for of in whole) for name in controllers]
        predicted = [fmean(of[name].predicted for of in whole) for name in controllers]
        yield Order(by, load, role, figure, len(controllers), _tau(measured, predicted))


def _tau(measured: Sequence[float], predicted: Sequence[float]) -> float | None:
    from scipy.stats import kendalltau  # takes seconds to import

    if len(measured) < 3:
        return None
    tau = float(kendalltau(measured, predicted).statistic)
    return None if tau != tau else tau
