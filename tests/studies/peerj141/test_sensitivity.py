"""The ledger of constants: complete, true to the calibration, and measured one at a time."""

from __future__ import annotations

import pytest

from include.files.whole import csv_rows
from include.studies.peerj141.calibration import CONTROLLERS, START, changes
from include.studies.peerj141.sensitivity import CHANGED, COLUMNS, CONSTANTS, OUT, rows
from include.studies.peerj141.trial import CalibrationRun
from include.studies.scripts import script_parser
from include.testbeds import TESTBEDS
from include.testbeds.virtual.calibration import VirtualCalibration

ORIGINS = ("paper", "runtime", "fitted", "chosen")
BY_NAME = {one["constant"]: one for one in CONSTANTS}


def test_every_constant_says_where_it_is_from():
    numbers = CONSTANTS[1:]
    assert {one["origin"] for one in numbers} == set(ORIGINS)
    fitted = {one["constant"]: one for one in numbers if one["origin"] == "fitted"}
    assert fitted.keys() == START.keys()
    for name, value in START.items():
        texts = [fitted[name][column].split()[0] for column in ("value", "changed_to")]
        assert [text.removesuffix("/h") for text in texts] == [f"{value:g}", f"{1.1 * value:g}"]
    assert all(one["source"] and one["value"] for one in numbers)
    changed = {one["constant"] for one in numbers if one["origin"] not in ("paper", "runtime")}
    assert CHANGED.keys() - {"nothing"} == changed


def test_the_calibration_has_the_values_of_the_ledger():
    now = TESTBEDS["simulated"].parameters().load_calibration("manufacturing")
    fitted = VirtualCalibration.model_validate(changes(START))
    assert now.service_ms == pytest.approx(fitted.service_ms, rel=1e-3)
    for name in ("memory_factor", "stalls_per_hour", "stall_s", "latency_ms"):
        assert getattr(now, name) == getattr(fitted, name)
    stated = ("service_cv", "image_pull_s", "cpu_noise", "host_boot_s", "instance_start_s")
    texts = [BY_NAME[name]["value"] for name in stated]
    values = [getattr(now, name) for name in stated]
    assert texts == [
        f"{one[0]:g} to {one[1]:g} s" if isinstance(one, tuple) else f"{one:g}" for one in values
    ]


@pytest.mark.parametrize("name", [name for name in CHANGED if name != "nothing"])
def test_every_change_is_one_of_the_calibration(name):
    given = VirtualCalibration.model_validate({**changes(START), **CHANGED[name]})
    assert given != VirtualCalibration.model_validate(changes(START))


class OneRun:
    """Stands for a pool: every trial has the same figures, and what it was given is kept."""

    def __init__(self):
        self.given = []

    def map(self, _, points, changed):
        self.given += changed
        return [CalibrationRun((50.0, 90.0, 95.0), dict.fromkeys(
            ("btu10", "btu30", "btu60"), 80.0), 1_700_000)] * len(points)  # fmt: skip


def test_one_constant_is_changed_at_a_time():
    pool = OneRun()
    found = list(rows([7], pool))
    assert all(tuple(row) == COLUMNS for row in found)
    stated = [row["compliance_points"] for row in found if row["constant"] not in CHANGED]
    assert set(stated) == {""}
    measured = [one["constant"] for one in CONSTANTS if one["constant"] in CHANGED]
    assert len(found) == len(measured) * len(CONTROLLERS) + len(CONSTANTS) - len(measured)
    base = changes(START)
    for one, given in zip(measured, pool.given[:: len(pool.given) // len(measured)], strict=True):
        differing = {name for name in given if given[name] != base.get(name)}
        assert len(differing) == (0 if one == "nothing" else 1), one


def test_the_table_beside_it_is_of_these_constants():
    table = csv_rows(OUT)
    assert tuple(table[0]) == COLUMNS
    assert {row["constant"] for row in table} == set(BY_NAME)
    assert all(row.items() >= BY_NAME[row["constant"]].items() for row in table)


def test_seeds_of_a_script_are_numbers_however_they_are_written() -> None:
    parser = script_parser(None, OUT, "1,2")
    assert parser.parse_args([]).seeds == [1, 2]
    assert parser.parse_args(["--seeds", "25-27,30"]).seeds == [25, 26, 27, 30]
