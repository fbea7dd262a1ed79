"""What a controller gets to see of the live world."""

from __future__ import annotations

from collections.abc import Mapping

from include.model.observation import HostSample, InstanceSample, OperatorSample
from include.model.topology import Topology
from include.testbeds.live.fleet import LiveHost, LiveInstance
from include.testbeds.live.reading import LiveReading
from include.testbeds.live.services import image_of
from include.testbeds.live.state import RunState


def operator_samples(
    topology: Topology, reading: LiveReading, observed: Mapping[str, Mapping[str, int]]
) -> dict[str, OperatorSample]:
    """A reading by operator; counts are those since ``observed`` ones."""
    return {
        name: OperatorSample(
            operator=name,
            waiting_items=reading.waiting[name],
            durations_ms=tuple(reading.durations_ms.get(name, ())),
            arrived_items=reading.arrived[name] - observed["arrived"].get(name, 0),
            completed_items=reading.completed[name] - observed["completed"].get(name, 0),
        )
        for name in topology.operator_names
    }


def host_sample(state: RunState, host: LiveHost) -> HostSample:
    """A leased host as it is now. Operators whose image it has cached count as its images."""
    cached = {
        name
        for name in state.config.topology.operator_names
        if image_of(state.images, name) in host.images
    }
    return HostSample(
        host=host.name,
        flavor=host.flavor,
        ordered_s=host.ordered_s,
        paid_until_s=host.paid_until_s,
        up=host.up,
        releasing=host.releasing,
        images=frozenset(cached),
        cpu_share=state.reading.cpu_share.get(host.name),
        memory_share=state.reading.memory_share.get(host.name),
    )


def instance_sample(state: RunState, one: LiveInstance) -> InstanceSample:
    """An instance as it is now; its shares are absent until they were read."""
    return InstanceSample(
        instance=one.name,
        operator=one.operator,
        host=f"host-{one.host}",
        started_s=one.started_s,
        ready=one.ready_s is not None,
        stopping=one.stopping,
        cpu_share=state.reading.cpu_share.get(one.name),
        memory_share=state.reading.memory_share.get(one.name),
    )
