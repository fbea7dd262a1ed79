"""Names of experiments that are read off recordings."""

from __future__ import annotations

import re
from hashlib import sha256

MOST_LETTERS = 40


def recorded_name(recording: str, content: str) -> str:
    """A name for experiment and topology: that of the recording, and a digest of what was made of
    it. Other content is another name, so nobody takes two jobs for one and averages over them.
    """
    stem = re.sub(r"\.(csv|parquet|pq|json|prom|om|openmetrics)$", "", recording.lower())
    plain = re.sub(r"[^a-z0-9]+", "_", stem).strip("_")[:MOST_LETTERS].strip("_")
    return f"recorded_{plain or 'job'}_{sha256(content.encode()).hexdigest()[:8]}"
