"""Ledger of sent and processed items, which proves that none was lost.

Numbers count from 0 along a path, so a set of items is a bitmap: one bit per item, 12.5 KB for
100,000 of them. Every instance notes what it has emitted and processed after the broker has
confirmed the one and before it acknowledges the other; what is in the first set and not in the
second is waiting, in work or lost. After a run has drained, it is lost.

Keys in Redis, all below the prefix of the run:

* ``<run>:sent:<source>`` hash: ``count`` and ``highest`` number confirmed (by the data provider)
* ``<run>:emitted:<operator>:<path>`` bitmap: items confirmed into the queue of this operator
* ``<run>:done:<operator>:<path>`` bitmap: items this operator has processed
* ``<run>:busy:<operator>`` hash by instance: microseconds that it had something to do
* ``<run>:repeated`` hash by operator: items that came again after they had been processed
* ``<run>:rejected:<operator>`` hash by item id: items this operator could not read, and why
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from include.testbeds.live.operators.wire import ItemId

NOTE = """
local function mark(key, numbers)
  local already = 0
  for number in string.gmatch(numbers, '%d+') do
    already = already + redis.call('SETBIT', key, number, 1)
  end
  return already
end
local done, repeated = tonumber(ARGV[1]), 0
redis.call('HINCRBY', KEYS[2], ARGV[3], ARGV[4])
for i = 3, #KEYS do
  local already = mark(KEYS[i], ARGV[i + 2])
  if i <= done + 2 then repeated = repeated + already end
end
if repeated > 0 then redis.call('HINCRBY', KEYS[1], ARGV[2], repeated) end
return repeated
"""
"""KEYS: hashes of repetitions and busy times, bitmaps of done items, bitmaps of emitted items.
ARGV: number of bitmaps of done items, operator, instance, its microseconds, numbers by bitmap."""


TIMEOUT_S = 5.0


def redis_client(url: str) -> Any:
    """A client that waits so long for an answer, and asks once more where a connection was closed
    meanwhile: a later answer would be of another time. Not where the answer is late: what it asked
    for may have been done, and would be counted twice.
    """
    return redis.Redis.from_url(
        url,
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
        retry=Retry(NoBackoff(), 1, (redis.exceptions.ConnectionError,)),
    )


def sent_key(run: str, source: str) -> str:
    """Hash of a source's items that the data provider has sent."""
    return f"{run}:sent:{source}"


def emitted_key(run: str, operator: str, path: str) -> str:
    """Bitmap of the items that were sent to an operator."""
    return f"{run}:emitted:{operator}:{path}"


def done_key(run: str, operator: str, path: str) -> str:
    """Bitmap of the items that an operator has processed."""
    return f"{run}:done:{operator}:{path}"


def busy_key(run: str, operator: str) -> str:
    """Hash of the microseconds that instances of an operator worked, by instance."""
    return f"{run}:busy:{operator}"


def repeated_key(run: str) -> str:
    """Hash of the number of repeated items, by operator."""
    return f"{run}:repeated"


def rejected_key(run: str, operator: str) -> str:
    """Hash of the items an operator could not read."""
    return f"{run}:rejected:{operator}"


@dataclass(slots=True)
class Notes:
    """Next notes of an instance: numbers by path, and by target and path."""

    done: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    emitted: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, item: ItemId, outputs: Iterable[tuple[str, ItemId]]) -> None:
        """Add a processed item with confirmed outputs and their targets."""
        self.done[item.path].append(item.number)
        for target, output in outputs:
            self.emitted[target, output.path].append(output.number)


class Ledger:
    """Writes the notes of one operator's instance."""

    def __init__(self, redis: Any, run: str, operator: str, instance: str) -> None:
        self._redis = redis
        self._run = run
        self._operator = operator
        self._instance = instance
        self._note = redis.register_script(NOTE)

    def write(self, notes: Notes, busy_us: int = 0) -> int:
        """Write all notes at once, and ``busy_us`` more of work; returns how many items
        had been processed before."""
        run, operator = self._run, self._operator
        keys = [repeated_key(run), busy_key(run, operator)]
        keys += [done_key(run, operator, path) for path in notes.done]
        keys += [emitted_key(run, target, path) for target, path in notes.emitted]
        numbers = [*notes.done.values(), *notes.emitted.values()]
        lists = [" ".join(map(str, some)) for some in numbers]
        about = (len(notes.done), operator, self._instance, busy_us)
        return int(self._note(keys=keys, args=[*about, *lists]))

    def reject(self, item_id: str, why: str) -> None:
        """Record an unreadable item and the reason."""
        self._redis.hset(rejected_key(self._run, self._operator), item_id, why)
