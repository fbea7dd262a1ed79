"""What the ledger of a live run says was sent and not processed."""

from __future__ import annotations

from typing import Any

from include.testbeds.live.operators.ledger import done_key, sent_key


def unprocessed(redis: Any, run: str) -> list[tuple[str, str, list[int]]]:
    """Operator, path and numbers of everything sent between operators and not processed."""
    begin = f"{run}:emitted:"
    paths = []
    for key in sorted(redis.scan_iter(match=f"{begin}*", count=1000)):
        operator, _, path = key.decode().removeprefix(begin).partition(":")
        missing = _numbers(redis.get(key)) - _numbers(redis.get(done_key(run, operator, path)))
        paths += [(operator, path, sorted(missing))] if missing else []
    return paths


def unprocessed_of_source(redis: Any, run: str, source: str, operator: str) -> list[int]:
    """Numbers the data provider has sent of a source and an operator has not processed."""
    sent = range(int(redis.hget(sent_key(run, source), "highest") or -1) + 1)
    return sorted(set(sent) - _numbers(redis.get(done_key(run, operator, source))))


def _numbers(bitmap: bytes | None) -> set[int]:
    bits = "".join(f"{byte:08b}" for byte in bitmap or b"")
    return {number for number, bit in enumerate(bits) if bit == "1"}
