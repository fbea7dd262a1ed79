"""The bounds of every load of an experiment, whoever controls it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from include.bounds.cover import cover_of
from include.bounds.demand import STEP_S
from include.bounds.floor import Floor, floor_of
from include.experiment.run import Run
from include.model.errors import SpecError
from include.model.host import PriceBook


@dataclass(frozen=True, slots=True)
class BoundRow:
    """Cost of hosts that the load of ``runs`` takes under one price book.

    ``floor`` is None where nobody asked for it.
    """

    runs: tuple[Run, ...]
    price_book: str
    floor: Floor | None
    cover: float
    cover_found: float

    @property
    def load(self) -> str:
        """What arrives, in words."""
        spec = self.runs[0].spec
        return f"{spec.topology} {spec.pattern} seed {spec.seed}, {spec.duration_min:g} min"


def bounds_of(runs: Iterable[Run], floor_within_s: float | None) -> Iterator[BoundRow]:
    """One row per load and price book; runs that differ in their controller share a load.

    The solver of a floor stops after ``floor_within_s`` seconds; then its ``low`` is what is
    certain by then, and ``high`` the cheapest leases that were found, as are ``cover`` and
    ``cover_found``. With None no floor is computed. What ``unbounded`` names has no row.
    """
    loads: dict[str, list[Run]] = {}
    for run in runs:
        loads.setdefault(_load_of(run), []).append(run)
    for those in loads.values():
        run = those[0]
        if not is_whole(run.spec.duration_s):
            continue
        cover = cover_of(run)
        for book in filter(is_bounded, run.price_books):
            floor = None if floor_within_s is None else floor_of(run, book, floor_within_s)
            yield BoundRow(tuple(those), book.name, floor, *cover.cost(book))


def unbounded(run: Run) -> list[str]:
    """What of a run has no bound, and why: BTUs and durations that are no whole minutes, and
    books with a minimum or a cap."""
    short = [book.name for book in run.price_books if not is_bounded(book)]
    problems = []
    if not is_whole(run.spec.duration_s):
        problems.append(f"duration_min must be whole minutes, not {run.spec.duration_min:g}")
    if short:
        told = f"price books that bill whole minutes and nothing else, not {', '.join(short)}"
        problems.append(f"{told}; take others in price_books")
    return problems


def require_bounded(runs: Iterable[Run]) -> None:
    """Raise SpecError, with every problem once, where something would be left out."""
    if problems := list(dict.fromkeys(told for run in runs for told in unbounded(run))):
        raise SpecError("bound", problems)


def is_whole(length_s: float) -> bool:
    """Whether steps fill it."""
    steps = round(length_s / STEP_S)
    return steps > 0 and abs(length_s - steps * STEP_S) < 1e-6


def is_bounded(book: PriceBook) -> bool:
    """Whether the cheapest leases under a book are known: whole BTUs of whole minutes."""
    return book.pays_whole_btus and is_whole(book.btu_s)


def _load_of(run: Run) -> str:
    """Everything that a bound depends on, as text: all but who controls, and for which BTU."""
    alone = replace(run.spec, controller="", controller_options={}, advisors=())
    alone = replace(alone, experiment="", btu_min=1)
    return replace(run, spec=alone).to_json()
