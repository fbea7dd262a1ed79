"""Carrying a decision out on paper, and complaining about what no controller should ask for."""

from __future__ import annotations

from include.model.decision import (
    Action,
    Decision,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.observation import InstanceSample, Observation
from include.runs.guard import planned
from include.testing.clusters import SETTING


class Replay:
    """Carries a decision out action by action; AssertionError at the first that fails.

    Stricter than a run, which refuses what cannot be done and goes on: nothing is acted on that was
    not read, nor twice, and the last host, and the last ready instance of an operator, stay.
    """

    def __init__(self, observation: Observation) -> None:
        self.observed = observation
        self.cluster = planned(observation, SETTING)
        self.decided: set[str] = set()

    def run(self, decision: Decision) -> None:
        for action in decision.actions:
            self._require_careful(action)
            refusal = self.cluster.apply(action)
            assert not refusal, refusal

    def after(self, later_s: float) -> Observation:
        """A world without delays: what was decided has happened when the next tick comes."""
        return self.cluster.after(later_s)

    def _require_careful(self, action: Action) -> None:
        match action:
            case StartInstance(operator=operator):
                assert operator in self.observed.operators, f"{operator} was not read"
            case StopInstance(instance=name):
                self._require_another(self._instance(name))
            case MigrateInstance(instance=name, host=host):
                self._instance(name)
                assert host in self.observed.hosts, f"{host} is not there yet"
                assert self.observed.hosts[host].up, f"{host} is not up"
            case ProlongLease(host=host):
                self._require_undecided(host)
            case ReleaseHost(host=host):
                self._require_undecided(host)
                hosts = len(self.cluster.hosts) + len(self.cluster.ordered)
                assert hosts > 1, "the last host was released"

    def _instance(self, name: str) -> InstanceSample:
        assert name in self.cluster.instances, f"{name} is unknown, stopping or acted on twice"
        instance = self.cluster.instances[name]
        assert instance.operator in self.observed.operators, f"{instance.operator} was not read"
        return instance

    def _require_another(self, instance: InstanceSample) -> None:
        others = [
            other
            for other in self.cluster.instances.values()
            if other.operator == instance.operator and other is not instance
        ]
        if instance.ready:
            assert any(other.ready for other in others), f"the last ready {instance.operator}"

    def _require_undecided(self, host: str) -> None:
        assert host not in self.decided, f"two decisions on the lease of {host}"
        self.decided.add(host)
