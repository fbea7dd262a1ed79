"""The client against a Flink that fails in every way, and against something else in its place."""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from include.service.rest import CA
from include.testbeds.flink.rest import NoAnswerError
from tests.service.fake_flink import (
    Connect,
    FakeFlink,
    Fault,
    a_client,
    a_flink,
    answers_401,
    answers_403_as_page,
    answers_500,
    answers_other_json,
    drips,
    drips_at_last,
    half_json,
    hangs,
    nested_json,
    sends_on,
    truncates,
)
from tests.service.flink_world import World

FAULTS = [
    hangs, drips, drips_at_last, answers_500, truncates, half_json, nested_json, sends_on,
    answers_other_json,
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_at_the_deadline_and_is_told_in_the_same_words_every_time(
    connect: Connect, flink: FakeFlink, fault: Fault
) -> None:
    client, told = connect(timeout_s=0.4), set()
    flink.fault = fault
    for _ in range(3):
        began = time.monotonic()
        with pytest.raises(NoAnswerError) as caught:
            client.reading("orders")
        assert time.monotonic() - began < 2.0
        told.add(str(caught.value))
    assert len(told) == 1

    flink.fault = lambda handler: False
    assert client.reading("orders").running


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Of 127.0.0.1, with its key; beside it that certificate alone, with the ending crt."""
    if not shutil.which("openssl"):
        pytest.skip("makes a certificate with openssl")
    pem = str(tmp_path / "flink.pem")
    command = "openssl req -x509 -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1"
    named = ["-subj", "/CN=flink", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", pem, "-out", f"{pem}.crt"]
    subprocess.run([*command.split(), *named, *files], check=True, capture_output=True)
    with Path(pem).open("a") as file:
        file.write(Path(f"{pem}.crt").read_text())
    return Path(pem)


@pytest.mark.parametrize("fault", [drips, drips_at_last])
def test_the_deadline_holds_over_tls_too(
    world: World, fault: Fault, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CA, f"{certificate}.crt")
    with a_flink(world, certificate) as flink, closing(a_client(flink, 0.8)) as client:
        assert client.reading("orders").running
        flink.fault = fault
        began = time.monotonic()
        with pytest.raises(NoAnswerError, match="no whole answer in time"):
            client.jobs()
        assert time.monotonic() - began < 2.0
        flink.fault = lambda handler: False
        assert client.reading("orders").running


def test_a_flink_whose_certificate_nobody_knows_is_told_with_where_to_name_it(
    world: World, certificate: Path
) -> None:
    with (
        a_flink(world, certificate) as flink,
        closing(a_client(flink, 0.8)) as client,
        pytest.raises(NoAnswerError, match=f"file of its certificates in {CA}"),
    ):
        client.jobs()


def test_all_requests_of_a_poll_together_have_a_deadline(
    connect: Connect, flink: FakeFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("include.service.rest.POLL_WITHIN_S", 1.0)
    flink.fault = lambda handler: "metrics" in handler.path and hangs(handler)
    began = time.monotonic()
    with pytest.raises(NoAnswerError):
        connect(timeout_s=0.3).reading("orders")
    assert time.monotonic() - began < 3.0


def test_an_answer_that_is_not_of_flink_is_none(connect: Connect, flink: FakeFlink) -> None:
    client = connect()
    flink.changed = {"vertices": [{"hello": "world"}]}
    with pytest.raises(NoAnswerError, match="answers otherwise than Flink"):
        client.reading("orders")
    flink.fault = answers_other_json
    for ask in (client.requirements, client.look):
        with pytest.raises(NoAnswerError, match="answers otherwise than Flink"):
            ask(flink.world.job)


def test_what_fails_alone_is_missing_and_the_rest_is_read(
    connect: Connect, flink: FakeFlink
) -> None:
    flink.fault = lambda handler: "checkpoints" in handler.path and answers_500(handler)
    reading = connect().reading("orders")

    assert reading.last_checkpoint_s is None
    assert [line.partition(":")[0] for line in reading.missing] == ["checkpoints"]
    assert "it is broken" in reading.missing[0]


@pytest.mark.parametrize("fault", [answers_401, answers_403_as_page])
def test_who_is_not_let_in_is_told_how_a_token_is_given(
    connect: Connect, flink: FakeFlink, fault: Fault
) -> None:
    flink.fault = fault
    with pytest.raises(NoAnswerError, match="set TIDEBENCH_FLINK_TOKEN, or TIDEBENCH_FLINK_TOKEN_"):
        connect().reading("orders")
