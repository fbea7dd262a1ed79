"""The page "Experiments" of an Airflow with few services, read as a browser reads it."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.e2e.airflow_services import Airflow, airflow_services

EVIL = "<script>alert(1)</script>"
Answer = tuple[int, dict[str, str], str]
"""Status, headers in small letters, and content."""


def page_services(
    *dags: str, settings: Mapping[str, str] | None = None, prefix: str = ""
) -> Callable[..., Any]:
    """The fixture ``airflow`` of a module: an API server over the data of its fixture ``root``.

    With ``dags``, which are unpaused, there is a DAG processor as well.
    """

    @pytest.fixture(scope="module", name="airflow")
    def services(
        airflow_environment: dict[str, str], root: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Airflow]:
        environment = airflow_environment | {"TIDEBENCH_DATA_ROOT": str(root)}
        logs = tmp_path_factory.mktemp("services")
        parts = ["api-server", *(["dag-processor"] if dags else [])]
        with airflow_services(environment, logs, dags, parts, settings, prefix) as airflow:
            yield airflow

    return services


def get(
    airflow: Airflow, path: str, token: str | None = None, method: str = "GET", **headers: str
) -> Answer:
    """The path as it is, below the prefix of the services: nothing on the way puts it right.
    Redirections are not followed."""
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return _answer(airflow, method, path, None, headers)


def send(
    airflow: Airflow, path: str, fields: Mapping[str, object], token: str | None, **headers: str
) -> Answer:
    """A form as a browser sends it."""
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    if token is not None:
        headers["Cookie"] = f"_token={token}"
    return _answer(airflow, "POST", path, urlencode(fields, doseq=True), headers)


def read_page(airflow: Airflow, path: str) -> str:
    """The content of a page that has to be there, for a user who is logged in."""
    status, headers, content = get(airflow, path, airflow.token)
    assert status == 200, (path, status, content)
    assert "script-src 'self'" in headers["content-security-policy"] or (
        "default-src 'none'" in headers["content-security-policy"]
    )
    return content


def _answer(
    airflow: Airflow, method: str, path: str, body: str | None, headers: Mapping[str, str]
) -> Answer:
    address = urlsplit(airflow.url)
    connection = http.client.HTTPConnection(address.netloc, timeout=30)
    connection.request(method, address.path + path, body, dict(headers))
    answer = connection.getresponse()
    content = answer.read().decode(errors="replace")
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content
