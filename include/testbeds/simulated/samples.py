"""What a controller gets to see of the simulated world: records turned into samples."""

from __future__ import annotations

from include.model.observation import HostSample, InstanceSample, OperatorSample
from include.testbeds.simulated.fleet import Host, Instance
from include.testbeds.simulated.monitor import Monitor


def operator_samples(monitor: Monitor) -> dict[str, OperatorSample]:
    """The last reading of every operator, in the order of the topology's file.

    Counts of items are those since the last call.
    """
    network = monitor.network
    waiting = monitor.reading.waiting.tolist()
    arrived, completed = monitor.counts_since_observed()
    durations_ms = monitor.durations_ms()
    samples = {}
    for name in network.topology.operator_names:
        o = network.names.index(name)
        samples[name] = OperatorSample(
            operator=name,
            waiting_items=waiting[o],
            durations_ms=durations_ms[o],
            arrived_items=arrived[o],
            completed_items=completed[o],
        )
    return samples


def host_sample(host: Host, now_us: int, cpu: float | None, memory: float | None) -> HostSample:
    """A leased host as it is now; its shares are absent until it was read."""
    return HostSample(
        host=host.name,
        flavor=host.flavor,
        ordered_s=host.ordered_us / 1e6,
        paid_until_s=host.paid_until_us / 1e6,
        up=host.up_us <= now_us,
        releasing=host.releasing,
        images=frozenset(host.images),
        cpu_share=cpu,
        memory_share=memory,
    )


def instance_sample(
    one: Instance, now_us: int, cpu: float | None, memory: float | None
) -> InstanceSample:
    """An instance as it is now; its shares are absent until they were read."""
    return InstanceSample(
        instance=one.name,
        operator=one.operator_name,
        host=f"host-{one.host}",
        started_s=one.started_us / 1e6,
        ready=one.ready_us <= now_us,
        stopping=one.stopped_us is not None,
        cpu_share=cpu,
        memory_share=memory,
    )
