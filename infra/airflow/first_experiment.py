"""Run one experiment through the REST API of an Airflow and wait for its published tables.

    usage: python3 -m infra.airflow.first_experiment URL FILE [NAME=VALUE...]

FILE has the password of the user admin: ``passwords.json`` of ``make airflow``, or the ``.env`` of
docker-compose.yaml. The others are params of the DAG. Standard library only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path

from infra.airflow.client import Client, Refused

USER, DAG_ID = "admin", "experiment"
FIRST = {"experiment": "first", "duration_min": 30}
UP_S, RUN_S, POLL_S = 600.0, 3600.0, 2.0


def main(arguments: Sequence[str]) -> int:
    """Wait for Airflow, start the experiment, report. Returns 0 if its tables are published."""
    if len(arguments) < 2:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    url, file, *settings = arguments
    conf = FIRST | dict(map(parsed, settings))
    begin_s = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - begin_s:5.0f} s  {what}", flush=True)

    client = Client(url)
    wait_until_up(client, password_in(Path(file)))
    client.unpause(DAG_ID)
    run = client.trigger(DAG_ID, conf)
    say(f"triggered {DAG_ID} as {run}")
    state = client.finish(DAG_ID, run, RUN_S, say)
    say(f"the run is a {state}")
    return 0 if state == "success" else 1


def wait_until_up(client: Client, password: str) -> None:
    """Wait until every component has a heartbeat and the DAG exists."""
    end_s = time.monotonic() + UP_S
    while True:
        try:
            client.log_in(USER, password)
            if not client.unhealthy():
                client.ask("GET", f"/api/v2/dags/{DAG_ID}")
                return
        except (OSError, Refused, HTTPException):
            if time.monotonic() > end_s:
                raise
        if time.monotonic() > end_s:
            raise TimeoutError(f"{', '.join(client.unhealthy())} is not up after {UP_S:g} s")
        time.sleep(POLL_S)


def password_in(file: Path) -> str:
    """Password of the user admin."""
    text = file.read_text()
    if not text.startswith("{"):
        lines = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        text = lines["AIRFLOW_PASSWORDS"].strip("'")
    password: str = json.loads(text)[USER]
    return password


def parsed(argument: str) -> tuple[str, object]:
    """A param and its value, as JSON if possible, else as text."""
    name, _, value = argument.partition("=")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, Refused) as error:
        sys.exit(str(error))
