"""Ports that the JobManager of a run listens on."""

from __future__ import annotations

import socket

import pytest

from include.model.errors import TestbedNotReady
from include.testbeds.flink import cluster
from include.testbeds.flink.cluster import LISTENS_ON, Ports


def test_a_process_that_asks_for_any_port_gets_none_of_them() -> None:
    with socket.socket() as anyone:
        anyone.bind(("127.0.0.1", 0))
        assert anyone.getsockname()[1] > LISTENS_ON[-1]
    for _ in range(20):
        ports = Ports.free()
        assert ports.rest != ports.rpc
        assert {ports.rest, ports.rpc} <= {*LISTENS_ON}


def test_a_port_that_somebody_has_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Ports.free()
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", taken.rest))
        other.bind(("127.0.0.1", taken.rpc))
        left = Ports.free()
        some = (taken.rest, taken.rpc, left.rest, left.rpc)
        monkeypatch.setattr(cluster, "LISTENS_ON", some)
        free = Ports.free()
        assert {free.rest, free.rpc} == {left.rest, left.rpc}
        monkeypatch.setattr(cluster, "LISTENS_ON", some[:3])
        with pytest.raises(TestbedNotReady, match="no two ports"):
            Ports.free()
