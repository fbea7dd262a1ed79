"""Nova's libvirt driver with faults; `openstack.sh` copies it to nova/virt/tb_guest.py.

Spawns and destructions fail as in ``nova_virt``. A rule for a machine reaches its guest through the
command line of the kernel, which our initramfs and agent read: ``delay`` holds the boot up,
``dead`` and ``hang`` stop it for good, with ``deaf`` it comes up without an address, and with
``off`` it switches itself off.
"""

from __future__ import annotations

from typing import Any

from nova.virt.libvirt import driver
from nova.virt.tb import FaultyDriver

from tb_openstack import faults

WORDS = {"dead": "hang"}


class GuestDriver(FaultyDriver, driver.LibvirtDriver):
    """Real guests, of the machine's own kernel and initramfs."""

    def _set_guest_for_inst_kernel(self, instance: Any, guest: Any, *args: Any) -> None:
        super()._set_guest_for_inst_kernel(instance, guest, *args)
        rule = faults.pick("machine", instance.display_name or "")
        if "delay" in rule:
            guest.os_cmdline += f" tidebench.delay={rule['delay']}"
        if how := rule.get("fail"):
            guest.os_cmdline += f" tidebench.fault={WORDS.get(how, how)}"
