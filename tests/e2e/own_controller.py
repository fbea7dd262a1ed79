"""A controller from a folder of somebody's own: no file of this repository is touched.

The class is that of docs/adding.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.docs.pages import blocks

OWN = "my_package.module:Longest"


def write_own(home: Path, **changes: Any) -> Path:
    """Write the package and a spec of its runs beside those of ``btu``; the spec."""
    package = home / "my_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (longest,) = [block for block in blocks("python") if block.text.startswith("# longest.py")]
    (package / "module.py").write_text(longest.text)
    spec = {"name": "own", "controllers": [OWN, "btu"], "patterns": "stepwise", "btus_min": [5],
            "seeds": [1], "duration_min": 10}  # fmt: skip
    (home / "mine.yaml").write_text(json.dumps(spec | changes))
    return home / "mine.yaml"
