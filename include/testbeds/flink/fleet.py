"""TaskManagers as hosts and subtasks as instances, as one process hands them to the next."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from include.testbeds.fleet import Fleet
from include.testbeds.live.fleet import LeasedHost, OrderedInstance
from include.testbeds.live.processes import NOT_STARTED, DetachedProcess


@dataclass(slots=True, kw_only=True)
class FlinkHost(LeasedHost):
    """A TaskManager of the host's name."""

    process: DetachedProcess = NOT_STARTED
    up_s: float | None = None

    @property
    def up(self) -> bool:
        """Whether it is registered, and its boot is over."""
        return self.up_s is not None


@dataclass(slots=True, kw_only=True)
class FlinkInstance(OrderedInstance):
    """A place among an operator's subtasks; ``runs`` from when it was first asked for."""

    runs: bool = False


FlinkFleet = Fleet[FlinkHost, FlinkInstance]


def wanted(fleet: FlinkFleet, startable_s: float) -> list[FlinkInstance]:
    """The instances that are to run now: those that do, and those on hosts that are up, whose
    start is over.

    ``startable_s``: orders up to that second of the run. One that migrates runs until its copy can;
    the copy takes its place in the same rescale.
    """
    able = {
        one.number
        for one in fleet.instances.values()
        if not one.stopping
        and (
            one.ready_s is not None  # it runs, wherever Flink has put it
            or (fleet.hosts[one.host].up and one.started_s <= startable_s)
        )
    }
    return [
        one
        for one in fleet.instances.values()
        if one.number in able or (one.stopping and _waits_for_copy(one, fleet, able))
    ]


def _waits_for_copy(one: FlinkInstance, fleet: FlinkFleet, able: set[int]) -> bool:
    copy = fleet.instances.get(one.successor)
    return copy is not None and copy.number not in able


def by_operator(instances: list[FlinkInstance], operators: tuple[str, ...]) -> dict[str, int]:
    """How many of each operator are to run: at least one, or there would be no job."""
    counts = Counter(one.operator for one in instances)
    return {name: max(1, counts[name]) for name in operators}
