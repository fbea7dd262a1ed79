"""Runs a shadow beside a job: every poll is recorded, then whoever is due is asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from include.advise.objective import LatencyObjective, parse_objective
from include.experiment.prices import price_book
from include.model.host import PriceBook
from include.service.clock import SteadyClock
from include.service.follow import Follower
from include.service.observe import Terms
from include.service.page import served
from include.service.rates import JobRates
from include.service.reading import JobReading
from include.service.record import Told, alone_in, record
from include.service.rest import FlinkRest
from include.service.shadow import Advised, Shadow, opened
from include.service.status import DAY_S, ShadowStatus, by_controller, remembered
from include.service.verdict import RECORDING

SHORTEST_BTU_S = 600.0
"""A TaskManager is not given back within minutes: what is billed by the second or minute is planned
with for so long, or controllers move instances on paper again and again."""


def terms_of(book: PriceBook, objective: LatencyObjective) -> Terms:
    """What controllers are told of prices and an objective."""
    btu_s = max(SHORTEST_BTU_S, book.btu_s)
    price = book.price_per_btu * btu_s / book.btu_s
    return Terms(
        btu_s=btu_s,
        price_per_btu=price,
        penalty_per_item=book.penalty_per_item,
        limit_s=objective.limit_s,
    )


def run_shadow(  # noqa: PLR0913  what a user may say
    url: str,
    job: str,
    folder: Path,
    *,
    controllers: Mapping[str, Mapping[str, Any]],
    prices: str,
    objective: str,
    every_s: float,
    lasts_s: float,
    most_slots: int,
    page: str,
    stop: threading.Event,
    told: Told,
    advised: Told,
    follower: Follower | None = None,
    client: Callable[..., FlinkRest] = FlinkRest,
) -> None:
    """Until it is late or stopped. ``advised`` gets a line for every change that one would make;
    a ``follower`` of the only controller may make it, and begins once Flink has the job.

    Raises what `record`, `opened` and `price_book` raise.
    """
    terms = terms_of(price_book(prices), parse_objective(objective))
    with alone_in(folder, "is a shadow"):
        state = opened(folder, job, controllers, told)
        with closing(client(url)) as flink:
            flink.job_named(job)  # else each start without Flink writes two entries of the journal
        state.objective, state.prices = objective, prices
        shadow: Shadow | None = None
        last_wanted: dict[str, dict[str, int]] = {}
        clock = SteadyClock()
        status = ShadowStatus(job, flink.url, every_s)
        status.turned()
        status.actor = follower.actor if follower else None
        status.day.extend(remembered(folder, time.time() - DAY_S))

        def seen(now: JobReading, rates: JobRates | None) -> None:
            nonlocal shadow
            if shadow is None:
                there = sum(manager.slots for manager in now.task_managers)
                most = most_slots or 2 * max(there, now.slots)
                shadow = Shadow(folder, state, terms, every_s=every_s, most_slots=most)
            rows_of = shadow.turn(now, rates)
            status.polled(now, rates, rows_of)
            for name, rows in by_controller(rows_of).items():
                wanted = {row.operator: row.wanted for row in rows}
                if last_wanted.get(name) != wanted:
                    last_wanted[name] = wanted
                    advised(line_of(name, rows))
            if follower is not None:
                last = [row for shadowed in state.controllers.values() for row in shadowed.advised]
                follower.follow(now, clock.now_s() - now.at_s, last)

        with served(status, page) as where, follower or nullcontext():
            if where:
                advised(f"Page: {where}")
            record(
                url,
                job,
                folder / RECORDING,
                every_s=every_s,
                lasts_s=lasts_s,
                stop=stop,
                told=told,
                seen=seen,
                missed=status.unread,
                turned=status.turned,
                clock=clock,
                client=client,
            )
        if shadow is not None:
            shadow.close()


def line_of(name: str, rows: Sequence[Advised]) -> str:
    """What one controller advises and why, on a line."""
    at = datetime.fromtimestamp(rows[0].time_s, UTC).strftime("%H:%M:%S")
    changed = [row for row in rows if row.changes]
    what = ", ".join(f"{row.operator} {row.instances} -> {row.wanted}" for row in changed)
    return f"{at} {name:<18} {what or 'as it is'} ({(changed or rows)[0].because})"
