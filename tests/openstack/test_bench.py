"""The bench of leases runs, with two hosts and one turn."""

from __future__ import annotations

import pytest

from tests.bench.cloud_leases import main

pytestmark = pytest.mark.openstack


def test_one_host_beside_two(capsys: pytest.CaptureFixture[str]) -> None:
    main(["2", "1"])
    output = capsys.readouterr().out
    assert output.count("ordered within") == 4
    assert output.count("times as long") == 2
