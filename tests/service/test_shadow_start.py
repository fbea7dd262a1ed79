"""The start of a shadow: without its Flink, after a kill, and as a service of Compose."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
import yaml

from include.service.act import Actor, Mandate
from include.service.follow import Follower
from include.service.journal import ChangeJournal
from include.service.rest import FlinkRest
from include.service.shadow import asked_controllers
from include.service.shadow_loop import run_shadow
from include.testbeds.flink.rest import NoAnswerError
from tests.service.acting_world import limits_of
from tests.service.fake_flink import FakeFlink
from tests.service.flink_world import World
from tests.service.test_shadow import Beside

REPOSITORY = Path(__file__).parents[2]


def starts(url: str, folder: Path, follower: Follower | None = None, lasts_s: float = 0.0) -> None:
    run_shadow(
        url, "orders", folder, controllers=asked_controllers(["hpa"], {}), prices="btu60",
        objective="latency p95 < 2 s", every_s=1, lasts_s=lasts_s, most_slots=0, page="",
        stop=threading.Event(), told=print, advised=print, follower=follower,
    )  # fmt: skip


def test_a_start_without_flink_is_no_entry_of_the_journal(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:1"
    mandate = Mandate(
        job_name="orders", controller="hpa", limits=limits_of(), really=False, state=tmp_path
    )
    follower = Follower(Actor(mandate, FlinkRest(nowhere)), 1, print)
    with pytest.raises(NoAnswerError, match="does not answer"):
        starts(nowhere, tmp_path, follower)
    assert list(ChangeJournal(tmp_path).read()) == []


def test_a_shadow_that_was_killed_while_it_wrote_starts_again(
    tmp_path: Path, flink: FakeFlink, world: World
) -> None:
    before = Beside(tmp_path, world, ("hpa",))
    before.turns(4)
    before.end()
    decisions = tmp_path / "decisions.csv"
    whole = decisions.read_text()
    decisions.write_text(f"{whole}1800000075.0,hpa,map,2")

    starts(flink.url, tmp_path)
    assert decisions.read_text() == whole


def test_the_documented_command_has_every_variable_that_compose_wants() -> None:
    path = REPOSITORY / "infra/service/compose.yaml"
    wanted = set(re.findall(r"\$\{(\w+):\?", path.read_text()))
    wanted |= {one["environment"] for one in yaml.safe_load(path.read_text())["secrets"].values()}
    for text in (path.read_text(), (REPOSITORY / "docs/service.md").read_text()):
        exported = re.findall(r"export (FLINK_URL=.*)", text)
        assert wanted <= set(re.findall(r"(\w+)=", exported[0]))
