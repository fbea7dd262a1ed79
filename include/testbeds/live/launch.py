"""Starts an instance as a container."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from include.testbeds.live.engine import (
    EXPERIMENT_LABEL,
    INSTANCE_LABEL,
    OPERATOR_LABEL,
    RUN_LABEL,
    ContainerSpec,
    Engine,
)
from include.testbeds.live.fleet import LiveHost, LiveInstance
from include.testbeds.live.services import image_of
from include.testbeds.live.state import RunState

SHARES_PER_CORE = 1024


@dataclass(frozen=True, slots=True)
class StartedContainer:
    """A started container. ``pull_s`` is 0 if the host had the image."""

    container: str
    image: str
    pull_s: float


def launch(
    state: RunState, host: LiveHost, instance: LiveInstance
) -> Callable[[], StartedContainer]:
    """A function that starts an instance, for a thread: it uses only the host.

    It raises engine.TROUBLE.
    """
    spec, engine = container_spec(state, instance), Engine(host.endpoint)

    def work() -> StartedContainer:
        began_s, pull_s = time.monotonic(), 0.0
        if not engine.has_image(spec.image):
            engine.pull(spec.image)
            pull_s = time.monotonic() - began_s
        return StartedContainer(engine.start(spec), spec.image, pull_s)

    return work


def container_spec(state: RunState, instance: LiveInstance) -> ContainerSpec:
    """Parameters of an instance's container; operators/__init__.py has the environment."""
    topology, calibration = state.config.topology, state.calibration
    op = topology.operator[instance.operator]
    targets = [
        {"operator": edge.target, "out": edge.items_out, "in": edge.items_in}
        for edge in topology.edges
        if edge.origin == instance.operator
    ]
    environment = {
        "TB_OPERATOR": instance.operator,
        "TB_INSTANCE": instance.name,
        "TB_RUN": state.run,
        "TB_TARGETS": json.dumps(targets),
        "TB_SAMPLE_EVERY": calibration.sample_every_items,
        "TB_TIMESTAMP_RESOLUTION_S": calibration.timestamp_resolution_s,
        "TB_PREFETCH": calibration.prefetch,
        "TB_SLO_MS": op.slo_ms,
        "TB_SERVICE_MS": calibration.service_ms[instance.operator],
        "TB_HEARTBEAT_S": calibration.heartbeat_s,
    }
    return ContainerSpec(
        name=f"{state.run}.{instance.name}",
        image=image_of(state.images, instance.operator),
        environment={name: str(value) for name, value in environment.items()},
        secrets={
            "TB_AMQP_URL": state.services.amqp_url(state.run),
            "TB_REDIS_URL": state.services.redis_url(state.run),
        },
        labels={
            RUN_LABEL: state.run,
            OPERATOR_LABEL: instance.operator,
            INSTANCE_LABEL: instance.name,
            EXPERIMENT_LABEL: state.config.experiment,
        },
        cpu_shares=max(2, round(op.cpu_cores * SHARES_PER_CORE)),
        memory_bytes=round(op.memory_mb * 2**20),
    )
