"""A Spark standalone cluster on this machine: a master and workers, processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from infra.airflow.processes import end_session
from tests.live.world import wait_until
from tests.ports import free_port

HERE = "127.0.0.1"
SPARK_CLASS = Path(sys.executable).with_name("spark-class")
UP_WITHIN_S = 300.0


@dataclass(slots=True)
class Cluster:
    """Its master, and one process per worker; each keeps its files below ``folder``."""

    folder: Path
    master: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def work_of(self, worker: int) -> Path:
        """Where a worker unpacks and runs applications."""
        return self.folder / f"worker-{worker}"

    def kill(self, worker: int) -> None:
        """End a worker with all that it runs, at once and without a word."""
        process = self.workers[worker]
        process.kill()
        end_session(process.pid, process)


@contextmanager
def a_cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """A master and so many workers of one core each; nothing of them is left at the end."""
    port = free_port()
    cluster = Cluster(folder, f"spark://{HERE}:{port}")
    deploy, processes = "org.apache.spark.deploy", list[subprocess.Popen[bytes]]()
    try:
        master = ["--host", HERE, "--port", str(port), "--webui-port", "0"]
        processes.append(_started(folder / "master.log", f"{deploy}.master.Master", *master))
        for number in range(workers):
            call = ["-c", "1", "-m", "2g", "--work-dir", str(cluster.work_of(number))]
            call += ["--host", HERE, "--webui-port", "0", cluster.master]
            log = folder / f"worker-{number}.log"
            processes.append(_started(log, f"{deploy}.worker.Worker", *call))
            cluster.workers.append(processes[-1])
        for number in range(workers):
            text = (folder / f"worker-{number}.log").read_text
            wait_until(lambda text=text: "Successfully registered" in text(), text, UP_WITHIN_S)
        yield cluster
    finally:
        for process in reversed(processes):
            end_session(process.pid, process)


def _started(log: Path, *call: str) -> subprocess.Popen[bytes]:
    # Nothing here leads to the repository: what workers know of it comes from the driver.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as sink:
        return subprocess.Popen(
            [SPARK_CLASS, *call], cwd=log.parent, stdout=sink, stderr=subprocess.STDOUT,
            env=environment | {"SPARK_LOCAL_IP": HERE}, start_new_session=True,
        )  # fmt: skip
