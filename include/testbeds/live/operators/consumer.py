"""Runs an instance: connects, works, reconnects after errors, and stops on request."""

from __future__ import annotations

import signal
import time
from typing import Any

import pika.exceptions
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from include.testbeds.live.operators.code import Place
from include.testbeds.live.operators.codes import code_of
from include.testbeds.live.operators.health import Health, serve
from include.testbeds.live.operators.ledger import Ledger
from include.testbeds.live.operators.logs import Log
from include.testbeds.live.operators.session import BrokerSession, SessionLost
from include.testbeds.live.operators.settings import Settings
from include.testbeds.live.operators.state import State

TROUBLE = (SessionLost, pika.exceptions.AMQPError, redis.RedisError, OSError)
"""Errors after which an instance reconnects; others are defects and end the process."""
FIRST_DELAY_S, LONGEST_DELAY_S = 0.2, 5.0
REDIS_TIMEOUT_S = 5.0
LONG_ENOUGH_S = 10.0


class Consumer:
    """One instance of an operator."""

    def __init__(self, settings: Settings, log: Log) -> None:
        self._settings = settings
        self._log = log
        self._stop = False
        self._redis: Any = redis.Redis.from_url(
            settings.redis_url,
            socket_timeout=REDIS_TIMEOUT_S,
            socket_connect_timeout=REDIS_TIMEOUT_S,
            retry=Retry(NoBackoff(), 1),  # a connection that Redis has closed meanwhile
        )
        place = Place(
            operator=settings.operator,
            targets=settings.targets,
            state=State(self._redis, settings.run, settings.operator),
            service_ms=settings.service_ms,
        )
        self._process = code_of(settings.operator, settings.code)(place)
        self._ledger = Ledger(self._redis, settings.run, settings.operator)
        self.health = Health(settings.operator, settings.instance, settings.slo_ms)

    def stop(self) -> None:
        """Request :meth:`run` to finish its item and return; safe in a signal handler."""
        self._stop = True

    def run(self) -> None:
        """Work until :meth:`stop`, through failures of broker and Redis."""
        delay_s = FIRST_DELAY_S
        while not self._stop:
            began_s = time.monotonic()
            try:
                self._redis.ping()
                session = BrokerSession(
                    self._settings, self._process, self._ledger, self.health, self._log
                )
                session.run(lambda: self._stop)
            except TROUBLE as error:
                lasted_s = time.monotonic() - began_s
                delay_s = FIRST_DELAY_S if lasted_s > LONG_ENOUGH_S else delay_s
                self._log("lost", why=f"{type(error).__name__}: {error}", again_in_s=delay_s)
                self._rest(delay_s)
                delay_s = min(2 * delay_s, LONGEST_DELAY_S)

    def _rest(self, delay_s: float) -> None:
        end_s = time.monotonic() + delay_s
        while not self._stop and time.monotonic() < end_s:
            time.sleep(min(0.1, delay_s))


def work(settings: Settings) -> None:
    """Run one instance in this process until SIGTERM or SIGINT."""
    log = Log(run=settings.run, operator=settings.operator, instance=settings.instance)
    consumer = Consumer(settings, log)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: consumer.stop())
    if settings.health_port:
        serve(consumer.health, settings.health_port)
    log("started", prefetch=settings.prefetch, targets=len(settings.targets))
    consumer.run()
    log("stopped", processed_items=consumer.health.processed)
