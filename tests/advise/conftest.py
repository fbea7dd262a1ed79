"""What several tests of advice read and none changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.advise.synthetic import write_operators


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a monitor would have kept of two hours on the fluid testbed, every 60 s."""
    return write_operators(tmp_path_factory.mktemp("known"))
