"""What controllers share that let the first host with room take an instance."""

from __future__ import annotations

from include.controllers.plan import Plan


def start_first_fit(plan: Plan, operator: str, because: str) -> None:
    """Start on the first host with room; lease a new one when all are fully utilised."""
    op = plan.operator(operator)
    host = plan.first_fit(op)
    if host is None:
        if not plan.fits_an_empty_host(op):
            return
        host = plan.lease(f"{because}; no host has room")
    plan.start(operator, host, f"{because}; {host} is the first with room")


def release_empty_hosts(plan: Plan) -> None:
    """ "Releases a VM, as soon as the last operator instance on that VM is terminated"."""
    for host in list(plan.hosts):
        if plan.is_empty(host.host) and len(plan.free) > 1:
            plan.release(host, f"the last instance on {host.host} has ended")
