"""Parameters of servers of a cloud, in addition to those of the testbed ``docker``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from include.testbeds.calibrations import Parameters, calibration_folders
from include.testbeds.live.calibration import LiveCalibration, NoFaults
from include.workloads.topology_file import Positive

FOLDERS = calibration_folders("openstack", Path(__file__).parent)


class OpenStackCalibration(LiveCalibration):
    """Parameters of a run on a cloud; see calibrations/default.yaml."""

    cloud: str = ""
    image: str = "tidebench-host"
    flavors: dict[str, str] = Field(default_factory=dict)
    networks: Annotated[tuple[str, ...], Field(min_length=1)] = ("tidebench",)
    security_groups: tuple[str, ...] = ()
    key_pair: str = ""
    availability_zone: str = ""
    engine_port: Annotated[int, Field(ge=1, le=65535)] = 2375
    boot_within_s: Positive = 300
    order_within_s: Positive = 30
    gone_within_s: Positive = 120
    answer_within_s: Positive = 20
    look_every_s: Positive = 1


PARAMETERS = Parameters(OpenStackCalibration, NoFaults, FOLDERS)
