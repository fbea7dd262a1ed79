"""docs/metrics.md from the schemas, which ``make dictionary`` writes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from include.results.tables.catalogue import (
    ADVICE_RANKING,
    INPUT_CHECKS,
    PUBLISHED,
    Column,
    schema_of,
)

_HEAD = """\
# Every column of every table

Made from `sql/tables/*/schema.yaml`; `make dictionary` makes it again, and a test fails when it is
not current. Names in formulas are columns: of the same table where nothing else is said, of another
one where it is named, else of the measured rows (`include/runs/measurements/rows.py`). Percentiles
and means are over rows of one run; a missing value means that there was nothing to count.

## What strict means

The papers count what was completed: how many items were in time, what the others cost. An item that
is never processed is in neither figure, so a controller that starts too few instances is praised
for what it left undone. Plain columns stay as in the papers, to be held against them. Rank
controllers by these instead:

- A **strict** compliance or penalty counts every item whose deadline has passed as late, whether or
  not it was completed. The deadline of an item at an operator is 1, 2 or 5 times o_slo after it
  arrived there. What still waits in time counts nowhere.
- **Unprocessed items** arrived at an operator and were not completed when the run ended.
- The **age** of a completed item is the time since its source emitted it. Compliance looks at one
  operator at a time, so it does not see how long an item waited at those before.

Overdue items are counted queue by queue, from what the monitor read: of all that arrived before the
last deadline that has passed, whatever exceeds the completed items is overdue. This is exact where
items come evenly within a monitoring period and are served in the order in which they came; where
instances overtake each other more are overdue. It ends with the last reading: what came after it is
not counted, and what was completed late after it counts twice, for a minute at most, or the run is
left out. An item on its way between two operators has not arrived yet, and what a starved operator
would have sent on does not exist: operators behind it look fine, so look at the rows per operator
and at the age as well.

What counts as arrived and as completed depends on the testbed:

- `simulated`: arrived is what reached the queue; one whose instance dies goes back to its place.
  Completed is what an instance has finished.
- `flow`: arrived is the amount that reached the queue, in whole items, completed the amount that
  left it. Service is not followed item by item: what is in service counts as completed.
- `docker`, `openstack`: arrived is what its producer has noted as sent, completed what the ledger
  has as done, each item once. An item that was lost or rejected stays unprocessed.
- `flink`: arrived is what was sent to the operator, completed what a checkpoint after it has made
  certain, each item once.
"""


def dictionary() -> str:
    """The page as Markdown, tables in the order in which they are published."""
    tables = (*PUBLISHED, INPUT_CHECKS, ADVICE_RANKING)
    return "\n".join([_HEAD, *(line for name in tables for line in _table(name))])


def _table(name: str) -> Iterator[str]:
    schema = schema_of(name)
    yield from (
        f"## {name}",
        "",
        schema.description,
        "",
        f"One row per {', '.join(schema.key)}.",
        "",
    )
    yield from ("| column | unit | what it is | formula |", "|---|---|---|---|")
    yield from map(_line, schema.columns)
    yield ""


def _line(column: Column) -> str:
    cells = (f"`{column.name}`", column.unit, column.description, column.formula)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    sys.stdout.write(dictionary())
