"""Files that may be looked at: what is published, the evidence of its checks, nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from pathlib import Path

FOLDERS = ("published", "data_docs")
KINDS: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".tex": "text/plain; charset=utf-8",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".gif": "image/gif",
    ".ico": "image/x-icon",
    ".otf": "font/otf",
}
"""Media types by suffix. A file of another kind is not there."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,95}")
"""What an experiment is called: as in its form, with more around it for an advice."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; img-src 'self' data:; font-src 'self' data:; "
    "style-src 'self' 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
    "Referrer-Policy": "no-referrer",
}
"""No script runs in a served file, whoever wrote it: it would act as the user of Airflow. Nor is
anything fetched from elsewhere."""
DOCS_INDEX = "data_docs/index.html"
"""The page of checks (checks.py) stands in for it."""


def is_experiment(name: str) -> bool:
    """Whether an experiment can have this name."""
    return _NAME.fullmatch(name) is not None


def find_file(root: Path, experiment: str, path: str) -> Path | None:
    """The file at ``path`` below the folder of an experiment, if it may be looked at.

    None where there is no such file, and for everything else: other folders, other kinds, and
    paths that leave the folder, also over a symbolic link.
    """
    first, _, rest = path.partition("/")
    if not is_experiment(experiment) or first not in FOLDERS or "\0" in rest:
        return None
    top = (root / experiment / first).resolve()
    file = (top / rest).resolve()
    inside = top.is_relative_to(root.resolve()) and file.is_relative_to(top)
    with suppress(OSError):  # of a name that is longer than the file system takes
        if inside and file.suffix in KINDS and file.is_file():
            return file
    return None


def files_of(root: Path, experiment: str) -> Mapping[str, bool]:
    """Whether the page, the checks and anything to bundle lie below this data root."""
    return {
        "report": find_file(root, experiment, "published/report.html") is not None,
        "checks": find_file(root, experiment, "data_docs/verdict.json") is not None,
        "bundle": find_file(root, experiment, "published/manifest.json") is not None,
    }


def in_theme(page: str, theme: str) -> str:
    """A served page in the theme of Airflow, which no script there can ask for."""
    if theme not in ("light", "dark"):
        return page
    return page.replace("</head>", f"<style>:root {{ color-scheme: {theme}; }}</style>\n</head>", 1)


def with_way_back(page: str, address: str, experiment: str, there: Mapping[str, bool]) -> str:
    """A served page with a way back to ours on top; its own links lead to files beside it only.

    ``there`` is what `files_of` says of the experiment; an advice has none of it.
    """
    places = {"": "All experiments"}
    if there["report"]:
        places[f"?experiment={experiment}"] = f"Runs of {experiment}"
    if there["checks"]:
        places[f"checks/{experiment}"] = "Checks"
    if there["bundle"]:
        places[f"bundle/{experiment}.zip"] = "Tables, as one zip"
    links = " · ".join(
        f'<a href="{escape(address)}/{path}">{text}</a>' for path, text in places.items()
    )
    bar = f'<p style="margin: 0; padding: .5rem 1.4rem; font: 14px system-ui">{links}</p>'
    return re.sub(r"(<body[^>]*>)", lambda match: f"{match[1]}\n{bar}", page, count=1)
