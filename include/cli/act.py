"""The commands of a service that acts: `tidebench act`, `pause`, `resume`, `journal`, `keda`."""

from __future__ import annotations

from collections import deque
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from include.cli.options import OBJECTIVE, PRICES, Objective, Prices
from include.cli.service import (
    URL,
    Every,
    Job,
    Kept,
    Lasts,
    MaxSlots,
    Page,
    common_checks,
    duration_s,
    polling,
    require_every,
    say,
    stopped_by_signal,
)
from include.model.errors import SpecError, all_checked, command

State = Annotated[Path, typer.Argument(help="The folder of its state.")]


def act(  # noqa: PLR0913  options of a command
    url: URL,
    controller: Annotated[str, typer.Option(help="The controller that decides.")],
    limits: Annotated[Path, typer.Option(help="File of limits (docs/act.md).")],
    state: Kept,
    job: Job = "",
    really: Annotated[
        bool, typer.Option("--really/--dry-run", help="Change the job; a dry run without it.")
    ] = False,
    options: Annotated[
        list[str] | None, typer.Option("--set", help="OPTION=VALUE of the controller.")
    ] = None,
    every: Every = 15.0,
    lasts: Lasts = "",
    prices: Prices = PRICES,
    objective: Objective = OBJECTIVE,
    max_slots: MaxSlots = 0,
    page: Page = "",
) -> None:
    """Let a controller rescale a job within limits.

    Without --really nothing is changed: the decisions are printed and logged.
    """
    from include.experiment.options import parsed_options
    from include.service.act import Actor, Mandate
    from include.service.limits import load_limits
    from include.service.rest import FlinkRest
    from include.service.shadow import asked_controllers
    from include.service.shadow_loop import run_shadow

    def asked_controller() -> dict[str, dict[str, Any]]:
        own = {
            name if "." in name else f"{controller}.{name}": value
            for name, value in parsed_options(options or []).items()
        }
        return asked_controllers([controller], own, "--controller")

    allowed, asked, lasts_s = all_checked(
        "act",
        lambda: load_limits(limits),
        asked_controller,
        lambda: duration_s(lasts),
        lambda: require_every(every),
        *common_checks(url, job, prices, objective, page),
    )[:3]
    polled = polling(url, job, every, lasts_s)
    mandate = Mandate(
        job_name=polled.job, controller=controller, limits=allowed, really=really, state=state
    )
    with closing(polled.client(polled.url)) as flink:
        assert isinstance(flink, FlinkRest)
        run_shadow(
            polled,
            state,
            controllers=asked,
            prices=prices,
            objective=objective,
            most_slots=max_slots,
            page=page,
            advised=polled.told,
            actor=Actor(mandate, flink, ends=polled.stop.is_set),
            acted=say,
        )
    typer.echo(f"What it did, and why: {command('journal', state)}")


def pause(
    state: State,
    why: Annotated[str, typer.Option(help="The reason, for the journal.")] = "",
) -> None:
    """Stop the changes of an acting service; it goes on watching."""
    from include.service.journal import FILE
    from include.service.pause import pause as paused

    _require_state(state, FILE)
    paused(state, why)
    typer.echo(f"paused; {command('resume', state)} ends it")


def resume(state: State) -> None:
    """Allow an acting service to change the job again."""
    from include.service.journal import FILE
    from include.service.pause import resume as resumed

    _require_state(state, FILE)
    typer.echo("resumed" if resumed(state) else "it was not paused")


def journal(
    state: State,
    last: Annotated[int, typer.Option(min=0, help="Number of entries; 0: all.")] = 50,
) -> None:
    """Print the changes of an acting service, with reasons."""
    from include.service.journal import FILE, ChangeJournal, sentence

    _require_state(state, FILE)
    for entry in deque(ChangeJournal(state).read(), maxlen=last or None):
        time = f"{datetime.fromtimestamp(entry.at.at_s, UTC):%Y-%m-%d %H:%M:%SZ}"
        typer.echo(f"{time}  {sentence(entry)}")


def keda(
    state: State,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 6000,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0: all of this machine.")
    ] = "127.0.0.1",
) -> None:
    """Serve the advice of shadow or act to KEDA, as an external scaler."""
    from include.service.keda.scaler import serve

    _require_state(state)
    stop = stopped_by_signal()
    server, _ = serve(state, host, port)
    typer.echo(f"serves {state} to KEDA on {host}:{port}; Ctrl-C ends it")
    stop.wait()
    server.stop(grace=1.0).wait()


def _require_state(state: Path, file: str = "") -> None:
    """Raise SpecError unless the folder is there, and the file of it."""
    try:
        if not state.is_dir():
            raise SpecError("STATE", [f"{state} is no folder; name the --state of shadow or act"])
        if not (state / file).exists():
            raise SpecError("STATE", [f"{state} has no {file}; name the --state of act"])
    except PermissionError as error:  # that of a service of systemd is root's
        how = "run this as the user of the service, or as root"
        raise SpecError("STATE", [f"{error.filename} cannot be read; {how}"]) from None
