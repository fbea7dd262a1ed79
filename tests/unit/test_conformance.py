"""Upstream's own tests, as rows: every one that can be represented runs here."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from include.cli import app
from include.cli.papers import LEDGER, conformity_line
from include.controllers.conformance import UNREAD, conform, packaged_rows, read_rows
from include.model.errors import GateFailed, SpecError
from tests.command_line import said
from tests.problems import problems_told

DEVIATIONS = Path(LEDGER).read_text(encoding="utf-8")


def test_every_row_of_the_package_holds_or_is_in_the_ledger_of_deviations():
    """The command says each row with what it expects and got, and refuses if one differs."""
    ran = said("conform")
    assert re.findall(r"^DIFF .*\n.*", ran, re.MULTILINE) == []
    held, of = map(int, re.search(r"(\d+) of (\d+) rows as expected", ran).groups())
    assert held == of
    deviations = re.findall(r"not run: (\S+) in ", ran)
    assert held + len(deviations) == len(packaged_rows())
    assert deviations
    assert UNREAD not in deviations, ran
    for deviation in {*deviations, UNREAD}:
        assert re.search(rf"^\| {deviation} \|", DEVIATIONS, re.MULTILINE), deviation


def test_rows_are_named_once():
    rows = packaged_rows()
    assert len({row.id for row in rows}) == len(rows)


def a_file(folder, *rows):
    path = folder / "rows.json"
    path.write_text(json.dumps({"hpa": rows}), encoding="utf-8")
    return path


def a_row(**changes):
    inputs = {"current": 5, "metric": 8600, "target_per_pod": 2867, "tolerance": 0.1}
    return {"id": "keda/a", "inputs": inputs, "expected": {"replicas": 3}} | changes


def test_a_file_of_rows_is_run_and_counted(tmp_path):
    rows = [
        a_row(),
        a_row(id="keda/b", expected={"replicas": 4}),
        a_row(id="keda/c", inputs={"current": 1, "idle": 0, "min": 5}),
        a_row(id="keda/d", inputs={"target_per_pod": 1}),
        a_row(id="hpas/e"),
        a_row(id="keda/f", expected={"pods": 3}),
    ]
    ran = CliRunner().invoke(app, ["conform", str(a_file(tmp_path, *rows))])
    assert isinstance(ran.exception, GateFailed)
    for text in (
        'ok    keda/a\n      expected {"replicas": 3}, got {"replicas": 3}',
        'DIFF  keda/b\n      expected {"replicas": 4}, got {"replicas": 3}',
        f'-     keda/c\n      expected {{"replicas": 3}}, not run: AUTO-ONE in {LEDGER}\n',
        f"not run: AUTO-CONFORM in {LEDGER}; its inputs are none of such a row",
        f"not run: AUTO-CONFORM in {LEDGER}; unknown first part of id 'hpas'",
        f"not run: AUTO-CONFORM in {LEDGER}; its expectation names none of replicas",
        "1 of 2 rows as expected; 4 of 6 cannot be represented",
    ):
        assert text in ran.output


def test_a_file_that_is_none_says_all_that_is_wrong_with_it(tmp_path):
    wrong = a_file(tmp_path, {"inputs": {}}, a_row(inputs=[]), a_row(expected=3))
    assert len(problems_told(read_rows, wrong)) == 3
    with pytest.raises(SpecError, match="rows in JSON"):
        read_rows(tmp_path / "none.json")


ODD = [None, True, -1, "", [], {"a": None}]


@pytest.mark.parametrize("row", packaged_rows()[::40], ids=lambda row: row.id)
def test_no_value_of_an_input_is_a_crash(row):
    """Every input of a row is left out, or is any value: it runs, or is named as not readable."""
    for name in row.inputs:
        rest = {key: value for key, value in row.inputs.items() if key != name}
        for inputs in (rest, *({**rest, name: odd} for odd in ODD)):
            (outcome,) = conform([replace(row, inputs=inputs)])
            assert outcome.got is not None or outcome.deviation
            conformity_line(outcome)
