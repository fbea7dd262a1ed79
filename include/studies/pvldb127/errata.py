"""What PVLDB 12(7) prints that cannot be right, found by holding it against itself.

Nothing here looks at what was measured. What is printed is rounded, so only what no rounding
explains is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from include.results.reports.comparison import PublishedFigure
from include.studies.pvldb127.published import (
    EVENTS,
    FILTERS,
    IMAGE_TIME,
    VIOLATIONS,
    VM_TIME,
    Key,
)
from include.workloads.images.image_rates import Pyramid

RUN_S, CORES, LIMIT_S = 2700.0, 32, 5.0
HALF_DIGIT = 0.05
"""Figures are printed with one decimal."""
CHANGES: Mapping[tuple[str, str], tuple[float, float]] = {
    ("pyramid", VM_TIME): (6.0, 11.3),
    ("pyramid", EVENTS): (-80.1, -86.1),
    ("pyramid", IMAGE_TIME): (-28.6, -44.5),
    ("pyramid", VIOLATIONS): (-8.9, -12.5),
    ("square", VM_TIME): (2.2, 7.0),
    ("square", EVENTS): (-90.8, -91.3),
    ("square", IMAGE_TIME): (-53.9, -60.9),
    ("square", VIOLATIONS): (-25.5, -24.7),
    ("lab", VM_TIME): (14.1, 22.2),
    ("lab", EVENTS): (-81.0, -87.1),
    ("lab", IMAGE_TIME): (-40.7, -46.7),
    ("lab", VIOLATIONS): (-4.8, -8.7),
}
"""Section 4.2: changes of EKF against GW and PURE, in percent. "The processing times of all
operations" are those of the images: there is one query in a hundred.
"""

Figures = Mapping[Key, PublishedFigure]


def find_errata(figures: Figures) -> list[str]:
    """Every contradiction, a sentence each."""
    return [sentence for check in CHECKS for sentence in check(figures)]


def images_of_pyramid() -> float:
    """Images submitted in one Pyramid run."""
    pieces = Pyramid().unfold(RUN_S, seed=0).pieces(RUN_S)
    return sum(level * (end_s - start_s) for start_s, end_s, level in pieces)


def _unit_of_vm_time(figures: Figures) -> Iterator[str]:
    most_h = CORES * RUN_S / 3600
    largest = max((f.mean for key, f in figures.items() if key[2] == VM_TIME), default=0.0)
    if largest * 1000 > most_h:
        yield (
            f"Total VM time cannot be in 1000 h: {CORES} cores in {RUN_S:g} s are {most_h:g} h, "
            f"and {largest:g} thousand are printed. Read as hours of one run."
        )


def _too_many_late(figures: Figures) -> Iterator[str]:
    images = images_of_pyramid()
    for name in FILTERS.values():
        mean = figures.get(("pyramid", name, IMAGE_TIME))
        late = figures.get(("pyramid", name, VIOLATIONS))
        if mean is None or late is None:
            continue
        # Queries may be late, too, at most one per hundred images.
        least = 1000 * (late.mean - HALF_DIGIT) - images / 100
        if least / images * LIMIT_S > mean.mean + HALF_DIGIT:
            yield (
                f"pyramid, {name}: {late.mean:g} thousand of {images / 1000:.1f} thousand images "
                f"cannot take over {LIMIT_S:g} s when the mean is {mean.mean:g} s (Markov's "
                f"inequality asks for {least / images * LIMIT_S:.1f} s). Read as: late from the "
                "submission on, processed from the queue of the operator on."
            )


def _changes_in_the_text(figures: Figures) -> Iterator[str]:
    for (scenario, metric), printed in CHANGES.items():
        ekf = figures.get((scenario, "EKF", metric))
        for other, percent in zip(("GW", "PURE"), printed, strict=True):
            figure = figures.get((scenario, other, metric))
            if ekf is None or figure is None:
                continue
            exact = figure.mean != round(figure.mean, 1)  # printed with two decimals
            half = HALF_DIGIT / 10 if exact else HALF_DIGIT
            low = 100 * ((ekf.mean - half) / (figure.mean + half) - 1)
            high = 100 * ((ekf.mean + half) / (figure.mean - half) - 1)
            if not low - HALF_DIGIT <= percent <= high + HALF_DIGIT:
                yield (
                    f"{scenario}, {metric}, EKF against {other}: the text says {percent:g} %, "
                    f"{figure.table} says {low:.1f} to {high:.1f} %."
                )


def _up_to(figures: Figures) -> Iterator[str]:
    """Section 6 calls totals against PURE "up to", but single scenarios change more."""
    printed = {VM_TIME: 13.9, EVENTS: -87.9, IMAGE_TIME: -52.4, VIOLATIONS: -15.2}
    for metric, limit in printed.items():
        measured = {s: CHANGES[s, metric][1] for s in ("pyramid", "square", "lab")}
        most = max(measured, key=lambda s: abs(measured[s]))
        if abs(measured[most]) > abs(limit):
            yield (
                f"Section 6 says {metric} changes by up to {limit:g} % (the total against PURE), "
                f"section 4.2 says {measured[most]:g} % on {most}."
            )


def _break_even(figures: Figures) -> Iterator[str]:
    yield (
        "Eq. 20 and 22 weigh rates of change, not numbers: a run has about 9 VM hours and 50,000 "
        "violations, so 7.8 % of the one and 13.2 % of the other are no like amounts."
    )


CHECKS: tuple[Callable[[Figures], Iterator[str]], ...] = (
    _unit_of_vm_time,
    _too_many_late,
    _changes_in_the_text,
    _up_to,
    _break_even,
)
