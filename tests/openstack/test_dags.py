"""The DAGs on servers of a cloud, under a real scheduler: what nobody looks after is given back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from include.testbeds.live.files import run_folder
from tests.e2e.airflow_services import Airflow, airflow_services
from tests.live.world import crowding
from tests.openstack.plane import FLAVOR, Plane

pytestmark = pytest.mark.openstack

CONTROL = "control_window"
DEADLINE_S = 300.0
DEAD_AFTER_MIN = 1
FORM = {
    "testbed": "openstack",
    "topology": "manufacturing_live",
    "flavor": FLAVOR.name,
    "controller": "threshold",
    "btu_min": 1,
    "duration_min": 30,
    "report": False,
}


@pytest.fixture(scope="module")
def airflow(
    plane: Plane,
    images: str,
    airflow_environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Airflow]:
    """Services of Airflow that know the cloud."""
    cloud = {name: value for name, value in os.environ.items() if name.startswith("OS_")}
    data = {"TIDEBENCH_DATA_ROOT": str(tmp_path_factory.mktemp("data"))}
    folder = tmp_path_factory.mktemp("services")
    with airflow_services(
        airflow_environment | cloud | data, folder, ["experiment", "reap"]
    ) as made:
        yield made


def begin(airflow: Airflow, experiment: str) -> str:
    """A run whose first window is over."""
    dag_run = airflow.trigger("experiment", FORM | {"experiment": experiment})
    airflow.until("experiment", dag_run, lambda states: states.get((CONTROL, 0)) == "success")
    return dag_run


def test_what_a_run_holds_that_does_not_go_on_is_listed_and_given_back_on_request(cloud, airflow):
    begin(airflow, "stuck")
    (server, *_) = cloud.user.compute.servers()
    run = server.metadata["tidebench.run"]
    airflow.kill("scheduler")  # and every task that is under way
    airflow.pause("experiment")
    airflow.start("scheduler")
    time.sleep(60 * DEAD_AFTER_MIN)
    for remove in (False, True):
        conf = {"remove": remove, "after_min": DEAD_AFTER_MIN}
        reaping = airflow.trigger("reap", conf)
        assert airflow.finish("reap", reaping, DEADLINE_S * crowding()) == "success"
        assert f"{run}: dead" in airflow.log_of("reap", reaping, "check_leases")
        if not remove:
            assert cloud.held()["servers"], "it only lists"
    assert f"{run}: given back" in airflow.log_of("reap", reaping, "release_dead")
    assert not run_folder(run).exists()
    cloud.assert_nothing_left()
