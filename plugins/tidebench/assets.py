"""What is published, as Airflow assets: DAGs of anybody can be scheduled on it.

One asset per published table, whatever the experiment: its name and URI never change, and neither
depends on where the data root is. Which experiment an event is about stands in its ``extra``.
Names of experiments are parameters, so an asset of each would leave Airflow with one more for
every name that anybody has ever typed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset

from include.results.tables.catalogue import ADVICE_RANKING, PUBLISHED
from tidebench.stage import Review, data_root

if TYPE_CHECKING:
    from airflow.sdk import Context

GROUP = "tidebench"


def asset_of(table: str) -> Asset:
    """The asset of a published table: ``tidebench.cost``, ``x-tidebench://published/cost``."""
    return Asset(f"{GROUP}.{table}", f"x-tidebench://published/{table}", group=GROUP)


REPORT = tuple(map(asset_of, PUBLISHED))
"""What every report publishes, in reading order."""
ADVICE = (asset_of(ADVICE_RANKING),)
"""What an advice publishes."""


class Publish(Review):
    """Publish ``assets``, and say in the event of each where its table lies.

    ``extra`` has ``experiment`` and ``path``, a file below the folder ``published``. Airflow sends
    the events when the task succeeds, and none when it fails.
    """

    assets: Sequence[Asset]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(outlets=self.assets, **kwargs)

    def execute(self, context: Context) -> Any:
        """Publish, hold it against what was asked for, then say where the tables lie."""
        paths = super().execute(context)
        self.require_own_runs()
        published = data_root() / self.experiment / "published"
        for asset in self.assets:
            table = asset.name.removeprefix(f"{GROUP}.")
            (path,) = sorted(published.glob(f"{table}.parquet")) or sorted(
                published.glob(f"{table}.csv")
            )
            event = context["outlet_events"][asset]
            event.extra = {"experiment": self.experiment, "path": str(path)}
        return paths

    def require_own_runs(self) -> None:
        """Fail where what the DAG run has measured is not published."""
