"""The free parameters of virtual testbeds and the faults they may inject, read from YAML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from include.model.errors import SpecError, unknown_name
from include.model.topology import Topology
from include.testbeds.calibrations import (
    LaterSettings,
    Parameters,
    calibration_folders,
    service_times,
)
from include.workloads.topology_file import Bounded, NotNegative, Positive, Share

if TYPE_CHECKING:
    from include.testbeds.virtual.draws import Draws

FOLDERS = calibration_folders("virtual", Path(__file__).parent)


def _in_order(bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = bounds
    if not 0 <= low <= high:
        raise ValueError(f"give [lowest, highest] with 0 <= lowest <= highest, got {bounds}")
    return bounds


Bounds = Annotated[tuple[float, float], AfterValidator(_in_order)]
MOST_PER_HOUR = 3600


def _one_a_second(per_hour: float) -> float:
    if per_hour > MOST_PER_HOUR:
        raise ValueError(f"must be at most {MOST_PER_HOUR}, one a second, got {per_hour:g}")
    return per_hour


PerHour = Annotated[NotNegative, AfterValidator(_one_a_second)]


def _above_zero(bounds: tuple[float, float]) -> tuple[float, float]:
    if not bounds[0]:
        raise ValueError(f"give [lowest, highest] above 0, got {bounds}")
    return bounds


class HotPhase(Bounded):
    """How slow a job is that was just started: for ``hot_s`` seconds an item takes ``hot_factor``
    times its usual time. Both are drawn for every start, uniform between their bounds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    hot_s: Bounds = (0, 0)
    hot_factor: Annotated[Bounds, AfterValidator(_above_zero)] = (1, 1)

    def hot_phase(self, draws: Draws, start: int) -> tuple[int, float]:
        """Length in us and factor of the phase after the start of this number."""
        low, high = self.hot_factor
        share = float(draws.generator("hot_factor", str(start)).random())
        return draws.between_us("hot", str(start), self.hot_s), low + share * (high - low)


class WholeRescale(LaterSettings, HotPhase):
    """What it does to a job that all instances which come and go come and go at once.

    ``gap_s``: seconds as they were measured, of which one is drawn for every rescale: for so long
    nothing is done that counts, and for ``per_instance_s`` longer with every instance that runs
    after it. What is done between the checkpoint and the end of the old instances is done again by
    the new ones, so the gap begins with the checkpoint. With ``buffer_items`` the time that the
    checkpoint takes follows from what instances do, and these seconds come after it.
    ``packs``: the engine says where instances run, not the controller. Hosts are filled one after
    another, in the order of their leases, and CPU is not shared on them. On ``simulated`` only.
    """

    LATER: ClassVar[frozenset[str]] = frozenset({"hot_s", "hot_factor", "per_instance_s"})

    gap_s: Annotated[tuple[NotNegative, ...], Field(min_length=1)]
    per_instance_s: NotNegative = 0
    packs: bool = False

    def gap(self, draws: Draws, rescale: int, instances: int) -> float:
        """Seconds of the rescale of this number, after which so many instances run."""
        generator = draws.generator("rescale", str(rescale))
        drawn_s = self.gap_s[int(generator.integers(len(self.gap_s)))]
        return drawn_s + self.per_instance_s * instances


class VirtualCalibration(LaterSettings, BaseModel):
    """Parameters of virtual testbeds; calibrations/*.yaml has the units.

    ``flow`` accepts all of them; drift, pauses, prefetch, buffers and held memory have an effect on
    ``simulated`` only.
    """

    LATER: ClassVar[frozenset[str]] = frozenset(
        {
            "arrival_cv",
            "buffer_items",
            "cpu_residual_block",
            "cpu_residuals",
            "host_release_s",
            "operator_pause_s",
            "rescale",
        }
    )
    BY_OPERATOR: ClassVar[tuple[str, ...]] = ("buffer_items", "held_mb", "operator_pause_s")
    """Settings of some operators; a name that the topology does not have is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    service_ms: dict[str, Positive] = {}
    service_cv: NotNegative = 0.5
    arrival_cv: NotNegative = 0
    """Of the gaps between items of a source; 0 evenly spaced, 1 Poisson."""
    latency_ms: NotNegative = 5
    stalls_per_hour: PerHour = 0
    stall_s: Bounds = (5, 20)
    memory_factor: Positive = 1
    host_boot_s: Bounds = (30, 60)
    host_release_s: Bounds = (0, 0)
    """From the release of a host without instances until its lease ends. 0: one that is released
    as its BTU ends pays for no other; on a real engine it does."""
    instance_start_s: Bounds = (5, 10)
    image_pull_s: Bounds = (5, 15)
    drain_s: NotNegative = 20
    timestamp_resolution_s: NotNegative = 0
    sample_every_items: Annotated[int, Field(ge=1)] = 10
    cpu_noise: NotNegative = 0.02
    cpu_residuals: tuple[float, ...] = ()
    """CPU shares that recorded readings were away from the model, in order."""
    cpu_residual_block: Annotated[int, Field(ge=1)] = 20
    """Readings on end that are drawn at a time."""
    cpu_when_busy: Share = 1
    """CPU share of an instance that is always busy; the rest of its time it waits for input."""
    cpu_drift: NotNegative = 0
    cpu_drift_s: Positive = 10
    """Slow relative drift of all CPU shares: its deviation and correlation time."""
    pause_on_start_s: NotNegative = 0
    pause_on_stop_s: NotNegative = 0
    """Time without new items while state moves: before an instance is ready, and after a stop."""
    operator_pause_s: dict[str, NotNegative] = {}
    """By operator: its pause at either, in place of these two."""
    cpu_in_pause: Share = 0
    transfer_ms: NotNegative = 0
    """Mean transfer time of an item (exponential); adds to its age but uses no CPU."""
    prefetch: Annotated[int, Field(ge=0)] = 0
    """Most items of each queue that a broker gives an instance, the one in service included: they
    wait there even if another instance is idle. 0: an item is bound when its service begins."""
    buffer_items: dict[str, Positive] = {}
    """By operator, all or none: items that one of the buffers between it and those that send to it
    holds. With them an instance has room for so many items, and what finds none waits upstream, at
    last at the source (``simulated/bounded.py``; ``QueueingNetwork`` has how many buffers there
    are)."""
    rescale: WholeRescale | None = None
    """Without it instances come and go one by one, and the others go on."""
    held_mb: dict[str, tuple[NotNegative, NotNegative]] = {}
    """By operator: memory of each instance, and of the state divided among all instances."""

    def complete(self, topology: Topology) -> Self:
        """Fill in every operator's service time. Raises SpecError naming operators without one,
        unknown ones, or operators that run in others' instances, which can hold no items of theirs.
        """
        problems = list(self._wrong_names(topology))
        try:
            service_ms = service_times(self.service_ms, topology)
        except SpecError as error:
            raise SpecError(error.source, [*error.problems, *problems]) from None
        if problems:
            raise SpecError(f"topology {topology.name}", problems)
        return self.model_copy(update={"service_ms": service_ms})

    def _wrong_names(self, topology: Topology) -> Iterator[str]:
        if self.prefetch and (inside := [op.name for op in topology.operators if op.runs_in]):
            yield f"prefetch must be 0: {', '.join(inside)} has no instances of its own"
        for setting in self.BY_OPERATOR:
            for name in getattr(self, setting):
                if name not in topology.operator:
                    yield f"{setting}: {unknown_name('operator', name, topology.operator)}"
        if not self.buffer_items:
            return
        if self.prefetch:
            yield "give buffer_items or prefetch, not both"
        for op in topology.operators:
            if op.runs_in:
                yield f"buffer_items: {op.name} has no instances of its own"
            if op.name not in self.buffer_items:
                yield f"buffer_items must have all operators or none; add {op.name}"


class VirtualFaults(Bounded):
    """Fault rates per host, instance or monitor; all off by default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host_boot_failure: Share = 0
    host_boot_delay: Share = 0
    host_boot_delay_s: Bounds = (120, 300)
    host_losses_per_hour: PerHour = 0
    instance_crashes_per_hour: PerHour = 0
    monitoring_gaps_per_hour: PerHour = 0
    monitoring_gap_s: Bounds = (30, 120)


PARAMETERS = Parameters(VirtualCalibration, VirtualFaults, FOLDERS)
