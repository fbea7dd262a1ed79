"""Which files of this machine a spec, topology, trace or calibration may be.

TIDEBENCH_INPUTS lists folders, separated by ``:``. Files that come with the project may always be
read; without the variable any file may, as on the command line of whoever owns the machine. Where
others fill in forms, a path must not become a way to read what they could not read otherwise.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from include.model.errors import SpecError

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
OURS = Path(__file__).resolve().parents[1]


def input_file(name: str | Path, kind: str) -> Path:
    """The file of that name. Raises SpecError when there is none, or it may not be read.

    Links are followed first. Outside the folders nothing is said about what is there.
    """
    path = Path(name)
    if found := _ADDRESS.match(str(name)):  # it may have a password, so it is not repeated
        told = f"{found[1]}:// begins an address, and not the path of a file"
        server = "; a Prometheus is prometheus+http://HOST:9090?last_s=21600"
        raise SpecError(kind, [told + (server if kind == "recording" else "")])
    try:
        real = path.resolve()
        is_there = real.is_file()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL in it, links in a circle
        raise SpecError(kind, [f"{str(path)!r} cannot be the path of a file"]) from None
    listed = os.environ.get("TIDEBENCH_INPUTS", "")
    folders = [Path(one).resolve() for one in listed.split(os.pathsep) if one]
    if folders and not any(real.is_relative_to(one) for one in (*folders, OURS)):
        where = " or ".join(str(one) for one in folders)
        raise SpecError(kind, [f"{path} is not below {where}; files of your own must be there"])
    if not is_there:
        raise SpecError(kind, [f"there is no file {path}; check the path"])
    return path


def input_text(name: str | Path, kind: str) -> str:
    """What is in such a file. Raises SpecError also when it cannot be read as text."""
    path = input_file(name, kind)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SpecError(path.name, ["this is no text; save the file as UTF-8"]) from None
    except OSError as error:
        raise SpecError(path.name, [f"cannot be read: {error.strerror}"]) from error
