"""Keyed operators: what a file may say, what it changes of a run, and who ignores it."""

from __future__ import annotations

import json

import pytest

from include.experiment.run import Run, resolve
from include.model.errors import SpecError
from include.workloads.topologies import parse_topology
from tests.builders import run_spec
from tests.command_line import said

FILE = """
name: words
emission_period_s: 1
sources: {{S1: {{label: Words, items_per_level: 1}}}}
operators:
  count: {{label: Count, slo_ms: 50, cpu_shares: 512, memory_mb: 100, service_ms: 5, {fields}}}
edges: [{{from: S1, to: count}}]
"""


def test_every_wrong_value_is_named_at_once():
    fields = "keyed: {keys: 0, exponent: -1, state_kb: .inf}"
    with pytest.raises(SpecError) as error:
        parse_topology(FILE.format(fields=fields), source="words.yaml")
    assert error.value.problems == (
        "operator count: keyed.keys must be at least 1, got 0",
        "operator count: keyed.exponent must be a number of at least 0, got -1",
        "operator count: keyed.state_kb must be a number of at least 0, got inf",
        "operator count: keyed needs stateful: true",
    )


def test_a_misspelt_field_is_named():
    fields = "stateful: true, keyed: {keys: 3, skew: 1}"
    with pytest.raises(SpecError, match=r"operators\.count\.keyed\.skew: unknown field"):
        parse_topology(FILE.format(fields=fields), source="words.yaml")


def _run(topology: str) -> Run:
    return resolve(
        run_spec(controller="threshold", pattern="constant", duration_min=10, topology=topology)
    )


def test_a_run_without_keys_is_stored_as_it_was_before_there_were_any():
    operators = json.loads(_run("manufacturing").to_json())["topology"]["operators"]
    assert all("keyed" not in operator for operator in operators)


def test_a_stored_run_keeps_its_keys():
    run = _run("word_count_keyed")
    assert Run.from_json(run.to_json()) == run


@pytest.mark.parametrize(
    ("testbed", "setting"),
    [
        ("simulated", "buffer_items: {split: 9, count: 9, store: 9}"),
        ("flow", "key_groups: {count: 128}"),
    ],
)
def test_check_says_nothing_where_items_are_bound_by_their_keys(testbed, setting, tmp_path):
    (tmp_path / "mine.yaml").write_text(setting)
    spec = tmp_path / "words.yaml"
    spec.write_text(
        "name: words\ntopology: word_count_keyed\ncontrollers: [threshold]\n"
        f"testbed: {testbed}\ncalibration: mine.yaml\n"
    )
    assert "ignored:" not in said("check", spec)


@pytest.mark.parametrize("testbed", ["simulated", "flow"])
def test_check_says_that_a_testbed_ignores_keys(testbed, tmp_path):
    spec = tmp_path / "words.yaml"
    spec.write_text(
        f"name: words\ntopology: word_count_keyed\ncontrollers: [threshold]\ntestbed: {testbed}\n"
    )
    printed = said("check", spec)
    assert printed.splitlines()[-1] == (
        f"ignored: {testbed} ignores keys, their skew and state: count"
    )
    spec.write_text(
        "name: words\ntopology: manufacturing\ncontrollers: [btu]\npatterns: stepwise\n"
    )
    assert "ignored:" not in said("check", spec)
    spec.write_text(spec.read_text() + "testbed: flow\ncalibration: manufacturing_paused\n")
    assert "flow has no pause_on_start_s, pause_on_stop_s" in said("check", spec)
    (tmp_path / "mine.yaml").write_text("based_on: manufacturing\nservice_ms: {o1: 5}\n")
    spec.write_text(spec.read_text().replace("manufacturing_paused", "mine.yaml"))
    assert "mine.yaml, service_ms: unknown operator 'o1'. Did you mean 'O1'?" in said("check", spec)
