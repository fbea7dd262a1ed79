"""YAML of somebody else: plain values, or an error that can be shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from include.experiment.matrix import runs_in_file
from include.files.plain_yaml import MOST_NESTED, read_yaml
from include.model.errors import SpecError
from include.testbeds import TESTBEDS
from include.workloads.topologies import load_topology


def test_a_date_is_the_text_that_stands_there() -> None:
    text = "day: 2026-01-31\nat: 2026-01-31T10:00:00Z\nnone: 2026-13-45\n"
    assert read_yaml(text) == {
        "day": "2026-01-31",
        "at": "2026-01-31T10:00:00Z",
        "none": "2026-13-45",
    }


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("!!binary aGVsbG8=", id="bytes"),
        pytest.param("!!set {a, b}", id="a set"),
        pytest.param("!!python/object:os.system {}", id="an object of Python"),
        pytest.param("!!int many", id="a number that is none"),
        pytest.param("9" * 5000, id="a number of 5,000 digits"),
        pytest.param("[" * 30_000, id="30,000 open brackets"),
        pytest.param("- " * 30_000 + "1", id="30,000 lists in lists"),
        pytest.param("a: [1", id="a bracket that stays open"),
        pytest.param("&a [*a]", id="a list in itself"),
        pytest.param(
            "a0: &a0 [x]\n" + "".join(f"a{k + 1}: &a{k + 1} [*a{k}, *a{k}]\n" for k in range(99)),
            id="2^99 values of 100 lines",
        ),
        pytest.param(
            "a0: &a0 {x: 1}\n"
            + "".join(f"a{k + 1}: &a{k + 1} {{<<: [*a{k}, *a{k}]}}\n" for k in range(99)),
            id="a mapping merged 2^99 times",
        ),
    ],
)
def test_what_cannot_be_read_is_an_error_of_yaml(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        read_yaml(text)


def test_a_long_text_may_be_as_deep_as_a_short_one() -> None:
    deep = "[" * MOST_NESTED + "]" * MOST_NESTED
    assert read_yaml(deep + "\n# " + "x" * 20_000) == json.loads(deep)


@pytest.mark.parametrize("number", ["1" * 5000, "0x" + "f" * 5000])
def test_a_number_that_no_message_can_show_is_refused(number: str, tmp_path: Path) -> None:
    spec = tmp_path / "mine.yaml"
    spec.write_text(f"{{name: mine, controllers: btu, patterns: constant, max_hosts: {number}}}")
    with pytest.raises(SpecError, match="not readable as YAML: Exceeds the limit"):
        runs_in_file(spec)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"name: [", b"!!binary aGVsbG8="])
def test_files_that_are_no_text_or_no_yaml_are_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(content)
    with pytest.raises(SpecError, match=r"mine\.yaml"):
        load_topology(str(file))
    with pytest.raises(SpecError, match=r"mine\.yaml"):
        TESTBEDS["simulated"].parameters().load_calibration(str(file))
    with pytest.raises(SpecError, match=r"mine\.yaml"):
        runs_in_file(file)


def test_a_key_that_stands_twice_is_an_error_wherever_it_stands(tmp_path):
    """YAML would take the last one without a word."""
    spec = tmp_path / "mine.yaml"
    spec.write_text(
        "name: mine\ncontrollers: [threshold]\npatterns: constant\n"
        "controllers: [btu]\nfaults: {a: 1, a: 2}\n"
    )
    with pytest.raises(SpecError) as raised:
        runs_in_file(spec)
    message = str(raised.value)
    assert "controllers stands twice (lines 2 and 4); keep one of them" in message
    assert "a stands twice (lines 5 and 5)" in message
    assert read_yaml("{a: {b: 1}, c: {b: 2}}") == {"a": {"b": 1}, "c": {"b": 2}}
    assert read_yaml("a: &x {b: 1}\nc: {<<: *x, b: 2}") == {"a": {"b": 1}, "c": {"b": 2}}


@pytest.mark.parametrize(
    "field",
    [
        "controllers: btu, btus_min: [true]",
        "controllers: btu, duration_min: yes",
        "controllers: btu, hosts: true",
        "controllers: btu, seeds: [1, true]",
        "controllers: {name: threshold, scale_up_above_items: true}",
        "controllers: btu, faults: {host_boot_failure: true}",
    ],
)
def test_yes_is_no_number(field, tmp_path):
    spec = tmp_path / "mine.yaml"
    spec.write_text(f"{{name: mine, patterns: constant, {field}}}")
    with pytest.raises(SpecError, match="write a number or a text"):
        runs_in_file(spec)
