"""Runs a shadow beside a job: every poll is recorded, then whoever is due is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from include.advise.objective import parse_objective
from include.experiment.prices import price_book
from include.model.errors import SetupError
from include.service.act import Actor, Wish
from include.service.clock import SteadyClock, Timestamp
from include.service.guard import Permission
from include.service.history import named
from include.service.observe import Terms, graph_of
from include.service.page import served
from include.service.rates import JobRates
from include.service.reading import JobReading
from include.service.record import Polling, Told, alone_in, record
from include.service.shadow import (
    RECORDING,
    Advised,
    Shadow,
    controllers_beside,
    opened,
    slots_of,
)
from include.service.status import DAY_S, ShadowStatus, remembered

SHORTEST_BTU_S = 600.0
"""A TaskManager is not given back within minutes: what is billed by the second or minute is planned
with for so long, or controllers move instances on paper again and again."""

LONGEST_MEAN_S = 60.0
FIRST = "what is advised first after a start of the job, or of this service, is not followed"
UNWRITTEN = "what was advised in a turn that could not be written is not followed"
OUTAGE = "advice is not followed that is a mean over a time in which nobody looked"


@dataclass(slots=True)
class Attention:
    """Whether the last advice is of a time in which somebody looked and the job ran; else why not.

    A mean over an outage, of more than a minute and two polls, moves memories on and changes
    nothing. Nor does what is advised first after a start of the job, which counts nothing while it
    is down, or first by this service.
    """

    every_s: float
    why_not: str = FIRST
    _longest_s: float = 0.0
    _mean_s: float = 0.0
    """Since the last reading of which all was counted."""
    _start: tuple[str, float] = "", 0.0

    def read(self, now: JobReading, rates: JobRates | None, *, asked: bool) -> None:
        """Take over a reading, at which somebody was ``asked`` or not."""
        if rates:
            self._mean_s += rates.since_s
            self._longest_s = max(self._longest_s, self._mean_s)
            if now.counted:
                self._mean_s = 0.0
        if asked:
            start = now.job, now.started_s
            outage = self._longest_s > max(LONGEST_MEAN_S, 2 * self.every_s)
            self.why_not = FIRST if start != self._start else OUTAGE if outage else ""
            self._longest_s, self._start = 0.0, start

    def lost(self, now: JobReading, rates: JobRates | None) -> None:
        """Take over a reading whose turn could not be written; somebody may have been asked."""
        self.read(now, rates, asked=False)
        self.why_not = UNWRITTEN


def run_shadow(  # noqa: PLR0913  what a user may say
    polling: Polling,
    folder: Path,
    *,
    controllers: Mapping[str, Mapping[str, Any]],
    prices: str,
    objective: str,
    most_slots: int,
    page: str,
    advised: Told,
    actor: Actor | None = None,
    acted: Told = lambda line: None,
) -> None:
    """Until the polling ends. ``advised`` gets a line for every change that one would make;
    an ``actor`` follows the only controller, and begins once Flink has the job. ``acted`` gets a
    line whenever something else is asked for, held or cut.

    Raises what `record`, `opened` and `price_book` raise.
    """
    book = price_book(prices).by_at_least(SHORTEST_BTU_S)
    terms = Terms(book, parse_objective(objective).limit_s)
    job, every_s = polling.job, polling.every_s
    with alone_in(folder, "is a shadow"):
        state = opened(folder, job, controllers, polling.told)
        with closing(polling.client(polling.url)) as flink:
            now = flink.reading(job)  # else each start without Flink writes entries of the journal
        if now.running:  # else they are built once it does
            controllers_beside(
                now, graph_of(now), terms, state.controllers,
                every_s=every_s, most_slots=most_slots or slots_of(now),
            )  # fmt: skip
        state.objective, state.prices = objective, prices
        shadow = Shadow(folder, state, terms, every_s=every_s, most_slots=most_slots)
        last_wanted: dict[str, list[tuple[str, int, bool]]] = {}
        last_acted: list[str] = []
        attention = Attention(every_s)
        clock = SteadyClock()
        status = ShadowStatus(job, flink.url, every_s)
        status.turned()
        status.actor = actor
        status.day.extend(remembered(folder, time.time() - DAY_S))

        def seen(now: JobReading, rates: JobRates | None) -> None:
            nonlocal last_acted
            try:
                rows_of = shadow.turn(now, rates)
            except SetupError:
                attention.lost(now, rates)
                raise
            attention.read(now, rates, asked=bool(rows_of))
            status.polled(now, rates, rows_of)
            for name, rows in rows_of.items():
                wanted = [(row.operator, row.wanted, row.failed) for row in rows]
                if last_wanted.get(name) != wanted:
                    last_wanted[name] = wanted
                    advised(line_of(name, rows))
            if actor is not None:
                last = [row for shadowed in state.controllers.values() for row in shadowed.advised]
                wish = wish_of(last, now.at_s - every_s / 2, attention.why_not)
                read = Timestamp.now().before(clock.now_s() - now.at_s)
                lines = list(lines_of(actor.step(now, read, wish), really=actor.mandate.really))
                for line in lines if lines != last_acted else ():
                    acted(line)
                last_acted = lines

        with closing(shadow), served(status, page) as where, ExitStack() as ends:
            if actor is not None:
                actor.begin()
                ends.callback(actor.end)
            if where:
                advised(f"Page: {where}")
            record(
                polling,
                folder / RECORDING,
                seen=seen,
                missed=status.unread,
                turned=status.turned,
                clock=clock,
            )


def line_of(name: str, rows: Sequence[Advised]) -> str:
    """What one controller advises and why, on a line."""
    at = datetime.fromtimestamp(rows[0].time_s, UTC).strftime("%H:%M:%S")
    changed = [row for row in rows if row.changes]
    what = ", ".join(f"{row.operator} {row.instances} -> {row.wanted}" for row in changed)
    what = what or ("failed" if rows[0].failed else "as it is")
    return f"{at} {name:<18} {what} ({(changed or rows)[0].because})"


def wish_of(advised: Sequence[Advised], at_s: float, why_not: str = "") -> Wish:
    """What is advised and held at that time, and why it is not followed."""
    rows = [row for row in advised if not row.failed and at_s <= row.holds_until_s]
    counts = {row.operator: row.wanted for row in rows}
    return Wish(counts, {row.operator: row.because or row.reason for row in rows}, why_not)


def lines_of(verdict: Permission, *, really: bool) -> Iterator[str]:
    """What a terminal says of a step; nothing when all is as it should be."""
    for reason in verdict.held:
        yield f"nothing changes: {reason}"
    for name, why in sorted(verdict.cuts.items()):
        yield f"{name} does not get what is wanted: {why}"
    if verdict.asks:
        does, would = ("goes", "would go") if verdict.back else ("asks", "would ask")
        to = "back to" if verdict.back else "for"
        yield f"{does if really else would} {to} {named(verdict.asks)}"
