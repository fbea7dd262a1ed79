"""Airflow on this machine for trying its UI: API server, scheduler, DAG processor, triggerer.

    python -m infra.airflow.local up      # until Ctrl-C, or until `down` is called elsewhere
    python -m infra.airflow.local down

What it remembers is below AIRFLOW_HOME (``.ci/env.sh``), with the runs of ``make demo``. The port
is TIDEBENCH_PORT, 8080 by default.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from infra.airflow.client import Client
from infra.airflow.processes import STOP_S, born, end_session
from infra.airflow.settings import SERVICES, service_settings

USER = "admin"
FIRST_S, POLL_S = 300.0, 1.0
DAGS = ("experiment", "experiment_batch", "sweep", "nightly_reproducibility")


def main(arguments: Sequence[str]) -> int:
    """Start or stop; what to do about it when that cannot be done."""
    home = Path(os.environ["AIRFLOW_HOME"])
    if list(arguments) == ["down"]:
        return down(home / "services.json")
    if list(arguments) != ["up"]:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    port = int(os.environ.get("TIDEBENCH_PORT") or 8080)
    if under_way(home / "services.json"):
        print("Airflow runs already; make airflow-down stops it.")
        return 1
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            print(f"Port {port} is taken; choose another with TIDEBENCH_PORT.")
            return 1
    return up(home, port)


def up(home: Path, port: int) -> int:
    """Start every service, say where the UI is, and stay until one ends or a signal comes."""
    os.umask(0o077)  # logs, database and passwords are nobody else's
    home.chmod(0o700)
    (home / "logs").mkdir(parents=True, exist_ok=True)
    passwords = password_file(home)
    environment = dict(os.environ) | service_settings(port)
    environment |= {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "TIDEBENCH_INPUTS": os.environ.get("TIDEBENCH_INPUTS") or os.environ["TIDEBENCH_DATA_ROOT"],
    }
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    with ExitStack() as stack:
        stack.callback((home / "services.json").unlink, missing_ok=True)
        started = {}
        for name, options in SERVICES.items():
            started[name] = process = start(name, options, environment, home)
            stack.callback(end_session, process.pid, process)
            remember(home / "services.json", started)
        stack.callback(leave)
        client = Client(f"http://127.0.0.1:{port}")
        begin_s = time.monotonic()
        while failed := not_ready(client, passwords):
            if time.monotonic() > begin_s + FIRST_S or ended(started):
                break
            time.sleep(POLL_S)
        if not failed:
            print(f"Airflow is at {client.url} (user {USER}, password in {passwords})")
            print("Ctrl-C stops it, make airflow-down does so from elsewhere.", flush=True)
        while not failed and not ended(started):
            time.sleep(POLL_S)
        print(f"{ended(started) or failed} did not run; see {home / 'logs'}/*.log")
        return 1


def leave() -> None:
    """Begin to stop; a second Ctrl-C must not leave half of it running."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    print("Stopping ...", flush=True)


def start(
    name: str, options: Sequence[str], environment: dict[str, str], home: Path
) -> subprocess.Popen[bytes]:
    """One service in a session of its own, so that all of it can be found again."""
    with (home / "logs" / f"{name}.log").open("w") as sink:
        return subprocess.Popen(
            ["airflow", name, *options],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def ended(started: dict[str, subprocess.Popen[bytes]]) -> str:
    """The first service that has ended, or ""."""
    return next((name for name, one in started.items() if one.poll() is not None), "")


def not_ready(client: Client, passwords: Path) -> str:
    """What is not there yet: a service without a heartbeat, or a DAG; "" when all is well."""
    try:
        client.log_in(USER, json.loads(passwords.read_text())[USER])
        if missing := client.unhealthy():
            return missing[0]
        known = {dag["dag_id"] for dag in client.ask("GET", "/api/v2/dags")["dags"]}
    except OSError:
        return "api-server"
    return next((f"DAG {name}" for name in DAGS if name not in known), "")


def password_file(home: Path) -> Path:
    """The passwords of the UI, made up once; Airflow would print what it makes up into its log."""
    path = home / "passwords.json"
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as sink:
            json.dump({USER: secrets.token_urlsafe(24)}, sink)
    return path


def remember(path: Path, started: dict[str, subprocess.Popen[bytes]]) -> None:
    """Who leads, and when each was born, for a `down` after this process was killed."""
    pids = [os.getpid(), *(one.pid for one in started.values())]
    path.write_text(json.dumps([[pid, born(pid)] for pid in pids]))


def under_way(path: Path) -> list[int]:
    """Those that were remembered and still run: this program first, then the services."""
    try:
        remembered = json.loads(path.read_text())
    except (OSError, ValueError):
        return []
    return [pid for pid, since in remembered if since and born(pid) == since]


def down(path: Path) -> int:
    """Stop what `up` has started, also when that was killed."""
    running = under_way(path)
    leader = json.loads(path.read_text())[0][0] if running else 0
    if leader in running:
        os.kill(leader, signal.SIGTERM)
        end_s = time.monotonic() + STOP_S * (len(SERVICES) + 1)
        while under_way(path)[:1] == [leader] and time.monotonic() < end_s:
            time.sleep(POLL_S / 10)
    for pid in running:
        if pid != leader:
            end_session(pid)
    path.unlink(missing_ok=True)
    print("Airflow is stopped." if running else "Airflow does not run.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
