"""Parts of the testbed `openstack` that need no cloud."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import keystoneauth1.exceptions as auth
import pytest
import yaml
from openstack import exceptions

from include.model.errors import TestbedError
from include.testbeds import TESTBEDS
from include.testbeds.live.hosts.openstack import reap as cloud_reaper
from include.testbeds.live.hosts.openstack.calibration import PARAMETERS, OpenStackCalibration
from include.testbeds.live.hosts.openstack.cloud import is_transient
from include.testbeds.live.hosts.openstack.hosts import BackgroundPoller
from include.testbeds.live.hosts.openstack.servers import user_data
from include.testbeds.live.hosts.openstack.tags import LONGEST_TAG, ResourceTags, site
from include.testbeds.reap import HeldResources, reap


def test_user_data_brings_up_an_engine_that_trusts_the_registry():
    text = user_data("10.0.0.1:5000", 2375)
    assert text.startswith("#cloud-config\n")
    config = yaml.safe_load(text)
    assert config["packages"] == ["docker.io"]
    files = {file["path"]: file["content"] for file in config["write_files"]}
    daemon = json.loads(files["/etc/docker/daemon.json"])
    assert daemon["insecure-registries"] == ["10.0.0.1:5000"]
    assert daemon["hosts"] == ["tcp://0.0.0.0:2375", "unix:///var/run/docker.sock"]
    unit = files["/etc/systemd/system/docker.service.d/tidebench.conf"]
    assert unit.splitlines()[:2] == ["[Service]", "ExecStart="]
    assert "-H" not in unit


@pytest.mark.parametrize("run", ["a-run", "x" * 200 + "-0a1b2c"])
def test_marks_name_the_run_in_full_and_fit_into_tags(run):
    tags = ResourceTags(run, "here-1", 1_800_000_000.0)
    assert all(len(tag) <= LONGEST_TAG for tag in tags.tags)
    assert ResourceTags.read(tags.tags, tags.metadata) == tags
    assert run.endswith(ResourceTags.read(tags.tags, {}).run)


def test_an_installation_has_one_name_for_ever(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEBENCH_LIVE_STATE", str(tmp_path))
    assert site() == site()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    assert len(ResourceTags("r", site()).tags[2]) <= LONGEST_TAG


def test_the_calibration_that_comes_along_lists_every_default():
    defaults = yaml.safe_load((PARAMETERS.folders[0] / "default.yaml").read_text())
    assert OpenStackCalibration(**defaults) == OpenStackCalibration()
    of_docker = OpenStackCalibration.__mro__[1].model_fields
    fields_added = set(OpenStackCalibration.model_fields) - set(of_docker) | {"boot_within_s"}
    assert set(defaults) == fields_added
    assert PARAMETERS.calibration_for("manufacturing_live") == "manufacturing_live"
    assert PARAMETERS.load_calibration("manufacturing_live").service_ms["O1"] == 250


def test_what_may_pass_is_told_from_what_will_not():
    refused = {status: exceptions.HttpException("no", http_status=status) for status in
               (400, 401, 403, 404, 409, 413, 429, 500, 503, 504)}  # fmt: skip
    assert {status for status, error in refused.items() if is_transient(error)} == {
        409, 429, 500, 503, 504,
    }  # fmt: skip
    assert is_transient(auth.ConnectTimeout())
    assert is_transient(auth.ServiceUnavailable())
    assert not is_transient(auth.Unauthorized())
    assert not is_transient(ValueError())


def test_a_poll_holds_nobody_up_and_one_that_fails_changes_nothing():
    polls = iter([1, TestbedError("for a while"), 2])

    def poll() -> int:
        time.sleep(0.05)
        match next(polls):
            case TestbedError() as error:
                raise error
            case value:
                return value

    poller = BackgroundPoller(poll, 0, every_s=0.0)
    values, began_s = [], time.monotonic()
    while not values or values[-1] != 2:
        values.append(poller.latest().value)
        assert time.monotonic() - began_s < 10
    poller.close()
    assert sorted(set(values)) == [0, 1, 2]
    assert values == sorted(values)


def test_a_run_that_holds_something_says_why_it_is_dead_or_alive():
    for silent_s, after_s, sentence in (
        (float("inf"), 60, "r: dead, nobody has ever looked after it: host 1"),
        (59.0, 60, "r: alive, nobody has looked after it for 59 s: host 1"),
        (-30.0, 0, "r: alive, of another installation, and due to end in 30 s: host 1"),
    ):
        assert HeldResources("r", ("host 1",), silent_s).described(after_s) == sentence


def test_a_cloud_that_runs_and_environment_name_is_asked_once(monkeypatch, tmp_path):
    folder = tmp_path / "runs" / "a-run"
    folder.mkdir(parents=True)
    (folder / "origin.json").write_text('{"testbed": "openstack", "cloud": "mine"}')
    monkeypatch.setenv("TIDEBENCH_LIVE_STATE", str(tmp_path))
    monkeypatch.setenv("OS_CLOUD", "mine")
    monkeypatch.setattr(cloud_reaper.local, "find", lambda _: [])
    asked = []
    monkeypatch.setattr(
        cloud_reaper, "tagged_in", lambda cloud_named: asked.append(cloud_named.name) or []
    )
    assert cloud_reaper.find() == []
    assert asked == ["mine"]


def test_that_nothing_is_held_is_said(monkeypatch):
    nobody = SimpleNamespace(reaped_by="nobody", reaper=lambda: SimpleNamespace(find=list))
    monkeypatch.setitem(TESTBEDS, "docker", nobody)
    output = []
    assert reap(remove=True, testbeds=["docker"], say=output.append) == 0
    assert output == ["docker: no run holds anything"]
