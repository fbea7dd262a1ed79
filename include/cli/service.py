"""The commands beside a running Flink: `tidebench record`."""

from __future__ import annotations

import re
import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from include.model.errors import SpecError, command

URL = Annotated[str, typer.Argument(help="Flink's REST interface, such as http://jobmanager:8081.")]
Job = Annotated[str, typer.Option(help="The name of the job.")]
Lasts = Annotated[str, typer.Option("--for", help="How long: 90s, 30m, 2h, 7d; else until ended.")]
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d)")
_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


def record(
    url: URL,
    job: Job,
    out: Annotated[Path, typer.Option(help="The folder to record into, or to go on in.")],
    every: Annotated[float, typer.Option(min=1, max=300, help="Seconds between polls.")] = 5.0,
    lasts: Lasts = "",
) -> None:
    """Record a running job from Flink's REST interface; advise and operators take the folder."""
    from include.service.record import record as recorded

    kept = recorded(
        url,
        job,
        out,
        every_s=every,
        lasts_s=duration_s("--for", lasts),
        stop=stopped_by_signal(),
        told=lambda line: typer.echo(line, err=True),
    )
    typer.echo(f"{kept} polls are in {out}. What they say:")
    typer.echo(f"  {command('advise', out, '--objective', 'latency p95 < 2 s')}")
    typer.echo(f"  {command('operators', out)}")


def duration_s(option: str, text: str) -> float:
    """Seconds of ``90s``, ``30m``, ``2h`` or ``7d``; without end of nothing. Raises SpecError."""
    if not text:
        return float("inf")
    found = _DURATION.fullmatch(text.strip())
    if not found or not float(found[1]):
        raise SpecError(option, [f"cannot read {text!r}; write 90s, 30m, 2h or 7d"])
    return float(found[1]) * _SECONDS[found[2]]


def stopped_by_signal() -> threading.Event:
    """Set by Ctrl-C and by SIGTERM, so that a poll is finished first."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop
