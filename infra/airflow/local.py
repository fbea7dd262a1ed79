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
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from http.client import HTTPException
from pathlib import Path
from typing import NoReturn

from infra.airflow.client import COMPONENTS, Client, Refused
from infra.airflow.processes import STOP_S, born, end_session
from infra.airflow.settings import SERVICES, service_settings
from infra.airflow.supervision import CannotStay, Service, Supervisor

USER = "admin"
ENVIRONMENT = ("AIRFLOW_HOME", "TIDEBENCH_DATA_ROOT")
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, `make airflow-down`, and a terminal that is closed."""
POLL_S, TELL_S, SLOW_S = 1.0, 10.0, 600.0
DAGS = {path.stem for path in Path(__file__).parents[2].glob("dags/*.py")}
SCHEDULED = ("nightly_reproducibility", "reap", "shadow_report")
"""What TIDEBENCH_SCHEDULES may name."""
PARTS = {
    "API server": "the API server answers",
    "scheduler": "the scheduler runs",
    "dag_processor": "the DAG processor runs",
    "triggerer": "the triggerer runs",
    "DAGs": f"{len(DAGS)} DAGs are there",
}


def main(arguments: Sequence[str]) -> int:
    """Start or stop; on failure print what to do."""
    if unset := [name for name in ENVIRONMENT if not os.environ.get(name)]:
        verb = "is" if len(unset) == 1 else "are"
        print(f"{' and '.join(unset)} {verb} not set: type make airflow, or source .ci/env.sh.")
        return 2
    home = Path(os.environ["AIRFLOW_HOME"])
    if list(arguments) == ["down"]:
        return down(home / "services.json")
    if list(arguments) != ["up"]:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    text = os.environ.get("TIDEBENCH_PORT") or "8080"
    if wrong := wrong_settings(text, os.environ.get("TIDEBENCH_SCHEDULES", "")):
        print("\n".join(wrong))
        return 2
    port = int(text)
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


def wrong_settings(port: str, schedules: str) -> list[str]:
    """A DAG file with an unknown schedule cannot be read, and Airflow would be waited for."""
    wrong = []
    if not (port.isdecimal() and 0 < int(port) < 65536):
        wrong.append(
            f"TIDEBENCH_PORT is {port!r}, which is no port: give a number from 1 to 65535."
        )
    if unknown := sorted(set(schedules.replace(",", " ").split()) - set(SCHEDULED)):
        known = ", ".join(SCHEDULED)
        wrong.append(f"TIDEBENCH_SCHEDULES names {', '.join(unknown)}; it may name {known}.")
    return wrong


def up(home: Path, port: int) -> int:
    """Start every service, print the UI's address, and keep all running until a signal."""
    os.umask(0o077)  # logs, database and passwords are private
    (home / "logs").mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    passwords = password_file(home)
    environment = dict(os.environ) | service_settings(port)
    environment |= {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "TIDEBENCH_INPUTS": os.environ.get("TIDEBENCH_INPUTS") or os.environ["TIDEBENCH_DATA_ROOT"],
    }
    for number in ENDS:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, lambda *_: sys.exit(0))
    remembered = home / "services.json"
    services = [service_of(name, home) for name in SERVICES]
    supervisor = Supervisor(services, environment, say, lambda pids: remember(remembered, pids))
    with ExitStack() as stack:
        stack.callback(remembered.unlink, missing_ok=True)
        stack.callback(supervisor.stop)
        stack.callback(leave)
        try:
            keep_up(supervisor, Client(f"http://127.0.0.1:{port}"), passwords)
        except CannotStay as why:
            say(str(why))
    return 1


def service_of(name: str, home: Path) -> Service:
    """A service with a new log."""
    log = home / "logs" / f"{name}.log"
    log.write_text("")
    return Service(name, ["airflow", name, *SERVICES[name]], log)


def keep_up(supervisor: Supervisor, client: Client, passwords: Path) -> NoReturn:
    """Supervise the services; report as they start, and then where to log in."""
    print("Starting Airflow; this takes a minute or two ...", flush=True)
    begin_s, told_s, missing = time.monotonic(), 0.0, list(PARTS)
    slow = False
    while missing:
        supervisor.tend()
        there, now_s = running(client, passwords), time.monotonic() - begin_s
        for part in [part_name for part_name in missing if part_name in there]:
            missing.remove(part)
            print(f"{now_s:5.0f} s  {PARTS[part]}", flush=True)
        if missing and now_s > told_s + TELL_S:
            told_s = now_s
            print(f"{now_s:5.0f} s  waiting for: {', '.join(missing)}", flush=True)
        if missing and now_s > SLOW_S and not slow:
            slow = True
            say(f"it is slow; see {passwords.parent / 'logs'}/*.log, or end it with Ctrl-C")
        time.sleep(POLL_S)
    print(welcome(client.url, passwords, to_terminal=sys.stdout.isatty()), flush=True)
    while True:
        supervisor.tend()
        time.sleep(POLL_S)


def running(client: Client, passwords: Path) -> set[str]:
    """Services with a heartbeat, and "DAGs" once all are parsed."""
    try:
        client.log_in(USER, json.loads(passwords.read_text())[USER])
        there = {"API server", *COMPONENTS} - set(client.unhealthy())
        dags = {dag["dag_id"] for dag in client.ask("GET", "/api/v2/dags")["dags"]}
    except (OSError, Refused, HTTPException, ValueError, KeyError):
        return set()  # still starting: no password file, or an incomplete answer
    return there | ({"DAGs"} if dags >= DAGS else set())


def welcome(url: str, passwords: Path, *, to_terminal: bool) -> str:
    """How to log in, with the password on a terminal, else with the path of its file."""
    password = json.loads(passwords.read_text())[USER]
    return f"""
Airflow is up.

    open       {url}
    log in as  {USER}
    password   {password if to_terminal else f"in {passwords}"}

Ctrl-C stops it, make airflow-down does so from elsewhere. What ends meanwhile is started again."""


def say(what: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {what}", flush=True)


def leave() -> None:
    """Begin to stop, ignoring a second Ctrl-C, which would leave services running."""
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):  # the terminal may be gone
        print("Stopping ...", flush=True)


def password_file(home: Path) -> Path:
    """File with the UI's password, created once; Airflow would print its own into the log."""
    path = home / "passwords.json"
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as sink:
            json.dump({USER: secrets.token_urlsafe(24)}, sink)
    return path


def remember(path: Path, services: Sequence[int]) -> None:
    """Write pids and start times of this process and its services, for `down`.

    All at once: half of them would be read as none, and the services be left running.
    """
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps([[pid, born(pid)] for pid in (os.getpid(), *services)]))
    draft.replace(path)


def under_way(path: Path) -> list[int]:
    """Pids of :func:`remember` that still run: this program first, then the services."""
    try:
        remembered = json.loads(path.read_text())
    except (OSError, ValueError):
        return []
    return [pid for pid, since in remembered if since and born(pid) == since]


def down(path: Path) -> int:
    """Stop everything that `up` has started, even if that was killed."""
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
