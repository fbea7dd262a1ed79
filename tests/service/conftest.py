"""A small Flink in virtual time, and one that answers over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from include.service.rest import FlinkRest
from tests.service.acting_world import Acting
from tests.service.fake_flink import Connect, FakeFlink, a_client, a_flink
from tests.service.flink_world import World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def flink(world: World) -> Iterator[FakeFlink]:
    with a_flink(world) as fake:
        yield fake


@pytest.fixture
def connect(flink: FakeFlink) -> Iterator[Connect]:
    """Makes clients, and closes them."""
    clients = []

    def connected(timeout_s: float = 5.0) -> FlinkRest:
        clients.append(a_client(flink, timeout_s))
        return clients[-1]

    yield connected
    for client in clients:
        client.close()


@pytest.fixture
def acting(flink: FakeFlink, connect: Connect, tmp_path: Path) -> Callable[..., Acting]:
    """Makes services that act on it."""
    return partial(Acting, flink, connect, tmp_path)
