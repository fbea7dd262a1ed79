"""The two procedures of the BTU-based approach: PeerJ CS 141, Fig. 4 and Fig. 5.

Both work on a Plan. ``spare`` gives the operators that Algorithm 3 lets shrink on a plan (name
to utility), counted anew each time because every step changes the utilities.
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
    """What Fig. 5 leaves open, as options of the controller.

    ``limit_share`` of an operator's instances may be released with a host; ``cache_factor`` is
    that of Algorithm 2; ``reclaim`` lets other operators make room for what has to move.
    """

    limit_share: float
    cache_factor: float
    reclaim: bool


def upscaling_procedure(
    plan: Plan, op: Operator, why: Why, spare: Spare, cache_factor: float
) -> None:
    """Fig. 4: a host with room, else room reclaimed from other operators, else a new host.

    Where no host is to be had, or even an empty one would be too small, nothing.
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
    told = f"{why}; no host has room and no operator can make room"
    handle = plan.lease(Why(Reason.NO_CAPACITY, told))
    plan.start(op.name, handle, why + "; on the new host")


def most_suitable(choice: HostChoice) -> str:
    """What is said of the host that Algorithm 2 ranks first."""
    return f"; {choice.host} is the most suitable host ({choice.suitability:.4f})"


def btu_ends(plan: Plan, host: HostSample) -> Why:
    """Why a host is looked at."""
    left_s = host.paid_until_s - plan.now_s
    return Why(Reason.LEASE_ENDS, f"the BTU of {host.host} ends in {left_s:.0f} s")


def _reclaim(
    plan: Plan, op: Operator, spare: Spare, hosts: Iterable[str]
) -> tuple[InstanceSample, ...]:
    """Stop what makes room for the operator on one of the hosts; returns what was stopped."""
    utilities = best_first(spare(plan))
    stops = simulate_reclaim(plan, op, utilities, hosts)
    for one in stops:
        utility = utilities[one.operator]
        told = f"{op.name} needs its place; {one.operator} has utility {utility:.2f}"
        plan.stop(one, Why(Reason.MAKE_ROOM, told))
    return stops


def simulate_reclaim(
    plan: Plan, op: Operator, utilities: Mapping[str, float], hosts: Iterable[str]
) -> tuple[InstanceSample, ...]:
    """The fewest instances on one host that must stop so that the new one fits; none if it cannot.

    This is the "preliminary simulation phase" of the preprint's section 4.1. Per host the
    operator with the best utility gives first. Among hosts the fewest stops win, then the best
    utilities, then the earlier lease.
    """
    rank = {name: place for place, name in enumerate(name for name in utilities if name != op.name)}
    found: list[tuple[int, list[int], tuple[InstanceSample, ...]]] = []
    for host in hosts:
        stops = _stops_on(plan, host, op, rank)
        if stops:
            found.append((len(stops), [rank[one.operator] for one in stops], stops))
    return min(found, key=lambda one: one[:2])[2] if found else ()


def _stops_on(
    plan: Plan, host: str, op: Operator, rank: Mapping[str, int]
) -> tuple[InstanceSample, ...]:
    """Instances on the host to stop, best utility first and newest first, until ``op`` fits."""
    room, stops = plan.free[host], list[InstanceSample]()
    givers = [one for one in reversed(plan.on_host(host)) if one.operator in rank]
    for one in sorted(givers, key=lambda one: rank[one.operator]):
        if plan.may_stop(one, [stop.instance for stop in stops]):
            room = room.without_one(plan.operator(one.operator))
            stops.append(one)
            if room.left.fits(op):
                return tuple(stops)
    return ()


def downscaling_procedure(plan: Plan, host: HostSample, spare: Spare, rules: Downscaling) -> None:
    """Fig. 5: simulate a plan, then release, migrate and shut down; else lease another BTU."""
    ends = btu_ends(plan, host)
    if plan.is_given_work(host.host):
        told = f"{ends}, and it has just been given an instance"
        plan.prolong(host, Why(Reason.HOST_NEEDED, told))
        return
    tried = plan.copy()  # phase 1: simulate
    obstacle = empty_host(tried, host.host, ends, spare, rules)
    if obstacle:
        plan.prolong(host, Why(Reason.HOST_NEEDED, f"{ends}; {obstacle}"))
        return
    plan.adopt(tried)  # phases 2 and 3: the same steps in earnest
    plan.release(host, ends + "; its instances can stop or move")


def empty_host(plan: Plan, host: str, ends: Why, spare: Spare, rules: Downscaling) -> str:
    """Stop and move everything on the host; "", or the sentence that says why it cannot be done.

    Of an operator with a positive utility at most ``limit_share`` of its instances (rounded
    up) are released. The others must fit on hosts that run already.
    """
    utilities = spare(plan)
    here = plan.on_host(host)
    # the rounding keeps 0.1 * 30 = 3.0000000000000004 from becoming 4
    left = {
        name: math.ceil(round(rules.limit_share * plan.count(name), 9))
        for name in {one.operator for one in here}
        if name in utilities
    }
    for one in reversed(here):  # phase 2: release operator instances
        name = one.operator
        if left.get(name, 0) > 0 and plan.may_stop(one):
            left[name] -= 1
            plan.stop(one, ends + f"; {name} has utility {utilities[name]:.2f}")
    for one in reversed(plan.on_host(host)):  # phase 3: migrate the others
        target = _new_home(plan, plan.operator(one.operator), host, spare, rules)
        if target is None:
            return f"no other host has room for {one.instance}, which is needed"
        plan.migrate(one, target, ends + f"; {one.operator} is needed and fits on {target}")
    return ""


def _new_home(
    plan: Plan, op: Operator, leaving: str, spare: Spare, rules: Downscaling
) -> str | None:
    """Where an instance moves: Fig. 4 without the host that is given back and without leasing."""
    choice = plan.free.best(op, rules.cache_factor, only_up=True, leaving=leaving)
    if choice is not None:
        return choice.host
    if not rules.reclaim:
        return None
    others = [room.host for room in plan.free.values() if room.up and room.host != leaving]
    stops = _reclaim(plan, op, spare, others)
    return stops[0].host if stops else None


def _names(instances: tuple[InstanceSample, ...]) -> str:
    return ", ".join(one.instance for one in instances)
