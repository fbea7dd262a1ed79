"""What is asked of Redis, against a server that answers all but one command."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import redis

from include.testbeds.live.operators import ledger
from include.testbeds.live.services import Services
from include.testbeds.live.shared_state import SharedState


@contextmanager
def deaf_redis(*, closes: bool) -> Iterator[tuple[str, list[bytes]]]:
    """Its URL, and the INCRs it got: it closes the connection on each, or says nothing."""
    got: list[bytes] = []

    def serve(client: socket.socket) -> None:
        with client:
            while asked := client.recv(65536):
                if b"INCR" not in asked:
                    client.sendall(b"+OK\r\n" * asked.count(b"*"))
                    continue
                got.append(asked)
                if closes:
                    return

    def accept() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0?protocol=2", got
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(("closes", "times"), [(False, 1), (True, 2)])
def test_what_may_have_been_done_is_not_asked_for_again(monkeypatch, closes, times):
    """The ledger would count items as repeated, and busy time twice."""
    monkeypatch.setattr(ledger, "TIMEOUT_S", 0.2)
    with deaf_redis(closes=closes) as (url, got), ledger.redis_client(url) as client:
        with pytest.raises(redis.RedisError):
            client.incr("a-run:busy")
        assert len(got) == times


def test_a_run_may_not_delete_what_others_have():
    """Commands without a key are not held by the prefix of a run."""
    asked = []
    values = {"ADDRESS": "h", "REDIS_PORT": "1", "REDIS_ADMIN": "a", "REDIS_PASSWORD": "p"}
    services = Services({**values, "MASTER_SECRET_FILE": "/dev/null"})
    shared = SharedState(services, "a-run")
    shared.redis = SimpleNamespace(execute_command=lambda *command: asked.append(command))
    shared.grant()
    assert {"-@admin", "-@dangerous"} <= set(asked[0])
