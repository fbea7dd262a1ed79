"""Parts of the testbed `openstack` that need no cloud."""

from __future__ import annotations

import math
import os
import time
from contextlib import closing, nullcontext
from types import SimpleNamespace
from unittest import mock

import keystoneauth1.exceptions as auth
import pytest
import yaml
from openstack import exceptions

from include.model.errors import SetupError, TestbedError, TestbedNotReady
from include.testbeds.flavors import FLAVORS
from include.testbeds.live.files import HEARTBEAT, ORIGIN, run_folder
from include.testbeds.live.hosts.local import reap as local
from include.testbeds.live.hosts.openstack import hosts as cloud_hosts
from include.testbeds.live.hosts.openstack import names, servers
from include.testbeds.live.hosts.openstack import reap as cloud_reaper
from include.testbeds.live.hosts.openstack.calibration import PARAMETERS, OpenStackCalibration
from include.testbeds.live.hosts.openstack.cloud import CloudClient, is_transient
from include.testbeds.live.hosts.openstack.hosts import BackgroundPoller, OpenStackHosts
from include.testbeds.live.hosts.openstack.names import ServerOptions
from include.testbeds.live.hosts.openstack.servers import Server
from include.testbeds.live.hosts.openstack.tags import LONGEST_TAG, TAG, ResourceTags, site
from include.testbeds.live.services import Services
from include.testbeds.live.state import RunState
from include.testing.builders import a_topology
from tests.builders import a_config
from tests.live.world import wait_until
from tests.problems import problems_told


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


def test_of_two_networks_with_one_name_the_id_is_asked_for():
    def networks():
        return [SimpleNamespace(name="elastic", id=number) for number in ("n-1", "n-2")]

    one = SimpleNamespace(name="one", id="1", vcpus=4, ram=8192)
    connection = SimpleNamespace(
        image=SimpleNamespace(images=lambda: [one]),
        compute=SimpleNamespace(flavors=lambda: [one]),
        network=SimpleNamespace(networks=networks),
    )
    flavor = FLAVORS["live-half-cpu-1gb"]
    options = {"image": "one", "flavors": {flavor.name: "one"}}
    by_id = OpenStackCalibration(networks=("n-1",), **options)
    assert names.look_up(connection, by_id, flavor).networks == ("n-1",)
    by_name = OpenStackCalibration(networks=("elastic",), **options)
    (problem,) = problems_told(names.look_up, connection, by_name, flavor)
    assert problem == "2 of kind network have the name elastic; give the id of one"


@pytest.mark.parametrize(
    ("clouds", "told"),
    [
        ("", "was not found.; no cloud is configured; write a clouds.yaml"),
        ("just text", "is empty or not a valid mapping; correct that file"),
        ("clouds: {two: {}, one: {}}", "was not found.; there are: one, two"),
    ],
)
def test_a_cloud_that_is_not_there_is_told_with_those_that_are(clouds, told, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    path = tmp_path / "clouds.yaml"
    path.write_text(clouds)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    with pytest.raises(SetupError, match=rf"^cloud nowhere: .*{told}"):
        CloudClient("nowhere", 5).connection  # noqa: B018 (it connects)


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
        values.append(poller.latest())
        assert time.monotonic() - began_s < 10
    poller.close()
    assert sorted(set(values)) == [0, 1, 2]
    assert values == sorted(values)


class FakeCloud:
    """Lists its servers and ports, and notes what it is asked to delete."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.servers: list[Server] = []
        self.ports_held: list[SimpleNamespace] = []
        self.listings = 0
        self.deleted: list[str] = []
        self.connection = self.compute = self.network = self
        self.translated_errors = lambda what: nullcontext()

    def named(self, name, answer_within_s):
        self.names.append(name)
        return self

    def with_retries(self, work, what, within_s):
        return work(self)

    def find(self, connection, tags):
        self.listings += 1
        return list(self.servers)

    def ports(self, **by):
        return self.ports_held

    def ips(self, tags):
        return []

    def delete_server(self, server):
        self.deleted.append(server)
        self.servers = [one for one in self.servers if one.id != server]

    def delete_port(self, port):
        self.deleted.append(port)

    def close(self):
        pass


@pytest.fixture
def cloud(monkeypatch, tmp_path):
    made = FakeCloud()
    monkeypatch.setenv("TIDEBENCH_LIVE_STATE", str(tmp_path))
    for module in (cloud_hosts, cloud_reaper):
        monkeypatch.setattr(module, "CloudClient", made.named)
    monkeypatch.setattr(servers, "find", made.find)
    monkeypatch.setattr(servers, "delete", lambda _, server, within_s: made.delete_server(server))
    return made


@pytest.mark.parametrize("given_up", [None, TestbedNotReady, ValueError])
def test_a_server_seen_before_its_order_ends_goes_only_if_that_is_given_up(
    given_up, cloud, monkeypatch
):
    tags = ResourceTags("a-run", site())

    def order(_, request, within_s):
        cloud.servers.append(Server("s-1", request["name"], "BUILD", "", {}, tags))
        see_again()
        if given_up:
            raise given_up("no answer, or nonsense")
        return "s-1"

    def see_again():
        """Look after a booting host until the cloud was seen anew in the background."""
        end_s, seen = time.monotonic() + 10, cloud.listings + 3
        while cloud.listings < seen:
            assert time.monotonic() < end_s
            hosts.boot_failed("another")

    monkeypatch.setattr(servers, "order", order)
    options = ServerOptions("image", "flavor", ("network",), 1, 1024)
    monkeypatch.setattr(names, "look_up", lambda connection, settings, flavor: options)
    monkeypatch.setattr(names, "require_quota", lambda *asked: None)
    monkeypatch.setattr(Services, "find", lambda: {"REGISTRY": "10.0.0.1:5000"})
    with closing(OpenStackHosts(tags, OpenStackCalibration(look_every_s=0.001))) as hosts:
        with pytest.raises(given_up) if given_up else nullcontext():
            hosts.lease(FLAVORS["live-half-cpu-1gb"])
        assert cloud.deleted == []
        see_again()
        assert cloud.deleted == (["s-1"] if given_up else [])


def test_a_host_is_up_once_its_ports_are_tagged(cloud, monkeypatch):
    tags, fails = ResourceTags("a-run", site()), [TestbedError("Neutron is busy")]

    def set_tags(port, of):
        if fails:
            raise fails.pop()
        port.tags = of

    cloud.set_tags = set_tags
    cloud.servers.append(Server("s-1", "a-run.1", "ACTIVE", "", {"tidebench": "10.0.0.5"}, tags))
    cloud.ports_held.append(SimpleNamespace(id="p-1", tags=[]))
    engine = SimpleNamespace(answers=lambda: True)
    monkeypatch.setattr(cloud_hosts, "Engine", lambda endpoint: engine)
    with closing(OpenStackHosts(tags, OpenStackCalibration(look_every_s=0.001))) as hosts:
        wait_until(lambda: hosts.endpoint("s-1"), "the host is up", 10)
    assert cloud.ports_held[0].tags == tags.tags


def test_a_server_of_which_only_a_port_is_left_is_given_back_again(cloud, monkeypatch):
    """Neutron failed as the server was deleted: the next attempt has to find the port."""
    tags, other = ResourceTags("a-run", site()), ResourceTags("another", site())
    for number, of in enumerate((tags.tags, tags.tags, other.tags, [TAG], None)):
        port = SimpleNamespace(id=f"p-{number}", device_id=f"s-{number}", tags=of)
        cloud.ports_held.append(port)
    cloud.servers.append(Server("s-0", "a-run.1", "ACTIVE", "", {}, tags))
    with closing(OpenStackHosts(tags, OpenStackCalibration())) as hosts:
        assert hosts.leased() == ["s-0", "s-1"]
        monkeypatch.setattr(cloud, "ports", mock.Mock(side_effect=TestbedNotReady("Neutron")))
        assert hosts.leased() == ["s-0"], "a server is given back though ports cannot be listed"
        cloud.servers.clear()
        with pytest.raises(TestbedNotReady, match="Neutron"):
            hosts.leased()


@pytest.mark.parametrize("due", ["tomorrow", None, ["1"]])
def test_what_is_due_at_no_time_that_can_be_read_is_left_alone(due):
    """Somebody else's server that has our tag ended all reaping."""
    metadata = {"tidebench.run": "r", "tidebench.site": "s", "tidebench.due": due}
    assert ResourceTags.read([TAG], metadata).due_s == math.inf


def test_a_folder_without_its_origin_gets_it(tmp_path, monkeypatch):
    """A kill between the two would make a run in a cloud one of this machine."""
    monkeypatch.setenv("TIDEBENCH_LIVE_STATE", str(tmp_path))
    run_folder("a-run").mkdir(parents=True)
    hosts = SimpleNamespace(origin=lambda: {"testbed": "openstack", "cloud": "mine"})
    RunState(a_config(a_topology("O1"), run="a-run"), OpenStackCalibration(), hosts).touch()
    assert local.origin_of("a-run")["cloud"] == "mine"


def test_a_port_belongs_to_its_run_by_the_end_of_a_long_name_and_to_nobody_without(
    cloud, monkeypatch
):
    """A cloud that runs and the environment name is asked once."""
    run = "x" * 80 + "-0a1b2c"
    tags = ResourceTags(run, site(), time.time() + 60)
    monkeypatch.setenv("OS_CLOUD", "mine")
    run_folder(run).mkdir(parents=True)
    (run_folder(run) / ORIGIN).write_text('{"testbed": "openstack", "cloud": "mine"}')
    (run_folder(run) / HEARTBEAT).touch()
    for server, of in (("s-1", tags), ("s-2", ResourceTags("", ""))):
        cloud.servers.append(Server(server, server, "ACTIVE", "", {}, of))
    for port, marks in (("p-1", tags.tags), ("p-2", [TAG])):
        cloud.ports_held.append(SimpleNamespace(id=port, device_id="s-1", tags=marks))
    (held,) = cloud_reaper.find()
    assert cloud.names == ["mine"]
    assert (held.run, held.holds) == (run, ("folder", "server s-1", "port p-1"))
    assert not held.dead(after_s=60)
    cloud_reaper.give_back_run(run)
    assert cloud.deleted == ["s-1", "p-1"], "not what somebody else has given our tag"
