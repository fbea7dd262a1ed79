"""A controller at work on a testbed: what one window needs, and what it hands to the next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from include.control.loop import Loop, Tick
from include.control.trace import decision_rows
from include.controllers.base import Setting
from include.controllers.deployment import first_deployment
from include.experiment.run import Run
from include.model.compliance import LEVELS
from include.testbeds.base import Leasing

if TYPE_CHECKING:
    import numpy as np


@dataclass(slots=True)
class Session:
    """A loop and the controller's memory; stored as one snapshot between windows."""

    run_of: Run
    loop: Loop
    setting: Setting
    memory: Any

    @classmethod
    def open(cls, run: Run) -> Session:
        """At second 0, with nothing deployed."""
        controller = run.build_controller()
        loop = Loop(run.build_testbed(), controller, run.setting)
        return cls(run, loop, run.setting, controller.initial_memory())

    def deploy(self) -> None:
        """Start the first instances and return when they are up; no rows are kept of it."""
        instances = self.loop.controller.initial_instances()
        self.loop.deploy(first_deployment(self.setting, instances))
        self.loop.testbed.take_measurements()

    def run(self, start_s: float, end_s: float) -> dict[str, list[Any]]:
        """Every tick of a window; returns its decisions as columns."""
        ticks: list[Tick] = []
        for tick in self.loop.run(self.memory, start_s, end_s):
            ticks.append(tick)
            self.memory = tick.memory
        return decision_rows(ticks)

    def summary(self, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """What a person wants to see of a window at once: counts, and what stands at its end."""
        seen = self.loop.testbed.look()  # not observe: what arrived is for the next tick to count
        measured = tables.get("processing_duration", {})
        within = dict.fromkeys((name for name, _ in LEVELS), 0)
        samples = 0
        if measured:
            codes, names = measured["operator"]
            slo_ms = _by_code(codes, [self.run_of.topology.operator[n].slo_ms for n in names])
            durations_ms, samples = measured["duration_ms"], len(measured["duration_ms"])
            within = {name: int((durations_ms <= slo_ms * factor).sum()) for name, factor in LEVELS}
        activities = list(tables.get("scaling_activity", {}).get("activity", []))
        return {
            "samples": samples,
            "samples_within": within,
            "instances": sum(not one.stopping for one in seen.instances.values()),
            "hosts": len(seen.hosts),
            "waiting_items": sum(one.waiting_items for one in seen.operators.values()),
            "scalings": {name: activities.count(name) for name in sorted(set(activities))},
            "refused": tables["decision"]["accepted"].count(False),
        }

    def snapshot(self) -> dict[str, np.ndarray]:
        """The testbed's arrays and the controller's memory."""
        import numpy as np

        memory = TypeAdapter(type(self.memory)).dump_python(self.memory, mode="json")
        text = json.dumps(memory, sort_keys=True, separators=(",", ":")).encode()
        return {"memory": np.frombuffer(text, dtype=np.uint8), **self.loop.testbed.snapshot()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from a snapshot of the same run."""
        memory = json.loads(arrays["memory"].tobytes())
        self.memory = TypeAdapter(type(self.memory)).validate_python(memory)
        self.loop.testbed.restore(arrays)

    def close(self) -> None:
        """Let go of what this process holds; what is leased stays for the next one."""
        self.loop.testbed.close()

    def give_back(self) -> None:
        """End the run on its testbed, and whatever is leased for it."""
        testbed = self.loop.testbed
        if isinstance(testbed, Leasing):
            testbed.give_back()
        else:
            testbed.close()


def _by_code(codes: np.ndarray, values: list[float]) -> np.ndarray:
    import numpy as np

    rows: np.ndarray = np.array(values)[codes]
    return rows
