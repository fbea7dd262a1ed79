"""The folder that `tidebench record` writes: which of its files is read for what, and how."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from include.files.whole import read_json
from include.model.errors import StoreError

ABOUT, JOB, OPERATORS, EDGES = "recording.json", "job.csv", "operators.csv", "edges.yaml"
MAPPING: Mapping[str, str] = MappingProxyType(
    {"time": "time_s", "instances": "task_manager_slots", "cpu": "busy_share"}
)
"""Instances are slots. Flink does not know their CPU: how busy its busiest operator is stands in,
which is 1 for a job at its limit."""


def is_recorded(source: str | Path) -> bool:
    """Whether a source is such a folder."""
    try:
        return (Path(source) / ABOUT).is_file()
    except OSError:  # too long a name is no folder, and who reads it says so
        return False


def slots_each(folder: str | Path) -> int | None:
    """Slots of a TaskManager, where one was seen."""
    try:
        return int(read_json(Path(folder) / ABOUT)["slots_each"])
    except (StoreError, KeyError, TypeError, ValueError):
        return None
