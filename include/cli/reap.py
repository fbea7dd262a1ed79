"""The command `tidebench reap`."""

from __future__ import annotations

from typing import Annotated

import typer

from include.model.errors import SpecError


def reap(
    remove: Annotated[bool, typer.Option(help="Release the resources of dead runs.")] = False,
    after_s: Annotated[
        float, typer.Option(min=0, help="Seconds without a sign of life after which a run is dead.")
    ] = 600,
    testbed: Annotated[str, typer.Option(help="Only this testbed.")] = "",
) -> None:
    """List what live runs hold; with --remove, release dead ones."""
    from include.model.errors import unknown_name
    from include.testbeds import TESTBEDS
    from include.testbeds.reap import reap as reap_testbeds

    if testbed and testbed not in TESTBEDS:
        raise SpecError("--testbed", [unknown_name("testbed", testbed, TESTBEDS)])
    chosen = [testbed] if testbed else list(TESTBEDS)
    dead = reap_testbeds(remove=remove, after_s=after_s, testbeds=chosen, say=typer.echo)
    if dead and not remove:
        typer.echo(f"{dead} dead; --remove releases what they hold")
