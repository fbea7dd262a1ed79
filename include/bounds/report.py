"""The bounds of every load of an experiment, whoever controls it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from include.bounds.cover import cover_of
from include.bounds.demand import STEP_S
from include.bounds.floor import floor_of
from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.model.errors import SpecError


@dataclass(frozen=True, slots=True)
class BoundRow:
    """Cost of hosts that one load takes under one price book; None where nothing was found."""

    topology: str
    pattern: str
    seed: int
    duration_min: float
    price_book: str
    floor: float
    floor_found: float | None
    cover: float
    cover_found: float


def bounds_of(specs: Iterable[RunSpec], floor_within_s: float) -> Iterator[BoundRow]:
    """One row per load and price book; runs that differ in their controller share a load.

    The solver of a floor stops after ``floor_within_s`` seconds; then ``floor`` is what is
    certain by then, and ``floor_found`` the cheapest leases that were found. The cover likewise.
    Raises SpecError for BTUs and durations that are no whole minutes.
    """
    loads = {
        alone.to_json(): spec
        for spec in specs
        for alone in [replace(spec, controller="", controller_options={}, experiment="", btu_min=1)]
    }
    for spec in loads.values():
        run = resolve(spec)
        if short := [book.name for book in run.price_books if book.btu_s % STEP_S]:
            told = f"price books with whole minutes only, not {', '.join(short)}"
            raise SpecError("bound", [f"{told}; take others in price_books"])
        cover = cover_of(run)
        for book in run.price_books:
            floor = floor_of(run, book, floor_within_s)
            yield BoundRow(
                topology=spec.topology,
                pattern=spec.pattern,
                seed=spec.seed,
                duration_min=spec.duration_min,
                price_book=book.name,
                floor=floor.low,
                floor_found=floor.high,
                cover=cover.cost(book)[0],
                cover_found=cover.cost(book)[1],
            )
