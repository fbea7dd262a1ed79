"""Servers of a cloud as hosts, with a Docker engine that cloud-init starts."""

from __future__ import annotations

import os
import time
import uuid
from base64 import b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from openstack.connection import Connection

from include.model.errors import TestbedError
from include.model.host import HostFlavor
from include.testbeds.base import TestbedConfig
from include.testbeds.live.engine import TROUBLE, Engine
from include.testbeds.live.hosts.openstack import names, servers
from include.testbeds.live.hosts.openstack.calibration import OpenStackCalibration
from include.testbeds.live.hosts.openstack.cloud import CloudClient
from include.testbeds.live.hosts.openstack.tags import ResourceTags, site
from include.testbeds.live.hosts.provider import Usage
from include.testbeds.live.services import Services
from include.testbeds.live.testbed import LiveTestbed

T = TypeVar("T")
AT_ONCE = 8
LOOK_FOR_PORTS_S = 1.0
WILL_NOT_COME_UP = ("ERROR", "SHUTOFF", "SUSPENDED", "UNKNOWN")


@dataclass(frozen=True, slots=True)
class ServersView:
    """The run's servers, and the addresses of the engines that answer, by server id.

    ``began_s``: when it was asked for them, by the monotonic clock.
    """

    began_s: float = 0.0
    servers: Mapping[str, servers.Server] = field(default_factory=dict)
    endpoints: Mapping[str, str] = field(default_factory=dict)


class OpenStackHosts:
    """A run's servers; see ``HostProvider``."""

    def __init__(self, tags: ResourceTags, settings: OpenStackCalibration) -> None:
        self._tags = tags
        self._settings = settings
        self._cloud = CloudClient(settings.cloud, settings.answer_within_s)
        self._poller = BackgroundPoller(self._list_servers, ServersView(), settings.look_every_s)
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="engine")
        self._options: names.ServerOptions | None = None
        self._ordered: dict[str, str] = {}
        """Ids by name of the servers ordered in this process; "" if the order was given up."""
        self._ordered_s: dict[str, float] = {}
        """When an order ended, by the monotonic clock: a poll before that may lack its server."""
        self._endpoints: dict[str, str] = {}
        self._used: dict[str, dict[str, Usage]] = {}

    def check(self, flavor: HostFlavor, hosts: int) -> None:
        leased = len(self._with_retries(self._servers, "list servers"))
        options = self._names(flavor)
        self._with_retries(
            lambda c: names.require_quota(c, options, hosts, leased), "read the quota"
        )

    def origin(self) -> dict[str, Any]:
        name = self._settings.cloud or os.environ.get("OS_CLOUD", "")
        return {"testbed": "openstack", "cloud": name}

    def lease(self, flavor: HostFlavor) -> str:
        """Order a server. If a failed order still creates one, it is deleted when it appears."""
        options = self._names(flavor)
        self._with_retries(lambda c: names.require_quota(c, options, 1, 0), "read the quota")
        name = f"{self._tags.run}.{uuid.uuid4().hex[:8]}"
        request = self._request(name, options)
        try:
            host = servers.order(self._cloud, request, self._settings.order_within_s)
        except Exception:
            self._ordered[name] = ""  # not before: a poll may see the server before its order ends
            raise
        self._ordered[name] = host
        self._ordered_s[host] = time.monotonic()
        return host

    def leased(self) -> list[str]:
        """Servers, and those that are gone but for ports: Neutron failed as they were deleted."""
        ids = [server.id for server in self._with_retries(self._servers, "list servers")]
        try:
            # Hardly tried again: a window that begins waits for it.
            ports = self._cloud.with_retries(self._ports, "list ports", LOOK_FOR_PORTS_S)
        except TestbedError:
            if not ids:
                raise
            return ids  # with its server each is looked for again
        return [*ids, *sorted({port.device_id for port in ports} - {"", None, *ids})]

    def endpoint(self, host: str) -> str:
        return self._endpoints.get(host) or self._poller.latest().endpoints.get(host, "")

    def boot_failed(self, host: str) -> str:
        """Nova's reason, or that the server was deleted."""
        view = self._poller.latest()
        server = view.servers.get(host)
        if host in self._endpoints or view.began_s <= self._ordered_s.get(host, 0.0):
            return ""
        if server is None:
            return "its server is gone"
        if server.status in WILL_NOT_COME_UP:
            return f"its server is in {server.status}: {server.fault or 'no reason given'}"
        return ""

    def usage(self, host: str, container: str = "") -> Usage | None:
        """Usage from the engine; a host's is the sum over the run's containers."""
        if "" in self._ordered.values():
            self._poller.latest()  # deletes the server of an order that was given up
        if container:
            return self._used.get(host, {}).get(container)
        endpoint, used = self.endpoint(host), {}
        with suppress(*TROUBLE):
            used = Engine(endpoint).usage(self._tags.run) if endpoint else {}
        self._used[host] = used
        if not used:
            return None
        return Usage(
            sum(usage.cpu_s for usage in used.values()),
            sum(usage.memory_mb for usage in used.values()),
        )

    def give_back(self, host: str) -> None:
        servers.delete(self._cloud, host, self._settings.gone_within_s)

    def close(self) -> None:
        self._poller.close()
        self._pool.shutdown()
        self._cloud.close()

    # ------------------------------------------------------------- in background

    def _list_servers(self) -> ServersView:
        """List servers, delete those of failed orders, and query engines without an answer yet."""
        began_s = time.monotonic()
        with self._cloud.translated_errors("list servers"):
            listed = {server.id: server for server in self._servers(self._cloud.connection)}
            for server in listed.values():
                if self._ordered.get(server.name, server.id) != server.id:
                    self._cloud.connection.compute.delete_server(server.id)
        booted = [
            server
            for server in listed.values()
            if server.status == "ACTIVE" and server.id not in self._endpoints
        ]
        for server, endpoint in zip(booted, self._pool.map(self._answering, booted), strict=True):
            if endpoint:
                self._tag_ports(server.id)  # first, so that the next poll tries again if it fails
                self._endpoints[server.id] = endpoint
        return ServersView(began_s, listed, dict(self._endpoints))

    def _answering(self, server: servers.Server) -> str:
        address = server.address(self._settings.networks[0])
        endpoint = f"tcp://{address}:{self._settings.engine_port}"
        return endpoint if address and Engine(endpoint).answers() else ""

    def _tag_ports(self, server: str) -> None:
        """Tag the server's ports, which outlive it if Neutron fails on its deletion."""
        with self._cloud.translated_errors("tag ports"):
            network = self._cloud.connection.network
            for port in network.ports(device_id=server):
                network.set_tags(port, self._tags.tags)

    # ------------------------------------------------------------------ details

    def _servers(self, connection: Connection) -> list[servers.Server]:
        listed = servers.find(connection, self._tags.tags[1:])
        return [server for server in listed if server.tags.run == self._tags.run]

    def _ports(self, connection: Connection) -> list[Any]:
        """The run's tagged ports."""
        tags = self._tags.tags
        listed = connection.network.ports(tags=",".join(tags))
        return [port for port in listed if set(tags) <= set(port.tags or ())]

    def _names(self, flavor: HostFlavor) -> names.ServerOptions:
        if self._options is None:
            work = partial(names.look_up, settings=self._settings, flavor=flavor)
            self._options = self._with_retries(work, "look up names")
        return self._options

    def _with_retries(self, work: Callable[[Connection], T], what: str) -> T:
        return self._cloud.with_retries(work, what, self._settings.order_within_s)

    def _request(self, name: str, options: names.ServerOptions) -> dict[str, Any]:
        settings = self._settings
        user_data = servers.user_data(Services.find()["REGISTRY"], settings.engine_port)
        optional = {
            "key_name": settings.key_pair,
            "availability_zone": settings.availability_zone,
            "security_groups": [{"name": group} for group in settings.security_groups],
        }
        return {
            "name": name,
            "image_id": options.image,
            "flavor_id": options.flavor,
            "networks": [{"uuid": network} for network in options.networks],
            "tags": self._tags.tags,
            "metadata": self._tags.metadata,
            "user_data": b64encode(user_data.encode()).decode(),  # as Nova requires
            "config_drive": True,
            **{option: value for option, value in optional.items() if value},
        }


GRACE_S = 2 * 3600.0
"""Time that a run may take longer than its arrivals."""


def build(config: TestbedConfig) -> LiveTestbed:
    """The testbed of a run on servers of a cloud."""
    settings = OpenStackCalibration.model_validate(config.calibration)
    due_s = time.time() + config.duration_s / settings.time_scale + GRACE_S
    hosts = OpenStackHosts(ResourceTags(config.run, site(), due_s), settings)
    return LiveTestbed(config, hosts, settings)


class BackgroundPoller(Generic[T]):
    """Polls in the background, one call at a time, as long as :meth:`latest` is called."""

    def __init__(self, poll: Callable[[], T], blank: T, every_s: float) -> None:
        self._poll = poll
        self._every_s = every_s
        self._latest = blank
        self._began_s = 0.0
        self._under_way: Future[T] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="poller")

    def latest(self) -> T:
        """The last successful poll; starts another one after ``every_s``."""
        if self._under_way is not None and self._under_way.done():
            if not isinstance(self._under_way.exception(), TestbedError):  # which may pass
                self._latest = self._under_way.result()
            self._under_way = None
        now_s = time.monotonic()
        if self._under_way is None and now_s - self._began_s >= self._every_s:
            self._began_s = now_s
            self._under_way = self._pool.submit(self._poll)
        return self._latest

    def close(self) -> None:
        self._pool.shutdown()
