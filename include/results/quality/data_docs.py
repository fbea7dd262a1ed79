"""Data Docs that need no network and no script, on a disk as well as on a server.

Great Expectations leaves style sheets and scripts on other servers, without which its pages are
bare and its index, which scripts fill, is empty.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from include.results.tables.quarantine import Check

_THEIRS = re.compile(
    r"<(script|style)\b.*?</\1>|<link\b[^>]*>|<img\b[^>]*NO-CACHE[^>]*>", flags=re.DOTALL
)
_SHEET = Path(__file__).with_suffix(".css")


def settle(docs: Path, folder: Path, checks: Sequence[Check]) -> None:
    """Take their style and scripts out of every page, put our style in, and write the index.

    Nor do they say where on this machine the ``folder`` of the experiment lies: they are packed.
    """
    style = f"<style>\n{_SHEET.read_text(encoding='utf-8')}</style>\n</head>"
    shutil.rmtree(docs / "static")
    for page in docs.rglob("*.html"):
        text = _THEIRS.sub("", page.read_text(encoding="utf-8"))
        text = text.replace(str(folder.absolute()), folder.name)
        page.write_text(text.replace("</head>", style, 1), encoding="utf-8")
    rows = "".join(_row(docs, name, list(own)) for name, own in groupby(checks, lambda c: c.table))
    (docs / "index.html").write_text(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Data Docs</title>\n{style}\n<body>\n<h4>Data Docs</h4>\n"
        "<p>What was checked of each table before anything was published.</p>\n"
        f"<table>\n<tr><th>table</th><th>checks</th><th>failed</th></tr>\n{rows}</table>\n"
        "</body>\n</html>\n",
        encoding="utf-8",
    )


def _row(docs: Path, table: str, checks: Sequence[Check]) -> str:
    (page,) = docs.glob(f"validations/{table}/*/*/*.html")
    failed = "<br>".join(escape(check.sentence) for check in checks if not check.passed)
    return (
        f'<tr><td><a href="{page.relative_to(docs).as_posix()}">{escape(table)}</a></td>'
        f'<td>{len(checks)}</td><td class="text-danger">{failed}</td></tr>\n'
    )
