"""The command `metrics` as a process, scraped by a real Prometheus while a run goes on."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from include.experiment.spec import Choice
from include.runs import stages
from include.runs.monitoring.collector import METRICS, OF_ALL
from tests.builders import begun, run_spec
from tests.command_line import refused
from tests.conftest import REPOSITORY
from tests.live.world import wait_until
from tests.prometheus_server import prometheus, query

SPEC = run_spec(experiment="watched", btu_min=5, seed=3, advisors=(Choice("keda", {}),))
DEADLINE_S = 120.0
DASHBOARD = REPOSITORY / "infra" / "grafana" / "runs.json"


@contextmanager
def serving(root: Path, *more: str) -> Iterator[str]:
    """The address that the command says."""
    command = [sys.executable, "-m", "include.cli", "metrics", "--root", str(root), "--port", "0"]
    process = subprocess.Popen([*command, *more], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        said = process.stdout.readline()
        found = re.search(r"http://((?:127\.0\.0\.1|\[::1\]):\d+)/metrics", said)
        assert found, said
        yield found[1]
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of one over a run that is under way."""
    root = tmp_path_factory.mktemp("data")
    begun(SPEC, root, 2)
    with serving(root) as address:
        yield address


def test_who_asks_for_openmetrics_gets_it(address: str) -> None:
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    answer = httpx.get(f"http://{address}/metrics", headers=accept, timeout=60)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
    assert "tidebench_recommended_instances{" in answer.text
    assert "python_info" not in answer.text  # what is ours, and nothing of the process


def test_it_listens_on_this_machine_only(address: str) -> None:
    with socket.socket() as other:
        port = int(address.rpartition(":")[2])
        other.settimeout(5)
        with pytest.raises(OSError, match="refused"):
            other.connect(("127.0.0.2", port))  # what listens everywhere listens there, too


def test_an_address_of_ipv6_is_said_as_it_can_be_opened(data_root: Path) -> None:
    with serving(data_root, "--host", "::1") as address:
        assert httpx.get(f"http://{address}/metrics", timeout=60).status_code == 200


def test_a_port_that_is_taken_is_said(data_root: Path, address: str) -> None:
    port = address.rpartition(":")[2]
    said = refused("metrics", "--root", data_root, "--port", port)
    assert f"127.0.0.1:{port}" in said
    assert "choose another --port" in said


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--root", "/nowhere/at/all"], "there is no folder /nowhere/at/all"),
        (["--host", "no-such-host.invalid"], "give an address of this machine as --host"),
        (["--host", "192.0.2.1"], "give an address of this machine as --host"),
    ],
)
def test_what_keeps_it_from_serving_is_said(data_root: Path, more: list[str], why: str) -> None:
    said = refused("metrics", "--root", data_root, "--port", "0", *more)
    assert why in said
    assert "choose another --port" not in said


@pytest.mark.live
def test_a_real_prometheus_follows_a_run_and_answers_every_query_of_the_dashboard(
    data_root: Path, tmp_path: Path
) -> None:
    begun(SPEC, data_root)
    stages.control_windows(SPEC, data_root, 0, 0)
    with serving(data_root) as target, prometheus(tmp_path, target) as address:
        committed = "tidebench_windows_committed"
        wait_until(lambda: values(query(address, committed)) == [1.0], committed, DEADLINE_S)
        first = values(query(address, "tidebench_samples_total"))
        stages.control_windows(SPEC, data_root, 1, SPEC.windows - 1)
        wait_until(lambda: values(query(address, committed)) == [4.0], committed, DEADLINE_S)
        assert values(query(address, "tidebench_samples_total")) > first
        assert values(query(address, "tidebench_run_complete")) == [1.0]

        actual = query(address, "tidebench_instances")
        recommended = query(address, "tidebench_recommended_instances")
        operators = {one["metric"]["operator"] for one in actual}
        assert operators == {one["metric"]["operator"] for one in recommended}
        assert len(operators) == 9
        for name in [*METRICS, *OF_ALL]:
            assert query(address, f"tidebench_{name}"), name
        for expression in expressions():
            asked = expression.replace("$experiment", "watched").replace("$run", ".*")
            assert query(address, asked.replace("$__rate_interval", "1m")), expression


def expressions() -> list[str]:
    """Every query of the dashboard's panels."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def values(found: list[dict[str, Any]]) -> list[float]:
    return [float(one["value"][1]) for one in found]
