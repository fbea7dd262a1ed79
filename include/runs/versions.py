"""With which code a run was measured."""

from __future__ import annotations

import ast
import hashlib
import platform
import subprocess
import sysconfig
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "numba", "pyarrow", "pydantic")
COMPUTES = ("experiment", "files", "model", "runs", "testbeds", "workloads")
"""Folders of include/ that decide what is measured in every run. Of controllers/ count ``ACTS`` and
what the controllers of a run import; the others only read what was measured."""
ACTS = tuple(f"include.controllers.{name}" for name in ("building", "deployment", "failures"))
"""Modules of controllers/ that act in every run, whatever controls it."""
INCLUDE = Path(__file__).resolve().parents[1]
COMMIT = INCLUDE.with_name("git_commit")
"""The commit of a copy of the code that is no clone (include/runs/spark/points.py)."""


def code_digest(controllers: Collection[str]) -> str:
    """SHA-256 over every file and every package version that decides what is measured.

    A spec hash covers what a run is given, this what acts on it: code, and the levels,
    topologies and calibrations that come with it. Spec files are inputs, so they do not count.
    ``controllers`` are those of the run: of an edited one only its own runs are of other code.
    """
    total = hashlib.sha256(trunk_digest().encode())
    for name in sorted(set(controllers)):
        total.update(_controller_digest(name).encode())
    return total.hexdigest()


@cache
def trunk_digest() -> str:
    """Of the code that takes part in every run."""
    total = hashlib.sha256(repr([platform.python_version(), *_package_versions()]).encode())
    for path in sorted(path for folder in COMPUTES for path in (INCLUDE / folder).rglob("*.*")):
        if path.suffix in (".py", ".java", ".yaml", ".csv") and path.parent.name != "specs":
            _add(total, path.relative_to(INCLUDE).as_posix(), path)
    for module, path in sorted(modules_behind(*ACTS).items()):
        _add_source(total, module, path)
    return total.hexdigest()


@cache
def _controller_digest(name: str) -> str:
    """Of what is registered under a name and of all code behind it, wherever that lies."""
    from include.controllers import CONTROLLERS  # with numpy, which a page does without

    registered = CONTROLLERS[name]
    build = registered.build
    options = build.keywords if isinstance(build, partial) else {}
    cls = build.func if isinstance(build, partial) else build
    about = (cls.__module__, cls.__qualname__, sorted(options.items()))
    total = hashlib.sha256(repr((*about, registered.pays_by_btu, registered.needs_peak)).encode())
    for module, path in sorted(modules_behind(cls.__module__).items()):
        _add_source(total, module, path)
    return total.hexdigest()


def _add_source(total: Any, module: str, path: Path) -> None:
    total.update(module.encode() + b"\0" + _source(path).sha256)


def _add(total: Any, name: str, path: Path) -> None:
    total.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())


def modules_behind(*modules: str) -> dict[str, Path]:
    """The files of modules and of what they import, by name: controllers of this project, and what
    lies in the package of a user's module or beside that.

    The rest of this project is in `trunk_digest`, and the list of all controllers in
    include/controllers/__init__.py decides nothing. Beside an installed package lie others.
    """
    files: dict[str, Path] = {}
    own = {module.partition(".")[0] for module in modules} - {INCLUDE.name}
    places = {_place_of(top) for top in own} - {None, *map(Path, sysconfig.get_paths().values())}
    waiting = [*modules]
    while waiting:
        name = waiting.pop()
        top = name.partition(".")[0]
        is_ours = name.startswith("include.controllers.")
        is_own = top in own or (top != INCLUDE.name and places and _place_of(top) in places)
        if name in files or not (is_ours or is_own):
            continue
        if (path := _source_of(name)) is not None:
            files[name] = path
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            waiting += _imports(_source(path), package)
            if is_own:
                waiting.append(name.rpartition(".")[0])
    return files


def _place_of(top: str) -> Path | None:
    return root.parent if (root := root_of(top)) else None


@cache
def root_of(top: str) -> Path | None:
    """The folder of a package, with an ``__init__.py`` or without, or the file of a module; None
    where it has none."""
    spec = _spec_of(top) if top else None
    if spec and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin) if spec and spec.has_location and spec.origin else None


def _source_of(module: str) -> Path | None:
    spec = _spec_of(module)
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _spec_of(module: str) -> ModuleSpec | None:
    try:
        return find_spec(module)
    except (ImportError, ValueError):  # a class or function of the module before the dot
        return None


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A file of a module, as it was when this process looked at it first."""

    sha256: bytes
    imports: tuple[ast.Import | ast.ImportFrom, ...]


@cache
def _source(path: Path) -> ModuleFile:
    """Read once: of a module that is edited, this process goes on with what it has imported."""
    content = path.read_bytes()
    nodes = ast.walk(ast.parse(content))
    imports = tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    return ModuleFile(hashlib.sha256(content).digest(), imports)


def _imports(source: ModuleFile, package: str) -> Iterator[str]:
    """What a module imports, in full; names of modules and of what is in them alike."""
    for node in source.imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            parents = package.split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join([*parents, *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def versions() -> dict[str, str]:
    """Python, the packages that measurements rest on, and the git commit ("" when unknown)."""
    return {
        "python": platform.python_version(),
        "git_commit": git_commit(),
        **dict(zip(PACKAGES, _package_versions(), strict=True)),
    }


def _package_versions() -> list[str]:
    installed = []
    for name in PACKAGES:
        try:
            installed.append(version(name))
        except PackageNotFoundError:
            installed.append("")
    return installed


def git_commit() -> str:
    """The commit of this code, ``-dirty`` added when files differ; "" where nobody knows."""
    if COMMIT.is_file():
        return COMMIT.read_text(encoding="ascii").strip()
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=INCLUDE,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
