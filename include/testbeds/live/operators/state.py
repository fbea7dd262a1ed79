"""State that all instances of an operator share, kept in Redis and changed in single scripts.

An item may come again: after a crash the broker hands it out once more, and a producer that
crashed sends it once more. Each script therefore remembers what it answered to an item and answers
the same again without changing anything, so what an operator sends out depends neither on how
often nor, once answered, on when an item comes.

Answers stand in hashes of up to 100 items each, which Redis packs into a few bytes per item.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from include.testbeds.live.operators.wire import ItemId

ITEMS_PER_BUCKET = 100

INCIDENT = """
local answered = redis.call('HGET', KEYS[1], ARGV[1])
if answered then return tonumber(answered) end
local now, violated = tonumber(ARGV[2]), ARGV[3] == '1'
local known = redis.call('HMGET', KEYS[2], 'newest', 'ongoing', 'last')
local newest, last = tonumber(known[1] or -1), tonumber(known[3] or -1)
local isnew = violated and known[2] ~= '1' and now > last
if now > newest then redis.call('HSET', KEYS[2], 'newest', now, 'ongoing', ARGV[3]) end
if violated and now > last then redis.call('HSET', KEYS[2], 'last', now) end
redis.call('HSET', KEYS[1], ARGV[1], isnew and 1 or 0)
return isnew and 1 or 0
"""

ACCUMULATE = """
local answered = redis.call('HGET', KEYS[1], ARGV[1])
if answered then return answered end
local sums = {}
for i = 2, #ARGV do sums[i - 1] = redis.call('HINCRBY', KEYS[2], i - 1, ARGV[i]) end
local answer = table.concat(sums, ' ')
redis.call('HSET', KEYS[1], ARGV[1], answer)
return answer
"""

JOIN = """
local parts = tonumber(ARGV[3])
if redis.call('HLEN', KEYS[1]) < parts then
  redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])
  if redis.call('HLEN', KEYS[1]) < parts then return {} end
  redis.call('HSET', KEYS[1], 'completed by', ARGV[1])
end
if redis.call('HGET', KEYS[1], 'completed by') ~= ARGV[1] then return {} end
return redis.call('HGETALL', KEYS[1])
"""

COLLECT = """
local position = redis.call('HGET', KEYS[1], ARGV[1])
if not position then
  position = redis.call('RPUSH', KEYS[2], ARGV[2])
  redis.call('HSET', KEYS[1], ARGV[1], position)
end
local size = tonumber(ARGV[3])
if position % size ~= 0 then return {} end
return {position / size - 1, unpack(redis.call('LRANGE', KEYS[2], position - size, position - 1))}
"""


class State:
    """The shared state of one operator of one run, below ``<run>:<operator>:``."""

    def __init__(self, redis: Any, run: str, operator: str) -> None:
        self._prefix = f"{run}:{operator}:"
        self._incident = redis.register_script(INCIDENT)
        self._accumulate = redis.register_script(ACCUMULATE)
        self._join = redis.register_script(JOIN)
        self._collect = redis.register_script(COLLECT)

    def is_new_incident(self, item: ItemId, machine: int, time_ms: int, violated: bool) -> bool:
        """Whether a reading begins an incident: a violation after none.

        A reading that comes late counts as new when no incident is known at its time or after.
        """
        bucket, name = self._answer_of(item)
        keys = [bucket, f"{self._prefix}machine:{machine}"]
        return bool(self._incident(keys=keys, args=[name, time_ms, int(violated)]))

    def add_up(self, item: ItemId, machine: int, amounts: Sequence[int]) -> tuple[int, ...]:
        """Sums of a machine's amounts so far, including this item's."""
        bucket, name = self._answer_of(item)
        keys = [bucket, f"{self._prefix}machine:{machine}"]
        answer = self._accumulate(keys=keys, args=[name, *amounts])
        return tuple(int(text) for text in answer.split())

    def join(self, machine: int, time_ms: int, part: tuple[str, str], parts: int) -> dict[str, str]:
        """All parts (kind -> value) of a machine and time for the part that completes them.

        For every other part, and for parts that come again, nothing.
        """
        key = f"{self._prefix}join:{machine}:{time_ms}"
        answer = [_text(part) for part in self._join(keys=[key], args=[*part, parts])]
        joined = dict(zip(answer[::2], answer[1::2], strict=True))
        joined.pop("completed by", None)
        return joined

    def collect(self, item: ItemId, value: str, size: int) -> tuple[int, list[str]] | None:
        """Number and values of a batch for the item that completes it, else nothing."""
        bucket, name = self._answer_of(item)
        answer = self._collect(keys=[bucket, f"{self._prefix}values"], args=[name, value, size])
        return (int(answer[0]), [_text(part) for part in answer[1:]]) if answer else None

    def _answer_of(self, item: ItemId) -> tuple[str, int]:
        bucket, name = divmod(item.number, ITEMS_PER_BUCKET)
        return f"{self._prefix}answer:{item.path}:{bucket}", name


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
