"""Templates of SQL and of pages."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def templates_in(*folders: Path, escape: bool = True) -> Environment:
    """The templates of these folders; ``escape`` whatever is put into one: those of HTML.

    A name that is not given is an error, and a line with nothing but a block leaves none.
    """
    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
