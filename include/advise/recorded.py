"""What was recorded of a job and of its operators: read, modelled, and kept for other tasks."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from include.advise.job import JobModel
from include.advise.operators import Edges, fit_operators, operators_of_job, read_graph
from include.advise.readings import readings_of
from include.files.whole import write_bytes
from include.model.errors import SpecError, StoreError, all_checked
from include.workloads.recordings import Recording, parse_mapping, read_recording
from include.workloads.recordings.folder import OPERATORS, is_recorded
from include.workloads.recordings.mapping import TIME
from include.workloads.recordings.operators import OperatorRecording
from include.workloads.recordings.recording import FloatArray

KEPT_JOB, KEPT_OPERATORS = "recording.parquet", "operators.parquet"
_TIME = "time_s"
_ABOUT = b"tidebench"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded of a job, and of its operators where they were; they have to have models
    where somebody has ``asked`` for them and said how records flow."""

    job: Recording
    operators: tuple[OperatorRecording, Edges] | None
    asked: bool = False


def read_recorded(
    asked_by: str, source: str, columns: str, edges: str, *, sort: bool = False
) -> Recorded:
    """What a source has of the job, and of operators: a folder of `tidebench record`, or a file if
    ``edges`` are given. Raises SpecError with what is wrong with either."""

    def operators() -> tuple[OperatorRecording, Edges] | None:
        if edges:
            mapping = parse_mapping(columns)
            times = {name: column for name, column in mapping.items() if name == TIME}
            return read_graph(source, edges, times, sort=sort)
        if is_recorded(source) and (Path(source) / OPERATORS).is_file():
            return read_graph(source, "", {}, sort=sort)
        return None

    def job() -> Recording:
        return read_recording(source, parse_mapping(columns), sort=sort)

    of_job, by_operator = all_checked(asked_by, job, operators)
    return Recorded(of_job, by_operator, bool(edges))


def with_operators(job: JobModel, recorded: Recorded) -> JobModel:
    """The model with one of every operator; with a note where they cannot have one and nobody has
    asked for it."""
    if recorded.operators is None:
        return job
    read = readings_of(recorded.job)
    try:
        graph = fit_operators(*recorded.operators)
        operators = operators_of_job(graph, read.load_per_s, read.instances)
    except SpecError as error:
        if recorded.asked:
            raise
        note = f"operators are replayed as a whole ({'; '.join(error.problems)})"
        return replace(job, notes=(*job.notes, note))
    return replace(job, operators=operators, notes=(*job.notes, *graph.notes))


def keep_recorded(recorded: Recorded, folder: Path) -> None:
    """Write it whole, so that every task reads the same: times in seconds, a column per signal, and
    of operators one per operator and kind."""
    about = {each.name: getattr(recorded.job, each.name) for each in fields(recorded.job)}
    columns = {_TIME: about.pop("times_s"), **about.pop("readings")}
    _write(folder / KEPT_JOB, columns, about)
    (folder / KEPT_OPERATORS).unlink(missing_ok=True)
    if recorded.operators is not None:
        recording, edges = recorded.operators
        columns = {
            json.dumps([operator, kind]): values
            for operator, kinds in recording.readings.items()
            for kind, values in kinds.items()
        }
        columns = {_TIME: recording.times_s, **columns}
        _write(folder / KEPT_OPERATORS, columns, {"edges": edges})


def kept_recorded(folder: Path, *, asked: bool) -> Recorded:
    """What `keep_recorded` wrote. Raises StoreError when it is missing or damaged."""
    times_s, columns, about = _read(folder / KEPT_JOB)
    lists = {name: tuple(value) for name, value in about.items() if isinstance(value, list)}
    job = Recording(times_s=times_s, readings=columns, **{**about, **lists})
    if not (folder / KEPT_OPERATORS).is_file():
        return Recorded(job, None, asked)
    times_s, columns, about = _read(folder / KEPT_OPERATORS)
    readings = dict[str, dict[str, FloatArray]]()
    for column, values in columns.items():
        operator, kind = json.loads(column)
        readings.setdefault(operator, {})[kind] = values
    recording = OperatorRecording(name=job.name, times_s=times_s, readings=readings)
    edges = tuple((origin, target) for origin, target in about["edges"])
    return Recorded(job, (recording, edges), asked)


def _write(path: Path, columns: Mapping[str, FloatArray], about: Mapping[str, Any]) -> None:
    sink, described = io.BytesIO(), {_ABOUT: json.dumps(about).encode()}
    pq.write_table(pa.table(dict(columns)).replace_schema_metadata(described), sink)
    write_bytes(path, sink.getvalue())


def _read(path: Path) -> tuple[FloatArray, dict[str, FloatArray], dict[str, Any]]:
    """Times, the other columns, and what they are about."""
    try:
        table = pq.ParquetFile(path).read()
        about = json.loads(table.schema.metadata[_ABOUT])
        columns = {name: np.array(table[name], dtype=np.float64) for name in table.column_names}
        return columns.pop(_TIME), columns, about
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} cannot be read ({error}); ask for the advice again") from error
