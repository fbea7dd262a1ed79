"""File of measured rows, which survives the process that measured them.

A snapshot has the position up to which rows were stored. If a task is killed, its repetition
starts from the previous snapshot and also stores the rows that the killed one has written.
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
"""Columns by table. ``number`` counts the items of an instance and is not stored."""

KEYS = {
    "processing_duration": (2, -1),
    **dict.fromkeys(("queue", "instance_utilisation", "host_utilisation", "arrival"), (0, 1)),
}
"""Positions of the key in a table's rows. A row is written twice if its writer was killed before
it could save its state."""


class Journal:
    """Lines of [table, values...], appended and never changed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows; returns when they are on disk."""
        text = "".join(json.dumps([table, *row], separators=(",", ":")) + "\n" for row in rows)
        if not text:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(b"\n" + text.encode())  # ends a truncated line
            file.flush()
            os.fsync(file.fileno())

    def read(self, offset: int) -> tuple[dict[str, dict[str, list[Any]]], int]:
        """Columns by table from byte ``offset`` on, without duplicates, and the next offset."""
        if not self._path.is_file():
            return {}, offset
        with self._path.open("rb") as file:
            file.seek(offset)
            content = file.read()
        content = content[: content.rfind(b"\n") + 1]  # the rest of the last line may follow
        rows: dict[str, list[list[Any]]] = {}
        keys: set[tuple[Any, ...]] = set()
        for line in filter(None, content.splitlines()):
            try:
                table, *values = json.loads(line)
            except ValueError:
                continue  # truncated by a crash
            if table in KEYS:
                key = (table, *(values[place] for place in KEYS[table]))
                if key in keys:
                    continue
                keys.add(key)
            rows.setdefault(table, []).append(values)
        columns = {table: _columns(table, kept) for table, kept in rows.items()}
        return columns, offset + len(content)


def _columns(table: str, rows: list[list[Any]]) -> dict[str, list[Any]]:
    return {
        name: [row[i] for row in rows]
        for i, name in enumerate(COLUMNS[table].split())
        if name != "number"
    }
