"""Every bench runs, at a small size: what the documents say of it stays one command away."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from include.controllers import CONTROLLERS
from tests.bench import growth
from tests.bench.gates import exit_code
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
Bench = Callable[..., str]

# Modules of this folder that are no bench.
PEERS = {"heap_network", "kernel_network", "simpy_network"}
PARTS = {"__init__", "gates", "turns", Path(__file__).stem} | PEERS


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str]) -> Bench:
    """What a bench prints with these arguments."""

    def printed(module: str, *arguments: str) -> str:
        assert not import_module(module).main(arguments)
        return capsys.readouterr().out

    return printed


def test_every_bench_is_tested() -> None:
    here = {file.stem for file in HERE.glob("*.py")} - PARTS
    tested = set(re.findall(r'bench\("tests\.bench\.(\w+)"', Path(__file__).read_text()))
    assert tested == here


def test_what_is_above_its_bound_is_named_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = [("CPU", 4.4, 4.4), ("memory", 1.3, 1.2)]
    assert exit_code(figures, gate=False) == 0
    assert exit_code(figures, gate=True) == 1
    assert capsys.readouterr().err == "memory: 1.3, above 1.2\n"


def test_simulator_and_peers(bench: Bench) -> None:
    output = bench("tests.bench.__main__", "--minutes", "20", "--repeats", "1")
    assert len(re.findall(r"([\d.]+) M executions/s", output)) == 6
    assert len(re.findall(r"^(?:Tidebench|kernel) to .* [\d.]+ x ", output, re.MULTILINE)) == 3
    assert re.search(r"^its peak memory +\d+ MB$", output, re.MULTILINE)


def test_another_checkout(bench: Bench) -> None:
    output = bench(
        "tests.bench.__main__", "--against", str(REPOSITORY), "--minutes", "10", "--repeats", "2"
    )
    matches = re.findall(r"10 min, (\w+): CPU .* s +([\d.]+) x +\[", output)
    assert [what for what, _ in matches] == ["memory", "stored"]
    assert all(0.3 < float(ratio) < 3 for _, ratio in matches)


def test_a_folder_that_cannot_be_measured_is_no_other_checkout(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench("tests.bench.__main__", "--against", str(tmp_path), "--minutes", "10")
    assert f"{tmp_path} has no include/runs/stages.py" in capsys.readouterr().err


def test_growth(bench: Bench) -> None:
    output = bench("tests.bench.growth", "--hours", "0.5", "--repeats", "1")
    hours = re.findall(r"^ *([\d.]+) hours +[\d.]+ s of CPU", output, re.MULTILINE)
    assert hours == ["0.5", "2", "0.5", "7", "0.5", "7"]
    ratios = re.findall(r"^ratio +[\d.]+ of (\w+)$", output, re.MULTILINE)
    assert ratios == ["CPU", "memory", "memory"]


def test_other_work_beside_one_turn_or_from_one_turn_on_is_no_growth() -> None:
    paces = (1.0, 1.0, 1.7, 1.7, 1.7)
    turns = [(growth.Cost(5 * pace, 430), growth.Cost(20 * pace, 860)) for pace in paces]
    disturbed = (turns[0][0], growth.Cost(34, 860))
    assert growth.cpu_ratio([*turns, disturbed]) == 4


def test_width(bench: Bench) -> None:
    output = bench("tests.bench.wide", "--minutes", "5", "--repeats", "1", "--most", "100")
    assert re.findall(r"^ *(\d+) operators +([\d,]+) instances", output, re.MULTILINE) == [
        ("10", "173"),
        ("100", "2,060"),
    ]
    assert re.search(
        r"^ratio +[\d.]+ of an execution +[\d.]+ of its kernel part$", output, re.MULTILINE
    )


def test_decisions(bench: Bench) -> None:
    output = bench("tests.bench.decisions", "--operators", "100", "--repeats", "1", "--mixed")
    heading, *rows = output.splitlines()
    assert "2,000 instances" in heading
    assert [row.split()[0] for row in rows] == list(CONTROLLERS)


def test_matrix(bench: Bench) -> None:
    output = bench("tests.bench.matrix", "--runs", "2", "--minutes", "5")
    number = r" +([\d.,]+)"
    match = re.fullmatch(
        rf"2 runs{number} s{number} runs/min{number} ms of CPU each,{number} of the heap loop's\n"
        rf"tables of 2 runs{number} rows{number} s{number} rows/s{number} sampled items/s\n",
        output,
    )
    assert match
    assert all(float(number.replace(",", "")) > 0 for number in match.groups())


@pytest.mark.airflow
def test_page(bench: Bench) -> None:
    output = bench("tests.bench.page", "--runs", "20", "--repeats", "2")
    assert re.findall(r"^(\d+) runs$", output, re.MULTILINE) == ["20", "200"]
    assert len(re.findall(r" \d+ ms +\[\d+, \d+\], CPU \d+ ms", output)) == 16
    assert re.search(r"^all, newest first, ratio +[\d.]+ of CPU\n\Z", output, re.MULTILINE)
