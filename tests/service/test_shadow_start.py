"""The start of a shadow: without its Flink, with wrong controllers, and as a service of Compose."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from include.cli import app
from include.controllers.base import Setting
from include.controllers.fixed import Fixed
from include.files.appended import AppendedRows
from include.model.errors import SetupError
from include.service import shadow_loop
from include.service.act import Actor, Wish
from include.service.clock import Timestamp
from include.service.guard import Permission
from include.service.journal import ChangeJournal
from include.service.limits import load_limits
from include.service.rates import JobRates, rates_between
from include.service.reading import JobReading
from include.service.record import Polling
from include.service.rest import POLL_WITHIN_S, FlinkRest
from include.service.shadow import asked_controllers
from include.service.shadow_loop import FIRST, UNWRITTEN, run_shadow
from include.testbeds.flink.rest import TIMEOUT_S, NoAnswerError
from tests.problems import problems_told
from tests.service.acting_world import mandate
from tests.service.fake_flink import FakeFlink
from tests.service.test_shadow import register_broken

Seen = Callable[[JobReading, JobRates | None], None]
REPOSITORY = Path(__file__).parents[2]
COMPOSE = REPOSITORY / "infra/service/compose.yaml"


def starts(url: str, folder: Path, actor: Actor | None = None, **changes: Any) -> None:
    usual = {"controllers": asked_controllers(["hpa"], {}), "prices": "btu60"}
    run_shadow(
        Polling(url=url, job="orders", every_s=1, lasts_s=0.0, told=print), folder,
        objective="latency p95 < 2 s", most_slots=0, page="", advised=print, actor=actor,
        **(usual | changes),
    )  # fmt: skip


def test_a_start_without_flink_is_no_entry_of_the_journal(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:1"
    actor = Actor(mandate(tmp_path, controller="hpa", really=False), FlinkRest(nowhere))
    with pytest.raises(NoAnswerError, match="does not answer"):
        starts(nowhere, tmp_path, actor)
    assert list(ChangeJournal(tmp_path).read()) == []


def test_controllers_that_cannot_be_built_are_told_before_anything_is_recorded(
    tmp_path: Path, flink: FakeFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Fixed, setting: Setting) -> None:
        raise ValueError(f"no {setting.topology.operator_names}")

    register_broken(monkeypatch, __init__=fails)
    asked = asked_controllers(["broken", "ds2", "hpa"], {"hpa.target_cpu": -1.0})

    failed, refused = problems_told(starts, flink.url, tmp_path, controllers=asked)
    assert failed.startswith("broken: fails failed (ValueError: no ('source_events', 'map'")
    assert f"correct it in {__file__}:" in failed
    assert refused.startswith("hpa: target_cpu must be")
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_advice_of_a_turn_that_a_full_disk_kept_out_is_not_followed_at_the_next(
    tmp_path: Path, flink: FakeFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every third turn somebody is asked: at 30 s, where it is the first, 45, 60 and 75 s."""

    class Looking(Actor):
        def step(self, reading: JobReading, read: Timestamp, wish: Wish) -> Permission:
            told[reading.at_s - began_s] = wish.why_not if wish.counts else "nothing is wanted"
            return Permission()

    def turns(polling: Polling, folder: Path, *, seen: Seen, **_: Any) -> None:
        before = flink.world.reading()
        for number in range(1, 17):
            now = flink.world.after(5)
            full = monkeypatch.context() if number in (9, 10) else nullcontext()
            with full as patched, suppress(SetupError):
                if patched:
                    patched.setattr(AppendedRows, "append", no_room)
                seen(now, rates_between(before, now))
            before = now

    def no_room(*_: Any) -> None:
        raise SetupError("No space left on device")

    told: dict[float, str] = {}
    began_s = flink.world.now_s
    monkeypatch.setattr(shadow_loop, "record", turns)
    starts(flink.url, tmp_path, Looking(mandate(tmp_path, really=False), FlinkRest(flink.url)))
    assert 45 not in told
    assert 50 not in told
    assert {at_s: told[at_s] for at_s in (30, 35, 40, 55, 60, 65, 75)} == {
        **dict.fromkeys((30, 35, 40), FIRST), 55: UNWRITTEN, **dict.fromkeys((60, 65, 75), ""),
    }  # fmt: skip


def services_file(**environment: str) -> Any:
    """The services beside a job, with variables put in as Compose does."""

    def value(found: re.Match[str]) -> str:
        name, operator, other = found.groups()
        given = environment.get(name, "")
        return (other if given else "") if operator == "+" else given or other

    return yaml.safe_load(re.sub(r"\$\{(\w+):([-+?])([^}]*)\}", value, COMPOSE.read_text()))


@pytest.mark.parametrize("name", ["shadow", "act"])
def test_a_service_of_compose_is_a_command_with_its_page_and_its_state(name: str) -> None:
    service = services_file(FLINK_URL="http://flink:8081", FLINK_JOB="the orders")["services"][name]
    program, command, *options = service["command"]
    assert (program, command) == ("tidebench", name)
    asked = getattr(get_command(app), "commands")[name].make_context(name, options).params  # noqa: B009
    assert (asked["url"], asked["job"]) == ("http://flink:8081", "the orders")
    assert asked["state"] == Path("/opt/tidebench/var") / name
    assert "data:/opt/tidebench/var" in service["volumes"]
    port = asked["page"].removeprefix("0.0.0.0:")
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert service["healthcheck"]["test"][-1] == f"http://127.0.0.1:{port}/healthz"
    assert service["restart"] == "unless-stopped"
    unit = (COMPOSE.parent / f"tidebench-{name}.service").read_text()
    for stops in (service["stop_grace_period"], re.findall("^TimeoutStopSec=(.*)", unit, re.M)[0]):
        assert (
            int(stops.removesuffix("s")) > POLL_WITHIN_S + 4 * TIMEOUT_S
        )  # three looks, a request
    assert service["secrets"] == ["flink_token"]


@pytest.mark.parametrize(("mode", "really"), [("", False), ("dry-run", False), ("really", True)])
def test_the_service_that_acts_is_started_by_name_and_is_a_dry_run_at_first(
    mode: str, really: bool
) -> None:
    service = services_file(ACT_MODE=mode)["services"]["act"]
    assert service["profiles"] == ["act"]
    options = service["command"][2:]
    asked = getattr(get_command(app), "commands")["act"].make_context("act", options).params  # noqa: B009
    assert asked["really"] is really
    [limits] = [one for one in service["volumes"] if isinstance(one, dict)]
    assert limits["target"] == str(asked["limits"])
    assert limits["read_only"]
    assert limits["bind"] == {"create_host_path": False}
    load_limits(REPOSITORY / limits["source"])


def test_the_documented_command_has_every_variable_that_compose_wants() -> None:
    wanted = set(re.findall(r"\$\{(\w+):\?", COMPOSE.read_text()))
    wanted |= {one["environment"] for one in services_file()["secrets"].values()}
    for text in (COMPOSE.read_text(), (REPOSITORY / "docs/service.md").read_text()):
        exported = re.findall(r"export (FLINK_URL=.*)", text)
        assert wanted <= set(re.findall(r"(\w+)=", exported[0]))
