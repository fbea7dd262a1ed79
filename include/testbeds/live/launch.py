"""An instance as a container: its image, its environment, its share of the host."""

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
    """A container that was started, and how long its image took (0 when it was there)."""

    container: str
    image: str
    pull_s: float


def launch(state: RunState, host: LiveHost, one: LiveInstance) -> Callable[[], StartedContainer]:
    """The work of starting an instance; it touches nothing but the host. Raises engine.TROUBLE."""
    spec, engine = container_spec(state, one), Engine(host.endpoint)

    def work() -> StartedContainer:
        began_s, pull_s = time.monotonic(), 0.0
        if not engine.has_image(spec.image):
            engine.pull(spec.image)
            pull_s = time.monotonic() - began_s
        return StartedContainer(engine.start(spec), spec.image, pull_s)

    return work


def container_spec(state: RunState, one: LiveInstance) -> ContainerSpec:
    """What to start. The environment is that of ``include/testbeds/live/operators/__init__.py``."""
    topology, calibration = state.config.topology, state.calibration
    op = topology.operator[one.operator]
    targets = [
        {"operator": edge.target, "out": edge.items_out, "in": edge.items_in}
        for edge in topology.edges
        if edge.origin == one.operator
    ]
    environment = {
        "TB_OPERATOR": one.operator,
        "TB_INSTANCE": one.name,
        "TB_RUN": state.run,
        "TB_TARGETS": json.dumps(targets),
        "TB_SAMPLE_EVERY": calibration.sample_every_items,
        "TB_TIMESTAMP_RESOLUTION_S": calibration.timestamp_resolution_s,
        "TB_PREFETCH": calibration.prefetch,
        "TB_SLO_MS": op.slo_ms,
        "TB_SERVICE_MS": calibration.service_ms[one.operator],
        "TB_HEARTBEAT_S": calibration.heartbeat_s,
    }
    return ContainerSpec(
        name=f"{state.run}.{one.name}",
        image=image_of(state.images, one.operator),
        environment={name: str(value) for name, value in environment.items()},
        secrets={
            "TB_AMQP_URL": state.services.amqp_url(state.run),
            "TB_REDIS_URL": state.services.redis_url(state.run),
        },
        labels={
            RUN_LABEL: state.run,
            OPERATOR_LABEL: one.operator,
            INSTANCE_LABEL: one.name,
            EXPERIMENT_LABEL: state.config.experiment,
        },
        cpu_shares=max(2, round(op.cpu_cores * SHARES_PER_CORE)),
        memory_bytes=round(op.memory_mb * 2**20),
    )
