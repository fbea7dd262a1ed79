"""One day of a shadow as a folder: a recording that `advise` takes, and what was decided."""

from __future__ import annotations

import csv
from datetime import UTC, date, datetime, time
from pathlib import Path

from include.files.appended import whole_lines
from include.files.whole import csv_text, new_folder, read_json, swap_in, write_bytes, write_json
from include.model.errors import SpecError, StoreError
from include.service.record import EVENTS, TASK_MANAGERS
from include.service.shadow import DECISIONS
from include.service.verdict import RECORDING, is_shadow
from include.workloads.recordings.folder import ABOUT, EDGES, JOB, OPERATORS

DAYS = "days"
DAY_S = 86_400.0


def day_of(folder: Path) -> tuple[Path, str] | None:
    """The state of a shadow and the day of it, such as 2026-01-31, that ``folder`` is.

    The day is empty if the folder is the state itself; None: it is neither.
    """
    folder = folder.resolve()
    if is_shadow(folder):
        return folder, ""
    state = folder.parent.parent
    return (state, folder.name) if folder.parent.name == DAYS and is_shadow(state) else None


def cut_day(folder: Path, day: date) -> Path:
    """Write ``folder/days/DAY`` whole: the rows of that day in UTC. Returns it; a day that is not
    over yet is cut again later.

    Raises StoreError without a recording, SpecError when it has nothing of that day.
    """
    recording = folder / RECORDING
    if not (recording / ABOUT).is_file():
        raise StoreError(f"{folder} has no recording; name the --state of a shadow")
    began_s = datetime.combine(day, time(), UTC).timestamp()
    target = folder / DAYS / day.isoformat()
    with new_folder(target) as draft:
        for path in (*(recording / name for name in (JOB, OPERATORS, TASK_MANAGERS, EVENTS)),
                     folder / DECISIONS):  # fmt: skip
            rows = _rows_of(path, began_s)
            if path.name == JOB and not rows:
                raise SpecError("day", [f"nothing was recorded on {day} (UTC)"])
            write_bytes(draft / path.name, rows.encode())
        write_json(draft / ABOUT, read_json(recording / ABOUT))
        write_bytes(draft / EDGES, (recording / EDGES).read_bytes())
        swap_in(draft, target)
    return target


def _rows_of(path: Path, began_s: float) -> str:
    """The header and the rows of a day that begins then; nothing where there are none."""
    lines = csv.reader(whole_lines(path))
    header = next(lines)
    rows = [row for row in lines if 0 <= float(row[0]) - began_s < DAY_S]
    return csv_text(header, rows) if rows or path.name != JOB else ""
