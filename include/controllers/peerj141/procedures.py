"""The two procedures of the BTU-based approach: PeerJ CS 141, Fig. 4 and Fig. 5.

Both work on a Plan. ``spare`` maps the operators that Algorithm 3 lets shrink to their utilities;
it is computed again for each use, because every step of a plan changes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from include.controllers.peerj141.reclaim import best_first
from include.controllers.placement import HostChoice
from include.controllers.plan import Plan
from include.model.decision import Reason, Why
from include.model.observation import HostSample, InstanceSample
from include.model.topology import Operator

Spare = Callable[[Plan], Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Downscaling:
    """Options for what Fig. 5 leaves open.

    ``limit_share``: share of an operator's instances that may be released with a host.
    ``cache_factor``: CF of Algorithm 2. ``reclaim``: stop other operators' instances to make room
    for those that must move.
    """

    limit_share: float
    cache_factor: float
    reclaim: bool


def upscaling_procedure(
    plan: Plan, op: Operator, why: Why, spare: Spare, cache_factor: float
) -> None:
    """Fig. 4: a host with room, else room reclaimed from other operators, else a new host.

    Does nothing if no host may be leased or an empty one would be too small.
    """
    choice = plan.free.best(op, cache_factor)
    if choice is not None:
        plan.start(op.name, choice.host, why + most_suitable(choice))
        return
    stops = _reclaim(plan, op, spare, plan.free)
    if stops:
        plan.start(op.name, stops[0].host, why + f"; in the place of {_names(stops)}")
        return
    if not plan.fits_an_empty_host(op):
        return
    sentence = f"{why}; no host has room and no operator can make room"
    handle = plan.lease(Why(Reason.NO_CAPACITY, sentence))
    plan.start(op.name, handle, why + "; on the new host")


def most_suitable(choice: HostChoice) -> str:
    """End of the reason for a start on the host that Algorithm 2 ranks first."""
    return f"; {choice.host} is the most suitable host ({choice.suitability:.4f})"


def btu_ends(plan: Plan, host: HostSample) -> Why:
    """Reason for every step on a host whose BTU ends."""
    left_s = host.paid_until_s - plan.now_s
    return Why(Reason.LEASE_ENDS, f"the BTU of {host.host} ends in {left_s:.0f} s")


def _reclaim(
    plan: Plan, op: Operator, spare: Spare, hosts: Iterable[str]
) -> tuple[InstanceSample, ...]:
    """Stop instances to make room for the operator on one of the hosts; returns them."""
    utilities = best_first(spare(plan))
    stops = simulate_reclaim(plan, op, utilities, hosts)
    for instance in stops:
        utility = utilities[instance.operator]
        sentence = f"{op.name} needs its place; {instance.operator} has utility {utility:.2f}"
        plan.stop(instance, Why(Reason.MAKE_ROOM, sentence))
    return stops


def simulate_reclaim(
    plan: Plan, op: Operator, utilities: Mapping[str, float], hosts: Iterable[str]
) -> tuple[InstanceSample, ...]:
    """The fewest instances of one host to stop so that ``op`` fits; empty if that is impossible.

    This is the "preliminary simulation phase" of the preprint's section 4.1. Per host the
    operator with the best utility gives first. Among hosts the fewest stops win, then the best
    utilities, then the earlier lease.
    """
    rank = {name: place for place, name in enumerate(name for name in utilities if name != op.name)}
    candidates: list[tuple[int, list[int], tuple[InstanceSample, ...]]] = []
    for host in hosts:
        stops = _stops_on(plan, host, op, rank)
        if stops:
            candidates.append((len(stops), [rank[stop.operator] for stop in stops], stops))
    return min(candidates, key=lambda candidate: candidate[:2])[2] if candidates else ()


def _stops_on(
    plan: Plan, host: str, op: Operator, rank: Mapping[str, int]
) -> tuple[InstanceSample, ...]:
    """Instances on the host to stop, best utility first and newest first, until ``op`` fits."""
    room, stops = plan.free[host], list[InstanceSample]()
    givers = [instance for instance in reversed(plan.on_host(host)) if instance.operator in rank]
    for instance in sorted(givers, key=lambda instance: rank[instance.operator]):
        if plan.may_stop(instance, [stop.instance for stop in stops]):
            room = room.without_one(plan.operator(instance.operator))
            stops.append(instance)
            if room.left.fits(op):
                return tuple(stops)
    return ()


def downscaling_procedure(plan: Plan, host: HostSample, spare: Spare, rules: Downscaling) -> None:
    """Fig. 5: simulate a plan, then release, migrate and shut down; else lease another BTU."""
    ends = btu_ends(plan, host)
    if plan.is_given_work(host.host):
        sentence = f"{ends}, and it has just been given an instance"
        plan.prolong(host, Why(Reason.HOST_NEEDED, sentence))
        return
    tried = plan.copy()  # phase 1: simulate
    obstacle = empty_host(tried, host.host, ends, spare, rules)
    if obstacle:
        plan.prolong(host, Why(Reason.HOST_NEEDED, f"{ends}; {obstacle}"))
        return
    plan.adopt(tried)  # phases 2 and 3: the same steps in earnest
    plan.release(host, ends + "; its instances can stop or move")


def empty_host(plan: Plan, host: str, ends: Why, spare: Spare, rules: Downscaling) -> str:
    """Stop and move all instances of the host. Returns "" or why that is impossible.

    At most ``limit_share`` of an operator's instances (rounded up) stop, and only with a positive
    utility. The others must fit on hosts that are up.
    """
    utilities = spare(plan)
    here = plan.on_host(host)
    # the rounding keeps 0.1 * 30 = 3.0000000000000004 from becoming 4
    left = {
        name: math.ceil(round(rules.limit_share * plan.count(name), 9))
        for name in {instance.operator for instance in here}
        if name in utilities
    }
    for instance in reversed(here):  # phase 2: release operator instances
        name = instance.operator
        if left.get(name, 0) > 0 and plan.may_stop(instance):
            left[name] -= 1
            plan.stop(instance, ends + f"; {name} has utility {utilities[name]:.2f}")
    for instance in reversed(plan.on_host(host)):  # phase 3: migrate the others
        target = _new_home(plan, plan.operator(instance.operator), host, spare, rules)
        if target is None:
            return f"no other host has room for {instance.instance}, which is needed"
        plan.migrate(
            instance, target, ends + f"; {instance.operator} is needed and fits on {target}"
        )
    return ""


def _new_home(
    plan: Plan, op: Operator, leaving: str, spare: Spare, rules: Downscaling
) -> str | None:
    """Target of a migration: Fig. 4 without the host ``leaving`` and without leasing."""
    choice = plan.free.best(op, rules.cache_factor, only_up=True, leaving=leaving)
    if choice is not None:
        return choice.host
    if not rules.reclaim:
        return None
    others = [room.host for room in plan.free.values() if room.up and room.host != leaving]
    stops = _reclaim(plan, op, spare, others)
    return stops[0].host if stops else None


def _names(instances: tuple[InstanceSample, ...]) -> str:
    return ", ".join(instance.instance for instance in instances)
