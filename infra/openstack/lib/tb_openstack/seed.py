"""What a fresh cloud needs: `seed identity NAME=PORT`, then `seed cloud`; and `seed quota NAME=N`.

Every step looks before it creates, so it can be repeated.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any

import openstack

NAME = "tidebench"
"""Name of the project, its user, its network and its subnet."""
IMAGE = "tidebench-host"
FIRST, LAST = 111, 210
"""Last numbers of assigned addresses. Lower ones are the testbed docker's, higher ones for tests
and people: a machine at .<10+n> is number n of infra/live/hosts.sh."""
DISK_GB = 10
BOOT = (
    "root=/dev/vda console=ttyS0 quiet loglevel=3 mitigations=off nokaslr audit=0 apparmor=0 "
    "clocksource=acpi_pm no_timer_check cryptomgr.notests random.trust_bootloader=on panic=-1"
)
"""Kernel command line of a guest, without features that are slow on an emulated processor. On a
busy machine the kernel miscalibrates the processor's clock by up to a factor of three."""
REPOSITORY = Path(__file__).resolve().parents[4]
TYPES = {
    "keystone": ("identity", "/v3"),
    "placement": ("placement", ""),
    "glance": ("image", ""),
    "neutron": ("network", ""),
    "nova": ("compute", "/v2.1"),
}


def identity(admin: Any, ports: dict[str, int]) -> None:
    """Create accounts and the catalogue."""
    keystone, password = admin.identity, os.environ["TB_PASSWORD"]
    roles = {role.name: role for role in keystone.roles()}
    for project, user, names in (
        ("service", "tb-service", ("admin", "service")),
        (NAME, NAME, ("member",)),
        (NAME, "admin", ("admin",)),
    ):
        inside = keystone.find_project(project) or keystone.create_project(
            name=project, domain_id="default"
        )
        account = keystone.find_user(user) or keystone.create_user(
            name=user, password=password, domain_id="default", default_project_id=inside.id
        )
        for name in names:
            if not keystone.validate_user_has_project_role(inside, account, roles[name]):
                keystone.assign_project_role_to_user(inside, account, roles[name])
    services = {service.name: service for service in keystone.services()}
    endpoints = {endpoint.service_id: endpoint for endpoint in keystone.endpoints()}
    for name, (kind, path) in TYPES.items():
        service = services.get(name) or keystone.create_service(name=name, type=kind)
        url = f"http://127.0.0.1:{ports[name]}{path}"
        endpoint = endpoints.get(service.id)
        if endpoint is None:
            keystone.create_endpoint(
                service_id=service.id, interface="public", url=url, region_id="RegionOne"
            )
        elif endpoint.url != url:
            keystone.update_endpoint(endpoint, url=url)


def cloud(admin: Any) -> None:
    """Create Tidebench's flavors, an image, and a network at the addresses of the live bridge."""
    flavors = runpy.run_path(str(REPOSITORY / "include" / "testbeds" / "flavors.py"))["FLAVORS"]
    names = {flavor.name for flavor in admin.compute.flavors()}
    for flavor in flavors.values():
        if flavor.name not in names:
            made = admin.compute.create_flavor(
                name=flavor.name, vcpus=ceil(flavor.vcpus), ram=int(flavor.memory_mb), disk=DISK_GB
            )
            # A guest has whole processors; a stand-in has a CPU quota.
            if os.environ["TB_HYPERVISOR"] != "stand-in":
                continue
            limits = {"period": 100_000, "quota": round(flavor.vcpus * 100_000)}
            specs = {f"quota:cpu_{name}": str(value) for name, value in limits.items()}
            admin.compute.create_flavor_extra_specs(made, specs)
    image(admin)
    # For floating addresses, which only tests of the reaper use.
    outside = admin.network.find_network("public") or admin.network.create_network(
        name="public",
        is_router_external=True,
        provider_network_type="flat",
        provider_physical_network="public",
    )
    admin.network.find_subnet("public") or admin.network.create_subnet(
        name="public",
        network_id=outside.id,
        ip_version=4,
        cidr="203.0.113.0/24",
        is_dhcp_enabled=False,
    )
    neutron, subnet = openstack.connect(cloud=NAME).network, os.environ["TB_SUBNET"]
    network = neutron.find_network(NAME) or neutron.create_network(name=NAME)
    neutron.find_subnet(NAME) or neutron.create_subnet(
        name=NAME,
        network_id=network.id,
        ip_version=4,
        cidr=f"{subnet}.0/24",
        gateway_ip=None,
        is_dhcp_enabled=False,
        allocation_pools=[{"start": f"{subnet}.{FIRST}", "end": f"{subnet}.{LAST}"}],
    )
    wait_for("nova-compute", lambda: _compute_is_up(admin))
    wait_for("a hypervisor", lambda: list(admin.compute.hypervisors()))
    wait_for("a resource provider", lambda: list(admin.placement.resource_providers()))


def image(admin: Any) -> None:
    """Create the image: kernel, initramfs and disk of a guest, or zeros for a stand-in."""
    where = Path(os.environ["TB_GUEST"])
    real = os.environ["TB_HYPERVISOR"] != "stand-in"
    recipe = (where / "recipe").read_text().strip() if real else "zeros"
    command_line = f"{BOOT} tidebench.clock={os.environ['TB_CLOCK']}"
    existing = admin.image.find_image(IMAGE)
    if existing and existing.properties.get("tidebench_recipe", "zeros") == recipe:
        if real and existing.os_command_line != command_line:
            admin.image.update_image(existing, os_command_line=command_line)
        return
    common = {"visibility": "public", "allow_duplicates": True, "wait": True}
    if not real:
        admin.image.create_image(
            name=IMAGE,
            data=b"\0" * 65536,
            disk_format="raw",
            container_format="bare",
            min_disk=1,
            **common,
        )
        return
    for name in (IMAGE, f"{IMAGE}-kernel", f"{IMAGE}-initrd"):
        for old in admin.image.images(name=name):
            admin.image.delete_image(old)
    part = {
        kind: admin.image.create_image(
            name=f"{IMAGE}-{name}",
            filename=str(where / file),
            disk_format=kind,
            container_format=kind,
            **common,
        ).id
        for name, kind, file in (("kernel", "aki", "vmlinux"), ("initrd", "ari", "initrd.img"))
    }
    admin.image.create_image(
        name=IMAGE,
        filename=str(where / "disk.qcow2"),
        disk_format="qcow2",
        container_format="bare",
        min_disk=8,
        kernel_id=part["aki"],
        ramdisk_id=part["ari"],
        os_command_line=command_line,
        hw_machine_type="pc",
        tidebench_recipe=recipe,
        **common,
    )


def quota(admin: Any, limits: dict[str, int]) -> None:
    """Set the project's limits; without any, restore the configured ones."""
    project = openstack.connect(cloud=NAME).current_project_id
    admin.compute.revert_quota_set(project)
    admin.network.delete_quota(project, ignore_missing=True)
    of_network = {name: limits.pop(name) for name in ("port",) if name in limits}
    if limits:
        admin.compute.update_quota_set(project, **limits)
    if of_network:
        admin.network.update_quota(project, **of_network)


def wait_for(what: str, probe: Callable[[], Any]) -> None:
    """Wait until the probe returns a true value; exits after too long."""
    end_s = time.monotonic() + float(os.environ["TB_WITHIN_S"])
    while not probe():
        if time.monotonic() > end_s:
            sys.exit(f"no {what} within {os.environ['TB_WITHIN_S']} s")
        time.sleep(0.25)


def _compute_is_up(admin: Any, since: str = "") -> bool:
    services = admin.compute.services(binary="nova-compute")
    return any(
        service.state == "up" and service.status == "enabled" and (service.updated_at or "") > since
        for service in services
    )


def main(step: str, *arguments: str) -> None:
    """Do one step."""
    pairs = (argument.partition("=") for argument in arguments if "=" in argument)
    numbers = {name: int(value) for name, _, value in pairs}
    if step == "identity":
        # Its endpoint in the catalogue may have ports of an earlier start.
        url = f"http://127.0.0.1:{numbers['keystone']}/v3"
        identity(
            openstack.connect(cloud="tidebench-admin", identity_endpoint_override=url), numbers
        )
        return
    admin = openstack.connect(cloud="tidebench-admin")
    if step == "cloud":
        cloud(admin)
    elif step == "compute":
        since = datetime.now(UTC).replace(tzinfo=None).isoformat()
        wait_for("nova-compute", lambda: _compute_is_up(admin, since))
    else:
        quota(admin, numbers)


if __name__ == "__main__":
    main(*sys.argv[1:])
