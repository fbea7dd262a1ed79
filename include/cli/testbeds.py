"""Commands on real testbeds: what runs hold, and their metrics."""

from __future__ import annotations

import errno
import socket
from typing import Annotated

import typer

from include.cli.options import DEFAULT_ROOT, Root
from include.model.errors import SetupError, SpecError, unknown_name


def metrics(
    root: Root = DEFAULT_ROOT,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 9464,
    host: Annotated[
        str, typer.Option(help="Address to listen on; there is no password.")
    ] = "127.0.0.1",
    within_min: Annotated[
        float, typer.Option(min=0, help="Hide runs without a new file for so many minutes.")
    ] = 180,
    runs: Annotated[int, typer.Option(min=1, max=1000, help="Show the newest runs.")] = 20,
) -> None:
    """Serve metrics of current and recent runs to Prometheus."""
    from prometheus_client import CollectorRegistry, start_http_server

    from include.runs.monitoring.collector import RunsCollector

    root = root.resolve()
    if not root.is_dir():
        raise SetupError(f"there is no folder {root}; measure something first, or correct --root")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunsCollector(root, within_min * 60, runs))
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        is_host = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        how = "give an address of this machine as --host" if is_host else "choose another --port"
        raise SetupError(
            f"cannot listen on {_shown(host)}:{port} ({error.strerror}); {how}"
        ) from None
    typer.echo(f"metrics of {root}: http://{_shown(host)}:{server.server_port}/metrics")
    try:
        thread.join()
    except KeyboardInterrupt:
        server.shutdown()


def _shown(host: str) -> str:
    """A host as addresses have it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def reap(
    remove: Annotated[bool, typer.Option(help="Release the resources of dead runs.")] = False,
    after_s: Annotated[
        float, typer.Option(min=0, help="Seconds without a sign of life after which a run is dead.")
    ] = 600,
    testbed: Annotated[str, typer.Option(help="Only this testbed.")] = "",
) -> None:
    """List what live runs hold; with --remove, release dead ones."""
    from include.testbeds import TESTBEDS
    from include.testbeds.reap import reap as reap_testbeds

    if testbed and testbed not in TESTBEDS:
        raise SpecError("--testbed", [unknown_name("testbed", testbed, TESTBEDS)])
    chosen = [testbed] if testbed else list(TESTBEDS)
    dead = reap_testbeds(remove=remove, after_s=after_s, testbeds=chosen, say=typer.echo)
    if dead and not remove:
        typer.echo(f"{dead} dead; --remove releases what they hold")
