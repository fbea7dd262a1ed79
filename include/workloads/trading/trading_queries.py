"""Writes trading_queries.yaml: "The query workload is made variable by choosing the window size
(x) and the sector (y) randomly" (Heinze et al., section V).

    cd include/workloads/trading
    python -m include.workloads.trading.trading_queries > trading_queries.yaml

Every window and every sector is equally likely. The paper gives neither these choices nor costs.
Costs and states follow from a query's work: an aggregate processes every tick of its sector and
keeps the ticks of its window.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

QUERIES, SEED = 35, 1
WINDOWS_S = (10, 30, 60, 120, 300)
SECTORS = {
    "industrial": 0.20, "financial": 0.17, "automotive": 0.14, "chemistry": 0.11, "software": 0.10,
    "utilities": 0.08, "insurance": 0.07, "retail": 0.06, "telecommunication": 0.04, "media": 0.03,
}  # fmt: skip
"""Share of all ticks by sector, from large to small as on an exchange; the names are free."""

BATCH_MS = 2.0
"""Fixed cost of a batch, for its results."""
SECTOR_MS = 60.0
"""Cost of a batch whose ticks are all of the sector."""
ENGINE_MB = 8.0
WINDOW_MB_PER_S = 2.0
"""State of an aggregate: its code and indices, and the memory for a second of all ticks."""

HEADER = """\
# The workload of Heinze et al., section V: 35 queries over the ticks of a day, on up to ten hosts.
# Written by trading_queries.py, which says how windows and sectors were drawn.
name: trading_queries
level_unit: thousand ticks per second
run_with:
  testbed: flow
  flavor: query-4cpu-8gb
  calibration: trading
  patterns: [{name: trading_day_1}]
  btus_min: [60]
  duration_min: 60
  monitor_every_s: 5
  hosts: 5
  max_hosts: 10
  price_books: [per_second]
tenants:
"""


def lines() -> Iterator[str]:
    """The file, line by line."""
    yield HEADER.rstrip()
    draw = random.Random(f"trading_queries:{SEED}")
    for number in range(1, QUERIES + 1):
        window_s = draw.choice(WINDOWS_S)
        sector, share = draw.choice(list(SECTORS.items()))
        service_ms = BATCH_MS + SECTOR_MS * share
        state_mb = ENGINE_MB + WINDOW_MB_PER_S * window_s * share
        yield (
            f"  - {{name: q{number:02}, topology: trading_query, operators: {{aggregate: "
            f"{{label: {sector} {window_s} s, service_ms: {service_ms:.1f}, "
            f"state_mb: {state_mb:.0f}}}}}}}"
        )


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines()) + "\n")
