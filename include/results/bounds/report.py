"""The bounds of every load of an experiment, whoever controls it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from include.experiment.run import Run
from include.experiment.spec import default_of
from include.experiment.variant import conditions_of
from include.model.errors import SpecError
from include.model.host import PriceBook
from include.results.bounds.cover import Cover, cover_of
from include.results.bounds.demand import STEP_S, Demand, demand_of
from include.results.bounds.floor import Floor, floor_of
from include.workloads.topologies import run_defaults


@dataclass(frozen=True, slots=True)
class SharedLoad:
    """What arrives, and the hosts that are always enough; ``runs`` differ in who controls them.

    As text it has whatever tells loads apart, as tables do.
    """

    runs: tuple[Run, ...]
    demand: Demand
    cover: Cover

    def __str__(self) -> str:
        spec, topology = self.runs[0].spec, self.runs[0].topology
        usual = run_defaults(spec.topology).get("duration_min", default_of("duration_min"))
        others = conditions_of(replace(spec, duration_min=usual))
        text = f"{topology.name} {spec.pattern} seed {spec.seed}, {spec.duration_min:g} min"
        return f"{text}, {others}" if others else text


@dataclass(frozen=True, slots=True)
class BoundRow:
    """Cost of hosts that a load takes under one price book.

    ``floor`` is None where nobody asked for it, and of BTUs that are shorter than a step.
    """

    load: SharedLoad
    book: PriceBook
    floor: Floor | None
    cover: float
    cover_found: float


def bounds_of(runs: Iterable[Run], floor_within_s: float | None) -> Iterator[BoundRow]:
    """One row per load and price book, those of a load after each other.

    The solver of a floor stops after ``floor_within_s`` seconds; then its ``low`` is what is
    certain by then, and ``high`` the cheapest leases that were found, as are ``cover`` and
    ``cover_found``. With None no floor is computed. What ``unbounded`` names has no row.
    """
    loads: dict[str, list[Run]] = {}
    for run in runs:
        loads.setdefault(_load_of(run), []).append(run)
    for alike in loads.values():
        run = alike[0]
        books = [book for book in run.price_books if is_bounded(book)]
        if not books or not is_whole(run.spec.duration_s):
            continue
        demand = demand_of(run)
        cover = cover_of(demand, run.flavor)
        load = SharedLoad(tuple(alike), demand, cover)
        for book in books:
            floor = None
            if floor_within_s is not None and is_whole(book.btu_s):
                floor = floor_of(demand, run.flavor, book, _least_boot_s(run), floor_within_s)
            yield BoundRow(load, book, floor, *cover.cost(book))


def unbounded(run: Run) -> list[str]:
    """Why a run, or one of its price books, has no bound: its duration is not whole minutes, a BTU
    neither whole minutes nor an equal part of one, or a book has a minimum or a cap."""
    short = [book.name for book in run.price_books if not is_bounded(book)]
    problems = []
    if not is_whole(run.spec.duration_s):
        problems.append(f"duration_min must be whole minutes, not {run.spec.duration_min:g}")
    if short:
        text = "price books that bill whole minutes, or equal parts of one, and nothing else, not "
        problems.append(f"{text}{', '.join(short)}; take others in price_books")
    return problems


def require_bounded(runs: Iterable[Run]) -> None:
    """Raise SpecError, with every problem once, where something would be left out."""
    if problems := list(dict.fromkeys(problem for run in runs for problem in unbounded(run))):
        raise SpecError("bound", problems)


def is_whole(length_s: float) -> bool:
    """Whether a length is a whole number of steps."""
    steps = round(length_s / STEP_S)
    return steps > 0 and abs(length_s - steps * STEP_S) < 1e-6


def is_bounded(book: PriceBook) -> bool:
    """Whether the cheapest leases under a book can be computed: it bills BTUs alone, and these are
    whole minutes or equal parts of one."""
    return book.pays_whole_btus and (is_whole(book.btu_s) or _fits(book.btu_s))


def _fits(btu_s: float) -> bool:
    """Whether a step is a whole number of BTUs."""
    return abs(round(STEP_S / btu_s) * btu_s - STEP_S) < 1e-6


def _least_boot_s(run: Run) -> float:
    """How long a host gives nothing, at least: nobody knows it where boots are real."""
    bounds_s = (run.calibration.get(name) for name in ("host_boot_s", "instance_start_s"))
    return float(sum(bounds[0] for bounds in bounds_s if bounds))


def _load_of(run: Run) -> str:
    """Everything that a bound depends on, as text: all but who controls, and for which BTU."""
    alone = replace(run.spec, controller="", controller_options={}, advisors=())
    alone = replace(alone, experiment="", btu_min=1)
    return replace(run, spec=alone).to_json()
