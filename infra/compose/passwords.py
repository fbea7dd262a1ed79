"""Make up every password of docker-compose.yaml and write them to .env, readable by its owner only.

    python3 infra/compose/passwords.py [FILE]

A file that is there is left alone: PostgreSQL keeps the password that its data was made with.
Needs Python's standard library only, on the machine that runs docker compose.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BYTES = 32
"""Random bytes of each password; hexadecimal, so that it needs no quoting anywhere."""


def values() -> dict[str, str]:
    """New values by variable of docker-compose.yaml."""
    postgres, results, redis, rabbitmq = (secrets.token_hex(BYTES) for _ in range(4))
    connections = {
        "spark_default": {"conn_type": "spark", "host": "spark://spark-master", "port": 7077},
        "tidebench_results": {
            "conn_type": "postgres",
            "host": "postgres",
            "port": 5432,
            "schema": "tidebench",
            "login": "tidebench",
            "password": results,
        },
    }
    database = f"airflow:{postgres}@postgres:5432/airflow"
    return {
        "AIRFLOW_PASSWORDS": json.dumps({"admin": secrets.token_urlsafe(24)}),
        "AIRFLOW_FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(BYTES)).decode(),
        "AIRFLOW_JWT_KEY": secrets.token_hex(BYTES),
        "AIRFLOW_API_KEY": secrets.token_hex(BYTES),
        "AIRFLOW_DATABASE": f"postgresql+psycopg://{database}",
        "AIRFLOW_CONNECTIONS": json.dumps(connections),
        "CELERY_BROKER": f"redis://:{redis}@redis:6379/0",
        "CELERY_RESULTS": f"db+postgresql+psycopg://{database}",
        "POSTGRES_PASSWORD": postgres,
        "RESULTS_PASSWORD": results,
        "REDIS_CONF": f"requirepass {redis}",
        "RABBITMQ_CONF": f"default_pass = {rabbitmq}",
    }


def write(path: Path, made: Mapping[str, str]) -> bool:
    """Write a file that only its owner can read. Returns False if it exists already."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w", encoding="utf-8") as sink:
        sink.writelines(f"{name}='{value}'\n" for name, value in made.items())
    return True


def main() -> int:
    """Write the passwords and print the path, without any password."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY / ".env"
    if write(path, values()):
        print(f"Passwords are in {path}, which only you can read. The user of the UI is admin.")
        return 0
    print(f"{path} is there already and stays as it is.")
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
        print("Others could read it; now only you can.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
