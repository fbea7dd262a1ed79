"""Health checks of docker-compose.yaml: exits with 0 if a service is healthy.

- ``health.py url URL``: it answers
- ``health.py airflow NAME``: Airflow's API server saw its heartbeat
- ``health.py celery FILE``: the Celery worker of this container answers on the broker in the file
"""

from __future__ import annotations

import json
import socket
import sys
import urllib.request
from pathlib import Path

API = "http://api-server:8080/api/v2/monitor/health"
ANSWER_S = 8


def fetched(url: str) -> bytes:
    """Body of the answer, without proxies, which do not reach other containers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=ANSWER_S) as answer:
        body: bytes = answer.read()
        return body


def airflow_sees(name: str) -> bool:
    """Whether a component of Airflow has a recent heartbeat."""
    return bool(json.loads(fetched(API))[name]["status"] == "healthy")


def celery_answers(broker: Path) -> bool:
    """Whether this container's Celery worker answers, without loading Airflow."""
    from celery import Celery

    name = f"celery@{socket.gethostname()}"
    control = Celery(broker=broker.read_text().strip()).control
    return bool(control.inspect(destination=[name], timeout=ANSWER_S, limit=1).ping())


if __name__ == "__main__":
    kind, what = sys.argv[1:]
    checks = {
        "url": lambda: bool(fetched(what)),
        "airflow": lambda: airflow_sees(what),
        "celery": lambda: celery_answers(Path(what)),
    }
    try:
        sys.exit(0 if checks[kind]() else 1)
    except (OSError, KeyError, ValueError) as error:
        sys.exit(f"{kind} {what}: {error}")
