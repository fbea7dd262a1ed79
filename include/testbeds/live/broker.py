"""A run's vhost on the broker: its queues, their lengths, and its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx
import pika
import pika.exceptions

from include.model.errors import TestbedError, TestbedNotReady, command
from include.testbeds.live.operators import wire
from include.testbeds.live.operators.settings import MONITOR
from include.testbeds.live.services import Services

TIMEOUT_S = 10.0
MOST_SAMPLES = 50_000
TROUBLE = (pika.exceptions.AMQPError, OSError)
"""Exceptions in a client while the broker is down or starting."""
EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}


class Broker:
    """The vhost of a run. Every call opens a connection, because the broker may restart."""

    def __init__(self, services: Services, run: str) -> None:
        self._services = services
        self._run = run

    def declare(self, operators: Sequence[str]) -> None:
        """Vhost, user, exchange and one durable queue per operator; safe to repeat."""
        vhost = quote(self._run, safe="")
        password = self._services.password("amqp", self._run)
        api(self._services, "PUT", f"vhosts/{vhost}")
        api(self._services, "PUT", f"users/{vhost}", {"password": password, "tags": ""})
        api(self._services, "PUT", f"permissions/{vhost}/{vhost}", EVERYTHING)
        with self.channel() as channel:
            channel.exchange_declare(wire.EXCHANGE, "direct", durable=True)
            for queue in (*operators, MONITOR):
                channel.queue_declare(queue, durable=True)
                channel.queue_bind(queue, wire.EXCHANGE, queue)

    def remove(self) -> None:
        """Delete vhost, which holds the queues, and user."""
        vhost = quote(self._run, safe="")
        api(self._services, "DELETE", f"vhosts/{vhost}")
        api(self._services, "DELETE", f"users/{vhost}")

    @contextmanager
    def channel(self) -> Iterator[Any]:
        """A channel of the run's user. Raises one of TROUBLE."""
        parameters = pika.URLParameters(self._services.amqp_url(self._run))
        parameters.socket_timeout = parameters.stack_timeout = TIMEOUT_S
        parameters.blocked_connection_timeout = TIMEOUT_S
        connection = pika.BlockingConnection(parameters)
        try:
            yield connection.channel()
        finally:
            if connection.is_open:
                connection.close()

    def depths(self, channel: Any, operators: Sequence[str]) -> dict[str, int]:
        """Waiting items by queue, without items that instances have taken."""
        return {
            name: int(channel.queue_declare(name, passive=True).method.message_count)
            for name in operators
        }

    def take_samples(self, channel: Any, keep: Callable[[list[wire.Sample]], None]) -> None:
        """Pass the waiting samples to ``keep``; acknowledge them when it has returned."""
        samples: list[wire.Sample] = []
        last = 0
        while len(samples) < MOST_SAMPLES:
            method, _, body = channel.basic_get(MONITOR)
            if method is None:
                break
            last = method.delivery_tag
            samples.append(wire.Sample.from_json(body))
        if last:
            keep(samples)
            channel.basic_ack(last, multiple=True)


def vhosts(services: Services) -> list[str]:
    """Names of the vhosts of all runs."""
    return [vhost["name"] for vhost in _listed(services, "vhosts") if vhost.get("name", "/") != "/"]


def why_blocked(services: Services) -> str:
    """Why the broker blocks all publishers, and what to do; "" if it does not.

    What it tells is some seconds old.
    """
    names = "disk_free_alarm,disk_free_limit,mem_alarm,mem_limit"
    for node in _listed(services, f"nodes?columns={names}"):
        if node.get("disk_free_alarm"):
            cause = f"its disk has less than {node['disk_free_limit'] / 1e6:.0f} MB free: free some"
        elif node.get("mem_alarm"):
            cause = (
                f"it uses more than {node['mem_limit'] / 1e6:.0f} MB of memory: remove the "
                f"queues of dead runs with `{command('reap', '--remove')}`"
            )
        else:
            continue
        return f"RabbitMQ blocks publishers, because {cause}, then run again"
    return ""


def _listed(services: Services, path: str) -> list[dict[str, Any]]:
    """Raises TestbedNotReady while its management knows nothing: of a node that has just started it
    tells a list of nothing."""
    answer = api(services, "GET", path)
    if not isinstance(answer, list) or not all(isinstance(each, dict) for each in answer):
        raise TestbedNotReady(f"the broker's management does not know its {path.split('?')[0]} yet")
    return answer


def api(services: Services, method: str, path: str, body: Any = None) -> Any:
    """Call the management interface. Deleting what does not exist is no error.

    Raises TestbedNotReady if it does not answer, or not in JSON, TestbedError if it refuses.
    """
    try:
        answer = httpx.request(
            method,
            f"{services['RABBIT_API']}/{path}",
            json=body,
            auth=(services["RABBIT_ADMIN"], services["RABBIT_PASSWORD"]),
            timeout=TIMEOUT_S,
            trust_env=False,  # proxies of the environment cannot reach the bridge
        )
    except httpx.RequestError as error:
        raise TestbedNotReady(f"the broker's management does not answer: {error}") from error
    if method == "DELETE" and answer.status_code == httpx.codes.NOT_FOUND:
        return None
    if answer.is_error:
        why = f"HTTP Error {answer.status_code}: {answer.reason_phrase}"
        raise TestbedError(f"the broker refuses {method} {path}: {why}")
    try:
        return answer.json() if method == "GET" else None
    except ValueError as error:
        raise TestbedNotReady(f"what answers {method} {path} is not the broker: no JSON") from error
