"""The two procedures of the BTU-based approach: PeerJ CS 141, Fig. 4 and Fig. 5.

Both work on a Plan. ``spare`` gives the operators that Algorithm 3 lets shrink (name to
utility, best first), counted anew each time because every step changes the utilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from include.controllers.placement import best_host
from include.controllers.plan import Plan
from include.model.observation import HostSample, InstanceSample
from include.model.topology import Operator

Spare = Callable[[], Mapping[str, float]]


def upscaling_procedure(
    plan: Plan, op: Operator, because: str, spare: Spare, cache_factor: float
) -> None:
    """Fig. 4: a host with room, else room reclaimed from other operators, else a new host."""
    choice = best_host(plan.rooms.values(), op, cache_factor)
    if choice is not None:
        why = f"{because}; {choice.host} is the most suitable host ({choice.suitability:.4f})"
        plan.start(op.name, choice.host, why)
        return
    utilities = spare()
    stops = simulate_reclaim(plan, op, utilities)
    if stops:
        for one in stops:
            utility = utilities[one.operator]
            plan.stop(one, f"{op.name} needs its place; {one.operator} has utility {utility:.2f}")
        plan.start(op.name, stops[0].host, f"{because}; in the place of {_names(stops)}")
        return
    handle = plan.lease(f"{because}; no host has room and no operator can make room")
    plan.start(op.name, handle, f"{because}; on the new host")


def simulate_reclaim(
    plan: Plan, op: Operator, utilities: Mapping[str, float]
) -> tuple[InstanceSample, ...]:
    """The fewest instances on one host that must stop so that the new one fits; none if it cannot.

    This is the "preliminary simulation phase" of the preprint's section 4.1. Per host the
    operator with the best utility gives first. Among hosts the fewest stops win, then the best
    utilities, then the earlier lease.
    """
    rank = {name: place for place, name in enumerate(name for name in utilities if name != op.name)}
    found: list[tuple[int, list[int], tuple[InstanceSample, ...]]] = []
    for host in plan.rooms:
        stops = _stops_on(plan, host, op, rank)
        if stops:
            found.append((len(stops), [rank[one.operator] for one in stops], stops))
    return min(found, key=lambda one: one[:2])[2] if found else ()


def _stops_on(
    plan: Plan, host: str, op: Operator, rank: Mapping[str, int]
) -> tuple[InstanceSample, ...]:
    """Instances on the host to stop, best utility first and newest first, until ``op`` fits."""
    room, stops = plan.rooms[host], list[InstanceSample]()
    givers = [one for one in reversed(plan.on_host(host)) if one.operator in rank]
    for one in sorted(givers, key=lambda one: rank[one.operator]):
        if plan.may_stop(one, [stop.instance for stop in stops]):
            room = room.without_one(plan.operator(one.operator))
            stops.append(one)
            if room.left.fits(op):
                return tuple(stops)
    return ()


@dataclass(frozen=True, slots=True)
class Retirement:
    """How one host is emptied: what is stopped, and what moves where."""

    stops: tuple[InstanceSample, ...]
    moves: tuple[tuple[InstanceSample, str], ...]


def downscaling_procedure(
    plan: Plan, host: HostSample, spare: Spare, limit_share: float, cache_factor: float
) -> None:
    """Fig. 5: simulate a plan, then release, migrate and shut down; else lease another BTU."""
    utilities = spare()
    left_s = host.paid_until_s - plan.now_s
    ends = f"the BTU of {host.host} ends in {left_s:.0f} s"
    if plan.is_given_work(host.host):
        plan.prolong(host, f"{ends}, and it has just been given an instance")
        return
    retirement = simulate_retirement(plan, host.host, utilities, limit_share, cache_factor)
    if isinstance(retirement, str):  # phase 1: no feasible plan
        plan.prolong(host, f"{ends}; {retirement}")
        return
    for one in retirement.stops:  # phase 2: release operator instances
        plan.stop(one, f"{ends}; {one.operator} has utility {utilities[one.operator]:.2f}")
    for one, target in retirement.moves:  # phase 3: migrate the others
        plan.migrate(one, target, f"{ends}; {one.operator} is needed and fits on {target}")
    plan.release(
        host,
        f"{ends}; {len(retirement.stops)} of its instances can stop, {len(retirement.moves)} move",
    )


def simulate_retirement(
    plan: Plan, host: str, utilities: Mapping[str, float], limit_share: float, cache_factor: float
) -> Retirement | str:
    """Phase 1 of Fig. 5: the downscaling plan, or the sentence that says why there is none.

    Of an operator with a positive utility at most ``limit_share`` of its instances (rounded
    up) are marked to be released. The others must fit on hosts that run already.
    """
    stops: list[InstanceSample] = []
    moves: list[tuple[InstanceSample, str]] = []
    marked: dict[str, int] = {}
    rooms = {name: room for name, room in plan.rooms.items() if name != host and room.up}
    for one in reversed(plan.on_host(host)):
        name = one.operator
        # the rounding keeps 0.1 * 30 = 3.0000000000000004 from becoming 4
        limit = math.ceil(round(limit_share * plan.count(name), 9)) if name in utilities else 0
        if marked.get(name, 0) < limit and plan.may_stop(one, [stop.instance for stop in stops]):
            marked[name] = marked.get(name, 0) + 1
            stops.append(one)
            continue
        op = plan.operator(name)
        choice = best_host(rooms.values(), op, cache_factor)
        if choice is None:
            return f"no other host has room for {one.instance}, which is needed"
        rooms[choice.host] = rooms[choice.host].with_one(op)
        moves.append((one, choice.host))
    return Retirement(tuple(stops), tuple(moves))


def _names(instances: tuple[InstanceSample, ...]) -> str:
    return ", ".join(one.instance for one in instances)
