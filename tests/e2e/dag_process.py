"""`airflow dags test` as a process group that a test can watch and kill."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.digests import digests

DEADLINE_S = 900.0
"""Three times what a run and its tables have been seen to take on a machine that is busy."""
_ENDS = re.compile(r"\[DAG TEST\] end task task_id=(\S+) map_index=(-?\d+)")


class DagProcess:
    """One run of the DAG, from its start to its end or to SIGKILL."""

    def __init__(
        self,
        environment: Mapping[str, str],
        params: Mapping[str, Any],
        log: Path,
        dag_id: str = "experiment",
    ) -> None:
        self.log = log
        with log.open("w") as sink:
            self.process = subprocess.Popen(
                ["airflow", "dags", "test", dag_id, "--conf", json.dumps(params)],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """The log so far."""
        return self.log.read_text()

    def finish(self, within_s: float = DEADLINE_S) -> int:
        """Wait for the end; the exit code."""
        return self.process.wait(timeout=within_s)

    def wait_until(self, holds: Callable[[], bool], within_s: float = DEADLINE_S) -> None:
        """Wait until something holds; fails when the DAG ends before."""
        end_s = time.monotonic() + within_s
        while not holds():
            assert self.process.poll() is None, self.tail()
            assert time.monotonic() < end_s, self.tail()
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL the whole process group, Spark's JVM included, and reap it."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            self.process.wait()

    def done(self, task: str) -> list[int]:
        """Map indexes of ``task`` in the order in which its copies did their work."""
        return done(task, self.output)

    def tail(self) -> str:
        """The end of the log, for an assertion message."""
        return "\n".join(self.output.splitlines()[-60:])


def done(task: str, text: str) -> list[int]:
    """Map indexes of ``task`` in the order in which a log says that its copies did their work."""
    return [int(index) for name, index in _ENDS.findall(text) if name == task]


@contextmanager
def started(
    environment: Mapping[str, str],
    params: Mapping[str, Any],
    log: Path,
    dag_id: str = "experiment",
) -> Iterator[DagProcess]:
    """Start the DAG; nothing of it survives the block."""
    dag = DagProcess(environment, params, log, dag_id)
    try:
        yield dag
    finally:
        dag.kill()


def measured(folder: Path) -> dict[str, str]:
    """SHA-256 of every measured Parquet file of an experiment, by its path."""
    return digests(folder / "measurements", files="*.parquet")
