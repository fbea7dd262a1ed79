"""Which Flink the testbed runs, where it is, and whether it is of this code (`make flink`)."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from include.model.errors import SetupError
from include.testbeds.live.files import state_folder

VERSION = "2.2.1"
WHEEL = f"apache_flink_libraries-{VERSION}-py2.py3-none-any.whl"
WHEEL_SHA256 = "74dc5546fbd9add8fbcdf1222a237e09491f9b80296241aef8676ec56f8e686e"
WHEEL_MB = 313
RPC = "flink-rpc-akka.jar"
"""In Flink's own jar, which copies it out at every start of a process."""
SOURCES = Path(__file__).parent / "java"


def flink_state() -> Path:
    """Where Flink and the folders of runs are."""
    return state_folder("TIDEBENCH_FLINK_STATE", ".flink")


@cache
def sources_digest() -> str:
    """Of everything that is compiled against Flink, and of its version."""
    total = hashlib.sha256(WHEEL_SHA256.encode())
    for path in sorted(SOURCES.rglob("*.java")):
        total.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Installation:
    """A folder with Flink's jars, and one with what was compiled against them."""

    folder: Path

    @property
    def lib(self) -> Path:
        """The jars of the wheel that are needed."""
        return self.folder / VERSION / "lib"

    @property
    def built(self) -> Path:
        """The job and the slot assigner, as this code has them."""
        return self.folder / VERSION / f"built-{sources_digest()}"

    @property
    def archive(self) -> Path:
        """Classes as a JVM has them once they are loaded; a start is slower without them."""
        return self.built / "classes.jsa"

    def class_path(self, *, steered: bool) -> str:
        """For a JVM of a run; what goes before Flink's own classes comes first."""
        first = [self.built / "placement.jar"] if steered else []
        jars = [*first, self.built / "job.jar", *sorted(self.lib.glob("*.jar")), self.built / RPC]
        return os.pathsep.join(map(str, jars))


def installation() -> Installation:
    """The one of this machine. Raises SetupError where it is not there, or of other code."""
    here = Installation(flink_state())
    if not (here.lib.is_dir() and here.built.is_dir()):
        raise SetupError(
            f"Apache Flink {VERSION} is not installed below {here.folder}, or its job was compiled "
            "from other sources; run `make flink` (it downloads "
            f"{WHEEL_MB} MB the first time, and needs javac 17)"
        )
    return here
