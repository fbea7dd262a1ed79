"""A short run on a real Flink, for tests: deployed, acted on, measured, given back."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from include.model.decision import Action, LeaseHost, Outcome, StartInstance
from include.model.host import HostFlavor
from include.model.topology import Edge, Operator, Source, Topology
from include.testbeds.base import TestbedConfig
from include.testbeds.flink.job import schedules_of
from include.testbeds.flink.rows import bounds_of, counts, row_files
from include.testbeds.flink.testbed import FlinkTestbed
from include.testing import builders
from include.testing.builders import decision
from include.workloads.pattern import Levels
from tests.builders import a_config
from tests.live.world import crowding

FLAVOR = HostFlavor(name="four", vcpus=4, memory_mb=4000)
WITHIN_S = 60.0


def a_line(*, state_mb: float = 0.0) -> Topology:
    """A source, then front, then back, which gets two of three, and an output of its own."""
    return Topology(
        name="line",
        level_unit="items",
        emission_period_s=1.0,
        operators=(
            an_operator("front", 40),
            an_operator("back", 30, state_mb),
            an_operator("end", 5),
        ),
        sources=(Source(name="S", label="S", items_per_level=1, size_bytes=100),),
        edges=(
            Edge(origin="S", target="front"),
            Edge(origin="front", target="back", items_out=2, items_in=3),
            Edge(origin="front", target="end"),
            Edge(origin="back", target="end"),
        ),
    )


def a_join() -> Topology:
    """One operator gets all from a quick one and two of three from a slow one; half go on."""
    edges = {("S", "quick"): (1, 1), ("S", "slow"): (2, 3), ("quick", "both"): (1, 1),
             ("slow", "both"): (1, 1), ("both", "half"): (1, 2)}  # fmt: skip
    return replace(
        a_line(),
        name="join",
        operators=tuple(
            an_operator(name, service_ms)
            for name, service_ms in {"quick": 5, "slow": 100, "both": 5, "half": 5}.items()
        ),
        edges=tuple(
            Edge(origin=origin, target=target, items_out=leave, items_in=enter)
            for (origin, target), (leave, enter) in edges.items()
        ),
    )


def an_operator(name: str, service_ms: float, state_mb: float = 0.0) -> Operator:
    """One that takes a core and a quarter of a host."""
    needs = {
        "slo_ms": 10 * service_ms,
        "cpu_cores": 1.0,
        "storage_mb": 10,
        "service_ms": service_ms,
    }
    return builders.an_operator(name, **needs, stateful=state_mb > 0, state_mb=state_mb)


@dataclass
class FlinkRun:
    """A deployed run; ``at`` is how far its time has come."""

    config: TestbedConfig
    testbed: FlinkTestbed

    @property
    def state(self) -> Any:
        return self.testbed._state

    def again(self) -> FlinkTestbed:
        """The same run, as the next process has it."""
        return FlinkTestbed(self.config)

    def apply(self, *actions: Action) -> tuple[Outcome, ...]:
        """One decision; every action is accepted."""
        outcomes = self.testbed.apply(decision(*actions))
        assert all(each.accepted for each in outcomes), outcomes
        return outcomes

    def until(self, condition: Callable[[], Any], within_s: float = WITHIN_S) -> None:
        """Let time pass until something holds; longer on a crowded machine."""
        end_s = time.monotonic() + within_s * min(4.0, crowding())
        while not condition():
            assert time.monotonic() < end_s, self.events()
            self.testbed.advance_to(max(self.testbed.now_s, self.state.now_s()) + 0.2)

    def settle(self) -> None:
        """Until everything that was ordered runs."""
        self.until(lambda: self.testbed._reconciler.settled)

    def events(self) -> list[tuple[str, str, str]]:
        """What has happened so far."""
        rows = self.state.journal.read(0)[0].get("event", {})
        columns = [rows.get(name, []) for name in ("event", "subject", "detail")]
        return list(zip(*columns, strict=True))

    def rescales(self) -> list[dict[str, Any]]:
        """Rows of rescales so far."""
        columns = self.state.journal.read(0)[0].get("rescale", {})
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def finish(self) -> dict[str, dict[str, Any]]:
        """Go on to the end, or where a crowded machine has passed it; returns the tables."""
        self.testbed.advance_to(max(self.config.duration_s, self.testbed.now_s + 5))
        return self.testbed.take_measurements()

    def assert_exactly_once(self) -> dict[str, int]:
        """Every operator got what arithmetic says, each item once."""
        state, expected = self.state, expected_items(self.config)
        bounds = bounds_of(state.starts.look())
        numbers: dict[str, list[tuple[int, int]]] = {name: [] for name in state.operators}
        for file in row_files(state.folder, state.operators):
            if counts(file, bounds):
                numbers[file.operator] += [(row.path, row.number) for row in file.rows()]
        assert {name: len(of) for name, of in numbers.items()} == expected
        assert {name: len(set(of)) for name, of in numbers.items()} == expected
        return expected


def expected_items(config: TestbedConfig) -> dict[str, int]:
    """Of how many items of every operator there are rows after a whole run: by every path that
    leads to it, as `Edge.java` rounds them, every nth.
    """
    topology = config.topology
    by_path = {name: [schedule.items] for name, schedule in schedules_of(config).items()}
    for name in topology.flow_order:
        by_path[name] = [
            (items * edge.items_out + place * edge.items_in // len(by_path[edge.origin]))
            // edge.items_in
            for edge in topology.edges
            if edge.target == name
            for place, items in enumerate(by_path[edge.origin])
        ]
    every = config.calibration.get("sample_every_items", 1)
    return {name: sum(-(-n // every) for n in by_path[name]) for name in topology.operator_names}


def configured(
    *,
    topology: Topology | None = None,
    rate: float = 20,
    emits_s: float = 50,
    duration_s: float = 90,
    **calibration: Any,
) -> TestbedConfig:
    """A run whose source emits for a while; then it has time to finish what waits."""
    usual = {"host_boot_s": [2, 2], "checkpoint_every_s": 2, "lag_limit_ms": 1000}
    return a_config(
        topology or a_line(),
        Levels((0.0, emits_s), (rate, 0.0)),
        flavor=FLAVOR,
        max_hosts=6,
        duration_s=duration_s,
        monitor_every_s=5,
        calibration=usual | calibration,
        run=f"test-{uuid.uuid4().hex[:8]}",
        experiment="test",
    )


@contextmanager
def flink_run(config: TestbedConfig, first: tuple[tuple[str, ...], ...]) -> Iterator[FlinkRun]:
    """A run with a host for each of ``first``, and these operators' instances on it."""
    testbed = FlinkTestbed(config)
    actions: list[Action] = []
    for number, operators in enumerate(first):
        actions.append(LeaseHost(FLAVOR.name, f"h{number}"))
        actions += [StartInstance(name, f"h{number}") for name in operators]
    try:
        testbed.deploy(decision(*actions))
        yield FlinkRun(config, testbed)
    finally:
        testbed.give_back()
