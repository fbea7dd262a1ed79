"""Carrying a decision out on paper: on capacities, and on the next observation."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

from include.model.decision import (
    Decision,
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.host import Capacity
from include.model.observation import HostSample, InstanceSample, Observation
from include.testing.builders import a_host, an_instance
from include.testing.clusters import SETTING, TOPOLOGY

ROUNDING = 1e-6


class Replay:
    """Carries a decision out step by step and complains about what no testbed could do."""

    def __init__(self, seen: Observation) -> None:
        self.seen = seen
        self.free = {
            host.host: self._left(host) for host in seen.hosts.values() if not host.releasing
        }
        self.serving = {one.instance: one for one in seen.instances.values() if not one.stopping}
        self.count = Counter(one.operator for one in self.serving.values())
        self.decided: set[str] = set()

    def _left(self, host: HostSample) -> Capacity:
        left = SETTING.flavor.capacity
        for one in self.seen.instances.values():
            left = left.less(TOPOLOGY.operator[one.operator]) if one.host == host.host else left
        return left

    def run(self, decision: Decision) -> None:
        """Carry out every action in order; AssertionError or KeyError at the first that fails."""
        handlers: dict[type, Callable[[Any], object]] = {
            StartInstance: lambda action: self._start(action.operator, action.host),
            StopInstance: lambda action: self._stop(action.instance),
            MigrateInstance: self._migrate,
            LeaseHost: self._lease,
            ProlongLease: lambda action: self._decide_on(action.host),
            ReleaseHost: self._release,
        }
        for action in decision.actions:
            handlers[type(action)](action)

    def _start(self, operator: str, host: str) -> None:
        assert operator in self.seen.operators, f"{operator} was not read"
        op = TOPOLOGY.operator[operator]
        left = self.free[host].less(op)  # KeyError: not a host that takes instances
        assert min(left.cpu_cores, left.memory_mb) >= -ROUNDING, f"no room on {host}"
        self.free[host] = left
        self.count[operator] += 1

    def _stop(self, instance: str) -> InstanceSample:
        one = self.serving.pop(instance)  # KeyError: unknown, stopping or acted on twice
        assert one.operator in self.seen.operators, f"{one.operator} was not read"
        self.count[one.operator] -= 1
        assert self.count[one.operator] > 0, f"the last {one.operator} was stopped"
        if one.ready:
            others = [o for o in self.serving.values() if o.operator == one.operator]
            assert any(other.ready for other in others), f"the last ready {one.operator}"
        self.free[one.host] = self.free[one.host].more(TOPOLOGY.operator[one.operator])
        return one

    def _migrate(self, action: MigrateInstance) -> None:
        one = self.serving.pop(action.instance)
        assert one.host != action.host
        assert not (action.overlaps and action.serves_s), "it is stopped when its copy is ready"
        assert self.seen.hosts[action.host].up
        self._start(one.operator, action.host)
        self.count[one.operator] -= 1

    def _lease(self, action: LeaseHost) -> None:
        assert action.flavor == SETTING.flavor.name
        assert action.handle not in self.free
        assert action.handle not in self.seen.hosts
        self.free[action.handle] = SETTING.flavor.capacity

    def _decide_on(self, host: str) -> None:
        assert host in self.seen.hosts
        assert not self.seen.hosts[host].releasing
        assert host not in self.decided, f"two decisions on the lease of {host}"
        self.decided.add(host)

    def _release(self, action: ReleaseHost) -> None:
        self._decide_on(action.host)
        assert not any(one.host == action.host for one in self.serving.values())
        del self.free[action.host]
        assert self.free, "the last host was released"


def carried_out(seen: Observation, decision: Decision, later_s: float) -> Observation:
    """A world without delays: what was decided has happened when the next tick comes."""
    hosts, running = dict(seen.hosts), dict(seen.instances)
    names: dict[str, str] = {}
    for number, action in enumerate(decision.actions):
        new = f"{seen.now_s:.0f}-{number}"
        match action:
            case LeaseHost(handle=handle):
                names[handle] = f"h{new}"
                until_s = seen.now_s + SETTING.btu_s
                hosts[f"h{new}"] = a_host(f"h{new}", ordered_s=seen.now_s, paid_until_s=until_s)
            case ProlongLease(host=host):
                until_s = hosts[host].paid_until_s + SETTING.btu_s
                hosts[host] = dataclasses.replace(hosts[host], paid_until_s=until_s)
            case ReleaseHost(host=host):
                del hosts[host]
            case StartInstance(operator=operator, host=host):
                where = names.get(host, host)
                running[f"i{new}"] = an_instance(f"i{new}", operator, where, started_s=seen.now_s)
            case StopInstance(instance=instance):
                del running[instance]
            case MigrateInstance(instance=instance, host=host):
                one = running.pop(instance)
                running[f"i{new}"] = an_instance(f"i{new}", one.operator, host)
    return Observation(
        now_s=seen.now_s + later_s, operators=seen.operators, hosts=hosts, instances=running
    )
