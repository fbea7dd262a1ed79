"""JobManager and TaskManagers: what they are told, and how they start, without Flink's scripts.

Everything listens on 127.0.0.1. The JobManager runs the one job and takes no other (application
mode, `web.submit.enable` off). When it died it is started again on the newest complete checkpoint
in the run's folder; TaskManagers find it again by its port.
"""

from __future__ import annotations

import os
import random
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from signal import SIGKILL

from include.files.whole import write_bytes, write_json
from include.model.errors import TestbedNotReady
from include.testbeds.flink.calibration import FlinkCalibration
from include.testbeds.flink.installation import Installation
from include.testbeds.live.files import read_json
from include.testbeds.live.processes import DetachedProcess, started_for

JOB_MANAGER = "org.apache.flink.container.entrypoint.StandaloneApplicationClusterEntryPoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
SLOTS_HELD = 400
"""What a steered job asks for, so that it has every slot there is to choose from."""
FRAMEWORK_HEAP_MB, DIRECT_MB, NETWORK_MB = 48, 64, 24
"""With 16 MB of direct memory starts end in OutOfMemoryError, again and again."""
NICER = 5
"""Every one gives way to the process that reads and decides, which needs little: else that waits
behind what all of them do at a start of the job, and its readings are late."""
LIGHT = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    # Else 10 s, in which starts on a busy machine ended; Flink's own option has no effect here.
    "-Dpekko.remote.classic.startup-timeout=90s",
    # The logger of Log4j's own API: the full one takes a sixth of a start to read its file.
    "-Dlog4j.provider=org.apache.logging.log4j.simple.internal.SimpleProvider",
    "-Dlog4j2.simplelogLevel=INFO",
    "-Dlog4j2.simplelogShowdatetime=true",
    "-Dlog4j2.simplelogDateTimeFormat=HH:mm:ss,SSS",
)
PACKAGES = (
    "java.lang", "java.lang.reflect", "java.net", "java.io", "java.nio", "java.text", "java.time",
    "java.util", "java.util.concurrent", "java.util.concurrent.atomic",
    "java.util.concurrent.locks", "sun.nio.ch",
)  # fmt: skip
"""What Flink's own configuration opens to it (its conf/config.yaml, env.java.opts.all)."""
OPENS = (
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in PACKAGES),
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
)


LISTENS_ON = range(20_000, 32_768)
"""Below the ports that Linux gives to whoever asks for any, as TaskManagers do: one of them could
get the port that the JobManager is about to listen on."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the JobManager listens."""

    rest: int
    rpc: int

    @classmethod
    def free(cls) -> Ports:
        """Two that nobody has now. Raises TestbedNotReady if there are none."""
        found: list[int] = []
        for port in random.sample(LISTENS_ON, len(LISTENS_ON)):
            with socket.socket() as one, suppress(OSError):
                one.bind(("127.0.0.1", port))
                found.append(port)
            if len(found) == 2:
                return cls(*found)
        numbers = f"{LISTENS_ON[0]} to {LISTENS_ON[-1]}"
        raise TestbedNotReady(f"no two ports of {numbers} are free on 127.0.0.1; end what has them")


@dataclass(frozen=True, slots=True)
class FlinkCluster:
    """The processes of one run."""

    folder: Path
    installed: Installation
    limits: FlinkCalibration
    ports: Ports
    job: str
    """Its id, 32 hexadecimal digits."""

    def write_configuration(self) -> None:
        """What every process reads at its start."""
        for name in ("log", "tmp", "checkpoints"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{name}: {value}\n" for name, value in self._settings().items())
        write_bytes(self._configuration / "config.yaml", lines.encode())

    def _settings(self) -> dict[str, object]:
        scheduler = "jobmanager.adaptive-scheduler"
        return {
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.rpc.port": self.ports.rpc,
            "jobmanager.bind-host": "127.0.0.1",
            "jobmanager.memory.heap.size": "192m",
            "jobmanager.memory.jvm-metaspace.size": "160m",
            "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1",
            "rest.port": self.ports.rest,
            "rest.bind-port": self.ports.rest,
            "taskmanager.host": "127.0.0.1",
            "taskmanager.bind-host": "127.0.0.1",
            "blob.server.port": 0,
            "web.submit.enable": "false",
            "web.refresh-interval": 500,
            "rest.flamegraph.enabled": "false",
            "io.tmp.dirs": self.folder / "tmp",
            "web.tmpdir": self.folder / "tmp",
            "process.working-dir": self.folder / "tmp",
            "jobmanager.scheduler": "adaptive",
            f"{scheduler}.executing.cooldown-after-rescaling": "0 s",
            f"{scheduler}.executing.resource-stabilization-timeout": "0 s",
            # A lost job waits so long for slots that nobody has: with 0 s it went on with fewer
            # instances although there were slots for all, which only had to be asked for.
            f"{scheduler}.submission.resource-stabilization-timeout": "1 s",
            f"{scheduler}.submission.resource-wait-timeout": f"{self.limits.boot_within_s:g} s",
            # Asked for, a rescale waits for a checkpoint, which the testbed triggers. Without one
            # all would be undone that was done since the last, again and again.
            f"{scheduler}.rescale-trigger.max-delay": f"{self.limits.rescale_within_s:g} s",
            f"{scheduler}.rescale-trigger.max-checkpoint-failures": 1_000_000,
            "slot.idle.timeout": "1000",
            "cluster.registration.initial-timeout": "100 ms",
            "cluster.registration.max-timeout": "1 s",
            "cluster.registration.error-delay": "500 ms",
            "cluster.registration.refused-registration-delay": "500 ms",
            "heartbeat.interval": 2000,
            "heartbeat.timeout": round(self.limits.silent_for_s * 1000),
            "heartbeat.rpc-failure-threshold": 1,
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 1_000_000,
            "restart-strategy.fixed-delay.delay": "100 ms",
            "state.backend.type": "hashmap",
            "execution.checkpointing.dir": f"file://{self.folder}/checkpoints",
            "execution.checkpointing.storage": "filesystem",
            "execution.checkpointing.interval": f"{self.limits.checkpoint_every_s:g} s",
            "execution.checkpointing.min-pause": "0 s",
            "execution.checkpointing.timeout": "60 s",
            "execution.checkpointing.tolerable-failed-checkpoints": 1_000_000,
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "execution.checkpointing.num-retained": 3,
            # Operator state is read byte by byte where it is not compressed.
            "execution.checkpointing.snapshot-compression": "true",
            "execution.buffer-timeout.interval": "0 ms",
            "pipeline.object-reuse": "true",
            # What waits in buffers holds up a checkpoint unless that overtakes it, and then the
            # next one until all of it is done: few and small, for an item has only 40 bytes.
            "execution.checkpointing.unaligned.enabled": "true",
            "taskmanager.memory.segment-size": "4kb",
            "taskmanager.memory.starting-segment-size": "48b",
            "taskmanager.memory.min-segment-size": "24b",
            "taskmanager.network.memory.buffers-per-channel": 1,
            "taskmanager.network.memory.floating-buffers-per-gate": 1,
            "taskmanager.network.memory.max-buffers-per-channel": 2,
            "taskmanager.network.memory.max-overdraft-buffers-per-gate": 0,
            "taskmanager.network.memory.buffer-debloat.enabled": "true",
            "taskmanager.network.memory.buffer-debloat.target": "200 ms",
        }

    def start_job_manager(self, restore: Path | None) -> DetachedProcess:
        """Start it and the job, which goes on from a checkpoint where there is one."""
        restored = ["--fromSavepoint", str(restore)] if restore else []
        about = ["--job-classname", "tidebench.Job", "--job-id", self.job, *restored]
        about += [f"{self.folder}/job.json"]
        jvm = ["-Xms64m", "-Xmx192m", "-XX:MaxMetaspaceSize=160m"]
        jvm += [f"-Dtidebench.placement={self.folder}/placement"]
        jvm += [f"-Dtidebench.slots={SLOTS_HELD}"]
        steered = self.limits.placement == "steered"
        return self._start("job-manager", JOB_MANAGER, jvm, about, steered=steered)

    def start_task_manager(self, name: str, slots: int, heap_mb: int) -> DetachedProcess:
        """Start one of a name, with so many slots and a heap for what the instances keep."""
        settings = {
            "taskmanager.resource-id": name,
            "taskmanager.numberOfTaskSlots": slots,
            "taskmanager.cpu.cores": "1.0",
            "taskmanager.memory.task.heap.size": f"{heap_mb}m",
            "taskmanager.memory.task.off-heap.size": "0m",
            "taskmanager.memory.framework.heap.size": f"{FRAMEWORK_HEAP_MB}m",
            "taskmanager.memory.framework.off-heap.size": f"{DIRECT_MB}m",
            "taskmanager.memory.network.min": f"{NETWORK_MB}m",
            "taskmanager.memory.network.max": f"{NETWORK_MB}m",
            "taskmanager.memory.managed.size": "0m",
            "taskmanager.memory.jvm-metaspace.size": "96m",
            "taskmanager.memory.jvm-overhead.min": "32m",
            "taskmanager.memory.jvm-overhead.max": "32m",
        }
        memory = [
            "-Xms32m",
            f"-Xmx{heap_mb + FRAMEWORK_HEAP_MB}m",
            f"-XX:MaxDirectMemorySize={DIRECT_MB + NETWORK_MB}m",
            "-XX:MaxMetaspaceSize=96m",
        ]
        dynamic = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
        return self._start(name, TASK_MANAGER, memory, dynamic)

    def _start(
        self, name: str, main: str, jvm: list[str], about: list[str], *, steered: bool = False
    ) -> DetachedProcess:
        log = self.folder / "log" / f"{name}.log"
        numbers = self.folder / "processes" / f"{name}.json"
        left = [DetachedProcess(**stored)] if (stored := read_json(numbers)) else []
        # Whoever started it may have died before it could say so, here or in the state of the run.
        for process in (*left, *(process for _, process in started_for(numbers))):
            process.end(first=SIGKILL)
        command = [
            *("nice", "-n", str(NICER)),
            "java",
            *jvm,
            *LIGHT,
            *OPENS,
            *self._archived(),
            f"-Dlog.file={log}",
            "-cp",
            self.installed.class_path(steered=steered),
            main,
            "--configDir",
            str(self._configuration),
            *about,
        ]
        environment = {**os.environ, "FLINK_CONF_DIR": str(self._configuration)}
        started = DetachedProcess.start(
            command, log, cwd=self.folder, env=environment, held_by=numbers
        )
        with suppress(OSError):  # a kernel that does not group by session
            Path(f"/proc/{started.pid}/autogroup").write_text(str(NICER), encoding="ascii")
        write_json(numbers, asdict(started))
        return started

    def _archived(self) -> list[str]:
        """Where classes are ready to use, at the addresses they were written for."""
        archive = self.installed.archive
        if not archive.is_file():
            return []  # told of one that is not there, a JVM does without its own
        where = ["-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0"]
        return [*where, f"-XX:SharedArchiveFile={archive}"]

    def newest_checkpoint(self) -> Path | None:
        """The last complete one; None when there is none yet."""
        folders = (self.folder / "checkpoints" / self.job).glob("chk-*/_metadata")
        return max((path.parent for path in folders), key=_number, default=None)

    @property
    def _configuration(self) -> Path:
        return self.folder / "conf"


def _number(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("chk-"))
