"""What a controller raises, on a line that says its author where to look."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import unwrap
from threading import current_thread, main_thread
from traceback import walk_tb
from typing import Any

from include.controllers.base import Controller
from include.model.errors import ControllerFailed

WHATEVER = (Exception, SystemExit, GeneratorExit)
"""What an author's code may raise that ends neither a command nor what others do."""
DECIDES_WITHIN_S = 600.0
"""CPU time of a decision. The slowest of ours takes seconds, for 20,000 instances."""
MOST_LETTERS = 200
OURS = __name__.partition(".")[0]


@contextmanager
def deadline() -> Iterator[None]:
    """Raise TimeoutError in what takes more CPU time than a decision may, in the main thread, where
    signals arrive. CPU time, as other work on the machine is no fault of its author.
    """
    if current_thread() is not main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise TimeoutError(f"no decision after {DECIDES_WITHIN_S:g} s of CPU time")

    handler = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, DECIDES_WITHIN_S, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)


def error_line(error: BaseException) -> str:
    """Type and message, with what a terminal or a file cannot show escaped."""
    kind = type(error).__name__
    try:
        message = " ".join(str(error).split())
    except WHATEVER:
        message = "its message cannot be read"
    line = f"{kind}: {message}" if message else kind
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    return shown if len(shown) <= MOST_LETTERS else f"{shown[: MOST_LETTERS - 3]}..."


def is_ctrl_c(error: BaseException) -> bool:
    """Whether a user may have raised it. Where Python does not handle Ctrl-C itself (in `advise`,
    in tasks), only the code of an author does, and a handler of ours."""
    if not isinstance(error, KeyboardInterrupt):
        return False
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return True
    raised_in = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    return _package(raised_in[-1]) == OURS


def places(error: BaseException, kind: type) -> list[str]:
    """The lines that were under way of the packages that a class and those that it is derived from
    are in, as ``FILE:LINE``; of this one only where there is no other."""
    packages = {_package(one.__module__) for one in kind.__mro__[:-1]}
    return _lines(error, packages - {OURS} or packages)


def _lines(error: BaseException, packages: set[str]) -> list[str]:
    return [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in walk_tb(error.__traceback__)
        if _package(str(frame.f_globals.get("__name__"))) in packages
    ]


def import_advice(error: BaseException, module: str) -> str:
    """What to do about what the import of a module, or of a class of it, has raised."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"correct it in {error.filename}:{error.lineno}"
    if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
        return "write module:Class, and install the package or put its folder on PYTHONPATH"
    if lines := _lines(error, {_package(module)} - {OURS}):
        return f"correct it in {lines[-1]}"
    where = getattr(sys.modules.get(module), "__file__", None)
    here = f", in {where}; if that is not yours, give yours another name" if where else ""
    return f"write module:Class, a class that the module has{here}"


def _package(module: str) -> str:
    return module.partition(".")[0]


def method_failed(error: BaseException, build: Callable[..., Controller]) -> str:
    """Which method of a controller raised it before there was anything to decide, and what to do;
    ``build`` is what its registration has."""
    kind: Any = build.func if isinstance(build, partial) else build
    calls = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
    own = (call.co_name for call in calls if call.co_filename != calls[0].co_filename)
    where = "".join(f" in {place}" for place in places(error, kind)[-1:])
    return f"{next(own, 'it')} failed ({error_line(error)}); correct it{where}"


def place_in(controller: Controller, error: BaseException) -> str:
    """The line of its author from which ``decide`` raised it, or where it begins: for what it
    returned, it is nowhere any more."""
    kind = type(controller)
    code = getattr(unwrap(kind.decide), "__code__", None)
    begins = f"{code.co_filename}:{code.co_firstlineno}" if code else kind.__module__
    return [begins, *places(error, kind)][-1]


def decide_failed(controller: Controller, now_s: float, error: BaseException) -> ControllerFailed:
    """What to raise in place of what ``decide`` raised, or of what its decision led to."""
    kind, where = type(controller), place_in(controller, error)
    name = f"{kind.__module__}:{kind.__qualname__}"
    return ControllerFailed(f"{name} failed at {now_s:g} s: {error_line(error)} ({where})")
