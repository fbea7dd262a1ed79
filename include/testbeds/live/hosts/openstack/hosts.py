"""Hosts that are servers of a cloud, each with a Docker engine that cloud-init has brought up."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from openstack.connection import Connection

from include.model.host import HostFlavor
from include.testbeds.live.engine import TROUBLE, Engine
from include.testbeds.live.hosts.openstack import names, servers
from include.testbeds.live.hosts.openstack.calibration import OpenStackCalibration
from include.testbeds.live.hosts.openstack.cloud import CloudClient
from include.testbeds.live.hosts.openstack.poller import BackgroundPoller
from include.testbeds.live.hosts.openstack.tags import ResourceTags
from include.testbeds.live.hosts.openstack.user_data import encoded, user_data
from include.testbeds.live.hosts.provider import Usage
from include.testbeds.live.services import Services

T = TypeVar("T")
AT_ONCE = 8
WILL_NOT_COME_UP = ("ERROR", "SHUTOFF", "SUSPENDED", "UNKNOWN")


@dataclass(frozen=True, slots=True)
class ServersView:
    """The run's servers as the cloud has them, and where the engines are that answer."""

    servers: Mapping[str, servers.Server] = field(default_factory=dict)
    endpoints: Mapping[str, str] = field(default_factory=dict)


class OpenStackHosts:
    """The servers of one run; see ``HostProvider``."""

    def __init__(self, tags: ResourceTags, settings: OpenStackCalibration) -> None:
        self._tags = tags
        self._settings = settings
        self._cloud = CloudClient(settings.cloud, settings.answer_within_s)
        self._poller = BackgroundPoller(self._list_servers, ServersView(), settings.look_every_s)
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="engine")
        self._found: names.ServerOptions | None = None
        self._ordered: dict[str, str] = {}
        """Names to ids of what this process has ordered; "" when the order was given up."""
        self._ordered_s: dict[str, float] = {}
        self._endpoints: dict[str, str] = {}
        self._used: dict[str, dict[str, Usage]] = {}

    def check(self, flavor: HostFlavor, hosts: int) -> None:
        """Names of cloud, image, flavor and networks, all at once, then the quota."""
        own = len(self.leased())
        found = self._names(flavor)
        self._with_retries(lambda c: names.require_quota(c, found, hosts, own), "read the quota")

    def origin(self) -> dict[str, Any]:
        """The name of the cloud."""
        name = self._settings.cloud or os.environ.get("OS_CLOUD", "")
        return {"testbed": "openstack", "cloud": name}

    def lease(self, flavor: HostFlavor) -> str:
        """Order a server. What a failed order may still bring forth is deleted when it appears."""
        found = self._names(flavor)
        self._with_retries(lambda c: names.require_quota(c, found, 1, 0), "read the quota")
        name = f"{self._tags.run}.{uuid.uuid4().hex[:8]}"
        self._ordered[name] = ""
        began_s = time.monotonic()
        asked = self._request(name, found)
        host = servers.order(self._cloud, asked, self._settings.order_within_s)
        self._ordered[name] = host
        self._ordered_s[host] = began_s
        return host

    def leased(self) -> list[str]:
        """Ids of all servers with the tags of the run."""
        return [one.id for one in self._with_retries(self._servers, "list servers")]

    def endpoint(self, host: str) -> str:
        """Known once its engine has answered."""
        return self._endpoints.get(host) or self._poller.latest().value.endpoints.get(host, "")

    def boot_failed(self, host: str) -> str:
        """What Nova says, or that somebody has deleted it."""
        seen = self._poller.latest()
        server = seen.value.servers.get(host)
        if host in self._endpoints or seen.began_s <= self._ordered_s.get(host, 0.0):
            return ""
        if server is None:
            return "its server is gone"
        if server.status in WILL_NOT_COME_UP:
            return f"its server is in {server.status}: {server.fault or 'no reason given'}"
        return ""

    def usage(self, host: str, container: str = "") -> Usage | None:
        """From its engine: of a host the sum over the containers of the run."""
        if "" in self._ordered.values():
            self._poller.latest()  # an order that was given up may yet have brought forth a server
        if container:
            return self._used.get(host, {}).get(container)
        endpoint, used = self.endpoint(host), {}
        with suppress(*TROUBLE):
            used = Engine(endpoint).usage(self._tags.run) if endpoint else {}
        self._used[host] = used
        if not used:
            return None
        return Usage(
            sum(one.cpu_s for one in used.values()), sum(one.memory_mb for one in used.values())
        )

    def give_back(self, host: str) -> None:
        """Delete its server, and wait until it is gone."""
        servers.delete(self._cloud, host, self._settings.gone_within_s)

    def close(self) -> None:
        self._poller.close()
        self._pool.shutdown()
        self._cloud.close()

    # ------------------------------------------------------------- in background

    def _list_servers(self) -> ServersView:
        """List the servers, remove strays, and ask engines that have not answered yet."""
        with self._cloud.translated_errors("list servers"):
            listed = {one.id: one for one in self._servers(self._cloud.connection)}
            for one in listed.values():
                if self._ordered.get(one.name, one.id) != one.id:
                    self._cloud.connection.compute.delete_server(one.id)
        booted = [
            one
            for one in listed.values()
            if one.status == "ACTIVE" and one.id not in self._endpoints
        ]
        for one, endpoint in zip(booted, self._pool.map(self._answering, booted), strict=True):
            if endpoint:
                self._endpoints[one.id] = endpoint
                self._tag_ports(one.id)
        return ServersView(listed, dict(self._endpoints))

    def _answering(self, server: servers.Server) -> str:
        address = server.address(self._settings.networks[0])
        endpoint = f"tcp://{address}:{self._settings.engine_port}"
        return endpoint if address and Engine(endpoint).answers() else ""

    def _tag_ports(self, server: str) -> None:
        """So that a port is found that outlives its server, as when Neutron fails on a deletion."""
        with self._cloud.translated_errors("tag ports"):
            network = self._cloud.connection.network
            for port in network.ports(device_id=server):
                network.set_tags(port, self._tags.tags)

    # ------------------------------------------------------------------ details

    def _servers(self, connection: Connection) -> list[servers.Server]:
        listed = servers.find(connection, self._tags.tags[1:])
        return [one for one in listed if one.tags.run == self._tags.run]

    def _names(self, flavor: HostFlavor) -> names.ServerOptions:
        if self._found is None:
            work = partial(names.look_up, settings=self._settings, flavor=flavor)
            self._found = self._with_retries(work, "look up names")
        return self._found

    def _with_retries(self, work: Callable[[Connection], T], what: str) -> T:
        return self._cloud.with_retries(work, what, self._settings.order_within_s)

    def _request(self, name: str, found: names.ServerOptions) -> dict[str, Any]:
        settings = self._settings
        registry = Services.find()["REGISTRY"]
        optional = {
            "key_name": settings.key_pair,
            "availability_zone": settings.availability_zone,
            "security_groups": [{"name": one} for one in settings.security_groups],
        }
        return {
            "name": name,
            "image_id": found.image,
            "flavor_id": found.flavor,
            "networks": [{"uuid": one} for one in found.networks],
            "tags": self._tags.tags,
            "metadata": self._tags.metadata,
            "user_data": encoded(user_data(registry, settings.engine_port)),
            "config_drive": True,
            **{option: value for option, value in optional.items() if value},
        }
