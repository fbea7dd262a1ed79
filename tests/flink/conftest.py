"""Whether there is a Flink to test with, and why not."""

from __future__ import annotations

import pytest

from include.model.errors import SetupError
from include.testbeds.flink.installation import installation


def pytest_collection_modifyitems(items):
    try:
        installation()
    except SetupError as error:
        for item in items:
            if item.get_closest_marker("flink"):
                item.add_marker(pytest.mark.skip(reason=str(error)))
