"""The protocols of testbeds and their calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from include.model.decision import Decision, Outcome
from include.model.host import HostFlavor
from include.model.observation import Observation
from include.model.topology import Topology
from include.workloads.pattern import Levels

if TYPE_CHECKING:
    import numpy as np


ACTS = ""
"""Observer name of the acting controller; an advisor uses its own name."""

LAST_DURATIONS = 5
"""N of Algorithm 1: number of recorded durations in an observation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedConfig:
    """Conditions of a run, the same for every testbed.

    ``levels_of``: levels of every source by name (the run's times the source's own).
    ``max_hosts``: number of hosts that can be leased. ``calibration`` and ``faults``: dumps of the
    testbed's own models.
    """

    topology: Topology
    levels_of: Mapping[str, Levels]
    flavor: HostFlavor
    max_hosts: int
    btu_s: float
    duration_s: float
    seed: int
    monitor_every_s: float
    calibration: Mapping[str, Any]
    faults: Mapping[str, Any]
    run: str = ""
    experiment: str = ""
    """Labels that a live testbed puts on all its resources."""


class Calibrated(Protocol):
    """The common part of calibrations, which are pydantic models of each testbed."""

    @property
    def service_ms(self) -> dict[str, float]:
        """Mean time to process one item, by operator."""
        ...

    @property
    def memory_factor(self) -> float:
        """Memory that instances reserve, relative to the topology file."""
        ...

    def complete(self, topology: Topology) -> Calibrated:
        """Fill in every operator's service time. Raises SpecError naming operators without one."""
        ...

    def model_dump(self, *, mode: str) -> dict[str, Any]: ...


class Testbed(Protocol):
    """The system that a controller scales. The loop decides about time and order.

    Between observations a testbed itself measures durations, events and utilisation. It returns
    them as columns: table name -> column name -> array.
    """

    @property
    def now_s(self) -> float:
        """Seconds since the run began."""
        ...

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        """Apply the first decision; returns when all its hosts and instances are up."""
        ...

    def advance_to(self, t_s: float) -> None:
        """Let time pass until ``t_s``. Raises ValueError for a time that has passed."""
        ...

    def observe(self, by: str = ACTS) -> Observation:
        """Return the current reading for one observer and reset that observer's counters.

        Other observers' counters are unaffected.
        """
        ...

    def look(self) -> Observation:
        """Return the current reading without resetting any counter."""
        ...

    def apply(self, decision: Decision) -> tuple[Outcome, ...]:
        """Carry out each action in order; impossible ones are refused with a reason."""
        ...

    def take_measurements(self) -> dict[str, dict[str, Any]]:
        """Return and forget the rows measured since the last call, as columns."""
        ...

    def leases(self) -> dict[str, list[Any]]:
        """Lease log without taken leases, as columns of ``lease``; open leases end now."""
        ...

    def take_ended_leases(self) -> dict[str, list[Any]]:
        """Return and forget the leases that have ended, as columns; may be empty."""
        ...

    def snapshot(self) -> dict[str, np.ndarray]:
        """The whole state as arrays, one of them JSON as bytes; never pickled.

        Without measured rows: take them first.
        """
        ...

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from a snapshot. Raises StoreError if it does not fit this run."""
        ...

    def close(self) -> None:
        """Release this process's resources. Safe to call twice and after a failure."""
        ...


@runtime_checkable
class Leasing(Protocol):
    """A testbed whose hosts outlive the process that leased them."""

    def give_back(self) -> None:
        """Give back all resources of the run, from any process, and close.

        Safe at any time and more than once. Raises TestbedError naming what remains.
        """
        ...
