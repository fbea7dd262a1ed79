"""What controllers share that let the first host with room take an instance."""

from __future__ import annotations

from collections.abc import Sequence

from include.controllers.plan import Plan
from include.model.decision import Reason, Why
from include.model.observation import InstanceSample


def start_first_fit(plan: Plan, operator: str, why: Why) -> None:
    """Start on the first host with room; lease a new one when all are fully utilised."""
    op = plan.operator(operator)
    host = plan.first_fit(op)
    if host is None:
        if not plan.fits_an_empty_host(op):
            return
        host = plan.lease(Why(Reason.NO_CAPACITY, f"{why}; no host has room"))
    plan.start(operator, host, why + f"; {host} is the first with room")


def release_empty_hosts(plan: Plan) -> None:
    """ "Releases a VM, as soon as the last operator instance on that VM is terminated"."""
    for host in list(plan.hosts):
        if plan.is_empty(host.host) and len(plan.free) > 1:
            sentence = f"the last instance on {host.host} has ended"
            plan.release(host, Why(Reason.HOST_EMPTY, sentence))


def least_colocated(plan: Plan, candidates: Sequence[InstanceSample]) -> InstanceSample:
    """The one that shares its host with the fewest, so that hosts empty.

    On a tie the host leased last.
    """
    order = plan.order_of_lease
    return min(
        candidates, key=lambda instance: (len(plan.on_host(instance.host)), -order[instance.host])
    )
