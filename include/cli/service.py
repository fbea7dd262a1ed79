"""The commands beside a running Flink: `tidebench record`, `shadow` and `verdict`."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from include.cli.options import OBJECTIVE, PRICES, Objective, Prices
from include.model.errors import SpecError, all_checked, command

if TYPE_CHECKING:
    from include.service.record import Polled, Polling

URL = Annotated[
    str,
    typer.Argument(
        help="Flink's REST interface, http://jobmanager:8081; or testbed, of this machine."
    ),
]
Job = Annotated[str, typer.Option(help="The name of the job.")]
Lasts = Annotated[str, typer.Option("--for", help="How long: 90s, 30m, 2h, 7d; else until ended.")]
Every = Annotated[float, typer.Option(help="Seconds between polls, 1 to 300.")]
MaxSlots = Annotated[int, typer.Option(min=0, help="Most slots; 0: twice those there are.")]
Page = Annotated[str, typer.Option(help="Serve its page at PORT or HOST:PORT.")]
Kept = Annotated[Path, typer.Option(help="Folder of its state; an old one is continued.")]
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d)")
_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


def record(  # noqa: PLR0913  options of a command
    out: Annotated[Path, typer.Option(help="Folder to record into; an old one is continued.")],
    url: URL = "",
    job: Job = "",
    every: Every = 5.0,
    lasts: Lasts = "",
    prometheus: Annotated[
        str,
        typer.Option(help="Read Flink's reporter there, http://prometheus:9090, in place of URL."),
    ] = "",
    edges: Annotated[
        str,
        typer.Option(
            help="How records flow, as SOURCE>MAP>SINK or a YAML file; with --prometheus."
        ),
    ] = "",
) -> None:
    """Record a job on Flink, by REST or by Prometheus, for advise."""
    from include.advise.edges import edges_of
    from include.service.prometheus import FlinkPrometheus
    from include.service.record import record as recorded

    lasts_s, *_ = all_checked(
        "record",
        lambda: duration_s(lasts),
        lambda: require_every(every),
        lambda: _require_one_source(url, prometheus, edges),
        lambda: _require_job(url, job),
    )
    client = partial(FlinkPrometheus, edges=edges_of(edges)) if prometheus else None
    kept = recorded(polling(prometheus or url, job, every, lasts_s, client), out)
    typer.echo(f"{kept} polls were recorded in {out}. What it says:")
    typer.echo(f"  {command('advise', out, '--objective', OBJECTIVE)}")
    typer.echo(f"  {command('operators', out)}")


def _require_one_source(url: str, prometheus: str, edges: str) -> None:
    """Raise SpecError for options that do not go together."""
    problems = []
    if bool(url) == bool(prometheus):
        problems.append("name either Flink's REST interface, or --prometheus URL")
    if prometheus and not edges:
        problems.append("--edges: the reporter does not say how records flow; SOURCE>MAP>SINK does")
    if edges and not prometheus:
        problems.append("--edges: Flink's REST interface says itself how records flow")
    if problems:
        raise SpecError("record", problems)


def shadow(  # noqa: PLR0913  options of a command
    url: URL,
    state: Kept,
    job: Job = "",
    controllers: Annotated[
        str, typer.Option(help="Controllers to ask, separated by commas.")
    ] = "tide,ds2,flink-autoscaler,hpa",
    options: Annotated[
        list[str] | None, typer.Option("--set", help="CONTROLLER.OPTION=VALUE, such as tide.care=2")
    ] = None,
    every: Every = 15.0,
    lasts: Lasts = "",
    prices: Prices = PRICES,
    objective: Objective = OBJECTIVE,
    max_slots: MaxSlots = 0,
    page: Page = "",
) -> None:
    """Record a job and log what controllers would do with it."""
    from include.experiment.options import parsed_options
    from include.service.shadow import asked_controllers
    from include.service.shadow_loop import run_shadow

    names = [name.strip() for name in controllers.split(",") if name.strip()]
    asked, lasts_s = all_checked(
        "shadow",
        lambda: asked_controllers(names, parsed_options(options or [])),
        lambda: duration_s(lasts),
        lambda: require_every(every),
        *common_checks(url, job, prices, objective, page),
    )[:2]
    run_shadow(
        polling(url, job, every, lasts_s),
        state,
        controllers=asked,
        prices=prices,
        objective=objective,
        most_slots=max_slots,
        page=page,
        advised=say,
    )
    typer.echo(f"What each would have cost: {command('verdict', state)}")


def verdict(  # noqa: PLR0913  options of a command
    state: Annotated[Path, typer.Argument(help="The folder of a shadow.")],
    objective: Annotated[str, typer.Option(help="Default: that of the shadow.")] = "",
    prices: Annotated[str, typer.Option(help="A price book; default: that of the shadow.")] = "",
    day: Annotated[str, typer.Option(help="Only this day in UTC, such as 2026-01-31.")] = "",
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Number of replays.")] = 3,
    max_instances: Annotated[int, typer.Option(help="0: the most recorded.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="The folder for it; default: STATE/verdict.")
    ] = None,
) -> None:
    """Compare the controllers of a shadow by cost and latency."""
    from include.advise.answer import advise
    from include.advise.case import keep_case
    from include.advise.form import parse_day
    from include.advise.publish import PAGE
    from include.advise.request import AdviceRequest
    from include.cli.advise import advice_table, alone_with_advice, require_all_ranked
    from include.service.shadow import DECISIONS, RECORDING
    from include.service.verdict import (
        cut_day,
        publish_verdict,
        request_of,
        state_of,
        verdict_lines,
    )

    request = AdviceRequest(
        objective=objective, prices=prices, seeds=seeds, max_instances=max_instances
    )
    only = parse_day(day) if day else None
    target = out or state / (f"verdict-{only}" if only else "verdict")
    state_of(state)  # or the lock would make its folder
    with alone_with_advice(target):
        recording = cut_day(state, only) if only else state / RECORDING
        case = keep_case(request_of(state, recording, request), target, "verdict")
        answer = advise(case, target)
        published = publish_verdict(answer, target)
    decisions = (recording if only else state) / DECISIONS
    typer.echo(advice_table(answer))
    for line in ("", *verdict_lines(answer, state, decisions)):
        typer.echo(line)
    typer.echo(f"\nPage: {published / PAGE}")
    require_all_ranked(answer)


def common_checks(
    url: str, job: str, prices: str, objective: str, page: str
) -> Iterator[Callable[[], object]]:
    """Checks of options that shadow and act have, before anything is asked or written."""
    from include.advise.objective import parse_objective
    from include.experiment.prices import price_book
    from include.service.page import address_of
    from include.service.rest import FlinkRest
    from include.service.testbed import TESTBED

    if url != TESTBED:
        yield lambda: FlinkRest(url)
    yield lambda: _require_job(url, job)
    yield lambda: price_book(prices)
    yield lambda: parse_objective(objective)
    if page:
        yield lambda: address_of(page)


def _require_job(url: str, job: str) -> None:
    from include.service.testbed import TESTBED

    if not job and url != TESTBED:
        raise SpecError("--job", ["write the name of the job, as Flink's page has it"])


def polling(
    url: str, job: str, every_s: float, lasts_s: float, client: Callable[..., Polled] | None = None
) -> Polling:
    """How the job is polled until a signal ends it; a job of the testbed is looked for. ``client``
    is what reads it, if that is not Flink's REST interface."""
    from include.service.record import Polling
    from include.service.rest import FlinkRest
    from include.service.testbed import TESTBED, TestbedRest, job_of_testbed

    stop = stopped_by_signal()
    if url == TESTBED and client is None:
        url, job = job_of_testbed(job, stop)
        client = partial(TestbedRest, job=job)
    return Polling(
        url=url,
        job=job,
        every_s=every_s,
        lasts_s=lasts_s,
        stop=stop,
        told=partial(say, err=True),
        client=client or FlinkRest,
    )


def say(line: str, *, err: bool = False) -> None:
    """Print a line of a service, which goes on where the disk of its log is full."""
    try:
        typer.echo(line, err=err)
    except BrokenPipeError:
        raise
    except OSError:
        return


def duration_s(text: str) -> float:
    """Seconds of ``90s``, ``30m``, ``2h`` or ``7d``; without end of nothing. Raises SpecError."""
    if not text:
        return float("inf")
    found = _DURATION.fullmatch(text.strip())
    if not found or not float(found[1]):
        raise SpecError("--for", [f"cannot read {text!r}; write 90s, 30m, 2h or 7d"])
    return float(found[1]) * _SECONDS[found[2]]


def require_every(every_s: float) -> None:
    """Raise SpecError unless one can poll so often. The option parser would tell this alone."""
    if not 1 <= every_s <= 300:
        raise SpecError("--every", [f"write seconds from 1 to 300, got {every_s:g}"])


def stopped_by_signal() -> threading.Event:
    """Set by Ctrl-C and by SIGTERM, so that a poll is finished first, which the next one ends: a
    controller may never answer."""
    stop = threading.Event()

    def end(*_: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)
    return stop
