"""An archive of the classes that a TaskManager loads, from one that runs a job and then ends.

Without it a run is what it is with it, but every start costs more CPU.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from include.files.whole import new_file, write_bytes
from include.model.errors import SetupError, TestbedError
from include.testbeds.base import TestbedConfig
from include.testbeds.flink.calibration import FlinkCalibration
from include.testbeds.flink.cluster import FlinkCluster, Ports
from include.testbeds.flink.installation import Installation
from include.testbeds.flink.job import write_job, write_schedules
from include.testbeds.flink.rest import NoAnswerError, Rest
from include.testing.builders import SMALL, a_topology, an_operator
from include.workloads.pattern import Levels

DRAFT = ".archive-"
UP_WITHIN_S = 180
WRITTEN_WITHIN_S = 180
ANSWERS_WITHIN_S = 60
CHECKPOINTS = 2
"""After so many the job has done everything that it does again and again."""
JOB = "1" * 32
CONFIG = TestbedConfig(
    topology=a_topology(an_operator("O1", service_ms=10.0), an_operator("O2", service_ms=10.0)),
    levels_of={"S1": Levels((0.0,), (10.0,))},
    flavor=SMALL,
    max_hosts=1,
    btu_s=600,
    duration_s=600,
    seed=1,
    monitor_every_s=5,
    calibration={},
    faults={},
    run="archive",
)
LIMITS = FlinkCalibration(checkpoint_every_s=2).complete(CONFIG.topology)


def fits(here: Installation) -> bool:
    """Whether there is an archive, of this JVM and of these jars, as the JVM says itself."""
    given = [f"-XX:SharedArchiveFile={here.archive}", "-cp", here.class_path(steered=False)]
    java = ["java", "-XX:+UseSerialGC", "-Xshare:on", *given, "-version"]
    if not here.archive.is_file():
        return False
    with suppress(subprocess.TimeoutExpired):
        asked = subprocess.run(java, capture_output=True, check=False, timeout=ANSWERS_WITHIN_S)
        return asked.returncode == 0
    return False


def write(here: Installation) -> None:
    """Write it anew; where that does not work, say so: runs work without it."""
    here.archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=here.folder, prefix=DRAFT) as temporary:
        try:
            with new_file(here.archive) as draft:
                run_job(FlinkCluster(Path(temporary), here, LIMITS, Ports.free(), JOB), draft)
        except (SetupError, TestbedError) as error:
            print(f"there is none, so hosts start slower: {error}", flush=True)


def run_job(cluster: FlinkCluster, archive: Path) -> None:
    """A TaskManager runs a job for some checkpoints. Raises SetupError when it does not."""
    cluster.write_configuration()
    write_schedules(cluster.folder, CONFIG, scale=1)
    write_job(cluster.folder, CONFIG, LIMITS, {})
    write_bytes(cluster.folder / "start", str(time.time_ns() // 1000).encode())
    started = [cluster.start_job_manager(None)]
    try:
        with archiving(archive):
            host = cluster.start_task_manager("host-1", 1 + len(CONFIG.topology.operators), 64)
        started.append(host)
        end_s = time.monotonic() + UP_WITHIN_S
        while checkpoints(cluster) < CHECKPOINTS:
            if time.monotonic() > end_s or not host.alive:
                raise SetupError("a job for it does not run")
            time.sleep(0.5)
        host.end(kill_after_s=WRITTEN_WITHIN_S)
    finally:
        for process in started:
            process.end(kill_after_s=0)
    if not archive.is_file():
        raise SetupError("Java wrote none")


@contextmanager
def archiving(archive: Path) -> Iterator[None]:
    """A JVM that starts meanwhile writes its classes there as it ends."""
    before = os.environ.get("JDK_JAVA_OPTIONS", "")
    os.environ["JDK_JAVA_OPTIONS"] = f'{before} "-XX:ArchiveClassesAtExit={archive}"'
    try:
        yield
    finally:
        os.environ["JDK_JAVA_OPTIONS"] = before


def checkpoints(cluster: FlinkCluster) -> int:
    """How many are complete."""
    try:
        return Rest(cluster.ports.rest, cluster.job).checkpoints().id
    except NoAnswerError:
        return 0
