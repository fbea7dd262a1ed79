"""A run's keys in Redis: its user, its ledger, and item counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from include.testbeds.live.operators.ledger import busy_key, redis_client, sent_key
from include.testbeds.live.services import Services

PAGE_KEYS = 2000
PROVIDER = "provider"
"""``<run>:provider`` is the data provider's lateness."""


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """Items since the run began: published per source, received and processed per operator.

    ``busy_us`` are microseconds of work by operator and instance.
    """

    sent: dict[str, int]
    received: dict[str, int]
    done: dict[str, int]
    busy_us: dict[str, dict[str, int]]


class SharedState:
    """The keys of a run, accessed as administrator. Raises redis.RedisError if Redis is down."""

    def __init__(self, services: Services, run: str) -> None:
        self._services = services
        self._run = run
        self.redis = redis_client(services.redis_admin_url)

    def grant(self) -> None:
        """Create the run's user, who may use the keys of the run only."""
        password = self._services.password("redis", self._run)
        rules = ["on", f">{password}", f"~{self._run}:*", "+@all", "-@admin"]
        rules.append("-@dangerous")  # FLUSHALL and KEYS know no prefix
        self.redis.execute_command("ACL", "SETUSER", self._run, *rules)
        self.redis.execute_command("ACL", "SAVE")

    def remove(self) -> None:
        """Delete the user and every key of the run."""
        self.redis.execute_command("ACL", "DELUSER", self._run)
        self.redis.execute_command("ACL", "SAVE")
        keys = list(self.redis.scan_iter(match=f"{self._run}:*", count=PAGE_KEYS))
        for first in range(0, len(keys), PAGE_KEYS):
            self.redis.unlink(*keys[first : first + PAGE_KEYS])

    def counts(
        self, targets_of: Mapping[str, Sequence[str]], operators: Sequence[str] = ()
    ) -> ItemCounts:
        """Current counts in the ledger. ``targets_of``: operators fed by each source;
        ``operators``: those whose busy times are read.

        An item may be processed before its producer has counted it, so an operator has received
        at least as many items as it has processed.
        """
        kinds = (f"{self._run}:done:", f"{self._run}:emitted:")
        strings = self.redis.scan_iter(match=f"{self._run}:*", count=PAGE_KEYS, _type="string")
        names = sorted({name.decode() for name in strings})  # a scan may tell one twice
        keys = [key for key in names if key.startswith(kinds)]
        pipe = self.redis.pipeline(transaction=True)
        for key in keys:
            pipe.bitcount(key)
        for source in targets_of:
            pipe.hget(sent_key(self._run, source), "count")
        for operator in operators:
            pipe.hgetall(busy_key(self._run, operator))
        answers = pipe.execute()
        bits, rest = answers[: len(keys)], answers[len(keys) :]
        numbers, busy = rest[: len(targets_of)], rest[len(targets_of) :]
        received: defaultdict[str, int] = defaultdict(int)
        done: defaultdict[str, int] = defaultdict(int)
        for key, count in zip(keys, bits, strict=True):
            kind, operator, _ = key.removeprefix(f"{self._run}:").split(":", 2)
            (done if kind == "done" else received)[operator] += count
        sent = {source: int(count or 0) for source, count in zip(targets_of, numbers, strict=True)}
        for source, targets in targets_of.items():
            for operator in targets:
                received[operator] += sent[source]
        for operator, count in done.items():
            received[operator] = max(received[operator], count)
        busy_us = {
            operator: {name.decode(): int(us) for name, us in of.items()}
            for operator, of in zip(operators, busy, strict=True)
        }
        return ItemCounts(sent, dict(received), dict(done), busy_us)

    def provider(self) -> dict[str, str]:
        """The data provider's last report; empty before the first."""
        rate = self.redis.hgetall(f"{self._run}:{PROVIDER}")
        return {name.decode(): value.decode() for name, value in rate.items()}


def users(services: Services) -> list[str]:
    """Names of the Redis users of all runs."""
    reserved = {"default", services["REDIS_ADMIN"]}
    client = SharedState(services, "").redis
    names = (name.decode() for name in client.execute_command("ACL", "USERS"))
    return [name for name in names if name not in reserved]
