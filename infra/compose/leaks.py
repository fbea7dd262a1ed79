"""Searches the output and files of docker-compose.yaml's services for the passwords in .env.

    python3 infra/compose/leaks.py [FILE]

Searches logs, settings and command lines of services, every byte of the image, files of
experiments, logs of tasks, and both databases with XComs and rendered templates. Prints how often
each variable occurs, never its value. Exit code 1 if any occurs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

CHUNK_BYTES = 1 << 20
SECRET = re.compile(rb"[A-Za-z0-9_=-]{32,}")
COMPOSE = ("docker", "compose")
IN_WORKER = (*COMPOSE, "exec", "-T", "worker", "tar", "-cC")
DUMP = (*COMPOSE, "exec", "-T", "postgres", "pg_dump", "-U", "airflow")
PLACES = {
    "what services logged": (*COMPOSE, "logs", "--no-color"),
    "command lines": (*COMPOSE, "top"),
    "settings of containers": ("sh", "-c", "docker compose ps -aq | xargs docker inspect"),
    "every byte of the image": ("sh", "-c", "docker compose images -q init | xargs docker save"),
    "files of experiments": (*IN_WORKER, "/opt/tidebench/var", "."),
    "logs of tasks": (*IN_WORKER, "/opt/airflow/logs", "."),
    "Airflow's database": (*DUMP, "airflow"),
    "results database": (*DUMP, "tidebench"),
}


def main() -> int:
    """Search every place and print its size, to show that something was searched."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / ".env"
    wanted = secrets_in(path.read_bytes())
    leaks = 0
    for place, command in PLACES.items():
        size_bytes, counts = search(command, wanted)
        findings = ", ".join(f"{name} {count} times" for name, count in sorted(counts.items()))
        print(f"{place:26} {size_bytes / 1e6:9.2f} MB  {findings or 'nothing'}")
        leaks += counts.total()
    return 1 if leaks else 0


def secrets_in(text: bytes) -> Mapping[bytes, str]:
    """Variables by the secret words in their values; URLs and JSON contain several words."""
    lines = dict(line.split(b"=", 1) for line in text.splitlines() if b"=" in line)
    return {word: name.decode() for name, value in lines.items() for word in SECRET.findall(value)}


def search(command: tuple[str, ...], wanted: Mapping[bytes, str]) -> tuple[int, Counter[str]]:
    """Size of a command's output, and matches in it. Raises if it fails or prints nothing."""
    counts, size_bytes = Counter[str](), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        for before, chunk in chunks(process, max(map(len, wanted))):
            size_bytes += len(chunk)
            for secret, name in wanted.items():
                counts[name] += (before + chunk).count(secret) - before.count(secret)
    if process.returncode or not size_bytes:
        raise SystemExit(f"{' '.join(command)} failed; are the services up?")
    return size_bytes, +counts


def chunks(process: subprocess.Popen[bytes], overlap_bytes: int) -> Iterator[tuple[bytes, bytes]]:
    """Output in chunks, each with the end of the previous one."""
    assert process.stdout is not None
    before = b""
    while chunk := process.stdout.read(CHUNK_BYTES):
        yield before, chunk
        before = (before + chunk)[-overlap_bytes:]


if __name__ == "__main__":
    sys.exit(main())
