"""The first deployment: where the instances go that run before the first item arrives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from include.controllers.base import Setting
from include.controllers.plan import Plan
from include.model.decision import Decision, Reason, Why
from include.model.observation import Observation
from include.model.topology import Operator


def first_deployment(setting: Setting, instances: Mapping[str, int]) -> Decision:
    """Lease hosts and start ``instances`` of each operator.

    One instance of every operator comes first, then the second ones, so that the operators
    are spread over the hosts. With ``hosts_at_start`` those are leased and each instance goes to
    the host that has the fewest; else Algorithm 2 places them. An operator that fits no host is
    left out; the experiment refuses such a topology before it gets here.
    """
    plan = Plan(setting, Observation(now_s=0.0, operators={}, hosts={}, instances={}))
    starts = [
        (op, Why(Reason.FIRST_DEPLOYMENT, f"instance {turn} of {op.name} before the first item"))
        for turn in range(1, max(instances.values(), default=0) + 1)
        for op in setting.topology.operators
        if turn <= instances.get(op.name, 0)
    ]
    if setting.hosts_at_start:
        _spread(plan, setting, starts)
    else:
        for op, why in starts:
            choice = plan.free.best(op)
            if choice is not None:
                plan.start(op.name, choice.host, why)
            elif plan.fits_an_empty_host(op):
                plan.start(op.name, plan.lease(why), why)
    return plan.decision(Why(Reason.NOTHING_TO_DO, "nothing to deploy"))


def _spread(plan: Plan, setting: Setting, starts: Sequence[tuple[Operator, Why]]) -> None:
    leased = Why(Reason.FIRST_DEPLOYMENT, "leased before the first item")
    hosts = [plan.lease(leased) for _ in range(setting.hosts_at_start)]
    on_host = dict.fromkeys(hosts, 0)
    for op, why in starts:
        room = [
            host
            for host in hosts
            if plan.free[host].left.memory_mb >= op.memory_mb
            and (setting.flavor.cpu_shared or plan.free[host].left.fits(op))
        ]
        if room:
            host = min(room, key=on_host.__getitem__)
            on_host[host] += 1
            plan.start(op.name, host, why)
