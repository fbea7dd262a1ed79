"""The data provider: sends the items of a plan, from the position in Redis on."""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pika.exceptions
import redis

from include.testbeds.live.operators.ledger import sent_key
from include.testbeds.live.operators.logs import Log
from include.testbeds.live.operators.wire import now_us
from include.testbeds.live.provider.plan import ProviderPlan
from include.testbeds.live.provider.position import Position
from include.testbeds.live.provider.publisher import ConnectionLost, Publisher
from include.testbeds.live.services import Services
from include.testbeds.live.shared_state import PROVIDER

TROUBLE = (ConnectionLost, pika.exceptions.AMQPError, OSError)
AGAIN_AFTER_S = 0.5
GIVE_UP_S = 600.0
"""Time without a connection after which it ends, in case the run was forgotten."""
REDIS_TIMEOUT_S = 5.0
LAST_ITEMS = 5000
"""Number of items over which lateness is reported."""


def main(path: Path) -> int:
    """Returns 0 if everything is sent or after SIGTERM, 1 if the plan is gone or time is up."""
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    plan = ProviderPlan.read(path)
    log, services = Log(run=plan.run), Services.find()
    shared = redis.Redis.from_url(
        services.redis_url(plan.run),
        socket_timeout=REDIS_TIMEOUT_S,
        socket_connect_timeout=REDIS_TIMEOUT_S,
    )
    positions = [
        Position(stream, _confirmed(shared, plan.run, stream.source)) for stream in plan.streams
    ]
    notes = PositionNotes(shared, plan.run, positions, log)
    log("started", items={position.stream.source: position.confirmed for position in positions})
    connected_s = time.monotonic()
    while path.is_file() and time.monotonic() - connected_s < GIVE_UP_S:
        publisher = Publisher(services.amqp_url(plan.run), plan, positions, notes.write)
        began_s = time.monotonic()
        try:
            publisher.run()
        except TROUBLE as error:
            log("lost", why=f"{type(error).__name__}: {error}")
            for position in positions:
                position.lose()
            if time.monotonic() - began_s > 2 * AGAIN_AFTER_S:
                connected_s = time.monotonic()
            time.sleep(AGAIN_AFTER_S)
            continue
        notes.finish()
        log("ended", items={position.stream.source: position.confirmed for position in positions})
        return 0
    log("given up")
    return 1


class PositionNotes:
    """Writes down how far it has come; while Redis is away, the next note makes up for it."""

    def __init__(self, shared: Any, run: str, positions: Sequence[Position], log: Log) -> None:
        self._shared = shared
        self._run = run
        self._positions = positions
        self._log = log
        self._late_s: deque[float] = deque(maxlen=LAST_ITEMS)

    def write(self, late_s: Sequence[float]) -> bool:
        """Note positions and lateness since the run began; returns whether it worked."""
        self._late_s += late_s
        pipe = self._shared.pipeline(transaction=True)
        for position in self._positions:
            count = {"count": position.confirmed, "highest": position.confirmed - 1}
            if position.confirmed:
                pipe.hset(sent_key(self._run, position.stream.source), mapping=count)
        rate: dict[str, Any] = {"as_of_us": now_us()}
        if self._late_s:
            ordered = sorted(self._late_s)
            rate["late_ms_median"] = f"{1000 * ordered[len(ordered) // 2]:.1f}"
            rate["late_ms_p99"] = f"{1000 * ordered[int(0.99 * len(ordered))]:.1f}"
        pipe.hset(f"{self._run}:{PROVIDER}", mapping=rate)
        try:
            pipe.execute()
        except redis.RedisError as error:
            self._log("not noted", why=f"{type(error).__name__}: {error}")
            return False
        return True

    def finish(self) -> None:
        """Write the last note, by which processed items are checked."""
        end_s = time.monotonic() + GIVE_UP_S
        while not self.write([]) and time.monotonic() < end_s:
            time.sleep(AGAIN_AFTER_S)


def _confirmed(shared: Any, run: str, source: str) -> int:
    return int(shared.hget(sent_key(run, source), "count") or 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
