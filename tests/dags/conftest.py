"""Where the tasks of these tests keep everything."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def data_root(data_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data root, which tasks take for theirs."""
    monkeypatch.setenv("TIDEBENCH_DATA_ROOT", str(data_root))
    return data_root
