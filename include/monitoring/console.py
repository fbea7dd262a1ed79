"""The command `tidebench metrics`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_ROOT = Path(__file__).resolve().parents[2] / "var"


def metrics(
    root: Annotated[
        Path,
        typer.Option(envvar="TIDEBENCH_DATA_ROOT", help="Where measurements and results are kept."),
    ] = DEFAULT_ROOT,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 9464,
    host: Annotated[
        str, typer.Option(help="The address to listen on; nobody is asked for a password.")
    ] = "127.0.0.1",
    within_min: Annotated[
        float, typer.Option(min=0, help="Of runs of which something was written so lately.")
    ] = 180,
    runs: Annotated[int, typer.Option(min=1, max=1000, help="At most so many, the newest.")] = 20,
) -> None:
    """Serve metrics of the runs that are under way or have just ended, for Prometheus."""
    from prometheus_client import CollectorRegistry, start_http_server

    from include.model.errors import SetupError
    from include.monitoring.collector import RunsCollector

    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunsCollector(root.resolve(), within_min * 60, runs))
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise SetupError(
            f"cannot listen on {host}:{port} ({error.strerror}); choose another --port"
        ) from None
    typer.echo(f"metrics of {root.resolve()}: http://{host}:{server.server_port}/metrics")
    try:
        thread.join()
    except KeyboardInterrupt:
        server.shutdown()
