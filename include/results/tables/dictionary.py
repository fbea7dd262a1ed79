"""docs/metrics.md: what strict means, and every table in a line; ``make dictionary`` writes it."""

from __future__ import annotations

import argparse
import sys

from include.results.tables.catalogue import DOCUMENTED, schema_of

_HEAD = """\
# Metrics

Every column has a unit, a meaning and a formula. Print those of a table:

```sh
tidebench columns cost
```

```
Cost of a run under each of its price books. The unit is the cost of PeerJ CS 141, where a host
...
resource_cost [cost]
    Paid BTUs times the price of one, in the currency of the price book; of every lease at most the
    cap a month, where there is one.
    = paid_btus * price_per_btu; with a cap the sum over leases of min(cap_per_month, paid_btus *
    price_per_btu)
...
```

Names in formulas are columns of the same table, of a table that the formula names, or of the
measured rows (`include/runs/measurements/rows.py`). An empty value means nothing to count.

## Strict metrics

The papers count completed items only. An item that is never processed is in none of their figures,
so a controller that starts too few instances looks good. Rank controllers by these metrics:

- **Strict** compliance and penalty: an item whose deadline has passed counts as late, completed or
  not. The deadline is 1, 2 or 5 times o_slo after the item arrived at the operator. An item that
  waits and is still in time is not counted.
- **Unprocessed items** arrived at an operator and were not completed when the run ended.
- **Age** is the time since the source emitted the item; it includes the waits at the operators
  before.
- **Total**: cost of the hosts and the strict penalty of every item later than 5 times o_slo; the
  **near real-time total** counts from 2 times. A total of completed items only is called so.
- **End-to-end** compliance and total: an item is late when it is older than 1, 2 or 5 times o_slo
  (the **end-to-end total**: 2), added up along the slowest path from a source to its operator, or
  waits there for longer. With back-pressure items wait at the source, in the duration of no
  operator. An item counts at every operator, so a wait at the source makes it late at all that
  follow; where paths join, the slowest is generous to the others. On `docker` and `openstack` age
  begins when an item is sent, not when it is due. `report` and `figure` rank by it with
  `--end-to-end`.

Overdue items are counted per queue from the monitor's readings: items that arrived before the last
passed deadline, less completed items. The count is exact if items arrive evenly within a monitoring
period and are served in order; if instances overtake each other, more are overdue. The count ends
at the last reading. Items that complete late after it count twice; if they span more than a minute,
the run is left out. Items between two operators have not arrived yet, so operators behind a starved
one look fine: read the rows per operator, and the age. Arrived and completed items are:

- `simulated`: those that reached the queue, to which an item returns if its instance dies; those
  that finished.
- `flow`: the amount that reached the queue, in whole items; the amount that left it, items in
  service included.
- `docker`, `openstack`: those sent, as the producer noted; those done in the ledger, each once.
  Lost and rejected items stay unprocessed.
- `flink`: those sent to the operator or due at its source; those confirmed by a checkpoint, each
  once.

## Tables

"""


def dictionary() -> str:
    """The page as Markdown, tables in the order in which they are published."""
    rows = (
        f'| <a id="{name}"></a>`{name}` | {schema.summary.rstrip(".")} | {", ".join(schema.key)} |'
        for name, schema in ((name, schema_of(name)) for name in DOCUMENTED)
    )
    return _HEAD + "\n".join(("| table | content | one row per |", "|---|---|---|", *rows, ""))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    sys.stdout.write(dictionary())
