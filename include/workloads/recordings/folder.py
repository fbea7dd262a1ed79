"""The folder that `tidebench record` writes: which of its files is read for what, and how."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

ABOUT, JOB, OPERATORS, EDGES = "recording.json", "job.csv", "operators.csv", "edges.yaml"
MAPPING: Mapping[str, str] = MappingProxyType(
    {"time": "time_s", "instances": "task_manager_slots", "cpu": "busy_share"}
)
"""Instances are slots. Flink does not know their CPU: how busy its busiest operator is stands in,
which is 1 for a job at its limit."""


def is_recorded(source: str | Path) -> bool:
    """Whether a source is such a folder."""
    return Path(source).is_dir() and (Path(source) / ABOUT).is_file()


def inside(source: str | Path, file: str) -> str:
    """The file of a recorded folder; any other source as it is."""
    return str(Path(source) / file) if is_recorded(source) else str(source)


def recording_name(source: str | Path, file: Path) -> str:
    """What results call a recording: its file, or its folder."""
    return Path(source).resolve().name if is_recorded(source) else file.name
