"""What is published, as Airflow assets: DAGs of anybody can be scheduled on it.

One asset per published table, whatever the experiment: its name and URI never change, and neither
depends on where the data root is. Which experiment an event is about stands in its ``extra``.
Names of experiments are parameters, so an asset of each would leave Airflow with one more for
every name that anybody has ever typed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import Asset

from include.results.tables.catalogue import ADVICE_RANKING, PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from airflow.sdk import Context

GROUP = "tidebench"


def asset_of(table: str) -> Asset:
    """The asset of a published table: ``tidebench.cost``, ``x-tidebench://published/cost``."""
    return Asset(f"{GROUP}.{table}", f"x-tidebench://published/{table}", group=GROUP)


REPORT = tuple(map(asset_of, PUBLISHED))
"""What every report publishes, in reading order."""
ADVICE = (asset_of(ADVICE_RANKING),)
"""What an advice publishes."""


def announce(context: Context, assets: Iterable[Asset], experiment: str, published: Path) -> None:
    """Say in the event of each asset which experiment it is about and where its table lies.

    ``extra`` has ``experiment`` and ``path``, a file below the folder ``published``. Airflow sends
    the events when the task succeeds, and none when it fails.
    """
    for asset in assets:
        table = asset.name.removeprefix(f"{GROUP}.")
        (path,) = sorted(published.glob(f"{table}.parquet")) or sorted(
            published.glob(f"{table}.csv")
        )
        context["outlet_events"][asset].extra = {"experiment": experiment, "path": str(path)}
