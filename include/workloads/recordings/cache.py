"""A recording as one Parquet file of ours, so that everybody who works on it reads the same."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from include.files.whole import write_bytes
from include.model.errors import StoreError
from include.workloads.recordings.recording import Recording

_TIME = "time_s"
_ABOUT = b"tidebench"


def keep_recording(recording: Recording, path: Path) -> None:
    """Write it whole: a column of times in seconds and one per signal, NaN as it is."""
    about = {
        "name": recording.name,
        "began_at": recording.began_at,
        "notes": recording.notes,
        "columns": recording.columns,
        "instances_per_host": recording.instances_per_host,
    }
    columns = {_TIME: recording.times_s, **recording.readings}
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({_ABOUT: json.dumps(about).encode()}), sink)
    write_bytes(path, sink.getvalue())


def kept_recording(path: Path) -> Recording:
    """What `keep_recording` wrote. Raises StoreError when it is missing or damaged."""
    try:
        table = pq.ParquetFile(path).read()
        about = json.loads(table.schema.metadata[_ABOUT])
        columns = {name: np.array(table[name], dtype=np.float64) for name in table.column_names}
        return Recording(
            name=about["name"],
            times_s=columns.pop(_TIME),
            readings=columns,
            began_at=about["began_at"],
            notes=tuple(about["notes"]),
            columns=tuple(about["columns"]),
            instances_per_host=about.get("instances_per_host"),
        )
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} cannot be read ({error}); ask for the advice again") from error
