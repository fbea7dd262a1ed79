"""Ten hosts of a cloud beside one: from the first order until every engine answers.

`python -m tests.bench.cloud_leases [hosts] [turns]`; the control plane has to run
(make openstack-up). It shares the cores of this machine with the machines that boot, which a real
one does not; so both are measured with machines that boot at once and with such as take BOOT_S.
Real guests take what they take.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from tests.openstack.plane import (
    FLAVOR,
    Plane,
    client_settings,
    hosts_of,
    hypervisor,
    wait_for_engine,
)

BOOT_S = 20
"""What a virtual machine may take until its engine answers; a stand-in takes a second."""


def lease(wanted: int) -> tuple[float, float]:
    """Seconds until all are ordered, and until all are up; they are given back afterwards."""
    with hosts_of() as hosts, ThreadPoolExecutor(wanted) as pool:
        began_s = time.monotonic()
        leased = [hosts.lease(FLAVOR) for _ in range(wanted)]
        ordered_s = time.monotonic() - began_s
        for host in leased:
            wait_for_engine(hosts, host)
        up_s = time.monotonic() - began_s
        list(pool.map(hosts.give_back, leased))
    return ordered_s, up_s


def main(arguments: Sequence[str]) -> None:
    """Print medians and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cloud_leases", description=__doc__)
    parser.add_argument("hosts", type=int, nargs="?", default=10)
    parser.add_argument("turns", type=int, nargs="?", default=3)
    options = parser.parse_args(arguments)
    many, turns = options.hosts, options.turns
    os.environ.update(client_settings())
    plane = Plane()
    try:
        plane.heal()
        for boot_s in (0, BOOT_S) if hypervisor() == "stand-in" else (0,):
            plane.fault(machine=[{"match": ".*", "delay": boot_s}])
            up_s = {}
            for wanted in (1, many):
                took = [lease(wanted) for _ in range(turns)]
                up_s[wanted] = median(up for _, up in took)
                print(
                    f"boot {boot_s:2d} s, {wanted:2d} hosts: ordered within "
                    f"{median(ordered for ordered, _ in took):5.1f} s, up {up_s[wanted]:5.1f} s, "
                    f"load {os.getloadavg()[0]:.0f}"
                )
            print(f"boot {boot_s:2d} s: {up_s[many] / up_s[1]:.1f} times as long", flush=True)
    finally:
        plane.heal()
        plane.close()


if __name__ == "__main__":
    main(sys.argv[1:])
