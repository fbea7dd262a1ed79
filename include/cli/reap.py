"""What runs hold on testbeds that lease, and giving it back."""

from __future__ import annotations

from typing import Annotated

import typer

from include.model.errors import SpecError


def reap(
    remove: Annotated[bool, typer.Option(help="Give back instead of listing.")] = False,
    after_s: Annotated[
        float, typer.Option(min=0, help="A run that nobody looked after for so long is dead.")
    ] = 600,
    testbed: Annotated[str, typer.Option(help="Of this testbed only.")] = "",
) -> None:
    """List what runs hold on testbeds that lease, and give back what dead ones have left."""
    from include.model.errors import unknown_name
    from include.testbeds import TESTBEDS
    from include.testbeds.reap import reap as reap_testbeds

    if testbed and testbed not in TESTBEDS:
        raise SpecError("--testbed", [unknown_name("testbed", testbed, TESTBEDS)])
    chosen = [testbed] if testbed else list(TESTBEDS)
    dead = reap_testbeds(remove=remove, after_s=after_s, testbeds=chosen, say=typer.echo)
    if dead and not remove:
        typer.echo(f"{dead} dead; --remove gives back what they hold")
