"""What happens between a reading and its request, and what stops the request even then."""

from __future__ import annotations

import shutil

import pytest

from include.service.act import REPLACED
from include.service.record import LOCK, alone_in
from tests.service.acting_world import requests
from tests.service.fake_flink import answers_other_json, sends_on


def test_nothing_is_asked_of_flink_between_the_last_look_and_the_request(flink, acting):
    acting().step()
    job = f"/jobs/{flink.world.job}"
    assert flink.asked[-4:] == [
        ("GET", job),
        ("GET", f"{job}/checkpoints"),
        ("GET", f"{job}/resource-requirements"),
        ("PUT", f"{job}/resource-requirements"),
    ]


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (lambda flink: flink.world.most.update(sink=5), "what the job asks for changes"),
        (lambda flink: setattr(flink, "checkpoint_running", True), "a checkpoint has begun"),
        (lambda flink: setattr(flink.world, "name", "clicks"), "'clicks' in place of 'orders'"),
        (lambda flink: flink.world.restart(5.0), "restarts or was started again"),
        (lambda flink: setattr(flink.world, "started_s", 1_799_999_500.0), "started again"),
        (lambda flink: setattr(flink, "fault", sends_on), "Flink"),
        (lambda flink: setattr(flink, "fault", answers_other_json), "Flink"),
    ],
)
def test_what_happens_after_the_reading_holds_the_change(flink, acting, happens, why):
    service = acting()
    verdict = service.step(meanwhile=lambda: happens(flink))
    assert why in verdict.held[0]
    assert requests(flink) == []
    assert service.kinds == ["job", "held"]


def test_without_its_lease_a_service_changes_nothing_and_writes_nothing(flink, acting, tmp_path):
    service = acting()
    with alone_in(tmp_path, "acts"):
        service.actor.begin()
        (tmp_path / LOCK).unlink()
        assert service.step().held == (REPLACED,)
        with alone_in(tmp_path, "acts"):  # another service
            assert service.step().held == (REPLACED,)
            service.actor.end()
    assert requests(flink) == []
    assert service.kinds == ["began"]


def test_a_state_folder_that_is_removed_is_not_made_again(flink, acting, tmp_path):
    service = acting()
    with alone_in(tmp_path, "acts"):
        service.actor.begin()
        shutil.rmtree(tmp_path)
        assert service.step().held == (REPLACED,)
        service.actor.end()
    assert requests(flink) == []
    assert not tmp_path.exists()
