"""Installs Apache Flink for the testbed `flink`, and compiles its job: `make flink`.

One wheel from the package index, held against its digest; a few of its jars are kept, below
var/.flink and outside every environment. Safe to repeat and to run twice at once: the second waits.
"""

from __future__ import annotations

import argparse
import fcntl
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from include.cli.interrupt import ends_as_by_ctrl_c
from include.files.whole import digest, new_folder, swap_in
from include.model.errors import SetupError
from include.testbeds.flink.installation import (
    RPC,
    SOURCES,
    VERSION,
    WHEEL,
    WHEEL_MB,
    WHEEL_SHA256,
    Installation,
    flink_state,
)
from include.testbeds.flink.reap import processes_in
from infra.flink import archive

JARS = ("flink-dist-", "log4j-api-", "log4j-core-", "log4j-slf4j-impl-", "log4j-1.2-api-")
JAVA = 17
DRAFT = ".download-"
DOWNLOAD_WITHIN_S = 1800
COMPILE_WITHIN_S = 300


def install(here: Installation) -> None:
    """Whatever is missing. Raises SetupError with what the machine lacks; leaves nothing behind."""
    java_compiler()
    with alone(here.folder):
        remove_leftovers(here.folder)
        if not here.lib.is_dir():
            take_jars(here)
        if not here.built.is_dir():
            compile_all(here)
        if not archive.fits(here):
            print("writing an archive of loaded classes", flush=True)
            archive.write(here)
    print(f"Apache Flink {VERSION} is in {here.lib.parent}")


def java_compiler() -> None:
    """Raises SetupError where there is no javac of a version that Flink runs with."""
    path = shutil.which("javac")
    told = run_quietly([path, "-version"], 30) if path else ""
    version = re.search(r"\d+", told)
    if not version or int(version[0]) < JAVA:
        has = f"found {told}" if told else "there is no javac"
        raise SetupError(
            f"{has}; install a JDK of version {JAVA}, for example with: "
            f"apt-get install openjdk-{JAVA}-jdk-headless"
        )


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait for whoever installs at the moment."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "install.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("somebody else installs Flink at the moment; this waits", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def remove_leftovers(folder: Path) -> None:
    """Of one that was killed: what it downloaded, and a Flink that runs for an archive."""
    for left in (path for name in (archive.DRAFT, DRAFT) for path in folder.glob(f"{name}*")):
        for process in processes_in(left).values():
            process.end(first=signal.SIGKILL)
        shutil.rmtree(left, ignore_errors=True)


def take_jars(here: Installation) -> None:
    """Download the wheel and keep a few of its jars."""
    print(f"downloading {WHEEL} from the package index: {WHEEL_MB} MB", flush=True)
    with tempfile.TemporaryDirectory(dir=here.folder, prefix=DRAFT) as temporary:
        wheel = download(Path(temporary))
        with new_folder(here.lib) as draft, zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                file = name.rpartition("/")[2]
                if name.startswith("pyflink/lib/") and file.startswith(JARS):
                    with archive.open(name) as source, (draft / file).open("wb") as target:
                        shutil.copyfileobj(source, target)
            kept = len(list(draft.iterdir()))
            if kept != len(JARS):
                raise SetupError(f"{WHEEL} has {kept} of the {len(JARS)} jars that are needed")
            swap_in(draft, here.lib)


def download(folder: Path) -> Path:
    """The wheel, by its digest. Raises SetupError when it is another or does not come."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"apache-flink-libraries=={VERSION} --hash=sha256:{WHEEL_SHA256}\n")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    pip += ["--no-cache-dir", "--disable-pip-version-check", "--only-binary", ":all:"]
    run_quietly([*pip, "--dest", str(folder), "-r", str(wanted)], DOWNLOAD_WITHIN_S)
    wheel = folder / WHEEL
    if not wheel.is_file() or digest(wheel) != WHEEL_SHA256:
        raise SetupError(f"what was downloaded is not {WHEEL} of sha256 {WHEEL_SHA256}")
    return wheel


def compile_all(here: Installation) -> None:
    """The job, and the slot assigner with Flink's allocator written anew; Flink's RPC, unpacked."""
    print("compiling the job", flush=True)
    jars = ":".join(str(jar) for jar in sorted(here.lib.glob("*.jar")))
    (dist,) = here.lib.glob("flink-dist-*.jar")
    with new_folder(here.built) as draft, tempfile.TemporaryDirectory() as temporary:
        classes = {name: Path(temporary, name) for name in ("job", "placement", "patch")}
        compile_java(sorted((SOURCES / "tidebench").glob("*.java")), classes["job"], jars)
        compile_java(
            [SOURCES / "placement" / "DefaultSlotAssigner.java"], classes["placement"], jars
        )
        compile_java([SOURCES / "placement" / "Patch.java"], classes["patch"], jars)
        patch = ["java", "-cp", f"{classes['patch']}:{jars}", "Patch", str(dist)]
        run_quietly([*patch, str(classes["placement"])], COMPILE_WITHIN_S)
        services = classes["job"] / "META-INF" / "services"
        services.mkdir(parents=True)
        (services / "org.apache.flink.runtime.rpc.RpcSystemLoader").write_text("tidebench.Rpc\n")
        with zipfile.ZipFile(dist) as archived:
            archived.extract(RPC, draft)
        for name in ("job", "placement"):
            pack(classes[name], draft / f"{name}.jar")
        swap_in(draft, here.built)


def compile_java(files: list[Path], into: Path, class_path: str) -> None:
    """Java 17 into a new folder. Raises SetupError with what the compiler says."""
    into.mkdir()
    javac = ["javac", "--release", str(JAVA), "-nowarn", "-cp", class_path, "-d", str(into)]
    run_quietly([*javac, *map(str, files)], COMPILE_WITHIN_S)


def pack(classes: Path, jar: Path) -> None:
    """A jar of these files, with the same bytes every time."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(each for each in classes.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(classes).as_posix(), (1980, 1, 1, 0, 0, 0))
            archive.writestr(entry, path.read_bytes())


def run_quietly(command: list[str], within_s: float) -> str:
    """What a command prints. Raises SetupError with its complaint."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=within_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{Path(command[0]).name}: {error}") from error
    if done.returncode != 0:
        complaint = (done.stderr or done.stdout).strip()[-800:]
        raise SetupError(f"{' '.join(command[:4])} failed: {complaint}")
    return (done.stdout or done.stderr).strip()


if __name__ == "__main__":
    argparse.ArgumentParser("python -m infra.flink.install", description=__doc__).parse_args()
    ends_as_by_ctrl_c()
    try:
        install(Installation(flink_state()))
    except (SetupError, OSError) as error:  # such as a disk that is full
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; make flink goes on with what is missing")
