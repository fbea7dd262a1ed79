"""What others wrote is as they published it, with its licence."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

VENDOR = Path(__file__).parents[2] / "plugins" / "tidebench" / "page" / "vendor"
DIGESTS = {
    "uplot/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uplot/uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uplot/LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}  # of the npm package uplot@1.6.32


@pytest.mark.parametrize("name", DIGESTS)
def test_every_file_is_the_published_one(name: str) -> None:
    assert sha256((VENDOR / name).read_bytes()).hexdigest() == DIGESTS[name]


def test_nothing_else_lies_there() -> None:
    files = {str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.is_file()}
    assert files == {*DIGESTS, "README.md"}
