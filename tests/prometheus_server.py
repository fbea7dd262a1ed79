"""A real Prometheus, of Debian's package, that scrapes one target every second."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    """Its address; its log is ``folder/log``. Skips the test where there is none."""
    program = shutil.which("prometheus")
    if not program:
        pytest.skip("no prometheus; apt-get install prometheus has it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    config = folder / "prometheus.yml"
    config.write_text(
        "scrape_configs: [{job_name: stream, scrape_interval: 1s, "
        f"static_configs: [{{targets: ['{target}']}}]}}]"
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield address
    finally:
        process.terminate()
        process.wait(timeout=60)
