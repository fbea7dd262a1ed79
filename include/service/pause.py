"""The switch that stops all changes: a file in the state of a service."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from include.files.whole import read_json, write_json
from include.model.errors import StoreError

FILE = "paused.json"


def pause(state: Path, why: str) -> None:
    """Stop all changes from the next reading on. Raises SetupError when that cannot be written."""
    write_json(state / FILE, {"since": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "why": why})


def resume(state: Path) -> bool:
    """Allow changes again; whether they were stopped."""
    was_paused = (state / FILE).exists()
    (state / FILE).unlink(missing_ok=True)
    return was_paused


def why_paused(state: Path) -> str:
    """Since when changes are stopped and why; "" when they are not. A damaged file stops them."""
    try:
        if not (state / FILE).exists():
            return ""
        about = read_json(state / FILE)
        reason = f": {about['why']}" if about["why"] else ""
        return f"paused since {about['since']}{reason}"
    except (StoreError, OSError, KeyError, TypeError):
        return f"paused, and {FILE} cannot be read"
