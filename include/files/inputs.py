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
    if address := _ADDRESS.match(str(name)):  # it may have a password, so it is not repeated
        problem = f"{address[1]}:// begins an address, and not the path of a file"
        server = "; a Prometheus is prometheus+http://HOST:9090?last_s=21600"
        raise SpecError(kind, [problem + (server if kind == "recording" else "")])
    try:
        real = path.resolve()
        str(real).encode()  # which specs and rows are written in
        is_there = real.is_file()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, no UTF-8, links in a circle
        raise SpecError(kind, [f"{str(path)!r} cannot be the path of a file"]) from None
    listed = os.environ.get("TIDEBENCH_INPUTS", "")
    folders = [Path(name).resolve() for name in listed.split(os.pathsep) if name]
    if folders and not any(real.is_relative_to(folder) for folder in (*folders, OURS)):
        where = " or ".join(str(folder) for folder in folders)
        raise SpecError(kind, [f"{path} is not below {where}; files of your own must be there"])
    if real.is_dir():
        raise SpecError(kind, [f"{path} is a folder; name a file in it"])
    if not is_there:
        problem = f"there is no file {path}; check the path"
        if real.exists():
            problem = f"{path} is no ordinary file, but a device or a pipe; copy it into one"
        raise SpecError(kind, [problem])
    return path


def expanded(text: str) -> Path:
    """A path with its ``~`` replaced; of a user who is not there it stays, and is not found."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def beside(file: Path, name: str) -> str:
    """A path that ``file`` names: relative ones start where it is. Whether it is there is asked
    when it is read, and so is whether it can be a path at all."""
    try:
        return str((file.parent / name).resolve())
    except (OSError, ValueError, RuntimeError):  # too long, a NUL in it, links in a circle
        return str(file.parent / name)


def beside_if_file(file: Path, name: str) -> str:
    """The same of a YAML file; any other name stays a name."""
    return beside(file, name) if name.endswith((".yaml", ".yml")) else name


def input_text(name: str | Path, kind: str) -> str:
    """What is in such a file. Raises SpecError also when it cannot be read as text."""
    path = input_file(name, kind)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SpecError(path.name, ["this is no text; save the file as UTF-8"]) from None
    except OSError as error:
        raise SpecError(path.name, [f"cannot be read: {error.strerror}"]) from error
