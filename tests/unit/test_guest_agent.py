"""What the guests of `infra/openstack` make of our user data, and of what they cannot do."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from include.testbeds.live.hosts.openstack.servers import user_data
from infra.openstack.guest import agent
from infra.openstack.lib.tb_openstack import clock

INSTALLED = "Package: docker.io\nStatus: install ok installed\n\nPackage: old\nStatus: deinstall\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The disk of a guest with Docker's engine."""
    status = tmp_path / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text(INSTALLED)
    return tmp_path


class Shell:
    """Notes commands instead of running them."""

    def __init__(self, code: int = 0) -> None:
        self.ran: list[Any] = []
        self._code = code

    def __call__(self, command: Any, **_: Any) -> Any:
        self.ran.append(command)
        return SimpleNamespace(returncode=self._code)


@pytest.mark.parametrize("installed", [True, False])
def test_our_user_data_brings_up_an_engine_that_trusts_the_registry(root, installed):
    if not installed:
        (root / "var/lib/dpkg/status").unlink()
    shell = Shell()
    agent.execute(agent.parsed(user_data("10.0.0.1:5000", 2375)), root, shell)
    daemon = json.loads((root / "etc/docker/daemon.json").read_text())
    assert daemon["insecure-registries"] == ["10.0.0.1:5000"]
    assert daemon["hosts"] == ["tcp://0.0.0.0:2375", "unix:///var/run/docker.sock"]
    unit = (root / "etc/systemd/system/docker.service.d/tidebench.conf").read_text()
    assert unit.splitlines()[:2] == ["[Service]", "ExecStart="]
    assert unit.splitlines()[2].startswith("ExecStart=/usr/bin/env dockerd")
    assert "-H" not in unit
    assert shell.ran[-1] == "systemctl restart docker.service"
    installs = [command[-1] for command in shell.ran if "install" in command]
    assert installs == ([] if installed else ["docker.io"])


def test_a_command_that_fails_is_told_and_the_next_one_runs(root, capsys):
    shell = Shell(code=3)
    agent.execute({"runcmd": ["first", ["second", "word"]]}, root, shell)
    assert shell.ran == ["first", ["second", "word"]]
    assert "first ended with 3" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["#!/bin/sh\ntrue\n", "#cloud-config\nusers: []\n"])
def test_what_it_cannot_do_is_an_error(text):
    with pytest.raises(SystemExit, match="tidebench: "):
        agent.parsed(text)


def test_the_control_planes_clock_answers_as_sntp_does():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threading.Thread(target=clock.main, args=("127.0.0.1", str(port)), daemon=True).start()
    request = bytearray(b"\x23" + bytes(47))
    request[40:48] = b"my stamp"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(0.2)
        for _ in range(20):
            client.sendto(request, ("127.0.0.1", port))
            try:
                answer = client.recv(48)
                break
            except OSError:
                time.sleep(0.05)
    assert answer[0] == 0b00_100_100, "no leap second, version 4, server"
    assert answer[24:32] == b"my stamp"
    whole, fraction = struct.unpack("!II", answer[40:48])
    assert whole - 2_208_988_800 + fraction / 2**32 == pytest.approx(time.time(), abs=0.5)
