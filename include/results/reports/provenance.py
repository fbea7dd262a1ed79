"""Where published numbers come from: versions of what they were made with."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = (
    "apache-airflow",
    "great-expectations",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
)


def tool_versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide about the numbers."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
