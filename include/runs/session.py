"""A controller at work on a testbed: what one window needs, and what it hands to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from include.controllers.building import memory_adapter, not_stored
from include.controllers.deployment import first_deployment
from include.experiment.run import Run
from include.model.cluster import Changes, operator_of
from include.model.compliance import LEVELS
from include.model.decision import (
    ACTION_NAMES,
    LeaseHost,
    MigrateInstance,
    Outcome,
    ProlongLease,
    Reasoned,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.errors import ControllerFailed
from include.runs.advice import NO_CHANGES, Advice, advice_rows
from include.runs.loop import Loop, Tick
from include.runs.measurements.rows import DecisionRow
from include.testbeds.base import ACTS
from include.testbeds.snapshots import packed, unpacked

VERSION = 1
"""Of what a snapshot has of the memories."""
FAILED = "advisors_failed"
"""In the summary of a window, where an advisor did."""


@dataclass(slots=True)
class Session:
    """A loop and the memories of its controllers; stored as one snapshot between windows.

    ``memories`` are by name; that of the controller that acts is called ``ACTS``.
    """

    run_of: Run
    loop: Loop
    memories: Mapping[str, Any]

    @classmethod
    def open(cls, run: Run) -> Session:
        """At second 0, with nothing deployed."""
        controller, advisors = run.build_controller(), run.build_advisors()
        loop = Loop(run.build_testbed(), controller, run.setting, advisors)
        deciders = {ACTS: controller, **advisors}
        memories = {who: decider.initial_memory() for who, decider in deciders.items()}
        return cls(run, loop, memories)

    def deploy(self) -> None:
        """Start the first instances and return when they are up; no rows are kept of it."""
        instances = self.loop.controller.initial_instances()
        self.loop.testbed.deploy(first_deployment(self.loop.setting, instances))
        self.loop.testbed.take_measurements()

    def run(self, start_s: float, end_s: float) -> dict[str, dict[str, list[Any]]]:
        """Every turn of a window; returns the tables ``decision`` and, with advisors, ``advice``
        as columns."""
        ticks: list[Tick] = []
        advice: list[tuple[Advice, Changes]] = []
        for turn in self.loop.turns(self.memories, start_s, end_s):
            if turn.acted:
                ticks.append(turn.acted)
            changes = turn.acted.changes if turn.acted and turn.advice else NO_CHANGES
            advice += [(asked, changes) for asked in turn.advice]
            self.memories = turn.memories
        tables = {"decision": _decision_rows(ticks)}
        if self.loop.advisors:
            tables["advice"] = advice_rows(advice, self.run_of.topology.operator_names)
        return tables

    def summary(self, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Counts of a window and the state at its end, as lines of progress show them."""
        # Not observe: what arrived is for the next tick to count.
        observation = self.loop.testbed.look()
        measured = tables.get("processing_duration", {})
        within = dict.fromkeys((name for name, _ in LEVELS), 0)
        samples = 0
        if measured:
            codes, names = measured["operator"]
            slo_ms = np.array([self.run_of.topology.operator[n].slo_ms for n in names])[codes]
            durations_ms, samples = measured["duration_ms"], len(measured["duration_ms"])
            within = {name: int((durations_ms <= slo_ms * factor).sum()) for name, factor in LEVELS}
        activities = list(tables.get("scaling_activity", {}).get("activity", []))
        return {
            "samples": samples,
            "samples_within": within,
            "instances": sum(not instance.stopping for instance in observation.instances.values()),
            "hosts": len(observation.hosts),
            "waiting_items": sum(sample.waiting_items for sample in observation.operators.values()),
            "scalings": {name: activities.count(name) for name in sorted(set(activities))},
            "refused": tables["decision"]["accepted"].count(False),
            **_failures(tables.get("advice", {})),
        }

    def snapshot(self) -> dict[str, np.ndarray]:
        """The testbed's arrays, and the memory of the controller and of each advisor.

        Raises ControllerFailed where a memory cannot be stored.
        """
        plain = {who: self._plain(who, memory) for who, memory in self.memories.items()}
        memories = packed({"memories": plain}, VERSION)
        return {"memories": memories, **self.loop.testbed.snapshot()}

    def _plain(self, who: str, memory: Any) -> Any:
        try:
            return memory_adapter(memory.__class__).dump_python(memory, mode="json")
        except Exception as error:
            name = self.run_of.spec.controller if who == ACTS else f"advisor {who}"
            raise ControllerFailed(f"{name}: {not_stored(error)}") from error

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from a snapshot of the same run."""
        self.loop.testbed.restore(arrays)
        plain = unpacked(arrays["memories"], VERSION)["memories"]
        self.memories = {
            who: memory_adapter(memory.__class__).validate_python(plain[who])
            for who, memory in self.memories.items()
        }

    def close(self) -> None:
        """Let go of what this process holds; what is leased stays for the next one."""
        self.loop.testbed.close()


def _decision_rows(ticks: Iterable[Tick]) -> dict[str, list[Any]]:
    """Columns of the table ``decision``: one row per action, or one that says why to wait."""
    rows = [row for tick in ticks for row in _rows(tick)]
    return {field.name: [getattr(row, field.name) for row in rows] for field in fields(DecisionRow)}


def _rows(tick: Tick) -> Iterable[DecisionRow]:
    now_s = tick.observed.now_s
    if not tick.outcomes:
        why = tick.decided
        yield DecisionRow(now_s, 0, "wait", "", "", "", True, why.reason, why.because, "")
    for step, (decided, outcome) in enumerate(zip(tick.decided.steps, tick.outcomes, strict=True)):
        yield _row(step, decided, outcome, tick)


def _row(step: int, decided: Reasoned, outcome: Outcome, tick: Tick) -> DecisionRow:
    action, subject = outcome.action, outcome.subject
    match action:
        case StartInstance():
            host = action.host
        case StopInstance():
            instance = tick.observed.instances.get(action.instance)
            subject, host = subject or action.instance, instance.host if instance else ""
        case MigrateInstance():
            subject, host = subject or action.instance, action.host
        case LeaseHost():
            host = subject
        case ProlongLease() | ReleaseHost():
            host = subject = action.host
    return DecisionRow(
        tick.observed.now_s,
        step,
        ACTION_NAMES[type(action)],
        operator_of(action, tick.observed),
        subject,
        host,
        outcome.accepted,
        decided.reason,
        decided.because,
        outcome.detail,
    )


def _failures(advice: Mapping[str, Sequence[Any]]) -> dict[str, dict[str, str]]:
    """Why advisors failed, by name the last error of each; nothing where none did."""
    if not any(advice.get("failed", ())):
        return {}
    rows = zip(advice["advisor"], advice["failed"], advice["because"], strict=True)
    return {FAILED: {who: because for who, failed, because in rows if failed}}


def failed_advisors(summaries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The last error of every advisor that failed, by name, from the summaries of windows."""
    return {who: error for summary in summaries for who, error in summary.get(FAILED, {}).items()}
