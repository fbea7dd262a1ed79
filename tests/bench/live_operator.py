"""Items per second and core through one operator without work, beside pika without anything.

`python -m tests.bench.live_operator [items]`; the services of `infra/live` have to run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from include.testbeds.live.operators import wire
from include.testbeds.live.processes import process_stat
from tests.live.world import services_are_up, wait_until, world

BODY = b"x" * 95
PREFETCH = 100
CPU_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = process_stat(pid)
    return (int(fields[11]) + int(fields[12])) / CPU_TICKS_PER_S


def row(name: str, items: int, took_s: float, used_s: float) -> None:
    used_s = max(used_s, 1 / CPU_TICKS_PER_S)  # the system counts in ticks: few items take none
    print(
        f"{name:44s} {items / took_s:8,.0f} items/s {items / used_s:8,.0f} items/CPU s "
        f"{used_s / items * 1e3:7.3f} CPU ms/item"
    )


def through(name: str, items: int, operator: str, **settings: object) -> None:
    """Fill the queue of an operator, start one instance and wait until all is done."""
    with world(operator, "out") as here:
        here.publish(operator, "S", [BODY] * items)
        process = here.start(operator, prefetch=PREFETCH, **settings)
        wait_until(lambda: "ready" in here.events(operator), "ready")
        # Python starts, imports and connects once per instance, not once per item.
        began_s, used_before_s = time.monotonic(), cpu_s(process.pid)
        done = f"{here.run}:done:{operator}:S"
        wait_until(lambda: here.redis.bitcount(done) == items, "everything done", 300)
        row(name, items, time.monotonic() - began_s, cpu_s(process.pid) - used_before_s)


def raw(name: str, items: int, *, publish: bool = True, confirm: bool = False) -> None:
    """pika's blocking connection: take each, publish it again, which loses items without a
    confirm, and acknowledge it.
    """
    with world("in", "out") as here:
        here.publish("in", "S", [BODY] * items)
        began_s, used_before_s = time.monotonic(), time.process_time()
        with here.channel() as channel:
            if confirm:
                channel.confirm_delivery()
            channel.basic_qos(prefetch_count=PREFETCH)
            for count, (method, props, body) in enumerate(channel.consume("in"), start=1):
                if publish:
                    channel.basic_publish(wire.EXCHANGE, "out", body, props)
                channel.basic_ack(method.delivery_tag)
                if count == items:
                    break
        row(name, items, time.monotonic() - began_s, time.process_time() - used_before_s)


def main(arguments: Sequence[str]) -> int:
    """Prints a line per case. Returns 1 when the services do not run."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.live_operator", description=__doc__
    )
    parser.add_argument("items", type=int, nargs="?", default=20_000)
    items = parser.parse_args(arguments).items
    if not services_are_up():
        print("Start the services first: make live-services", file=sys.stderr)
        return 1
    print(f"{items:,} items of {len(BODY)} bytes, prefetch {PREFETCH}, {os.cpu_count()} cores")
    raw("pika, take and acknowledge", items, publish=False)
    raw("pika, take, publish, acknowledge", items)
    raw("pika, the same with a confirm each", items // 10, confirm=True)
    through("operator without work, one item out", items, "relay", targets=["out"])
    through("operator without work, nothing out", items, "O8")
    print(subprocess.run(["uptime"], capture_output=True, text=True, check=True).stdout.strip())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
