"""What Airflow loads of Tidebench: the page "Experiments" in its navigation, names of DAG runs.

Every Airflow process imports this file, so what only the API server needs is made on demand.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from tidebench import listener
from tidebench.links import PREFIX


class ExperimentsPage(AirflowPlugin):
    """Runs of all experiments, behind Airflow's log-in."""

    name = "tidebench"
    external_views = [  # noqa: RUF012 (Airflow takes entries out that it does not like)
        {
            "name": "Experiments",
            "href": f"{PREFIX.removeprefix('/')}/",
            "destination": "nav",
            "url_route": "experiments",
            "icon": f"{PREFIX.removeprefix('/')}/assets/icon.svg",
        }
    ]

    listeners = [listener]  # noqa: RUF012 (as Airflow declares it)

    @cached_property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        from tidebench.page.app import create_app

        return [{"app": create_app(), "url_prefix": PREFIX, "name": "Tidebench experiments"}]
