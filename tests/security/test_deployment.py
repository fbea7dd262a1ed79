"""docker-compose.yaml keeps its promises, whatever is added to it; its passwords are good ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.compose.leaks import CHUNK_BYTES, search, secrets_in
from infra.compose.passwords import values, write

REPOSITORY = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker-compose.yaml").read_text())
SHADOW: dict[str, Any] = yaml.safe_load((REPOSITORY / "infra/service/compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"] | SHADOW["services"]
NO_PASSWORDS = {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", "AIRFLOW__SECRETS__BACKEND"}
"""Called as one, they are the path of a file and the name of a class."""


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_guarded(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"]), "root"
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "pid", "ipc", "network_mode", "devices"} & service.keys()
    assert service["mem_limit"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert "test" in service["healthcheck"] or name == "init"
    assert "/var/run/docker.sock" not in json.dumps(service.get("volumes", []))


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_is_pinned(name: str) -> None:
    image = SERVICES[name]["image"].replace("${TIDEBENCH_IMAGE:-", "").rstrip("}")
    assert re.search(r":\d+\.\d+\.?\d*[\w.-]*$", image), image


def may_be_passwords(environment: dict[str, str]) -> list[str]:
    """Variables that are called as one and name no file with a secret."""
    return [
        variable
        for variable, value in environment.items()
        if re.search("PASS|SECRET|KEY|CONN|BROKER_URL|RESULT_BACKEND", variable)
        and variable not in NO_PASSWORDS
        and "/run/secrets/" not in value
    ]


@pytest.mark.parametrize("name", SERVICES)
def test_no_variable_of_a_service_is_a_password(name: str) -> None:
    """Programs read secrets from files, so that no environment has one."""
    assert may_be_passwords(SERVICES[name].get("environment", {})) == []


def test_a_password_in_a_variable_is_found() -> None:
    backend = "AIRFLOW__CELERY__RESULT_BACKEND"
    bad = {backend: "db+postgresql://airflow:word@database/airflow", "POSTGRES_PASSWORD": "word"}
    assert may_be_passwords(bad) == list(bad)
    assert may_be_passwords({f"{backend}_CMD": "cat /run/secrets/celery_results"}) == []


@pytest.mark.parametrize(
    ("users", "told"),
    [("admin:admin", "started\n"), ("admin:admin,bob:viewer", "names bob; write a password")],
)
def test_no_user_gets_a_password_that_airflow_prints(tmp_path: Path, users: str, told: str) -> None:
    """Airflow makes one up where the file has none, anew at each start."""
    (tmp_path / "secret").write_text(values()["AIRFLOW_PASSWORDS"])
    command = SERVICES["api-server"]["command"][-1].replace("$$", "$")
    command = command.replace("/run/secrets/airflow_passwords", "secret")
    command = command.replace("exec airflow api-server", "echo started")
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": users},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told in done.stdout + done.stderr
    assert done.returncode == ("started" not in done.stdout)


def test_every_secret_is_made_up_and_every_one_made_up_is_used() -> None:
    asked = {secret["environment"] for secret in COMPOSE["secrets"].values()}
    assert asked == values().keys()
    needed = re.findall(r"\$\{NOTHING:\+\$\{(\w+):\?", " ".join(COMPOSE["x-needed"]))
    assert set(needed) == asked, "Compose would start without it"


def test_no_two_installations_share_a_password() -> None:
    one, other = values(), values()
    assert not {name for name in one if one[name] == other[name]}


def test_the_passwords_are_for_their_owner_only_and_are_never_replaced(tmp_path: Path) -> None:
    script, path = REPOSITORY / "infra" / "compose" / "passwords.py", tmp_path / ".env"
    command = [sys.executable, str(script), str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_text()
    assert not any(word.decode() in said.stdout for word in secrets_in(before.encode()))
    path.chmod(0o644)
    subprocess.run(command, capture_output=True, check=True)
    assert path.read_text() == before
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_in_the_place_of_the_passwords_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".env").symlink_to(tmp_path / "elsewhere")
    assert not write(tmp_path / ".env", values())
    assert not (tmp_path / "elsewhere").exists()


def test_neither_git_nor_the_build_sees_the_passwords() -> None:
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert next(line for line in ignored if not line.startswith("#")) == "*"
    assert "/.env" in (REPOSITORY / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize("at_byte", [0, 7, CHUNK_BYTES - 40, CHUNK_BYTES - 1, CHUNK_BYTES + 3])
def test_the_search_finds_each_secret_once_wherever_it_is(at_byte: int, tmp_path: Path) -> None:
    path = tmp_path / "out"
    env = "\n".join(f"{name}='{value}'" for name, value in values().items()).encode()
    wanted = secrets_in(env)
    for secret, name in wanted.items():
        path.write_bytes(b"." * at_byte + secret + b"." * CHUNK_BYTES)
        size_bytes, found = search(("cat", str(path)), wanted)
        assert found == {name: 1}
        assert size_bytes == path.stat().st_size
