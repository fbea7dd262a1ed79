"""Faults for Nova's drivers, and its fake driver with machines; copied to nova/virt/tb.py.

How a spawn or a destruction fails: ``abort`` at once, ``retry`` as a host that has no room (Nova
tries others), anything else by an exception that nobody expects. All end in ERROR.

Beside every server the program in $TB_MACHINE is run, `PROGRAM spawn|destroy` with the server as
JSON on its standard input. It returns before the machine has booted, as a hypervisor does, and what
becomes of the machine does not concern Nova.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import Any

from nova import exception
from nova.virt import fake

from tb_openstack import faults


class FaultyDriver:
    """Mix-in for a Nova driver that fails or delays calls by rules."""

    def spawn(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        """After the fault."""
        fail("spawn", instance)
        super().spawn(context, instance, *args, **kwargs)  # type: ignore[misc]

    def destroy(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        """After the fault."""
        fail("destroy", instance)
        super().destroy(context, instance, *args, **kwargs)  # type: ignore[misc]


class StandIns(fake.FakeDriverWithoutFakeNodes):
    """A compute host with plenty of room, unchanged by restarts."""

    vcpus = int(os.environ.get("TB_HOST_VCPUS", "1000"))
    memory_mb = int(os.environ.get("TB_HOST_RAM_MB", "800000"))
    local_gb = int(os.environ.get("TB_HOST_DISK_GB", "600000"))

    def spawn(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        """Spawn in the fake driver, then start the machine."""
        super().spawn(context, instance, *args, **kwargs)
        _machine("spawn", instance, kwargs.get("network_info") or (args[4:] or [None])[0])

    def destroy(
        self, context: Any, instance: Any, network_info: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Stop the machine, then destroy in the fake driver."""
        _machine("destroy", instance, network_info)
        super().destroy(context, instance, network_info, *args, **kwargs)


class HookedDriver(FaultyDriver, StandIns):
    """The `compute_driver` without guests."""


def fail(action: str, instance: Any) -> None:
    """Raise or wait by the first matching rule; see above."""
    rule = faults.pick(action, instance.display_name or "")
    time.sleep(float(rule.get("delay", 0)))
    how, reason = rule.get("fail"), "a fault on demand"
    if how == "abort":
        raise exception.BuildAbortException(instance_uuid=instance.uuid, reason=reason)
    if how == "retry":
        raise exception.ComputeResourcesUnavailable(reason=reason)
    if how:
        raise RuntimeError(reason)


def _machine(action: str, instance: Any, network_info: Any) -> None:
    program = os.environ.get("TB_MACHINE")
    rule = faults.pick("machine", instance.display_name or "") if action == "spawn" else {}
    if not program or "fail" in rule:
        return
    limits = instance.flavor.extra_specs or {}
    period, quota = (int(limits.get(f"quota:cpu_{name}", 0)) for name in ("period", "quota"))
    server = {
        "id": instance.uuid,
        "name": instance.display_name,
        "cpu": quota / period if period and quota else instance.flavor.vcpus,
        "memory_mb": instance.flavor.memory_mb,
        "addresses": [ip["address"] for vif in network_info or [] for ip in vif.fixed_ips()],
        "delay_s": rule.get("delay", 0),
    }
    subprocess.run([program, action], check=True, text=True, input=json.dumps(server))
