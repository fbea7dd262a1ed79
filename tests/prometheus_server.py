"""A real Prometheus, of Debian's package, that scrapes one target every second."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.ports import free_port


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    """Its address; its log is ``folder/log``. Skips the test where there is none."""
    program = shutil.which("prometheus")
    if not program:
        pytest.skip("no prometheus; apt-get install prometheus has it")
    address = f"127.0.0.1:{free_port()}"
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


def query(address: str, expression: str) -> list[dict[str, Any]]:
    """What it answers now; nothing until it is ready, which it says in plain text."""
    with suppress(httpx.HTTPError, ValueError):
        asked = {"query": expression}
        found = httpx.get(f"http://{address}/api/v1/query", params=asked, timeout=10).json()
        return list(found["data"]["result"])
    return []
