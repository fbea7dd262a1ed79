"""Deployments that never scale: over-provisioned (PeerJ CS 141), as submitted, by hand (Henge)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from include.controllers.base import Setting
from include.controllers.first_fit import start_first_fit
from include.controllers.plan import NoMemory, Plan
from include.model.decision import Decision, Reason, Why
from include.model.errors import below_0, unknown_name
from include.model.observation import Observation
from include.model.topology import Topology

TOPOLOGY = "topology"
"""Instances at the start as the topology says."""


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """Never scales: it keeps as many instances as the known peak of the run needs.

    ``instances_each`` above 0 takes that many of every operator instead, and ``instances`` what
    the ``topology`` says, or that with changes by hand: ``"parse=4 store=2"`` (the operators of
    that name of every tenant). An instance that was lost is replaced, and every lease is prolonged.
    """

    setting: Setting
    interval_s: float = 60.0
    instances_each: int = 0
    instances: str = "peak"

    def problems(self) -> Iterator[str]:
        yield from below_0(self, "instances_each")
        if self.instances != "peak":
            yield from manual_problems(self.instances, self.setting.topology)

    def initial_instances(self) -> Mapping[str, int]:
        """What the peak needs, the topology says or a person set; at least one of each."""
        if self.instances != "peak" and not self.instances_each:
            return manual_instances(self.instances, self.setting.topology)
        peak = self.setting.instances_at_peak
        return {
            name: self.instances_each or max(1, peak.get(name, 1))
            for name in self.setting.topology.operator_names
        }

    def initial_memory(self) -> NoMemory:
        return NoMemory()

    def decide(self, memory: NoMemory, observation: Observation) -> tuple[NoMemory, Decision]:
        """Replace what was lost and keep every lease."""
        plan = Plan(self.setting, observation)
        for name, instances in self.initial_instances().items():
            lost = instances - plan.count(name)
            if name in observation.operators:
                for _ in range(lost):
                    sentence = f"{name} has lost {lost} of its {instances} instances"
                    start_first_fit(plan, name, Why(Reason.INSTANCE_LOST, sentence))
        plan.keep_leases(0)
        sentence = "nothing to do: no instance is missing and no lease ends"
        return memory, plan.decision(Why(Reason.NOTHING_TO_DO, sentence))


def manual_instances(text: str, topology: Topology) -> dict[str, int]:
    """Instances of every operator: of those named in ``text`` that many, else as submitted.

    A name stands for the operators of that name of every tenant.
    """
    pairs = (pair.partition("=") for pair in text.split() if "=" in pair)
    numbers = {name: int(number) for name, _, number in pairs}
    return {
        op.name: numbers.get(_plain(op.name), op.instances_at_start)
        for op in topology.operators
        if not op.runs_in
    }


def manual_problems(text: str, topology: Topology) -> Iterator[str]:
    """Everything wrong with the text, each with what to do."""
    options = {_plain(name) for name in topology.operator_names}
    for pair in () if text == TOPOLOGY else text.split():
        name, _, number = pair.partition("=")
        if not number.isdecimal() or int(number) < 1:
            yield f"instances: write name=number with a number of at least 1, got {pair!r}"
        elif name not in options:
            yield f"instances: {unknown_name('operator', name, options)}"


def _plain(name: str) -> str:
    """An operator's name without that of its tenant."""
    return name.rpartition(".")[2]
