"""The bench of one operator runs, at a small size, against the services of the live tests."""

from __future__ import annotations

import pytest

from tests.bench.live_operator import main

pytestmark = pytest.mark.live


def test_every_case_has_its_line(at: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["200"]) == 0
    assert capsys.readouterr().out.count("items/CPU s") == 5
