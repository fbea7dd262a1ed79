"""Runs a controller that acts: a shadow of one, whose advice is followed within limits."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from include.service.act import Actor, Mandate, Wish
from include.service.beside import Acts, beside
from include.service.guard import Verdict
from include.service.history import named
from include.service.moment import moment
from include.service.reading import JobReading
from include.service.record import Told
from include.service.rest import FlinkRest
from include.service.shadow import Advised


def act(
    url: str,
    mandate: Mandate,
    *,
    every_s: float,
    acted: Told,
    stop: threading.Event,
    told: Told,
    **about: Any,
) -> None:
    """Until it is late or stopped; ``about`` is what else `beside` wants to know.

    ``acted`` gets a line whenever something else is asked for or held. Raises what `beside` raises,
    and StoreError for a journal that is damaged.
    """
    with closing(FlinkRest(url)) as flink:
        actor = Actor(mandate, flink, ends=stop.is_set)
        beside(
            url,
            mandate.job_name,
            mandate.state,
            stop=stop,
            told=told,
            advised=told,
            every_s=every_s,
            acting=_acting(actor, mandate, every_s, acted),
            **about,
        )


@contextmanager
def _acting(actor: Actor, mandate: Mandate, every_s: float, acted: Told) -> Iterator[Acts]:
    """From the first entry of the journal, once nobody else has the state, to the last."""
    said: list[str] = []

    def step(reading: JobReading, age_s: float, advised: Sequence[Advised]) -> None:
        wish = wish_of(advised, reading.at_s - every_s)  # the next advice is a poll late at most
        verdict = actor.step(reading, moment().before(age_s), wish)
        lines = list(lines_of(verdict, really=mandate.really))
        for line in lines if lines != said else ():
            acted(line)
        said[:] = lines

    actor.begin()
    try:
        yield step
    finally:
        actor.end()


def wish_of(advised: Sequence[Advised], at_s: float) -> Wish:
    """What is advised and still holds."""
    rows = [row for row in advised if not row.failed and at_s <= row.holds_until_s]
    counts = {row.operator: row.wanted for row in rows}
    return Wish(counts, {row.operator: row.because or row.reason for row in rows})


def lines_of(verdict: Verdict, *, really: bool) -> Iterator[str]:
    """What a terminal says of a step; nothing when all is as it should be."""
    for reason in verdict.held:
        yield f"nothing changes: {reason}"
    for name, why in sorted(verdict.cuts.items()):
        yield f"{name} does not get what is wanted: {why}"
    if verdict.asks:
        yield f"{'asks' if really else 'would ask'} for {named(verdict.asks)}"
