"""Refuse what cannot be done, and say why: a pure check between controller and testbed."""

from __future__ import annotations

from include.controllers.base import Setting
from include.model.cluster import PlannedCluster
from include.model.decision import Decision, Reasoned
from include.model.observation import Observation


def planned(observation: Observation, setting: Setting) -> PlannedCluster:
    """The observed cluster, for the actions of a decision to be applied to."""
    return PlannedCluster(
        observed=observation,
        topology=setting.topology,
        flavor=setting.flavor,
        max_hosts=setting.max_hosts,
        btu_s=setting.btu_s,
    )


def check(
    decision: Decision, observation: Observation, setting: Setting
) -> list[tuple[Reasoned, str]]:
    """Every step of a decision, and why it is refused ("" when it is not), as if those before it
    were carried out."""
    cluster = planned(observation, setting)
    return [(step, cluster.apply(step.action)) for step in decision.steps]
