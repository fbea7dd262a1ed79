"""Rows as they are measured, in a file: what a window's task has seen, its repetition still has.

A snapshot keeps how far the file had been handed over. A task that was killed is repeated from the
snapshot before it, finds what the killed one has written, and hands that over as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

COLUMNS = {
    "processing_duration": "time_s operator instance duration_ms wait_ms age_ms number",
    "queue": "time_s operator waiting_items arrived_items completed_items"
    " instances ready_instances",
    "instance_utilisation": "time_s instance operator host cpu_share",
    "host_utilisation": "time_s host cpu_share memory_share instances",
    "scaling_activity": "time_s activity operator instance host",
    "arrival": "time_s source level published_items",
    "event": "time_s event subject detail",
    "rescale": "asked_s down_s up_s gap_s cause reprocessed_items checkpoint_s checkpoint_bytes"
    " instances_before instances_after",
}
"""By table. ``number`` counts the items of an instance; it is not handed over."""

KEYS = {
    "processing_duration": (2, -1),
    **dict.fromkeys(("queue", "instance_utilisation", "host_utilisation", "arrival"), (0, 1)),
}
"""Places of the values that no two rows of a table share: a row comes twice when its writer was
killed before it could note that it has written it."""


class Journal:
    """Lines of [table, values...], appended and never changed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows and return when they are on the disk."""
        text = "".join(json.dumps([table, *row], separators=(",", ":")) + "\n" for row in rows)
        if not text:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(b"\n" + text.encode())  # an empty line, or the end of one that was cut
            file.flush()
            os.fsync(file.fileno())

    def read(self, offset: int) -> tuple[dict[str, dict[str, list[Any]]], int]:
        """Columns by table from a byte of the file on, and where the next reading begins.

        What was written twice comes once.
        """
        if not self._path.is_file():
            return {}, offset
        with self._path.open("rb") as file:
            file.seek(offset)
            content = file.read()
        content = content[: content.rfind(b"\n") + 1]  # a line that a crash has cut comes later
        rows: dict[str, list[list[Any]]] = {}
        known: set[tuple[Any, ...]] = set()
        for line in filter(None, content.splitlines()):
            try:
                table, *values = json.loads(line)
            except ValueError:
                continue  # or it was cut for good
            if table in KEYS:
                key = (table, *(values[place] for place in KEYS[table]))
                if key in known:
                    continue
                known.add(key)
            rows.setdefault(table, []).append(values)
        columns = {table: _columns(table, kept) for table, kept in rows.items()}
        return columns, offset + len(content)


def _columns(table: str, rows: list[list[Any]]) -> dict[str, list[Any]]:
    return {
        name: [row[i] for row in rows]
        for i, name in enumerate(COLUMNS[table].split())
        if name != "number"
    }
