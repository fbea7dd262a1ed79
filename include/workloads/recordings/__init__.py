"""Recordings of running stream jobs, as users have them: CSV, Parquet, OpenMetrics, Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from include.model.errors import SpecError
from include.workloads.recordings.assemble import Sheet, assemble, sorted_by_time
from include.workloads.recordings.csv_cells import shortened
from include.workloads.recordings.files import file_content, is_parquet, text_of
from include.workloads.recordings.folder import (
    JOB,
    MAPPING,
    inside,
    is_recorded,
    recording_name,
    slots_each,
)  # fmt: skip
from include.workloads.recordings.mapping import choose, parse_mapping
from include.workloads.recordings.prometheus import series_in
from include.workloads.recordings.recording import SIGNALS, Recording, evenly, filled
from include.workloads.recordings.series import joined, sheet_of
from include.workloads.recordings.server import is_server, read_server
from include.workloads.recordings.tables import read_csv, read_parquet

__all__ = [
    "SIGNALS", "Recording", "evenly", "filled", "parse_mapping", "read_recording",
]  # fmt: skip

_LOADS = ("arrivals_per_s", "rate_per_s")
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
        read = read_recording(inside(source, JOB), {**MAPPING, **mapping}, sort=sort)
        name = recording_name(source)
        return replace(_to_its_end(read), name=name, instances_per_host=slots_each(source))
    path, content = file_content(source)
    name = path.name
    if is_parquet(path, content):
        return _of_columns(name, read_parquet(name, content), mapping, sort)
    text = text_of(name, content)
    if not text.strip("\ufeff \t\r\n"):
        raise SpecError(name, ["the file is empty; write a line of column names, then readings"])
    series = series_in(path, text)
    if series is not None:
        return assemble(name, *sheet_of(name, series, mapping))
    return _of_columns(name, read_csv(name, text), mapping, sort)


def _to_its_end(recording: Recording) -> Recording:
    """Without what was polled after the job had given its last rate: `record` waits for more."""
    rates = [recording.readings[name] for name in _LOADS if name in recording.readings]
    read = np.flatnonzero(~np.isnan(rates).all(axis=0)) if rates else np.zeros(0)
    if not read.size or read[-1] == recording.times_s.size - 1:
        return recording
    left_min = (recording.times_s[-1] - recording.times_s[read[-1]]) / 60
    note = f"no rate was read in the last {left_min:.3g} min, which are left out"
    return replace(recording.at(slice(read[-1] + 1)), notes=(*recording.notes, note))


def _of_columns(name: str, sheet: Sheet, mapping: Mapping[str, str], sort: bool) -> Recording:
    reads, problems = choose(sheet.columns, mapping)
    if problems:
        raise SpecError(name, shortened(problems))
    if sort:
        sheet = sorted_by_time(sheet, reads)
    return assemble(name, sheet, reads)
