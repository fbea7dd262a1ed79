"""Recordings of running stream jobs, as users have them: CSV, Parquet, OpenMetrics, Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from include.model.errors import SpecError
from include.workloads.recordings.assemble import Sheet, assemble, sorted_by_time
from include.workloads.recordings.csv_cells import shortened, with_hint
from include.workloads.recordings.files import read_file
from include.workloads.recordings.folder import JOB, MAPPING, is_recorded, slots_each
from include.workloads.recordings.mapping import choose, listed_names, parse_mapping
from include.workloads.recordings.recording import SIGNALS, Recording, evenly, filled
from include.workloads.recordings.series import joined, sheet_of
from include.workloads.recordings.server import is_server, read_server

__all__ = [
    "LOADS", "SIGNALS", "Recording", "evenly", "filled", "parse_mapping", "read_recording",
]  # fmt: skip

LOADS = ("arrivals_per_s", "rate_per_s")
"""Readings that can be replayed; the offered load comes first."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


def read_recording(
    source: str, mapping: Mapping[str, str] = _NOTHING, *, sort: bool = False
) -> Recording:
    """The recording in a file, in a folder of `tidebench record`, or of a server of Prometheus
    (``prometheus+http://...``).

    ``mapping`` says which column, series or query a signal is read from, and in which unit:
    ``{"time": "timestamp", "rate": "requests@per_min"}``. Columns whose names say what they are
    need none. ``sort`` puts rows in the order of time, and those of one time that say the same
    into one. Raises SpecError with all problems at once, each with where it is.
    """
    if is_server(source):
        name, recording = read_server(source, mapping)
        return assemble(name, *joined(recording))
    if is_recorded(source):
        folder = Path(source)
        read = _to_its_end(read_recording(str(folder / JOB), {**MAPPING, **mapping}, sort=sort))
        return replace(read, name=folder.resolve().name, instances_per_host=slots_each(folder))
    name, content = read_file(source)
    if not isinstance(content, Sheet):
        return assemble(name, *sheet_of(name, content, mapping))
    reads, problems = choose(content.columns, mapping)
    if problems:
        hint = f"the columns are: {listed_names(content.columns)}"
        raise SpecError(name, with_hint(shortened(problems), hint))
    return assemble(name, sorted_by_time(content, reads) if sort else content, reads)


def _to_its_end(recording: Recording) -> Recording:
    """Without what was polled after the job had given its last rate: `record` waits for more."""
    rates = [recording.readings[name] for name in LOADS if name in recording.readings]
    read = np.flatnonzero(~np.isnan(rates).all(axis=0)) if rates else np.zeros(0)
    if not read.size or read[-1] == recording.times_s.size - 1:
        return recording
    left_min = (recording.times_s[-1] - recording.times_s[read[-1]]) / 60
    note = f"no rate was read in the last {left_min:.3g} min, which are left out"
    return replace(recording.at(slice(read[-1] + 1)), notes=(*recording.notes, note))
