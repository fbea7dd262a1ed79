"""One word per thing: no two classes of the project have the same name."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_no_class_is_called_like_another() -> None:
    files = [
        file for folder in ("include", "infra", "plugins") for file in (ROOT / folder).rglob("*.py")
    ]
    names = Counter(
        node.name
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert len(names) > 300
    assert [name for name, times in names.items() if times > 1] == []
