"""Results of others, kept below the data root beside the experiments, with where they are from."""

from __future__ import annotations

from pathlib import Path

from include.files.inputs import input_text
from include.files.whole import write_bytes
from include.model.errors import SpecError
from include.results.registry.form import SharedResults, parse_results

FOLDER = "_registry"
"""No experiment can be called so: names begin with a letter or digit."""


def read_results(path: Path) -> SharedResults:
    """An exported file. Raises SpecError with everything that is wrong with it."""
    return parse_results(input_text(path, "results file"), path.name)


def keep_results(found: SharedResults, root: Path) -> tuple[Path, bool]:
    """Keep results below the data root; returns where, and whether they were not there before."""
    path = root / FOLDER / f"{found.name}.json"
    is_new = not path.is_file()
    write_bytes(path, found.to_json().encode())
    return path, is_new


def kept_results(root: Path) -> list[SharedResults]:
    """Everything that is kept, by name. Raises SpecError for a file that was changed since."""
    return [_kept(path) for path in sorted((root / FOLDER).glob("*.json"))]


def _kept(path: Path) -> SharedResults:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        told = f"cannot be read ({type(error).__name__}); remove it, and import the file again"
        raise SpecError(str(path), [told]) from None
    return parse_results(text, str(path))
