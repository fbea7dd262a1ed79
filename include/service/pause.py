"""The switch that stops all changes: a file in the state of a service."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from include.files.whole import json_bytes, write_synced
from include.model.errors import SetupError

FILE = "paused.json"


def pause(state: Path, why: str) -> None:
    """Stop all changes from the next request on; returns when that is on disk.

    Raises SetupError when it is not.
    """
    about = {"since": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "why": why}
    write_synced(state / FILE, json_bytes(about))


def resume(state: Path) -> bool:
    """Allow changes again; whether they were stopped. Raises SetupError when they stay stopped."""
    try:
        (state / FILE).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise SetupError(
            f"{state / FILE} cannot be removed ({error.strerror}), so changes stay stopped; "
            "make the folder writable"
        ) from error
    return True


def why_paused(state: Path) -> str:
    """Since when changes are stopped and why; "" when they are not. A damaged file stops them."""
    try:
        about = json.loads((state / FILE).read_bytes())
        reason = f": {about['why']}" if about["why"] else ""
        return f"paused since {about['since']}{reason}"
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError):
        return f"paused, and {FILE} cannot be read"
