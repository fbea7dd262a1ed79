"""The contract every testbed keeps."""

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
    from pydantic import BaseModel


ACTS = ""
"""Observes for the controller that acts; an advisor observes by its own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedConfig:
    """Everything that is decided before a run starts, the same for every testbed.

    ``levels_of`` holds the levels of every source by name (that of the run, times its own).
    ``max_hosts`` is how many hosts there are to lease. ``calibration`` and ``faults`` hold what
    the testbed in question understands.
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
    """Names that a live testbed puts on everything it holds."""


class Calibrated(Protocol):
    """What runs need to know of a calibration, a pydantic model of the testbed's own."""

    @property
    def service_ms(self) -> dict[str, float]:
        """Mean time to process one item, by operator."""
        ...

    @property
    def memory_factor(self) -> float:
        """What instances reserve, relative to the topology file."""
        ...

    def complete(self, topology: Topology) -> Calibrated:
        """With a service time for every operator. Raises SpecError naming those without one."""
        ...

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Plain values."""
        ...


class Parameters(Protocol):
    """What can be set about a testbed; a module with these names is one."""

    @property
    def Faults(self) -> type[BaseModel]:  # noqa: N802  the name of a class
        """The model of a spec's ``faults``."""
        ...

    def calibration_for(self, topology_name: str) -> str:
        """The calibration that a topology gets unasked."""
        ...

    def calibration_names(self) -> tuple[str, ...]:
        """The calibrations that come with the project."""
        ...

    def load_calibration(self, name_or_path: str) -> Calibrated:
        """A calibration by name, or from a YAML file. Raises SpecError with every problem."""
        ...


class Testbed(Protocol):
    """What controllers act on. The loop owns time and order; a testbed obeys.

    A testbed measures by itself what happens between observations (durations, events,
    utilisation) and hands it over as columns: table name -> column name -> array.
    """

    @property
    def now_s(self) -> float:
        """Seconds since the run began."""
        ...

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        """Apply the first decision and return when everything it started is up."""
        ...

    def advance_to(self, t_s: float) -> None:
        """Let time pass until ``t_s``. Raises ValueError for a time that has passed."""
        ...

    def observe(self, by: str = ACTS) -> Observation:
        """What the monitor sees now, for whoever decides: its next counts start from here.

        Those of anybody else who observes go on, so that nobody takes anything from another.
        """
        ...

    def look(self) -> Observation:
        """The same for nobody: counts go on, so the next :meth:`observe` misses nothing."""
        ...

    def apply(self, decision: Decision) -> tuple[Outcome, ...]:
        """Carry out each action in order; one that cannot be done is refused with a reason."""
        ...

    def take_measurements(self) -> dict[str, dict[str, Any]]:
        """Rows measured since the last call, as columns, and forget them."""
        ...

    def leases(self) -> dict[str, list[Any]]:
        """The lease log so far, as columns of the table ``lease``; open leases end now.

        Without those that were taken.
        """
        ...

    def take_ended_leases(self) -> dict[str, list[Any]]:
        """What the lease log has of leases that are over, and forget them; may be none."""
        ...

    def snapshot(self) -> dict[str, np.ndarray]:
        """The whole state as arrays (a JSON text as bytes among them); never pickled."""
        ...

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from a snapshot. Raises StoreError when it does not fit this run."""
        ...

    def close(self) -> None:
        """Let go of what this process holds. Safe to call twice and after a failure."""
        ...


@runtime_checkable
class Leasing(Protocol):
    """A testbed whose hosts outlive the process that leased them."""

    def give_back(self) -> None:
        """Give back everything the run holds, whoever leased it, and close. Safe at any time and
        more than once. Raises TestbedError with what could not be given back."""
        ...
