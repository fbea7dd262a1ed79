"""Where recordings and traces of others are, for tests that are marked ``recorded``."""

from __future__ import annotations

import os
from pathlib import Path

REAL = Path(os.environ.get("TIDEBENCH_TEST_DATA", "TIDEBENCH_TEST_DATA is not set"))
